/* /v1/bank: accounts, orders, statements, liens, quotes, and the registers of machines and users.
 *
 * Admins give all orders; operators see everything, and charge, refund and reserve. Other users act by
 * their role in an account or in one above it. Members with the role user see its balance, ask for quotes,
 * which they may shorten and cancel, and reserve for themselves; managers also see its statement and liens,
 * charge it, and move money between accounts that they manage; owners also open accounts below it and decide
 * who is a member. */
#include "server/api/accounts/bank.h"

#include "base/system/clock.h"
#include "core/core.h"
#include "core/lifecycle/reservations.h"
#include "server/api/routes.h"
#include "server/history/ledger.h"

#define STATEMENT_DEFAULT 1000u
#define STATEMENT_MAX     10000u
#define QUOTE_MS          86400000ll
#define QUOTE_MS_MAX      (30 * QUOTE_MS)
#define LIEN_MS           3600000ll
#define LIEN_MS_MAX       (366 * 24 * LIEN_MS) /* of a member who is no operator */
#define NUMBER_MAX        4000000000000ll      /* limit of times in milliseconds, and of requested amounts */

static void bank_state_free(void *arg)
{
        json_decref(arg);
}

enum bank_role bank_caller_role(const struct call *c, const struct bank_account *a)
{
        if (c->role != ROLE_USER)
                return BANK_ROLE_OWNER;
        return a ? bank_role_of(a, str_of(c->who)) : BANK_ROLE_NONE;
}

/* ---- reading */

struct listing {
        struct json j;
        struct call *call;
        int64_t now_ms;
};

static void write_allocation(struct json *j, const struct bank_allocation *x)
{
        json_open(j, '{');
        json_kint(j, "id", (int64_t)x->id);
        json_kint(j, "amount", x->amount);
        json_kint(j, "held", x->held);
        json_kint(j, "credit", x->credit);
        if (x->start_ms)
                json_kint(j, "start_ms", x->start_ms);
        if (x->end_ms)
                json_kint(j, "end_ms", x->end_ms);
        if (x->places)
                json_kstrz(j, "places", x->places);
        if (x->users)
                json_kstrz(j, "users", x->users);
        json_close(j, '}');
}

static void write_account(struct listing *l, const struct bank_account *a)
{
        enum bank_role role = bank_caller_role(l->call, a);
        struct json *j = &l->j;

        json_open(j, '{');
        json_kstrz(j, "name", a->name);
        if (a->text)
                json_kstrz(j, "description", a->text);
        json_kint(j, "balance", a->balance);
        json_kint(j, "held", a->held);
        json_kint(j, "available", bank_available_any(a, l->now_ms));
        json_kint(j, "charged", a->charged);
        json_kint(j, "refunded", a->refunded);
        json_kint(j, "unpaid", a->unpaid);
        json_kstrz(j, "role", bank_role_name(bank_role_of(a, str_of(l->call->who))));
        json_kstrz(j, "rights", l->call->role == ROLE_USER ? bank_role_name(role) : role_name(l->call->role));
        json_kbool(j, "closed", a->closed);
        json_key(j, "allocations");
        json_open(j, '[');
        for (uint32_t i = 0; i < a->allocation_count; i++)
                write_allocation(j, a->allocations[i]);
        json_close(j, ']');
        json_key(j, "members");
        json_open(j, '[');
        for (uint32_t i = 0; i < a->member_count; i++) {
                if (role < BANK_ROLE_MANAGER && !str_eqz(str_of(a->members[i].user), l->call->who))
                        continue;
                json_open(j, '{');
                json_kstrz(j, "user", a->members[i].user);
                json_kstrz(j, "role", bank_role_name(a->members[i].role));
                json_close(j, '}');
        }
        json_close(j, ']');
        json_close(j, '}');
}

static void on_account(void *arg, const struct bank_account *a)
{
        struct listing *l = arg;

        if (bank_caller_role(l->call, a) >= BANK_ROLE_USER)
                write_account(l, a);
}

static void list_bank(struct server *s, struct call *c)
{
        struct listing l = {{.out = &c->out}, c, clock_wall_ms()};
        const struct bank *b = core_bank(s->core);

        json_open(&l.j, '{');
        json_kbool(&l.j, "on", core_bank_is_on(s->core));
        if (c->role != ROLE_USER) {
                json_kint(&l.j, "issued", -bank_issued(b));
                json_kint(&l.j, "earned", bank_earned(b));
        }
        json_key(&l.j, "accounts");
        json_open(&l.j, '[');
        bank_accounts_each(b, on_account, &l);
        json_close(&l.j, ']');
        json_close(&l.j, '}');
        call_reply(c);
}

void api_bank(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, list_bank);
}

/* Returns the account that the path names, if the caller has this role in it; NULL: the call has failed. A
 * caller who is not a member is not told whether the account exists. */
static struct bank_account *account_of(struct server *s, struct call *c, struct str name,
                                       enum bank_role least)
{
        struct bank_account *a = bank_account(core_bank(s->core), name);

        if (!a || bank_caller_role(c, a) == BANK_ROLE_NONE) {
                call_fail(c, 404, "not_found",
                          "the bank has no account " STR_FMT " of which you are a member",
                          STR_ARG(str_head(name, BANK_NAME_MAX)));
                return NULL;
        }
        if (bank_caller_role(c, a) >= least)
                return a;
        call_fail(c, 403, "forbidden", "only a %s of the account %s may do that", bank_role_name(least),
                  a->name);
        return NULL;
}

static void show_account(struct server *s, struct call *c)
{
        struct listing l = {{.out = &c->out}, c, clock_wall_ms()};
        const struct bank_account *a = account_of(s, c, c->param[0], BANK_ROLE_USER);

        if (!a)
                return;
        write_account(&l, a);
        call_reply(c);
}

void api_bank_account(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, show_account);
}

static void on_lien(void *arg, const struct bank_lien *x)
{
        struct listing *l = arg;
        bool own = x->user && str_eqz(str_of(x->user), l->call->who);

        if (!own && bank_caller_role(l->call, x->account) < BANK_ROLE_MANAGER)
                return;
        json_open(&l->j, '{');
        json_kint(&l->j, "id", (int64_t)x->id);
        json_kstrz(&l->j, "account", x->account->name);
        json_kint(&l->j, "amount", x->amount);
        json_kint(&l->j, "at_ms", x->at_ms);
        if (x->end_ms)
                json_kint(&l->j, "end_ms", x->end_ms);
        if (x->request) {
                json_kint(&l->j, "request", (int64_t)x->request);
                json_kint(&l->j, "job", x->member);
                json_kint(&l->j, "attempt", x->fence);
        }
        if (x->quote)
                json_kint(&l->j, "quote", (int64_t)x->quote);
        if (x->user)
                json_kstrz(&l->j, "user", x->user);
        if (x->place)
                json_kstrz(&l->j, "place", x->place);
        if (x->why)
                json_kstrz(&l->j, "why", x->why);
        if (x->job)
                json_kstrz(&l->j, "job_name", x->job);
        json_close(&l->j, '}');
}

static void on_quote(void *arg, const struct bank_quote *q)
{
        struct listing *l = arg;
        bool own = q->user && str_eqz(str_of(q->user), l->call->who);

        if (!own && bank_caller_role(l->call, q->account) < BANK_ROLE_MANAGER)
                return;
        json_open(&l->j, '{');
        json_kint(&l->j, "id", (int64_t)q->id);
        json_kstrz(&l->j, "account", q->account->name);
        json_kint(&l->j, "amount", q->amount);
        json_kint(&l->j, "duration_ms", q->duration_ms);
        json_kint(&l->j, "end_ms", q->end_ms);
        json_kbool(&l->j, "used", q->used);
        if (q->cpus)
                json_kint(&l->j, "cpus", q->cpus);
        if (q->memory_mib)
                json_kint(&l->j, "memory_mib", q->memory_mib);
        if (q->gpus)
                json_kint(&l->j, "gpus", q->gpus);
        if (q->user)
                json_kstrz(&l->j, "user", q->user);
        if (q->place)
                json_kstrz(&l->j, "place", q->place);
        if (q->qos)
                json_kstrz(&l->j, "qos", q->qos);
        if (q->text)
                json_kstrz(&l->j, "description", q->text);
        json_close(&l->j, '}');
}

static void list_reserved(struct server *s, struct call *c)
{
        struct listing l = {{.out = &c->out}, c, clock_wall_ms()};

        json_open(&l.j, '{');
        json_key(&l.j, "liens");
        json_open(&l.j, '[');
        bank_liens_each(core_bank(s->core), on_lien, &l);
        json_close(&l.j, ']');
        json_key(&l.j, "quotes");
        json_open(&l.j, '[');
        bank_quotes_each(core_bank(s->core), on_quote, &l);
        json_close(&l.j, ']');
        json_close(&l.j, '}');
        call_reply(c);
}

void api_bank_reserved(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, list_reserved);
}

/* Writes a register; `only` empty: all of it, or else one entry. */
static void write_registry(struct call *c, const char *key, const struct registry *r, struct str only)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_key(&j, key);
        json_open(&j, '[');
        for (const struct registry_entry *x = registry_first(r); x; x = x->next) {
                if (only.n && !str_eqz(only, x->name))
                        continue;
                json_open(&j, '{');
                json_kstrz(&j, "name", x->name);
                json_kbool(&j, "active", !x->inactive);
                if (x->text)
                        json_kstrz(&j, "description", x->text);
                if (x->arch)
                        json_kstrz(&j, "arch", x->arch);
                if (x->opsys)
                        json_kstrz(&j, "opsys", x->opsys);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
}

static void list_machines(struct server *s, struct call *c)
{
        write_registry(c, "machines", bank_machines(core_bank(s->core)), STR_NONE);
        call_reply(c);
}

void api_bank_machines(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, list_machines);
}

static void list_users(struct server *s, struct call *c)
{
        write_registry(c, "users", bank_users(core_bank(s->core)),
                       c->role == ROLE_USER ? str_of(c->who) : STR_NONE);
        call_reply(c);
}

void api_bank_users(struct server *s, struct call *c)
{
        (void)s;
        call_yield_to_client(c, list_users);
}

/* ---- statements */

struct statement {
        struct json j;
        struct call *call;
        struct str account;
        uint64_t from_ms, to_ms, after, limit, count, last;
        bool own, more; /* own: the caller sees only what he or she has spent */
};

static void write_side(struct json *j, const char *key, const char *name, uint64_t allocation)
{
        json_key(j, key);
        json_open(j, '{');
        json_kstrz(j, "account", name);
        if (allocation)
                json_kint(j, "allocation", (int64_t)allocation);
        json_close(j, '}');
}

static int on_movement(void *arg, const struct bank_entry *e)
{
        struct statement *t = arg;
        bool out = str_eqz(t->account, e->from);

        if (t->own && !str_eqz(e->user, t->call->who))
                return 0;
        if (t->count == t->limit) {
                t->more = true;
                return 1;
        }
        t->count++;
        t->last = e->serial;
        json_open(&t->j, '{');
        json_kint(&t->j, "id", (int64_t)e->serial);
        json_kint(&t->j, "at_ms", e->at_ms);
        json_kstrz(&t->j, "what", bank_op_name(e->op));
        json_kint(&t->j, "amount", out ? -e->amount : e->amount);
        json_kint(&t->j, "balance", out ? e->from_balance : e->to_balance);
        write_side(&t->j, "from", e->from, e->from_allocation);
        write_side(&t->j, "to", e->to, e->to_allocation);
        if (e->request) {
                json_kint(&t->j, "request", (int64_t)e->request);
                json_kint(&t->j, "job", e->member);
                json_kint(&t->j, "attempt", e->fence);
        }
        if (e->lien)
                json_kint(&t->j, "lien", (int64_t)e->lien);
        json_kstr(&t->j, "who", e->who.n ? e->who : STR("drover"));
        if (e->user.n)
                json_kstr(&t->j, "user", e->user);
        if (e->place.n)
                json_kstr(&t->j, "place", e->place);
        if (e->why.n)
                json_kstr(&t->j, "why", e->why);
        if (e->job.n)
                json_kstr(&t->j, "job_name", e->job);
        json_close(&t->j, '}');
        return 0;
}

static void bank_answer(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void read_statement(struct server *s, struct call *c)
{
        struct statement *t = c->state;
        struct err err = {""};
        int r;

        t->j = (struct json){.out = &c->out};
        json_open(&t->j, '{');
        json_kstr(&t->j, "account", t->account);
        json_key(&t->j, "movements");
        json_open(&t->j, '[');
        r = ledger_read(s, t->account, (int64_t)t->from_ms, (int64_t)t->to_ms, t->after, on_movement, t,
                        &err);
        json_close(&t->j, ']');
        json_key(&t->j, "next");
        if (t->more)
                json_uint(&t->j, t->last);
        else
                json_null(&t->j);
        json_close(&t->j, '}');
        if (r < 0)
                call_fail_err(c, 500, "store", &err);
        else
                call_io(c, bank_answer);
}

static void check_statement(struct server *s, struct call *c)
{
        struct statement *t = c->state;
        const struct bank_account *a = account_of(s, c, t->account, BANK_ROLE_USER);

        if (!a)
                return;
        t->own = bank_caller_role(c, a) < BANK_ROLE_MANAGER;
        call_reader(c, read_statement);
}

void api_bank_statement(struct server *s, struct call *c)
{
        struct statement *t = call_state(c, sizeof(*t), NULL);

        (void)s;
        t->call = c;
        t->account = c->param[0];
        t->to_ms = INT64_MAX;
        t->limit = STATEMENT_DEFAULT;
        if (!call_number(c, "from_ms", NUMBER_MAX, &t->from_ms) ||
            !call_number(c, "to_ms", NUMBER_MAX, &t->to_ms) ||
            !call_number(c, "after", INT64_MAX, &t->after) || !call_number(c, "limit", UINT32_MAX, &t->limit))
                return;
        if (t->limit == 0)
                t->limit = STATEMENT_DEFAULT;
        if (t->limit > STATEMENT_MAX)
                t->limit = STATEMENT_MAX; /* one page; "next" leads to the following one */
        call_core(c, check_statement);
}

/* ---- orders */

struct asked { /* what an order says will be used */
        bool given;
        struct core_bank_use use;
};

/* Reads a whole number that is absent or not negative. */
static bool number(struct call *c, const char *key, int64_t most, int64_t *ret)
{
        const json_t *v = json_object_get(c->state, key);

        if (!v)
                return true;
        *ret = json_integer_value(v);
        if (json_is_integer(v) && *ret >= 0 && *ret <= most)
                return true;
        call_fail(c, 400, "bad_request", "%s must be a whole number from 0 to %lld", key, (long long)most);
        return false;
}

static bool is_empty_text(const struct call *c, const char *key)
{
        const json_t *v = json_object_get(c->state, key);

        return json_is_string(v) && json_string_length(v) == 0;
}

/* Checks that nothing is asked for which the bank does not keep. */
static bool is_kept(struct call *c, const struct bank_order *o)
{
        if (o->op == BANK_MEMBER && o->role && str_find(o->user, ',') >= 0)
                call_fail(c, 400, "bad_request", "a member is one user, or one pattern, without commas");
        else if (is_empty_text(c, "job"))
                call_fail(c, 400, "bad_request", "the name of the job is empty");
        else if (o->op == BANK_SET && !o->activity && o->why.n)
                call_fail(c, 400, "bad_request", "a change of an allocation keeps no reason");
        else if (o->op == BANK_SET && !o->activity && !json_object_get(c->state, "start_ms") &&
                 !json_object_get(c->state, "end_ms") && !json_object_get(c->state, "credit"))
                call_fail(c, 400, "bad_request",
                          "nothing is changed: give a start, an end or a credit limit");
        else
                return true;
        return false;
}

static bool read_order(struct call *c, struct bank_order *o, struct asked *ret_asked)
{
        const json_t *doc = c->state;
        struct core_bank_use *use = &ret_asked->use;
        int64_t id = 0, quote = 0, cpus = 0;

        *o = (struct bank_order){.account = call_json_text(doc, "account"),
                                 .to = call_json_text(doc, "to"),
                                 .user = call_json_text(doc, "user"),
                                 .place = call_json_text(doc, "place"),
                                 .places = call_json_text(doc, "places"),
                                 .users = call_json_text(doc, "users"),
                                 .why = call_json_text(doc, "why"),
                                 .job = call_json_text(doc, "job"),
                                 .qos = call_json_text(doc, "qos"),
                                 .arch = call_json_text(doc, "arch"),
                                 .opsys = call_json_text(doc, "opsys"),
                                 .who = str_of(c->who)};
        *use = (struct core_bank_use){.cpus = 1};
        if (!bank_op_parse(call_json_text(doc, "op"), &o->op)) {
                call_fail(c, 400, "bad_request",
                          "op must be open, member, deposit, withdraw, transfer, set, quote, lien, "
                          "extend, release, charge, refund, register, machine, user, unregister, close, "
                          "requote, cancel or account");
                return false;
        }
        if (!bank_activity_parse(call_json_text(doc, "state"), &o->activity)) {
                call_fail(c, 400, "bad_request", "state must be active or inactive");
                return false;
        }
        if (o->op == BANK_MEMBER && !bank_role_parse(call_json_text(doc, "role"), &o->role)) {
                call_fail(c, 400, "bad_request", "role must be none, user, manager or owner");
                return false;
        }
        if (!number(c, "id", INT64_MAX, &id) || !number(c, "quote", INT64_MAX, &quote) ||
            !number(c, "amount", BANK_AMOUNT_MAX, &o->amount) ||
            !number(c, "credit", BANK_AMOUNT_MAX, &o->credit) ||
            !number(c, "start_ms", NUMBER_MAX, &o->start_ms) ||
            !number(c, "end_ms", NUMBER_MAX, &o->end_ms) ||
            !number(c, "duration_ms", NUMBER_MAX, &o->duration_ms) || !number(c, "cpus", 1000000, &cpus) ||
            !number(c, "memory_mib", NUMBER_MAX, &use->memory_mib) || !number(c, "gpus", 1000000, &use->gpus))
                return false;
        o->id = (uint64_t)id;
        o->quote = (uint64_t)quote;
        o->cpus = (uint32_t)cpus;
        o->memory_mib = use->memory_mib;
        o->gpus = (uint32_t)use->gpus;
        o->clears = (is_empty_text(c, "why") ? BANK_CLEARS_WHY : 0u) |
                    (is_empty_text(c, "arch") ? BANK_CLEARS_ARCH : 0u) |
                    (is_empty_text(c, "opsys") ? BANK_CLEARS_OPSYS : 0u);
        if (cpus)
                use->cpus = cpus;
        use->account = o->account;
        use->user = o->user;
        use->place = o->place;
        use->qos = o->qos;
        use->duration_ms = o->duration_ms;
        ret_asked->given = o->duration_ms > 0 && !json_object_get(doc, "amount");
        return is_kept(c, o);
}

static struct str parent_of(struct str name)
{
        ptrdiff_t dot = str_find(name, '@') < 0 ? str_rfind(name, '.') : -1;

        return str_head(name, dot > 0 ? (size_t)dot : 0);
}

static bool is_about_register(const struct bank_order *o)
{
        return o->op == BANK_REGISTER || o->op == BANK_MACHINE || o->op == BANK_USER ||
               o->op == BANK_UNREGISTER;
}

static bool is_about_account(const struct bank_order *o)
{
        return o->op == BANK_OPEN || o->op == BANK_CLOSE || o->op == BANK_ACCOUNT;
}

/* A quote may be changed by whoever may make it: its user, and managers of its account. Only operators may
 * have a promise last longer than it was made for. Returns false if the call has failed. */
static bool may_change_quote(struct server *s, struct call *c, const struct bank_order *o)
{
        const struct bank_quote *q = bank_quote(core_bank(s->core), o->quote);
        bool own = q && q->user && str_eqz(str_of(q->user), c->who);

        if (!q || bank_caller_role(c, q->account) < (own ? BANK_ROLE_USER : BANK_ROLE_MANAGER)) {
                call_fail(c, 404, "not_found", "there is no quote %llu that is yours or your account's",
                          (unsigned long long)o->quote);
                return false;
        }
        if (o->op == BANK_REQUOTE && o->end_ms > q->end_ms && c->role == ROLE_USER) {
                call_fail(c, 403, "forbidden",
                          "only an operator or an admin may have a quote last longer: ask for a new one");
                return false;
        }
        return true;
}

/* Checks that the caller has the role that the order needs in its account. Orders that create or destroy
 * money, and those about the registers, are for admins. */
static bool may_order(struct server *s, struct call *c, const struct bank_order *o)
{
        const struct bank *b = core_bank(s->core);
        const struct bank_lien *l = bank_lien(b, o->id);
        const struct bank_quote *q = o->op == BANK_LIEN ? bank_quote(b, o->quote) : NULL;
        struct str account = o->account;
        enum bank_role least = BANK_ROLE_MANAGER;

        for (const struct advance *x = core_reserved_first(s->core); l && x; x = x->next)
                if (x->lien == o->id &&
                    (o->op == BANK_EXTEND || o->op == BANK_RELEASE || o->op == BANK_CHARGE)) {
                        call_fail(
                                c, 409, "conflict",
                                "lien %llu pays for reservation %llu: end that one (drover reserve end %llu)",
                                (unsigned long long)o->id, (unsigned long long)x->id,
                                (unsigned long long)x->id);
                        return false;
                }
        if (c->role == ROLE_ADMIN)
                return true;
        if (o->op == BANK_DEPOSIT || o->op == BANK_WITHDRAW || o->op == BANK_SET || is_about_register(o) ||
            (o->op == BANK_REFUND && c->role == ROLE_USER) ||
            (is_about_account(o) && !parent_of(account).n)) {
                call_fail(c, 403, "forbidden", "only an administrator of the bank may do that");
                return false;
        }
        if (o->op == BANK_REQUOTE || o->op == BANK_CANCEL)
                return may_change_quote(s, c, o);
        if (c->role == ROLE_OPERATOR)
                return !is_about_account(o) && o->op != BANK_MEMBER && o->op != BANK_TRANSFER
                               ? true
                               : (call_fail(c, 403, "forbidden",
                                            "only an admin, or an owner of the account, may do that"),
                                  false);
        if ((o->op == BANK_EXTEND || o->op == BANK_RELEASE || (o->op == BANK_CHARGE && o->id))) {
                if (!l) {
                        call_fail(c, 404, "not_found", "there is no lien %llu", (unsigned long long)o->id);
                        return false;
                }
                account = str_of(l->account->name);
                /* one's own, for oneself: money may be set aside for others */
                if (l->user && str_eqz(str_of(l->user), c->who) && (!o->user.n || str_eqz(o->user, c->who)))
                        least = BANK_ROLE_USER;
        } else if (o->op == BANK_CLOSE || (o->op == BANK_ACCOUNT && o->activity == BANK_INACTIVE)) {
                account = parent_of(account);
                least = BANK_ROLE_OWNER;
        } else if (o->op == BANK_OPEN || o->op == BANK_ACCOUNT) {
                account = bank_account(b, account) ? account : parent_of(account);
                least = BANK_ROLE_OWNER;
        } else if (o->op == BANK_MEMBER) {
                least = BANK_ROLE_OWNER;
        } else if ((o->op == BANK_QUOTE || o->op == BANK_LIEN) && str_eqz(o->user, c->who)) {
                least = BANK_ROLE_USER;
        }
        if (!account_of(s, c, account, least))
                return false;
        if (q && q->user && !str_eqz(o->user, q->user) &&
            bank_caller_role(c, bank_account(b, account)) < BANK_ROLE_MANAGER) {
                call_fail(c, 404, "not_found",
                          "there is no quote %llu for " STR_FMT
                          ", and only a manager of the account may use another user's",
                          (unsigned long long)q->id, STR_ARG(str_head(o->user, BANK_NAME_MAX)));
                return false;
        }
        return o->op != BANK_TRANSFER || account_of(s, c, o->to, BANK_ROLE_MANAGER);
}

/* Checks that a caller who is not an operator leaves room in the bank's tables for others. An order for an
 * existing account opens none. */
static bool has_share(struct server *s, struct call *c, const struct bank_order *o)
{
        const struct bank *b = core_bank(s->core);

        if (c->role != ROLE_USER || (o->op == BANK_OPEN && bank_account(b, o->account)) ||
            bank_share_is_left(b, o->op, o->account, clock_wall_ms()))
                return true;
        call_fail(c, 409, "conflict",
                  "the account " STR_FMT
                  " and those beside it have as many of these as one project may have: "
                  "wait until some have ended, or ask an administrator",
                  STR_ARG(str_head(o->account, BANK_NAME_MAX)));
        return false;
}

/* Returns whether a use at this place, of which nothing may be said, is one that the quote is for. */
static bool quote_is_for_place(const struct bank_quote *q, struct str place)
{
        return !q->place || !place.n || bank_place_fits(str_of(q->place), place);
}

/* The part of the promised price for a use that is no larger than what the quote is for, and there. Returns
 * false if the quote does not cover the use. */
static bool quoted_price(const struct bank_quote *q, const struct core_bank_use *use, int64_t *ret)
{
        if (!q || use->cpus > (q->cpus ? q->cpus : 1) || use->memory_mib > q->memory_mib ||
            use->gpus > q->gpus || !quote_is_for_place(q, use->place) ||
            (use->qos.n && !str_eq(use->qos, str_of(q->qos))))
                return false;
        *ret = (int64_t)(((__int128)q->amount * use->duration_ms + q->duration_ms - 1) / q->duration_ms);
        return *ret <= BANK_AMOUNT_MAX;
}

/* Fills in what a change of an allocation leaves as it is. */
static void complete_set(struct server *s, struct call *c, struct bank_order *o)
{
        const struct bank_account *a = bank_account(core_bank(s->core), o->account);

        for (uint32_t i = 0; a && i < a->allocation_count; i++) {
                const struct bank_allocation *x = a->allocations[i];

                if (x->id != o->id)
                        continue;
                if (!json_object_get(c->state, "start_ms"))
                        o->start_ms = x->start_ms;
                if (!json_object_get(c->state, "end_ms"))
                        o->end_ms = x->end_ms;
                if (!json_object_get(c->state, "credit"))
                        o->credit = x->credit;
        }
}

/* Fills in what the order leaves out: the price by the rates, times, and the user it is for. */
static bool complete(struct server *s, struct call *c, struct bank_order *o, const struct asked *asked)
{
        const struct bank_quote *q = bank_quote(core_bank(s->core), o->quote);
        int64_t now_ms = clock_wall_ms();
        struct err err = {""};

        if (o->op == BANK_QUOTE && (o->duration_ms == 0 || json_object_get(c->state, "amount"))) {
                call_fail(c, 400, "bad_request",
                          "a quote needs duration_ms; its amount is computed by the rates");
                return false;
        }
        if (o->op == BANK_SET)
                complete_set(s, c, o);
        if (o->op == BANK_QUOTE && !o->end_ms)
                o->end_ms = now_ms + QUOTE_MS;
        if (o->op == BANK_QUOTE && c->role == ROLE_USER && o->end_ms > now_ms + QUOTE_MS_MAX) {
                call_fail(c, 400, "bad_request", "a quote holds for 30 days at most");
                return false;
        }
        if (o->op == BANK_LIEN && !o->end_ms)
                o->end_ms = now_ms + (o->duration_ms ? o->duration_ms : LIEN_MS);
        if ((o->op == BANK_LIEN || o->op == BANK_EXTEND) && c->role == ROLE_USER &&
            o->end_ms > now_ms + LIEN_MS_MAX) {
                call_fail(c, 400, "bad_request", "a lien holds for 366 days at most");
                return false;
        }
        if (o->op == BANK_LIEN && q && !quote_is_for_place(q, o->place)) {
                call_fail(c, 409, "conflict", "quote %llu is for %s, not for " STR_FMT,
                          (unsigned long long)q->id, q->place, STR_ARG(str_head(o->place, BANK_TEXT_MAX)));
                return false;
        }
        if (o->op == BANK_LIEN && q && o->qos.n && !str_eq(o->qos, str_of(q->qos))) {
                call_fail(c, 409, "conflict", "quote %llu is for %s, not for the QOS " STR_FMT,
                          (unsigned long long)q->id, q->qos ? q->qos : "no QOS",
                          STR_ARG(str_head(o->qos, BANK_NAME_MAX)));
                return false;
        }
        if (o->op == BANK_LIEN && q && q->place && !o->place.n)
                o->place = str_of(q->place); /* its charge is for a use there */
        if (o->op == BANK_LIEN && q && !json_object_get(c->state, "amount"))
                o->amount = q->amount;
        else if (asked->given && (o->op == BANK_QUOTE || o->op == BANK_LIEN || o->op == BANK_CHARGE)) {
                const struct bank_lien *l =
                        o->op == BANK_CHARGE ? bank_lien(core_bank(s->core), o->id) : NULL;
                struct core_bank_use use = asked->use;
                const struct bank_quote *lq = NULL; /* the lien's */

                if (l) {
                        use.account = str_of(l->account->name);
                        use.place = use.place.n ? use.place : str_of(l->place);
                        lq = bank_quote(core_bank(s->core), l->quote);
                }
                if (quoted_price(lq, &use, &o->amount))
                        return true;
                if (lq && !use.qos.n)
                        use.qos = str_of(lq->qos);
                if (core_bank_price(s->core, &use, &o->amount, &err) != 0) {
                        call_fail_err(c, 400, "bad_request", &err);
                        return false;
                }
        }
        return true;
}

/* Finds the lien by the name of its job in another system. A charge of a job without a lien is one of the
 * account. */
static void find_named(struct server *s, struct call *c, struct bank_order *o)
{
        const struct bank_lien *l;

        (void)c;
        if (!o->job.n)
                return;
        if (!o->why.n)
                o->why = o->job;
        if (o->id || (o->op != BANK_CHARGE && o->op != BANK_RELEASE && o->op != BANK_EXTEND))
                return;
        l = bank_lien_named(core_bank(s->core), o->account, o->user.n ? o->user : str_of(c->who), o->job);
        if (l)
                o->id = l->id;
}

void bank_carry_out(struct server *s, struct call *c, const struct bank_order *o)
{
        struct listing l = {{.out = &c->out}, c, clock_wall_ms()};
        uint64_t id = 0, lien = o->op == BANK_CHARGE ? o->id : 0;
        const struct bank_account *a;
        struct err err = {""};
        int r;

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        r = core_bank_order(s->core, o, &id, &err);
        if (r != 0) {
                call_fail_err(c,
                              r == BANK_UNKNOWN   ? 404
                              : r == BANK_INVALID ? 400
                                                  : 409,
                              r == BANK_UNKNOWN   ? "not_found"
                              : r == BANK_INVALID ? "bad_request"
                              : r == BANK_SHORT   ? "insufficient_funds"
                                                  : "conflict",
                              &err);
                return;
        }
        json_open(&l.j, '{');
        json_kstrz(&l.j, "op", bank_op_name(o->op));
        if (id)
                json_kint(&l.j, "id", (int64_t)id);
        json_kint(&l.j, "amount", o->amount);
        if (lien)
                json_kint(&l.j, "lien", (int64_t)lien);
        if (is_about_register(o) && o->place.n)
                json_kstr(&l.j, "place", o->place);
        if (is_about_register(o) && !o->place.n)
                json_kstr(&l.j, "user", o->user);
        if (o->end_ms)
                json_kint(&l.j, "end_ms", o->end_ms);
        a = bank_account(core_bank(s->core), o->account);
        if (a && bank_caller_role(c, a) != BANK_ROLE_NONE) {
                json_key(&l.j, "account");
                write_account(&l, a);
        }
        json_close(&l.j, '}');
        c->when = TURN_DURABLE;
        call_io(c, bank_answer);
}

/* Checks that an account that is to be a new one is not there. */
static bool is_new_if_asked(struct server *s, struct call *c, const struct bank_order *o)
{
        if (o->op != BANK_OPEN || !json_is_true(json_object_get(c->state, "new")) ||
            !bank_account(core_bank(s->core), o->account))
                return true;
        call_fail(c, 409, "conflict", "the bank has the account " STR_FMT " already",
                  STR_ARG(str_head(o->account, BANK_NAME_MAX)));
        return false;
}

static void carry_out(struct server *s, struct call *c)
{
        struct asked asked;
        struct bank_order o;

        if (!read_order(c, &o, &asked))
                return;
        if (!o.user.n && (o.op == BANK_QUOTE || o.op == BANK_LIEN || (o.op == BANK_CHARGE && !o.id)))
                o.user = asked.use.user = str_of(c->who);
        find_named(s, c, &o);
        if (may_order(s, c, &o) && is_new_if_asked(s, c, &o) && has_share(s, c, &o) &&
            complete(s, c, &o, &asked))
                bank_carry_out(s, c, &o);
}

void api_bank_order(struct server *s, struct call *c)
{
        json_t *doc = call_json(c);

        (void)s;
        if (!doc)
                return;
        if (str_eqz(call_json_text(doc, "op"), "refund") &&
            (json_object_get(doc, "request") || call_json_text(doc, "job").n)) {
                bank_refund_job(c, doc);
                return;
        }
        c->state = doc;
        c->state_free = bank_state_free;
        call_core(c, carry_out);
}
