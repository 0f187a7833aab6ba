/* GET /v1/history: finished jobs, latest first. */
#include <inttypes.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "server/api/jobs/jobs.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     10000
#define LOOKED_MAX    20000       /* rows read for a page; a page may then be short, and has a "next" */
#define PAGE_BYTES    (16u << 20) /* size of a page's rows at which it ends in the same way */
#define PAGE_NS       500000000   /* processor time of the reader's thread, likewise */

struct history {
        struct ids ids;
        struct str owner, names, constraint;
        uint64_t limit, before;
        struct row *rows;
        size_t count, looked;
        uint64_t last_row;
        int64_t end_ns; /* thread time at which the page ends */
        bool more;
        struct constraint filter;
        struct past *past;
        struct call *call;
};

static void history_state_free(void *arg)
{
        struct history *h = arg;

        ids_deinit(&h->ids);
        constraint_deinit(&h->filter);
        free(h->rows);
        free(h);
}

static void history_write_reply(struct server *s, struct call *c)
{
        struct history *h = c->state;
        struct json j = {.out = &c->out};
        char next[32];

        (void)s;
        json_open(&j, '{');
        json_key(&j, "jobs");
        json_open(&j, '[');
        for (size_t i = 0; i < h->count; i++)
                row_write(&j, &h->rows[i]);
        json_close(&j, ']');
        snprintf(next, sizeof(next), "%" PRIu64, h->last_row);
        json_kstrz(&j, "next", h->more ? next : NULL);
        json_close(&j, '}');
        call_reply(c);
}

static bool is_named(const struct history *h, uint64_t request, uint32_t member)
{
        for (size_t i = 0; i < h->ids.count; i++)
                if (h->ids.items[i].request == request)
                        return !h->ids.items[i].some || set_has(&h->ids.items[i].members, member);
        return h->ids.count == 0;
}

static int history_on_row(void *arg, uint64_t row, const struct past_job *r)
{
        struct history *h = arg;

        if (h->filter.error)
                return 1;
        if (h->count == h->limit || h->looked == LOOKED_MAX || h->call->arena.used > PAGE_BYTES ||
            (h->looked % 16 == 15 && clock_thread_ns() > h->end_ns)) {
                h->more = true;
                return 1;
        }
        h->last_row = row;
        h->looked++;
        if (is_named(h, r->request, r->member) && call_may(h->call, r->owner) &&
            past_row(h->past, r, &h->filter, &h->call->arena, false, h->names, &h->rows[h->count]))
                h->count++;
        return 0;
}

static void read_rows(struct server *s, struct call *c)
{
        struct history *h = c->state;
        struct store_query q = {.owner = h->owner, .before = h->before};
        struct err err = {0};
        int r;

        h->past = s->past;
        h->call = c;
        h->end_ns = clock_thread_ns() + PAGE_NS;
        if (h->ids.count == 1) {
                q.request = h->ids.items[0].request;
                q.has_member = h->ids.items[0].some && set_count(&h->ids.items[0].members) == 1;
                q.member = q.has_member ? (uint32_t)set_first(&h->ids.items[0].members) : 0;
        }
        if (constraint_begin(&h->filter, past_symbols(h->past), h->constraint, &err) != 0) {
                call_fail(c, 400, "bad_constraint", "constraint: %s", err.text);
                return;
        }
        r = store_history_query(s->store, &q, history_on_row, h, &err);
        constraint_end(&h->filter);
        if (r < 0)
                call_fail_err(c, 500, "store", &err);
        else if (h->filter.error)
                call_fail(c, 400, "constraint_limit", "%s", h->filter.error);
        else
                call_io(c, history_write_reply);
}

void api_history(struct server *s, struct call *c)
{
        struct history *h = call_state(c, sizeof(*h), history_state_free);
        struct str ids = call_query(c, "id"), owner = call_query(c, "owner");
        struct err err = {0};

        h->limit = LIMIT_DEFAULT;
        if (ids.n && ids_parse(&h->ids, ids, &err) != 0) {
                call_fail_err(c, 400, "bad_id", &err);
                return;
        }
        ids_merge(&h->ids);
        if (!call_number(c, "limit", UINT32_MAX, &h->limit) ||
            !call_number(c, "before", UINT64_MAX, &h->before))
                return;
        if (h->limit == 0 || h->limit > LIMIT_MAX)
                h->limit = LIMIT_MAX; /* one page; "next" leads to the following one */
        if (h->limit == 0)
                h->limit = LIMIT_DEFAULT;
        h->names = call_query(c, "attributes");
        h->constraint = call_query(c, "constraint");
        if (owner.n && str_rfind(owner, '@') < 0) {
                BUF_CLEANUP struct buf b = {0};

                buf_printf(&b, STR_FMT "@%s", STR_ARG(owner), s->config.domain);
                owner = arena_str(&c->arena, buf_view(&b));
        }
        h->owner = owner.n ? owner : c->role == ROLE_USER ? str_of(c->who) : STR_NONE;
        h->rows = mem_array(NULL, h->limit + 1, sizeof(*h->rows));
        call_reader(c, read_rows);
}
