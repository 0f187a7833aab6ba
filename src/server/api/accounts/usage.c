/* GET /v1/usage, /v1/usage/records: what attempts have used, as sums by user, account, place, site and
 * month, or as single records. Users see their own records; operators and admins see all. */
#include <inttypes.h>
#include <stdio.h>

#include "base/map.h"
#include "base/system/clock.h"
#include "server/api/accounts/groups.h"
#include "server/api/routes.h"
#include "server/history/usage.h"

#define SLICE_NS      20000000
#define GROUPS_MAX    100000u
#define RECORDS_BYTES (4u << 20) /* approximate size of one page of records */
#define TIME_MAX      4000000000000ll

struct sums {
        char *key; /* the values of the grouping columns, in the order of their names, separated by 0x1f */
        uint64_t attempts, completed, failed, lost, not_started, starts, bytes_in, bytes_out;
        double wall_ms, cpu_ms, cpus_ms, gpus_ms, memory_mib_ms, memory_used_mib_ms, wait_ms, energy_uj;
        int64_t wait_max_ms, amount;
};

struct report {
        struct call *call;
        uint64_t from_ms, to_ms;
        struct str owner;
        bool by[BYS];
        struct usage_cursor cursor;
        bool begun, too_many;
        struct map *groups;
        struct sums **sums;
        size_t count, cap;
        /* for records */
        struct json j;
        struct str after;
        struct buf next;
};

static void usage_state_free(void *arg)
{
        struct report *r = arg;

        for (size_t i = 0; i < r->count; i++) {
                free(r->sums[i]->key);
                free(r->sums[i]);
        }
        free(r->sums);
        map_free(r->groups);
        usage_end(&r->cursor);
        buf_deinit(&r->next);
        free(r);
}

static bool is_wanted(const struct report *r, const struct core_usage *u)
{
        return u->ended_ms >= (int64_t)r->from_ms && u->ended_ms < (int64_t)r->to_ms &&
               call_may(r->call, u->owner) && (!r->owner.n || call_owner_is(u->owner, r->owner));
}

/* ---- sums */

static struct sums *sums_of(struct report *r, const struct core_usage *u)
{
        BUF_CLEANUP struct buf key = {0}, place = {0};
        struct group_values v = {
                .user = u->owner, .account = u->account, .site = u->agent, .at_ms = u->ended_ms};
        struct sums *s;

        if (r->by[BY_PLACE])
                buf_printf(&place, STR_FMT "/" STR_FMT, STR_ARG(u->agent), STR_ARG(u->queue));
        v.place = buf_view(&place);
        groups_key(&key, r->by, &v);
        s = map_get(r->groups, buf_view(&key));
        if (s)
                return s;
        if (r->count == GROUPS_MAX) {
                r->too_many = true;
                return NULL;
        }
        s = mem_new(struct sums);
        s->key = str_dupz(buf_view(&key));
        map_put(r->groups, buf_view(&key), s);
        MEM_GROW(r->sums, r->cap, r->count + 1);
        r->sums[r->count++] = s;
        return s;
}

static void on_summed(void *arg, const struct core_usage *u)
{
        struct report *r = arg;
        struct sums *s = is_wanted(r, u) ? sums_of(r, u) : NULL;
        double wall_ms = u->started_ms ? (double)(u->ended_ms - u->started_ms) : 0;

        if (!s)
                return;
        s->attempts++;
        s->completed += u->outcome == CORE_EXITED && !u->signaled && u->exit_code == 0;
        s->failed += u->outcome == CORE_LIMIT_EXCEEDED ||
                     (u->outcome == CORE_EXITED && (u->signaled || u->exit_code != 0));
        s->lost += u->outcome == CORE_OUTCOME_LOST;
        s->not_started += u->outcome == CORE_NOT_STARTED || u->outcome == CORE_STAGING_FAILED;
        s->wall_ms += wall_ms;
        s->cpu_ms += (double)(u->cpu_user_ms + u->cpu_system_ms);
        s->cpus_ms += wall_ms * (double)u->cpus;
        s->gpus_ms += wall_ms * (double)u->gpus;
        s->memory_mib_ms += wall_ms * (double)u->memory_mib;
        s->memory_used_mib_ms += wall_ms * (double)(u->memory_peak_bytes >> 20);
        s->bytes_in += u->bytes_in;
        s->bytes_out += u->bytes_out;
        s->energy_uj += (double)u->energy_uj;
        s->amount += u->charged ? u->amount : 0;
        if (!u->started_ms || u->starts != 1)
                return;
        s->starts++;
        s->wait_ms += (double)(u->started_ms - u->submitted_ms);
        if (u->started_ms - u->submitted_ms > s->wait_max_ms)
                s->wait_max_ms = u->started_ms - u->submitted_ms;
}

static int by_key(const void *a, const void *b)
{
        const struct sums *const *x = a, *const *y = b;

        return strcmp((*x)->key, (*y)->key);
}

static void usage_write_sums(struct json *j, const struct report *r, const struct sums *s)
{
        json_open(j, '{');
        groups_write(j, r->by, str_of(s->key));
        json_kint(j, "attempts", (int64_t)s->attempts);
        json_kint(j, "completed", (int64_t)s->completed);
        json_kint(j, "failed", (int64_t)s->failed);
        json_kint(j, "lost", (int64_t)s->lost);
        json_kint(j, "not_started", (int64_t)s->not_started);
        json_kint(j, "wall_ms", (int64_t)s->wall_ms);
        json_kint(j, "cpu_ms", (int64_t)s->cpu_ms);
        json_kint(j, "cpus_ms", (int64_t)s->cpus_ms);
        json_kint(j, "gpus_ms", (int64_t)s->gpus_ms);
        json_kint(j, "memory_mib_ms", (int64_t)s->memory_mib_ms);
        json_kint(j, "memory_used_mib_ms", (int64_t)s->memory_used_mib_ms);
        json_kint(j, "bytes_in", (int64_t)s->bytes_in);
        json_kint(j, "bytes_out", (int64_t)s->bytes_out);
        json_kint(j, "energy_j", (int64_t)(s->energy_uj / 1e6));
        json_kint(j, "first_starts", (int64_t)s->starts);
        json_kint(j, "wait_ms", (int64_t)s->wait_ms);
        json_kint(j, "wait_max_ms", s->wait_max_ms);
        json_kint(j, "amount", s->amount);
        json_close(j, '}');
}

static void write_report(struct server *s, struct call *c)
{
        struct report *r = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        if (r->count > 1)
                qsort(r->sums, r->count, sizeof(*r->sums), by_key);
        json_open(&j, '{');
        json_kint(&j, "from_ms", (int64_t)r->from_ms);
        json_kint(&j, "to_ms", (int64_t)r->to_ms);
        json_key(&j, "groups");
        json_open(&j, '[');
        for (size_t i = 0; i < r->count; i++)
                usage_write_sums(&j, r, r->sums[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

static call_fn read_sums;
static void read_sums_again(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_sums);
}

static bool begin_reading(struct server *s, struct call *c, struct report *r)
{
        struct err err = {""};

        if (!r->begun &&
            usage_begin(s, (int64_t)r->from_ms, (int64_t)r->to_ms, r->after, &r->cursor, &err) < 0) {
                call_fail_err(c, 500, "store", &err);
                return false;
        }
        r->begun = true;
        return true;
}

static void read_sums(struct server *s, struct call *c)
{
        struct report *r = c->state;
        int64_t until_ns = clock_mono_ns() + SLICE_NS;
        struct err err = {""};
        int e = 0;

        if (!begin_reading(s, c, r))
                return;
        while (e == 0 && !r->too_many && clock_mono_ns() < until_ns)
                e = usage_next(s, &r->cursor, on_summed, r, &err);
        if (r->too_many)
                call_fail(c, 400, "too_many",
                          "there are more than %u groups: ask for less time, or by fewer things", GROUPS_MAX);
        else if (e < 0)
                call_fail_err(c, 500, "store", &err);
        else
                call_io(c, e ? write_report : read_sums_again);
}

static struct report *report_begin(struct call *c)
{
        struct report *r = call_state(c, sizeof(*r), usage_state_free);

        r->call = c;
        r->to_ms = TIME_MAX;
        r->groups = map_new();
        r->owner = call_query(c, "owner");
        if (!call_number(c, "from_ms", TIME_MAX, &r->from_ms) ||
            !call_number(c, "to_ms", TIME_MAX, &r->to_ms))
                return NULL;
        return r;
}

void api_usage(struct server *s, struct call *c)
{
        struct report *r = report_begin(c);

        (void)s;
        if (r && groups_by(c, r->by))
                call_reader(c, read_sums);
}

/* ---- records */

static void on_record(void *arg, const struct core_usage *u)
{
        static const char *const outcomes[] = {"exited",         "not_started", "staging_failed",
                                               "limit_exceeded", "killed",      "lost"};
        struct report *r = arg;
        struct json *j = &r->j;

        if (!is_wanted(r, u))
                return;
        json_open(j, '{');
        json_kint(j, "request", (int64_t)u->request);
        json_kint(j, "job", u->member);
        json_kint(j, "attempt", u->fence);
        json_kint(j, "starts", u->starts);
        json_kstr(j, "owner", u->owner);
        json_kstr(j, "account", u->account);
        json_kstr(j, "agent", u->agent);
        json_kstr(j, "queue", u->queue);
        json_kstrz(j, "outcome", outcomes[u->outcome]);
        json_kint(j, u->signaled ? "exit_signal" : "exit_code", u->exit_code);
        json_kint(j, "submitted_ms", u->submitted_ms);
        if (u->started_ms)
                json_kint(j, "started_ms", u->started_ms);
        json_kint(j, "ended_ms", u->ended_ms);
        json_kint(j, "cpu_user_ms", u->cpu_user_ms);
        json_kint(j, "cpu_system_ms", u->cpu_system_ms);
        json_kint(j, "cpus", u->cpus);
        json_kint(j, "gpus", u->gpus);
        json_kint(j, "memory_mib", u->memory_mib);
        json_kint(j, "memory_peak_bytes", (int64_t)(u->memory_peak_bytes & INT64_MAX));
        json_kint(j, "bytes_in", (int64_t)u->bytes_in);
        json_kint(j, "bytes_out", (int64_t)u->bytes_out);
        if (u->energy_uj)
                json_kint(j, "energy_uj", (int64_t)(u->energy_uj & INT64_MAX));
        if (u->reservation)
                json_kint(j, "reservation", (int64_t)u->reservation);
        if (u->charged)
                json_kint(j, "amount", u->amount);
        json_close(j, '}');
}

static void write_records(struct server *s, struct call *c)
{
        struct report *r = c->state;

        (void)s;
        json_close(&r->j, ']');
        json_kstrz(&r->j, "next", r->next.n ? buf_z(&r->next) : NULL);
        json_close(&r->j, '}');
        call_reply(c);
}

static call_fn read_records;
static void read_records_again(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_records);
}

static void read_records(struct server *s, struct call *c)
{
        struct report *r = c->state;
        int64_t until_ns = clock_mono_ns() + SLICE_NS;
        struct err err = {""};
        int e = 0;

        if (!r->begun) {
                r->j = (struct json){.out = &c->out};
                json_open(&r->j, '{');
                json_key(&r->j, "records");
                json_open(&r->j, '[');
        }
        if (!begin_reading(s, c, r))
                return;
        while (e == 0 && c->out.n < RECORDS_BYTES && clock_mono_ns() < until_ns)
                e = usage_next(s, &r->cursor, on_record, r, &err);
        if (e == 0 && c->out.n >= RECORDS_BYTES && (r->cursor.at < r->cursor.count || r->cursor.more)) {
                buf_addz(&r->next, r->cursor.names[r->cursor.at - 1]);
                e = 1;
        }
        if (e < 0)
                call_fail_err(c, 500, "store", &err);
        else
                call_io(c, e ? write_records : read_records_again);
}

void api_usage_records(struct server *s, struct call *c)
{
        struct report *r = report_begin(c);

        (void)s;
        if (!r)
                return;
        r->after = call_query(c, "after");
        call_reader(c, read_records);
}
