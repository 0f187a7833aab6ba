#include "sim/guess.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/query.h"

#define LAST_WAITS 10u

struct guess {
        int64_t start_ms, end_ms, end_most_ms; /* 0: the core knew none, or was not asked */
        double two_ms;                         /* the mean of its user's last two; 0: he had none */
        uint32_t cluster;                      /* where it ran */
};
struct line { /* the last waits at a cluster's queues */
        double wait_ms[LAST_WAITS];
        size_t count;
};
struct last_two { /* run times of a user's */
        double last_ms, before_ms;
        unsigned count;
};
struct sim_guesses {
        const struct sim_workload *w;
        size_t clusters;
        struct guess *jobs;
        float *means; /* job * clusters + cluster: mean of the last waits there when it was submitted, ms */
        struct line *lines;
        struct last_two *users;
};

struct sim_guesses *sim_guesses_new(const struct sim_workload *w, const struct sim_site *site)
{
        struct sim_guesses *g = mem_new(struct sim_guesses);

        g->w = w;
        g->clusters = site->count;
        g->jobs = mem_zalloc((w->job_count + 1) * sizeof(*g->jobs));
        g->means = mem_array(NULL, (w->job_count + 1) * site->count, sizeof(*g->means));
        g->lines = mem_zalloc(site->count * sizeof(*g->lines));
        g->users = mem_zalloc((w->user_count + 1) * sizeof(*g->users));
        return g;
}

void sim_guesses_free(struct sim_guesses *g)
{
        if (!g)
                return;
        free(g->jobs);
        free(g->means);
        free(g->lines);
        free(g->users);
        free(g);
}

static double line_mean(const struct line *l)
{
        size_t n = l->count < LAST_WAITS ? l->count : LAST_WAITS;
        double sum = 0;

        for (size_t i = 0; i < n; i++)
                sum += l->wait_ms[i];
        return n ? sum / (double)n : 0;
}

void sim_guess(struct sim_guesses *g, uint32_t job, struct core *c, uint64_t request, uint32_t member)
{
        const struct last_two *two = &g->users[g->w->jobs[job].user];
        struct core_eta eta;
        uint32_t look = 0;

        for (size_t k = 0; k < g->clusters; k++)
                g->means[job * g->clusters + k] = (float)line_mean(&g->lines[k]);
        g->jobs[job].two_ms = two->count > 1 ? (two->last_ms + two->before_ms) / 2 : two->last_ms;
        while (core_eta_some(c, &look))
                ;
        if (core_eta(c, request, member, &eta) == 0) {
                g->jobs[job].start_ms = eta.start_ms;
                g->jobs[job].end_ms = eta.end_ms;
                g->jobs[job].end_most_ms = eta.end_most_ms;
        }
}

void sim_guess_started(struct sim_guesses *g, uint32_t job, uint32_t cluster, const struct sim_times *t)
{
        struct line *l = &g->lines[cluster];

        g->jobs[job].cluster = cluster;
        l->wait_ms[l->count++ % LAST_WAITS] = (double)(t->started - t->submitted);
}

void sim_guess_ended(struct sim_guesses *g, uint32_t job, int64_t run_ms)
{
        struct last_two *two = &g->users[g->w->jobs[job].user];

        two->before_ms = two->last_ms;
        two->last_ms = (double)run_ms;
        two->count++;
}

struct errors {
        double *values;
        size_t count;
};

static double median(struct errors *e)
{
        struct sim_spread s;

        sim_spread_of(e->values, e->count, &s);
        free(e->values);
        return s.median / 1000;
}

static void note(struct errors *e, double guessed, double was)
{
        e->values[e->count++] = fabs(guessed - was);
}

void sim_guesses_measure(const struct sim_guesses *g, const struct sim_times *times,
                         struct sim_guess_errors *ret)
{
        struct errors e[7];

        *ret = (struct sim_guess_errors){.count = 0};
        for (int i = 0; i < 7; i++)
                e[i] = (struct errors){mem_array(NULL, g->w->job_count + 1, sizeof(double)), 0};
        for (size_t i = 0; i < g->w->job_count; i++) {
                const struct guess *x = &g->jobs[i];
                const struct sim_times *t = &times[i];
                double wait = (double)(t->started - t->submitted), run = (double)(t->ended - t->started),
                       asked = (double)g->w->jobs[i].asked_s * 1000,
                       limited = asked > 0 && run > asked ? asked : run,
                       usual = (double)g->means[i * g->clusters + x->cluster];

                if (x->start_ms == 0 || x->end_ms == 0) {
                        ret->unknown++;
                        continue;
                }
                ret->count++;
                note(&e[0], (double)(x->start_ms - t->submitted), wait);
                note(&e[1], usual, wait);
                ret->by_half += limited <= (double)(x->end_ms - x->start_ms);
                ret->by_most += limited <= (double)(x->end_most_ms - x->start_ms);
                if (x->two_ms > 0)
                        note(&e[6], x->two_ms, run);
                note(&e[2], (double)(x->end_ms - x->start_ms), run);
                if (asked > 0)
                        note(&e[3], asked, run);
                note(&e[4], (double)(x->end_ms - t->submitted), wait + run);
                if (asked > 0)
                        note(&e[5], usual + asked, wait + run);
        }
        ret->wait_s = median(&e[0]);
        ret->wait_usual_s = median(&e[1]);
        ret->run_s = median(&e[2]);
        ret->run_asked_s = median(&e[3]);
        ret->end_s = median(&e[4]);
        ret->end_usual_s = median(&e[5]);
        ret->run_two_s = median(&e[6]);
        ret->by_half /= ret->count ? (double)ret->count : 1;
        ret->by_most /= ret->count ? (double)ret->count : 1;
}
