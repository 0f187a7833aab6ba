/* GET /v1/requests, GET /v1/requests/7 */
#include <inttypes.h>
#include <stdio.h>

#include "base/format/hex.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/counts.h"
#include "server/api/routes.h"
#include "server/history/request_record.h"
#include "server/history/row.h"
#include "server/loop/settled.h"

#define SLICE_REQUESTS 1000
#define SLICE_NS       4000000
#define SLICE_BYTES    (1u << 20) /* size of the rows at which a slice ends */

struct request_row {
        uint64_t id;
        unsigned char uuid[16];
        struct str owner, cmd, batch;
        int64_t submitted_ms, finished_ms;
        struct core_counts n;
        struct core_eta eta;
        struct core_delegation hop; /* only of a request that is shown alone */
};
struct listing {
        struct request_row *rows;
        size_t count;
        struct str owner;
        bool all, latest, end, comma; /* latest: from the last request down */
        uint64_t limit, given, after;
        uint32_t times; /* state of core_eta_some */
        struct arena arena;
};
struct one {
        struct request_row row;
        uint32_t times;
};

static void requests_state_free(void *arg)
{
        struct listing *l = arg;

        arena_deinit(&l->arena);
        free(l->rows);
        free(l);
}

static void requests_make_row(struct server *s, struct row_maker *m, const struct core_request *r,
                              struct request_row *to)
{
        const struct ad *ad = core_request_ad(s->core, r->id, 0);
        struct row first;
        struct value v;

        *to = (struct request_row){
                .id = r->id,
                .owner = arena_str(m->arena, r->owner),
                .submitted_ms = r->submitted_ms,
                .finished_ms = r->finished_ms,
                .n = r->counts,
        };
        memcpy(to->uuid, r->uuid, sizeof(to->uuid));
        core_eta_request(s->core, r->id, &to->eta);
        if (row_make(m, r->id, 0, &first))
                to->cmd = first.cmd;
        if (ad && ad_literal(ad, symbols_intern(core_symbols(s->core), STR("JobBatchName")), &v) &&
            v.type == VALUE_STRING)
                to->batch = arena_str(m->arena, v.string);
}

/* Gives what is durable of a request, or what the core has: the answer then waits for the commits under way.
 * While the disk is full, nothing is durable any more, and reads show what the core has. */
static int get_settled(struct server *s, struct call *c, uint64_t id, struct core_request *ret)
{
        int r = core_request_get(s->core, id, ret);

        if (r != 0 || turn_full(s->turn) || !settled_get(s->settled, ret, turn_durable(s->turn)))
                c->when = TURN_READ;
        return r;
}

static void write_uuid(struct json *j, const unsigned char u[16])
{
        char text[HEX_UUID];

        hex_print_uuid(text, u);
        json_kstrz(j, "uuid", text);
}

/* Writes the members of an object. */
static void write_fields(struct json *j, const struct request_row *r)
{
        json_kint(j, "id", (int64_t)r->id);
        write_uuid(j, r->uuid);
        json_kstr(j, "owner", r->owner);
        json_kint(j, "submitted_ms", r->submitted_ms);
        json_key(j, "finished_ms");
        if (r->finished_ms)
                json_int(j, r->finished_ms);
        else
                json_null(j);
        json_key(j, "eta_start_ms");
        if (r->eta.start_ms)
                json_int(j, r->eta.start_ms);
        else
                json_null(j);
        json_key(j, "eta_end_ms");
        if (r->eta.end_ms)
                json_int(j, r->eta.end_ms);
        else
                json_null(j);
        if (r->eta.end_most_ms)
                json_kint(j, "eta_end_most_ms", r->eta.end_most_ms);
        json_kint(j, "jobs", (int64_t)r->n.jobs);
        counts_write(j, &r->n);
        json_kstr(j, "cmd", r->cmd);
        json_key(j, "batch");
        if (r->batch.n)
                json_str(j, r->batch);
        else
                json_null(j);
}

/* ---- listing */

static void requests_write_slice(struct server *s, struct call *c);

static void requests_slice(struct server *s, struct call *c)
{
        struct listing *l = c->state;
        int64_t end_ns = clock_mono_ns() + SLICE_NS;
        struct row_maker m;

        c->when = TURN_NOW; /* unless a row waits for a commit */
        if (!c->chunked && core_eta_some(s->core, &l->times)) {
                call_yield_to_client(c, requests_slice);
                return;
        }
        l->count = 0;
        row_maker_init(&m, s, &l->arena);
        for (unsigned looked = 0;; looked++) {
                uint64_t id = l->latest ? core_request_prev(s->core, l->after)
                                        : core_request_next(s->core, l->after);
                struct core_request r;

                l->end = id == 0;
                if (l->end || l->count == SLICE_REQUESTS || (l->limit && l->given == l->limit) ||
                    l->arena.used > SLICE_BYTES || (looked % 64 == 63 && clock_mono_ns() > end_ns))
                        break;
                l->after = id;
                if (get_settled(s, c, id, &r) != 0 || !call_may(c, r.owner) ||
                    !call_owner_is(r.owner, l->owner) || (!l->all && r.finished_ms && !r.counts.left))
                        continue;
                requests_make_row(s, &m, &r, &l->rows[l->count++]);
                l->given++;
        }
        row_maker_deinit(&m);
        call_io(c, requests_write_slice);
}

static void requests_write_slice(struct server *s, struct call *c)
{
        struct listing *l = c->state;
        struct json j = {.out = &c->out, .comma = l->comma};
        bool last = l->end || (l->limit && l->given == l->limit);

        (void)s;
        if (!c->chunked)
                buf_addz(&c->out, "{\"requests\":[");
        for (size_t i = 0; i < l->count; i++) {
                json_open(&j, '{');
                write_fields(&j, &l->rows[i]);
                json_close(&j, '}');
        }
        l->comma = j.comma;
        arena_deinit(&l->arena); /* the rows are not kept while the client reads */
        if (last && l->end)
                buf_addz(&c->out, "],\"next\":null}");
        else if (last)
                buf_printf(&c->out, "],\"next\":\"%" PRIu64 "\"}", l->after);
        call_chunk(c, last, requests_slice);
}

void api_requests(struct server *s, struct call *c)
{
        struct listing *l = call_state(c, sizeof(*l), requests_state_free);

        (void)s;
        if (!call_number(c, "limit", UINT32_MAX, &l->limit) ||
            !call_number(c, "after", UINT64_MAX, &l->after))
                return;
        l->owner = call_query(c, "owner");
        l->all = call_flag(c, "all");
        l->latest = call_flag(c, "latest");
        l->rows = mem_array(NULL, SLICE_REQUESTS, sizeof(*l->rows));
        call_yield(c, requests_slice);
}

/* ---- one request */

#define PARTS_SHOWN 1000

static void write_part(struct json *j, const struct submission_part *p)
{
        json_open(j, '{');
        json_key(j, "attributes");
        json_open(j, '{');
        for (size_t i = 0; i < p->attribute_count; i++) {
                json_keys(j, p->attributes[i].name);
                json_str(j, p->attributes[i].text);
        }
        json_close(j, '}');
        json_key(j, "late");
        json_open(j, '[');
        for (size_t i = 0; i < p->attribute_count; i++)
                if (p->attributes[i].late)
                        json_str(j, p->attributes[i].name);
        json_close(j, ']');
        json_key(j, "variables");
        json_open(j, '[');
        for (size_t i = 0; i < p->variable_count; i++)
                json_str(j, p->variables[i]);
        json_close(j, ']');
        json_kint(j, "rows", (int64_t)p->rows);
        json_kint(j, "steps", (int64_t)p->steps);
        json_close(j, '}');
}

static void write_hop(struct json *j, const struct core_delegation *h, const struct submission *s)
{
        const struct submission_origin *o = &s->origin;

        if (h->lease_ms) {
                json_kint(j, "lease_ms", (int64_t)h->lease_ms);
                json_kint(j, "lease_left_ms", h->left_ms);
                json_kbool(j, "lease_over", h->lease_over);
                json_kbool(j, "hold_results", h->hold_results);
        }
        if (o->servers.n == 0)
                return;
        json_key(j, "origin");
        json_open(j, '{');
        json_kstr(j, "servers", o->servers);
        json_kstr(j, "owner", o->owner);
        json_kstr(j, "label", o->label);
        json_kstr(j, "path", o->path);
        json_kstr(j, "job", o->job);
        json_kint(j, "hops_left", o->hops_left);
        json_close(j, '}');
}

static void write_one(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

/* Reader thread: reads the parts from the request's record. */
static void read_parts(struct server *s, struct call *c)
{
        const struct request_row *row = &((struct one *)c->state)->row;
        struct json j = {.out = &c->out};
        BUF_CLEANUP struct buf record = {0};
        struct submission sub = {0};

        if (request_record_get(s, row->id, &record, NULL) == 0)
                submission_unpack(&sub, buf_view(&record), NULL);
        json_open(&j, '{');
        write_fields(&j, row);
        write_hop(&j, &row->hop, &sub);
        if (call_flag(c, "edges"))
                json_kstr(&j, "edges", sub.edges);
        json_key(&j, "parts");
        json_open(&j, '[');
        for (size_t i = 0; i < sub.part_count && i < PARTS_SHOWN; i++)
                write_part(&j, &sub.parts[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        submission_deinit(&sub);
        call_io(c, write_one);
}

static void ask_parts(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_parts);
}

static void read_requests(struct server *s, struct call *c)
{
        struct one *one = c->state;
        struct request_row *row = &one->row;
        struct core_request r;
        struct row_maker m;
        uint64_t id;

        c->when = TURN_NOW; /* unless the request waits for a commit */
        if (str_to_u64(c->param[0], &id) != 0 || get_settled(s, c, id, &r) != 0 || !call_may(c, r.owner)) {
                call_fail(c, 404, "not_found", "there is no request " STR_FMT, STR_ARG(c->param[0]));
                return;
        }
        if (r.counts.idle && core_eta_some(s->core, &one->times)) {
                call_yield_to_client(c, read_requests);
                return;
        }
        row_maker_init(&m, s, &c->arena);
        requests_make_row(s, &m, &r, row);
        row_maker_deinit(&m);
        core_request_delegation(s->core, id, &row->hop);
        row->hop.origin = NULL; /* borrowed from the core */
        call_io(c, ask_parts);
}

void api_request(struct server *s, struct call *c)
{
        (void)s;
        call_state(c, sizeof(struct one), NULL);
        call_core(c, read_requests);
}
