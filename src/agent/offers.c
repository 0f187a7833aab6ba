/* What each queue offers. Sent when it has changed enough to matter: with short jobs read ahead, a quarter of
 * the depth; otherwise at once. */
#include <stdio.h>
#include <stdlib.h>

#include "agent/activate.h"
#include "agent/agent.h"
#include "agent/containers.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"

#define NO_END_CPUS  1000u /* what load=inf offers at once */
#define GIVE_BACK_MS 3000  /* an attempt that waited so long for room goes back */
#define USE_EVERY    20

struct offers {
        struct offer_place place;
        struct buf extra, requirements; /* of the ad, what does not change */
        struct buf devices;
        char *limits, *policy;
        struct buf ad, last;
        uint64_t serial, sent_jobs, assigned, mean_us, mean_cpus, mean_memory;
        bool sent;
};

/* ---- what was used today
 *
 * It outlives the agent: STATE/use, a line of five numbers and the queue's name for each queue. Written now
 * and then; what a kill loses of it is less than USE_EVERY ticks. */

static void read_line(struct agent *a, char *line)
{
        long long day;
        unsigned long long n[4];
        int end = 0;
        if (sscanf(line, "%lld %llu %llu %llu %llu%n", &day, &n[0], &n[1], &n[2], &n[3], &end) != 5)
                return;
        /* without a name: from the days of one queue */
        struct queue *q = line[end] == ' ' ? queue_find(a, line + end + 1) : a->queues[0];
        if (q)
                q->use = (struct pull_use){day, n[0], n[1], n[2], n[3]};
}

void offers_read_use(struct agent *a)
{
        BUF_CLEANUP struct buf b = {0};
        struct str rest, line;
        if (fs_read(a->dir, "use", 1 << 20, &b, NULL) == 0)
                for (rest = buf_view(&b); rest.n && str_cut(&rest, '\n', &line);) {
                        MEM_CLEANUP char *z = str_dupz(line);
                        read_line(a, z);
                }
        for (size_t i = 0; i < a->queue_count; i++)
                pull_use_day(&a->queues[i]->use, clock_wall_ms() / 1000);
        buf_str(&a->use_kept, buf_view(&b));
}

void offers_write_use(struct agent *a)
{
        BUF_CLEANUP struct buf b = {0};
        for (size_t i = 0; i < a->queue_count; i++) {
                const struct pull_use *u = &a->queues[i]->use;
                buf_printf(&b, "%lld %llu %llu %llu %llu %s\n", (long long)u->day,
                           (unsigned long long)u->jobs, (unsigned long long)u->cpu_ms,
                           (unsigned long long)u->walltime_ms, (unsigned long long)u->memory_mib_s,
                           a->queues[i]->config->name);
        }
        if (str_eq(buf_view(&b), buf_view(&a->use_kept)) ||
            fs_write(a->dir, "use", buf_view(&b), 0600, false, NULL) < 0)
                return;
        buf_reset(&a->use_kept);
        buf_str(&a->use_kept, buf_view(&b));
}

/* ---- what does not change */

static void text(struct buf *out, struct str s)
{
        buf_char(out, '"');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"' || s.p[i] == '\\')
                        buf_char(out, '\\');
                if ((unsigned char)s.p[i] >= ' ')
                        buf_char(out, s.p[i]);
        }
        buf_char(out, '"');
}

static void extra_attributes(const struct queue *q, struct buf *out)
{
        struct agent *a = q->a;
        const struct config_queue *c = q->config;
        buf_printf(out, "Runner = \"%s\"; ", c->runner);
        if (c->type) {
                buf_addz(out, "QueueType = ");
                text(out, str_of(c->type));
                buf_addz(out, "; ");
        }
        if (c->tags.n) {
                buf_addz(out, "Tags = {");
                for (size_t i = 0; i < c->tags.n; i++) {
                        buf_addz(out, i ? ", " : "");
                        text(out, str_of(c->tags.v[i]));
                }
                buf_addz(out, "}; ");
        }
        if (c->search_order != UINT64_MAX)
                buf_printf(out, "SearchOrder = %llu; ", (unsigned long long)c->search_order);
        if (c->price_milli)
                buf_printf(out, "Price = %llu.%03llu; ", (unsigned long long)(c->price_milli / 1000),
                           (unsigned long long)(c->price_milli % 1000));
        if (c->jobs_max)
                buf_printf(out, "JobsMax = %llu; ", (unsigned long long)c->jobs_max);
        buf_str(out, buf_view(&a->machine.attributes));
        activate_attributes(c, out);
        engine_attributes(q->engine, out);
        if (c->attributes)
                buf_addz(out, c->attributes);
}

static char *limits_text(const struct agent *a, const struct queue *q)
{
        struct buf b = {0};
        if (!queue_is_local(q)) {
                buf_printf(&b, "those of %s, walltime (script)", q->config->runner);
                return buf_take(&b);
        }
        if (a->cgroups && cgroups_limits(a->cgroups)) {
                cgroups_describe(a->cgroups, &b);
                buf_addz(&b, "; ");
        }
        buf_addz(&b, "walltime (shepherd)");
        if (!a->cgroups || !(cgroups_limits(a->cgroups) & CGROUP_MEMORY))
                buf_addz(&b, ", memory (sampled)");
        return buf_take(&b);
}

/* A job of a batch queue has one node. */
static const char batch_requirements[] =
        "(TARGET.RequestCpus =?= undefined || TARGET.RequestCpus <= MY.NodeCpus) && "
        "(TARGET.RequestMemory =?= undefined || TARGET.RequestMemory <= MY.NodeMemory) && "
        "(TARGET.RequestGPUs =?= undefined || MY.NodeGPUs =?= undefined || TARGET.RequestGPUs <= "
        "MY.NodeGPUs)";

static void describe(struct queue *q)
{
        struct offers *o = q->offers;
        BUF_CLEANUP struct buf images = {0};
        engine_requirement(q->engine, &images);
        const char *const parts[] = {queue_is_local(q) ? NULL : batch_requirements, q->config->requirements,
                                     images.n ? buf_z(&images) : NULL};
        buf_reset(&o->extra);
        buf_reset(&o->requirements);
        extra_attributes(q, &o->extra);
        for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
                if (parts[i])
                        buf_printf(&o->requirements, "%s(%s)", o->requirements.n ? " && " : "", parts[i]);
        o->place.requirements = o->requirements.n ? buf_z(&o->requirements) : NULL;
        o->place.extra = buf_z(&o->extra);
}

void offers_open(struct agent *a, struct queue *q)
{
        struct offers *o = q->offers = mem_new(struct offers);
        const struct config_queue *c = q->config;
        struct buf policy = {0};
        pull_policy_print(&c->pull_policy, &policy);
        o->policy = buf_take(&policy);
        o->limits = limits_text(a, q);
        o->place = (struct offer_place){
                .name = a->config.name,
                .machine = a->hostname,
                .queue = c->name,
                .filesystem_domain = a->config.filesystem_domain,
                .arch = a->machine.arch,
                .opsys = a->machine.opsys,
                .limits = o->limits,
                .pull_policy = o->policy,
                .rank = c->rank,
                .walltime_max_ms = c->walltime_max_ms,
                .cpus_milli = c->cpus_milli ? c->cpus_milli : a->machine.cpus_milli,
                .memory_bytes = c->memory_bytes ? c->memory_bytes : a->machine.memory_bytes,
                .disk_bytes = c->disk_bytes ? c->disk_bytes : a->machine.disk_free_bytes,
        };
        describe(q);
}

void offers_described(struct queue *q)
{
        if (!q->offers)
                return;
        describe(q);
        q->offers->sent = false;
}

void offers_tick(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                pull_use_day(&a->queues[i]->use, clock_wall_ms() / 1000);
        if (++a->use_ticks % USE_EVERY == 0)
                offers_write_use(a);
        offers_update(a, true);
}

void offers_close(struct queue *q)
{
        struct offers *o = q->offers;
        if (!o)
                return;
        free(o->limits);
        free(o->policy);
        buf_deinit(&o->extra);
        buf_deinit(&o->requirements);
        buf_deinit(&o->devices);
        buf_deinit(&o->ad);
        buf_deinit(&o->last);
        free(o);
        q->offers = NULL;
}

/* ---- does it fit? */

/* Processors that jobs may take together. */
static uint64_t cpus_limit(const struct queue *q)
{
        uint64_t percent = q->config->pull_policy.load_percent;
        return percent == PULL_NO_LIMIT ? NO_END_CPUS * 1000 : q->offers->place.cpus_milli * percent / 100;
}

/* The same of the machine, for a process queue: what the others have taken is not there. */
static uint64_t machine_cpus_limit(const struct queue *q)
{
        uint64_t percent = q->config->pull_policy.load_percent;
        return percent == PULL_NO_LIMIT ? NO_END_CPUS * 1000 : q->a->machine_cpus_milli * percent / 100;
}

/* GPUs of a batch system, which counts them itself where the queue's file does not. */
static bool system_counts(const struct queue *q, const char *resource)
{
        return !queue_is_local(q) && str_ieqz(STR("GPUs"), resource) &&
               devices_total(q->a->devices, &q->devices, resource) == 0;
}

static bool devices_fit(const struct attempt *at)
{
        for (size_t i = 0; i < at->t->m->n_resources; i++) {
                const Drover__Resource *r = at->t->m->resources[i];
                if (system_counts(at->q, r->name))
                        continue; /* as with its processors: what has gone meanwhile is waited for there */
                if (devices_available(at->a->devices, &at->q->devices, r->name) < r->count)
                        return false;
        }
        return true;
}

bool offers_fits(const struct attempt *at)
{
        const struct queue *q = at->q;
        size_t running = q->counts[ATTEMPT_STAGING] + q->counts[ATTEMPT_RUNNING] + q->kept;
        if (at->keeps_room)
                return true;
        if (q->config->jobs_max && running >= q->config->jobs_max)
                return false;
        if (!devices_fit(at))
                return false;
        if (queue_is_local(q)) {
                uint64_t cpus = queues_committed_cpus(q->a), memory = queues_committed_memory(q->a);
                if (cpus && (cpus + at->cpus_milli > machine_cpus_limit(q) ||
                             memory + at->memory_bytes > q->a->machine_memory_bytes))
                        return false;
        } else if (!q->config->cpus_milli) {
                return true; /* it was offered; if the room has gone, it waits there */
        }
        if (running == 0 || q->committed_cpus_milli == 0)
                return true;
        return q->committed_cpus_milli + at->cpus_milli <= cpus_limit(q) &&
               q->committed_memory_bytes + at->memory_bytes <= q->offers->place.memory_bytes;
}

const char *offers_never_fits(const struct queue *q, const Drover__Template *m)
{
        const struct offer_place *p = &q->offers->place;
        uint64_t cpus = cpus_limit(q) > p->cpus_milli ? cpus_limit(q) : p->cpus_milli;
        struct run_capacity has = {0};
        if (!queue_is_local(q))
                q->backend->runner->kind->capacity(q->backend->runner, &has);
        if (has.known && (m->cpus_milli > has.node_cpus_milli || m->memory_bytes > has.node_memory_bytes))
                return "the job asks for more than a node of this queue has";
        if ((m->cpus_milli ? m->cpus_milli : 1000) > cpus || m->memory_bytes > p->memory_bytes)
                return "the job asks for more than this agent has";
        if (p->walltime_max_ms && m->walltime_ms > p->walltime_max_ms)
                return "the job asks for more time than this queue gives";
        for (size_t i = 0; i < m->n_resources; i++)
                if ((system_counts(q, m->resources[i]->name)
                             ? has.node_gpus
                             : devices_total(q->a->devices, &q->devices, m->resources[i]->name)) <
                    m->resources[i]->count)
                        return "the job asks for devices that this queue does not have";
        return NULL;
}

void offers_job_took(const struct attempt *at, uint64_t micros)
{
        struct offers *o = at->q->offers;
        o->mean_us = o->mean_us ? (o->mean_us * 15 + micros) / 16 : micros;
        o->mean_cpus = o->mean_cpus ? (o->mean_cpus * 15 + at->cpus_milli) / 16 : at->cpus_milli;
        o->mean_memory = o->mean_memory ? (o->mean_memory * 15 + at->memory_bytes) / 16 : at->memory_bytes;
}

void offers_assigned(struct queue *q, uint64_t jobs)
{
        q->offers->assigned += jobs;
}

static void none_sent(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                a->queues[i]->offers->sent = false;
}

/* The oldest goes when there are too many: he is asked for again, and denied again. */
void offers_deny(struct agent *a, const char *owner, const char *why)
{
        struct config_list *l = &a->denied;
        struct buf b = {0};
        buf_printf(&b, "!%s %s", owner, why);
        none_sent(a);
        for (size_t i = 0; i < l->n; i++)
                if (str_eqz(buf_view(&b), l->v[i])) {
                        buf_deinit(&b);
                        return;
                }
        if (l->n == CONFIG_LIST_MAX) {
                free(l->v[0]);
                memmove(l->v, l->v + 1, --l->n * sizeof(*l->v));
        }
        l->v[l->n++] = buf_take(&b);
}

/* ---- what is free */

/* What waits for room too long is given back: somebody else may have it now. */
static void give_back(struct queue *q)
{
        int64_t now = clock_boot_ms();
        for (struct attempt *at = q->lists[ATTEMPT_WAITING], *next; at; at = next) {
                next = at->next;
                if (at->set_size || at->adopted || at->suspended || now - at->assigned_ms < GIVE_BACK_MS ||
                    (q->backend->ready && !at->wait_for_go && offers_fits(at)))
                        continue;
                report_refuse(q->a, q->config->name, at, false, "busy");
                attempt_forget(at);
        }
}

static void waiting_needs(const struct queue *q, uint64_t *cpus_milli, uint64_t *memory_bytes)
{
        for (const struct attempt *at = q->lists[ATTEMPT_WAITING]; at; at = at->next) {
                if (at->keeps_room)
                        continue; /* it is counted already */
                *cpus_milli += at->cpus_milli;
                *memory_bytes += at->memory_bytes;
        }
}

static size_t waiting_devices(const void *arg, const char *name)
{
        const struct queue *q = arg;
        size_t n = 0;
        for (const struct attempt *at = q->lists[ATTEMPT_WAITING]; at; at = at->next)
                for (size_t i = 0; !at->keeps_room && i < at->t->m->n_resources; i++)
                        if (str_ieqz(str_of(name), at->t->m->resources[i]->name))
                                n += at->t->m->resources[i]->count;
        return n;
}

static void running_use(const struct queue *q, struct pull_now *now)
{
        int64_t ms = clock_wall_ms();
        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next) {
                uint64_t wall =
                        at->started_ms && (uint64_t)ms > at->started_ms ? (uint64_t)ms - at->started_ms : 0;
                now->running_walltime_ms += wall;
                now->running_cpu_ms += wall * at->cpus_milli / 1000; /* at most: measured when it ends */
                now->running_memory_mib_s += (at->memory_seen >> 20) * (wall / 1000);
        }
}

static uint64_t left_of(uint64_t total, uint64_t taken)
{
        return total > taken ? total - taken : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
        return a < b ? a : b;
}

/* What all process queues may still take of the machine. */
static void machine_left(const struct queue *q, uint64_t *cpus, uint64_t *memory)
{
        const struct agent *a = q->a;
        uint64_t taken_cpus = queues_committed_cpus(a), taken_memory = queues_committed_memory(a);
        for (size_t i = 0; i < a->queue_count; i++)
                if (queue_is_local(a->queues[i]))
                        waiting_needs(a->queues[i], &taken_cpus, &taken_memory);
        *cpus = least(*cpus, left_of(machine_cpus_limit(q), taken_cpus));
        *memory = least(*memory, left_of(a->machine_memory_bytes, taken_memory));
}

struct room {
        struct offer_now ad;
        uint64_t jobs; /* to take at most */
};

static void look_at_resources(const struct queue *q, const struct pull_allowance *may, uint64_t taken_cpus,
                              uint64_t taken_memory, struct room *r)
{
        const struct offers *o = q->offers;
        uint64_t limit = cpus_limit(q);
        r->ad.cpus_milli = may->cpus_milli == PULL_NO_LIMIT ? left_of(limit, taken_cpus) : may->cpus_milli;
        r->ad.memory_bytes = left_of(o->place.memory_bytes, taken_memory);
        if (queue_is_local(q))
                machine_left(q, &r->ad.cpus_milli, &r->ad.memory_bytes);
        r->ad.job_cpus_milli = o->mean_cpus ? o->mean_cpus : 1000;
        r->ad.job_memory_bytes = o->mean_memory;
        r->ad.ahead = left_of(offer_ahead(o->mean_us, limit), q->counts[ATTEMPT_WAITING]);
        r->jobs = least((r->ad.cpus_milli + r->ad.ahead * r->ad.job_cpus_milli) / 1000, may->jobs);
        uint64_t max = q->config->jobs_max;
        if (max)
                r->jobs = least(r->jobs, left_of(max + r->ad.ahead, q->counts[ATTEMPT_WAITING] +
                                                                            q->counts[ATTEMPT_STAGING] +
                                                                            q->counts[ATTEMPT_RUNNING]));
        else if (r->ad.cpus_milli + r->ad.ahead * r->ad.job_cpus_milli > 0 && r->jobs == 0 && may->jobs > 0)
                r->jobs = 1; /* a part of a processor */
}

struct unseen { /* attempts that what a batch system told of its nodes does not reflect yet */
        uint64_t cpus_milli, gpus, waiting;
};

/* They wait there, or began since. */
static struct unseen not_reflected(const struct queue *q, uint64_t at_ms)
{
        struct unseen u = {0};
        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next) {
                if (at->started_ms && at->started_ms <= at_ms)
                        continue;
                u.cpus_milli += at->cpus_milli;
                u.gpus += expand_gpus(at->t->m);
                u.waiting += !at->started_ms;
        }
        for (const struct attempt *at = q->lists[ATTEMPT_STAGING]; at; at = at->next) {
                u.cpus_milli += at->cpus_milli;
                u.gpus += expand_gpus(at->t->m);
                u.waiting++;
        }
        return u;
}

/* A batch queue offers what is idle, and a few jobs more that may wait there: as many as its processors, or
 * queued_max. All others wait in Drover, where another place may take them. */
static void look_at_batch(struct queue *q, const struct pull_allowance *may, const struct run_capacity *has,
                          struct room *r)
{
        const struct offers *o = q->offers;
        uint64_t taken, waiting, pending_cpus = 0, pending_memory = 0;
        struct unseen u = not_reflected(q, has->at_ms);
        uint64_t queued_max = q->config->queued_max ? q->config->queued_max : has->cpus_milli / 1000 + 1;
        waiting_needs(q, &pending_cpus, &pending_memory);
        taken = u.cpus_milli + pending_cpus;
        waiting = u.waiting + q->counts[ATTEMPT_WAITING];
        r->ad.cpus_milli = least(left_of(has->idle_cpus_milli, taken), may->cpus_milli);
        r->ad.memory_bytes = has->memory_bytes; /* the system decides; NodeMemory bounds each job */
        r->ad.job_cpus_milli = o->mean_cpus ? o->mean_cpus : 1000;
        r->ad.ahead = may->cpus_milli == 0 ? 0 : left_of(queued_max, waiting);
        r->jobs = least((r->ad.cpus_milli + r->ad.ahead * r->ad.job_cpus_milli) / 1000, may->jobs);
        if (q->config->jobs_max)
                r->jobs = least(r->jobs, left_of(q->config->jobs_max, q->counts[ATTEMPT_WAITING] +
                                                                              q->counts[ATTEMPT_STAGING] +
                                                                              q->counts[ATTEMPT_RUNNING]));
}

/* A job's GPUs are on its one node; those of the cluster are offered when they are idle, none ahead. */
static void batch_gpus(const struct queue *q, const struct run_capacity *has, struct buf *out)
{
        uint64_t taken = not_reflected(q, has->at_ms).gpus + waiting_devices(q, "GPUs");
        if (has->gpus && system_counts(q, "GPUs"))
                buf_printf(out, "GPUs = %llu; TotalGPUs = %llu; NodeGPUs = %llu; ",
                           (unsigned long long)left_of(has->idle_gpus, taken), (unsigned long long)has->gpus,
                           (unsigned long long)has->node_gpus);
}

static void batch_place(struct queue *q, const struct run_capacity *has)
{
        struct offers *o = q->offers;
        const struct config_queue *c = q->config;
        o->place.cpus_milli =
                c->cpus_milli && c->cpus_milli < has->cpus_milli ? c->cpus_milli : has->cpus_milli;
        o->place.memory_bytes =
                c->memory_bytes && c->memory_bytes < has->memory_bytes ? c->memory_bytes : has->memory_bytes;
        if (has->known)
                buf_printf(&o->devices, "Nodes = %llu; NodeCpus = %llu; NodeMemory = %llu; ",
                           (unsigned long long)has->nodes, (unsigned long long)(has->node_cpus_milli / 1000),
                           (unsigned long long)(has->node_memory_bytes >> 20));
        if (has->known)
                batch_gpus(q, has, &o->devices);
        if (has->known && has->server)
                buf_printf(&o->devices, "DroverServer = \"%s\"; ", has->server);
}

static void look(struct queue *q, struct room *ret)
{
        struct agent *a = q->a;
        struct offers *o = q->offers;
        struct pull_now now = {.cpus_milli = o->place.cpus_milli, .load_milli = a->machine.load_milli};
        struct pull_allowance may;
        uint64_t cpus = q->committed_cpus_milli, memory = q->committed_memory_bytes;
        struct run_capacity has = {0};
        buf_reset(&o->devices);
        if (queue_is_local(q)) {
                waiting_needs(q, &cpus, &memory);
        } else {
                q->backend->runner->kind->capacity(q->backend->runner, &has);
                batch_place(q, &has);
                now.cpus_milli = o->place.cpus_milli;
                cpus = left_of(cpus,
                               not_reflected(q, UINT64_MAX).cpus_milli); /* what waits there is no load */
        }
        now.committed_milli = cpus;
        running_use(q, &now);
        pull_policy_allows(&q->config->pull_policy, &q->use, &now, &may);
        *ret = (struct room){0};
        ret->ad.load_milli = a->machine.load_milli;
        ret->ad.running = q->counts[ATTEMPT_RUNNING];
        ret->ad.disk_bytes = least(a->machine.disk_free_bytes, o->place.disk_bytes);
        devices_advertise(a->devices, &q->devices, waiting_devices, q, &o->devices);
        if (q->backend->unreachable) {
                buf_addz(&o->devices, "Unreachable = ");
                text(&o->devices, str_of(q->backend->unreachable));
                buf_addz(&o->devices, "; ");
        }
        if (has.known) {
                queue_wait_look(q, &has, o->mean_cpus, o->mean_memory);
                if (queue_wait_s(q))
                        buf_printf(&o->devices, "QueueWait = %llu; ", (unsigned long long)queue_wait_s(q));
        }
        ret->ad.devices = buf_z(&o->devices);
        if (!q->backend->ready || may.closed || q->config->closed)
                return;
        if (queue_is_local(q))
                look_at_resources(q, &may, cpus, memory, ret);
        else if (has.known)
                look_at_batch(q, &may, &has, ret);
}

static void send_offer(struct queue *q, const struct room *r)
{
        struct agent *a = q->a;
        struct offers *o = q->offers;
        Drover__Offer m = DROVER__OFFER__INIT;
        m.queue = q->config->name;
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
        Drover__Wish wishes[OFFER_WISHES_MAX];
        m.wishes = wishes;
        for (const struct config_list *w = &q->config->wishes; m.n_wishes < w->n; m.n_wishes++)
                wishes[m.n_wishes] = (Drover__Wish)offer_wish(str_of(w->v[m.n_wishes]));
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_OFFER;
        to.offer = &m;
        connect_send(a, &to);
        o->sent_jobs = r->jobs;
        o->assigned = 0;
}

static void update(struct queue *q, bool force)
{
        struct offers *o = q->offers;
        struct room r;
        if (force)
                give_back(q);
        if (q->retired)
                return;
        look(q, &r);
        uint64_t left = left_of(o->sent_jobs, o->assigned);
        if (o->sent && !force && left > 0 && r.jobs >= left && r.jobs - left < (r.jobs + 3) / 4)
                return;
        buf_reset(&o->ad);
        offer_ad(&o->place, &r.ad, &o->ad);
        if (o->sent && o->assigned == 0 && r.jobs == o->sent_jobs &&
            str_eq(buf_view(&o->ad), buf_view(&o->last)))
                return;
        send_offer(q, &r);
        o->sent = true;
        buf_reset(&o->last);
        buf_str(&o->last, buf_view(&o->ad));
}

/* force: also when little has changed, and after a new greeting even when nothing has. */
void offers_update(struct agent *a, bool force)
{
        if (!a->greeted) {
                none_sent(a);
                return;
        }
        if (force)
                machine_measure(&a->machine, a->dir);
        for (size_t i = 0; i < a->queue_count; i++)
                update(a->queues[i], force);
}
