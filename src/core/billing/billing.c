/* A rate's expression is evaluated in an ad of the usage (WallSeconds, Cpus, ...), whose parent is the job's
 * ad and whose target is the place's, so a user's attributes cannot shadow those computed here. The same ad
 * is made for a lien, with the requested resources in place of the usage, and for a price without a job.
 *
 * Times reported by an agent are bounded by what the server knows itself: an attempt is charged at most for
 * the time since its match.
 */
#include "core/billing/billing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "bank/bank.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/classes/admission.h"
#include "core/data/space.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/model/core_parts.h"
#include "core/model/need.h"
#include "core/model/suits.h"
#include "core/reservation/advance.h"

#define LIEN_MS      3600000
#define LIEN_MS_MIN  1000
#define LOOK_MS      1000
#define EXTEND_SLICE 200u
#define DAY_S        86400

struct rate {
        char *place, *account; /* empty: all */
        struct expr *charge;
};

struct billing {
        bool on;
        struct core_bank settings; /* settings without the rates */
        struct rate *rates;
        size_t rate_count;
        struct {
                symbol WallSeconds, CpuSeconds, Cpus, Memory, Disk, MemoryPeak, BytesIn, BytesOut,
                        BytesStored, StoredSeconds, EnergyJoules, Hour, WeekDay, Account, User, Place;
        } names;
        int64_t look_ms; /* steady clock: next look at expired liens */
};

/* Quantities that rates use, measured or expected. */
struct usage {
        struct str account, user;
        const struct queue *queue;  /* NULL: no place, or elsewhere */
        struct str elsewhere;       /* a place that is no agent's; empty: none */
        struct str qos;             /* of a use that is no job's; empty: none, or the job's */
        const struct ad *job;       /* NULL: none */
        const struct amounts *more; /* GPUs and similar resources; NULL: none */
        int64_t start_ms, wall_ms, cpu_ms, cpus, memory_mib, disk_kib, memory_peak_mib;
        uint64_t bytes_in, bytes_out, energy_uj;
        struct stored {
                uint64_t bytes;
                int64_t ms; /* 0: until somebody removes them */
        } stored;
};

void billing_init(struct core *c)
{
        c->billing = mem_new(struct billing);
#define X(name) c->billing->names.name = symbols_intern(c->symbols, STR(#name));
        X(WallSeconds)
        X(CpuSeconds)
        X(Cpus)
        X(Memory)
        X(Disk)
        X(MemoryPeak)
        X(BytesIn)
        X(BytesOut)
        X(BytesStored)
        X(StoredSeconds)
        X(EnergyJoules)
        X(Hour)
        X(WeekDay)
        X(Account)
        X(User)
        X(Place)
#undef X
}

static void rates_free(struct billing *b)
{
        for (size_t i = 0; i < b->rate_count; i++) {
                free(b->rates[i].place);
                free(b->rates[i].account);
                expr_free(b->rates[i].charge);
        }
        free(b->rates);
        b->rates = NULL;
        b->rate_count = 0;
}

void billing_deinit(struct core *c)
{
        rates_free(c->billing);
        free(c->billing);
}

int core_bank_set(struct core *c, const struct core_bank *settings, struct err *err)
{
        struct billing *b = c->billing;
        int r = 0;

        rates_free(b);
        b->settings = *settings;
        b->settings.rates = NULL;
        if (!b->settings.lien_ms)
                b->settings.lien_ms = LIEN_MS;
        if (b->settings.lien_ms < LIEN_MS_MIN)
                b->settings.lien_ms = LIEN_MS_MIN;
        b->rates = mem_array(NULL, settings->rate_count + 1, sizeof(*b->rates));
        for (size_t i = 0; i < settings->rate_count && !r; i++) {
                const struct core_bank_rate *from = &settings->rates[i];
                struct rate *to = &b->rates[b->rate_count];
                struct err why;

                *to = (struct rate){.place = NULL};
                if (expr_parse(c->symbols, from->charge, &to->charge, &why) != 0) {
                        r = err_set(err, CORE_INVALID, "the charge '" STR_FMT "': %s", STR_ARG(from->charge),
                                    why.text);
                        break;
                }
                to->place = str_dupz(from->place);
                to->account = str_dupz(from->account);
                b->rate_count++;
        }
        b->on = !r;
        return r;
}

bool core_bank_is_on(const struct core *c)
{
        return c->billing->on;
}

const struct bank *core_bank(const struct core *c)
{
        return c->bank;
}

bool billing_charges_reserved(const struct core *c)
{
        return c->billing->on && c->billing->settings.charge_reserved;
}

/* Returns whether the usage of jobs with this template is paid by their reservation. */
static bool is_prepaid(const struct core *c, const struct job_template *t)
{
        const struct advance *a = billing_charges_reserved(c) ? advance_find(c, t->reservation) : NULL;

        return a && a->account;
}

bool billing_holds(const struct core *c)
{
        return c->billing->settings.hold;
}

/* ---- orders */

static void emit(struct core *c, const struct bank_order *o)
{
        BUF_CLEANUP struct buf record = {0};
        struct event e = {.type = EVENT_BANK};

        bank_order_pack(&record, o);
        e.values = buf_view(&record);
        core_emit(c, &e, NULL);
}

int core_bank_order(struct core *c, const struct bank_order *o, uint64_t *ret_id, struct err *err)
{
        int r = bank_check(c->bank, o, c->now_ms, err);

        if (r)
                return r;
        c->bank_made = 0;
        emit(c, o);
        *ret_id = c->bank_made;
        return 0;
}

/* ---- rates */

bool billing_place_fits(struct str pattern, const struct queue *q)
{
        ptrdiff_t slash = str_find(pattern, '/');

        if (!pattern.n)
                return true;
        if (!q)
                return false;
        if (slash < 0)
                return str_eqz(pattern, q->agent->name);
        return str_eqz(str_head(pattern, (size_t)slash), q->agent->name) &&
               str_eqz(str_skip(pattern, (size_t)slash + 1), q->name);
}

static bool account_fits(const char *pattern, struct str account)
{
        struct str p = str_of(pattern);

        return p.n == 0 || shares_group_within(p, account);
}

/* A place that is no agent's is compared by its name. */
static bool place_fits(struct str pattern, const struct usage *u)
{
        if (u->queue || !u->elsewhere.n)
                return billing_place_fits(pattern, u->queue);
        return !pattern.n || str_eq(pattern, u->elsewhere) ||
               (str_starts(u->elsewhere, pattern) && u->elsewhere.p[pattern.n] == '/');
}

static const struct expr *rate_of(const struct billing *b, const struct usage *u)
{
        for (size_t i = 0; i < b->rate_count; i++)
                if (place_fits(str_of(b->rates[i].place), u) && account_fits(b->rates[i].account, u->account))
                        return b->rates[i].charge;
        return NULL;
}

static void place_print(struct buf *out, const struct queue *q)
{
        if (q)
                buf_printf(out, "%s/%s", q->agent->name, q->name);
}

static struct ad *usage_ad(struct core *c, const struct usage *u)
{
        const struct billing *b = c->billing;
        struct ad *ad = ad_new(c->symbols);
        BUF_CLEANUP struct buf place = {0};
        int64_t start_s = u->start_ms / 1000;

        place_print(&place, u->queue);
        ad_set_parent(ad, u->job);
        ad_set_real(ad, b->names.WallSeconds, (double)u->wall_ms / 1000);
        ad_set_real(ad, b->names.CpuSeconds, (double)u->cpu_ms / 1000);
        ad_set_integer(ad, b->names.Cpus, u->cpus);
        ad_set_integer(ad, b->names.Memory, u->memory_mib);
        ad_set_integer(ad, b->names.Disk, u->disk_kib);
        ad_set_integer(ad, b->names.MemoryPeak, u->memory_peak_mib);
        ad_set_integer(ad, b->names.BytesIn, (int64_t)u->bytes_in);
        ad_set_integer(ad, b->names.BytesOut, (int64_t)u->bytes_out);
        ad_set_integer(ad, b->names.BytesStored, (int64_t)u->stored.bytes);
        ad_set_integer(ad, b->names.StoredSeconds, u->stored.ms / 1000);
        ad_set_real(ad, b->names.EnergyJoules, (double)u->energy_uj / 1e6);
        ad_set_integer(ad, b->names.Hour, start_s % DAY_S / 3600);
        ad_set_integer(ad, b->names.WeekDay, (start_s / DAY_S + 4) % 7); /* 1 January 1970 was a Thursday */
        ad_set_string(ad, b->names.Account, u->account);
        ad_set_string(ad, b->names.User, u->user);
        ad_set_string(ad, b->names.Place, u->queue ? buf_view(&place) : u->elsewhere);
        ad_set_integer(ad, c->attr.GPUs, 0);
        if (u->qos.n)
                ad_set_string(ad, c->attr.QOS, u->qos);
        for (unsigned i = 0; u->more && i < u->more->count; i++)
                ad_set_integer(ad, u->more->v[i].name, u->more->v[i].n);
        return ad;
}

/* Computes the price by this rate (NULL: none) in whole units, rounded up. Returns 0, or -EINVAL: the rate
 * has no value. */
static int price_by(struct core *c, const struct expr *rate, const struct usage *u, int64_t *ret)
{
        double amount = 0;
        struct value v;
        struct ad *ad;

        *ret = 0;
        if (!rate)
                return 0;
        ad = usage_ad(c, u);
        eval_expr(&c->eval, rate, ad, u->queue ? u->queue->ad : NULL, &v);
        if (v.type == VALUE_INTEGER)
                amount = (double)v.integer;
        else if (v.type == VALUE_REAL)
                amount = ceil(v.real - 1e-9);
        else
                amount = NAN;
        ad_free(ad);
        eval_reset(&c->eval);
        if (isnan(amount))
                return -EINVAL;
        *ret = amount <= 0 ? 0 : amount >= (double)BANK_AMOUNT_MAX ? BANK_AMOUNT_MAX : (int64_t)amount;
        return 0;
}

static int price(struct core *c, const struct usage *u, int64_t *ret)
{
        return price_by(c, rate_of(c->billing, u), u, ret);
}

int core_bank_price(struct core *c, const struct core_bank_use *use, int64_t *ret_amount, struct err *err)
{
        struct amounts more = {.count = 1, .v = {{.name = c->attr.GPUs, .n = use->gpus}}};
        struct str agent = use->place, queue = STR_NONE;
        ptrdiff_t slash = str_find(agent, '/');
        struct usage u = {.account = use->account,
                          .user = use->user,
                          .qos = use->qos,
                          .more = &more,
                          .start_ms = c->now_ms,
                          .wall_ms = use->duration_ms,
                          .cpu_ms = use->duration_ms * use->cpus,
                          .cpus = use->cpus,
                          .memory_mib = use->memory_mib,
                          .memory_peak_mib = use->memory_mib};

        if (slash >= 0) {
                queue = str_skip(agent, (size_t)slash + 1);
                agent = str_head(agent, (size_t)slash);
        }
        if (agent.n) {
                MEM_CLEANUP char *name = str_dupz(agent);
                const struct core_agent *a = agent_find(c, name);

                for (struct queue *q = a ? a->queues : NULL; q && !u.queue; q = q->next)
                        if (!queue.n || str_eqz(queue, q->name))
                                u.queue = q;
                if (!u.queue)
                        u.elsewhere = use->place;
        }
        if (price(c, &u, ret_amount) == 0)
                return 0;
        return err_set(err, CORE_INVALID, "the charge rate of " STR_FMT " has no value%s",
                       STR_ARG(use->account),
                       u.elsewhere.n ? " there: it looks at the place, and no agent has that name"
                       : agent.n     ? " there"
                                     : " without a place: name one");
}

/* ---- accounts */

static bool user_is_inactive(const struct core *c, struct str owner)
{
        return registry_is_inactive(bank_users(c->bank), owner);
}

/* Returns the account that jobs with this ad belong to, whether it may pay for them or not; NULL: none. */
static struct bank_account *account_for(struct core *c, struct str owner, const struct ad *ad,
                                        const struct account *share)
{
        struct str group = charge_group(c, ad), path;
        struct bank_account *a = bank_account_above(c->bank, group);
        ptrdiff_t slash;

        if (!a && !group.n && share) {
                path = str_of(share->path);
                slash = str_find(path, '/');
                a = bank_account_above(c->bank, str_head(path, slash > 0 ? (size_t)slash : 0));
        }
        return !a && !group.n ? bank_account(c->bank, owner) : a;
}

/* Returns the bank's account that pays for jobs with this ad; NULL with why: there is none, or the owner is
 * not a member, or inactive. */
static struct bank_account *payer(struct core *c, struct str owner, const struct ad *ad,
                                  const struct account *share, struct err *why)
{
        struct str group = charge_group(c, ad);
        struct bank_account *a = account_for(c, owner, ad, share);

        if (!a && group.n)
                err_set(why, 0, "the bank has no account " STR_FMT, STR_ARG(str_head(group, BANK_NAME_MAX)));
        else if (!a)
                err_set(why, 0,
                        "the bank has no account for jobs of " STR_FMT
                        " that name none: set accounting_group to an account with this user as a member",
                        STR_ARG(owner));
        else if (user_is_inactive(c, owner)) {
                err_set(why, 0,
                        "the user " STR_FMT
                        " is inactive in the bank: an admin can say drover bank user " STR_FMT " --active",
                        STR_ARG(owner), STR_ARG(owner));
                a = NULL;
        } else if (a->closed) {
                err_set(why, 0, "the account %s is closed in the bank: name another one (accounting_group)",
                        a->name);
                a = NULL;
        } else if (!str_eqz(owner, a->name) && bank_role_of(a, owner) == BANK_ROLE_NONE) {
                err_set(why, 0,
                        STR_FMT " is no member of the account %s in the bank: its owner or an admin can "
                                "say drover bank account %s --member " STR_FMT "=user",
                        STR_ARG(owner), a->name, a->name, STR_ARG(owner));
                a = NULL;
        }
        return a;
}

/* Returns whether jobs with this ad need an account. Those that an inactive user's account would pay for are
 * not free because it does not. */
static bool wants_account(struct core *c, struct str owner, const struct ad *ad, const struct account *share)
{
        return !c->billing->settings.others_free || charge_group(c, ad).n > 0 ||
               (user_is_inactive(c, owner) && account_for(c, owner, ad, share));
}

/* Returns the fraction of the quoted amount that corresponds to this wall time. */
static int64_t quoted(const struct bank_quote *q, int64_t wall_ms)
{
        double amount = ceil((double)q->amount * (double)wall_ms / (double)q->duration_ms - 1e-9);

        return amount >= (double)BANK_AMOUNT_MAX ? BANK_AMOUNT_MAX : (int64_t)amount;
}

int billing_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err)
{
        const struct billing *b = c->billing;
        struct account *share = NULL;
        const struct bank_account *a;
        struct err why = {""};
        int r = 0;

        if (!b->on)
                return 0;
        shares_resolve(c->shares, owner, charge_group(c, ad), &share, NULL);
        a = payer(c, owner, ad, share, &why);
        if (!a && wants_account(c, owner, ad, share))
                r = err_set(err, -EINVAL, "%s", why.text);
        else if (a && b->settings.refuse && bank_available_any(a, c->now_ms) == 0 && a->held == 0)
                r = err_set(
                        err, -EINVAL,
                        "the account %s has nothing left in the bank: ask for a deposit, or use another one "
                        "(accounting_group)",
                        a->name);
        eval_reset(&c->eval);
        return r;
}

/* ---- before an attempt: balance and liens */

/* Returns the longest expected run time of an attempt of the class. */
static int64_t expected_ms(struct core *c, const struct ad *job)
{
        const symbol names[] = {c->attr.AllowedExecuteDuration, c->attr.AllowedJobDuration,
                                c->attr.ExpectedRunTime};
        int64_t seconds;

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (ad_find(job, names[i]) && eval_integer(&c->eval, job, NULL, names[i], &seconds) &&
                    seconds > 0 && seconds < INT32_MAX)
                        return seconds * 1000;
        return c->billing->settings.lien_ms;
}

/* Returns what a job leaves in a store with a capacity: the lot that it reserves, or files outside of lots. A
 * lot was paid for when it was reserved, so files in it are not counted again. */
static struct stored stored_by(const struct job_template *t, uint64_t written, uint64_t claim)
{
        struct stored s = {0};

        if (t->lot_act == LOT_RESERVE)
                s = (struct stored){.bytes = claim, .ms = t->lot_ms ? t->lot_ms : SPACE_LOT_MS};
        else if ((t->lot_act == LOT_WRITE || t->lot_act == LOT_COPY) && !t->lot_name)
                s.bytes = written < claim ? written : claim;
        return s;
}

static struct stored stored_expected(const struct job_template *t, uint32_t claim_units)
{
        uint64_t claim = (uint64_t)claim_units << SPACE_UNIT_SHIFT;

        return stored_by(t, claim, claim);
}

static struct stored stored_by_attempt(const struct job *j, const struct event *e, uint64_t written)
{
        const struct job_template *t = request_part(j->request, j->member, NULL)->job_template;
        bool succeeded =
                e->type == EVENT_EXITED && e->outcome == CORE_EXITED && !e->signaled && e->exit_code == 0;

        if (t->lot_act == LOT_RESERVE && !succeeded)
                return (struct stored){0};
        return stored_by(t, written, (uint64_t)space_drawn(j->draws) << SPACE_UNIT_SHIFT);
}

static struct usage usage_expected(struct core *c, const struct bank_account *a, struct str owner,
                                   const struct ad *job, const struct queue *q, const struct need *need,
                                   struct stored stored, int64_t wall_ms)
{
        return (struct usage){.account = str_of(a->name),
                              .user = owner,
                              .queue = q,
                              .job = job,
                              .more = &need->more,
                              .start_ms = c->now_ms,
                              .wall_ms = wall_ms,
                              .cpu_ms = wall_ms * need->cpus,
                              .cpus = need->cpus,
                              .memory_mib = need->memory_mib,
                              .disk_kib = need->disk_kib,
                              .memory_peak_mib = need->memory_mib,
                              .stored = stored};
}

/* Returns whether the job costs no more there, at today's rates, than what was quoted: its processors,
 * memory and GPUs, at the quoted place if there is one. */
static bool quote_covers(struct core *c, const struct bank_quote *q, const struct usage *job)
{
        struct core_bank_use use = {.account = str_of(q->account->name),
                                    .user = job->user,
                                    .place = q->place ? str_of(q->place) : STR_NONE,
                                    .qos = str_of(q->qos),
                                    .cpus = q->cpus ? q->cpus : 1,
                                    .memory_mib = q->memory_mib,
                                    .gpus = q->gpus,
                                    .duration_ms = q->duration_ms};
        int64_t asked, quoted_for;
        struct err err;

        return price(c, job, &asked) == 0 && core_bank_price(c, &use, &quoted_for, &err) == 0 &&
               asked <= quoted_for;
}

/* Returns whether the quote's time is not over for the member or, without a request, for one of the class. */
static bool quote_is_open(struct core *c, const struct bank_quote *q, const struct job_class *k,
                          const struct request *r, uint32_t member)
{
        const struct bucket *b;

        if (r)
                return bank_quote_is_open(q, r->id, member, c->now_ms);
        r = q->request ? request_find(c, q->request) : NULL;
        b = r && q->member < r->count ? request_bucket(c, r, q->member) : NULL;
        return bank_quote_is_open(q, k && b && b->job_class == k ? q->request : 0, q->member, c->now_ms);
}

/* Returns the number of the quote that a job with this ad names (BankQuote); 0: none. */
static uint64_t quote_named(struct core *c, const struct ad *ad)
{
        struct value v;

        if (!ad_find(ad, c->attr.BankQuote))
                return 0;
        eval_attr(&c->eval, ad, NULL, c->attr.BankQuote, &v);
        return v.type == VALUE_INTEGER && v.integer > 0 ? (uint64_t)v.integer : 0;
}

/* Returns the quote if the account has it, and the owner may use it for the member or, without a request, for
 * one of the class. NULL with why. */
static const struct bank_quote *quote_free(struct core *c, uint64_t id, const struct bank_account *a,
                                           struct str owner, const struct job_class *k,
                                           const struct request *r, uint32_t member, struct err *why)
{
        const struct bank_quote *q = bank_quote(c->bank, id);
        const char *wrong = NULL;

        if (!q || q->account != a) {
                err_set(why, 0, "quote %llu is not used: %s has none of that number, or its time is over",
                        (unsigned long long)id, a->name);
                return NULL;
        }
        if (q->user && !str_eqz(owner, q->user))
                wrong = "it is another user's";
        else if (q->used)
                wrong = "a lien was made with it already";
        else if (!quote_is_open(c, q, k, r, member))
                wrong = "its time is over";
        if (wrong)
                err_set(why, 0, "quote %llu is not used: %s", (unsigned long long)id, wrong);
        return wrong ? NULL : q;
}

/* Returns the quote that the job with this expected usage names, if it is valid at the queue. NULL: none is
 * named, or why says what is wrong with it. */
static const struct bank_quote *quote_of(struct core *c, const struct bank_account *a,
                                         const struct usage *expected, const struct job_class *k,
                                         const struct request *r, uint32_t member, struct err *why)
{
        struct usage u = *expected;
        uint64_t id = quote_named(c, u.job);
        const struct bank_quote *q = id ? quote_free(c, id, a, u.user, k, r, member, why) : NULL;

        if (!q)
                return NULL;
        u.wall_ms = q->duration_ms;
        u.cpu_ms = u.wall_ms * u.cpus;
        if (quote_covers(c, q, &u))
                return q;
        err_set(why, 0, "quote %llu is not used: by the rates the job costs more there than it is for",
                (unsigned long long)id);
        return NULL;
}

/* Returns whether the ad has a BankQuote that can be the number of none. */
static bool names_no_quote(struct core *c, const struct ad *ad)
{
        const struct expr *x = ad_find(ad, c->attr.BankQuote);
        struct value v;

        return x && !(expr_literal(x, &v) && v.type == VALUE_UNDEFINED) && quote_named(c, ad) == 0;
}

int billing_check_quote(struct core *c, struct str owner, const struct ad *ad, struct err *err)
{
        uint64_t id = c->billing->on ? quote_named(c, ad) : 0;
        struct account *share = NULL;
        const struct bank_account *a;
        struct err why = {""};
        int r = 0;

        if (c->billing->on && names_no_quote(c, ad))
                r = err_set(
                        err, -EINVAL,
                        "BankQuote is not the number of a quote: drover bank quotes lists those there are");
        if (id) {
                shares_resolve(c->shares, owner, charge_group(c, ad), &share, NULL);
                a = payer(c, owner, ad, share, NULL);
                if (a && !quote_free(c, id, a, owner, NULL, NULL, 0, &why))
                        r = err_set(err, -EINVAL, "%s: name another one, or leave out BankQuote", why.text);
        }
        eval_reset(&c->eval);
        return r;
}

static bool place_is_inactive(const struct core *c, const struct queue *q)
{
        BUF_CLEANUP struct buf place = {0};

        if (!registry_first(bank_machines(c->bank)))
                return false;
        place_print(&place, q);
        return registry_ask_place(bank_machines(c->bank), buf_view(&place)) == REGISTRY_INACTIVE;
}

bool billing_is_closed(struct core *c, const struct job_class *k, const struct queue *q)
{
        bool closed = c->billing->on && place_is_inactive(c, q) && !is_prepaid(c, k->job_template) &&
                      payer(c, str_of(k->owner), k->ad, k->account, NULL);

        eval_reset(&c->eval);
        return closed;
}

/* Computes the amount that one attempt of the class reserves there, and its account; NULL: none. ret_more, if
 * not NULL, gets what a further one at the same time reserves: a quote is for one. `unquoted` gets the reason
 * if the quote that the class names is not used. */
static enum billing_answer lien_of_class(struct core *c, const struct job_class *k, const struct queue *q,
                                         struct bank_account **ret, int64_t *ret_amount, int64_t *ret_more,
                                         struct err *why, struct err *unquoted)
{
        int64_t further = 0;

        struct str owner = str_of(k->owner);
        struct bank_account *a = payer(c, owner, k->ad, k->account, why);
        struct stored stored = stored_expected(k->job_template, k->claim_units);
        const struct bank_quote *quote;
        struct usage u;
        struct need need;

        *ret = a;
        *ret_amount = 0;
        ret_more = ret_more ? ret_more : &further;
        *ret_more = 0;
        if (is_prepaid(c, k->job_template)) {
                *ret = NULL;
                return BILLING_YES;
        }
        if (!a)
                return wants_account(c, owner, k->ad, k->account) ? BILLING_NEVER : BILLING_YES;
        if (place_is_inactive(c, q)) {
                err_set(why, 0, "%s/%s is inactive in the bank's register", q->agent->name, q->name);
                return BILLING_CLOSED;
        }
        need_of(c, k, k->ad, q->ad, &need);
        u = usage_expected(c, a, owner, k->ad, q, &need, stored, expected_ms(c, k->ad));
        quote = quote_of(c, a, &u, k, NULL, 0, unquoted);
        if (quote) {
                *ret_amount = quoted(quote, u.wall_ms);
                if (price(c, &u, ret_more) != 0)
                        *ret_more = *ret_amount;
                return BILLING_YES;
        }
        if (price(c, &u, ret_amount) == 0) {
                *ret_more = *ret_amount;
                return BILLING_YES;
        }
        err_set(why, 0, "the charge rate of %s has no value at %s/%s: an administrator must mend it", a->name,
                q->agent->name, q->name);
        return BILLING_NEVER;
}

enum billing_answer billing_ask(struct core *c, struct job_class *k, const struct queue *q,
                                uint64_t *ret_most, struct err *ret_why)
{
        BUF_CLEANUP struct buf place = {0};
        struct bank_account *a;
        int64_t amount, more, there, anywhere;
        enum billing_answer answer = lien_of_class(c, k, q, &a, &amount, &more, ret_why, NULL);

        *ret_most = UINT64_MAX;
        k->broke_at = 0;
        eval_reset(&c->eval);
        if (answer != BILLING_YES || !a || (amount == 0 && more == 0))
                return answer;
        place_print(&place, q);
        there = bank_available(a, str_of(k->owner), buf_view(&place), c->now_ms);
        if (amount > there)
                *ret_most = 0;
        else if (more > 0)
                *ret_most = 1 + (uint64_t)((there - amount) / more);
        if (*ret_most > 0)
                return BILLING_YES;
        anywhere = bank_available_any(a, c->now_ms);
        if (anywhere < amount && (anywhere + a->held >= amount || !c->billing->settings.hold))
                k->broke_at = bank_generation(c->bank) + 1;
        if (anywhere + a->held >= amount)
                return BILLING_NOT_NOW;
        err_set(ret_why, 0,
                "the account %s has %lld to spend in the bank, and the job needs %lld at %s/%s: ask for a "
                "deposit, then "
                "release the job",
                a->name, (long long)there, (long long)amount, q->agent->name, q->name);
        return BILLING_SHORT;
}

/* ---- accounts that cannot pay */

#define EMPTY_STEPS  200u /* of the evaluation of one rate: all classes of a request are asked at once */
#define MONEY_QUEUES 256u
#define MONEY_STEPS  200000u

/* Returns whether a job of the class might cost nothing at some place: no rate is for all places, or a rate
 * has the value 0 for the job, or none without a place. */
static bool may_be_free(struct core *c, const struct job_class *k, const struct bank_account *a)
{
        const struct billing *b = c->billing;
        uint32_t steps_max = c->eval.steps_max;
        bool is_free = true, ends = false;
        struct need need;
        struct usage u;

        need_of(c, k, k->ad, NULL, &need);
        u = usage_expected(c, a, str_of(k->owner), k->ad, NULL, &need,
                           stored_expected(k->job_template, k->claim_units), expected_ms(c, k->ad));
        c->eval.steps_max = EMPTY_STEPS;
        for (size_t i = 0; i < b->rate_count && !ends; i++) {
                int64_t amount;

                if (!account_fits(b->rates[i].account, u.account))
                        continue;
                is_free = price_by(c, b->rates[i].charge, &u, &amount) != 0 || amount == 0;
                ends = is_free || !b->rates[i].place[0];
        }
        c->eval.steps_max = steps_max;
        return is_free || !ends;
}

bool billing_is_empty(struct core *c, const struct job_class *k, struct err *ret_why)
{
        const struct bank_account *a;
        bool empty;

        if (!c->billing->on || !c->billing->settings.hold || is_prepaid(c, k->job_template))
                return false;
        a = payer(c, str_of(k->owner), k->ad, k->account, NULL);
        empty = a && bank_available_any(a, c->now_ms) == 0 && a->held == 0 && !may_be_free(c, k, a);
        if (empty)
                err_set(ret_why, 0,
                        "the account %s has nothing to spend in the bank: ask for a deposit, then release "
                        "the "
                        "job",
                        a->name);
        eval_reset(&c->eval);
        return empty;
}

/* Returns the least amount that a job of the class reserves at the known queues that suit it; 0: the account
 * can pay at one of them, or there are too many queues to tell; INT64_MAX: there are none. With `unquoted` it
 * asks for the quote that the job names instead: 0 if one of them is covered by it, and else the reason. */
static int64_t least_lacking(struct core *c, const struct job_class *k, const struct bank_account *a,
                             struct err *unquoted)
{
        uint64_t steps = core_steps(c);
        int64_t least = INT64_MAX;
        unsigned queues = 0;
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                const struct core_agent *agent = value;

                for (struct queue *q = agent->queues; q; q = q->next) {
                        BUF_CLEANUP struct buf place = {0};
                        struct err not_used = {""};
                        struct bank_account *payer;
                        int64_t amount;
                        struct ad *whole;
                        bool suits;

                        if (!q->ad)
                                continue;
                        if (++queues > MONEY_QUEUES || core_steps(c) - steps > MONEY_STEPS)
                                return 0;
                        whole = queue_whole_ad(c, q);
                        suits = suits_class(c, k, q, whole);
                        ad_free(whole);
                        if (!suits ||
                            lien_of_class(c, k, q, &payer, &amount, NULL, NULL, &not_used) != BILLING_YES)
                                continue;
                        place_print(&place, q);
                        if (unquoted ? !not_used.text[0]
                                     : bank_available(a, str_of(k->owner), buf_view(&place), c->now_ms) >=
                                               amount)
                                return 0;
                        if (unquoted)
                                *unquoted = not_used;
                        least = amount < least ? amount : least;
                }
        }
        return least;
}

int core_job_money(struct core *c, uint64_t request, uint32_t member, struct err *ret_why)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        const struct bank_account *a;
        char needs[64] = "";
        int64_t least;

        if (!b || !b->job_class || !set_has(&b->idle, member) || !c->billing->on ||
            is_prepaid(c, b->job_class->job_template))
                return CORE_UNKNOWN;
        a = payer(c, str_of(b->job_class->owner), b->job_class->ad, b->job_class->account, NULL);
        least = a ? least_lacking(c, b->job_class, a, NULL) : 0;
        if (a && least == INT64_MAX &&
            (bank_available_any(a, c->now_ms) > 0 || may_be_free(c, b->job_class, a)))
                least = 0;
        eval_reset(&c->eval);
        if (!a || (least == 0 && b->job_class->broke_at != bank_generation(c->bank) + 1))
                return CORE_UNKNOWN;
        if (least > 0 && least < INT64_MAX)
                snprintf(needs, sizeof(needs), ", the job needs %lld", (long long)least);
        err_set(ret_why, 0,
                "Its account in the bank, %s, has %lld to spend and %lld that is reserved%s, and cannot pay "
                "for it now: it "
                "waits for a deposit, or for jobs that use less than was reserved.",
                a->name, (long long)bank_available_any(a, c->now_ms), (long long)a->held, needs);
        return 0;
}

int core_job_quote(struct core *c, uint64_t request, uint32_t member, struct err *ret_why)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        const struct job_class *k = b && set_has(&b->idle, member) ? b->job_class : NULL;
        struct bank_account *a;
        bool is_used = true;
        uint64_t id;

        if (!k || !c->billing->on || is_prepaid(c, k->job_template))
                return CORE_UNKNOWN;
        id = quote_named(c, k->ad);
        a = id ? payer(c, str_of(k->owner), k->ad, k->account, NULL) : NULL;
        if (a && !quote_free(c, id, a, str_of(k->owner), NULL, r, member, ret_why)) {
                is_used = false;
        } else if (a) {
                int64_t least = least_lacking(c, k, a, ret_why);

                is_used = least == 0 || least == INT64_MAX;
        }
        eval_reset(&c->eval);
        return is_used ? CORE_UNKNOWN : 0;
}

enum billing_answer billing_quote(struct core *c, const struct job_class *k, const struct queue *q,
                                  int64_t *ret_amount, int64_t *ret_more, struct err *ret_why)
{
        struct bank_account *a;
        enum billing_answer answer = BILLING_YES;

        *ret_amount = 0;
        if (ret_more)
                *ret_more = 0;
        if (c->billing->on)
                answer = lien_of_class(c, k, q, &a, ret_amount, ret_more, ret_why, ret_why);
        eval_reset(&c->eval);
        return answer;
}

const char *billing_payer(struct core *c, const struct job_class *k, const struct queue *q,
                          int64_t *ret_available)
{
        BUF_CLEANUP struct buf place = {0};
        const struct bank_account *a = NULL;

        *ret_available = 0;
        if (c->billing->on && !is_prepaid(c, k->job_template))
                a = payer(c, str_of(k->owner), k->ad, k->account, NULL);
        eval_reset(&c->eval);
        if (!a)
                return NULL;
        place_print(&place, q);
        *ret_available = bank_available(a, str_of(k->owner), buf_view(&place), c->now_ms);
        return a->name;
}

bool billing_suffices(struct core *c, struct job_class *const *classes, struct queue *const *where,
                      uint64_t n)
{
        int64_t sum = 0, amount, there = INT64_MAX;
        struct err why;

        for (uint64_t i = 0; core_bank_is_on(c) && i < n; i++) {
                BUF_CLEANUP struct buf place = {0};
                struct bank_account *a;
                int64_t room;

                if (lien_of_class(c, classes[i], where[i], &a, &amount, NULL, &why, NULL) != BILLING_YES)
                        return false;
                if (!a)
                        continue;
                place_print(&place, where[i]);
                room = bank_available(a, str_of(classes[i]->owner), buf_view(&place), c->now_ms);
                there = room < there ? room : there;
                sum += amount < BANK_AMOUNT_MAX - sum ? amount : BANK_AMOUNT_MAX - sum;
        }
        return sum <= there;
}

/* ---- attempts */

static struct bank_order order_of(enum bank_op op, const struct request *r, uint32_t fence, struct str place)
{
        return (struct bank_order){
                .op = op, .user = str_of(request_owner(r)), .place = place, .request = r->id, .fence = fence};
}

/* Makes liens of this kind for the members. The bank was asked before: an amount that cannot be reserved
 * after all is charged at the end as far as possible. */
static void reserve_each(struct core *c, struct bank_order *o, const struct set *members)
{
        o->members = *members; /* borrowed */
        if (bank_check(c->bank, o, c->now_ms, NULL) != 0)
                o->amount = 0;
        if (bank_check(c->bank, o, c->now_ms, NULL) == 0)
                emit(c, o);
}

/* Returns the member of those that were given to a queue at once who may have the quote that they name: the
 * one whose it is already, or else the first. */
static uint32_t member_for_quote(const struct core *c, const struct event *e, uint64_t id)
{
        const struct bank_quote *q = bank_quote(c->bank, id);

        return q && q->request == e->request && set_has(&e->members, q->member)
                       ? q->member
                       : (uint32_t)set_first(&e->members);
}

/* Makes liens for members that were given to a queue, all with the same needs. One of them at most is paid by
 * the quote that they name. */
static void reserve(struct core *c, const struct event *e)
{
        struct request *r = request_find(c, e->request);
        uint32_t first = (uint32_t)set_first(&e->members), quoted_member;
        const struct job *j = request_job(r, first);
        const struct part *p = request_part(r, first, NULL);
        const struct ad *job = p->job_template->ad;
        struct stored stored = stored_expected(p->job_template, p->claim_units);
        struct need need = {
                .cpus = j->cpus, .memory_mib = (int64_t)j->memory_mib, .disk_kib = (int64_t)j->disk_kib};
        struct str owner = str_of(request_owner(r));
        struct bank_account *a = payer(c, owner, job, j->account, NULL);
        int64_t wall_ms = expected_ms(c, job);
        BUF_CLEANUP struct buf place = {0};
        const struct bank_quote *quote;
        struct set one = {0}, others = {0};
        struct err why = {""};
        struct bank_order o;
        struct usage u;

        if (!a || is_prepaid(c, p->job_template))
                return;
        if (j->more)
                need.more = *j->more;
        place_print(&place, j->queue);
        o = order_of(BANK_LIEN, r, e->fence, buf_view(&place));
        o.account = str_of(a->name);
        o.end_ms = c->now_ms + wall_ms;
        u = usage_expected(c, a, owner, job, j->queue, &need, stored, wall_ms);
        quoted_member = member_for_quote(c, e, quote_named(c, job));
        quote = quote_of(c, a, &u, NULL, r, quoted_member, &why);
        set_add_all(&others, &e->members);
        if (quote) {
                o.quote = quote->id;
                o.amount = quoted(quote, wall_ms);
                set_add(&one, quoted_member);
                reserve_each(c, &o, &one);
                err_set(&why, 0, "quote %llu is not used: it is for one job, and %llu.%u has it",
                        (unsigned long long)o.quote, (unsigned long long)r->id, quoted_member);
                set_remove(&others, quoted_member);
                o.quote = 0;
        }
        if (set_count(&others) > 0) {
                o.why = str_head(str_of(why.text), BANK_TEXT_MAX);
                price(c, &u, &o.amount);
                reserve_each(c, &o, &others);
        }
        set_deinit(&one);
        set_deinit(&others);
}

void billing_after(struct core *c, const struct event *e)
{
        if (c->billing->on && e->type == EVENT_MATCHED)
                reserve(c, e);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most)
{
        return x < least ? least : x > most ? most : x;
}

/* Returns the attempt's usage, from its result or, without one, from what the server has observed. */
static struct usage usage_of_attempt(struct core *c, const struct job *j, const struct bank_lien *l,
                                     const struct event *e)
{
        struct usage u = {.account = str_of(l->account->name),
                          .user = str_of(request_owner(j->request)),
                          .queue = j->queue,
                          .job = request_part(j->request, j->member, NULL)->job_template->ad,
                          .more = j->more,
                          .cpus = j->cpus,
                          .memory_mib = (int64_t)j->memory_mib,
                          .disk_kib = (int64_t)j->disk_kib};
        int64_t start_ms = e->started_ms              ? e->started_ms
                           : job_state_runs(j->state) ? j->started_ms
                                                      : c->now_ms;
        int64_t end_ms = e->ended_ms ? e->ended_ms : c->now_ms;

        u.start_ms = clamp(start_ms, l->at_ms, c->now_ms);
        u.wall_ms = clamp(end_ms - start_ms, 0, c->now_ms > l->at_ms ? c->now_ms - l->at_ms : 0);
        u.cpu_ms = e->type == EVENT_EXITED ? clamp(e->cpu_user_ms, 0, INT32_MAX * 1000ll) +
                                                     clamp(e->cpu_system_ms, 0, INT32_MAX * 1000ll)
                                           : u.wall_ms * u.cpus;
        u.memory_peak_mib = (int64_t)(e->memory_peak_bytes >> 20);
        u.bytes_in = e->bytes_in >> 63 ? 0 : e->bytes_in;
        u.bytes_out = e->bytes_out >> 63 ? 0 : e->bytes_out;
        u.energy_uj = e->energy_uj;
        u.stored = stored_by_attempt(j, e, u.bytes_out);
        return u;
}

static bool is_charged(const struct core *c, const struct event *e)
{
        if (e->type == EVENT_LOST)
                return c->billing->settings.charge_lost;
        return e->type == EVENT_EXITED && e->outcome != CORE_NOT_STARTED &&
               e->outcome != CORE_STAGING_FAILED && e->outcome != CORE_OUTCOME_LOST;
}

/* Appends what an attempt is charged for. */
static void charge_print(struct buf *out, const struct event *e, const struct usage *u,
                         const struct bank_quote *q)
{
        if (e->type == EVENT_LOST)
                buf_addz(out, "lost");
        else if (e->outcome == CORE_EXITED)
                buf_printf(out, "%s %d", e->signaled ? "signal" : "exit code", (int)e->exit_code);
        else
                buf_addz(out, e->outcome == CORE_LIMIT_EXCEEDED ? "limit exceeded" : "stopped");
        buf_printf(out, " after %lld s", (long long)((u->wall_ms + 500) / 1000));
        if (q)
                buf_printf(out, ", by quote %llu", (unsigned long long)q->id);
}

/* Settles a lien; adds the charge to *ret, with the account. */
static void settle_lien(struct core *c, const struct event *e, const struct job *j, const struct bank_lien *l,
                        struct core_usage *ret, char account[static BANK_NAME_MAX + 1])
{
        const struct bank_quote *q = bank_quote(c->bank, l->quote);
        BUF_CLEANUP struct buf place = {0}, why = {0};
        struct bank_order o;

        place_print(&place, j->queue);
        o = order_of(BANK_RELEASE, j->request, j->fence, buf_view(&place));
        set_add(&o.members, j->member);
        if (is_charged(c, e)) {
                struct usage u = usage_of_attempt(c, j, l, e);

                o.op = BANK_CHARGE;
                charge_print(&why, e, &u, q);
                o.why = buf_view(&why);
                if (q)
                        o.amount = quoted(q, u.wall_ms);
                else if (price(c, &u, &o.amount) != 0) /* the reserved amount is the best estimate */
                        o.amount = l->amount;
        }
        if (o.op == BANK_CHARGE) {
                ret->charged = true;
                ret->amount = o.amount;
        }
        snprintf(account, BANK_NAME_MAX + 1, "%s", l->account->name);
        ret->account = str_of(account);
        emit(c, &o);
        bank_order_deinit(&o);
}

/* Returns the attempt's usage, for reports. */
static struct core_usage usage_record(struct core *c, const struct event *e, const struct job *j)
{
        struct str path = str_of(j->account ? j->account->path : NULL);
        ptrdiff_t slash = str_find(path, '/');
        struct core_usage u = {.request = e->request,
                               .member = j->member,
                               .fence = j->fence,
                               /* A result may arrive before the report of the start. */
                               .starts = j->starts + (e->type == EVENT_EXITED && e->outcome == CORE_EXITED &&
                                                      !job_state_runs(j->state)),
                               .owner = str_of(request_owner(j->request)),
                               .account = slash < 0 ? path : str_head(path, (size_t)slash),
                               .agent = str_of(j->queue->agent->name),
                               .queue = str_of(j->queue->name),
                               .outcome = e->type == EVENT_EXITED ? (enum core_outcome)e->outcome
                                          : e->type == EVENT_LOST ? CORE_OUTCOME_LOST
                                                                  : CORE_NOT_STARTED,
                               .signaled = e->signaled,
                               .exit_code = e->exit_code,
                               .submitted_ms = j->request->submitted_ms,
                               .started_ms = e->started_ms              ? e->started_ms
                                             : job_state_runs(j->state) ? j->started_ms
                                                                        : 0,
                               .ended_ms = e->ended_ms ? e->ended_ms : c->now_ms,
                               .cpu_user_ms = e->cpu_user_ms,
                               .cpu_system_ms = e->cpu_system_ms,
                               .cpus = j->cpus,
                               .memory_mib = (int64_t)j->memory_mib,
                               .memory_peak_bytes = e->memory_peak_bytes,
                               .bytes_in = e->bytes_in >> 63 ? 0 : e->bytes_in,
                               .bytes_out = e->bytes_out >> 63 ? 0 : e->bytes_out,
                               .energy_uj = e->energy_uj >> 63 ? 0 : e->energy_uj,
                               .reservation = advance_of_job(j)};

        for (unsigned i = 0; j->more && i < j->more->count; i++)
                if (j->more->v[i].name == c->attr.GPUs)
                        u.gpus = j->more->v[i].n;
        if (u.started_ms)
                u.started_ms = clamp(u.started_ms, u.submitted_ms, c->now_ms);
        u.ended_ms = clamp(u.ended_ms, u.started_ms ? u.started_ms : u.submitted_ms, c->now_ms);
        return u;
}

void billing_before(struct core *c, const struct event *e)
{
        bool told = c->world.usage && !c->config.shadow;
        const struct request *r;

        if ((e->type != EVENT_EXITED && e->type != EVENT_LOST && e->type != EVENT_REFUSED) ||
            (bank_liens(c->bank) == 0 && !told))
                return;
        r = request_find(c, e->request);
        SET_FOREACH (&e->members, m) {
                const struct job *j = r ? request_job(r, (uint32_t)m) : NULL;
                const struct bank_lien *l = bank_lien_of(c->bank, e->request, (uint32_t)m);
                char account[BANK_NAME_MAX + 1];
                struct core_usage used;

                if (!j || !j->queue || j->fence != e->fence)
                        continue;
                used = usage_record(c, e, j);
                if (l && l->fence == e->fence)
                        settle_lien(c, e, j, l, &used, account);
                if (told)
                        c->world.usage(c->world.arg, &used);
        }
}

/* ---- expired liens */

static void stop_unpaid(struct core *c, const struct job *j, const struct err *why)
{
        struct event e = {.type = EVENT_VACATING,
                          .request = j->request->id,
                          .next = JOB_HELD,
                          .code = CORE_HOLD_BANK,
                          .reason = str_of(why->text)};

        if (j->state == JOB_VACATING)
                return;
        set_add(&e.members, j->member);
        core_emit(c, &e, NULL);
        c->world.control(c->world.arg, j->queue->agent->name, CORE_HOLD, j->request->id, j->fence,
                         &e.members);
        event_deinit(&e);
}

/* Extends the lien of a running attempt. */
static void extend(struct core *c, const struct job *j, const struct bank_lien *l)
{
        const struct bank_account *a = l->account;
        const struct bank_quote *quote = bank_quote(c->bank, l->quote);
        const struct part *p = request_part(j->request, j->member, NULL);
        int64_t more_ms = c->billing->settings.lien_ms, amount = 0;
        struct need need = {
                .cpus = j->cpus, .memory_mib = (int64_t)j->memory_mib, .disk_kib = (int64_t)j->disk_kib};
        struct str owner = str_of(request_owner(j->request));
        BUF_CLEANUP struct buf place = {0};
        struct err why = {""};
        struct bank_order o;
        struct usage u;
        bool is_short;

        if (j->more)
                need.more = *j->more;
        place_print(&place, j->queue);
        o = order_of(BANK_EXTEND, j->request, j->fence, buf_view(&place));
        set_add(&o.members, j->member);
        o.end_ms = c->now_ms + more_ms;
        u = usage_expected(c, a, owner, p->job_template->ad, j->queue, &need,
                           stored_expected(p->job_template, p->claim_units), c->now_ms + more_ms - l->at_ms);
        if (quote)
                amount = quoted(quote, u.wall_ms);
        else
                price(c, &u, &amount);
        o.amount = amount > l->amount ? amount - l->amount : 0;
        is_short = bank_check(c->bank, &o, c->now_ms, &why) != 0;
        if (is_short)
                o.amount = 0;
        emit(c, &o);
        bank_order_deinit(&o);
        if (is_short && c->billing->settings.stop) {
                err_prefix(&why, 0, "the job has used up what it had reserved");
                stop_unpaid(c, j, &why);
        }
}

int64_t billing_tick(struct core *c)
{
        struct billing *b = c->billing;
        const struct bank_lien *l;

        if (c->config.shadow || bank_liens(c->bank) == 0)
                return INT64_MAX;
        if (c->steady_ms < b->look_ms)
                return b->look_ms - c->steady_ms;
        b->look_ms = c->steady_ms + LOOK_MS;
        for (unsigned n = 0; n < EXTEND_SLICE && (l = bank_lien_over(c->bank, c->now_ms)) != NULL; n++) {
                const struct request *r = request_find(c, l->request);
                const struct job *j = r ? request_job(r, l->member) : NULL;

                if (j && j->queue) {
                        extend(c, j, l);
                } else {
                        struct bank_order o = {
                                .op = BANK_RELEASE, .id = l->id, .why = STR("its time is over")};

                        if (l->request) /* billing_invariant: job liens always have an attempt */
                                break;
                        emit(c, &o);
                }
        }
        return LOOK_MS;
}

struct look {
        struct core *core;
        const char *wrong;
};

static void on_lien(void *arg, const struct bank_lien *l)
{
        struct look *k = arg;
        const struct request *r = l->request ? request_find(k->core, l->request) : NULL;
        const struct job *j = r ? request_job(r, l->member) : NULL;

        if (l->request && (!j || !j->queue || j->fence != l->fence))
                k->wrong = "a lien has outlived the attempt that it was made for";
}

const char *billing_invariant(struct core *c)
{
        struct look k = {.core = c};

        bank_liens_each(c->bank, on_lien, &k);
        return k.wrong ? k.wrong : bank_invariant(c->bank);
}
