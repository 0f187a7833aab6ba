#include "sim/measure.h"

#include <stdlib.h>

#include "base/mem.h"

#define SAMPLES_MAX 512u
#define BOUND_MS    10000

const char *const sim_size_names[SIM_SIZES] = {"1", "2-8", "9-64", ">64"};

void sim_measures_deinit(struct sim_measures *m)
{
        free(m->samples);
        free(m->gang_waits);
        *m = (struct sim_measures){0};
}

static int by_value(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

void sim_spread_of(double *values, size_t count, struct sim_spread *ret)
{
        *ret = (struct sim_spread){.count = count};
        if (count == 0)
                return;
        qsort(values, count, sizeof(*values), by_value);
        for (size_t i = 0; i < count; i++)
                ret->mean += values[i];
        ret->mean /= (double)count;
        ret->median = values[count / 2];
        ret->p95 = values[(count - 1) * 95 / 100];
        ret->max = values[count - 1];
}

static unsigned size_of(uint32_t cpus)
{
        return cpus == 1 ? 0 : cpus <= 8 ? 1 : cpus <= 64 ? 2 : 3;
}

static double slowdown_of(const struct sim_job *j, const struct sim_times *t)
{
        double run = (double)(j->run_ms > BOUND_MS ? j->run_ms : BOUND_MS),
               s = (double)(t->ended - t->submitted) / run;

        return s < 1 ? 1 : s;
}

/* Jain, Chiu and Hawe, 1984: (sum x)^2 / (n * sum x^2), over users who have jobs. */
static double fairness_of(const struct sim_workload *w, const struct sim_times *times)
{
        double *sum = mem_zalloc((w->user_count + 1) * sizeof(*sum)), all = 0, squares = 0;
        uint32_t *count = mem_zalloc((w->user_count + 1) * sizeof(*count)), n = 0;

        for (size_t i = 0; i < w->job_count; i++) {
                sum[w->jobs[i].user] += slowdown_of(&w->jobs[i], &times[i]);
                count[w->jobs[i].user]++;
        }
        for (uint32_t u = 0; u < w->user_count; u++)
                if (count[u]) {
                        double mean = sum[u] / count[u];

                        all += mean;
                        squares += mean * mean;
                        n++;
                }
        free(sum);
        free(count);
        return squares > 0 ? all * all / (n * squares) : 1;
}

static void waits(struct sim_measures *m, const struct sim_workload *w, const struct sim_times *times,
                  double *values)
{
        for (unsigned size = 0; size < SIM_SIZES; size++) {
                size_t n = 0;

                for (size_t i = 0; i < w->job_count; i++)
                        if (size_of(w->jobs[i].cpus) == size)
                                values[n++] = (double)(times[i].started - times[i].submitted) / 1000;
                sim_spread_of(values, n, &m->wait_by_size_s[size]);
        }
        for (size_t i = 0; i < w->job_count; i++)
                values[i] = (double)(times[i].ended - times[i].submitted) / 1000;
        sim_spread_of(values, w->job_count, &m->turnaround_s);
        for (size_t i = 0; i < w->job_count; i++)
                values[i] = (double)(times[i].started - times[i].submitted) / 1000;
        sim_spread_of(values, w->job_count, &m->wait_s);
}

static void add_sample(struct sim_measures *m, const struct sim_sample *x)
{
        MEM_GROW(m->samples, m->sample_cap, m->sample_count + 1);
        m->samples[m->sample_count++] = *x;
}

void sim_measure_jobs(struct sim_measures *m, const struct sim_workload *w, const struct sim_times *times,
                      uint64_t cpus, double used_cpu_s)
{
        double *values = mem_array(NULL, w->job_count + 1, sizeof(*values));
        int64_t first = INT64_MAX, last = 0;

        for (size_t i = 0; i < w->job_count; i++) {
                first = times[i].submitted < first ? times[i].submitted : first;
                last = times[i].ended > last ? times[i].ended : last;
                values[i] = slowdown_of(&w->jobs[i], &times[i]);
        }
        sim_spread_of(values, w->job_count, &m->slowdown);
        waits(m, w, times, values);
        sim_spread_of(m->gang_waits, m->gangs, &m->gang_wait_s);
        m->jobs = w->job_count;
        m->makespan_s = w->job_count ? (double)(last - first) / 1000 : 0;
        m->utilisation = m->makespan_s > 0 && cpus ? used_cpu_s / ((double)cpus * m->makespan_s) : 0;
        m->fairness = fairness_of(w, times);
        if (m->sample_count && m->seen.at_ms > m->samples[m->sample_count - 1].at_ms)
                add_sample(m, &m->seen);
        free(values);
}

void sim_measure_sample(struct sim_measures *m, int64_t at_ms, uint64_t waiting)
{
        struct sim_sample now = {at_ms, waiting, m->bytes_in + m->bytes_out};

        if (m->sample_every_ms == 0)
                m->sample_every_ms = 1000;
        for (int64_t next; (next = (int64_t)m->sample_count * m->sample_every_ms) <= at_ms;) {
                struct sim_sample x = next == at_ms ? now : m->seen;

                if (m->sample_count == SAMPLES_MAX) {
                        for (size_t i = 0; i < SAMPLES_MAX / 2; i++)
                                m->samples[i] = m->samples[2 * i];
                        m->sample_count = SAMPLES_MAX / 2;
                        m->sample_every_ms *= 2;
                        continue;
                }
                x.at_ms = next;
                add_sample(m, &x);
        }
        m->seen = now;
}
