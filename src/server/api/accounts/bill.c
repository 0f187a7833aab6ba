/* GET /v1/bank/bill: what accounts were charged and given, summed from the movements of the ledger, which
 * statements list one by one. Members of an account with the role user see what they have spent themselves.
 */
#include "base/map.h"
#include "base/system/clock.h"
#include "core/core.h"
#include "server/api/accounts/bank.h"
#include "server/api/accounts/groups.h"
#include "server/api/routes.h"
#include "server/history/ledger.h"

#define SLICE_NS      20000000
#define SLICE_ENTRIES 256u /* the clock is read after so many movements */
#define BILL_ROWS_MAX 100000u
#define BILL_TIME_MAX 4000000000000ll

/* `sums` of a row, and their names. The first three less the fourth are the amount of the bill. */
enum bill_sum {
        FOR_JOBS,
        FOR_RESERVATIONS,
        FOR_OTHERS,
        REFUNDED,
        DEPOSITED,
        WITHDRAWN,
        RECEIVED,
        SENT,
        SUMS
};
static const char *const sum_names[SUMS] = {"for_jobs",  "for_reservations", "for_others", "refunded",
                                            "deposited", "withdrawn",        "received",   "sent"};

struct row {
        char *key;
        int64_t sums[SUMS];
};

struct bill_account {
        char *name;
        bool own; /* the caller sees only what he or she has spent */
};

struct bill {
        struct call *call;
        uint64_t from_ms, to_ms;
        struct str only, owner;
        bool by[BYS];
        struct bill_account *accounts;
        size_t account_count, account_cap, at;
        uint64_t after; /* the last movement of accounts[at] that was read */
        int64_t until_ns;
        unsigned read;
        bool too_many;
        struct map *groups;
        struct row **rows;
        size_t count, cap;
};

static void bill_free(void *arg)
{
        struct bill *b = arg;

        for (size_t i = 0; i < b->count; i++) {
                free(b->rows[i]->key);
                free(b->rows[i]);
        }
        for (size_t i = 0; i < b->account_count; i++)
                free(b->accounts[i].name);
        free(b->rows);
        free(b->accounts);
        map_free(b->groups);
        free(b);
}

static enum bill_sum sum_of(const struct bank_entry *e, bool out)
{
        switch (e->op) {
        case BANK_CHARGE: return e->request ? FOR_JOBS : e->who.n ? FOR_OTHERS : FOR_RESERVATIONS;
        case BANK_REFUND: return REFUNDED;
        case BANK_DEPOSIT: return DEPOSITED;
        case BANK_TRANSFER: return out ? SENT : RECEIVED;
        default: return WITHDRAWN;
        }
}

static struct row *row_of(struct bill *b, const struct bank_entry *e)
{
        ptrdiff_t slash = str_find(e->place, '/');
        struct group_values v = {.user = e->user,
                                 .account = str_of(b->accounts[b->at].name),
                                 .place = e->place,
                                 .site = slash < 0 ? e->place : str_head(e->place, (size_t)slash),
                                 .at_ms = e->at_ms};
        BUF_CLEANUP struct buf key = {0};
        struct row *row;

        groups_key(&key, b->by, &v);
        row = map_get(b->groups, buf_view(&key));
        if (row)
                return row;
        if (b->count == BILL_ROWS_MAX) {
                b->too_many = true;
                return NULL;
        }
        row = mem_new(struct row);
        row->key = str_dupz(buf_view(&key));
        map_put(b->groups, buf_view(&key), row);
        MEM_GROW(b->rows, b->cap, b->count + 1);
        b->rows[b->count++] = row;
        return row;
}

/* Returns 1 when the time of this slice is over. */
static int bill_on_movement(void *arg, const struct bank_entry *e)
{
        struct bill *b = arg;
        const struct bill_account *a = &b->accounts[b->at];
        struct row *row;

        if ((!a->own || str_eqz(e->user, b->call->who)) &&
            (!b->owner.n || call_owner_is(e->user, b->owner))) {
                row = row_of(b, e);
                if (!row)
                        return 1;
                row->sums[sum_of(e, str_eqz(str_of(a->name), e->from))] += e->amount;
        }
        b->after = e->serial;
        return ++b->read % SLICE_ENTRIES == 0 && clock_mono_ns() > b->until_ns;
}

static int bill_by_key(const void *a, const void *b)
{
        const struct row *const *x = a, *const *y = b;

        return strcmp((*x)->key, (*y)->key);
}

static void write_bill(struct server *s, struct call *c)
{
        struct bill *b = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        if (b->count > 1)
                qsort(b->rows, b->count, sizeof(*b->rows), bill_by_key);
        json_open(&j, '{');
        json_kint(&j, "from_ms", (int64_t)b->from_ms);
        json_kint(&j, "to_ms", (int64_t)b->to_ms);
        json_key(&j, "groups");
        json_open(&j, '[');
        for (size_t i = 0; i < b->count; i++) {
                const int64_t *sums = b->rows[i]->sums;

                json_open(&j, '{');
                groups_write(&j, b->by, str_of(b->rows[i]->key));
                json_kint(&j, "amount",
                          sums[FOR_JOBS] + sums[FOR_RESERVATIONS] + sums[FOR_OTHERS] - sums[REFUNDED]);
                for (int k = 0; k < SUMS; k++)
                        json_kint(&j, sum_names[k], sums[k]);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

static call_fn read_movements;
static void read_movements_again(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_movements);
}

static void read_movements(struct server *s, struct call *c)
{
        struct bill *b = c->state;
        struct err err = {""};
        int e = 0;

        b->until_ns = clock_mono_ns() + SLICE_NS;
        while (b->at < b->account_count && e == 0) {
                e = ledger_read(s, str_of(b->accounts[b->at].name), (int64_t)b->from_ms, (int64_t)b->to_ms,
                                b->after, bill_on_movement, b, &err);
                if (e)
                        break;
                b->at++;
                b->after = 0;
                e = clock_mono_ns() > b->until_ns;
        }
        if (b->too_many)
                call_fail(c, 400, "too_many",
                          "there are more than %u groups: ask for less time, or by fewer things",
                          BILL_ROWS_MAX);
        else if (e < 0)
                call_fail_err(c, 500, "store", &err);
        else
                call_io(c, b->at < b->account_count ? read_movements_again : write_bill);
}

static void add_account(void *arg, const struct bank_account *a)
{
        struct bill *b = arg;
        enum bank_role role = bank_caller_role(b->call, a);

        if (role < BANK_ROLE_USER || (b->only.n && !str_eqz(b->only, a->name)))
                return;
        MEM_GROW(b->accounts, b->account_cap, b->account_count + 1);
        b->accounts[b->account_count++] =
                (struct bill_account){.name = mem_dupz(a->name), .own = role < BANK_ROLE_MANAGER};
}

static void find_accounts(struct server *s, struct call *c)
{
        struct bill *b = c->state;

        bank_accounts_each(core_bank(s->core), add_account, b);
        if (b->only.n && b->account_count == 0)
                call_fail(c, 404, "not_found",
                          "the bank has no account " STR_FMT " of which you are a member",
                          STR_ARG(str_head(b->only, BANK_NAME_MAX)));
        else
                call_reader(c, read_movements);
}

void api_bank_bill(struct server *s, struct call *c)
{
        struct bill *b = call_state(c, sizeof(*b), bill_free);

        (void)s;
        b->call = c;
        b->to_ms = BILL_TIME_MAX;
        b->groups = map_new();
        b->only = call_query(c, "account");
        b->owner = call_query(c, "owner");
        if (!call_number(c, "from_ms", BILL_TIME_MAX, &b->from_ms) ||
            !call_number(c, "to_ms", BILL_TIME_MAX, &b->to_ms) || !groups_by(c, b->by))
                return;
        call_core(c, find_accounts);
}
