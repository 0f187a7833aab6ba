#include "server/history/prune.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/files/objects.h"
#include "server/files/tails.h"
#include "server/history/request_record.h"
#include "server/history/snapshot.h"
#include "server/history/usage.h"
#include "server/loop/turn.h"
#include "server/userlog/userlog.h"

#define ROWS       1000 /* rows deleted in one commit; this many new rows start the next look */
#define RECORDS    500  /* records looked up in one step of the reader, or deleted in one commit */
#define OUTPUTS    1000 /* outputs released in one commit */
#define EVERY_MS   60000
#define HOUR_MS    3600000
#define DAY_MS     86400000
#define SWEEP_EASE 20 /* a sweep takes at most 1/20 of the reader's time */

struct ids {
        uint64_t *v;
        size_t count, cap;
};
struct prune {
        bool busy;           /* the reader is looking for rows */
        bool more;           /* there are more old rows */
        bool cut;            /* rows were deleted since the last sweep began, or there was no sweep */
        uint64_t added;      /* rows added since the last look */
        int64_t due_ms;      /* boot clock */
        int64_t began_ms;    /* start of the current look */
        struct timer *again; /* starts the next look while there are more old rows */
        uint64_t rows;       /* deleted since the last log line */
        struct ids sweep;    /* requests with a record; those from `at` on have not been checked */
        size_t at;
        bool sweeping;
        int64_t sweep_began_ms, sweep_due_ms;
        bool usage_busy;      /* the reader is looking for old usage records */
        int64_t usage_due_ms; /* boot clock */
        struct ids doomed;    /* records that may be deleted when a snapshot is newer than doomed_seq */
        uint64_t doomed_seq;
};

static void look_again(void *arg);

struct prune *prune_new(struct server *s)
{
        struct prune *p = mem_new(struct prune);

        p->again = timer_new(s->loop, look_again, s);
        p->cut = true;
        return p;
}

void prune_free(struct prune *p)
{
        if (!p)
                return;
        timer_free(p->again);
        free(p->sweep.v);
        free(p->doomed.v);
        free(p);
}

static void ids_add(struct ids *ids, uint64_t id)
{
        MEM_GROW(ids->v, ids->cap, ids->count + 1);
        ids->v[ids->count++] = id;
}

static void ids_reset(struct ids *ids)
{
        free(ids->v);
        *ids = (struct ids){0};
}

/* ---- history */

struct look {
        struct task task;
        int64_t before_ms,
                /* a row is old if it ended before the first or, because of a wrong clock, after the second */
                after_ms;
        uint64_t keep_rows;
        int64_t held_ms; /* rows that ended after this may be held for another server */
        uint64_t newest, upto, count;
        struct {
                uint64_t request;
                uint32_t member;
        } jobs[ROWS]; /* jobs whose rows are deleted */
        bool more, failed;
};

static int on_newest(void *arg, uint64_t row, const struct past_job *h)
{
        (void)h;
        ((struct look *)arg)->newest = row;
        return 0;
}

static int on_oldest(void *arg, uint64_t row, const struct past_job *h)
{
        struct look *x = arg;
        bool old = x->before_ms && (h->ended_ms < x->before_ms || h->ended_ms > x->after_ms);
        bool too_many = x->keep_rows && x->newest >= x->keep_rows && row <= x->newest - x->keep_rows;

        if ((!old && !too_many) || h->ended_ms >= x->held_ms)
                return 1;
        if (x->count == ROWS) {
                x->more = true;
                return 1;
        }
        x->upto = row;
        x->jobs[x->count].request = h->request;
        x->jobs[x->count++].member = h->member;
        return 0;
}

static void looked(struct server *s, struct task *t)
{
        struct look *x = (struct look *)t;
        struct prune *p = s->prune;

        p->busy = false;
        p->more = x->more && !x->failed;
        p->rows += x->count;
        if (p->more) { /* the other half of the time is for other work */
                timer_start(p->again, clock_boot_ms() - p->began_ms);
        } else if (p->rows) {
                log_info("msg=\"history was pruned\" jobs=%" PRIu64, p->rows);
                p->rows = 0;
        }
        free(x);
}

/* I/O thread. */
static void cut_is_durable(struct server *s, struct task *t)
{
        t->run = looked;
        server_to_core(s, t);
}

/* The next look waits until the deletion is durable; otherwise it would find and count the same rows
 * again. */
static void cut(struct server *s, struct task *t)
{
        struct look *x = (struct look *)t;

        if (turn_full(s->turn))
                x->count = 0;
        if (x->count == 0) {
                looked(s, t);
                return;
        }
        store_batch_history_cut(turn_batch(s->turn), x->upto);
        for (size_t i = 0; i < x->count; i++)
                tails_forget(s, x->jobs[i].request, x->jobs[i].member);
        s->prune->cut = true;
        t->run = cut_is_durable;
        turn_send(s->turn, t, TURN_DURABLE);
}

static void look_run(struct server *s, struct task *t)
{
        struct look *x = (struct look *)t;
        struct err err = {""};
        int r = store_history_query(s->store, &(struct store_query){.limit = 1}, on_newest, x, &err);

        if (r == 0)
                r = store_history_query(s->store, &(struct store_query){.oldest = true, .limit = ROWS + 1},
                                        on_oldest, x, &err);
        if (r != 0 && r != 1) {
                log_warn("msg=\"history was not pruned\" why=\"%s\"", LOG_TEXT(str_of(err.text)));
                x->failed = true;
                x->count = 0;
        }
        t->run = cut;
        server_to_core(s, t);
}

static void start_look(struct server *s)
{
        const struct config_keep *k = &server_settings(s)->keep;
        struct look *x = mem_new(struct look);
        int64_t now = clock_wall_ms();

        x->task.run = look_run;
        x->before_ms = k->history_ms ? now - k->history_ms : 0;
        x->after_ms = now + DAY_MS;
        x->keep_rows = k->history_jobs;
        x->held_ms = core_results_held_since(s->core);
        s->prune->busy = true;
        s->prune->added = 0;
        s->prune->began_ms = clock_boot_ms();
        server_to_reader(s, &x->task);
}

/* ---- records of requests */

struct sweep {
        struct task task;
        bool list; /* first: list the records */
        struct ids in, out;
};

static void sweep_drop(struct task *t)
{
        struct sweep *x = (struct sweep *)t;

        free(x->in.v);
        free(x->out.v);
        free(x);
}

static int prune_on_record(void *arg, struct str name)
{
        uint64_t id;

        if (str_to_u64(str_skip(name, sizeof(REQUEST_RECORD_PREFIX) - 1), &id) == 0)
                ids_add(arg, id);
        return 0;
}

static int on_any(void *arg, uint64_t row, const struct past_job *h)
{
        (void)arg;
        (void)row;
        (void)h;
        return 1;
}

static void swept(struct server *s, struct task *t)
{
        struct sweep *x = (struct sweep *)t;
        struct prune *p = s->prune;
        struct core_request known;
        bool any = false;

        p->busy = false;
        if (x->list) {
                ids_reset(&p->sweep);
                p->sweep = x->out;
                x->out = (struct ids){0};
                p->at = 0;
        }
        for (size_t i = 0; i < x->out.count; i++)
                if (core_request_get(s->core, x->out.v[i], &known) != 0) {
                        ids_add(&p->doomed, x->out.v[i]);
                        any = true;
                }
        if (any) /* true if the core has forgotten the request by an event so far */
                p->doomed_seq = userlog_last_seq(s);
        if (p->at >= p->sweep.count) {
                int64_t now = clock_boot_ms();

                p->sweeping = false;
                p->sweep_due_ms = now + (now - p->sweep_began_ms) * SWEEP_EASE;
                ids_reset(&p->sweep);
        }
        sweep_drop(t);
}

static void sweep_run(struct server *s, struct task *t)
{
        struct sweep *x = (struct sweep *)t;

        if (x->list)
                store_blob_list(s->store, STR(REQUEST_RECORD_PREFIX), prune_on_record, &x->out, NULL);
        for (size_t i = 0; i < x->in.count; i++)
                if (store_history_query(s->store, &(struct store_query){.request = x->in.v[i], .limit = 1},
                                        on_any, NULL, NULL) == 0)
                        ids_add(&x->out, x->in.v[i]);
        t->run = swept;
        server_to_core(s, t);
}

static void start_sweep(struct server *s)
{
        struct prune *p = s->prune;
        struct sweep *x = mem_new(struct sweep);

        x->task.run = sweep_run;
        x->task.drop = sweep_drop;
        x->list = !p->sweeping;
        if (x->list) {
                p->sweeping = true;
                p->cut = false;
                p->sweep_began_ms = clock_boot_ms();
        }
        for (unsigned n = 0; !x->list && n < RECORDS && p->at < p->sweep.count; n++)
                ids_add(&x->in, p->sweep.v[p->at++]);
        p->busy = true;
        server_to_reader(s, &x->task);
}

static void drop_records(struct server *s)
{
        struct prune *p = s->prune;

        if (p->doomed.count == 0 || !snapshot_covers(s, p->doomed_seq))
                return;
        log_info("msg=\"records of requests were pruned\" requests=%zu",
                 p->doomed.count < RECORDS ? p->doomed.count : (size_t)RECORDS);
        for (unsigned n = 0; n < RECORDS && p->doomed.count; n++) {
                char room[REQUEST_RECORD_NAME_MAX];

                store_batch_blob_delete(turn_batch(s->turn),
                                        request_record_name(room, p->doomed.v[--p->doomed.count]));
        }
        if (p->doomed.count == 0)
                ids_reset(&p->doomed);
}

/* ---- records of usage */

struct usage_look {
        struct task task;
        int64_t before_ms;
        struct usage_cursor old;
};

static void usage_look_drop(struct task *t)
{
        usage_end(&((struct usage_look *)t)->old);
        free(t);
}

static void drop_usage(struct server *s, struct task *t)
{
        struct usage_look *x = (struct usage_look *)t;
        struct prune *p = s->prune;

        p->usage_busy = false;
        if (!turn_full(s->turn)) {
                for (size_t i = 0; i < x->old.count; i++)
                        store_batch_blob_delete(turn_batch(s->turn), str_of(x->old.names[i]));
                if (x->old.count)
                        log_info("msg=\"records of usage were pruned\" pages=%zu", x->old.count);
                if (x->old.count == USAGE_NAMES_MAX) /* there may be more */
                        p->usage_due_ms = clock_boot_ms() + EVERY_MS;
        }
        usage_look_drop(t);
}

static void usage_look_run(struct server *s, struct task *t)
{
        struct usage_look *x = (struct usage_look *)t;
        struct err err = {""};

        if (usage_old_pages(s, x->before_ms, &x->old, &err) != 0)
                log_warn("msg=\"records of usage were not pruned\" why=\"%s\"", LOG_TEXT(str_of(err.text)));
        t->run = drop_usage;
        server_to_core(s, t);
}

static void start_usage_look(struct server *s)
{
        struct usage_look *x = mem_new(struct usage_look);

        x->task.run = usage_look_run;
        x->task.drop = usage_look_drop;
        x->before_ms = clock_wall_ms() - server_settings(s)->keep.usage_ms;
        s->prune->usage_busy = true;
        s->prune->usage_due_ms = clock_boot_ms() + HOUR_MS;
        server_to_reader(s, &x->task);
}

/* ---- outputs and timer */

static void drop_outputs(struct server *s)
{
        const struct config_keep *k = &server_settings(s)->keep;
        int64_t age = k->outputs_ms && (!k->history_ms || k->outputs_ms < k->history_ms) ? k->outputs_ms
                                                                                         : k->history_ms;
        int64_t before = clock_wall_ms() - age, held = core_results_held_since(s->core);
        size_t n = age ? objects_unkeep(s, held < before ? held : before, OUTPUTS) : 0;

        if (n)
                log_info("msg=\"outputs were pruned\" files=%zu", n);
}

void prune_tick(struct server *s)
{
        const struct config_keep *k = &server_settings(s)->keep;
        struct prune *p = s->prune;
        int64_t now = clock_boot_ms();

        if (turn_full(s->turn))
                return;
        drop_outputs(s);
        drop_records(s);
        if (k->usage_ms && !p->usage_busy && now >= p->usage_due_ms)
                start_usage_look(s);
        if (p->busy || timer_running(p->again) || (!k->history_ms && !k->history_jobs))
                return;
        if (p->sweeping) {
                start_sweep(s);
        } else if (p->more || now >= p->due_ms || (k->history_jobs && p->added >= ROWS)) {
                p->due_ms = now + EVERY_MS;
                start_look(s);
        } else if (p->cut && p->doomed.count == 0 && now >= p->sweep_due_ms) {
                start_sweep(s);
        }
}

void prune_row_added(struct server *s)
{
        s->prune->added++;
}

static void look_again(void *arg)
{
        struct server *s = arg;

        turn_begin(s->turn);
        prune_tick(s);
        turn_end(s->turn);
}
