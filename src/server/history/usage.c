#include "server/history/usage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/pack.h"
#include "base/system/clock.h"
#include "server/history/ledger.h"
#include "server/loop/turn.h"

#define RECORD_VERSION 1 /* with a flag for each value that older records lack */
#define HAS_ENERGY     4u
#define PREFIX         "usage/"
#define NAME_MAX_BYTES 96

struct usage_pages { /* of this turn */
        struct buf records;
        char name[NAME_MAX_BYTES];
};

struct usage_pages *usage_new(void)
{
        return mem_new(struct usage_pages);
}

void usage_free(struct usage_pages *u)
{
        if (u)
                buf_deinit(&u->records);
        free(u);
}

void usage_add(struct server *s, const struct core_usage *u)
{
        struct usage_pages *p = s->usage;
        struct buf *out = &p->records;
        const struct str texts[] = {u->owner, u->account, u->agent, u->queue};
        const int64_t numbers[] = {u->exit_code,
                                   u->submitted_ms,
                                   u->started_ms ? u->started_ms - u->submitted_ms + 1 : 0,
                                   u->ended_ms - u->submitted_ms,
                                   u->cpu_user_ms,
                                   u->cpu_system_ms,
                                   u->cpus,
                                   u->gpus,
                                   u->memory_mib,
                                   u->amount};
        const uint64_t counts[] = {u->request,
                                   u->member,
                                   u->fence,
                                   u->starts,
                                   u->outcome,
                                   (u->charged ? 1u : 0u) | (u->signaled ? 2u : 0u) |
                                           (u->energy_uj ? HAS_ENERGY : 0u),
                                   u->memory_peak_bytes,
                                   u->bytes_in,
                                   u->bytes_out,
                                   u->reservation};

        if (!out->n)
                snprintf(p->name, sizeof(p->name), PREFIX "%06u/%020llu.%010u.%010u",
                         ledger_month(clock_wall_ms()), (unsigned long long)u->request, u->member, u->fence);
        pack_u64(out, RECORD_VERSION);
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                pack_u64(out, counts[i]);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                pack_i64(out, numbers[i]);
        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                pack_str(out, texts[i]);
        if (u->energy_uj)
                pack_u64(out, u->energy_uj);
}

void usage_flush(struct server *s)
{
        struct usage_pages *p = s->usage;

        if (!p->records.n)
                return;
        store_batch_blob_put(turn_batch(s->turn), str_of(p->name), buf_view(&p->records));
        buf_reset(&p->records);
}

/* ---- reading */

static bool usage_unpack(struct unpack *in, struct core_usage *u)
{
        uint64_t flags;
        int64_t started;

        in->bad |= unpack_u64(in) != RECORD_VERSION;
        *u = (struct core_usage){.request = unpack_u64(in)};
        u->member = (uint32_t)unpack_max(in, UINT32_MAX);
        u->fence = (uint32_t)unpack_max(in, UINT32_MAX);
        u->starts = (uint32_t)unpack_max(in, UINT32_MAX);
        u->outcome = (enum core_outcome)unpack_max(in, CORE_OUTCOMES - 1);
        flags = unpack_u64(in);
        u->charged = flags & 1;
        u->signaled = flags & 2;
        u->memory_peak_bytes = unpack_u64(in);
        u->bytes_in = unpack_u64(in);
        u->bytes_out = unpack_u64(in);
        u->reservation = unpack_u64(in);
        u->exit_code = (int32_t)unpack_i64(in);
        u->submitted_ms = unpack_i64(in);
        started = unpack_i64(in);
        u->started_ms = started ? u->submitted_ms + started - 1 : 0;
        u->ended_ms = u->submitted_ms + unpack_i64(in);
        u->cpu_user_ms = unpack_i64(in);
        u->cpu_system_ms = unpack_i64(in);
        u->cpus = unpack_i64(in);
        u->gpus = unpack_i64(in);
        u->memory_mib = unpack_i64(in);
        u->amount = unpack_i64(in);
        u->owner = unpack_str(in);
        u->account = unpack_str(in);
        u->agent = unpack_str(in);
        u->queue = unpack_str(in);
        if (flags & HAS_ENERGY)
                u->energy_uj = unpack_u64(in);
        return !in->bad;
}

static int usage_on_name(void *arg, struct str name)
{
        struct usage_cursor *c = arg;
        struct str rest = str_skip(name, strlen(PREFIX)), month;
        uint64_t number;

        if (!str_cut(&rest, '/', &month) || str_to_u64(month, &number) != 0 || number < c->from)
                return 0;
        if (number > c->to)
                return 1;
        if (c->count == USAGE_NAMES_MAX) {
                c->more = true;
                return 1;
        }
        MEM_GROW(c->names, c->cap, c->count + 1);
        c->names[c->count++] = str_dupz(name);
        return 0;
}

/* Lists the names of the pages that follow the page `after`; `after` is not a page's name: from the first
 * page of the cursor's first month. */
static int find_pages(struct server *s, struct usage_cursor *c, struct str after, struct err *err)
{
        BUF_CLEANUP struct buf from = {0};
        int r;

        if (str_starts(after, STR(PREFIX))) {
                buf_str(&from, after);
                buf_char(&from, '\0'); /* the smallest name that sorts after it */
        } else {
                buf_printf(&from, PREFIX "%06u/", c->from);
        }
        usage_end(c);
        r = store_blob_list_from(s->store, STR(PREFIX), buf_view(&from), usage_on_name, c, err);
        return r > 0 ? 0 : r;
}

int usage_begin(struct server *s, int64_t from_ms, int64_t to_ms, struct str after, struct usage_cursor *ret,
                struct err *err)
{
        const int64_t month_ms = 31 * 86400000ll;

        *ret = (struct usage_cursor){.from = ledger_month(from_ms),
                                     .to = to_ms > 253370764800000 ? 999912 : ledger_month(to_ms + month_ms)};
        return find_pages(s, ret, after, err);
}

int usage_old_pages(struct server *s, int64_t before_ms, struct usage_cursor *ret, struct err *err)
{
        *ret = (struct usage_cursor){.to = ledger_month(before_ms) - 1};
        return find_pages(s, ret, STR_NONE, err);
}

int usage_next(struct server *s, struct usage_cursor *c, usage_fn *fn, void *arg, struct err *err)
{
        BUF_CLEANUP struct buf page = {0};
        struct core_usage u;
        struct unpack in;
        int r;

        if (c->at == c->count && c->more) {
                MEM_CLEANUP char *last = mem_dupz(c->names[c->count - 1]);

                r = find_pages(s, c, str_of(last), err);
                if (r < 0)
                        return r;
        }
        if (c->at == c->count)
                return 1;
        r = store_blob_get(s->store, str_of(c->names[c->at]), &page, err);
        in = unpack_from(buf_view(&page));
        while (r == 0 && in.p < in.end && usage_unpack(&in, &u))
                fn(arg, &u);
        if (r == 0 && in.bad)
                r = err_set(err, -EBADMSG, "the usage records %s are damaged", c->names[c->at]);
        c->at++;
        return r < 0 ? r : 0;
}

void usage_end(struct usage_cursor *c)
{
        for (size_t i = 0; i < c->count; i++)
                free(c->names[i]);
        free(c->names);
        *c = (struct usage_cursor){.from = c->from, .to = c->to};
}
