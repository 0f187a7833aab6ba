/* GET /v1/jobs: a listing in slices. The core thread fills rows for at most SLICE_JOBS jobs or SLICE_NS,
 * the reader adds jobs that are only in history, and the I/O thread writes them; the next slice begins
 * when the client has read enough of the last. GET /v1/jobs/7.42: one job with its complete ad. */
#include <inttypes.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "classad/eval.h"
#include "core/query.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/history/past.h"
#include "server/loop/expressions.h"
#include "server/loop/ids.h"

#define SLICE_JOBS  2000
#define SLICE_NS    4000000
#define SLICE_BYTES (16u << 20) /* size of the rows at which a slice ends */
#define RUN_JOBS    32          /* jobs that are read from history at once */
#define RUN_MEMBERS 4096        /* maximum distance between the first and the last of them */

struct listing {
        struct ids ids;
        size_t id_at;    /* index of the id that is being listed */
        uint32_t states; /* bit set of enum job_state */
        bool left;       /* also lists jobs that have ended and stay in the queue */
        struct str owner, constraint, names;
        uint64_t limit, given;    /* limit 0: no limit */
        uint64_t request, member; /* where the next slice continues; request 0: at the beginning */
        struct row *rows;
        size_t count;
        struct arena arena; /* memory of the slice's rows */
        struct constraint filter;
        bool end, more, comma;
};

static void jobs_state_free(void *arg)
{
        struct listing *l = arg;

        ids_deinit(&l->ids);
        arena_deinit(&l->arena);
        constraint_deinit(&l->filter);
        free(l->rows);
        free(l);
}

/* ---- core thread */

struct filter {
        struct row_maker maker;
        int64_t end_ns;
        symbol *names; /* the requested attributes; NULL: all, or none */
        size_t name_count;
};

static void find_names(struct server *s, struct listing *l, struct filter *f)
{
        struct str rest = l->names, name;

        if (l->names.n == 0 || str_eqz(l->names, "*"))
                return;
        f->names = arena_alloc(&l->arena, (l->names.n + 1) * sizeof(*f->names));
        while (str_cut(&rest, ',', &name))
                f->names[f->name_count++] = symbols_find(core_symbols(s->core), str_trim(name));
}

static void wanted_members(struct server *s, const struct listing *l, uint64_t request, struct set *to)
{
        core_members(s->core, request, l->states, to);
        if (l->left)
                core_members_left(s->core, request, to);
}

/* Adds the job if it meets the constraint. */
static void jobs_add_job(struct server *s, struct call *c, struct filter *f, uint64_t request,
                         uint32_t member)
{
        struct listing *l = c->state;
        struct row *r = &l->rows[l->count];
        struct ad *ad = NULL;

        if (constraint_holds_job(&l->filter, s->core, request, member, &ad) &&
            row_make(&f->maker, request, member, r)) {
                if (l->names.n && !ad)
                        ad = core_job_ad_some(s->core, request, member, f->names, f->name_count);
                if (l->names.n && !r->past)
                        r->ad = row_print_ad(ad, l->names, &l->arena);
                l->more |= r->past;
                l->count++;
                l->given++;
        }
        ad_free(ad);
}

static bool slice_full(const struct listing *l, const struct filter *f)
{
        return l->count == SLICE_JOBS || (l->limit && l->given == l->limit) || l->arena.used > SLICE_BYTES ||
               clock_mono_ns() > f->end_ns; /* the texts of one job may take a millisecond */
}

/* Lists members of one request from l->member on. Returns whether the slice ends here. */
static bool list_request(struct server *s, struct call *c, struct filter *f, uint64_t request,
                         const struct set *only)
{
        struct listing *l = c->state;
        struct core_request r;
        struct set members = {0};
        bool full = false;
        unsigned looked = 0;
        bool with_ads = l->filter.expr || l->names.n; /* making an ad may take long */

        if (core_request_get(s->core, request, &r) != 0 || !call_may(c, r.owner) ||
            !call_owner_is(r.owner, l->owner))
                return false;
        wanted_members(s, l, request, &members);
        if (only)
                set_keep_all(&members, only);
        for (uint64_t m = set_next(&members, l->member); m != SET_END && !full;
             m = set_next(&members, m + 1)) {
                jobs_add_job(s, c, f, request, (uint32_t)m);
                l->member = m + 1;
                full = slice_full(l, f) || l->filter.error ||
                       ((++looked % 64 == 0 || with_ads) && clock_mono_ns() > f->end_ns);
        }
        set_deinit(&members);
        return full;
}

static void list_named(struct server *s, struct call *c, struct filter *f)
{
        struct listing *l = c->state;

        for (; l->id_at < l->ids.count; l->id_at++) {
                const struct id *id = &l->ids.items[l->id_at];

                if (l->request != id->request) {
                        l->request = id->request;
                        l->member = 0;
                }
                if (list_request(s, c, f, id->request, id->some ? &id->members : NULL))
                        return;
                l->request = 0;
        }
        l->end = true;
}

static void list_all(struct server *s, struct call *c, struct filter *f)
{
        struct listing *l = c->state;

        if (l->request == 0)
                l->request = core_request_next(s->core, 0);
        for (unsigned looked = 1; l->request; looked++) {
                if (list_request(s, c, f, l->request, NULL))
                        return;
                l->request = core_request_next(s->core, l->request);
                l->member = 0;
                if (looked % 16 == 0 && clock_mono_ns() > f->end_ns)
                        break;
        }
        l->end = l->request == 0;
}

static void jobs_write_slice(struct server *s, struct call *c);

/* Reader thread: takes a row of a finished job. */
static int on_history(void *arg, uint64_t row, const struct past_job *h)
{
        struct jobs_past *x = arg;

        (void)row;
        x->found = past_row(x->past, h, NULL, x->arena, x->whole, x->names, x->row);
        return 0;
}

bool jobs_fill_past(struct server *s, struct arena *a, struct row *r, bool whole, struct str names)
{
        struct jobs_past x = {.past = s->past, .arena = a, .whole = whole, .names = names, .row = r};
        struct store_query q = {.request = r->request, .has_member = true, .member = r->member, .limit = 1};

        return store_history_query(s->store, &q, on_history, &x, NULL) == 0 && x.found;
}

struct fill { /* the rows of one run: one request, ascending members */
        struct server *server;
        struct listing *l;
        size_t from, end;
};

static int on_run(void *arg, uint64_t at, const struct past_job *h)
{
        struct fill *f = arg;
        size_t low = f->from, high = f->end;

        (void)at;
        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (f->l->rows[middle].member < h->member)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low < f->end && f->l->rows[low].member == h->member && f->l->rows[low].past)
                past_row(f->server->past, h, NULL, &f->l->arena, false, f->l->names, &f->l->rows[low]);
        return 0;
}

/* Leaves the rows from this one on to the next slice. */
static void give_back(struct listing *l, size_t from)
{
        l->given -= l->count - from;
        l->count = from;
        l->request = l->rows[from].request;
        l->member = l->rows[from].member;
        l->end = false;
        for (l->id_at = 0; l->id_at < l->ids.count && l->ids.items[l->id_at].request != l->request;)
                l->id_at++;
}

/* Reads a run of rows from history at once. */
static void fill_past(struct server *s, struct call *c)
{
        struct listing *l = c->state;

        for (size_t from = 0, end; from < l->count; from = end) {
                const struct row *first = &l->rows[from];
                struct fill f = {s, l, from, from};
                struct store_query q = {
                        .request = first->request, .has_member = true, .member = first->member};

                if (l->arena.used > SLICE_BYTES) {
                        give_back(l, from);
                        break;
                }
                for (end = from;
                     end < l->count && end < from + RUN_JOBS && l->rows[end].request == first->request &&
                     l->rows[end].member - first->member < RUN_MEMBERS;
                     end++)
                        if (l->rows[end].past)
                                q.member_end = l->rows[end].member + 1;
                f.end = end;
                if (q.member_end)
                        store_history_query(s->store, &q, on_run, &f, NULL);
        }
        call_io(c, jobs_write_slice);
}

static void jobs_ask_past(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, fill_past);
}

static void check_named(struct server *s, struct call *c, const struct listing *l, bool *ret_failed)
{
        for (size_t i = 0; i < l->ids.count && !*ret_failed; i++) {
                struct core_request r;

                if (core_request_get(s->core, l->ids.items[i].request, &r) == 0 && call_may(c, r.owner))
                        continue;
                call_fail(c, 404, "not_found", "there is no request %" PRIu64, l->ids.items[i].request);
                *ret_failed = true;
        }
}

static void jobs_slice(struct server *s, struct call *c)
{
        struct listing *l = c->state;
        struct filter f = {.end_ns = clock_mono_ns() + SLICE_NS};
        struct err err = {0};
        bool failed = false;

        if (!c->chunked)
                check_named(s, c, l, &failed);
        if (failed)
                return;
        if (constraint_begin(&l->filter, core_symbols(s->core), l->constraint, &err) != 0) {
                call_fail(c, 400, "bad_constraint", "constraint: %s", err.text);
                return;
        }
        l->count = 0;
        l->more = false;
        find_names(s, l, &f);
        row_maker_init(&f.maker, s, &l->arena);
        if (l->ids.count)
                list_named(s, c, &f);
        else
                list_all(s, c, &f);
        row_maker_deinit(&f.maker);
        constraint_end(&l->filter);
        if (l->filter.error && !c->chunked)
                call_fail(c, 400, "constraint_limit", "%s", l->filter.error);
        else
                call_io(c, l->more ? jobs_ask_past : jobs_write_slice);
}

/* ---- I/O thread */

static void jobs_write_slice(struct server *s, struct call *c)
{
        struct listing *l = c->state;
        struct json j = {.out = &c->out, .comma = l->comma};
        bool last = l->end || l->filter.error || (l->limit && l->given == l->limit);
        char next[48];

        (void)s;
        if (!c->chunked)
                buf_addz(&c->out, "{\"jobs\":[");
        for (size_t i = 0; i < l->count; i++)
                row_write(&j, &l->rows[i]);
        l->comma = j.comma;
        arena_deinit(&l->arena); /* the rows are not kept while the client reads */
        if (last) {
                snprintf(next, sizeof(next), "%" PRIu64 ".%" PRIu64, l->request, l->member - 1);
                buf_addz(&c->out, "],\"next\":");
                j.comma = false;
                json_strz(&j, l->end || l->filter.error ? NULL : next);
                if (l->filter.error) { /* the status has been sent already */
                        json_key(&j, "error");
                        json_open(&j, '{');
                        json_kstrz(&j, "code", "constraint_limit");
                        json_kstrz(&j, "message", l->filter.error);
                        json_close(&j, '}');
                }
                buf_addz(&c->out, "}");
        }
        call_chunk(c, last, jobs_slice);
}

static bool read_states(struct call *c, struct str text, uint32_t *ret, bool *ret_left)
{
        struct str one;

        while (str_cut(&text, ',', &one)) {
                char name[32];
                enum job_state state;

                snprintf(name, sizeof(name), STR_FMT, STR_ARG(str_trim(one)));
                if (strcmp(name, "running") == 0) {
                        for (unsigned i = 0; i < JOB_STATES; i++)
                                *ret |= job_state_runs((enum job_state)i) ? 1u << i : 0;
                        /* not started yet, whether an agent has it or not */
                } else if (strcmp(name, "idle") == 0) {
                        for (unsigned i = JOB_IDLE; i < JOB_STATES; i++)
                                *ret |= i < JOB_RUNNING || job_state_is_idle((enum job_state)i) ? 1u << i : 0;
                } else if (strcmp(name, "left") == 0) {
                        *ret_left = true;
                } else if (job_state_parse(name, &state)) {
                        *ret |= 1u << state;
                } else {
                        call_fail(c, 400, "bad_state",
                                  "there is no state '%s': try idle, running, held, completed, left", name);
                        return false;
                }
        }
        return true;
}

/* Reads "7.1041": the last job that the caller has. */
static bool read_after(struct call *c, struct listing *l)
{
        struct str after = call_query(c, "after");
        uint32_t member;

        if (after.n == 0)
                return true;
        if (ids_parse_job(after, &l->request, &member) != 0) {
                call_fail(c, 400, "bad_parameter", "'after' must be the \"next\" of the page before");
                return false;
        }
        l->member = (uint64_t)member + 1;
        while (l->id_at < l->ids.count && (l->ids.items[l->id_at].request != l->request))
                l->id_at++;
        return true;
}

void api_jobs(struct server *s, struct call *c)
{
        struct listing *l = call_state(c, sizeof(*l), jobs_state_free);
        struct str ids = call_query(c, "id"), states = call_query(c, "state");
        struct err err = {0};

        (void)s;
        if (ids.n && ids_parse(&l->ids, ids, &err) != 0) {
                call_fail_err(c, 400, "bad_id", &err);
                return;
        }
        ids_merge(&l->ids);
        if (!call_number(c, "limit", UINT32_MAX, &l->limit) ||
            !read_states(c, states, &l->states, &l->left) || !read_after(c, l))
                return;
        if (states.n == 0 && (l->ids.count || call_flag(c, "all"))) {
                l->states = UINT32_MAX;
        } else if (states.n == 0) {
                l->states = ~(1u << JOB_COMPLETED | 1u << JOB_REMOVED);
                l->left = true;
        }
        l->owner = call_query(c, "owner");
        l->constraint = call_query(c, "constraint");
        l->names = call_query(c, "attributes");
        l->rows = mem_array(NULL, SLICE_JOBS, sizeof(*l->rows));
        call_yield(c, jobs_slice);
}
