/* POST /v1/requests; POST /v1/quote, which takes the same document and stores nothing; POST
 * /v1/requests/ID/resubmit, which submits the jobs of an earlier request again. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "base/system/uuid.h"
#include "core/forecast/quote.h"
#include "core/lifecycle/draft.h"
#include "core/model/changes.h"
#include "core/model/dependency.h"
#include "core/model/pick.h"
#include "core/query.h"
#include "server/access/origin.h"
#include "server/api/explain/place.h"
#include "server/api/routes.h"
#include "server/api/submit/dataset.h"
#include "server/api/submit/submit.h"
#include "server/api/submit/submit_json.h"
#include "server/api/submit/submit_text.h"
#include "server/calls/waits.h"
#include "server/files/holdings.h"
#include "server/files/objects.h"
#include "server/files/registrations.h"
#include "server/history/keywords.h"
#include "server/history/request_record.h"
#include "server/mirror/mirror.h"
#include "server/notices/notices.h"
#include "server/userlog/userlog.h"
#include "spool/spool.h"

#define WAIT_MS 60000 /* until the next check whether it is this call's turn */

struct submit {
        struct buf text;      /* a description that was posted as text */
        char uuid[UUID_TEXT]; /* of that submit */
        struct submit_document document;
        char (*lists)[UUID_TEXT]; /* the uploads that the document's first lists have become */
        size_t list_count;        /* of them */
        json_t *doc;
        struct submission s;
        const char **uploads; /* upload ids of the parts, or NULL */
        struct buf *items;    /* uploaded items of the parts */
        bool dry_run, existing;
        bool mirrored;      /* the mirror must have it */
        atomic_uint *place; /* s->large_calls, if this call counts in it; otherwise NULL */
        call_fn *placed;
        struct buf warning;
        bool quote;  /* answer with a quote and store nothing */
        bool quotes; /* server.quoting belongs to this call */
        /* a core object: while it exists the call may end only on the core thread */
        struct core_draft *draft;
        bool drafts;   /* server.drafting belongs to this call */
        struct json j; /* the reply */
        uint64_t id, jobs;
        submit_reply_fn *reply; /* NULL: the API's own reply */
        /* for a resubmit */
        uint64_t again; /* the earlier request; 0: not a resubmit */
        struct buf record, changes;
        struct submission old;
        struct set members; /* of the earlier request */
        bool failed;        /* only failed jobs, of `members` or of all */
        bool graph;         /* keeps the dependencies between the jobs */
        struct set found;   /* failed jobs found so far */
        uint64_t last_row;  /* the last history row that was read */
        unsigned rows;      /* read in this slice */
};

static void state_free(void *arg)
{
        struct submit *x = arg;

        for (size_t i = 0; x->items && i < x->s.part_count; i++)
                buf_deinit(&x->items[i]);
        free(x->items);
        free(x->uploads);
        buf_deinit(&x->warning);
        buf_deinit(&x->text);
        submit_document_deinit(&x->document);
        free(x->lists);
        submission_deinit(&x->s);
        submission_deinit(&x->old);
        buf_deinit(&x->record);
        buf_deinit(&x->changes);
        set_deinit(&x->members);
        set_deinit(&x->found);
        json_decref(x->doc);
        if (x->place)
                atomic_fetch_sub(x->place, 1);
        free(x);
}

/* A large call keeps its document in memory until its draft is made, and drafts are made one at a time.
 * Therefore at most LARGE_MAX calls have a document in memory, and the others wait. They check again by
 * timer, because a call may end on any thread. */
#define LARGE_MAX  4u
#define LARGE_LOOK 100 /* ms */

/* Core thread. Continues with x->placed when there is a place. */
static void take_place(struct server *s, struct call *c)
{
        struct submit *x = c->state;

        if (x->place) { /* of a description whose datasets were found */
                x->placed(s, c);
                return;
        }
        if (atomic_load(&s->large_calls) >= LARGE_MAX) {
                waits_park(s, c, NULL, LARGE_LOOK, take_place);
                return;
        }
        atomic_fetch_add(&s->large_calls, 1);
        x->place = &s->large_calls;
        x->placed(s, c);
}

static bool needs_mirror(const struct server *s, const struct submission *sub)
{
        for (size_t i = 0; i < sub->part_count; i++)
                for (size_t k = 0; k < sub->parts[i].attribute_count; k++)
                        if (str_ieqz(sub->parts[i].attributes[k].name, "Mirror") &&
                            !str_ieqz(str_trim(sub->parts[i].attributes[k].text), "false"))
                                return true;
        return s->mirror && s->config.mirror.all;
}

static void refuse_unmirrored(struct server *s, struct call *c, const char *what)
{
        call_fail(c, 503, "not_mirrored", "the mirror, %s, has not all that this server has: %s",
                  mirror_peer(s->mirror), what);
}

static void write_reply(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct json j = {.out = &c->out};

        if (x->mirrored && !x->dry_run && !mirror_is_joined(s->mirror)) { /* since it was let in */
                refuse_unmirrored(s, c,
                                  "what must be mirrored is here, and is accepted when it is submitted again "
                                  "under the same uuid and the mirror has it");
                return;
        }
        if (x->reply) {
                x->reply(c, x->id);
                return;
        }
        json_open(&j, '{');
        json_kint(&j, "id", (int64_t)x->id);
        json_kstr(&j, "uuid", call_json_text(x->doc, "uuid"));
        json_kint(&j, "jobs", (int64_t)x->jobs);
        json_kbool(&j, "existing", x->existing);
        if (s->mirror)
                json_kbool(&j, "mirrored", mirror_is_joined(s->mirror));
        json_key(&j, "warnings");
        json_open(&j, '[');
        if (x->warning.n)
                json_str(&j, buf_view(&x->warning));
        if (s->mirror && !x->dry_run && !mirror_is_joined(s->mirror))
                json_strz(&j, "the mirror does not have this request: it is on this server only");
        json_close(&j, ']');
        json_close(&j, '}');
        c->status = x->existing || x->dry_run ? 200 : 201;
        call_reply(c);
}

/* Returns the sentence for the place; NULL: that of the verdict. */
static const char *words_of(const struct core_quote_place *p)
{
        if (p->why.verdict != CORE_FITS && p->why.verdict != CORE_BUSY)
                return NULL;
        if (!p->quote.start_ms)
                return "it would take the job, but the time is unknown: limits or running jobs leave no room";
        if (p->why.verdict == CORE_FITS && p->why.cost.wait_ms > 1000)
                return "it has room, but limits or jobs before it delay the start";
        return NULL;
}

static void write_price(struct json *j, double price)
{
        json_key(j, "price");
        if (isnan(price))
                json_null(j);
        else
                json_double(j, price);
}

static void on_place(void *arg, const struct core_quote_place *p)
{
        struct json *j = arg;

        json_open(j, '{');
        json_kint(j, "part", p->part);
        place_write(j, &p->why, words_of(p));
        if (p->quote.start_ms) {
                json_kint(j, "start_ms", p->quote.start_ms);
                if (p->quote.end_ms)
                        json_kint(j, "end_ms", p->quote.end_ms);
                if (p->quote.end_most_ms)
                        json_kint(j, "end_most_ms", p->quote.end_most_ms);
                json_kint(j, "bytes_moved", (int64_t)p->quote.bytes_moved);
                if (p->quote.credits != CORE_CREDITS_NONE)
                        json_kint(j, "credits", p->quote.credits);
                write_price(j, p->quote.price);
        }
        json_close(j, '}');
}

static void write_time(struct json *j, const char *key, int64_t ms)
{
        json_key(j, key);
        if (ms)
                json_int(j, ms);
        else
                json_null(j);
}

/* Ids for waits.h, which no request has. */
#define QUOTES (1ull << 62)
#define DRAFTS (QUOTES + 1)

/* ---- making the request, in slices */

static void draft_drop(struct server *s, struct core_draft *d, bool drafts)
{
        core_draft_free(d);
        if (!drafts)
                return;
        s->drafting = false;
        waits_changed(s, DRAFTS);
}

static void draft_end(struct server *s, struct submit *x)
{
        draft_drop(s, x->draft, x->drafts);
        x->draft = NULL;
        x->drafts = false;
}

/* Parks the call until `what` changes. */
static void park(struct server *s, struct call *c, uint64_t what, call_fn *woken)
{
        const struct submit *x = c->state;
        struct core_draft *d = x->draft;
        struct id any = {.request = what};
        const struct ids ids = {&any, 1, 1};
        bool drafts = x->drafts;

        if (!waits_park(s, c, &ids, WAIT_MS, woken))
                draft_drop(s, d, drafts); /* the call was freed */
}

static void draft_fail(struct server *s, struct call *c, int r, const struct err *err)
{
        draft_end(s, c->state);
        switch (r) {
        case CORE_FORBIDDEN: call_fail_err(c, 403, "forbidden", err); break;
        case CORE_CONFLICT: call_fail_err(c, 409, "uuid_used", err); break;
        case CORE_TOO_MANY: call_fail_err(c, 429, "over_limit", err); break;
        default: call_fail_err(c, 400, "bad_attribute", err);
        }
}

/* Makes the draft. A small one is done in the first slice; of the large ones one is made at a time.
 * Returns false if the call was deferred, and continues with `again`, or has failed. */
static bool draft(struct server *s, struct call *c, call_fn *again)
{
        struct submit *x = c->state;
        struct err err = {0};
        bool more = true;
        int r = 0;

        if (!x->draft) {
                x->s.owner = str_of(c->who);
                x->s.at_ms = clock_wall_ms();
                r = core_draft_new(s->core, &x->s, x->quote ? CORE_DRAFT_QUOTE : CORE_DRAFT_SUBMIT, &x->draft,
                                   &err);
        } else if (!x->drafts && s->drafting) {
                park(s, c, DRAFTS, again);
                return false;
        }
        if (!r)
                r = core_draft_some(x->draft, &more, &err);
        if (r) {
                draft_fail(s, c, r, &err);
                return false;
        }
        if (!more)
                return true;
        if (!s->drafting)
                s->drafting = x->drafts = true;
        call_yield(c, again);
        return false;
}

/* ---- quote */

static void quote_reply(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct json *j = &x->j;
        struct core_quote q;

        core_quote_sum(s->quoting, &q);
        json_close(j, ']');
        json_kint(j, "jobs", (int64_t)q.jobs);
        write_time(j, "start_ms", q.start_ms);
        write_time(j, "end_ms", q.end_ms);
        write_time(j, "end_most_ms", q.end_most_ms);
        json_kint(j, "bytes_moved", (int64_t)q.bytes_moved);
        if (q.start_ms && q.credits != CORE_CREDITS_NONE)
                json_kint(j, "credits", q.credits);
        if (q.start_ms && q.payer) {
                json_kstrz(j, "account", q.payer);
                json_kint(j, "available", q.payer_has);
        }
        if (core_quote_unquoted(s->quoting))
                json_kstrz(j, "unquoted", core_quote_unquoted(s->quoting));
        write_price(j, q.price);
        place_write_error(j, s->core);
        json_close(j, '}');
        call_reply(c);
}

static void quote_end(struct server *s)
{
        core_quote_free(s->quoting);
        s->quoting = NULL;
        waits_changed(s, QUOTES);
}

static void quote_begin(struct server *s, struct call *c)
{
        struct submit *x = c->state;

        s->quoting = core_quote_new(x->draft);
        x->draft = NULL;
        x->quotes = true;
        draft_end(s, x);
        x->j.out = &c->out;
        json_open(&x->j, '{');
        json_key(&x->j, "places");
        json_open(&x->j, '[');
}

/* Makes one quote at a time, because each plays the whole queue forward. */
static void quote(struct server *s, struct call *c)
{
        struct submit *x = c->state;

        if (!x->quotes && !draft(s, c, quote))
                return;
        if (s->quoting && !x->quotes) {
                park(s, c, QUOTES, quote);
                return;
        }
        if (!x->quotes)
                quote_begin(s, c);
        if (core_quote_some(s->quoting, on_place, &x->j)) {
                call_yield(c, quote);
                return;
        }
        quote_reply(s, c);
        quote_end(s);
}

/* ---- submit */

/* Returns whether the earlier request still exists with the same owner, and with it the files that it
 * brought. */
static bool keeps_files(struct server *s, const struct submit *x)
{
        const struct submission_file *files;
        size_t count;

        return x->again && core_request_spooled(s->core, x->again, &files, &count) == 0 &&
               count == x->s.spooled_count;
}

/* Returns false if the call has failed. */
static bool may_submit(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct err err = {0};
        int r = registrations_check(s, c, &x->s, &err);

        if (r != 0) {
                draft_end(s, x);
                call_fail_err(c, r == -EACCES ? 403 : 400, r == -EACCES ? "forbidden" : "bad_attribute",
                              &err);
                return false;
        }
        x->mirrored = needs_mirror(s, &x->s);
        if (x->mirrored && !s->mirror) {
                draft_end(s, x);
                call_fail(c, 400, "bad_attribute", "mirror: this server has no mirror");
                return false;
        }
        if (x->dry_run)
                return true;
        if (x->mirrored && !mirror_is_joined(s->mirror)) {
                draft_end(s, x);
                refuse_unmirrored(s, c, "what must be mirrored is refused until it has");
                return false;
        }
        if (turn_full(s->turn)) {
                draft_end(s, x);
                call_fail(c, 503, "disk_full",
                          "the server's disk is full: no new work is accepted until there is space");
                return false;
        }
        if (!keeps_files(s, x) && objects_check_submit(s, c, &x->s, &err) != 0) {
                draft_end(s, x);
                call_fail_err(c, 400, "bad_upload", &err);
                return false;
        }
        return true;
}

static void submit_draft(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct core_request known;
        struct err err = {0};
        int r = 0;

        if (!draft(s, c, submit_draft) || !may_submit(s, c))
                return;
        x->id = core_draft_number(x->draft, &x->existing);
        if (!x->dry_run)
                r = core_draft_submit(x->draft, &x->id, &x->existing, &err);
        if (r) {
                draft_fail(s, c, r, &err);
                return;
        }
        draft_end(s, x);
        x->jobs = submission_members(&x->s);
        if (!x->dry_run && !x->existing)
                keywords_add(s->keywords, &server_settings(s)->presets, &x->s, x->jobs);
        if (core_request_get(s->core, x->id, &known) == 0)
                x->jobs = known.counts.jobs;
        c->when = x->dry_run ? TURN_READ : TURN_DURABLE;
        call_io(c, write_reply);
}

static void submit(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct err err = {0};

        x->s.owner = str_of(c->who);
        if (!may_submit(s, c))
                return;
        if (notices_check(s, &x->s, &x->warning, &err) != 0) {
                call_fail_err(c, 400, "bad_attribute", &err);
                return;
        }
        userlog_set_format(s, &x->s);
        userlog_check(&x->s, &x->warning);
        submit_draft(s, c);
}

/* ---- dependencies on requests that are only in history */

#define PARENT_ROWS_MAX 2000000u /* rows read for all of them */

/* Returns the text of the part's DependsOn, which the core reads again; STR_NONE if it is not a plain
 * text. */
static struct str depends_on(const struct submission_part *p)
{
        for (size_t i = 0; i < p->attribute_count; i++) {
                struct str text = p->attributes[i].text;

                if (str_ieqz(p->attributes[i].name, "DependsOn") && text.n > 1 && text.p[0] == '"' &&
                    text.p[text.n - 1] == '"')
                        return str_make(text.p + 1, text.n - 2);
        }
        return STR_NONE;
}

static bool is_listed(const struct submission *s, uint64_t request)
{
        for (size_t i = 0; i < s->ended_parent_count; i++)
                if (s->ended_parents[i].request == request)
                        return true;
        return false;
}

struct parent_rows {
        const char *who;
        struct ended_parent *parent;
        uint64_t rows, left;
};

static int on_parent_row(void *arg, uint64_t row, const struct past_job *h)
{
        struct parent_rows *p = arg;

        (void)row;
        if (p->left == 0 || !str_eqz(h->owner, p->who))
                return 1;
        p->left--;
        p->rows++;
        if (h->member >= p->parent->jobs)
                p->parent->jobs = h->member + 1;
        if (h->state == JOB_COMPLETED && h->exit_code == 0)
                set_add(&p->parent->ok, h->member);
        return 0;
}

/* Reader thread. Requests that do not exist, or that belong to another user, are left out; the core then
 * refuses the dependency. */
static void read_ended_parents(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        uint64_t left = PARENT_ROWS_MAX;

        for (size_t i = 0; i < x->s.ended_parent_count; i++) {
                struct parent_rows jobs = {.who = c->who, .parent = &x->s.ended_parents[i], .left = left};
                const struct store_query q = {.request = x->s.ended_parents[i].request};
                struct err err = {0};
                int r = store_history_query(s->store, &q, on_parent_row, &jobs, &err);

                if (r < 0) {
                        call_fail_err(c, 500, "store", &err);
                        return;
                }
                left = jobs.left;
                if (left == 0) {
                        call_fail(c, 413, "too_large",
                                  "the requests in history that these jobs are to wait for have more than %u "
                                  "jobs",
                                  PARENT_ROWS_MAX);
                        return;
                }
                if (jobs.rows == 0 || jobs.rows < x->s.ended_parents[i].jobs || r > 0) {
                        call_fail(c, 400, "bad_attribute",
                                  "there is no request %" PRIu64 " of yours to wait for",
                                  x->s.ended_parents[i].request);
                        return;
                }
        }
        call_core(c, x->quote ? quote : submit);
}

/* The lists of a dataset's files belong to the caller from now on, as if they had been uploaded. */
static void own_lists(struct server *s, const struct call *c, const struct submit *x)
{
        for (size_t i = 0; i < x->list_count; i++)
                objects_uploaded(s, str_of(c->who), str_of(x->lists[i]), x->document.lists[i].sha256,
                                 x->document.lists[i].text.n);
}

static void find_past(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct str before = STR_NONE;

        own_lists(s, c, x);
        for (size_t i = 0; i < x->s.part_count; i++) {
                struct str rest = depends_on(&x->s.parts[i]);
                struct core_request known;
                struct dependency d;

                if (str_eq(rest, before))
                        continue;
                before = rest;
                while (dependency_next(&rest, &d, NULL) > 0) {
                        if (core_request_get(s->core, d.request, &known) == 0 || is_listed(&x->s, d.request))
                                continue;
                        if (x->s.ended_parent_count == SUBMISSION_ENDED_PARENTS_MAX) {
                                call_fail(c, 413, "too_large",
                                          "more than %u requests in history are to be waited for",
                                          SUBMISSION_ENDED_PARENTS_MAX);
                                return;
                        }
                        submission_add_ended_parent(&x->s)->request = d.request;
                }
        }
        if (x->s.ended_parent_count)
                call_reader(c, read_ended_parents);
        else if (x->quote)
                quote(s, c);
        else
                submit(s, c);
}

/* Applies the presets that the request names. A request that another server hands on has had its presets
 * applied there, and one that was accepted before has had them here. */
static int use_presets(struct call *c, struct submit *x, struct err *err)
{
        const struct config_presets *p = &server_settings(c->server)->presets;

        if (x->s.origin.servers.n)
                return 0;
        return x->again ? presets_check(p, c->who, &x->s, err)
                        : presets_apply(p, c->who, &x->s, &c->arena, err);
}

/* Makes an upload of a list, and an object of that. Returns 0, or an error with err. */
static int store_list(struct server *s, const struct call *c, const struct submit_list *l, char id[UUID_TEXT],
                      struct err *err)
{
        char hash[SPOOL_HASH_TEXT];
        uint64_t size;
        int r;

        uuid_new(id);
        r = spool_upload_begin(objects_spool(s), id, str_of(c->who), &size, err);
        if (r == 0)
                r = spool_upload_write(objects_spool(s), id, 0, buf_view(&l->text), &size, err);
        return r == 0 ? spool_finish_one(objects_spool(s), id, l->sha256, hash, &size, err) : r;
}

/* Core thread: what was stored before the error counts as the caller's. */
static void own_some(struct server *s, struct call *c)
{
        struct submit *x = c->state;

        own_lists(s, c, x);
        call_fail(c, 503, "spool", "the list of the dataset's files is not stored: %s",
                  x->warning.n ? buf_z(&x->warning) : "try again later");
}

/* Reader thread. */
static void store_lists(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct err err = {0};
        uint64_t all = 0;
        int r;

        for (size_t i = 0; i < x->document.list_count; i++)
                all += HOLDINGS_UPLOAD + x->document.lists[i].text.n;
        r = holdings_check(objects_holdings(s), str_of(c->who), all, &err);
        x->lists = mem_zalloc((x->document.list_count + 1) * sizeof(*x->lists));
        for (size_t i = 0; r == 0 && i < x->document.list_count; i++) {
                r = store_list(s, c, &x->document.lists[i], x->lists[i], &err);
                x->list_count += r == 0;
        }
        if (r != 0 && x->list_count) {
                buf_reset(&x->warning);
                buf_addz(&x->warning, r == SPOOL_FULL ? "the server's disk is full" : err.text);
                call_core(c, own_some);
                return;
        }
        if (r == 0)
                call_core(c, find_past);
        else if (r == SPOOL_FULL)
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
        else
                call_fail(c, 507, "over_limit", "the list of the dataset's files is not stored: %s",
                          err.text);
}

static void check_submit(struct call *c, struct submit *x)
{
        struct err err = {0};
        int r = submission_check(&x->s, &err);

        if (r == 0) /* a text may be read differently when it comes again: a query finds other files */
                x->s.digest =
                        x->text.n ? submission_digest_text(buf_view(&x->text)) : submission_digest(&x->s);
        if (r == 0 && (r = use_presets(c, x, &err)) != 0) {
                call_fail_err(c, r == -EACCES ? 403 : 400, r == -EACCES ? "forbidden" : "bad_attribute",
                              &err);
                return;
        }
        if (r == 0 && (r = origin_apply(&x->s, c->server->uuid, &c->arena, &err)) > 0) {
                call_fail_err(c, 409, r == ORIGIN_LOOP ? "loop" : "path_too_long", &err);
                return;
        }
        if (r == 0 && x->document.list_count && !x->dry_run && !x->quote)
                store_lists(c->server, c);
        else if (r == 0)
                call_core(c, find_past);
        else
                call_fail_err(c, r == -E2BIG ? 413 : 400, r == -E2BIG ? "too_large" : "bad_request", &err);
}

/* Reader thread: reads uploaded items. */
static void read_items(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct err err = {0};
        size_t bytes = 0;

        for (size_t i = 0; i < x->s.part_count; i++) {
                if (!x->uploads[i])
                        continue;
                if (objects_read_whole(s, x->uploads[i], &x->items[i], &err) != 0) {
                        call_fail_err(c, 400, "bad_upload", &err);
                        return;
                }
                bytes += x->items[i].n;
                if (bytes > OBJECTS_WHOLE_MAX) {
                        call_fail(c, 413, "too_large", "the items of all parts are more than %u MiB",
                                  OBJECTS_WHOLE_MAX >> 20);
                        return;
                }
                x->s.parts[i].items = buf_view(&x->items[i]);
                x->s.parts[i].rows = submit_json_rows(x->s.parts[i].items);
        }
        check_submit(c, x);
}

/* Core thread: finds the objects that the uploads have become. */
static void find_items(struct server *s, struct call *c)
{
        struct submit *x = c->state;

        for (size_t i = 0; i < x->s.part_count; i++) {
                const char *hash;

                if (!x->uploads[i])
                        continue;
                hash = objects_find_upload(s, c->who, x->uploads[i]);
                if (!hash) {
                        call_fail(c, 400, "bad_upload", "part %zu: there is no finished upload %s of yours",
                                  i, x->uploads[i]);
                        return;
                }
                x->uploads[i] = arena_dup(&c->arena, hash, strlen(hash));
        }
        call_reader(c, read_items);
}

/* Continues with the parsed document. I/O thread or reader. */
static void begin_submit(struct call *c, struct submit *x)
{
        struct err err = {0};
        bool uploads = false;

        if (submit_json_complete(x->doc, &err) != 0 ||
            submit_json_read(x->doc, &x->s, &x->uploads, &err) != 0) {
                call_fail_err(c, 400, "bad_request", &err);
                return;
        }
        for (size_t i = 0; i < x->s.part_count; i++)
                uploads |= x->uploads[i] != NULL;
        if (!uploads) {
                check_submit(c, x);
                return;
        }
        x->items = mem_zalloc(x->s.part_count * sizeof(*x->items));
        x->placed = find_items;
        call_core(c, take_place);
}

void submit_document(struct call *c, json_t *doc, submit_reply_fn *reply)
{
        struct submit *x = call_state(c, sizeof(*x), state_free);

        x->doc = doc;
        x->reply = reply;
        begin_submit(c, x);
}

/* ---- a description that was posted as text
 *
 * The reader reads it. One with a query is read again on the catalog's thread, and goes on with the reader.
 */

/* Returns false if the call has failed. */
static bool read_document(struct call *c, struct submit *x, struct submit_text *how)
{
        struct err err = {0};
        int r;

        how->text = buf_view(&x->text);
        how->uuid = x->uuid;
        r = submit_text_read(how, &x->document, &err);
        if (r == 0 || x->document.wants_catalog)
                return true;
        call_fail_err(c, r == -E2BIG ? 413 : 400, r == -E2BIG ? "too_large" : "bad_submit_file", &err);
        return false;
}

static void begin_text(struct call *c, struct submit *x)
{
        buf_str(&x->warning, buf_view(&x->document.warnings));
        x->doc = call_json_of(c, buf_view(&x->document.json));
        if (x->doc)
                begin_submit(c, x);
}

/* Reader thread. */
static void begin_read(struct server *s, struct call *c)
{
        (void)s;
        begin_text(c, c->state);
}

static void to_reader(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, begin_read);
}

/* Catalog thread. */
static void read_with_catalog(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct dataset dataset = {.server = s, .who = c->who, .until_ms = clock_boot_ms() + DATASET_MS};
        struct submit_text how = {.catalog = dataset_find, .time_limit = dataset_time_limit, .arg = &dataset};

        submit_document_deinit(&x->document);
        if (!read_document(c, x, &how))
                return;
        call_io(c, to_reader);
}

static void to_catalog(struct server *s, struct call *c)
{
        (void)s;
        call_catalog(c, read_with_catalog);
}

/* Core thread: has its place among the large calls. */
static void placed_text(struct server *s, struct call *c)
{
        (void)s;
        call_io(c, to_catalog);
}

/* Reader thread. */
static void read_text(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct dataset dataset = {.server = s, .who = c->who};
        struct submit_text how = {.time_limit = dataset_time_limit, .arg = &dataset};

        if (!read_document(c, x, &how))
                return;
        if (x->document.wants_catalog) {
                x->placed = placed_text;
                call_core(c, take_place);
        } else {
                begin_text(c, x);
        }
}

static void start_text(struct call *c, struct submit *x)
{
        struct str uuid = call_query(c, "uuid");

        if (uuid.n && !uuid_valid(uuid)) {
                call_fail(c, 400, "bad_parameter", "'uuid' must be a UUID that the submitter has made up");
                return;
        }
        if (uuid.n)
                snprintf(x->uuid, sizeof(x->uuid), STR_FMT, STR_ARG(uuid));
        else
                uuid_new(x->uuid);
        if (call_body(c, &x->text))
                call_reader(c, read_text);
}

static void start_submit(struct call *c, bool only_quote)
{
        bool text = call_is_text(c);
        json_t *doc = text ? NULL : call_json(c); /* after a failure the call and its state are freed */
        struct submit *x;

        if (!text && !doc)
                return;
        x = call_state(c, sizeof(*x), state_free);
        x->doc = doc;
        x->quote = only_quote;
        x->dry_run = call_flag(c, "dry_run");
        if (text)
                start_text(c, x);
        else
                begin_submit(c, x);
}

void api_submit(struct server *s, struct call *c)
{
        (void)s;
        start_submit(c, false);
}

void api_quote(struct server *s, struct call *c)
{
        (void)s;
        start_submit(c, true);
}

/* ---- resubmit */

#define ROWS_MAX 100000u /* rows read before other work has its turn */

static int on_failed(void *arg, uint64_t row, const struct past_job *h)
{
        struct submit *x = arg;

        if (x->rows == ROWS_MAX)
                return 1;
        x->rows++;
        x->last_row = row;
        if (h->state == JOB_COMPLETED && h->exit_code != 0)
                set_add(&x->found, h->member);
        return 0;
}

static bool id_is_wrong(const struct submit *x)
{
        return x->again == 0 || x->again > INT64_MAX;
}

static void read_record(struct server *s, struct call *c);

/* Finds the failed jobs of the request, among the named ones if some were named. Returns whether all are
 * found; otherwise the call continues later, or has failed. */
static bool find_failed(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        const struct store_query q = {.request = x->again, .before = x->last_row};
        struct err err = {0};
        int r;

        x->rows = 0;
        r = store_history_query(s->store, &q, on_failed, x, &err);
        if (r < 0) {
                call_fail_err(c, 500, "store", &err);
                return false;
        }
        if (x->rows == ROWS_MAX) {
                call_reader(c, read_record);
                return false;
        }
        if (set_count(&x->members))
                set_keep_all(&x->found, &x->members);
        set_deinit(&x->members);
        x->members = x->found;
        x->found = (struct set){0};
        return true;
}

static void add_warning(struct submit *x, const char *text)
{
        if (x->warning.n)
                buf_addz(&x->warning, "; ");
        buf_addz(&x->warning, text);
}

static bool had_parents(const struct submission *s)
{
        bool had = s->edges.n > 0;

        for (size_t i = 0; i < s->part_count; i++)
                had |= depends_on(&s->parts[i]).n > 0;
        return had;
}

/* Reader thread: reads the request's record. */
static void read_record(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct err err = {0};
        bool some = x->failed || set_count(&x->members);
        int r = 0;

        buf_reset(&x->record); /* this step may run twice */
        submission_deinit(&x->old);
        x->old = (struct submission){0};
        if (id_is_wrong(x) || request_record_get(s, x->again, &x->record, NULL) != 0 ||
            submission_unpack(&x->old, buf_view(&x->record), NULL) != 0 || !str_eqz(x->old.owner, c->who)) {
                call_fail(c, 404, "not_found", "there is no request " STR_FMT " of yours",
                          STR_ARG(c->param[0]));
                return;
        }
        if (x->old.origin.servers.n) {
                call_fail(c, 409, "handed_on",
                          "request " STR_FMT " came from another server: resubmit it there",
                          STR_ARG(c->param[0]));
                return;
        }
        if (x->failed && !find_failed(s, c))
                return;
        if (x->failed && set_count(&x->members) == 0) {
                call_fail(c, 409, "none_failed", "no job of request " STR_FMT " has failed",
                          STR_ARG(c->param[0]));
                return;
        }
        r = submission_pick(&x->old, some ? &x->members : NULL, x->graph, buf_view(&x->changes), &c->arena,
                            &x->s, &err);
        if (r == 0)
                r = submit_json_uuid(x->doc, &x->s, &err);
        if (some && had_parents(&x->old))
                add_warning(x, "jobs that are picked wait for no others: what these waited for is left out");
        x->s.hold = json_is_true(json_object_get(x->doc, "hold"));
        if (r == 0)
                check_submit(c, x);
        else
                call_fail_err(c, r == -E2BIG ? 413 : 400, r == -E2BIG ? "too_large" : "bad_request", &err);
}

/* Core thread. Applies later edits, which the record does not have. */
static void to_record(struct server *s, struct call *c)
{
        struct submit *x = c->state;
        struct core_request known;

        if (core_request_get(s->core, x->again, &known) == 0 && str_eqz(known.owner, c->who) && known.edited)
                add_warning(x, "jobs are as they were submitted: what was edited since is left out");
        call_reader(c, read_record);
}

void api_resubmit(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);
        struct submit *x;
        struct str members;
        struct err err = {0};

        (void)s;
        if (!doc)
                return;
        x = call_state(c, sizeof(*x), state_free);
        x->doc = doc;
        x->dry_run = call_flag(c, "dry_run");
        x->failed = json_is_true(json_object_get(doc, "failed"));
        x->graph = json_is_true(json_object_get(doc, "graph"));
        x->placed = to_record;
        members = call_json_text(doc, "members");
        if (str_to_u64(c->param[0], &x->again) != 0)
                x->again = 0;
        if (members.n && set_parse(&x->members, members, SUBMISSION_MEMBERS_MAX) != 0)
                call_fail(c, 400, "bad_request", "\"members\" must be numbers of jobs, as in 0-3,7");
        else if (json_object_get(doc, "attributes") && submit_json_changes(doc, &x->changes, &err) != 0)
                call_fail_err(c, 400, "bad_request", &err);
        else
                call_core(c, take_place);
}
