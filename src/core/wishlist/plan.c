#include "core/wishlist/plan.h"

#include "base/mem.h"

#define HOUR_MS  3600000
#define FITS_MAX 100000u

struct bin {
        size_t shape;
        struct plan_room free;
};
struct count {
        const struct plan_input *in;
        struct plan *plan;
        uint32_t *of_shape, *of_provisioner, *of_account, all;
        int64_t hour_micro, spent_micro;
        struct bin *bins; /* room of wished nodes */
        size_t bin_count, bin_cap;
        uint64_t *left; /* slots left, for each demand */
        bool *used;     /* for each node: jobs of the plan use it */
};

const char *plan_reason_text(enum plan_reason r)
{
        static const char *const texts[PLAN_REASONS] = {
                [PLAN_WISHED] = "wished",
                [PLAN_NO_JOBS] = "no job waits that needs more of it",
                [PLAN_UNSUITED] = "the jobs that wait do not suit it",
                [PLAN_DEARER] = "another shape costs less for the jobs that wait",
                [PLAN_CLOSED] = "none can be started now",
                [PLAN_SHAPE_MAX] = "there are as many of the shape as there may be",
                [PLAN_PROVISIONER_MAX] = "there are as many nodes of the provisioner as there may be",
                [PLAN_ACCOUNT_MAX] = "there are as many nodes for the account as there may be",
                [PLAN_MAX] = "there are as many nodes as there may be",
                [PLAN_HOUR] = "the budget of an hour does not allow it",
                [PLAN_MONTH] = "the budget of the month does not allow it",
                [PLAN_LATER] = "many are started already; more come with the next plan",
        };

        return (unsigned)r < PLAN_REASONS ? texts[r] : "?";
}

int64_t plan_period_micro(int64_t price_micro, int64_t period_ms)
{
        double micro = (double)price_micro * (double)period_ms / HOUR_MS;
        int64_t whole = (int64_t)micro;

        return whole + ((double)whole < micro);
}

uint64_t plan_fits(const struct plan_room *room, const struct plan_room *need)
{
        uint64_t n = FITS_MAX;
        const int64_t has[] = {room->cpus, room->memory_mib, room->disk_kib},
                      wants[] = {need->cpus, need->memory_mib, need->disk_kib};

        for (size_t i = 0; i < 3; i++)
                if (wants[i] > 0) {
                        uint64_t k = has[i] > 0 ? (uint64_t)(has[i] / wants[i]) : 0;

                        n = k < n ? k : n;
                }
        return n;
}

static void take_room(struct plan_room *room, const struct plan_room *need, uint64_t times)
{
        room->cpus -= need->cpus * (int64_t)times;
        room->memory_mib -= need->memory_mib * (int64_t)times;
        room->disk_kib -= need->disk_kib * (int64_t)times;
}

/* Places as many slots of the demand as fit into the room, at most *left. */
static uint64_t room_fill(struct plan_room *room, const struct plan_demand *d, uint64_t *left)
{
        uint64_t n = plan_fits(room, &d->need);

        n = n < *left ? n : *left;
        take_room(room, &d->need, n);
        *left -= n;
        return n;
}

static size_t account_find(const struct plan_input *in, struct str name)
{
        for (size_t i = 0; name.n && i < in->account_count; i++)
                if (str_eq(in->accounts[i].name, name))
                        return i;
        return PLAN_NONE;
}

static int64_t period_of(const struct plan_input *in, size_t provisioner, int64_t price_micro)
{
        return plan_period_micro(price_micro, in->provisioners[provisioner].period_ms);
}

/* ---- existing nodes */

static void count_nodes(struct count *x)
{
        const struct plan_input *in = x->in;

        for (size_t i = 0; i < in->node_count; i++) {
                const struct plan_node *n = &in->nodes[i];
                size_t account = account_find(in, n->account);

                x->all++;
                x->hour_micro += n->price_micro;
                x->of_provisioner[n->provisioner]++;
                if (n->shape != PLAN_NONE)
                        x->plan->shapes[n->shape].nodes = ++x->of_shape[n->shape];
                if (account != PLAN_NONE)
                        x->of_account[account]++;
        }
}

/* Reserves money for renewals that are due soon, before any new node; a node that cannot be paid is drained.
 * A period of each node is kept back, since draining may take until the next has begun. */
static void look_at_payments(struct count *x)
{
        const struct plan_input *in = x->in;

        for (size_t i = 0; i < in->node_count; i++)
                x->spent_micro += period_of(in, in->nodes[i].provisioner, in->nodes[i].price_micro);
        for (size_t i = 0; i < in->node_count; i++) {
                const struct plan_node *n = &in->nodes[i];
                int64_t next = period_of(in, n->provisioner, n->price_micro);

                if (n->state == PLAN_NODE_LEAVES ||
                    n->paid_left_ms > in->provisioners[n->provisioner].stop_ms)
                        continue;
                if (in->rules.month_micro >= 0 && x->spent_micro + next > in->rules.month_micro)
                        x->plan->leaves[i] = PLAN_LEAVES_MONTH;
                else
                        x->spent_micro += next;
        }
}

static void use_nodes(struct count *x)
{
        const struct plan_input *in = x->in;

        for (size_t i = 0; i < in->node_count; i++) {
                const struct plan_node *n = &in->nodes[i];
                struct plan_room room;

                if (n->shape == PLAN_NONE || n->state >= PLAN_NODE_LEAVES || x->plan->leaves[i])
                        continue;
                room = n->state == PLAN_NODE_BOOTS ? in->shapes[n->shape].room : n->free;
                for (size_t k = 0; k < in->demand_count; k++) {
                        uint64_t placed;

                        if (!in->demands[k].suits[n->shape] || x->left[k] == 0)
                                continue;
                        placed = room_fill(&room, &in->demands[k], &x->left[k]);
                        x->plan->demands[k].placed += placed;
                        x->used[i] |= placed > 0;
                }
        }
}

/* ---- nodes to drain */

static void leave_idle(struct count *x)
{
        const struct plan_input *in = x->in;
        MEM_CLEANUP uint32_t *stay = mem_zalloc((in->shape_count + 1) * sizeof(*stay));

        for (size_t i = 0; i < in->node_count; i++)
                if (in->nodes[i].shape != PLAN_NONE && in->nodes[i].state < PLAN_NODE_LEAVES &&
                    !x->plan->leaves[i])
                        stay[in->nodes[i].shape]++;
        for (size_t i = 0; i < in->node_count; i++) {
                const struct plan_node *n = &in->nodes[i];
                const struct plan_provisioner *p = &in->provisioners[n->provisioner];

                if (n->state != PLAN_NODE_RUNS || x->used[i] || x->plan->leaves[i] || n->idle_ms < 0 ||
                    n->idle_ms < p->idle_ms || n->paid_left_ms > p->stop_ms)
                        continue;
                if (n->shape != PLAN_NONE) {
                        if (stay[n->shape] <= in->shapes[n->shape].min)
                                continue;
                        stay[n->shape]--;
                }
                x->plan->leaves[i] = PLAN_LEAVES_IDLE;
                x->spent_micro -=
                        period_of(in, n->provisioner, n->price_micro); /* look_at_payments kept it back */
        }
}

/* ---- wishes */

/* Returns whether one more node of the shape may be started for the account (PLAN_NONE: none). */
static enum plan_reason allowed(const struct count *x, size_t shape, size_t account)
{
        const struct plan_input *in = x->in;
        const struct plan_shape *s = &in->shapes[shape];
        const struct plan_rules *r = &in->rules;

        if (s->closed)
                return PLAN_CLOSED;
        if (x->of_shape[shape] >= s->max)
                return PLAN_SHAPE_MAX;
        if (x->of_provisioner[s->provisioner] >= in->provisioners[s->provisioner].max)
                return PLAN_PROVISIONER_MAX;
        if (account != PLAN_NONE && x->of_account[account] >= in->accounts[account].max)
                return PLAN_ACCOUNT_MAX;
        if (r->max && x->all >= r->max)
                return PLAN_MAX;
        if (r->hour_micro >= 0 && x->hour_micro + s->price_micro > r->hour_micro)
                return PLAN_HOUR;
        if (r->month_micro >= 0 &&
            x->spent_micro + 2 * period_of(in, s->provisioner, s->price_micro) > r->month_micro)
                return PLAN_MONTH;
        return x->bin_count >= PLAN_STARTS_MAX ? PLAN_LATER : PLAN_WISHED;
}

static void wish(struct count *x, size_t shape, size_t demand, size_t account)
{
        const struct plan_shape *s = &x->in->shapes[shape];
        struct plan *p = x->plan;
        size_t i = 0;

        while (i < p->wish_count && (p->wishes[i].shape != shape || p->wishes[i].demand != demand))
                i++;
        if (i == p->wish_count) {
                MEM_GROW(p->wishes, p->wish_cap, p->wish_count + 1);
                p->wishes[p->wish_count++] = (struct plan_wish){shape, demand, 0};
        }
        p->wishes[i].nodes++;
        p->shapes[shape].wished++;
        x->all++;
        x->of_shape[shape]++;
        x->of_provisioner[s->provisioner]++;
        if (account != PLAN_NONE)
                x->of_account[account]++;
        x->hour_micro += s->price_micro;
        x->spent_micro += 2 * period_of(x->in, s->provisioner, s->price_micro);
        MEM_GROW(x->bins, x->bin_cap, x->bin_count + 1);
        x->bins[x->bin_count++] = (struct bin){shape, s->room};
}

static void wish_minima(struct count *x)
{
        for (size_t i = 0; i < x->in->shape_count; i++)
                while (x->of_shape[i] < x->in->shapes[i].min && allowed(x, i, PLAN_NONE) == PLAN_WISHED)
                        wish(x, i, PLAN_NONE, PLAN_NONE);
}

static void use_wished(struct count *x, size_t demand)
{
        const struct plan_demand *d = &x->in->demands[demand];

        for (size_t i = 0; i < x->bin_count && x->left[demand]; i++)
                if (d->suits[x->bins[i].shape])
                        x->plan->demands[demand].wished += room_fill(&x->bins[i].free, d, &x->left[demand]);
}

/* Returns how long a new node of the shape is busy with a job. */
static int64_t busy_ms(const struct plan_demand *d, size_t shape)
{
        return (d->run_ms ? d->run_ms : PLAN_RUN_MS) + (d->fetch_ms ? d->fetch_ms[shape] : 0);
}

/* Returns the price of each job of the demand that the node would run. */
static double price_each(const struct count *x, size_t shape, const struct plan_demand *d, uint64_t left)
{
        const struct plan_shape *s = &x->in->shapes[shape];
        uint64_t n = plan_fits(&s->room, &d->need);

        n = n < left ? n : left;
        return (double)s->price_micro / (double)n * (double)busy_ms(d, shape);
}

static bool is_better(const struct count *x, size_t a, size_t b, const struct plan_demand *d, uint64_t left)
{
        double pa = price_each(x, a, d, left), pb = price_each(x, b, d, left);

        if (pa < pb || pa > pb)
                return pa < pb;
        return x->in->shapes[a].boot_ms + busy_ms(d, a) < x->in->shapes[b].boot_ms + busy_ms(d, b);
}

static void say_why_not(struct plan *p, size_t shape, enum plan_reason why)
{
        /* A reason against a shape takes precedence over "a better shape exists", and that over "no jobs
         * want it". */
        if (p->shapes[shape].why <= PLAN_DEARER || why > PLAN_DEARER)
                p->shapes[shape].why = why;
}

/* Wishes one more node for the demand. False: no suitable shape may be started; `why` of the demand has the
 * reason. */
static bool wish_one(struct count *x, size_t demand)
{
        const struct plan_input *in = x->in;
        const struct plan_demand *d = &in->demands[demand];
        size_t account = account_find(in, d->account), best = PLAN_NONE;
        enum plan_reason why = PLAN_UNSUITED;

        for (size_t i = 0; i < in->shape_count; i++) {
                enum plan_reason r;

                if (!d->suits[i] || plan_fits(&in->shapes[i].room, &d->need) == 0)
                        continue;
                r = allowed(x, i, account);
                if (r != PLAN_WISHED) {
                        say_why_not(x->plan, i, r);
                        why = why == PLAN_UNSUITED ? r : why;
                } else if (best == PLAN_NONE || is_better(x, i, best, d, x->left[demand])) {
                        if (best != PLAN_NONE)
                                say_why_not(x->plan, best, PLAN_DEARER);
                        best = i;
                } else {
                        say_why_not(x->plan, i, PLAN_DEARER);
                }
        }
        if (best == PLAN_NONE) {
                x->plan->demands[demand].why = why;
                return false;
        }
        wish(x, best, demand, account);
        use_wished(x, demand);
        return true;
}

static void wish_for_jobs(struct count *x)
{
        bool more = true;

        for (size_t i = 0; i < x->in->shape_count; i++)
                for (size_t k = 0; k < x->in->demand_count; k++)
                        if (x->left[k] && !x->in->demands[k].suits[i] &&
                            x->plan->shapes[i].why == PLAN_NO_JOBS)
                                x->plan->shapes[i].why = PLAN_UNSUITED;
        while (more) {
                more = false;
                for (size_t k = 0; k < x->in->demand_count; k++) {
                        use_wished(x, k);
                        if (x->left[k] && x->plan->demands[k].why == PLAN_WISHED)
                                more |= wish_one(x, k);
                }
        }
}

/* The jobs of a group take turns at its places. */
static void say_how_long(struct count *x)
{
        for (size_t i = 0; i < x->plan->wish_count; i++) {
                struct plan_wish *w = &x->plan->wishes[i];
                const struct plan_demand *d = w->demand == PLAN_NONE ? NULL : &x->in->demands[w->demand];
                uint64_t places;

                if (!d || !d->run_ms)
                        continue;
                places = x->plan->demands[w->demand].placed + x->plan->demands[w->demand].wished;
                w->lasts_ms = x->in->shapes[w->shape].boot_ms +
                              (int64_t)((double)busy_ms(d, w->shape) * (double)d->jobs /
                                        (double)(places ? places : 1));
        }
}

static void *zeroes(size_t n, size_t size)
{
        return mem_zalloc((n + 1) * size);
}

void plan_make(const struct plan_input *in, struct plan *ret)
{
        struct count x = {.in = in, .plan = ret, .spent_micro = in->rules.spent_micro};

        *ret = (struct plan){0};
        ret->shapes = zeroes(in->shape_count, sizeof(*ret->shapes));
        ret->demands = zeroes(in->demand_count, sizeof(*ret->demands));
        ret->leaves = zeroes(in->node_count, sizeof(*ret->leaves));
        x.of_shape = zeroes(in->shape_count, sizeof(*x.of_shape));
        x.of_provisioner = zeroes(in->provisioner_count, sizeof(*x.of_provisioner));
        x.of_account = zeroes(in->account_count, sizeof(*x.of_account));
        x.left = zeroes(in->demand_count, sizeof(*x.left));
        x.used = zeroes(in->node_count, sizeof(*x.used));
        for (size_t i = 0; i < in->shape_count; i++)
                ret->shapes[i].why = PLAN_NO_JOBS;
        for (size_t i = 0; i < in->demand_count; i++)
                x.left[i] = in->demands[i].slots;
        count_nodes(&x);
        look_at_payments(&x);
        use_nodes(&x);
        leave_idle(&x);
        wish_minima(&x);
        wish_for_jobs(&x);
        say_how_long(&x);
        free(x.of_shape);
        free(x.of_provisioner);
        free(x.of_account);
        free(x.left);
        free(x.used);
        free(x.bins);
}

void plan_deinit(struct plan *p)
{
        free(p->wishes);
        free(p->shapes);
        free(p->demands);
        free(p->leaves);
        *p = (struct plan){0};
}
