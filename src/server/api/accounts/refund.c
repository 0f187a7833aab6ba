/* Refunds of what a job was charged, of Drover's own or of another system's. The bank keeps only sums of
 * accounts; what a job was charged, and what of it was given back, is in the ledger. A refund reads it on the
 * reader thread, when all earlier refunds of the account are durable, and is carried out only if the account
 * got no other refund meanwhile: so no job gets back more than it was charged. */
#include "base/system/clock.h"
#include "core/core.h"
#include "server/api/accounts/bank.h"
#include "server/history/ledger.h"

#define REFUND_SLICE_NS      20000000
#define REFUND_SLICE_ENTRIES 256u /* the clock is read after so many movements */
#define PAID_MAX             64u

struct refund {
        json_t *doc;
        struct str name; /* of the job in another system; empty: it is Drover's */
        uint64_t request;
        uint32_t member;
        char *text; /* the job, for people */
        struct refund_account {
                char *name;
                uint64_t last_refund;
        } * accounts;
        size_t count, cap, at;
        uint64_t after; /* the last movement of accounts[at] that was read */
        int64_t until_ns, charged, refunded;
        unsigned read;
        uint32_t fence; /* the last attempt that was charged */
        char *user;     /* who has spent it; NULL: nobody is named */
        char *place;    /* where; NULL: no place is named */
        bool several;   /* users have spent it */
        struct paid {
                uint64_t allocation;
                int64_t amount;
        } paid[PAID_MAX]; /* what came from each; of more, from the first ones */
        size_t paid_count;
};

static void refund_free(void *arg)
{
        struct refund *r = arg;

        for (size_t i = 0; i < r->count; i++)
                free(r->accounts[i].name);
        free(r->accounts);
        free(r->text);
        free(r->user);
        free(r->place);
        json_decref(r->doc);
        free(r);
}

static void refund_on_charge(struct refund *r, const struct bank_entry *e)
{
        size_t at = 0;

        r->several |= r->charged > 0 && !str_eq(str_of(r->user), e->user);
        r->charged += e->amount;
        r->fence = e->fence;
        free(r->user);
        free(r->place);
        r->user = e->user.n ? str_dupz(e->user) : NULL;
        r->place = e->place.n ? str_dupz(e->place) : NULL;
        while (at < r->paid_count && r->paid[at].allocation != e->from_allocation)
                at++;
        if (at == PAID_MAX)
                return;
        if (at == r->paid_count)
                r->paid[r->paid_count++] = (struct paid){.allocation = e->from_allocation};
        r->paid[at].amount += e->amount;
}

static int refund_on_movement(void *arg, const struct bank_entry *e)
{
        struct refund *r = arg;
        struct str user = call_json_text(r->doc, "user");
        bool is_its = r->name.n ? str_eq(e->job, r->name) && (!user.n || call_owner_is(e->user, user))
                                : e->request == r->request && e->member == r->member;

        if (is_its && e->op == BANK_CHARGE) {
                refund_on_charge(r, e);
        } else if (is_its && e->op == BANK_REFUND) {
                r->refunded += e->amount;
        }
        r->after = e->serial;
        return ++r->read % REFUND_SLICE_ENTRIES == 0 && clock_mono_ns() > r->until_ns;
}

/* Returns the allocation that has paid most, if it can be spent now; 0: none of them can. */
static uint64_t paid_most(const struct refund *r, const struct bank_account *a)
{
        const struct paid *most = NULL;

        for (size_t i = 0; i < r->paid_count; i++)
                if ((!most || r->paid[i].amount > most->amount) &&
                    bank_allocation_is_open(a, r->paid[i].allocation, clock_wall_ms()))
                        most = &r->paid[i];
        return most ? most->allocation : 0;
}

static void give_back(struct server *s, struct call *c)
{
        struct refund *r = c->state;
        const json_t *amount = json_object_get(r->doc, "amount");
        struct bank_order o = {.op = BANK_REFUND,
                               .who = str_of(c->who),
                               .why = call_json_text(r->doc, "why"),
                               .user = str_of(r->user),
                               .place = str_of(r->place),
                               .job = r->name,
                               .id = (uint64_t)json_integer_value(json_object_get(r->doc, "id")),
                               .amount = amount ? json_integer_value(amount) : r->charged - r->refunded};
        const struct bank_account *a;

        if (r->at == r->count) {
                call_fail(c, 404, "not_found",
                          "no account was charged for job %s, or all of it was given back", r->text);
                return;
        }
        o.account = str_of(r->accounts[r->at].name);
        a = bank_account(core_bank(s->core), o.account);
        if (!a || a->last_refund != r->accounts[r->at].last_refund) {
                call_fail(c, 409, "conflict", "there was another refund to " STR_FMT " meanwhile: try again",
                          STR_ARG(o.account));
                return;
        }
        if (r->several && r->name.n) {
                call_fail(
                        c, 409, "conflict",
                        "several users have a job %s: say of whom (user, --user), as the statement has them",
                        r->text);
                return;
        }
        if (o.amount > r->charged - r->refunded) {
                call_fail(c, 400, "bad_request",
                          "job %s was charged %lld credits that were not given back, less than %lld", r->text,
                          (long long)(r->charged - r->refunded), (long long)o.amount);
                return;
        }
        if (!o.id)
                o.id = paid_most(r, a);
        if (!o.why.n)
                o.why = str_of(r->text);
        if (!r->name.n) {
                o.request = r->request;
                o.fence = r->fence;
                set_add(&o.members, r->member);
        }
        bank_carry_out(s, c, &o);
        bank_order_deinit(&o);
}

static call_fn read_charges;
static void read_charges_again(struct server *s, struct call *c)
{
        (void)s;
        call_reader(c, read_charges);
}

static void read_charges(struct server *s, struct call *c)
{
        struct refund *r = c->state;
        struct err err = {""};
        int e = 0;

        r->until_ns = clock_mono_ns() + REFUND_SLICE_NS;
        while (e == 0 && r->at < r->count) {
                e = ledger_read(s, str_of(r->accounts[r->at].name), 0, INT64_MAX, r->after,
                                refund_on_movement, r, &err);
                if (e || r->charged > r->refunded)
                        break;
                r->at++;
                r->after = 0;
                r->charged = r->refunded = 0;
                r->paid_count = 0;
                r->several = false;
                e = clock_mono_ns() > r->until_ns;
        }
        if (e < 0)
                call_fail_err(c, 500, "store", &err);
        else if (e > 0 && r->at < r->count)
                call_io(c, read_charges_again);
        else
                call_core(c, give_back);
}

static void refund_add_account(void *arg, const struct bank_account *a)
{
        struct refund *r = arg;
        struct str only = call_json_text(r->doc, "account");

        if ((only.n && !str_eqz(only, a->name)) || a->charged == a->refunded)
                return;
        MEM_GROW(r->accounts, r->cap, r->count + 1);
        r->accounts[r->count++] =
                (struct refund_account){.name = mem_dupz(a->name), .last_refund = a->last_refund};
}

static void find_charged(struct server *s, struct call *c)
{
        struct refund *r = c->state;

        if (c->role == ROLE_USER) {
                call_fail(c, 403, "forbidden", "only an administrator of the bank may do that");
                return;
        }
        bank_accounts_each(core_bank(s->core), refund_add_account, r);
        c->when = TURN_DURABLE; /* the reader then finds all refunds that these accounts have got */
        call_io(c, read_charges_again);
}

/* Reads a whole number from `least` on. */
static bool whole(struct call *c, const json_t *doc, const char *key, int64_t least, int64_t most)
{
        const json_t *v = json_object_get(doc, key);

        if (!v || (json_is_integer(v) && json_integer_value(v) >= least && json_integer_value(v) <= most))
                return true;
        call_fail(c, 400, "bad_request", "%s must be a whole number from %lld to %lld", key, (long long)least,
                  (long long)most);
        return false;
}

void bank_refund_job(struct call *c, json_t *doc)
{
        struct refund *r = call_state(c, sizeof(*r), refund_free);
        const json_t *request = json_object_get(doc, "request");
        BUF_CLEANUP struct buf text = {0};

        r->doc = doc;
        if (!whole(c, doc, "request", 1, INT64_MAX) || !whole(c, doc, "member", 0, UINT32_MAX) ||
            !whole(c, doc, "amount", 1, BANK_AMOUNT_MAX) || !whole(c, doc, "id", 0, INT64_MAX))
                return;
        r->request = (uint64_t)json_integer_value(request);
        r->member = (uint32_t)json_integer_value(json_object_get(doc, "member"));
        if (request)
                buf_printf(&text, "%llu.%u", (unsigned long long)r->request, r->member);
        else
                r->name = call_json_text(doc, "job");
        r->text = str_dupz(request ? buf_view(&text) : str_head(r->name, BANK_TEXT_MAX));
        call_core(c, find_charged);
}
