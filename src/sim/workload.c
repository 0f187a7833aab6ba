#include "sim/workload.h"

#include <stdlib.h>

#include "base/mem.h"

void sim_workload_deinit(struct sim_workload *w)
{
        free(w->jobs);
        free(w->files);
        free(w->refs);
        *w = (struct sim_workload){0};
}

struct sim_job *sim_workload_add_job(struct sim_workload *w)
{
        struct sim_job *j;

        MEM_GROW(w->jobs, w->job_cap, w->job_count + 1);
        j = &w->jobs[w->job_count++];
        *j = (struct sim_job){.cpus = 1, .together = 1};
        return j;
}

uint32_t sim_workload_add_file(struct sim_workload *w, uint64_t bytes, uint32_t cluster)
{
        MEM_GROW(w->files, w->file_cap, w->file_count + 1);
        w->files[w->file_count] = (struct sim_file){bytes, cluster};
        return (uint32_t)w->file_count++;
}

struct sim_span sim_span_begin(const struct sim_workload *w)
{
        return (struct sim_span){(uint32_t)w->ref_count, 0};
}

void sim_span_add(struct sim_workload *w, struct sim_span *span, uint32_t ref)
{
        MEM_GROW(w->refs, w->ref_cap, w->ref_count + 1);
        w->refs[w->ref_count++] = ref;
        span->count++;
}

void sim_workload_finish(struct sim_workload *w)
{
        for (size_t i = 0; i < w->job_count; i++) {
                const struct sim_job *j = &w->jobs[i];

                w->widest = j->cpus > w->widest ? j->cpus : w->widest;
                w->user_count = j->user >= w->user_count ? j->user + 1 : w->user_count;
                w->program_count = j->program >= w->program_count ? j->program + 1 : w->program_count;
        }
}
