/* What the queue offers. Sent when it has changed enough to matter: with short jobs read ahead, a quarter of
 * the depth; otherwise at once. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#define NO_END_CPUS  1000u /* what load=inf offers at once */
#define GIVE_BACK_MS 3000  /* an attempt that waited so long for room goes back */
#define MEASURE_MS   15000
#define USE_EVERY    20

struct offers {
        struct offer_place place;
        char arch[65], opsys[65], machine[256];
        char *limits, *policy;
        struct buf ad, last;
        uint64_t serial, sent_jobs, assigned, mean_us, mean_cpus, mean_memory, load_milli, disk_free;
        int64_t measured_ms;
        bool sent;
        unsigned ticks;
        struct pull_use use_kept;
};

static uint64_t machine_cpus(void)
{
        cpu_set_t set;
        CPU_ZERO(&set);
        return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint64_t)CPU_COUNT(&set) * 1000 : 1000;
}

static void upper(char *to, size_t size, const char *from)
{
        size_t i = 0;
        for (; from[i] && i + 1 < size; i++)
                to[i] = from[i] >= 'a' && from[i] <= 'z' ? (char)(from[i] - 32) : from[i];
        to[i] = 0;
}

static void measure(struct agent *a)
{
        struct offers *o = a->offers;
        int64_t now = clock_boot_ms();
        if (o->measured_ms && now - o->measured_ms < MEASURE_MS)
                return;
        o->measured_ms = now;
        double load;
        if (getloadavg(&load, 1) == 1)
                o->load_milli = (uint64_t)(load * 10) * 100;
        struct statvfs v;
        if (fstatvfs(a->dir, &v) == 0) {
                uint64_t free_bytes = (uint64_t)v.f_bavail * v.f_frsize;
                o->disk_free = free_bytes >> 28 << 28; /* in steps of 256 MiB */
        }
}

/* What was used today outlives the agent: STATE/use, five numbers. Written now and then; what a kill loses of
 * it is less than USE_EVERY ticks. */
static void use_read(struct agent *a)
{
        BUF_CLEANUP struct buf b = {0};
        long long day;
        unsigned long long n[4];
        if (fs_read(a->dir, "use", 256, &b, NULL) == 0 &&
            sscanf(buf_z(&b), "%lld %llu %llu %llu %llu", &day, &n[0], &n[1], &n[2], &n[3]) == 5)
                a->use = a->offers->use_kept = (struct pull_use){day, n[0], n[1], n[2], n[3]};
        pull_use_day(&a->use, clock_wall_ms() / 1000);
}

static void use_write(struct agent *a)
{
        const struct pull_use *u = &a->use;
        BUF_CLEANUP struct buf b = {0};
        if (!memcmp(u, &a->offers->use_kept, sizeof(*u)))
                return;
        buf_printf(&b, "%lld %llu %llu %llu %llu\n", (long long)u->day, (unsigned long long)u->jobs,
                   (unsigned long long)u->cpu_ms, (unsigned long long)u->walltime_ms,
                   (unsigned long long)u->memory_mib_s);
        if (fs_write(a->dir, "use", buf_view(&b), 0600, false, NULL) == 0)
                a->offers->use_kept = *u;
}

void offers_open(struct agent *a)
{
        struct offers *o = a->offers = mem_new(struct offers);
        struct utsname u;
        use_read(a);
        uname(&u);
        upper(o->arch, sizeof(o->arch), u.machine);
        upper(o->opsys, sizeof(o->opsys), u.sysname);
        BUF_CLEANUP struct buf b = {0};
        if (a->cgroups && cgroups_limits(a->cgroups)) {
                cgroups_describe(a->cgroups, &b);
                buf_addz(&b, "; ");
        }
        buf_addz(&b, "walltime (shepherd)");
        if (!a->cgroups || !(cgroups_limits(a->cgroups) & CGROUP_MEMORY))
                buf_addz(&b, ", memory (sampled)");
        o->limits = buf_take(&b);
        pull_policy_print(&a->config.pull_policy, &b);
        o->policy = buf_take(&b);
        measure(a);
        const struct config *c = &a->config;
        uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
        o->place = (struct offer_place){
                .name = c->name,
                .machine = a->hostname,
                .queue = c->queue,
                .filesystem_domain = c->filesystem_domain,
                .arch = o->arch,
                .opsys = o->opsys,
                .limits = o->limits,
                .pull_policy = o->policy,
                .requirements = c->requirements,
                .extra = c->attributes,
                .cpus_milli = c->cpus_milli ? c->cpus_milli : machine_cpus(),
                .memory_bytes = c->memory_bytes ? c->memory_bytes : memory,
                .disk_bytes = c->disk_bytes ? c->disk_bytes : o->disk_free,
        };
}

void offers_tick(struct agent *a)
{
        pull_use_day(&a->use, clock_wall_ms() / 1000);
        if (++a->offers->ticks % USE_EVERY == 0)
                use_write(a);
        offers_update(a, true);
}

void offers_close(struct agent *a)
{
        struct offers *o = a->offers;
        if (!o)
                return;
        use_write(a);
        for (size_t i = 0; i < a->denied.n; i++)
                free(a->denied.v[i]);
        free(o->limits);
        free(o->policy);
        buf_deinit(&o->ad);
        buf_deinit(&o->last);
        free(o);
        a->offers = NULL;
}

/* Processors that jobs may take together. */
static uint64_t cpus_limit(const struct agent *a)
{
        const struct offers *o = a->offers;
        uint64_t percent = a->config.pull_policy.load_percent;
        return percent == PULL_NO_LIMIT ? NO_END_CPUS * 1000 : o->place.cpus_milli * percent / 100;
}

bool offers_fits(const struct agent *a, uint64_t cpus_milli, uint64_t memory_bytes)
{
        size_t running = a->counts[ATTEMPT_STAGING] + a->counts[ATTEMPT_RUNNING];
        if (running == 0 || a->committed_cpus_milli == 0)
                return true;
        if (a->config.jobs_max && running >= a->config.jobs_max)
                return false;
        return a->committed_cpus_milli + cpus_milli <= cpus_limit(a) &&
               a->committed_memory_bytes + memory_bytes <= a->offers->place.memory_bytes;
}

bool offers_could_fit(const struct agent *a, uint64_t cpus_milli, uint64_t memory_bytes)
{
        const struct offer_place *p = &a->offers->place;
        uint64_t cpus = cpus_limit(a) > p->cpus_milli ? cpus_limit(a) : p->cpus_milli;
        return cpus_milli <= cpus && memory_bytes <= p->memory_bytes;
}

void offers_job_took(struct agent *a, uint64_t micros, const struct attempt *at)
{
        struct offers *o = a->offers;
        o->mean_us = o->mean_us ? (o->mean_us * 15 + micros) / 16 : micros;
        o->mean_cpus = o->mean_cpus ? (o->mean_cpus * 15 + at->cpus_milli) / 16 : at->cpus_milli;
        o->mean_memory = o->mean_memory ? (o->mean_memory * 15 + at->memory_bytes) / 16 : at->memory_bytes;
}

void offers_assigned(struct agent *a, uint64_t jobs)
{
        a->offers->assigned += jobs;
}

/* The oldest goes when there are too many: he is asked for again, and denied again. */
void offers_deny(struct agent *a, const char *owner, const char *why)
{
        struct config_list *l = &a->denied;
        struct buf b = {0};
        buf_printf(&b, "!%s %s", owner, why);
        for (size_t i = 0; i < l->n; i++)
                if (str_eqz(buf_view(&b), l->v[i])) {
                        buf_deinit(&b);
                        a->offers->sent = false;
                        return;
                }
        if (l->n == CONFIG_LIST_MAX) {
                free(l->v[0]);
                memmove(l->v, l->v + 1, --l->n * sizeof(*l->v));
        }
        l->v[l->n++] = buf_take(&b);
        a->offers->sent = false;
}

/* What waits for room too long is given back: somebody else may have it now. */
static void give_back(struct agent *a)
{
        int64_t now = clock_boot_ms();
        for (struct attempt *at = a->lists[ATTEMPT_WAITING], *next; at; at = next) {
                next = at->next;
                if (at->wait_for_go || at->adopted || at->suspended || now - at->assigned_ms < GIVE_BACK_MS)
                        continue;
                report_refuse(a, at, false, "busy");
                attempt_forget(at);
        }
}

static void waiting_needs(const struct agent *a, uint64_t *cpus_milli, uint64_t *memory_bytes)
{
        *cpus_milli = *memory_bytes = 0;
        for (const struct attempt *at = a->lists[ATTEMPT_WAITING]; at; at = at->next) {
                *cpus_milli += at->cpus_milli;
                *memory_bytes += at->memory_bytes;
        }
}

static void running_use(const struct agent *a, struct pull_now *now)
{
        int64_t ms = clock_wall_ms();
        for (const struct attempt *at = a->lists[ATTEMPT_RUNNING]; at; at = at->next) {
                uint64_t wall =
                        at->started_ms && (uint64_t)ms > at->started_ms ? (uint64_t)ms - at->started_ms : 0;
                now->running_walltime_ms += wall;
                now->running_cpu_ms += wall * at->cpus_milli / 1000; /* at most: measured when it ends */
                now->running_memory_mib_s += (at->memory_seen >> 20) * (wall / 1000);
        }
}

struct room {
        struct offer_now ad;
        uint64_t jobs; /* to take at most */
};

static void look(struct agent *a, struct room *ret)
{
        struct offers *o = a->offers;
        struct pull_now now = {.cpus_milli = o->place.cpus_milli, .load_milli = o->load_milli};
        struct pull_allowance may;
        uint64_t waiting_cpus, waiting_memory;
        waiting_needs(a, &waiting_cpus, &waiting_memory);
        uint64_t taken = a->committed_cpus_milli + waiting_cpus,
                 memory = a->committed_memory_bytes + waiting_memory;
        now.committed_milli = taken;
        running_use(a, &now);
        pull_policy_allows(&a->config.pull_policy, &a->use, &now, &may);
        struct room r = {0};
        r.ad.load_milli = o->load_milli;
        r.ad.running = a->counts[ATTEMPT_RUNNING];
        r.ad.disk_bytes = o->disk_free < o->place.disk_bytes ? o->disk_free : o->place.disk_bytes;
        if (!a->runner_ready || may.closed) {
                *ret = r;
                return;
        }
        uint64_t limit = cpus_limit(a);
        r.ad.cpus_milli =
                may.cpus_milli == PULL_NO_LIMIT ? (limit > taken ? limit - taken : 0) : may.cpus_milli;
        r.ad.memory_bytes = o->place.memory_bytes > memory ? o->place.memory_bytes - memory : 0;
        r.ad.job_cpus_milli = o->mean_cpus ? o->mean_cpus : 1000;
        r.ad.job_memory_bytes = o->mean_memory;
        uint64_t depth = offer_ahead(o->mean_us, limit), waiting = a->counts[ATTEMPT_WAITING];
        r.ad.ahead = depth > waiting ? depth - waiting : 0;
        r.jobs = (r.ad.cpus_milli + r.ad.ahead * r.ad.job_cpus_milli) / 1000;
        if (may.jobs < r.jobs)
                r.jobs = may.jobs;
        if (a->config.jobs_max) {
                uint64_t have =
                        a->counts[ATTEMPT_WAITING] + a->counts[ATTEMPT_STAGING] + a->counts[ATTEMPT_RUNNING];
                uint64_t left =
                        a->config.jobs_max + r.ad.ahead > have ? a->config.jobs_max + r.ad.ahead - have : 0;
                r.jobs = left < r.jobs ? left : r.jobs;
        }
        if (r.ad.cpus_milli + r.ad.ahead * r.ad.job_cpus_milli > 0 && r.jobs == 0 && may.jobs > 0 &&
            !a->config.jobs_max)
                r.jobs = 1; /* a part of a processor */
        *ret = r;
}

static void send_offer(struct agent *a, const struct room *r)
{
        struct offers *o = a->offers;
        Drover__Offer m = DROVER__OFFER__INIT;
        m.queue = a->config.queue;
        m.serial = ++o->serial;
        m.ad = (char *)buf_z(&o->ad);
        m.jobs_max = (uint32_t)(r->jobs > 100000 ? 100000 : r->jobs);
        const struct config_list *owners = &a->config.owners;
        bool any = false;
        for (size_t i = 0; i < owners->n; i++)
                any = any || !strcmp(owners->v[i], "any");
        MEM_CLEANUP char **all = mem_array(NULL, owners->n + a->denied.n + 1, sizeof(*all));
        if (!any) {
                memcpy(all, owners->v, owners->n * sizeof(*all));
                memcpy(all + owners->n, a->denied.v, a->denied.n * sizeof(*all));
                m.owners = all;
                m.n_owners = owners->n + a->denied.n;
        }
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_OFFER;
        to.offer = &m;
        connect_send(a, &to);
        o->sent_jobs = r->jobs;
        o->assigned = 0;
}

/* force: also when little has changed, and after a new greeting even when nothing has. */
void offers_update(struct agent *a, bool force)
{
        struct offers *o = a->offers;
        if (!a->greeted) {
                o->sent = false;
                return;
        }
        if (force) {
                measure(a);
                give_back(a);
        }
        struct room r;
        look(a, &r);
        uint64_t left = o->sent_jobs > o->assigned ? o->sent_jobs - o->assigned : 0;
        if (o->sent && !force && left > 0 && r.jobs >= left && r.jobs - left < (r.jobs + 3) / 4)
                return;
        buf_reset(&o->ad);
        offer_ad(&o->place, &r.ad, &o->ad);
        if (o->sent && o->assigned == 0 && r.jobs == o->sent_jobs &&
            str_eq(buf_view(&o->ad), buf_view(&o->last)))
                return;
        send_offer(a, &r);
        o->sent = true;
        buf_reset(&o->last);
        buf_str(&o->last, buf_view(&o->ad));
}
