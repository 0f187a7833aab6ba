#include "sim/generate.h"

#include "base/mem.h"

#define RUN_SIGMA  1.0
#define FILE_SIGMA 1.2

struct class
{
        int64_t run_ms;
        uint32_t cpus, memory_mib, home;
        uint32_t first_file, files;
        uint32_t gang, asked_s;
};

/* Jobs of the class: whole gangs, at least one. */
static uint64_t make_set(const struct sim_generate_options *o, struct sim_random *random, uint64_t jobs,
                         struct class *k)
{
        if (!o->gangs)
                return jobs;
        k->asked_s = (uint32_t)(k->run_ms * 2 / 1000) + 1;
        if (sim_random_below(random, 100) >= o->gangs)
                return jobs;
        k->gang = o->gang_size;
        return jobs < k->gang ? k->gang : jobs - jobs % k->gang;
}

static void make_class(struct sim_workload *w, const struct sim_generate_options *o,
                       struct sim_random *random, uint64_t jobs, struct class *ret)
{
        uint32_t steps = 0;

        while (2u << steps <= o->cpus_max && steps < 30)
                steps++;
        *ret = (struct class){.run_ms =
                                      (int64_t)sim_random_lognormal(random, (double)o->run_ms, RUN_SIGMA) + 1,
                              .cpus = 1u << sim_random_popular(random, steps + 1),
                              .memory_mib = 64u << sim_random_below(random, 6),
                              .home = sim_random_below(random, o->clusters ? o->clusters : 1),
                              .files = o->files ? o->files : (uint32_t)(jobs / 10 + 1),
                              .first_file = (uint32_t)w->file_count};
        if (!o->input_bytes)
                ret->files = 0;
        for (uint32_t i = 0; i < ret->files; i++)
                sim_workload_add_file(
                        w, (uint64_t)sim_random_lognormal(random, (double)o->input_bytes, FILE_SIGMA) + 1,
                        ret->home);
}

void sim_generate(struct sim_workload *w, const struct sim_generate_options *o, struct sim_random *random)
{
        uint32_t classes = o->classes ? o->classes : 1, users = o->users ? o->users : (classes + 9) / 10;
        double at = 0;

        for (uint32_t k = 0; k < classes; k++) {
                uint64_t jobs = o->jobs / classes + (k < o->jobs % classes);
                size_t first = w->job_count;
                struct class class;

                if (jobs == 0)
                        break;
                make_class(w, o, random, jobs, &class);
                jobs = make_set(o, random, jobs, &class);
                if (o->every_ms)
                        at += sim_random_exponential(random, (double)o->every_ms);
                for (uint64_t i = 0; i < jobs; i++) {
                        struct sim_job *j = sim_workload_add_job(w);

                        j->submit_ms = (int64_t)at;
                        j->run_ms =
                                (int64_t)sim_random_lognormal(random, (double)class.run_ms, RUN_SIGMA / 4) +
                                1;
                        if (class.asked_s && j->run_ms > class.asked_s * 1000)
                                j->run_ms = class.asked_s * 1000;
                        j->asked_s = class.asked_s;
                        j->gang = class.gang;
                        j->cpus = class.cpus;
                        j->memory_mib = class.memory_mib;
                        j->user = k % users;
                        j->program = k;
                        j->home = class.home;
                        j->together = 0;
                        j->inputs = sim_span_begin(w);
                        if (class.files)
                                sim_span_add(w, &j->inputs,
                                             class.first_file + sim_random_popular(random, class.files));
                }
                w->jobs[first].together = (uint32_t)jobs;
        }
        sim_workload_finish(w);
}

void sim_generate_files(struct sim_workload *w, uint64_t median_bytes, uint32_t sets,
                        struct sim_random *random)
{
        uint32_t *first = mem_zalloc((w->user_count + 1) *
                                     sizeof(*first)), /* file of the user's first set, + 1 */
                *last = mem_zalloc((w->user_count + 1) * sizeof(*last));

        for (size_t i = 0; i < w->job_count; i++) {
                struct sim_job *j = &w->jobs[i];
                uint32_t u = j->user;

                if (j->inputs.count)
                        continue;
                if (!first[u]) {
                        first[u] = (uint32_t)w->file_count + 1;
                        for (uint32_t k = 0; k < sets; k++)
                                sim_workload_add_file(w,
                                                      (uint64_t)sim_random_lognormal(
                                                              random, (double)median_bytes, FILE_SIGMA) +
                                                              1,
                                                      j->home);
                }
                if (!last[u] || sim_random_below(random, 3) == 0)
                        last[u] = first[u] + sim_random_popular(random, sets);
                j->inputs = sim_span_begin(w);
                sim_span_add(w, &j->inputs, last[u] - 1);
                j->outputs = sim_span_begin(w);
                sim_span_add(w, &j->outputs,
                             sim_workload_add_file(w, w->files[last[u] - 1].bytes / 10, j->home));
        }
        free(first);
        free(last);
}
