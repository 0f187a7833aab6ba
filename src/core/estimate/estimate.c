#include "core/estimate/estimate.h"

#include <math.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/estimate/busy.h"
#include "core/model/core_parts.h"

#define ESTIMATES_MAX 200000u /* programs and owners; what is more shares one */
#define PACKED_MAX    5000u   /* of them that are kept over a restart */
#define MEMORY        8       /* about so many runs are remembered */
#define PACE_MEMORY   32u     /* of a place's pace: what the latest runs weigh together */
#define PACE_MIN      8u      /* fewer say nothing */

static struct estimate *find(struct core *c, struct str key)
{
        struct estimate *e;

        if (!c->estimates->programs)
                c->estimates->programs = map_new();
        e = map_get(c->estimates->programs, key);
        if (!e && map_count(c->estimates->programs) >= ESTIMATES_MAX)
                return &c->estimates->everybody;
        if (!e) {
                e = mem_new(struct estimate);
                map_put(c->estimates->programs, key, e);
        }
        return e;
}

void estimate_attach(struct core *c, const struct request *r, struct part *p)
{
        BUF_CLEANUP struct buf key = {0};
        struct estimate *owner;
        struct str program;

        buf_addz(&key, request_owner(r));
        owner = find(c, buf_view(&key));
        buf_char(&key, '\0');
        if (eval_string(&c->eval, p->job_template->ad, NULL, c->attr.Cmd, &program))
                buf_str(&key, program);
        p->of_program = find(c, buf_view(&key));
        p->of_program->owner = owner;
        eval_reset(&c->eval);
}

static void add(struct estimate *e, double run_ms, double bytes_out)
{
        double weight = 1.0 / (e->count < MEMORY ? e->count + 1 : MEMORY);

        e->run_ms += (run_ms - e->run_ms) * weight;
        e->bytes_out += (bytes_out - e->bytes_out) * weight;
        e->last_ms = run_ms;
        e->count++;
}

/* An owner's is the mean of the last two: jobs of one user come in runs of the same kind (Tsafrir, Etsion,
 * Feitelson: "Backfilling using system-generated predictions", 2007). */
static void add_owner(struct estimate *e, double run_ms, double bytes_out)
{
        double before = e->count ? e->last_ms : run_ms;

        add(e, run_ms, bytes_out);
        e->run_ms = (before + run_ms) / 2;
}

/* How much longer than elsewhere a job runs there: by the agent's word, and as far from that as its runs show
 * beyond luck. Programs that take now a minute and now an hour would else make places of one kind look
 * unlike, by more than their files are worth. */
double estimate_slowness(const struct queue *q)
{
        double told = q && q->speed > 0.01 && q->speed < 100 ? 1 / q->speed : 1, luck;

        if (!q || q->pace.count < PACE_MIN)
                return told;
        luck = 3 * sqrt(q->pace.variance / (q->pace.count < PACE_MEMORY ? q->pace.count : PACE_MEMORY));
        if (q->pace.mean > told)
                return q->pace.mean - luck > told ? q->pace.mean - luck : told;
        return q->pace.mean + luck < told ? q->pace.mean + luck : told;
}

static void add_pace(struct estimate_pace *e, double ratio)
{
        double weight = 1.0 / (e->count < PACE_MEMORY / 2 ? e->count + 1 : PACE_MEMORY / 2);
        double off = ratio - e->mean;

        e->mean += off * weight;
        e->variance = (1 - weight) * (e->variance + weight * off * off);
        e->count++;
}

bool estimate_learn(struct core *c, const struct part *p, struct queue *q, int64_t run_ms, uint64_t bytes_out)
{
        double slow = estimate_slowness(q), expected = p->of_program ? p->of_program->run_ms : 0;
        bool paced;

        if (!p->of_program)
                return false;
        paced = p->of_program->count >= 3 && expected > 1000;
        if (paced) {
                double ratio = (double)run_ms / expected;

                add_pace(&q->pace, ratio < 0.1 ? 0.1 : ratio > 10 ? 10 : ratio);
        }
        add(p->of_program, (double)run_ms / slow, (double)bytes_out);
        add_owner(p->of_program->owner, (double)run_ms / slow, (double)bytes_out);
        if (p->of_program != &c->estimates->everybody)
                add(&c->estimates->everybody, (double)run_ms / slow, (double)bytes_out);
        return paced;
}

int64_t estimate_run_ms(struct core *c, const struct part *p, const struct queue *q, bool *ret_known)
{
        return estimate_run_at_ms(c, p, estimate_slowness(q), ret_known);
}

int64_t estimate_run_at_ms(struct core *c, const struct part *p, double slow, bool *ret_known)
{
        double ms = c->estimates->everybody.run_ms * slow;
        bool known = true;

        if (p->of_program && p->of_program->count)
                ms = p->of_program->run_ms * slow;
        else if (p->job_template->expected_ms)
                ms = (double)p->job_template->expected_ms * slow;
        else if (p->of_program && p->of_program->owner->count)
                ms = p->of_program->owner->run_ms * slow;
        else if (p->job_template->allowed_ms)
                ms = (double)p->job_template->allowed_ms;
        else
                known = false;
        if (p->job_template->allowed_ms && ms > (double)p->job_template->allowed_ms)
                ms = (double)p->job_template->allowed_ms;
        if (ret_known)
                *ret_known = known;
        return (int64_t)ms;
}

bool estimate_is_blind(struct core *c, const struct part *p)
{
        bool known = c->estimates->everybody.count > 0;

        if (!known)
                estimate_run_at_ms(c, p, 1, &known);
        return !known;
}

uint64_t estimate_bytes_out(const struct part *p)
{
        if (p->job_template->bytes_out_said >= 0)
                return (uint64_t)p->job_template->bytes_out_said;
        return p->of_program ? (uint64_t)p->of_program->bytes_out : 0;
}

int64_t estimate_left_ms(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms)
{
        int64_t left = estimate_run_ms(c, p, q, NULL) - ran_ms;

        if (left < ran_ms / 4)
                left = ran_ms / 4;
        if (p->job_template->allowed_ms && left > p->job_template->allowed_ms - ran_ms)
                left = p->job_template->allowed_ms - ran_ms;
        return left > 0 ? left : 0;
}

int64_t estimate_end_ms(struct core *c, const struct job *j)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        bool runs = job_state_runs(j->state) && j->started_ms < c->now_ms;

        return c->now_ms + (runs ? 0 : busy_queue_ms(c, j->queue)) +
               estimate_left_ms(c, p, j->queue, runs ? c->now_ms - j->started_ms : 0);
}

/* ---- over a restart */

static unsigned bits_of(uint32_t n)
{
        unsigned bits = 0;

        for (; n; n >>= 1)
                bits++;
        return bits;
}

/* So many bits the number of runs has at least, of those that are kept. */
static unsigned bits_kept(const struct core *c)
{
        size_t with[33] = {0}, kept = 0;
        unsigned bits = 33;
        void *value;

        for (size_t at = 0; c->estimates->programs && map_next(c->estimates->programs, &at, NULL, &value);)
                with[bits_of(((struct estimate *)value)->count)]++;
        while (bits > 1 && kept + with[bits - 1] <= PACKED_MAX)
                kept += with[--bits];
        return bits;
}

static void pack_one(struct buf *out, const struct estimate *e)
{
        pack_u64(out, e->count);
        pack_double(out, e->run_ms);
        pack_double(out, e->last_ms);
        pack_double(out, e->bytes_out);
}

void estimates_pack(struct core *c, struct buf *out)
{
        unsigned bits = bits_kept(c);
        struct str key;
        void *value;

        pack_one(out, &c->estimates->everybody);
        for (size_t at = 0; c->estimates->programs && map_next(c->estimates->programs, &at, &key, &value);)
                if (bits_of(((struct estimate *)value)->count) >= bits) {
                        pack_u64(out, 1);
                        pack_str(out, key);
                        pack_one(out, value);
                }
        pack_u64(out, 0);
}

static bool is_amount(double v)
{
        return isfinite(v) && v >= 0;
}

static struct estimate unpack_one(struct unpack *in)
{
        struct estimate e = {.count = (uint32_t)unpack_max(in, UINT32_MAX)};

        e.run_ms = unpack_double(in);
        e.last_ms = unpack_double(in);
        e.bytes_out = unpack_double(in);
        in->bad |= !is_amount(e.run_ms) || !is_amount(e.last_ms) || !is_amount(e.bytes_out);
        return e;
}

static void take_better(struct estimate *e, const struct estimate *than)
{
        struct estimate *owner = e->owner;

        if (e->count >= than->count)
                return;
        *e = *than;
        e->owner = owner;
}

void estimates_unpack(struct core *c, struct unpack *in)
{
        struct estimate all = unpack_one(in);

        if (!in->bad)
                take_better(&c->estimates->everybody, &all);
        while (unpack_max(in, 1) && !in->bad) {
                struct str key = unpack_str(in);
                struct estimate one = unpack_one(in), *e = in->bad ? NULL : find(c, key);

                if (e && e != &c->estimates->everybody)
                        take_better(e, &one);
        }
}

void estimates_init(struct core *c)
{
        c->estimates = mem_new(struct estimates);
}

void estimates_deinit(struct core *c)
{
        void *value;

        for (size_t at = 0; c->estimates->programs && map_next(c->estimates->programs, &at, NULL, &value);)
                free(value);
        map_free(c->estimates->programs);
        free(c->estimates);
}
