/* Usage decays by one exponential for all accounts, so a sum of usages decays in the same way, and a group
 * can keep its own. With a constant rate r, usage tends to r times the mean life of a charge (half-life / ln
 * 2); divided by that it is the recent mean of processors, in the same unit as the present rate.
 */
#include "core/accounts/share.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"
#include "core/core.h"

#define HALF_LIFE_MS (7 * 86400000ll)
#define NICE_SHARES  1e-9

/* Steps that expressions of a user's jobs took and that have not been paid back yet, as of that second. */
struct evaluated {
        uint64_t steps;
        int64_t second;
};

struct shares {
        struct share_config config;
        double mean_life_s;
        struct account root;
        struct map *paths;       /* all accounts but the root */
        struct map *evaluated;   /* struct evaluated, by user */
        struct account **groups; /* groups of the settings, in their order */
        size_t group_count, group_cap;
};

static struct evaluated *evaluated_of(struct shares *s, struct str user)
{
        struct evaluated *e = map_get(s->evaluated, user);

        if (!e) {
                e = mem_new(struct evaluated);
                map_put(s->evaluated, user, e);
        }
        return e;
}

static struct account *make_account(struct shares *s, struct account *parent, struct str path, bool leaf)
{
        struct account *a = mem_new(struct account);
        ptrdiff_t slash = str_find(path, '/');

        a->path = str_dupz(path);
        a->parent = parent;
        a->leaf = leaf;
        a->evaluated = leaf ? evaluated_of(s, str_skip(path, (size_t)(slash + 1))) : NULL;
        a->shares = 1;
        a->serial = map_count(s->paths) + 1;
        a->next = parent->children;
        parent->children = a;
        map_put(s->paths, path, a);
        return a;
}

struct shares *shares_new(const struct share_config *config)
{
        struct shares *s = mem_new(struct shares);
        struct account *nice;

        s->config = *config;
        if (s->config.half_life_ms <= 0)
                s->config.half_life_ms = HALF_LIFE_MS;
        s->mean_life_s = (double)s->config.half_life_ms / 1000 / M_LN2;
        s->root.path = mem_dupz("");
        s->root.shares = 1;
        s->paths = map_new();
        s->evaluated = map_new();
        nice = make_account(s, &s->root, STR(ACCOUNT_NICE), false);
        nice->shares = NICE_SHARES;
        return s;
}

static void drop_users(struct account *a)
{
        for (size_t i = 0; i < a->user_count; i++)
                free(a->users[i]);
        free(a->users);
        a->users = NULL;
        a->user_count = 0;
}

static void account_deinit(struct account *a)
{
        drop_users(a);
        free(a->path);
}

void shares_free(struct shares *s)
{
        void *value;

        if (!s)
                return;
        for (size_t at = 0; map_next(s->paths, &at, NULL, &value);) {
                account_deinit(value);
                free(value);
        }
        account_deinit(&s->root);
        map_free(s->paths);
        map_free_values(s->evaluated);
        free(s->groups);
        free(s);
}

struct account *shares_root(struct shares *s)
{
        return &s->root;
}

struct account *shares_find(struct shares *s, struct str path)
{
        return map_get(s->paths, path);
}

static struct account *get_group(struct shares *s, struct str group)
{
        ptrdiff_t dot = str_rfind(group, '.');
        struct account *a;

        if (group.n == 0)
                return &s->root;
        a = map_get(s->paths, group);
        return a ? a
                 : make_account(s, get_group(s, str_head(group, dot < 0 ? 0 : (size_t)dot)), group, false);
}

struct account *shares_leaf(struct shares *s, struct str path)
{
        struct account *a = map_get(s->paths, path);
        ptrdiff_t slash = str_find(path, '/');

        return a ? a
                 : make_account(s, get_group(s, str_head(path, slash < 0 ? 0 : (size_t)slash)), path, true);
}

/* ---- settings */

static int check_group(struct str group, struct err *err)
{
        struct str rest = group, part;
        unsigned depth = 0;

        while (str_cut(&rest, '.', &part)) {
                bool ok = part.n > 0;

                for (size_t i = 0; i < part.n; i++) {
                        char c = (char)(part.p[i] | 32);

                        ok &= (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || part.p[i] == '_' ||
                              c == '-';
                }
                if (!ok)
                        return err_set(err, -EINVAL,
                                       "'" STR_FMT "' is not an account's name: letters, digits, _ and -",
                                       STR_ARG(part));
                depth++;
        }
        if (depth == 0 || depth > ACCOUNT_DEPTH_MAX)
                return err_set(err, -EINVAL, "accounts are at most %u deep", ACCOUNT_DEPTH_MAX);
        return 0;
}

/* Groups are found without regard to case, as HTCondor does. */
static void fold(struct buf *out, struct str group)
{
        for (size_t i = 0; i < group.n; i++)
                buf_char(out, group.p[i] >= 'A' && group.p[i] <= 'Z' ? (char)(group.p[i] | 32) : group.p[i]);
}

int shares_set_group(struct shares *s, struct str group, double shares, const struct str *users,
                     size_t user_count, struct err *err)
{
        struct buf BUF_CLEANUP name = {0};
        struct account *a;
        int r = check_group(group, err);

        if (r)
                return r;
        if (!(shares > 0) || shares > ACCOUNT_SHARES_MAX)
                return err_set(err, -EINVAL, "the shares of account '" STR_FMT "' must be more than 0",
                               STR_ARG(group));
        fold(&name, group);
        a = get_group(s, buf_view(&name));
        a->shares = shares;
        drop_users(a);
        a->users = mem_array(NULL, user_count, sizeof(*a->users));
        for (; a->user_count < user_count; a->user_count++)
                a->users[a->user_count] = str_dupz(users[a->user_count]);
        if (!a->named) {
                MEM_GROW(s->groups, s->group_cap, s->group_count + 1);
                s->groups[s->group_count++] = a;
        }
        a->named = true;
        return 0;
}

bool share_is_user(const char *pattern, struct str owner)
{
        if (pattern[0] == '*')
                return pattern[1] == '\0' || str_ends(owner, str_of(pattern + 1));
        return str_eqz(owner, pattern);
}

bool shares_group_within(struct str above, struct str group)
{
        return str_eq(above, group) ||
               (group.n > above.n && group.p[above.n] == '.' && str_starts(group, above));
}

static bool may_use(const struct account *a, struct str owner)
{
        while (a && a->user_count == 0)
                a = a->parent;
        for (size_t i = 0; a && i < a->user_count; i++)
                if (share_is_user(a->users[i], owner))
                        return true;
        return false;
}

static struct account *first_of(struct shares *s, struct str owner)
{
        for (size_t i = 0; i < s->group_count; i++)
                if (s->groups[i]->user_count && may_use(s->groups[i], owner))
                        return s->groups[i];
        return &s->root;
}

/* The error lists the groups that the user may use: "ann@local may use physics, physics.cms". */
static int refuse_account(struct shares *s, struct str owner, struct str group, const char *why,
                          struct err *err)
{
        struct buf BUF_CLEANUP mine = {.max = 256};

        for (size_t i = 0; i < s->group_count; i++)
                if (may_use(s->groups[i], owner))
                        buf_printf(&mine, "%s%s", mine.n ? ", " : "", s->groups[i]->path);
        return err_set(err, -EINVAL, "account '" STR_FMT "': %s; " STR_FMT " may use %s", STR_ARG(group), why,
                       STR_ARG(owner), mine.n ? buf_z(&mine) : "none: leave accounting_group out");
}

static bool is_nice(struct str group)
{
        return str_istarts(group, STR(ACCOUNT_NICE)) &&
               (group.n == strlen(ACCOUNT_NICE) || group.p[strlen(ACCOUNT_NICE)] == '.');
}

static struct account *find_group(struct shares *s, struct str group)
{
        struct buf BUF_CLEANUP name = {0};
        struct account *a;

        fold(&name, group);
        a = map_get(s->paths, buf_view(&name));
        return a && a->named ? a : NULL;
}

int shares_resolve(struct shares *s, struct str owner, struct str group, struct account **ret,
                   struct err *err)
{
        struct buf BUF_CLEANUP path = {0};
        struct account *a = first_of(s, owner);

        if (is_nice(group)) {
                a = shares_find(s, STR(ACCOUNT_NICE));
        } else if (group.n && s->group_count) {
                ptrdiff_t dot = str_rfind(group, '.');

                a = find_group(s, group);
                if (!a && dot > 0)
                        a = find_group(s, str_head(group, (size_t)dot));
                if (!a)
                        return refuse_account(s, owner, group, "there is no such account", err);
                if (!may_use(a, owner))
                        return refuse_account(s, owner, group, "this user is not listed there", err);
        }
        buf_printf(&path, "%s/" STR_FMT, a->path, STR_ARG(owner));
        *ret = shares_leaf(s, buf_view(&path));
        return 0;
}

/* ---- usage */

int64_t shares_rate(const struct shares *s, uint32_t cpus, uint64_t memory_mib)
{
        int64_t by_memory = s->config.memory_per_cpu_mib > 0
                                    ? (int64_t)(memory_mib * 1000 / (uint64_t)s->config.memory_per_cpu_mib)
                                    : 0;
        int64_t by_cpus = (int64_t)cpus * 1000;

        return by_memory > by_cpus ? by_memory : by_cpus;
}

static double usage_at(const struct shares *s, const struct account *a, int64_t at_ms)
{
        double left;

        if (at_ms <= a->at_ms || a->at_ms == 0)
                return a->usage;
        left = exp2(-(double)(at_ms - a->at_ms) / (double)s->config.half_life_ms);
        return a->usage * left + (double)a->rate / 1000 * s->mean_life_s * (1 - left);
}

static void settle_account(const struct shares *s, struct account *a, int64_t at_ms)
{
        a->usage = usage_at(s, a, at_ms);
        if (at_ms > a->at_ms)
                a->at_ms = at_ms;
}

void account_begin(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms)
{
        for (struct account *a = leaf; a; a = a->parent) {
                settle_account(s, a, at_ms);
                a->rate += rate;
                a->attempts++;
        }
}

void account_end(struct shares *s, struct account *leaf, int64_t rate, int64_t at_ms)
{
        for (struct account *a = leaf; a; a = a->parent) {
                assert(a->rate >= rate && a->attempts > 0);
                settle_account(s, a, at_ms);
                a->rate -= rate;
                a->attempts--;
        }
}

void account_resume(struct account *leaf, int64_t rate)
{
        for (struct account *a = leaf; a; a = a->parent) {
                a->rate += rate;
                a->attempts++;
        }
}

double account_usage(const struct shares *s, const struct account *a, int64_t now_ms)
{
        return usage_at(s, a, now_ms);
}

double account_mean(const struct shares *s, const struct account *a, int64_t now_ms)
{
        return usage_at(s, a, now_ms) / s->mean_life_s;
}

/* ---- expressions */

static uint64_t steps_owed(const struct evaluated *e, int64_t steady_ms)
{
        int64_t seconds = steady_ms / 1000 - e->second;

        if (seconds <= 0)
                return e->steps;
        return e->steps / ACCOUNT_STEPS < (uint64_t)seconds ? 0
                                                            : e->steps - (uint64_t)seconds * ACCOUNT_STEPS;
}

bool account_may_evaluate(const struct account *a, int64_t steady_ms)
{
        const struct evaluated *e = a ? a->evaluated : NULL;

        return !e || e->steps <= ACCOUNT_STEPS || steps_owed(e, steady_ms) <= ACCOUNT_STEPS;
}

void account_evaluated(struct account *a, int64_t steady_ms, uint64_t steps)
{
        struct evaluated *e = a ? a->evaluated : NULL;

        if (!e || steps <= ACCOUNT_STEPS_FREE)
                return;
        e->steps = steps_owed(e, steady_ms) + steps - ACCOUNT_STEPS_FREE;
        e->second = steady_ms / 1000;
}

/* ---- all accounts */

static int by_path(const void *a, const void *b)
{
        return strcmp((*(struct account *const *)a)->path, (*(struct account *const *)b)->path);
}

static struct account **sorted(struct shares *s, size_t *ret_count)
{
        struct account **all = mem_array(NULL, map_count(s->paths) + 1, sizeof(*all));
        size_t n = 0;
        void *value;

        for (size_t at = 0; map_next(s->paths, &at, NULL, &value);)
                all[n++] = value;
        if (n)
                qsort(all, n, sizeof(*all), by_path);
        *ret_count = n;
        return all;
}

void shares_each(struct shares *s, void (*fn)(void *arg, struct account *a), void *arg)
{
        size_t n;
        struct account **all = sorted(s, &n);

        for (size_t i = 0; i < n; i++)
                fn(arg, all[i]);
        free(all);
}

void shares_pack(struct shares *s, struct buf *out)
{
        size_t n, used = 0;
        struct account **all = sorted(s, &n);

        for (size_t i = 0; i < n; i++)
                used += all[i]->leaf && all[i]->at_ms;
        pack_u64(out, used);
        for (size_t i = 0; i < n; i++)
                if (all[i]->leaf && all[i]->at_ms) {
                        pack_str(out, str_of(all[i]->path));
                        pack_double(out, all[i]->usage);
                        pack_i64(out, all[i]->at_ms);
                }
        free(all);
}

void shares_unpack(struct shares *s, struct unpack *in)
{
        for (uint64_t n = unpack_u64(in); n > 0 && !in->bad; n--) {
                struct str path = unpack_str(in);
                double usage = unpack_double(in);
                int64_t at_ms = unpack_i64(in);
                struct account *leaf;

                if (in->bad || str_find(path, '/') < 0 || !(usage >= 0) || at_ms <= 0) {
                        in->bad = true;
                        return;
                }
                leaf = shares_leaf(s, path);
                leaf->usage = usage;
                leaf->at_ms = at_ms;
        }
}

static void sum_up(struct shares *s, struct account *a)
{
        if (a->leaf)
                return;
        a->at_ms = 0;
        for (struct account *b = a->children; b; b = b->next) {
                sum_up(s, b);
                if (b->at_ms > a->at_ms)
                        a->at_ms = b->at_ms;
        }
        a->usage = 0;
        for (struct account *b = a->children; b; b = b->next)
                a->usage += usage_at(s, b, a->at_ms);
}

void shares_restored(struct shares *s)
{
        sum_up(s, &s->root);
}

const char *shares_check(struct shares *s)
{
        static char sentence[256];
        void *value;

        for (size_t at = 0; map_next(s->paths, &at, NULL, &value);) {
                const struct account *a = value;
                int64_t rate = 0;
                uint32_t attempts = 0;

                if (a->leaf ? a->children != NULL : a->rate < 0)
                        goto wrong;
                if (a->leaf)
                        continue;
                for (const struct account *b = a->children; b; b = b->next) {
                        rate += b->rate;
                        attempts += b->attempts;
                }
                if (rate == a->rate && attempts == a->attempts)
                        continue;
        wrong:
                snprintf(sentence, sizeof(sentence), "account %s takes %lld and those below it another sum",
                         a->path, (long long)a->rate);
                return sentence;
        }
        return NULL;
}
