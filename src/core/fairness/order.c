/* The points of fair share, for a leaf of the tree of accounts:
 *
 *     - weight * (lately + now) / part
 *
 * `now` is the processors that its attempts take, `lately` their recent mean, `part` the part of the pool
 * that its shares are worth among the accounts that want something now. In a group, usage of accounts that
 * want nothing now counts against those that do, by their shares: so a group as a whole gets no more than
 * its part, whichever of its accounts are active. Giving each job to the leaf with the most points brings
 * all to the same (lately + now) / part, which is the proportion of the shares.
 */
#include "core/fairness/order.h"

#include "base/map.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/fairness/qos.h"
#include "core/index/index.h"
#include "core/model/core_parts.h"
#include "core/model/pending_match.h"

#define REFRESH_MS  1000
#define STALE_MS    50
#define FEW_CLASSES 256u
#define NOTHING     0.001 /* processors added to every usage, so that shares count without usage */
#define WAIT_STEP_S 60u   /* interval at which the value of a day's wait is updated */
#define WAIT_RATIO  1.25  /* change of the processors in use that changes the value of a day's wait */

/* ---- standing */

double order_own_points(const struct core *c, const struct bucket *b)
{
        const struct order_weights *w = &c->config.weights;
        const struct job_class *k = b->job_class;

        return w->qos * (k->qos ? k->qos->priority : 0) + w->size * (double)k->cpus +
               w->credential * k->credential + b->points;
}

double order_waited_points(const struct core *c, const struct account *a, int64_t priority, uint32_t due_s)
{
        return order_wait_points(c, a, priority, due_s) +
               c->order_wait.cpus * (double)c->order_wait.at_s / 86400;
}

static bool place(struct core *c, struct job_class *k)
{
        const struct bucket *b = job_class_first_bucket(k);
        struct account *a = k->account;
        uint32_t due_s = order_bucket_due_s(b);
        double standing;

        if (c->order_wait.cpus > 0 && (b->priority > a->first_priority ||
                                       (a->mixed ? due_s > a->last_due_s : b->priority != a->first_priority)))
                c->fairness->stale = true; /* this moves the account's other classes */
        k->own = order_own_points(c, b);
        standing = a->points + (k->own + order_wait_points(c, a, b->priority, due_s));
        if (standing == k->standing)
                return false;
        k->standing = standing;
        index_class_changed(c, k);
        return true;
}

void order_class_changed(struct core *c, struct job_class *k)
{
        if (k->idle == 0 || !place(c, k))
                index_class_changed(
                        c, k); /* its idle members may have changed, or its first bucket with equal points */
}

static void link_class(struct job_class *k)
{
        k->account_prev = NULL;
        k->account_next = k->account->classes;
        if (k->account_next)
                k->account_next->account_prev = k;
        k->account->classes = k;
}

static void unlink_class(struct job_class *k)
{
        if (k->account_next)
                k->account_next->account_prev = k->account_prev;
        if (k->account_prev)
                k->account_prev->account_next = k->account_next;
        else
                k->account->classes = k->account_next;
        k->account_next = k->account_prev = NULL;
}

/* The leaf has begun or ceased to want something, and so may the groups above it. */
static void wants(struct core *c, struct account *leaf, bool yes)
{
        c->fairness->wanting += yes ? 1 : (uint32_t)-1;
        c->fairness->stale = true;
        if (yes && leaf->part == 0) /* until the next refresh */
                leaf->part = 1.0 / c->fairness->wanting;
        for (struct account *a = leaf->parent; a; a = a->parent)
                if (yes ? a->ready++ > 0 : --a->ready > 0)
                        break;
}

void order_class_ready(struct core *c, struct job_class *k)
{
        c->fairness->ready_classes++;
        link_class(k);
        if (k->account->ready++ == 0)
                wants(c, k->account, true);
}

static uint32_t turn_of(const struct account *a)
{
        return a->ready / 8 + 1;
}

static void settle_later(struct core *c, struct account *a)
{
        if (a->is_pending)
                return;
        a->is_pending = true;
        a->pending = c->fairness->pending;
        c->fairness->pending = a;
}

void order_class_gone(struct core *c, struct job_class *k)
{
        c->fairness->ready_classes--;
        unlink_class(k);
        if (--k->account->ready == 0)
                wants(c, k->account, false);
        if (k->account->owed >= turn_of(k->account))
                settle_later(c, k->account); /* with fewer classes the account's turn is shorter, and may be
                                                over now */
}

/* ---- turns */

static double account_points(const struct core *c, const struct account *a)
{
        /* Among accounts without usage the one with more shares is first. */
        return -c->config.weights.fair_share * (a->lately + (double)a->rate / 1000 + NOTHING) / a->part;
}

/* Updates the range of priorities of the account's classes, and the last time at which one is due. */
static void look_at_priorities(struct account *a)
{
        a->first_priority = INT64_MIN;
        a->last_due_s = 0;
        a->mixed = false;
        for (const struct job_class *k = a->classes; k; k = k->account_next) {
                const struct bucket *b = job_class_first_bucket(k);
                uint32_t due_s = order_bucket_due_s(b);

                a->mixed |= k != a->classes && b->priority != a->first_priority;
                if (b->priority > a->first_priority)
                        a->first_priority = b->priority;
                if (due_s > a->last_due_s)
                        a->last_due_s = due_s;
        }
}

static bool move_classes(struct core *c, struct account *a, bool all)
{
        double points = account_points(c, a);
        bool moved = false;

        a->owed = 0;
        if (points == a->points && !all)
                return false;
        a->points = points;
        if (all && c->order_wait.cpus > 0)
                look_at_priorities(a);
        for (struct job_class *k = a->classes; k; k = k->account_next)
                moved |= place(c, k);
        return moved;
}

/* Computes `lately` and `part` of all accounts that want something, below a group that has them itself. */
static bool spread(struct core *c, struct account *group, bool all)
{
        double shares = 0, idle = group->lately;
        bool moved = false;

        for (struct account *a = group->children; a; a = a->next)
                if (a->ready)
                        shares += a->shares;
                else
                        idle += account_mean(c->shares, a, c->now_ms) + (double)a->rate / 1000;
        for (struct account *a = group->children; a; a = a->next) {
                if (!a->ready)
                        continue;
                a->part = group->part * a->shares / shares;
                a->lately = idle * a->shares / shares;
                if (a->leaf) {
                        a->lately += account_mean(c->shares, a, c->now_ms);
                        moved |= move_classes(c, a, all);
                } else {
                        moved |= spread(c, a, all);
                }
        }
        return moved;
}

/* Returns whether the order must be refreshed: at once when another account wants something, unless there is
 * much to move. */
static bool is_due(const struct core *c)
{
        int64_t age_ms = c->steady_ms - c->fairness->refreshed_ms;

        if (c->fairness->stale)
                return c->fairness->ready_classes <= FEW_CLASSES || age_ms >= STALE_MS || age_ms < 0;
        return c->fairness->wanting > 1 && (age_ms >= REFRESH_MS || age_ms < 0);
}

/* Updates the value of a day's wait: the points that an account loses that has all that is in use, or was in
 * recent use. Returns true if all classes must be sorted again. */
static bool refresh_wait(struct core *c)
{
        const struct account *root = shares_root(c->shares);
        struct order_wait *w = &c->order_wait;
        double mean = account_mean(c->shares, root, c->now_ms), now = (double)root->rate / 1000;
        double cpus = c->fairness->wanting > 1 ? c->config.weights.waiting * (mean > now ? mean : now) : 0;
        uint32_t now_s = (uint32_t)(c->now_ms / 1000);
        bool anew = c->fairness->stale && (cpus > 0 || w->cpus > 0);

        if ((cpus > 0) != (w->cpus > 0) || cpus > w->cpus * WAIT_RATIO || cpus * WAIT_RATIO < w->cpus) {
                w->cpus = cpus;
                anew = true;
        }
        if (now_s - w->at_s >= WAIT_STEP_S) { /* a clock that goes back counts as a step */
                w->at_s = now_s;
                anew |= cpus > 0;
        }
        return anew;
}

void order_refresh(struct core *c)
{
        struct account *root = shares_root(c->shares);

        if (c->fairness->wanting > 0 && is_due(c)) {
                bool anew = refresh_wait(c);

                c->fairness->stale = false;
                c->fairness->refreshed_ms = c->steady_ms;
                root->part = 1;
                root->lately = 0;
                if (spread(c, root, anew))
                        c->pending->dirty_sorted = false;
        }
        order_settle(c);
}

void order_account_changed(struct core *c, struct account *a)
{
        if (a->ready == 0 || c->fairness->wanting < 2)
                return;
        a->owed++;
        settle_later(c, a);
}

bool order_settle(struct core *c)
{
        bool moved = false;

        while (c->fairness->pending) {
                struct account *a = c->fairness->pending;

                c->fairness->pending = a->pending;
                a->is_pending = false;
                if (a->ready == 0)
                        a->owed = 0;
                else if (a->owed >= turn_of(a))
                        moved |= move_classes(c, a, false);
        }
        if (moved)
                c->pending->dirty_sorted = false;
        return moved;
}

bool order_turn_is_over(const struct core *c, const struct job_class *k)
{
        return c->fairness->wanting > 1 && c->config.weights.fair_share > 0 &&
               k->account->owed >= turn_of(k->account);
}

uint32_t order_quota(const struct core *c, const struct job_class *k)
{
        uint32_t turn = turn_of(k->account);

        if (c->fairness->wanting < 2 || c->config.weights.fair_share == 0)
                return UINT32_MAX;
        return turn > k->account->owed ? turn - k->account->owed : 1;
}

void fairness_init(struct core *c)
{
        c->fairness = mem_new(struct fairness);
        c->fairness->credentials = map_new();
        c->fairness->qualities = map_new();
        c->fairness->some_limit = limits_get(c->limits, STR("any/limit"));
        c->fairness->money = limits_get(c->limits, STR("any/money"));
}

void fairness_deinit(struct core *c)
{
        qos_deinit(c);
        free(c->fairness);
}
