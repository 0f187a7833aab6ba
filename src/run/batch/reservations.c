/* One call at a time: a list, then the removals, then those that are missing. */
#include "run/batch/reservations.h"

#include <stdlib.h>

#include "base/system/clock.h"
#include "base/system/log.h"
#include "run/batch/calls.h"
#include "run/batch/runner.h"
#include "run/batch/state.h"
#include "run/call/answer.h"

#define RETRY_MS 60000
#define LIST_MS  60000 /* between two lists, since reservations may be removed there */

struct reservation {
        uint64_t id;
        char *name,
                *native; /* native: the system's id, by which its jobs call it; NULL: unknown, or the name */
        int64_t start_ms, end_ms;
        uint64_t cpus;
        bool maintenance;
        bool there;       /* the system has it */
        bool refused;     /* and this was logged */
        int64_t retry_ms; /* boot clock: it is not made before; 0: at once */
};

struct reservations {
        struct reservation *v;
        size_t n, cap;
        struct args surplus; /* names that the system has and should not have */
        bool ask;            /* the system's list is to be asked for */
        int64_t ask_ms;      /* boot clock: but not before */
        int64_t listed_ms;   /* boot clock: the last list was read */
};

struct reservations *batch_reservations_new(void)
{
        return mem_new(struct reservations);
}

static void clear(struct reservations *r)
{
        for (size_t i = 0; i < r->n; i++) {
                free(r->v[i].name);
                free(r->v[i].native);
        }
        r->n = 0;
}

void batch_reservations_free(struct reservations *r)
{
        if (!r)
                return;
        clear(r);
        free(r->v);
        args_deinit(&r->surplus);
        free(r);
}

static struct reservation *find(const struct reservations *r, struct str name)
{
        for (size_t i = 0; i < r->n; i++)
                if (str_eqz(name, r->v[i].name))
                        return &r->v[i];
        return NULL;
}

static void go_on(struct batch *b);

static void on_listed(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        struct reservations *r = b->reservations;
        BUF_CLEANUP struct buf ours = {0};
        struct str line, name, id = STR_NONE;

        if (status != 0) {
                BUF_CLEANUP struct buf text = {0};

                answer_clean(&text, str_trim(errors));
                log_warn("msg=\"the reservations of the batch system are not known\" queue=%s error=\"%s\"",
                         b->queue, LOG_TEXT(buf_view(&text)));
                r->ask_ms = clock_boot_ms() + RETRY_MS;
                return;
        }
        r->ask = false;
        r->listed_ms = clock_boot_ms();
        for (size_t i = 0; i < r->n; i++)
                r->v[i].there = false;
        args_deinit(&r->surplus);
        buf_printf(&ours, "%sr", b->prefix);
        while (out.n && str_cut(&out, '\n', &line)) {
                struct reservation *one;

                if (b->system->reserved_id && b->system->reserved_id(line).n)
                        id = b->system->reserved_id(line);
                name = b->system->reserved_read(line);
                if (!str_starts(name, buf_view(&ours)))
                        continue;
                one = find(r, name);
                if (one) {
                        one->there = true;
                        free(one->native);
                        one->native = id.n ? str_dupz(id) : NULL;
                } else
                        args_add(&r->surplus, name);
        }
        go_on(b);
}

static void on_removed(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;

        (void)out;
        if (status != 0) { /* it is over, or its jobs are still running: the list tells */
                BUF_CLEANUP struct buf text = {0};

                answer_clean(&text, str_trim(errors));
                log_info("msg=\"a reservation cannot be removed from the batch system now\" queue=%s "
                         "error=\"%s\"",
                         b->queue, LOG_TEXT(buf_view(&text)));
                b->reservations->ask = true;
                b->reservations->ask_ms = clock_boot_ms() + RETRY_MS;
        }
        go_on(b);
}

static void on_made(void *arg, int status, struct str out, struct str errors)
{
        struct batch *b = arg;
        struct reservation *one = NULL;
        BUF_CLEANUP struct buf text = {0};

        (void)out;
        for (size_t i = 0; i < b->reservations->n && !one; i++)
                if (b->reservations->v[i].retry_ms < 0) /* marked when it was asked for */
                        one = &b->reservations->v[i];
        if (one)
                one->retry_ms = status == 0 && !b->system->reserved_id ? 0 : clock_boot_ms() + RETRY_MS;
        if (one && status == 0 && b->system->reserved_id) { /* the list has its id */
                b->reservations->ask = true;
                b->reservations->ask_ms = 0;
        } else if (one && status == 0)
                one->there = true;
        if (one && status != 0 && !one->refused) {
                one->refused = true;
                answer_clean(&text, str_trim(errors));
                log_warn("msg=\"the batch system does not take a reservation\" queue=%s reservation=%llu "
                         "error=\"%s\"",
                         b->queue, (unsigned long long)one->id, LOG_TEXT(buf_view(&text)));
        }
        go_on(b);
}

static void make(struct batch *b, struct reservation *one)
{
        const char *users = batch_setting(&b->settings, "reservations");
        struct batch_call call = {.settings = &b->settings};

        if (!b->system->reserve(&call,
                                &(struct batch_reserving){.name = one->name,
                                                          .users = !strcmp(users, "yes") ? b->user : users,
                                                          .start_ms = one->start_ms,
                                                          .end_ms = one->end_ms,
                                                          .cpus = one->cpus,
                                                          .maintenance = one->maintenance})) {
                log_warn(
                        "msg=\"%s is not passed on to the batch system: the queue's settings do not say %s\" "
                        "queue=%s reservation=%llu",
                        one->maintenance ? "maintenance" : "a reservation",
                        one->maintenance ? "of which nodes" : "how several processors are reserved", b->queue,
                        (unsigned long long)one->id);
                one->retry_ms = INT64_MAX;
                return;
        }
        one->retry_ms = -1;
        batch_run(b, SLOT_RESERVE, &call, on_made, b);
}

static void go_on(struct batch *b)
{
        struct reservations *r = b->reservations;
        int64_t now = clock_boot_ms();
        struct batch_call call = {.settings = &b->settings};

        if (batch_busy(b, SLOT_RESERVE))
                return;
        if (r->surplus.n > 0) {
                b->system->unreserve(&call, r->surplus.v[--r->surplus.n]);
                free(r->surplus.v[r->surplus.n]);
                r->surplus.v[r->surplus.n] = NULL;
                batch_run(b, SLOT_RESERVE, &call, on_removed, b);
                return;
        }
        if (r->ask && now >= r->ask_ms) {
                b->system->reserved(&call);
                batch_run(b, SLOT_RESERVE, &call, on_listed, b);
                return;
        }
        for (size_t i = 0; i < r->n && !r->ask; i++)
                if (!r->v[i].there && r->v[i].retry_ms <= now) {
                        make(b, &r->v[i]);
                        return;
                }
}

void batch_reserve(struct runner *runner, const struct run_reservation *all, size_t count)
{
        struct batch *b = (struct batch *)(void *)runner;
        struct reservations *r = b->reservations, before = *r;

        if (!b->system->reserve || !batch_setting(&b->settings, "reservations"))
                return;
        *r = (struct reservations){.surplus = before.surplus, .ask = true, .listed_ms = before.listed_ms};
        for (size_t i = 0; i < count; i++) {
                struct buf name = {0};
                struct reservation one = {.id = all[i].id,
                                          .start_ms = all[i].start_ms,
                                          .end_ms = all[i].end_ms,
                                          .cpus = all[i].cpus,
                                          .maintenance = all[i].maintenance};
                const struct reservation *same;

                buf_printf(&name, "%sr%llu-%lld", b->prefix, (unsigned long long)one.id,
                           (long long)(one.start_ms / 1000));
                same = find(&before, buf_view(&name));
                if (same) {
                        one.there = same->there;
                        one.native = same->native ? mem_dupz(same->native) : NULL;
                        one.refused = same->refused;
                        one.retry_ms = same->retry_ms > 0 ? same->retry_ms : 0;
                }
                one.name = buf_take(&name);
                MEM_GROW(r->v, r->cap, r->n + 1);
                r->v[r->n++] = one;
        }
        clear(&before);
        free(before.v);
        go_on(b);
}

const char *batch_reservation_name(const struct batch *b, const char *id)
{
        uint64_t number;

        if (!id || str_to_u64(str_of(id), &number) != 0)
                return NULL;
        for (size_t i = 0; i < b->reservations->n; i++)
                if (b->reservations->v[i].id == number && b->reservations->v[i].there)
                        return b->reservations->v[i].native ? b->reservations->v[i].native
                                                            : b->reservations->v[i].name;
        return NULL;
}

void batch_reservations_tick(struct batch *b)
{
        struct reservations *r = b->reservations;

        r->ask |= r->n > 0 && clock_boot_ms() - r->listed_ms > LIST_MS;
        if (r->ask || r->n > 0 || r->surplus.n > 0)
                go_on(b);
}
