/* Computes what a queue has room for: for one attempt now, for a job ever, and for its next offer. */
#include "agent/model/expand.h"
#include "agent/model/walltime.h"
#include "agent/queue/leave.h"
#include "agent/queue/offers.h"
#include "agent/queue/sensors.h"
#include "agent/queue/wait.h"
#include "agent/transfer/stage.h"
#include "base/system/clock.h"
#include "base/u64.h"

#define NO_END_CPUS 1000u    /* processors that load=inf offers at once */
#define QUEUED_MAX  1000000u /* upper bound of jobs that wait in a batch system */
/* after a job waited here in vain, no more is requested for this time than there is room for */
#define NOT_AHEAD_MS 30000

/* ---- does it fit? */

/* Processors that jobs may take together. */
static uint64_t cpus_limit(const struct queue *q)
{
        uint64_t percent = q->config->pull_policy.load_percent;

        return percent == PULL_NO_LIMIT ? NO_END_CPUS * 1000 : q->offers->place.cpus_milli * percent / 100;
}

/* Returns the machine's processors that a process queue may use: those not taken by other queues. */
static uint64_t machine_cpus_limit(const struct queue *q)
{
        uint64_t percent = q->config->pull_policy.load_percent;

        return percent == PULL_NO_LIMIT ? NO_END_CPUS * 1000 : q->a->machine_cpus_milli * percent / 100;
}

/* Returns whether the queue's file says that the queue has none of the resource. */
static bool has_none(const struct config_queue *c, const char *resource)
{
        BUF_CLEANUP struct buf none = {0};

        buf_printf(&none, "%s 0", resource);
        for (size_t i = 0; i < c->resources.n; i++)
                if (str_ieqz(buf_view(&none), c->resources.v[i]))
                        return true;
        return false;
}

/* Returns whether the system counts the resource: GPUs of a batch system, and resources of another server's
 * places that the queue's file does not name. */
static bool system_counts(const struct queue *q, const char *resource)
{
        return !queue_is_local(q) && (queue_hands_on(q) || str_ieqz(STR("GPUs"), resource)) &&
               !has_none(q->config, resource) && devices_total(q->a->devices, &q->devices, resource) == 0;
}

/* Returns the number of units of a resource on the nodes that have most. */
static uint64_t system_has(const struct run_capacity *has, const char *resource)
{
        uint64_t most = str_ieqz(STR("GPUs"), resource) ? has->node_gpus : 0;

        for (size_t k = 0; k < has->kind_count; k++)
                for (size_t i = 0; i < has->kinds[k].resource_count; i++)
                        if (str_ieqz(str_of(resource), has->kinds[k].resources[i].name))
                                most = u64_max(most, has->kinds[k].resources[i].node);
        return most;
}

struct run_capacity offers_capacity(const struct queue *q)
{
        struct run_capacity has = {0};

        if (!queue_is_local(q))
                q->backend->runner->kind->capacity(q->backend->runner, &has);
        return has;
}

/* Returns the capacity of the places of one kind; if the system reports no kinds, all of the system's. */
static struct run_capacity kind_capacity(const struct queue *q, unsigned kind)
{
        struct run_capacity has = offers_capacity(q);

        if (kind >= has.kind_count)
                return has;
        const struct run_kind *k = &has.kinds[kind];
        has.cpus_milli = k->cpus_milli;
        has.idle_cpus_milli = k->idle_cpus_milli;
        has.node_cpus_milli = k->node_cpus_milli;
        has.memory_bytes = k->memory_bytes;
        has.idle_memory_bytes = k->idle_memory_bytes;
        has.node_memory_bytes = k->node_memory_bytes;
        has.nodes = k->places;
        return has;
}

static bool devices_fit(const struct attempt *at)
{
        for (size_t i = 0; i < at->t->m->resource_count; i++) {
                const struct job_resource *r = &at->t->m->resources[i];

                if (system_counts(at->q, r->name))
                        continue; /* as for processors: a job waits there for what has gone meanwhile */
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
        if (config_queue_places(q->config))
                return true; /* its mover mostly waits, and uses no processor */
        if (!devices_fit(at))
                return false;
        if (queue_is_local(q)) {
                uint64_t cpus = queues_committed_cpus(q->a), memory = queues_committed_memory(q->a);

                if (cpus && (cpus + at->cpus_milli > machine_cpus_limit(q) ||
                             memory + at->memory_bytes > q->a->machine_memory_bytes))
                        return false;
        } else if (!q->config->cpus_milli) {
                return true; /* offered; if the room has gone, the job waits there */
        }
        if (running == 0 || q->committed_cpus_milli == 0)
                return true;
        return q->committed_cpus_milli + at->cpus_milli <= cpus_limit(q) &&
               q->committed_memory_bytes + at->memory_bytes <= q->offers->place.memory_bytes;
}

const char *offers_never_fits(const struct queue *q, const struct job_template *m)
{
        const struct offer_place *p = &q->offers->place;
        uint64_t cpus = cpus_limit(q) > p->cpus_milli ? cpus_limit(q) : p->cpus_milli;
        struct run_capacity has = {0};

        if (config_queue_places(q->config))
                return NULL;
        if (!queue_is_local(q))
                q->backend->runner->kind->capacity(q->backend->runner, &has);
        uint64_t nodes = job_template_nodes(m);
        if (!has.server && nodes > u64_max(has.task_nodes, 1))
                return "the job asks for more nodes than a job of this queue may have";
        if (has.known &&
            (m->cpus_milli / nodes > has.node_cpus_milli || m->memory_bytes / nodes > has.node_memory_bytes))
                return "the job asks for more than a node of this queue has";
        uint64_t memory = p->memory_bytes;
        if (has.kind_count) { /* `place` is of one kind only */
                cpus = u64_max(cpus, has.cpus_milli);
                memory = u64_max(memory, has.memory_bytes);
        }
        if ((m->cpus_milli ? m->cpus_milli : 1000) > cpus || m->memory_bytes > memory)
                return "the job asks for more than this agent has";
        if (p->walltime_max_ms && m->walltime_ms > p->walltime_max_ms)
                return "the job asks for more time than this queue gives";
        if (m->walltime_ms > walltime_limit(m, &has))
                return "the job asks for more time than the partition of this queue gives";
        for (size_t i = 0; i < m->resource_count; i++)
                if ((system_counts(q, m->resources[i].name)
                             ? system_has(&has, m->resources[i].name)
                             : devices_total(q->a->devices, &q->devices, m->resources[i].name)) <
                    m->resources[i].count)
                        return "the job asks for devices that this queue does not have";
        return NULL;
}

/* ---- free resources */

static void waiting_needs(const struct queue *q, unsigned kind, uint64_t *cpus_milli, uint64_t *memory_bytes)
{
        for (const struct attempt *at = q->lists[ATTEMPT_WAITING]; at; at = at->next) {
                if (at->keeps_room || at->kind != kind)
                        continue; /* an attempt with reserved room is counted already */
                *cpus_milli += at->cpus_milli;
                *memory_bytes += at->memory_bytes;
        }
}

static size_t waiting_devices(const void *arg, const char *name)
{
        const struct queue *q = arg;
        size_t n = 0;

        for (const struct attempt *at = q->lists[ATTEMPT_WAITING]; at; at = at->next)
                for (size_t i = 0; !at->keeps_room && i < at->t->m->resource_count; i++)
                        if (str_ieqz(str_of(name), at->t->m->resources[i].name))
                                n += at->t->m->resources[i].count;
        return n;
}

static void running_use(const struct queue *q, struct pull_now *now)
{
        int64_t ms = clock_wall_ms();

        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next) {
                uint64_t wall = at->result.started_ms && (uint64_t)ms > at->result.started_ms
                                        ? (uint64_t)ms - at->result.started_ms
                                        : 0;

                now->running_walltime_ms += wall;
                /* upper bound; measured when the job ends */
                now->running_cpu_ms += wall * at->cpus_milli / 1000;
                now->running_memory_mib_s += (at->memory_seen >> 20) * (wall / 1000);
        }
}

/* Computes what all process queues together may still use of the machine. */
static void machine_left(const struct queue *q, uint64_t *cpus, uint64_t *memory)
{
        const struct agent *a = q->a;
        uint64_t taken_cpus = queues_committed_cpus(a), taken_memory = queues_committed_memory(a);

        for (size_t i = 0; i < a->queue_count; i++)
                if (queue_is_local(a->queues[i]) && !config_queue_places(a->queues[i]->config))
                        waiting_needs(a->queues[i], 0, &taken_cpus, &taken_memory);
        *cpus = u64_min(*cpus, u64_left(machine_cpus_limit(q), taken_cpus));
        *memory = u64_min(*memory, u64_left(a->machine_memory_bytes, taken_memory));
}

static void look_at_resources(const struct queue *q, const struct pull_allowance *may, uint64_t taken_cpus,
                              uint64_t taken_memory, struct offers_room *r)
{
        const struct offers *o = q->offers;
        uint64_t limit = cpus_limit(q);

        r->ad.cpus_milli = may->cpus_milli == PULL_NO_LIMIT ? u64_left(limit, taken_cpus) : may->cpus_milli;
        r->ad.memory_bytes = u64_left(o->place.memory_bytes, taken_memory);
        if (queue_is_local(q))
                machine_left(q, &r->ad.cpus_milli, &r->ad.memory_bytes);
        r->ad.job_cpus_milli = o->mean_cpus ? o->mean_cpus : 1000;
        r->ad.job_memory_bytes = o->mean_memory;
        r->ad.ahead = u64_left(offer_ahead(o->mean_us, limit), q->counts[ATTEMPT_WAITING]);
        if (o->gave_back_ms && clock_boot_ms() - o->gave_back_ms < NOT_AHEAD_MS)
                r->ad.ahead = 0;
        r->jobs = u64_min((r->ad.cpus_milli + r->ad.ahead * r->ad.job_cpus_milli) / 1000, may->jobs);
        uint64_t max = q->config->jobs_max;
        if (max)
                r->jobs = u64_min(r->jobs, u64_left(max + r->ad.ahead, q->counts[ATTEMPT_WAITING] +
                                                                               q->counts[ATTEMPT_STAGING] +
                                                                               q->counts[ATTEMPT_RUNNING]));
        else if (r->ad.cpus_milli + r->ad.ahead * r->ad.job_cpus_milli > 0 && r->jobs == 0 && may->jobs > 0)
                r->jobs = 1; /* a fraction of a processor */
}

struct unseen { /* attempts that a batch system's last report of its nodes does not include */
        uint64_t cpus_milli, waiting;
};

/* Computes the room of a queue for placement jobs, which has as many units as jobs: a job takes a unit as it
 * takes a processor in other queues. */
static void look_at_places(const struct queue *q, struct offers_room *r)
{
        uint64_t taken = q->counts[ATTEMPT_WAITING] + q->counts[ATTEMPT_STAGING] + q->counts[ATTEMPT_RUNNING];

        r->jobs = u64_left(q->config->jobs_max, taken);
        r->ad.cpus_milli = r->jobs * 1000;
        r->ad.memory_bytes = q->offers->place.memory_bytes;
        r->ad.job_cpus_milli = 1000;
}

/* Sums jobs that the system's last report does not include: they wait there, or began since. */
static struct unseen not_reflected(const struct queue *q, unsigned kind, uint64_t at_ms)
{
        struct unseen u = {0};

        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next) {
                if (at->kind != kind || (at->result.started_ms && at->result.started_ms <= at_ms))
                        continue;
                u.cpus_milli += at->cpus_milli;
                u.waiting += !at->result.started_ms;
        }
        for (const struct attempt *at = q->lists[ATTEMPT_STAGING]; at; at = at->next) {
                if (at->kind != kind)
                        continue;
                u.cpus_milli += at->cpus_milli;
                u.waiting++;
        }
        return u;
}

static uint64_t units_of(const struct attempt *at, const char *resource)
{
        uint64_t n = 0;

        for (size_t i = 0; i < at->t->m->resource_count; i++)
                if (str_ieqz(str_of(resource), at->t->m->resources[i].name))
                        n += at->t->m->resources[i].count;
        return n;
}

/* Units that attempts have, or wait for, of which the system did not know when it was asked. */
static uint64_t units_not_reflected(const struct queue *q, unsigned kind, const char *resource,
                                    uint64_t at_ms)
{
        static const enum attempt_state states[] = {ATTEMPT_WAITING, ATTEMPT_STAGING, ATTEMPT_RUNNING};
        uint64_t n = 0;

        for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
                for (const struct attempt *at = q->lists[states[i]]; at; at = at->next)
                        if (at->kind == kind && !(states[i] == ATTEMPT_RUNNING && at->result.started_ms &&
                                                  at->result.started_ms <= at_ms))
                                n += units_of(at, resource);
        return n;
}

static size_t waiting_of_kind(const struct queue *q, unsigned kind)
{
        size_t n = 0;

        for (const struct attempt *at = q->lists[ATTEMPT_WAITING]; at; at = at->next)
                n += at->kind == kind;
        return n;
}

/* Returns what the queue's own bounds leave of the cluster for new jobs: `cpus` and the load target, if they
 * are less than the cluster. Otherwise the cluster is full when it has no room, and more may wait there. */
static uint64_t bounds_leave(const struct queue *q, const struct pull_allowance *may,
                             const struct run_capacity *has, uint64_t waiting_cpus)
{
        const struct pull_policy *p = &q->config->pull_policy;
        bool whole = p->load_percent == PULL_NO_LIMIT || cpus_limit(q) >= has->cpus_milli;

        if (whole && !p->measured && has->cpus_milli)
                return UINT64_MAX;
        return u64_left(may->cpus_milli, waiting_cpus);
}

/* Returns the assumed size of a job that would wait there: if nothing is idle every job waits, and only
 * their number is bounded; otherwise the size of the present or the last jobs. */
static uint64_t size_ahead(const struct queue *q, bool only_ahead)
{
        uint64_t cpus = q->offers->mean_cpus ? q->offers->mean_cpus : 1000;

        if (only_ahead)
                return u64_max(q->offers->place.cpus_milli, cpus);
        for (const struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next)
                cpus = u64_max(cpus, at->cpus_milli);
        return cpus;
}

/* Computes the room of a batch queue: what is idle, and a few jobs more that may wait there, as many as its
 * processors or queued_max. All other jobs wait in Drover, where another place may take them. */
static void look_at_batch(struct queue *q, unsigned kind, const struct pull_allowance *may,
                          const struct run_capacity *has, struct offers_room *r)
{
        uint64_t left, pending_cpus = 0, pending_memory = 0;
        struct unseen u = not_reflected(q, kind, has->at_ms), all = not_reflected(q, kind, UINT64_MAX);
        uint64_t kinds = has->kind_count ? has->kind_count : 1;
        uint64_t queued_max = u64_min(q->config->queued_max ? (q->config->queued_max + kinds - 1) /
                                                                      kinds /* each its part */
                                                            : has->cpus_milli / 1000 + 1,
                                      QUEUED_MAX);

        waiting_needs(q, kind, &pending_cpus, &pending_memory);
        left = bounds_leave(q, may, has, all.cpus_milli + pending_cpus);
        r->ad.cpus_milli = u64_left(has->idle_cpus_milli, u.cpus_milli + pending_cpus);
        r->ad.cpus_milli = u64_min(r->ad.cpus_milli, u64_min(left, may->cpus_milli));
        r->ad.memory_bytes = has->memory_bytes; /* the system decides; NodeMemory bounds each job */
        r->ad.job_cpus_milli = size_ahead(q, r->ad.cpus_milli < 1000 && left == UINT64_MAX);
        r->ad.ahead = u64_min(u64_left(queued_max, u.waiting + waiting_of_kind(q, kind)),
                              (left - r->ad.cpus_milli) / r->ad.job_cpus_milli);
        r->jobs = u64_min((r->ad.cpus_milli + 999) / 1000 + r->ad.ahead, may->jobs);
        if (q->config->jobs_max)
                r->jobs = u64_min(r->jobs, u64_left(q->config->jobs_max, q->counts[ATTEMPT_WAITING] +
                                                                                 q->counts[ATTEMPT_STAGING] +
                                                                                 q->counts[ATTEMPT_RUNNING]));
}

static void print_units(struct buf *out, const char *name, uint64_t idle, uint64_t all, uint64_t node)
{
        buf_printf(out, "%s = %llu; Total%s = %llu; Node%s = %llu; ", name, (unsigned long long)idle, name,
                   (unsigned long long)all, name, (unsigned long long)node);
}

/* Computes the resources of a batch queue. A job's units are on one node; idle ones of the cluster are
 * offered, none ahead. */
static void batch_resources(const struct queue *q, unsigned kind, const struct run_capacity *has,
                            struct buf *out)
{
        const struct run_kind *k = kind < has->kind_count ? &has->kinds[kind] : NULL;

        if (has->gpus && system_counts(q, "GPUs"))
                print_units(out, "GPUs",
                            u64_left(has->idle_gpus, units_not_reflected(q, kind, "GPUs", has->at_ms)),
                            has->gpus, has->node_gpus);
        for (size_t i = 0; k && i < k->resource_count; i++) {
                const struct run_resource *r = &k->resources[i];

                if (system_counts(q, r->name))
                        print_units(out, r->name,
                                    u64_left(r->idle, units_not_reflected(q, kind, r->name, has->at_ms)),
                                    r->all, r->node);
        }
}

static void batch_place(struct queue *q, unsigned kind, const struct run_capacity *has)
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
        if (has->known && has->unavailable[0]) {
                buf_addz(&o->devices, "NodesUnavailable = ");
                offer_text(&o->devices, str_of(has->unavailable));
                buf_addz(&o->devices, "; ");
        }
        if (has->task_nodes > 1)
                buf_printf(&o->devices, "MaxNodes = %llu; ", (unsigned long long)has->task_nodes);
        if (has->known)
                batch_resources(q, kind, has, &o->devices);
        if (kind < has->kind_count && has->kinds[kind].node_disk_bytes)
                buf_printf(&o->devices, "NodeDisk = %llu; ",
                           (unsigned long long)(has->kinds[kind].node_disk_bytes >> 10));
        walltime_attribute(has, &o->devices);
        if (has->known && has->server)
                buf_printf(&o->devices, "DroverServer = \"%s\"; ", has->server);
}

/* Sets the reason, for people, why the queue takes no jobs, whatever it has room for. */
static void why_closed(const struct queue *q, const struct run_capacity *has,
                       const struct pull_allowance *may, int journal, struct buf *out)
{
        BUF_CLEANUP struct buf why = {0};

        if (journal)
                buf_printf(&why, "its agent cannot write what it takes to its disk: %s", strerror(-journal));
        else if (machine_lacks_inodes(&q->a->machine))
                buf_addz(&why, MACHINE_NO_INODES);
        else if (leave_begun(q->a))
                buf_addz(&why, "its agent leaves");
        else if (q->config->closed)
                buf_addz(&why, "closed in its agent's configuration");
        else if (has->nothing)
                buf_addz(&why, has->nothing);
        else if (may->closed)
                buf_printf(&why, "its budget of %s is used up until midnight (UTC)", may->closed);
        if (!why.n)
                return;
        buf_addz(out, "WhyClosed = ");
        offer_text(out, buf_view(&why));
        buf_addz(out, "; ");
}

/* Returns the sum of the places' disks; a single job is bounded by NodeDisk. */
static uint64_t disks_of(const struct run_kind *k)
{
        return u64_min(k->node_disk_bytes, UINT64_C(1) << 45) * u64_min(u64_max(k->places, 1), 10000);
}

void offers_look(struct queue *q, unsigned kind, struct offers_room *ret)
{
        struct agent *a = q->a;
        struct offers *o = q->offers;
        struct pull_now now = {.cpus_milli = o->place.cpus_milli, .load_milli = a->machine.load_milli};
        struct pull_allowance may;
        uint64_t cpus = q->committed_cpus_milli, memory = q->committed_memory_bytes;
        struct run_capacity has = {0};

        buf_reset(&o->devices);
        if (queue_is_local(q)) {
                waiting_needs(q, 0, &cpus, &memory);
        } else {
                has = kind_capacity(q, kind);
                batch_place(q, kind, &has);
                now.cpus_milli = o->place.cpus_milli;
                cpus = u64_left(
                        cpus,
                        not_reflected(q, kind, UINT64_MAX).cpus_milli); /* jobs that wait there are no load */
        }
        now.committed_milli = cpus;
        running_use(q, &now);
        pull_policy_allows(&q->config->pull_policy, &q->use, &now, &may);
        *ret = (struct offers_room){0};
        ret->ad.load_milli = a->machine.load_milli;
        ret->ad.running = q->counts[ATTEMPT_RUNNING];
        ret->ad.disk_bytes = kind < has.kind_count && has.kinds[kind].node_disk_bytes
                                     ? disks_of(&has.kinds[kind])
                                     : u64_min(a->machine.disk_free_bytes, o->place.disk_bytes);
        devices_advertise(a->devices, &q->devices, waiting_devices, q, &o->devices);
        const char *unreachable = q->backend->unreachable ? q->backend->unreachable : stage_held(a);
        if (unreachable) {
                buf_addz(&o->devices, "Unreachable = ");
                offer_text(&o->devices, str_of(unreachable));
                buf_addz(&o->devices, "; ");
        }
        if (q->staging_failures)
                buf_printf(&o->devices, "StagingFailures = %llu; ", (unsigned long long)q->staging_failures);
        if (has.known) {
                queue_wait_look(q, &has, o->mean_cpus, o->mean_memory);
                if (q->wait.unknown)
                        buf_addz(&o->devices, "QueueWaitUnknown = true; ");
                if (queue_wait_s(q))
                        buf_printf(&o->devices, "QueueWait = %llu; ", (unsigned long long)queue_wait_s(q));
        }
        sensors_advertise(a, &o->devices);
        leave_advertise(a, &o->devices);
        int journal = a->journal_error;
        why_closed(q, &has, &may, journal, &o->devices);
        ret->ad.devices = buf_z(&o->devices);
        if (!q->backend->ready || unreachable || may.closed || q->config->closed || journal ||
            leave_begun(a) || machine_lacks_inodes(&a->machine))
                return;
        if (config_queue_places(q->config))
                look_at_places(q, ret);
        else if (queue_is_local(q))
                look_at_resources(q, &may, cpus, memory, ret);
        else if (has.known)
                look_at_batch(q, kind, &may, &has, ret);
}
