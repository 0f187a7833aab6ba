#include "core/quote.h"

#include "base/mem.h"
#include "core/eta_play.h"
#include "core/gang.h"

struct seat {
        int64_t start_ms;
        uint64_t slots;
        char *company; /* owned */
};
struct quoting {
        struct core *core;
        struct request *request;
        const struct part *part;
        struct eta_play *play;
        uint32_t number;
        void (*fn)(void *arg, const struct core_quote_place *p);
        void *arg;
        /* of the part, over the places that would take it */
        uint64_t slots, room;   /* room: that limits allow, at the place where they allow most */
        struct core_quote best; /* where it would end first, alone */
        int64_t start_ms, job_ms;
        struct seat *seats;
        size_t seat_count, seat_cap;
};

static struct queue *find_queue(struct core *c, const struct core_why *w)
{
        struct core_agent *a = agent_find(c, w->agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                if (!strcmp(q->name, w->queue))
                        return q;
        return NULL;
}

/* What all jobs read comes once; what a job reads for itself, and what it writes, with each. */
static uint64_t bytes_moved(struct core *c, const struct part *p, const struct queue *q,
                            const struct core_cost *one)
{
        struct core_cost shared;
        uint64_t once;

        cost_of(c, p, MEMBER_ANY, q, &shared);
        once = shared.bytes_in - shared.bytes_held;
        return once + (one->bytes_in - one->bytes_held - once + one->bytes_out) * p->count;
}

/* For jobs that start together: who could take how many of them, and from when on. */
static void note_seat(struct quoting *x, const struct queue *q, int64_t start_ms, uint64_t slots)
{
        const struct bucket *b = request_bucket(x->core, x->request, x->part->first);
        struct buf name = {.max = 1024};

        if (gang_size(x->part) == 0 || !b || !gang_company(x->core, b->class, q, &name)) {
                buf_deinit(&name);
                return;
        }
        MEM_GROW(x->seats, x->seat_cap, x->seat_count + 1);
        x->seats[x->seat_count++] =
                (struct seat){.start_ms = start_ms, .slots = slots, .company = mem_dupz(buf_z(&name))};
        buf_deinit(&name);
}

static int by_start(const void *a, const void *b)
{
        int64_t x = ((const struct seat *)a)->start_ms, y = ((const struct seat *)b)->start_ms;

        return (x > y) - (x < y);
}

/* When one node or group, or all, can take a whole set; 0: never. */
static int64_t set_start(struct quoting *x, uint64_t *ret_slots)
{
        struct map *sums = map_new();
        int64_t start_ms = 0;

        if (x->seat_count > 1)
                qsort(x->seats, x->seat_count, sizeof(*x->seats), by_start);
        *ret_slots = 0;
        for (size_t i = 0; i < x->seat_count; i++) {
                const struct seat *s = &x->seats[i];
                uint64_t sum = (uint64_t)(uintptr_t)map_get(sums, str_of(s->company)) + s->slots;

                map_put(sums, str_of(s->company), (void *)(uintptr_t)sum);
                if (sum >= gang_size(x->part) && !start_ms)
                        start_ms = s->start_ms;
                *ret_slots = sum > *ret_slots ? sum : *ret_slots;
        }
        map_free(sums);
        return start_ms;
}

static void quote_place(struct quoting *x, const struct queue *q, const struct core_cost *cost,
                        struct core_quote *ret)
{
        struct core *c = x->core;
        const struct part *p = x->part;
        int64_t job_ms = cost_held_ms(cost);
        uint64_t together = p->template->gang.within == GANG_NODE && gang_size(p) ? gang_size(p) : 1;
        const struct bucket *b = request_bucket(c, x->request, p->first);
        int64_t at = eta_quote_at(x->play, b, q, p->template->cpus * (int64_t)together, job_ms);
        uint64_t slots = eta_slots(q, p->template->cpus * (int64_t)together) * together;

        uint64_t room = eta_quote_room(x->play, b, q);

        slots = slots < room ? slots : room;
        if (slots == 0 || at == 0)
                return;
        x->room = room > x->room ? room : x->room;
        ret->start_ms = at + cost->fetch_ms + cost->image_ms;
        ret->end_ms = at + job_ms * (int64_t)((p->count + slots - 1) / slots);
        ret->bytes_moved = bytes_moved(c, p, q, cost);
        ret->price = cost->price * p->count;
        x->slots += slots;
        note_seat(x, q, ret->start_ms, slots);
        if (!x->best.end_ms || ret->end_ms < x->best.end_ms)
                x->best = *ret;
        if (!x->start_ms || ret->start_ms < x->start_ms) {
                x->start_ms = ret->start_ms;
                x->job_ms = job_ms;
        }
}

static void on_place(void *arg, const struct core_why *w)
{
        struct quoting *x = arg;
        struct core_quote_place place = {x->number, *w, {.jobs = x->part->count}};
        const struct queue *q = find_queue(x->core, w);

        if (q && (w->verdict == CORE_FITS || w->verdict == CORE_BUSY)) {
                quote_place(x, q, &w->cost, &place.quote);
                if (place.quote.start_ms) /* what is queued already goes first */
                        place.why.cost.wait_ms =
                                place.quote.start_ms - x->core->now_ms - w->cost.fetch_ms - w->cost.image_ms;
                place.why.cost.total_ms += place.why.cost.wait_ms - w->cost.wait_ms;
        }
        x->fn(x->arg, &place);
}

/* All places together: they share the jobs. */
static void add_part(struct quoting *x, struct core_quote *ret)
{
        uint64_t n = x->part->count;
        int64_t end;

        x->slots = x->slots < x->room ? x->slots : x->room;
        if (gang_size(x->part)) {
                x->start_ms = set_start(x, &x->slots);
                if (!x->start_ms)
                        x->best.end_ms = x->slots = 0;
                else if (x->best.end_ms < x->start_ms + x->job_ms)
                        x->best.end_ms = x->start_ms + x->job_ms;
        }
        end = x->slots ? x->start_ms + x->job_ms * (int64_t)((n + x->slots - 1) / x->slots) : 0;

        if (end > x->best.end_ms || n == 1)
                end = x->best.end_ms;
        ret->jobs += n;
        ret->bytes_moved += x->best.bytes_moved;
        ret->price += x->best.price;
        if (x->start_ms && (!ret->start_ms || x->start_ms < ret->start_ms))
                ret->start_ms = x->start_ms;
        ret->end_ms = end > ret->end_ms ? end : ret->end_ms;
}

int core_quote(struct core *c, const struct submission *s,
               void (*fn)(void *arg, const struct core_quote_place *p), void *arg, struct core_quote *ret,
               struct err *err)
{
        struct quoting x = {.core = c, .fn = fn, .arg = arg};
        bool existing, known = true;
        uint64_t id;
        int r = core_submit(c, s, true, &id, &existing, err);

        *ret = (struct core_quote){0};
        if (r)
                return r;
        x.request = request_new(c, c->last_id + 1, c->now_ms, (uint32_t)submission_members(s));
        c->submitting = s;
        r = request_load(c, x.request, s, err);
        if (!r) {
                request_split(c, x.request);
                r = label_refuse(c, x.request, err);
                if (!r)
                        r = gang_refuse(c, x.request, err);
        }
        c->submitting = NULL;
        for (size_t i = 0; i < x.request->part_count && !r; i++) {
                struct quoting part = x;

                part.part = &x.request->parts[i];
                part.number = (uint32_t)i;
                if (part.part->count == 0)
                        continue;
                if (!x.play) /* for all parts: when it is the turn of its first jobs */
                        x.play = eta_quote_new(c, request_bucket(c, x.request, part.part->first));
                part.play = x.play;
                core_why(c, x.request->id, part.part->first, on_place, &part);
                add_part(&part, ret);
                known &= part.best.end_ms != 0;
                for (size_t k = 0; k < part.seat_count; k++)
                        free(part.seats[k].company);
                free(part.seats);
        }
        eta_play_free(x.play);
        request_free(c, x.request);
        if (!known) /* a part that has no place has no end */
                ret->start_ms = ret->end_ms = 0;
        return r ? CORE_INVALID : 0;
}
