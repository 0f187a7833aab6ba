#include "core/estimate/estimate.h"

#include <math.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/estimate/busy.h"
#include "core/estimate/likeness.h"
#include "core/model/core_parts.h"

#define ESTIMATES_MAX 200000u /* most programs and owners; further ones share one estimate */
#define OWNERS_MAX    20000u  /* most of one owner; further programs share the estimate of the less similar */
#define TEXT_MAX      512u    /* bytes of a program's name in a key */
#define RUN_MAX_MS    (UINT64_C(1) << 42)
#define PACKED_MAX    5000u /* most estimates that are kept over a restart */
#define MEMORY        8     /* memory of the moving averages, in runs */
#define HELD_MEMORY   500.0 /* memory of the count of bounds that held, in predictions */
/* A predicted end is cached for a fiftieth of the age, and no longer than this. */
#define ENDS_MAX_MS 60000
#define PACE_MEMORY 32u /* memory of a place's slowness, in runs */
/* Quantile of jobs at their start that holds for nine in ten jobs at their submission: of a burst of a new
 * kind none has ended when it is submitted. */
#define MOST       0.93
#define SPREAD_MIN 8u /* fewest predictions from which errors are derived */
#define PACE_MIN   8u /* fewest runs from which slowness is derived */

static struct estimate *find_estimate(struct core *c, struct str key)
{
        struct estimate *e = map_get(c->estimates->programs, key);

        if (!e && map_count(c->estimates->programs) >= ESTIMATES_MAX)
                return &c->estimates->everybody;
        if (!e) {
                e = mem_new(struct estimate);
                e->key = mem_dup(key.p, key.n);
                e->key_n = key.n;
                map_put(c->estimates->programs, key, e);
        }
        return e;
}

static void estimate_free(struct estimate *e)
{
        free(e->key);
        free(e);
}

static struct estimate *owners(struct estimate *e)
{
        while (e->above)
                e = e->above;
        return e;
}

/* One user less. Frees estimates that have none, and from which nothing was learned. */
static void give_back(struct core *c, struct estimate *e)
{
        while (e && e->key && --e->users == 0 && e->count == 0) {
                struct estimate *above = e->above;

                if (above)
                        owners(above)->below--;
                map_take(c->estimates->programs, str_make(e->key, e->key_n));
                estimate_free(e);
                e = above;
        }
}

static bool has_room(const struct core *c, struct estimate *above)
{
        return map_count(c->estimates->programs) < ESTIMATES_MAX &&
               (!above || (above->key && owners(above)->below < OWNERS_MAX));
}

/* Finds or makes the estimate for the key, below the estimate of less similar jobs (NULL: this is an
 * owner's), which is returned where there are too many. */
static struct estimate *find_below(struct core *c, const struct buf *key, struct estimate *above)
{
        struct estimate *e = map_get(c->estimates->programs, buf_view(key));

        if (!e && !has_room(c, above))
                return above ? above : &c->estimates->everybody;
        if (!e)
                e = find_estimate(c, buf_view(key));
        if (above && above->key && !e->above) { /* one that was learned before a restart has none yet */
                e->above = above;
                above->users++;
                owners(above)->below++;
        }
        return e;
}

/* Appends a text that is long only if somebody means to fill the memory. */
static void add_text(struct buf *key, struct str text)
{
        buf_str(key, str_head(text, TEXT_MAX));
        if (text.n > TEXT_MAX)
                buf_printf(key, "...%llx", (unsigned long long)map_hash_stable(text.p, text.n));
}

static uint64_t add_late(const struct job_template *t, symbol name, uint64_t hash)
{
        struct str text = job_template_late_text(t, name);

        return text.p ? likeness_add_arguments(hash, text) : hash;
}

static double input_bytes(struct core *c, const struct job_template *t)
{
        struct str sizes, one;
        double all = 0, bytes;

        if (!eval_string(&c->eval, t->ad, NULL, c->attr.TransferInputSizes, &sizes))
                return 0;
        while (sizes.n && str_cut(&sizes, ',', &one))
                all += str_to_double(str_trim(one), &bytes) == 0 && bytes > 0 ? bytes : 0;
        return all;
}

static void key_add(struct buf *key, uint64_t hash)
{
        buf_char(key, '\0');
        for (int i = 0; i < 8; i++)
                buf_char(key, (char)(hash >> 8 * i));
}

#define TEXT_STEPS 200u /* of the evaluations of all texts together: parts of a request come at once */

void estimate_attach(struct core *c, const struct request *r, struct part *p)
{
        uint32_t steps_max = c->eval.steps_max;
        const struct job_template *t = p->job_template;
        BUF_CLEANUP struct buf key = {0};
        struct estimate *e, *before = p->likes;
        struct str text;
        uint64_t hash = LIKENESS_START;

        c->eval.steps_max = TEXT_STEPS;
        eval_share(&c->eval);
        buf_addz(&key, request_owner(r));
        e = find_below(c, &key, NULL);
        buf_char(&key, '\0');
        if (eval_string(&c->eval, t->ad, NULL, c->attr.Cmd, &text))
                add_text(&key, text);
        e = find_below(c, &key, e);
        if (eval_string(&c->eval, t->ad, NULL, c->attr.Args, &text) ||
            eval_string(&c->eval, t->ad, NULL, c->attr.Arguments, &text))
                hash = likeness_add_arguments(hash, text);
        hash = add_late(t, c->attr.Args, hash);
        hash = add_late(t, c->attr.Arguments, hash);
        hash = likeness_add_amount(hash, (double)t->allowed_ms);
        key_add(&key, hash);
        e = find_below(c, &key, e);
        hash = likeness_add_amount(hash, (double)t->cpus);
        key_add(&key, likeness_add_amount(hash, input_bytes(c, t)));
        p->likes = find_below(c, &key, e);
        p->likes->users++;
        give_back(c, before);
        eval_share_end(&c->eval);
        c->eval.steps_max = steps_max;
        eval_reset(&c->eval);
}

void estimate_detach(struct core *c, struct part *p)
{
        give_back(c, p->likes);
        p->likes = NULL;
}

static int by_length(const void *x, const void *y)
{
        float a = *(const float *)x, b = *(const float *)y;

        return (a > b) - (a < b);
}

static void add_sample(struct estimate *e, double run_ms, double bytes_out)
{
        double weight = 1.0 / (e->count < MEMORY ? e->count + 1 : MEMORY);
        unsigned n = e->count < ESTIMATE_LAST ? e->count + 1 : ESTIMATE_LAST; /* number of runs kept */
        float sorted[ESTIMATE_LAST];

        e->mean_ms += (run_ms - e->mean_ms) * weight;
        e->bytes_out += (bytes_out - e->bytes_out) * weight;
        e->last_ms[e->count % ESTIMATE_LAST] = (float)run_ms;
        e->count++;
        memcpy(sorted, e->last_ms, n * sizeof(*sorted));
        qsort(sorted, n, sizeof(*sorted), by_length);
        e->run_ms = ((double)sorted[n / 2] + (double)sorted[(n - 1) / 2]) / 2;
}

/* See estimate.h. The slowness is the agent's value, corrected only as far as its runs differ significantly.
 * Otherwise programs with widely varying run times would make similar places look different, by more than
 * locality is worth. */
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

/* ---- predictions */
struct expected {
        double ms;
        enum estimate_source source;
        uint32_t runs; /* number of runs that it is based on */
};

/* Returns the prediction for a member at a place with this factor of slowness. */
static struct expected expect(struct core *c, const struct part *p, double slow)
{
        static const enum estimate_source sources[] = {ESTIMATE_SAME, ESTIMATE_ARGUMENTS, ESTIMATE_PROGRAM,
                                                       ESTIMATE_OWNER};
        const struct job_template *t = p->job_template;
        struct expected x = {c->estimates->everybody.run_ms * slow, ESTIMATE_EVERYBODY,
                             c->estimates->everybody.count};
        unsigned level = 0;

        for (const struct estimate *e = p->likes; e; e = e->above, level++) {
                if (level == 2 && t->expected_ms) {
                        x = (struct expected){(double)t->expected_ms * slow, ESTIMATE_SAID, ESTIMATE_LAST};
                        break;
                }
                if (e->count && level < 4) {
                        x = (struct expected){e->run_ms * slow, sources[level], e->count};
                        break;
                }
        }
        if (x.source == ESTIMATE_EVERYBODY && t->expected_ms)
                x = (struct expected){(double)t->expected_ms * slow, ESTIMATE_SAID, ESTIMATE_LAST};
        if (x.source == ESTIMATE_EVERYBODY && t->allowed_ms)
                x = (struct expected){(double)t->allowed_ms, ESTIMATE_ALLOWED, ESTIMATE_LAST};
        if (t->allowed_ms && x.ms > (double)t->allowed_ms)
                x.ms = (double)t->allowed_ms;
        return x;
}

/* Returns the prediction for what is shown: the time of other programs stands for nobody's, so the allowed
 * time comes before it. */
static struct expected expect_shown(struct core *c, const struct part *p, double slow)
{
        struct expected x = expect(c, p, slow);

        if (x.source > ESTIMATE_SAID && p->job_template->allowed_ms)
                x = (struct expected){(double)p->job_template->allowed_ms, ESTIMATE_ALLOWED, ESTIMATE_LAST};
        return x;
}

static unsigned spread_of(const struct expected *x)
{
        return (unsigned)x->source * 3 + (x->runs < 2 ? 0 : x->runs < ESTIMATE_LAST ? 1 : 2);
}

int64_t estimate_run_ms(struct core *c, const struct part *p, const struct queue *q, bool *ret_known)
{
        return estimate_run_at_ms(c, p, estimate_slowness(q), ret_known);
}

int64_t estimate_run_at_ms(struct core *c, const struct part *p, double slow, bool *ret_known)
{
        struct expected x = expect(c, p, slow);

        if (ret_known)
                *ret_known = x.source != ESTIMATE_EVERYBODY;
        return (int64_t)x.ms;
}

bool estimate_is_blind(struct core *c, const struct part *p)
{
        return c->estimates->everybody.count == 0 && !p->job_template->expected_ms &&
               !p->job_template->allowed_ms && !(p->likes && p->likes->count);
}

bool estimate_is_close(const struct part *p)
{
        const struct estimate *like = p->likes;

        return p->job_template->expected_ms || p->job_template->allowed_ms ||
               (like && (like->count || (like->above && like->above->count)));
}

int64_t estimate_shown_ms(struct core *c, const struct part *p, double slow, bool *ret_known)
{
        if (ret_known)
                *ret_known = estimate_is_close(p);
        return (int64_t)expect_shown(c, p, slow).ms;
}

uint64_t estimate_bytes_out(const struct part *p)
{
        const struct estimate *e = p->likes;

        if (p->job_template->bytes_out_said >= 0)
                return (uint64_t)p->job_template->bytes_out_said;
        for (unsigned level = 0; e && !e->count && level < 2; level++)
                e = e->above;
        return e ? (uint64_t)e->bytes_out : 0;
}

/* Returns a quantile of the whole run time. */
static int64_t quantile(struct core *c, const struct part *p, const struct expected *x, double part,
                        int64_t ran_ms)
{
        double expected = x->ms > 1 ? x->ms : 1,
               ms = expected *
                    spread_quantile(&c->estimates->spreads[spread_of(x)], part, (double)ran_ms / expected);

        if (p->job_template->allowed_ms && ms > (double)p->job_template->allowed_ms)
                ms = (double)p->job_template->allowed_ms;
        return ms < (double)ran_ms ? ran_ms : ms > 1e15 ? (int64_t)1e15 : (int64_t)ms;
}

/* Returns the median of the whole run time. With too few runs to know the error the prediction is used as it
 * is, and a job that has exceeded it is predicted to run for a quarter of its age more. */
static int64_t half(struct core *c, const struct part *p, const struct expected *x, int64_t ran_ms)
{
        int64_t ms = ran_ms < (int64_t)x->ms ? (int64_t)x->ms : ran_ms + ran_ms / 4;

        if (c->estimates->spreads[spread_of(x)].count >= SPREAD_MIN)
                return quantile(c, p, x, 0.5, ran_ms);
        if (p->job_template->allowed_ms && ms > p->job_template->allowed_ms)
                ms = p->job_template->allowed_ms;
        return ms > ran_ms ? ms : ran_ms;
}

void estimate_bounds(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms,
                     struct estimate_bounds *ret)
{
        struct expected x = expect_shown(c, p, estimate_slowness(q));

        ret->half_ms = half(c, p, &x, ran_ms);
        ret->most_ms = quantile(c, p, &x, MOST, ran_ms);
        ret->most_ms = ret->most_ms > ret->half_ms ? ret->most_ms : ret->half_ms;
}

int64_t estimate_left_ms(struct core *c, const struct part *p, const struct queue *q, int64_t ran_ms)
{
        struct expected x = expect(c, p, estimate_slowness(q));

        return ran_ms < (int64_t)x.ms ? (int64_t)x.ms - ran_ms : half(c, p, &x, ran_ms) - ran_ms;
}

void estimate_ends(struct core *c, const struct job *j, struct estimate_bounds *ret)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        bool runs = job_state_runs(j->state) && j->started_ms < c->now_ms;
        int64_t from = runs ? j->started_ms : c->now_ms + busy_queue_ms(c, j->queue);

        estimate_bounds(c, p, j->queue, runs ? c->now_ms - j->started_ms : 0, ret);
        ret->half_ms += from;
        ret->most_ms += from;
}

int64_t estimate_end_ms(struct core *c, struct job *j)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        int64_t age = job_state_runs(j->state) ? c->now_ms - j->started_ms : 0;

        if (age <= 0)
                return c->now_ms + busy_queue_ms(c, j->queue) + estimate_left_ms(c, p, j->queue, 0);
        if (c->now_ms < j->ends_due_ms && c->now_ms < j->ends_ms && c->now_ms >= j->ends_at_ms)
                return j->ends_ms;
        j->ends_ms = c->now_ms + estimate_left_ms(c, p, j->queue, age);
        j->ends_at_ms = c->now_ms;
        j->ends_due_ms = c->now_ms + (age / 50 < ENDS_MAX_MS ? age / 50 : ENDS_MAX_MS);
        return j->ends_ms;
}

int64_t estimate_forecast_end_ms(struct core *c, struct job *j, bool guess)
{
        const struct part *p = request_part(j->request, j->member, NULL);

        if (guess ? estimate_is_blind(c, p) : !estimate_is_close(p))
                return 0;
        if (guess || expect_shown(c, p, estimate_slowness(j->queue)).source != ESTIMATE_ALLOWED)
                return estimate_end_ms(c, j);
        if (job_state_runs(j->state))
                return j->started_ms + p->job_template->allowed_ms;
        return c->now_ms + busy_queue_ms(c, j->queue) + p->job_template->allowed_ms;
}

/* ---- results */
void estimate_started(struct core *c, struct job *j)
{
        struct expected x;
        const struct part *p = request_part(j->request, j->member, NULL);

        j->expected_ms = 0;
        j->ends_due_ms = 0;
        if (!p->likes)
                return;
        x = expect(c, p, estimate_slowness(j->queue));
        j->expected_ms = (float)(x.ms > 1 ? x.ms : 1);
        j->expected_by = (uint8_t)spread_of(&x);
}

static void compare_with_past(struct core *c, const struct job *j, double run_ms)
{
        struct estimates *all = c->estimates;
        struct spread *s = &all->spreads[j->expected_by];
        double ratio = run_ms / (double)j->expected_ms, keep = 1 - 1 / HELD_MEMORY;

        if (s->count > 0 || all->everybody.count > 0) {
                all->ended = all->ended * keep + 1;
                all->by_half = all->by_half * keep + (ratio <= spread_quantile(s, 0.5, 0));
                all->by_most = all->by_most * keep + (ratio <= spread_quantile(s, MOST, 0));
        }
        spread_add(s, ratio);
}

bool estimate_learn(struct core *c, const struct job *j, int64_t run_ms, uint64_t bytes_out)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        double slow = estimate_slowness(j->queue);
        struct estimate *e = p->likes;
        bool paced;

        if (!e)
                return false;
        if (j->expected_ms > 0)
                compare_with_past(c, j, (double)run_ms);
        while (e->count < 3 && e->above)
                e = e->above;
        paced = e->above && e->count >= 3 && e->mean_ms > 1000;
        if (paced) {
                double ratio = (double)run_ms / e->mean_ms;

                add_pace(&j->queue->pace, ratio < 0.1 ? 0.1 : ratio > 10 ? 10 : ratio);
        }
        for (e = p->likes; e; e = e->above)
                add_sample(e, (double)run_ms / slow, (double)bytes_out);
        if (p->likes != &c->estimates->everybody)
                add_sample(&c->estimates->everybody, (double)run_ms / slow, (double)bytes_out);
        return paced;
}

/* ---- over a restart */

static unsigned bits_of(uint32_t n)
{
        unsigned bits = 0;

        for (; n; n >>= 1)
                bits++;
        return bits;
}

/* Returns the smallest bit length of the number of runs among the estimates that are kept. */
static unsigned bits_kept(const struct core *c)
{
        size_t with[33] = {0}, kept = 0;
        unsigned bits = 33;
        void *value;

        for (size_t at = 0; map_next(c->estimates->programs, &at, NULL, &value);)
                with[bits_of(((struct estimate *)value)->count)]++;
        while (bits > 1 && kept + with[bits - 1] <= PACKED_MAX)
                kept += with[--bits];
        return bits;
}

static void pack_one(struct buf *out, const struct estimate *e)
{
        unsigned n = e->count < ESTIMATE_LAST ? e->count : ESTIMATE_LAST;

        pack_u64(out, e->count);
        for (unsigned i = 0; i < n; i++)
                pack_u64(out, (uint64_t)e->last_ms[i]);
        pack_u64(out, (uint64_t)e->mean_ms);
        pack_u64(out, (uint64_t)e->bytes_out);
}

void estimates_pack(struct core *c, struct buf *out)
{
        unsigned bits = bits_kept(c);
        struct str key;
        void *value;

        pack_one(out, &c->estimates->everybody);
        for (size_t at = 0; map_next(c->estimates->programs, &at, &key, &value);)
                if (bits_of(((struct estimate *)value)->count) >= bits) {
                        pack_u64(out, 1);
                        pack_str(out, key);
                        pack_one(out, value);
                }
        pack_u64(out, 0);
        for (unsigned i = 0; i < ESTIMATE_SPREADS; i++)
                spread_pack(&c->estimates->spreads[i], out);
}

static struct estimate unpack_one(struct unpack *in)
{
        uint32_t count = (uint32_t)unpack_max(in, UINT32_MAX),
                 n = count < ESTIMATE_LAST ? count : ESTIMATE_LAST;
        struct estimate e = {.count = count - n};

        for (unsigned i = 0; i < n; i++)
                e.last_ms[i] = (float)unpack_max(in, RUN_MAX_MS);
        e.mean_ms = (double)unpack_max(in, RUN_MAX_MS);
        e.bytes_out = (double)unpack_u64(in);
        if (n > 0 && !in->bad) { /* adds the last one again, for the median */
                uint32_t newest = (count - 1) % ESTIMATE_LAST;
                double mean_ms = e.mean_ms, bytes_out = e.bytes_out;

                e.count = count - 1;
                add_sample(&e, (double)e.last_ms[newest], bytes_out);
                e.mean_ms = mean_ms;
                e.bytes_out = bytes_out;
        }
        return e;
}

static void take_better(struct estimate *e, const struct estimate *than)
{
        struct estimate had = *e;

        if (e->count >= than->count)
                return;
        *e = *than;
        e->above = had.above;
        e->users = had.users;
        e->below = had.below;
        e->key = had.key;
        e->key_n = had.key_n;
}

void estimates_unpack(struct core *c, struct unpack *in)
{
        struct estimate all = unpack_one(in);

        if (!in->bad)
                take_better(&c->estimates->everybody, &all);
        while (unpack_max(in, 1) && !in->bad) {
                struct str key = unpack_str(in);
                struct estimate one = unpack_one(in), *e = in->bad ? NULL : find_estimate(c, key);

                if (e && e != &c->estimates->everybody)
                        take_better(e, &one);
        }
        for (unsigned i = 0; i < ESTIMATE_SPREADS; i++)
                spread_unpack(&c->estimates->spreads[i], in);
}

void estimates_init(struct core *c)
{
        c->estimates = mem_new(struct estimates);
        c->estimates->programs = map_new();
        for (unsigned i = 0; i < ESTIMATE_SPREADS; i++)
                spread_init(&c->estimates->spreads[i]);
}

void estimates_deinit(struct core *c)
{
        void *value;

        for (size_t at = 0; map_next(c->estimates->programs, &at, NULL, &value);)
                estimate_free(value);
        map_free(c->estimates->programs);
        free(c->estimates);
}
