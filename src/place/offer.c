#include "place/offer.h"

/* Work for so long is kept at hand: several times what a commit and the way there and back take. */
#define AHEAD_US  100000u
#define AHEAD_MAX 256u

uint64_t offer_ahead(uint64_t mean_job_ms_x1000, uint64_t cpus_milli)
{
        if (mean_job_ms_x1000 == 0)
                return 0;
        uint64_t jobs = AHEAD_US * (cpus_milli ? cpus_milli : 1000) / 1000 / mean_job_ms_x1000;
        return jobs > AHEAD_MAX ? AHEAD_MAX : jobs;
}

static void text(struct buf *out, const char *name, const char *value)
{
        buf_printf(out, "%s = \"", name);
        for (const char *p = value ? value : ""; *p; p++) {
                if (*p == '"' || *p == '\\')
                        buf_char(out, '\\');
                if ((unsigned char)*p >= ' ')
                        buf_char(out, *p);
        }
        buf_addz(out, "\"; ");
}

static void cpus(struct buf *out, const char *name, uint64_t milli)
{
        buf_printf(out, "%s = %llu; ", name, (unsigned long long)(milli / 1000));
}

void offer_ad(const struct offer_place *p, const struct offer_now *n, struct buf *out)
{
        uint64_t ahead_cpus = n->ahead * n->job_cpus_milli, ahead_memory = n->ahead * n->job_memory_bytes;
        buf_addz(out, "[ MyType = \"Machine\"; ");
        text(out, "Name", p->name);
        text(out, "Machine", p->machine);
        text(out, "QueueName", p->queue);
        text(out, "Arch", p->arch);
        text(out, "OpSys", p->opsys);
        text(out, "FileSystemDomain", p->filesystem_domain);
        text(out, "EnforcedLimits", p->limits);
        text(out, "PullPolicy", p->pull_policy);
        cpus(out, "Cpus", n->cpus_milli + ahead_cpus);
        cpus(out, "FreeCpus", n->cpus_milli);
        cpus(out, "TotalCpus", p->cpus_milli);
        buf_printf(out, "Memory = %llu; FreeMemory = %llu; TotalMemory = %llu; ",
                   (unsigned long long)((n->memory_bytes + ahead_memory) >> 20),
                   (unsigned long long)(n->memory_bytes >> 20), (unsigned long long)(p->memory_bytes >> 20));
        buf_printf(out, "Disk = %llu; TotalDisk = %llu; LoadAvg = %llu.%03llu; Running = %llu; ",
                   (unsigned long long)(n->disk_bytes >> 10), (unsigned long long)(p->disk_bytes >> 10),
                   (unsigned long long)(n->load_milli / 1000), (unsigned long long)(n->load_milli % 1000),
                   (unsigned long long)n->running);
        buf_addz(out, "HasFileTransfer = true; ");
        if (p->extra)
                buf_addz(out, p->extra);
        buf_addz(
                out,
                " Requirements = (TARGET.RequestCpus =?= undefined || TARGET.RequestCpus <= MY.TotalCpus) && "
                "(TARGET.RequestMemory =?= undefined || TARGET.RequestMemory <= MY.TotalMemory)");
        if (p->requirements)
                buf_printf(out, " && (%s)", p->requirements);
        buf_addz(out, " ]");
}
