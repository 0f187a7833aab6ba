/* An owner's totals are limits too: "user/ann@local" has a unit for each of the owner's attempts,
 * "queued/ann@local" one for each job that has not ended, and "queued_kib/ann@local" the KiB that the
 * owner's requests take until they are forgotten. So they have numbers, waiting lists and listings like
 * other limits. */
#include "core/fairness/charge.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/data/data_state.h"
#include "core/data/space.h"
#include "core/fairness/order.h"
#include "core/fairness/qos.h"
#include "core/model/core_parts.h"
#include "core/model/item.h"
#include "core/model/pending_match.h"

static struct limit *owner_limit(struct core *c, const char *pool, const char *owner)
{
        struct buf BUF_CLEANUP name = {0};

        buf_addz(&name, pool);
        buf_char(&name, '/');
        buf_addz(&name, owner);
        return limits_get(c->limits, buf_view(&name));
}

struct limit *charge_user(const struct request *r)
{
        return r->owner ? r->owner->user : NULL;
}

static void on_woken(void *arg, struct limit_waiter *w)
{
        job_class_look_again(arg, container_of(w, struct job_class, waits));
}

void charge_limit_grew(struct core *c, struct limit *x)
{
        limit_give_back(x, 0, on_woken, c);
        limit_give_back(c->fairness->some_limit, 0, on_woken, c);
}

void charge_money_changed(struct core *c)
{
        if (c->fairness->money->line)
                limit_give_back(c->fairness->money, 0, on_woken, c);
}

/* ---- classes */

static struct str text_of(struct core *c, const struct ad *ad, symbol name)
{
        struct str text = STR_NONE;

        if (ad_find(ad, name) && !item_text(c, ad, name, &text))
                text = STR_NONE;
        return text;
}

struct str charge_group(struct core *c, const struct ad *ad)
{
        struct str group = text_of(c, ad, c->attr.AcctGroup);

        if (group.n)
                return group;
        group = text_of(c, ad, c->attr.AccountingGroup);
        return str_find(group, '.') > 0 ? group : STR_NONE; /* a name without a dot is a user's */
}

/* Returns whether the attribute is not a literal, and may differ from place to place. */
static bool varies(const struct ad *ad, symbol name)
{
        struct value v;

        return ad_find(ad, name) && !ad_literal(ad, name, &v);
}

/* Adds Drover's own limits ("qos/urgent,") to a list of draws. Returns 0; or -EINVAL, -E2BIG, and nothing
 * has changed. */
static int draw_too(struct core *c, struct draws **draws, struct buf *more, struct err *err)
{
        struct draws *with;
        int r;

        buf_addz(more, *draws ? (*draws)->text : "");
        r = limits_parse(c->limits, buf_view(more), true, &with, err);
        if (r != 0)
                return r;
        draws_unref(c->limits, *draws);
        *draws = with;
        return 0;
}

static bool category_char(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '-';
}

/* Appends "category/ann@lab/TEXT,": the limit that JobCategory names, shared by all jobs of its owner with
 * that text. A text that cannot be a limit's name is ignored. */
static void add_category(struct core *c, const struct job_class *k, struct buf *out)
{
        BUF_CLEANUP struct buf name = {0};
        struct value v;

        if (!ad_literal(k->ad, c->attr.JobCategory, &v) || v.type != VALUE_STRING || v.string.n == 0 ||
            v.string.n > LIMIT_NAME_MAX / 2)
                return;
        for (size_t i = 0; i < v.string.n; i++)
                if (!category_char(v.string.p[i]))
                        return;
        buf_addz(&name, "category/");
        for (const char *p = k->owner; *p; p++)
                buf_char(&name, category_char(*p) || *p == '@' || *p == '.' ? *p : '_');
        buf_printf(&name, "/" STR_FMT ",", STR_ARG(v.string));
        if (name.n <= LIMIT_NAME_MAX)
                buf_str(out, buf_view(&name));
}

/* Sets that limit's size from its jobs, which all give the same. */
static void size_category(struct core *c, const struct job_class *k)
{
        int64_t max;

        if (!ad_find(k->ad, c->attr.JobCategory) || !item_integer(c, k->ad, c->attr.JobCategoryMax, &max) ||
            max < 1)
                return;
        for (size_t i = 0; k->draws && i < k->draws->count; i++)
                if (str_starts(str_of(k->draws->v[i].limit->name), STR("category/")))
                        k->draws->v[i].limit->max = max;
}

/* Appends "placing/ann@lab,", the limit on an owner's placement jobs. */
static void add_places(const struct job_class *k, struct buf *out)
{
        if (!k->places)
                return;
        buf_addz(out, "placing/");
        for (const char *p = k->owner; *p; p++)
                buf_char(out, category_char(*p) || *p == '@' || *p == '.' ? *p : '_');
        buf_char(out, ',');
}

/* Appends the stores that the members read from and write to, as limits. */
static void add_stores(const struct core *c, const struct job_class *k, struct buf *out)
{
        const struct core_store *all = c->data->sites.stores;

        for (size_t i = 0; i < c->data->sites.store_count && i < 64; i++) {
                if (k->stores >> i & 1)
                        buf_printf(out, "store/" STR_FMT ",", STR_ARG(all[i].urls.name));
                if (k->stores_into >> i & 1 && k->into <= c->data->sites.store_count)
                        buf_printf(out, "store_from/" STR_FMT "/" STR_FMT ",",
                                   STR_ARG(all[k->into - 1].urls.name), STR_ARG(all[i].urls.name));
        }
        if (k->written && k->written <= c->data->sites.store_count)
                buf_printf(out, "store_in/" STR_FMT ",", STR_ARG(all[k->written - 1].urls.name));
}

/* Appends the limits on space of the store that the members write to. */
static void add_space(const struct core *c, const struct job_class *k, struct buf *out)
{
        const struct job_template *t = k->job_template;
        struct space_draw d = {.store = k->claim_store,
                               .owner = str_of(k->owner),
                               .name = str_of(t->lot_name ? t->lot_name : ""),
                               .units = k->claim_units,
                               .reserves = t->lot_act == LOT_RESERVE};

        if (k->claim_units && k->claim_store < c->data->sites.store_count)
                space_draws(c, &d, out);
}

/* Adds the limits of the members' stores and category. */
static int add_own_pools(struct core *c, const struct job_class *k, struct draws **draws, struct err *err)
{
        BUF_CLEANUP struct buf own = {0};

        add_category(c, k, &own);
        add_places(k, &own);
        add_stores(c, k, &own);
        add_space(c, k, &own);
        return own.n ? draw_too(c, draws, &own, err) : 0;
}

/* Reads the draws of a job's ad and quality of service. Returns 0 and a reference; or -EINVAL, -E2BIG, and
 * no reference. */
static int parse_draws(struct core *c, const struct ad *ad, const struct ad *place, struct draws **ret,
                       struct err *err)
{
        const struct qos *qos = qos_of(c, ad);
        BUF_CLEANUP struct buf own = {0};
        struct value v = {.type = VALUE_UNDEFINED};
        int r = 0;

        *ret = NULL;
        if (ad_find(ad, c->attr.ConcurrencyLimits))
                eval_attr(&c->eval, ad, place, c->attr.ConcurrencyLimits, &v);
        if (v.type != VALUE_UNDEFINED && v.type != VALUE_STRING)
                return err_set(err, -EINVAL, "ConcurrencyLimits is no text");
        if (v.type == VALUE_STRING)
                r = limits_parse(c->limits, v.string, false, ret, err);
        if (r != 0 || !qos)
                return r;
        buf_printf(&own, "qos/%s,", qos->name);
        r = draw_too(c, ret, &own, err);
        if (r != 0) {
                draws_unref(c->limits, *ret);
                *ret = NULL;
        }
        return r;
}

void charge_class_init(struct core *c, struct job_class *k)
{
        struct str owner = str_of(k->owner);

        k->user = owner_limit(c, "user", k->owner);
        owner_limit(c, "queued_kib", k->owner)->used += k->kib;
        k->qos = qos_of(c, k->ad);
        k->draws_vary = varies(k->ad, c->attr.ConcurrencyLimits);
        /* Late attributes are first examined here: an invalid one keeps the class waiting, and `why`
         * explains it. */
        if (!k->draws_vary)
                k->draws_bad = parse_draws(c, k->ad, NULL, &k->draws, NULL) != 0 ||
                               add_own_pools(c, k, &k->draws, NULL) != 0;
        size_category(c, k);
        k->credential = credential_points(c, owner, charge_group(c, k->ad), k->ad);
        if (shares_resolve(c->shares, owner, charge_group(c, k->ad), &k->account, NULL) != 0)
                shares_resolve(c->shares, owner, STR_NONE, &k->account, NULL);
        eval_reset(&c->eval);
}

void charge_class_deinit(struct core *c, struct job_class *k)
{
        limit_leave(&k->waits);
        draws_unref(c->limits, k->draws);
        k->draws = NULL;
        owner_limit(c, "queued_kib", k->owner)->used -= k->kib;
}

bool charge_must_wait(struct core *c, struct job_class *k)
{
        struct limit *shortest;

        if (k->draws_bad)
                return true;
        if (k->broke_at == bank_generation(c->bank) + 1) {
                limit_wait(c->fairness->money, &k->waits);
                return true;
        }
        if (charge_room(k, k->draws, &shortest) > 0) {
                if (k->draws_vary)
                        limit_wait(c->fairness->some_limit, &k->waits);
                return false;
        }
        limit_wait(shortest, &k->waits);
        return true;
}

int charge_draws(struct core *c, const struct job_class *k, const struct queue *q, struct draws **ret,
                 struct err *err)
{
        int r;

        *ret = NULL;
        if (!k->draws_vary) {
                *ret = draws_ref(k->draws);
                return 0;
        }
        r = parse_draws(c, k->ad, q->ad, ret, err);
        if (r == 0)
                r = add_own_pools(c, k, ret, err);
        if (r == 0)
                return 0;
        draws_unref(c->limits, *ret);
        *ret = NULL;
        return -EINVAL;
}

uint32_t charge_room(const struct job_class *k, const struct draws *d, struct limit **ret_short)
{
        uint32_t room = draws_room(d, ret_short), own = limit_room(k->user);

        if (own >= room)
                return room;
        if (ret_short)
                *ret_short = k->user;
        return own;
}

/* ---- attempts */

/* Counts what begins and resumes have in common; the account's part differs. */
static int take_units(struct core *c, struct job *j, struct str account, struct str draws, struct err *err)
{
        int r = limits_parse(c->limits, draws, true, &j->draws, err);

        if (r)
                return r;
        j->charged = true;
        draws_take(j->draws);
        if (charge_user(j->request))
                charge_user(j->request)->used++;
        j->account = account.n ? shares_leaf(c->shares, account) : NULL;
        j->rate = shares_rate(c->shares, j->cpus, j->memory_mib);
        return 0;
}

int charge_begin(struct core *c, struct job *j, struct str account, struct str draws, int64_t at_ms,
                 struct err *err)
{
        int r = take_units(c, j, account, draws, err);

        if (r || !j->account)
                return r;
        account_begin(c->shares, j->account, j->rate, at_ms);
        order_account_changed(c, j->account);
        return 0;
}

int charge_resume(struct core *c, struct job *j, struct str account, struct str draws, struct err *err)
{
        int r = take_units(c, j, account, draws, err);

        if (!r && j->account)
                account_resume(j->account, j->rate);
        return r;
}

void charge_end(struct core *c, struct job *j, int64_t at_ms)
{
        if (!j->charged)
                return;
        j->charged = false;
        draws_give_back(j->draws, on_woken, c);
        if (j->draws)
                limit_give_back(c->fairness->some_limit, 0, on_woken, c);
        draws_unref(c->limits, j->draws);
        j->draws = NULL;
        if (charge_user(j->request))
                limit_give_back(charge_user(j->request), 1, on_woken, c);
        if (j->account) {
                account_end(c->shares, j->account, j->rate, at_ms);
                order_account_changed(c, j->account);
        }
        j->account = NULL;
}

/* ---- requests */

void charge_request(struct core *c, struct request *r, uint64_t members)
{
        struct owner *o = r->owner;

        if (!o->queued) {
                o->user = owner_limit(c, "user", o->name);
                o->queued = owner_limit(c, "queued", o->name);
                o->queued_kib = owner_limit(c, "queued_kib", o->name);
        }
        o->queued->used += (int64_t)members;
        o->queued_kib->used += r->kib;
        r->queued_count = (uint32_t)members;
        c->requests->crowded |= charge_crowded(r);
}

void charge_request_kib(struct request *r, int64_t kib)
{
        if (r->owner && r->owner->queued_kib)
                r->owner->queued_kib->used += kib;
}

void charge_members_ended(struct core *c, struct request *r, uint64_t members)
{
        if (!r->owner || !r->owner->queued)
                return;
        assert(r->queued_count >= members);
        r->queued_count -= (uint32_t)members;
        limit_give_back(r->owner->queued, (int64_t)members, on_woken, c);
}

void charge_request_gone(struct core *c, struct request *r)
{
        charge_members_ended(c, r, r->queued_count);
        if (r->owner && r->owner->queued_kib)
                limit_give_back(r->owner->queued_kib, r->kib, on_woken, c);
}

int charge_check_ways(const struct core *c, const struct job_class *k, struct err *err)
{
        if (k->account->ready <= c->config.account_classes_max)
                return 0;
        return err_set(err, CORE_INVALID,
                       "the waiting jobs of %s differ in more than %u ways in what they require: wait until "
                       "some have started, or ask for the same in more of them",
                       k->account->path, c->config.account_classes_max);
}

bool charge_crowded(const struct request *r)
{
        const struct limit *x = r->owner ? r->owner->queued_kib : NULL;

        return x && x->max != LIMIT_NONE && x->used > x->max / 2;
}

static bool has_room(const struct limit *x, uint64_t more)
{
        return x->max == LIMIT_NONE || x->used + (int64_t)more <= x->max;
}

int charge_check_room(struct core *c, const struct submission *s, struct err *err)
{
        struct buf BUF_CLEANUP owner = {0};
        uint64_t members = submission_members(s), kib = submission_kib(s);
        const struct limit *queued, *queued_kib;

        buf_str(&owner, s->owner);
        queued = owner_limit(c, "queued", buf_z(&owner));
        if (!has_room(queued, members))
                return err_set(err, CORE_TOO_MANY,
                               STR_FMT
                               " has %lld jobs in the queue and may have %lld (max_queued): %llu more "
                               "are too many now. Submit them when some have ended or are removed",
                               STR_ARG(s->owner), (long long)queued->used, (long long)queued->max,
                               (unsigned long long)members);
        queued_kib = owner_limit(c, "queued_kib", buf_z(&owner));
        if (!has_room(queued_kib, kib))
                return err_set(err, CORE_TOO_MANY,
                               STR_FMT
                               " has requests of %lld KiB in the queue and may have %lld "
                               "(max_queued_bytes): one of %llu KiB more is too much now. Submit it when "
                               "some have ended or are removed",
                               STR_ARG(s->owner), (long long)queued_kib->used, (long long)queued_kib->max,
                               (unsigned long long)kib);
        return 0;
}

int charge_check_memory(struct core *c, const char *owner, uint64_t more, struct err *err)
{
        const struct limit *x = owner_limit(c, "queued_kib", owner);

        if (has_room(x, more))
                return 0;
        return err_set(
                err, CORE_TOO_MANY,
                "with this one %s has requests of %lld KiB in the queue and may have %lld "
                "(max_queued_bytes): its jobs differ too much in what they require. Make it smaller, or "
                "submit it when others have ended or are removed",
                owner, (long long)x->used + (long long)more, (long long)x->max);
}

int charge_check_part(struct core *c, struct str owner, const struct ad *ad, struct err *err)
{
        struct draws *draws = NULL;
        struct account *account;
        struct err why;
        int r = 0;

        if (!varies(ad, c->attr.ConcurrencyLimits))
                r = parse_draws(c, ad, NULL, &draws, &why);
        if (r)
                r = err_set(err, -EINVAL, "concurrency_limits: %s", why.text);
        draws_unref(c->limits, draws);
        if (!r)
                r = shares_resolve(c->shares, owner, charge_group(c, ad), &account, err);
        if (!r)
                r = qos_check(c, owner, ad, err);
        eval_reset(&c->eval);
        return r;
}

/* ---- invariants */

struct counted {
        char sentence[256];
        bool wrong;
};

/* Adds what each attempt and each waiting job takes (sign 1), or subtracts it (sign -1). */
static void count_attempts(struct core *c, int sign)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        for (struct job *j = q->attempts; j; j = j->next) {
                                for (size_t i = 0; j->draws && i < j->draws->count; i++)
                                        j->draws->v[i].limit->counted += sign * j->draws->v[i].units;
                                if (charge_user(j->request))
                                        charge_user(j->request)->counted += sign;
                        }
        for (struct request *r = c->requests->first; r; r = r->next)
                if (r->owner) {
                        r->owner->queued->counted += sign * (int64_t)request_unended(r);
                        r->owner->queued_kib->counted += sign * (int64_t)r->kib;
                }
        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);) {
                const struct job_class *k = value;

                owner_limit(c, "queued_kib", k->owner)->counted += sign * (int64_t)k->kib;
        }
}

static void compare_count(void *arg, struct limit *x)
{
        struct counted *k = arg;

        if (x->used != x->counted && !k->wrong) {
                k->wrong = true;
                snprintf(k->sentence, sizeof(k->sentence), "%lld units of %s are counted and %lld in use",
                         (long long)x->used, x->name, (long long)x->counted);
        }
}

const char *charge_invariant(struct core *c)
{
        static struct counted k;

        k = (struct counted){0};
        count_attempts(c, 1);
        limits_each(c->limits, compare_count, &k);
        count_attempts(c, -1);
        return k.wrong ? k.sentence : shares_check(c->shares);
}
