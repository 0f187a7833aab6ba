#include "agent/model/walltime.h"

#include "agent/model/attempt.h"

/* Attributes by which a job chooses another partition, or a quality of service that may have other limits.
 * The requirement says the same. */
static const char *const chosen[] = {"SlurmPartition", "BatchQueue", "SlurmQOS", NULL};
const char walltime_requirement[] =
        "(TARGET.AllowedExecuteDuration =?= undefined || MY.PartitionWalltimeMax =?= undefined || "
        "TARGET.SlurmPartition =!= undefined || TARGET.BatchQueue =!= undefined || TARGET.SlurmQOS =!= "
        "undefined || "
        "TARGET.AllowedExecuteDuration <= MY.PartitionWalltimeMax)";

static bool chooses(const struct job_template *m)
{
        for (size_t i = 0; i < m->attribute_count; i++)
                for (const char *const *name = chosen; *name; name++)
                        if (str_ieqz(str_of(*name), m->attributes[i].name))
                                return true;
        return false;
}

static struct run_capacity capacity_of(const struct queue *q)
{
        struct run_capacity has = {0};

        if (!queue_is_local(q))
                q->backend->runner->kind->capacity(q->backend->runner, &has);
        return has;
}

static uint64_t limit_of(const struct run_capacity *has)
{
        return has->walltime_max_ms ? has->walltime_max_ms : UINT64_MAX;
}

uint64_t walltime_limit(const struct job_template *m, const struct run_capacity *has)
{
        return chooses(m) ? UINT64_MAX : limit_of(has);
}

uint64_t walltime_of_queue(const struct queue *q, const struct run_capacity *has)
{
        uint64_t given = q->config->walltime_max_ms;

        return given < limit_of(has) ? given : limit_of(has);
}

uint64_t walltime_of(const struct attempt *at)
{
        if (at->t->m->walltime_ms)
                return at->t->m->walltime_ms;
        if (chooses(at->t->m))
                return at->q->config->walltime_max_ms;
        struct run_capacity has = capacity_of(at->q);
        return walltime_of_queue(at->q, &has);
}

void walltime_attribute(const struct run_capacity *has, struct buf *out)
{
        if (has->known && limit_of(has) != UINT64_MAX)
                buf_printf(out, "PartitionWalltimeMax = %llu; ",
                           (unsigned long long)(has->walltime_max_ms / 1000));
}
