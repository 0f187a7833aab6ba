/* Builds the constant part of each queue's ad and decides when offers are sent. room.c computes the room. */
#include "agent/queue/offers.h"

#include <stdlib.h>

#include "agent/container/containers.h"
#include "agent/environment/environments.h"
#include "agent/model/walltime.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/containment.h"
#include "agent/queue/leave.h"
#include "agent/step/activate.h"
#include "base/job/condor_like.h"
#include "base/system/clock.h"
#include "place/pool_kind.h"

#define GIVE_BACK_MS 3000 /* time for room after which a waiting attempt goes back */

/* ---- constant parts of the ad */

static void extra_attributes(const struct queue *q, struct buf *out)
{
        struct agent *a = q->a;
        const struct config_queue *c = q->config;

        buf_printf(out, "Runner = \"%s\"; ", c->runner);
        if (c->type) {
                buf_addz(out, "QueueType = ");
                offer_text(out, str_of(c->type));
                buf_addz(out, "; ");
        }
        if (c->tags.n) {
                buf_addz(out, "Tags = {");
                for (size_t i = 0; i < c->tags.n; i++) {
                        buf_addz(out, i ? ", " : "");
                        offer_text(out, str_of(c->tags.v[i]));
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
        buf_addz(out, "CondorVersion = \"" CONDOR_LIKE_VERSION "\"; UidDomain = ");
        offer_text(out, str_of(a->hostname));
        buf_addz(out, "; ");
        if (queue_is_local(q))
                buf_str(out, buf_view(&a->machine.processor));
        if (!q->offers->kinds_digest) { /* otherwise the other server's places have their own */
                buf_str(out, buf_view(&a->machine.attributes));
                activate_attributes(c, out);
                environments_attributes(q, out);
                engine_attributes(q->engine, out);
        }
        queue_containment_attributes(q, out);
        if (c->close_when)
                buf_printf(out, "CloseWhen = (%s); ", c->close_when);
        if (c->drain_when)
                buf_printf(out, "DrainWhen = (%s); ", c->drain_when);
        if (c->drain_when && c->drain_within_ms)
                buf_printf(out, "DrainWithin = %llu; ",
                           (unsigned long long)(c->drain_within_ms + 999) / 1000);
        if (c->notify_when)
                buf_printf(out, "NotifyWhen = (%s); ", c->notify_when);
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

/* Number of nodes of a batch job: NodeCount, or one; each has an equal part of the job's resources. */
#define NODES_OF_JOB "ifThenElse(TARGET.NodeCount =?= undefined, 1, TARGET.NodeCount)"
static const char batch_requirements[] =
        "(TARGET.NodeCount =?= undefined || TARGET.NodeCount == 1 || TARGET.NodeCount <= MY.MaxNodes) && "
        "(TARGET.RequestCpus =?= undefined || TARGET.RequestCpus <= MY.NodeCpus * " NODES_OF_JOB ") && "
        "(TARGET.RequestMemory =?= undefined || TARGET.RequestMemory <= MY.NodeMemory * " NODES_OF_JOB ") && "
        "(TARGET.RequestGPUs =?= undefined || MY.NodeGPUs =?= undefined || TARGET.RequestGPUs <= "
        "MY.NodeGPUs * " NODES_OF_JOB ")";

/* Condition on the disk for a queue that delegates: NodeDisk is the disk of one place there. */
static const char disk_requirement[] = "TARGET.RequestDisk =?= undefined || MY.NodeDisk =?= undefined || "
                                       "TARGET.RequestDisk <= MY.NodeDisk";

/* Sets the accepted attributes of the other server's places. */
static void describe_kinds(struct queue *q, const struct run_capacity *has)
{
        for (size_t k = 0; k < RUN_KINDS_MAX; k++) {
                struct offers_said *s = &q->offers->said[k];
                const struct run_kind *kind = k < has->kind_count ? &has->kinds[k] : NULL;

                buf_reset(&s->shows);
                buf_reset(&s->requires);
                if (!kind)
                        continue;
                MEM_CLEANUP struct pool_kind_attribute *v =
                        mem_array(NULL, kind->attribute_count + 1, sizeof(*v));
                for (size_t i = 0; i < kind->attribute_count; i++)
                        v[i] = (struct pool_kind_attribute){kind->attributes[i].name,
                                                            kind->attributes[i].value};
                pool_kind_attributes(v, kind->attribute_count, &s->shows);
                pool_kind_requirements(kind->requirements, &s->requires);
                for (size_t i = 0; i < kind->resource_count; i++) {
                        const char *name = kind->resources[i].name;

                        buf_printf(&s->requires,
                                   "%s(TARGET.Request%s =?= undefined || MY.Node%s =?= undefined || "
                                   "TARGET.Request%s <= MY.Node%s)",
                                   s->requires.n ? " && " : "", name, name, name, name);
                }
        }
}

static void describe(struct queue *q)
{
        struct offers *o = q->offers;
        BUF_CLEANUP struct buf images = {0};

        if (!q->offers->kinds_digest)
                engine_requirement(q->engine, &images);
        const char *const parts[] = {config_queue_places(q->config) ? "TARGET.DapType isnt undefined" : NULL,
                                     queue_is_local(q) ? NULL : batch_requirements,
                                     o->kinds_digest ? disk_requirement : NULL,
                                     queue_is_local(q) ? NULL : walltime_requirement,
                                     leave_has_time(q->a) ? leave_requirement : NULL,
                                     q->config->requirements,
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

/* Jobs at a login node see that one's files, not this machine's. */
static const char *filesystem_domain(const struct agent *a, const struct config_queue *c)
{
        const struct config_list *words = config_queue_words(c);

        for (size_t i = 0; words && i < words->n; i++)
                if (str_starts(str_of(words->v[i]), STR("ssh ")))
                        return words->v[i] + sizeof("ssh ") - 1;
        return a->config.filesystem_domain;
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
                .filesystem_domain = filesystem_domain(a, c),
                .arch = a->machine.arch,
                .opsys = a->machine.opsys,
                .limits = o->limits,
                .pull_policy = o->policy,
                .rank = c->rank,
                .walltime_max_ms = c->walltime_max_ms,
                .cpus_milli = config_queue_places(c) ? c->jobs_max * 1000
                              : c->cpus_milli        ? c->cpus_milli
                                                     : a->machine.cpus_milli,
                .memory_bytes = c->memory_bytes ? c->memory_bytes : a->machine.memory_bytes,
                .disk_bytes = c->disk_bytes ? c->disk_bytes : a->machine.disk_free_bytes,
        };
        describe(q);
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
        for (unsigned k = 0; k < RUN_KINDS_MAX; k++) {
                buf_deinit(&o->said[k].shows);
                buf_deinit(&o->said[k].requires);
                buf_deinit(&o->said[k].last);
        }
        free(o);
        q->offers = NULL;
}

/* ---- requests of the server */

void offers_job_took(const struct attempt *at, uint64_t micros)
{
        struct offers *o = at->q->offers;

        o->mean_us = o->mean_us ? (o->mean_us * 15 + micros) / 16 : micros;
        o->mean_cpus = o->mean_cpus ? (o->mean_cpus * 15 + at->cpus_milli) / 16 : at->cpus_milli;
        o->mean_memory = o->mean_memory ? (o->mean_memory * 15 + at->memory_bytes) / 16 : at->memory_bytes;
}

void offers_assigned(struct queue *q, unsigned kind, uint64_t jobs)
{
        q->offers->said[kind].assigned += jobs;
}

static void none_sent(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                for (unsigned k = 0; k < RUN_KINDS_MAX; k++)
                        a->queues[i]->offers->said[k].sent = false;
}

/* Adds an owner that is excluded. If there are too many, the oldest is dropped: the server offers that
 * owner's jobs again, and the owner is excluded again. */
void offers_deny(struct agent *a, const char *owner, const char *why)
{
        struct config_list *l = a->denied ? a->denied : (a->denied = mem_new(struct config_list));
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

void offers_denied_free(struct agent *a)
{
        for (size_t i = 0; a->denied && i < a->denied->n; i++)
                free(a->denied->v[i]);
        free(a->denied);
        a->denied = NULL;
}

void offers_allow(struct agent *a, const char *owner)
{
        struct config_list *l = a->denied;
        struct buf b = {0};
        size_t kept = 0;

        buf_printf(&b, "!%s ", owner);
        for (size_t i = 0; l && i < l->n; i++)
                if (str_starts(str_of(l->v[i]), buf_view(&b)))
                        free(l->v[i]);
                else
                        l->v[kept++] = l->v[i];
        if (l)
                l->n = kept;
        none_sent(a);
        buf_deinit(&b);
}

/* ---- sending */

/* Gives back attempts that wait for room too long: another agent may have room. */
static void give_back(struct queue *q)
{
        int64_t now = clock_boot_ms();

        for (struct attempt *at = q->lists[ATTEMPT_WAITING], *next; at; at = next) {
                next = at->next;
                if (at->gang_size || at->adopted || at->suspended || now - at->assigned_ms < GIVE_BACK_MS ||
                    (q->backend->ready && !at->wait_for_go && offers_fits(at)))
                        continue;
                q->a->news->give_back(at, "busy");
                q->offers->gave_back_ms = now;
        }
}

/* What the queue prefers: the server's wishes, or those of its settings. Returns their number. */
static size_t wishes_of(const struct queue *q, unsigned wishes[OFFER_WISHES_MAX])
{
        const struct config_list *settings = &q->config->wishes;
        size_t n = 0;

        for (; !q->wishes_said && n < settings->n; n++)
                wishes[n] = offer_wish(str_of(settings->v[n]));
        for (; q->wishes_said && n < OFFER_WISHES_MAX && q->wishes[n]; n++)
                wishes[n] = q->wishes[n];
        return n;
}

static void send_offer(struct queue *q, unsigned kind, uint64_t jobs)
{
        struct agent *a = q->a;
        struct offers *o = q->offers;
        struct offers_said *s = &o->said[kind];
        BUF_CLEANUP struct buf name = {0};
        unsigned wishes[OFFER_WISHES_MAX];

        queue_offer_name(q, kind, &name);
        struct offer m = {.queue = buf_z(&name),
                          .serial = ++o->serial,
                          .ad = buf_z(&o->ad),
                          .jobs_max = (uint32_t)(jobs > 100000 ? 100000 : jobs),
                          .wishes = wishes,
                          .wish_count = wishes_of(q, wishes),
                          .own_users = a->config.users.n > 0,
                          .hands_on = queue_hands_on(q)};
        const struct config_list *owners = &a->config.owners;
        size_t denied = a->denied ? a->denied->n : 0;
        bool any = false;
        for (size_t i = 0; i < owners->n; i++)
                any = any || !strcmp(owners->v[i], "any");
        MEM_CLEANUP char **all = mem_array(NULL, owners->n + denied + 1, sizeof(*all));
        if (!any) {
                memcpy(all, owners->v, owners->n * sizeof(*all));
                if (denied)
                        memcpy(all + owners->n, a->denied->v, denied * sizeof(*all));
                m.owners = all;
                m.owner_count = owners->n + denied;
        }
        outbox_offer(a, &m);
        s->sent_jobs = jobs;
        s->assigned = 0;
        s->sent = true;
        buf_reset(&s->last);
        buf_str(&s->last, buf_view(&o->ad));
}

static void update_kind(struct queue *q, unsigned kind, bool force)
{
        struct offers *o = q->offers;
        struct offers_said *s = &o->said[kind];
        struct offers_room r;
        BUF_CLEANUP struct buf requires = {0};

        offers_look(q, kind, &r);
        uint64_t left = s->sent_jobs > s->assigned ? s->sent_jobs - s->assigned : 0;
        if (s->sent && !force && left > 0 && r.jobs >= left && r.jobs - left < (r.jobs + 3) / 4)
                return;
        struct offer_place place = o->place;
        uint64_t time_left = leave_left_ms(q->a);
        if (time_left && (!place.walltime_max_ms || time_left < place.walltime_max_ms))
                place.walltime_max_ms = time_left;
        if (o->kinds_digest) {
                place.arch = place.opsys = NULL;
                place.shows = buf_z(&s->shows);
                buf_str(&requires, buf_view(&o->requirements));
                if (s->requires.n)
                        buf_printf(&requires, "%s(" STR_FMT ")", requires.n ? " && " : "",
                                   STR_ARG(buf_view(&s->requires)));
                place.requirements = buf_z(&requires);
        }
        buf_reset(&o->ad);
        offer_ad(&place, &r.ad, &o->ad);
        if (!s->sent || s->assigned || r.jobs != s->sent_jobs ||
            !str_eq(buf_view(&o->ad), buf_view(&s->last)))
                send_offer(q, kind, r.jobs);
}

/* Replaces the last offer of a kind that no longer has places by an empty one. why: NULL if none is known. */
static void end_kind(struct queue *q, unsigned kind, const char *why)
{
        struct offers *o = q->offers;
        struct offers_said *s = &o->said[kind];

        buf_reset(&o->ad);
        buf_addz(&o->ad, "[ MyType = \"Machine\"; QueueName = ");
        offer_text(&o->ad, str_of(q->config->name));
        buf_addz(&o->ad,
                 "; Runner = \"drover\"; Cpus = 0; Memory = 0; Disk = 0; TotalCpus = 0; TotalMemory = 0; "
                 "WhyClosed = ");
        offer_text(&o->ad, str_of(why ? why : "the other server has no such places now"));
        buf_addz(&o->ad, "; Requirements = false ]");
        if (!s->sent || !str_eq(buf_view(&o->ad), buf_view(&s->last)))
                send_offer(q, kind, 0);
}

static void offer_update(struct queue *q, bool force)
{
        struct offers *o = q->offers;
        const struct run_capacity has = offers_capacity(q);

        if (force)
                give_back(q);
        if (q->retired)
                return;
        if (has.known && has.kinds_digest != o->kinds_digest) {
                o->kinds_digest = has.kinds_digest;
                describe_kinds(q, &has);
                q->ad_stale = true;
        }
        if (q->ad_stale) {
                describe(q);
                for (unsigned k = 0; k < RUN_KINDS_MAX; k++)
                        o->said[k].sent = false;
                q->ad_stale = false;
        }
        for (unsigned k = 0; k < RUN_KINDS_MAX; k++) {
                BUF_CLEANUP struct buf name = {0};
                bool was = o->said[k].last.n;
                bool there = !has.known ? k == 0 || was : o->kinds_digest ? k < has.kind_count : k == 0;

                if (there && queue_offer_name(q, k, &name))
                        update_kind(q, k, force);
                else if (has.known && (k == 0 || was))
                        end_kind(q, k, has.nothing);
        }
}

void offers_wish(struct agent *a, const char *queue, const unsigned *wishes, size_t count)
{
        for (size_t i = 0; i < a->queue_count; i++) {
                struct queue *q = a->queues[i];

                if (*queue && strcmp(queue, q->config->name) != 0)
                        continue;
                memset(q->wishes, 0, sizeof(q->wishes));
                memcpy(q->wishes, wishes,
                       (count < OFFER_WISHES_MAX ? count : OFFER_WISHES_MAX) * sizeof(*wishes));
                q->wishes_said = true;
                queue_ad_changed(q); /* an offer with the devices is due */
        }
        agent_turn_later(a);
}

void offers_update(struct agent *a, bool force)
{
        if (!a->greeted) {
                none_sent(a);
                return;
        }
        if (force)
                machine_measure(&a->machine, a->dir);
        for (size_t i = 0; i < a->queue_count; i++)
                offer_update(a->queues[i], force);
}
