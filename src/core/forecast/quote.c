#include "core/forecast/quote.h"

#include <math.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "core/billing/billing.h"
#include "core/data/cost.h"
#include "core/data/inputs.h"
#include "core/estimate/estimate.h"
#include "core/explain/why.h"
#include "core/forecast/eta.h"
#include "core/forecast/forecast.h"
#include "core/gang/gang.h"
#include "core/lifecycle/draft.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"

#define FORECAST_SLICE 10000u
#define QUEUES_SLICE   50u

struct seat {
        int64_t start_ms;
        uint64_t slots;
        char *company; /* owned */
};
/* Results for the current part, over the places that would take it. */
struct asked {
        const struct part *part;
        uint32_t number;
        uint32_t member, jobs;  /* the first of the jobs, which stands for all; and their number */
        uint64_t slots, room;   /* room: jobs that limits allow, at the place where they allow most */
        struct core_quote best; /* the place where it would end first, alone */
        int64_t start_ms, job_ms;
        int64_t half_ms, most_ms; /* added to the end of the last job: for the half, and nine in ten */
        struct seat *seats;
        size_t seat_count, seat_cap;
};
struct core_quoting {
        struct core *core;
        struct core_draft *draft;  /* NULL: the quote is for one job of a request that was submitted */
        struct request *request;   /* the draft's request, or the job's */
        uint32_t member;           /* without a draft */
        struct forecast *forecast; /* for each part: simulation up to the turn of its first jobs */
        struct core_walk *walk;    /* NULL: not begun */
        size_t next;
        struct asked part;
        struct core_quote sum;
        struct err unquoted;
        bool known, blind; /* blind: their run time is not known from similar jobs */
        void (*fn)(void *arg, const struct core_quote_place *p);
        void *arg;
};

/* Returns the bytes moved: common inputs once, a job's own inputs and its outputs for each job. */
static uint64_t bytes_moved(struct core *c, const struct part *p, uint32_t jobs, const struct queue *q,
                            const struct core_cost *one)
{
        struct core_cost shared;
        uint64_t once;

        cost_of(c, p, MEMBER_ANY, q, &shared);
        once = shared.bytes_in - shared.bytes_held;
        return once + (one->bytes_in - one->bytes_held - once + one->bytes_out) * jobs;
}

/* Notes, for sets, how many members the queue could take, and from when on. */
static void note_seat(struct core_quoting *x, const struct queue *q, int64_t start_ms, uint64_t slots)
{
        const struct bucket *b = request_bucket(x->core, x->request, x->part.member);
        struct buf name = {.max = 1024};

        if (gang_size(x->part.part) == 0 || !b || !gang_company(x->core, b->job_class, q, &name)) {
                buf_deinit(&name);
                return;
        }
        MEM_GROW(x->part.seats, x->part.seat_cap, x->part.seat_count + 1);
        x->part.seats[x->part.seat_count++] =
                (struct seat){.start_ms = start_ms, .slots = slots, .company = mem_dupz(buf_z(&name))};
        buf_deinit(&name);
}

static int quote_by_start(const void *a, const void *b)
{
        int64_t x = ((const struct seat *)a)->start_ms, y = ((const struct seat *)b)->start_ms;

        return (x > y) - (x < y);
}

/* Returns when one node or group, or all, can take a whole set; 0: never. */
static int64_t set_start(struct core_quoting *x, uint64_t *ret_slots)
{
        struct map *sums = map_new();
        int64_t start_ms = 0;

        if (x->part.seat_count > 1)
                qsort(x->part.seats, x->part.seat_count, sizeof(*x->part.seats), quote_by_start);
        *ret_slots = 0;
        for (size_t i = 0; i < x->part.seat_count; i++) {
                const struct seat *s = &x->part.seats[i];
                uint64_t sum = (uint64_t)(uintptr_t)map_get(sums, str_of(s->company)) + s->slots;

                map_put(sums, str_of(s->company), (void *)(uintptr_t)sum);
                if (sum >= gang_size(x->part.part) && !start_ms)
                        start_ms = s->start_ms;
                *ret_slots = sum > *ret_slots ? sum : *ret_slots;
        }
        map_free(sums);
        return start_ms;
}

static int64_t times(int64_t amount, uint64_t jobs)
{
        return amount > BANK_AMOUNT_MAX / (int64_t)jobs ? BANK_AMOUNT_MAX : amount * (int64_t)jobs;
}

/* Returns what the bank would reserve for all jobs. */
static int64_t quote_credits(struct core_quoting *x, const struct bucket *b, const struct queue *q)
{
        struct err why = {""};
        int64_t amount, more;

        if (!core_bank_is_on(x->core) || !b || !b->job_class ||
            billing_quote(x->core, b->job_class, q, &amount, &more, &why) != BILLING_YES)
                return CORE_CREDITS_NONE;
        if (!x->unquoted.text[0])
                x->unquoted = why;
        more = x->part.jobs > 1 ? times(more, x->part.jobs - 1) : 0;
        return amount > BANK_AMOUNT_MAX - more ? BANK_AMOUNT_MAX : amount + more;
}

static void quote_place(struct core_quoting *x, const struct queue *q, struct core_cost *cost,
                        struct core_quote *ret)
{
        struct core *c = x->core;
        const struct part *p = x->part.part;
        bool open = forecast_held_ms(x->forecast, p, q, cost) == TIMELINE_EVER;
        int64_t job_ms = cost_held_ms(cost);
        struct estimate_bounds bounds;
        uint64_t together = p->job_template->gang.within == GANG_NODE && gang_size(p) ? gang_size(p) : 1;
        const struct bucket *b = request_bucket(c, x->request, x->part.member);
        int64_t at = eta_quote_at(x->forecast, b, q, p->job_template->cpus * (int64_t)together, job_ms);
        uint64_t slots = eta_slots(q, p->job_template->cpus * (int64_t)together) * together;

        uint64_t room = eta_quote_room(x->forecast, b, q);

        slots = slots < room ? slots : room;
        if (slots == 0 || at == 0)
                return;
        x->part.room = room > x->part.room ? room : x->part.room;
        estimate_bounds(c, p, q, 0, &bounds);
        ret->start_ms = at + cost_input_ms(cost);
        ret->end_ms =
                at + job_ms * (int64_t)((x->part.jobs + slots - 1) / slots) + bounds.half_ms - cost->run_ms;
        ret->end_most_ms = ret->end_ms + bounds.most_ms - bounds.half_ms;
        ret->bytes_moved = bytes_moved(c, p, x->part.jobs, q, cost);
        ret->price = open && q->price > 0 ? (double)NAN : cost->price * x->part.jobs;
        ret->credits = quote_credits(x, b, q);
        ret->payer = ret->credits > 0 ? billing_payer(c, b->job_class, q, &ret->payer_has) : NULL;
        x->part.slots += slots;
        note_seat(x, q, ret->start_ms, slots);
        if (!x->part.best.end_ms || ret->end_ms < x->part.best.end_ms)
                x->part.best = *ret;
        if (!x->part.start_ms || ret->start_ms < x->part.start_ms) {
                x->part.start_ms = ret->start_ms;
                x->part.job_ms = job_ms;
                x->part.half_ms = bounds.half_ms - cost->run_ms;
                x->part.most_ms = bounds.most_ms - cost->run_ms;
        }
}

static void on_place(void *arg, const struct core_why *w)
{
        struct core_quoting *x = arg;
        struct core_quote_place place = {x->part.number, *w, {.jobs = x->part.jobs}};
        const struct queue *q = queue_find(x->core, w->agent, w->queue);
        struct core_cost *cost = &place.why.cost;
        bool blind = !estimate_is_close(x->part.part);

        if (q && !q->wait_unknown && (w->verdict == CORE_FITS || w->verdict == CORE_BUSY)) {
                if (w->verdict == CORE_BUSY)
                        cost_without_traffic(cost);
                quote_place(x, q, cost, &place.quote);
                if (place.quote.start_ms) /* jobs already queued go first */
                        cost->wait_ms = place.quote.start_ms - x->core->now_ms - cost_input_ms(cost);
                cost->total_ms += cost->wait_ms - w->cost.wait_ms;
        }
        if (blind)
                place.quote.end_ms = place.quote.end_most_ms = 0;
        x->fn(x->arg, &place);
}

/* Adds the part's results over all places, which share the jobs. */
static void add_part(struct core_quoting *x)
{
        struct core_quote *ret = &x->sum;
        uint64_t n = x->part.jobs;
        int64_t end;

        x->part.slots = x->part.slots < x->part.room ? x->part.slots : x->part.room;
        if (gang_size(x->part.part)) {
                x->part.start_ms = set_start(x, &x->part.slots);
                end = x->part.start_ms + x->part.job_ms + x->part.half_ms;
                if (!x->part.start_ms)
                        x->part.best.end_ms = x->part.slots = 0;
                else if (x->part.best.end_ms < end)
                        x->part.best.end_ms = end;
        }
        end = x->part.slots ? x->part.start_ms + x->part.half_ms +
                                      x->part.job_ms * (int64_t)((n + x->part.slots - 1) / x->part.slots)
                            : 0;

        if (end > x->part.best.end_ms || n == 1)
                end = x->part.best.end_ms;
        ret->jobs += n;
        ret->bytes_moved += x->part.best.bytes_moved;
        ret->price += x->part.best.price;
        if (!ret->payer) {
                ret->payer = x->part.best.payer;
                ret->payer_has = x->part.best.payer_has;
        }
        if (x->part.best.credits == CORE_CREDITS_NONE)
                ret->credits = CORE_CREDITS_NONE;
        else if (ret->credits != CORE_CREDITS_NONE)
                ret->credits += x->part.best.credits;
        if (x->part.start_ms && (!ret->start_ms || x->part.start_ms < ret->start_ms))
                ret->start_ms = x->part.start_ms;
        if (end > ret->end_ms) {
                ret->end_ms = end;
                ret->end_most_ms = end + x->part.most_ms - x->part.half_ms;
        }
}

static void part_end(struct core_quoting *x)
{
        for (size_t k = 0; k < x->part.seat_count; k++)
                free(x->part.seats[k].company);
        free(x->part.seats);
        x->part = (struct asked){0};
        core_walk_free(x->walk);
        x->walk = NULL;
}

/* Begins with the next part. False: there is none left. */
static bool part_begin(struct core_quoting *x)
{
        struct request *r = x->request;

        if (!x->draft && x->next == 0) {
                x->part = (struct asked){.member = x->member, .jobs = 1};
                x->part.part = request_part(r, x->member, &x->part.number);
                x->next = r->part_count; /* it has no other part */
                x->forecast = forecast_new(x->core, request_bucket(x->core, r, x->member), true);
                return true;
        }
        while (x->next < r->part_count && r->parts[x->next].count == 0)
                x->next++;
        if (x->next == r->part_count)
                return false;
        x->part = (struct asked){.part = &r->parts[x->next], .number = (uint32_t)x->next};
        x->part.member = x->part.part->first;
        x->part.jobs = x->part.part->count;
        x->next++;
        if (!x->forecast)
                x->forecast = forecast_new(x->core, request_bucket(x->core, r, x->part.member), false);
        return true;
}

struct core_quoting *core_quote_job_new(struct core *c, struct request *r, uint32_t member)
{
        struct core_quoting *x = mem_new(struct core_quoting);

        x->core = c;
        x->known = true;
        x->request = r;
        x->member = member;
        return x;
}

struct core_quoting *core_quote_new(struct core_draft *d)
{
        struct request *r = draft_request(d);
        struct core_quoting *x = mem_new(struct core_quoting);

        x->core = draft_core(d);
        x->known = true;
        x->draft = d;
        x->request = r;
        return x;
}

bool core_quote_some(struct core_quoting *x, void (*fn)(void *arg, const struct core_quote_place *p),
                     void *arg)
{
        if (!x->part.part)
                return part_begin(x);
        if (forecast_some(x->forecast, FORECAST_SLICE))
                return true;
        if (!x->walk) { /* sorts all agents */
                x->walk = core_walk_new(x->core);
                return true;
        }
        x->fn = fn;
        x->arg = arg;
        why_some(x->core, x->walk, QUEUES_SLICE, x->request, x->part.member, on_place, x);
        if (!core_walk_is_over(x->walk))
                return true;
        add_part(x);
        x->known &= x->part.best.end_ms != 0;
        x->blind |= !estimate_is_close(x->part.part);
        part_end(x);
        return true;
}

void core_quote_sum(const struct core_quoting *x, struct core_quote *ret)
{
        *ret = x->sum;
        if (!x->known) /* a part without a place has no end */
                ret->start_ms = ret->end_ms = ret->end_most_ms = 0;
        if (x->blind)
                ret->end_ms = ret->end_most_ms = 0;
}

const char *core_quote_unquoted(const struct core_quoting *x)
{
        return x->unquoted.text[0] ? x->unquoted.text : NULL;
}

void core_quote_free(struct core_quoting *x)
{
        if (!x)
                return;
        part_end(x);
        forecast_free(x->forecast);
        core_draft_free(x->draft);
        free(x);
}

int core_quote(struct core *c, const struct submission *s,
               void (*fn)(void *arg, const struct core_quote_place *p), void *arg, struct core_quote *ret,
               struct err *err)
{
        struct core_draft *d = NULL;
        struct core_quoting *x;
        bool more = true;
        int r = submission_check(s, err) ? CORE_INVALID : core_draft_new(c, s, CORE_DRAFT_QUOTE, &d, err);

        *ret = (struct core_quote){0};
        while (!r && more)
                r = core_draft_some(d, &more, err);
        if (r) {
                core_draft_free(d);
                return r;
        }
        x = core_quote_new(d);
        while (core_quote_some(x, fn, arg))
                ;
        core_quote_sum(x, ret);
        core_quote_free(x);
        return 0;
}
