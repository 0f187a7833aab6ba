#include "server/history/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/pack.h"
#include "server/loop/turn.h"

#define ENTRY_VERSION  2 /* 1: without the name of a job in another system */
#define NAME_MAX_BYTES (BANK_NAME_MAX + 64)

struct page {
        char *account;
        uint64_t serial; /* of the page's first movement */
        unsigned month;  /* YYYYMM */
        struct buf entries;
};

struct ledger { /* the movements of this turn */
        struct page *pages;
        size_t count, cap;
};

struct ledger *ledger_new(void)
{
        return mem_new(struct ledger);
}

static void page_deinit(struct page *p)
{
        free(p->account);
        buf_deinit(&p->entries);
}

void ledger_free(struct ledger *l)
{
        for (size_t i = 0; l && i < l->count; i++)
                page_deinit(&l->pages[i]);
        if (l)
                free(l->pages);
        free(l);
}

unsigned ledger_month(int64_t at_ms)
{
        time_t s = (time_t)(at_ms / 1000);
        struct tm tm = {.tm_year = 70};

        gmtime_r(&s, &tm);
        return (unsigned)(tm.tm_year + 1900) * 100 + (unsigned)tm.tm_mon + 1;
}

static void entry_pack(struct buf *out, const struct bank_entry *e)
{
        pack_u64(out, ENTRY_VERSION);
        pack_u64(out, e->serial);
        pack_i64(out, e->at_ms);
        pack_u64(out, e->op);
        pack_str(out, str_of(e->from));
        pack_str(out, str_of(e->to));
        pack_u64(out, e->from_allocation);
        pack_u64(out, e->to_allocation);
        pack_i64(out, e->amount);
        pack_i64(out, e->from_balance);
        pack_i64(out, e->to_balance);
        pack_u64(out, e->request);
        pack_u64(out, e->lien);
        pack_u64(out, e->member);
        pack_u64(out, e->fence);
        pack_str(out, e->who);
        pack_str(out, e->user);
        pack_str(out, e->place);
        pack_str(out, e->why);
        pack_str(out, e->job);
}

/* The names of the accounts are copied to the given buffers, because *e needs them zero-terminated. */
static bool entry_unpack(struct unpack *u, struct bank_entry *e, char from[static BANK_NAME_MAX + 1],
                         char to[static BANK_NAME_MAX + 1])
{
        uint64_t version = unpack_u64(u);
        struct str text;

        *e = (struct bank_entry){.serial = 0};
        u->bad |= version == 0 || version > ENTRY_VERSION;
        e->serial = unpack_u64(u);
        e->at_ms = unpack_i64(u);
        e->op = (enum bank_op)unpack_max(u, BANK_OPS - 1);
        text = unpack_str(u);
        snprintf(from, BANK_NAME_MAX + 1, STR_FMT, STR_ARG(text));
        text = unpack_str(u);
        snprintf(to, BANK_NAME_MAX + 1, STR_FMT, STR_ARG(text));
        e->from = from;
        e->to = to;
        e->from_allocation = unpack_u64(u);
        e->to_allocation = unpack_u64(u);
        e->amount = unpack_i64(u);
        e->from_balance = unpack_i64(u);
        e->to_balance = unpack_i64(u);
        e->request = unpack_u64(u);
        e->lien = unpack_u64(u);
        e->member = (uint32_t)unpack_max(u, UINT32_MAX);
        e->fence = (uint32_t)unpack_max(u, UINT32_MAX);
        e->who = unpack_str(u);
        e->user = unpack_str(u);
        e->place = unpack_str(u);
        e->why = unpack_str(u);
        if (version > 1)
                e->job = unpack_str(u);
        return !u->bad;
}

static void add_entry(struct ledger *l, const char *account, const struct bank_entry *e)
{
        unsigned month = ledger_month(e->at_ms);
        struct page *p = NULL;

        if (account[0] == '@')
                return;
        for (size_t i = 0; i < l->count && !p; i++)
                if (l->pages[i].month == month && strcmp(l->pages[i].account, account) == 0)
                        p = &l->pages[i];
        if (!p) {
                MEM_GROW(l->pages, l->cap, l->count + 1);
                p = &l->pages[l->count++];
                *p = (struct page){.account = mem_dupz(account), .serial = e->serial, .month = month};
        }
        entry_pack(&p->entries, e);
}

void ledger_add(struct ledger *l, const struct bank_entry *e)
{
        add_entry(l, e->from, e);
        add_entry(l, e->to, e);
}

void ledger_movement(struct server *s, const struct bank_entry *e)
{
        ledger_add(s->ledger, e);
}

void ledger_flush(struct server *s)
{
        ledger_flush_to(s->ledger, turn_batch(s->turn));
}

void ledger_flush_to(struct ledger *l, struct store_batch *batch)
{
        for (size_t i = 0; i < l->count; i++) {
                struct page *p = &l->pages[i];
                char name[NAME_MAX_BYTES];

                snprintf(name, sizeof(name), "ledger/%s/%06u/%020" PRIu64, p->account, p->month, p->serial);
                store_batch_blob_put(batch, str_of(name), buf_view(&p->entries));
                page_deinit(p);
        }
        l->count = 0;
}

/* ---- reading */

struct names {
        char **v;
        size_t count, cap;
        unsigned from, to; /* range of months */
        size_t prefix;
};

static int ledger_on_name(void *arg, struct str name)
{
        struct names *n = arg;
        struct str rest = str_skip(name, n->prefix), month;
        uint64_t number;

        if (!str_cut(&rest, '/', &month) || str_to_u64(month, &number) != 0)
                return 0;
        if (number > n->to)
                return 1;
        MEM_GROW(n->v, n->cap, n->count + 1);
        n->v[n->count++] = str_dupz(name);
        return 0;
}

static int read_page(struct str page, int64_t from_ms, int64_t to_ms, uint64_t after, ledger_fn *fn,
                     void *arg)
{
        char from[BANK_NAME_MAX + 1], to[BANK_NAME_MAX + 1];
        struct unpack u = unpack_from(page);
        struct bank_entry e;
        int r = 0;

        while (r == 0 && u.p < u.end && entry_unpack(&u, &e, from, to))
                if (e.serial > after && e.at_ms >= from_ms && e.at_ms < to_ms)
                        r = fn(arg, &e);
        return r ? r : u.bad ? -EBADMSG : 0;
}

/* Returns the number of the page's first movement. */
static uint64_t serial_of(const char *name)
{
        uint64_t serial = 0;

        str_to_u64(str_skip(str_of(name), (size_t)str_rfind(str_of(name), '/') + 1), &serial);
        return serial;
}

int ledger_read(struct server *s, struct str account, int64_t from_ms, int64_t to_ms, uint64_t after,
                ledger_fn *fn, void *arg, struct err *err)
{
        struct names names = {.from = ledger_month(from_ms),
                              .to = to_ms > 253370764800000 ? 999912 : ledger_month(to_ms)};
        char prefix[NAME_MAX_BYTES], first[NAME_MAX_BYTES + 8];
        int r;

        snprintf(prefix, sizeof(prefix), "ledger/" STR_FMT "/", STR_ARG(str_head(account, BANK_NAME_MAX)));
        names.prefix = strlen(prefix);
        snprintf(first, sizeof(first), "%s%06u/", prefix, names.from);
        r = store_blob_list_from(s->store, str_of(prefix), str_of(first), ledger_on_name, &names, err);
        r = r > 0 ? 0 : r;
        for (size_t i = 0; i < names.count && r == 0; i++) {
                BUF_CLEANUP struct buf page = {0};

                if (i + 1 < names.count && serial_of(names.v[i + 1]) <= after + 1)
                        continue; /* all movements of the page are before `after` */
                r = store_blob_get(s->store, str_of(names.v[i]), &page, err);
                if (r == 0)
                        r = read_page(buf_view(&page), from_ms, to_ms, after, fn, arg);
                if (r == -EBADMSG)
                        err_set(err, r, "the movements %s are damaged", names.v[i]);
        }
        for (size_t i = 0; i < names.count; i++)
                free(names.v[i]);
        free(names.v);
        return r;
}
