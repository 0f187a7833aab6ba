/* What agents say: connections, offers, and the life of their attempts. */
#include <errno.h>

#include "base/mem.h"
#include "base/pack.h"
#include "core/classes/class.h"
#include "core/data/data_state.h"
#include "core/data/label.h"
#include "core/data/profile.h"
#include "core/estimate/estimate.h"
#include "core/events/apply.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/policy.h"
#include "core/model/pending_match.h"
#include "core/model/profile.h"

#define QUEUE_WAIT_MAX_S 31536000 /* more is no word of a wait */
#define LEASE_RENEWALS   3        /* in a lease's term, about */
#define LOSE_SLICE       1000u    /* attempts that are lost in one call */
#define CLOCK_OFF_MS     86400000 /* an agent's clock is wrong by so much at most */

static void queue_unpark(struct core *c, struct queue *q)
{
        q->offers = false;
        index_queue_changed(c, q);
}

static void ad_is(struct core *c, struct queue *q, struct ad *ad, size_t bytes)
{
        ad_set_string(ad, c->attr.AgentName, str_of(q->agent->name)); /* whatever it calls itself */
        ad_free(q->ad);
        q->ad = ad;
        q->agent->ad_bytes += bytes - q->ad_bytes;
        q->ad_bytes = bytes;
}

/* The agent offers nothing any more, and nothing is kept of what it did offer. */
static void queue_empty(struct core *c, struct queue *q)
{
        struct ad *ad = ad_new(c->symbols);

        ad_set_string(ad, c->attr.QueueName, str_of(q->name));
        ad_set_boolean(ad, c->attr.Requirements, false);
        ad_is(c, q, ad, 0);
        owners_deinit(&q->owners);
        owners_add(&q->owners, OWNERS_NOBODY);
        free(q->closed);
        free(q->unreachable);
        q->closed = q->unreachable = NULL;
        q->cpus = q->memory_mib = q->disk_kib = q->total_cpus = q->total_memory_mib = 0;
        q->offers = false;
        profile_update(c, q);
        index_queue_shown(c, q);
        index_queue_changed(c, q);
}

void core_agent_connected(struct core *c, const char *agent)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        a->connected = true;
        for (struct queue *q = a->queues; q; q = q->next) {
                if (q->idle_session && q->ad && !q->attempts)
                        queue_empty(c, q);
                q->idle_session = true;
        }
        links_forget_down(c, a);
        core_renew(c, agent);
}

void core_agent_labels(struct core *c, const char *agent, struct str labels)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        free(a->labels);
        a->labels = labels.n ? str_dupz(labels) : NULL;
        a->cleared = label_cleared(c, a->name);
}

void core_agent_away(struct core *c, const char *agent)
{
        struct core_agent *a = agent_find(c, agent);

        if (!a)
                return;
        a->connected = false;
        c->leases->due_ms = 0; /* of eager jobs there it ends sooner now */
        for (struct queue *q = a->queues; q; q = q->next)
                queue_unpark(c, q);
        gang_agent_away(c, a);
}

void core_renew(struct core *c, const char *agent)
{
        struct core_agent *a = agent_find(c, agent);

        if (a) {
                a->renewed_steady_ms = c->steady_ms;
                a->renewed_wall_ms = c->now_ms;
        }
}

void core_heard(struct core *c, const char *agent, int64_t steady_ms)
{
        struct core_agent *a = agent_find(c, agent);

        if (a && steady_ms > a->renewed_steady_ms)
                a->renewed_steady_ms = steady_ms;
}

/* The attempt, if it is this agent's and the job's last; else NULL. Whatever an agent says of an attempt goes
 * through here. */
static struct job *attempt_of(const struct request *r, const char *agent, uint32_t member, uint32_t fence)
{
        struct job *j = r ? request_job(r, member) : NULL;

        return j && j->queue && j->fence == fence && strcmp(j->queue->agent->name, agent) == 0 ? j : NULL;
}

bool core_has_attempt(struct core *c, const char *agent, uint64_t request, uint32_t member, uint32_t fence)
{
        return attempt_of(request_find(c, request), agent, member, fence) != NULL;
}

bool core_has_part(struct core *c, const char *agent, uint64_t request, uint32_t part)
{
        const struct core_agent *a = agent_find(c, agent);
        const struct request *r = request_find(c, request);
        uint64_t first = 0, end = UINT64_MAX;

        if (!a || !r || (part != CORE_PART_ANY && part >= r->part_count))
                return false;
        if (part != CORE_PART_ANY) {
                first = r->parts[part].first;
                end = first + r->parts[part].count;
        }
        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->request == r && j->member >= first && j->member < end)
                                return true;
        return false;
}

/* Those of `a` that are this agent's attempts under that fence; the others go to *ret_stale (may be NULL). */
static void sift(struct core *c, const char *agent, const struct core_attempts *a, struct set *ret_mine,
                 struct set *ret_stale)
{
        struct request *r = request_find(c, a->request);

        SET_FOREACH (a->members, m) {
                if (attempt_of(r, agent, (uint32_t)m, a->fence))
                        set_add(ret_mine, (uint32_t)m);
                else if (ret_stale)
                        set_add(ret_stale, (uint32_t)m);
        }
}

static void emit_attempts(struct core *c, const struct core_attempts *a, struct event *e)
{
        if (set_count(&e->members)) {
                e->request = a->request;
                e->fence = a->fence;
                core_emit(c, e, NULL);
        }
        event_deinit(e);
}

static enum job_state after_loss(const struct job *j)
{
        return j->state == JOB_VACATING ? j->goal : JOB_IDLE;
}

/* One attempt is lost. */
/* What it takes, by its record: a copy of what goes with it. */
static struct need need_of_attempt(const struct job *j)
{
        struct need need = {
                .cpus = j->cpus, .memory_mib = (int64_t)j->memory_mib, .disk_kib = (int64_t)j->disk_kib};

        if (j->more)
                need.more = *j->more;
        return need;
}

static void lose(struct core *c, struct job *j, struct str why)
{
        struct event e = {.type = EVENT_LOST,
                          .request = j->request->id,
                          .fence = j->fence,
                          .next = after_loss(j),
                          .code = j->state == JOB_VACATING ? j->hold_code : 0,
                          .reason = why};
        char *reason = j->state == JOB_VACATING ? mem_dupz(j->hold_reason) : NULL;

        if (reason)
                e.reason = str_of(reason);
        struct queue *q = j->accepted ? NULL : j->queue;
        struct need need = need_of_attempt(j);

        set_add(&e.members, j->member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        free(reason);
        /* An offer that the agent has made since was taken as if the attempt was still to come out of it. */
        if (q && q->ad) {
                need_return(c, &need, q);
                index_queue_changed(c, q);
                if (q->offers)
                        queue_look_again(c, q);
        }
}

void core_inventory(struct core *c, const char *agent, const struct core_attempts *has, size_t count,
                    void (*stale)(void *arg, uint64_t request, uint32_t fence, const struct set *members),
                    void *arg)
{
        struct core_agent *a = agent_get(c, str_of(agent));

        core_renew(c, agent);
        for (struct queue *q = a->queues; q; q = q->next)
                for (struct job *j = q->attempts; j; j = j->next)
                        j->unknown = true;
        for (size_t i = 0; i < count; i++) {
                struct set mine = {0}, other = {0};

                sift(c, agent, &has[i], &mine, &other);
                SET_FOREACH (&mine, m)
                        request_job(request_find(c, has[i].request), (uint32_t)m)->unknown = false;
                if (request_find(c, has[i].request) && request_find(c, has[i].request)->has_sets &&
                    set_count(&mine))
                        core_accepted(c, agent, &(struct core_attempts){has[i].request, has[i].fence, &mine});
                gang_inventory(c, agent, &has[i], &mine);
                if (set_count(&other))
                        stale(arg, has[i].request, has[i].fence, &other);
                set_deinit(&mine);
                set_deinit(&other);
        }
        c->leases->due_ms = 0; /* those that are unknown are lost */
        leases_end(c);
        /* What it has, it must not be told again; what was stopped meanwhile, it must. */
        for (struct queue *q = a->queues; q; q = q->next)
                for (struct job *j = q->attempts; j; j = j->next)
                        if (j->state == JOB_VACATING && !j->unknown) {
                                struct set one = {0};

                                set_add(&one, j->member);
                                c->world.control(c->world.arg, a->name,
                                                 j->goal == JOB_REMOVED ? CORE_REMOVE
                                                 : j->goal == JOB_HELD  ? CORE_HOLD
                                                                        : CORE_VACATE,
                                                 j->request->id, j->fence, &one);
                                set_deinit(&one);
                        }
}

/* ---- offers */

static void on_target(void *arg, symbol name, bool target)
{
        struct core *c = arg;

        if (!target)
                return;
        for (size_t i = 0; i < c->classes->significant_count; i++)
                if (c->classes->significant[i] == name)
                        return;
        MEM_GROW(c->classes->significant, c->classes->significant_cap, c->classes->significant_count + 1);
        c->classes->significant[c->classes->significant_count++] = name;
}

struct job_specific {
        const struct attributes *attr;
        bool found;
};

static void on_job_specific(void *arg, symbol name, bool target)
{
        struct job_specific *s = arg;
        const struct attributes *a = s->attr;

        if (target && (name == a->ProcId || name == a->ClusterId || name == a->QDate ||
                       name == a->GlobalJobId || name == a->NumJobStarts || name == a->JobRunCount ||
                       name == a->NumShadowStarts || name == a->JobPrio || name == a->JobStatus))
                s->found = true;
}

/* Names in jobs' ads that this queue looks at become significant; those that differ from job to job do not,
 * they are looked at when a job is about to be given. */
static void learn_references(struct core *c, struct queue *q)
{
        const symbol conditions[] = {c->attr.Requirements, c->attr.Rank};
        size_t before = c->classes->significant_count;
        struct job_specific specific = {.attr = &c->attr};
        struct expr_uses uses;

        q->has_rank = ad_find(q->ad, c->attr.Rank) != NULL;
        for (size_t i = 0; i < 2; i++) {
                const struct expr *e = ad_find(q->ad, conditions[i]);

                if (!e)
                        continue;
                expr_references(e, q->ad, on_job_specific, &specific, &uses);
                if (!specific.found)
                        expr_references(e, q->ad, on_target, c, &uses);
        }
        q->job_specific = specific.found;
        if (c->classes->significant_count != before)
                core_rekey(c);
}

static void default_string(struct core *c, struct ad *ad, symbol name, struct str value)
{
        (void)c;
        if (value.n && !ad_find(ad, name))
                ad_set_string(ad, name, value);
}

static int64_t number_of(struct core *c, const struct ad *ad, symbol name)
{
        int64_t v = 0;

        eval_integer(&c->eval, ad, NULL, name, &v);
        return v < 0 ? 0 : v > OFFERED_MAX ? OFFERED_MAX : v;
}

/* 0 when it does not say, and for what is no such number: negative, infinite, NaN. */
static double real_of(struct core *c, const struct ad *ad, symbol name)
{
        double v = 0;

        eval_real(&c->eval, ad, NULL, name, &v);
        return v > 0 && v <= (double)OFFERED_MAX ? v : 0;
}

static unsigned order_of(struct core *c, const struct ad *ad)
{
        int64_t v = SEARCH_ORDER_NONE;

        eval_integer(&c->eval, ad, NULL, c->attr.SearchOrder, &v);
        return v >= 0 && v < SEARCH_ORDER_NONE ? (unsigned)v : SEARCH_ORDER_NONE;
}

static void set_owners(struct queue *q, const struct core_offer *o)
{
        owners_deinit(&q->owners);
        for (size_t i = 0; i < o->owner_count; i++)
                owners_add(&q->owners, o->owners[i]);
}

/* The ad's Tags become those of the list that are among them. */
static void cut_tags(struct core *c, struct ad *ad, struct str tags)
{
        symbol name = symbols_intern(c->symbols, STR("Tags")),
               one = symbols_intern(c->symbols, STR("DroverTag"));
        BUF_CLEANUP struct buf text = {0}, ask = {0};
        struct str tag;
        bool is;

        buf_addz(&text, "{");
        while (tags.n && str_cut(&tags, ',', &tag)) {
                tag = str_trim(tag);
                buf_reset(&ask);
                buf_printf(&ask, "member(\"" STR_FMT "\", Tags)", STR_ARG(tag));
                is = false;
                if (ad_set_text(ad, one, buf_view(&ask), NULL) == 0 &&
                    eval_boolean(&c->eval, ad, NULL, one, &is) && is)
                        buf_printf(&text, "%s\"" STR_FMT "\"", text.n > 1 ? ", " : "", STR_ARG(tag));
        }
        buf_addz(&text, "}");
        ad_remove(ad, one);
        ad_set_text(ad, name, buf_view(&text), NULL);
        eval_reset(&c->eval);
}

/* How many names of attributes this ad would bring that nobody has used yet. */
static uint32_t names_new(const struct core *c, struct str text)
{
        struct symbols *own = symbols_new();
        uint32_t n = 0;
        struct ad *ad;

        if (ad_parse(own, text, CLASSAD_NEW, &ad, NULL) == 0)
                ad_free(ad);
        for (symbol s = 1; s <= symbols_count(own); s++)
                n += symbols_find(c->symbols, symbols_name(own, s)) == 0;
        symbols_free(own);
        return n;
}

/* Is there room for this offer in what the agent may have? 0, or CORE_INVALID with err. */
static int offer_room(const struct core *c, const struct core_agent *a, const struct core_offer *o,
                      struct err *err)
{
        const struct queue *q = a->queues;

        while (q && !str_eqz(str_of(o->queue), q->name))
                q = q->next;
        if (!q && a->queue_count >= CORE_QUEUES_MAX)
                return err_set(err, CORE_INVALID, "more than %u queues of one agent", CORE_QUEUES_MAX);
        if (o->ad.n > CORE_AD_BYTES_MAX)
                return err_set(err, CORE_INVALID, "the ad of the queue %s has more than %u bytes", o->queue,
                               CORE_AD_BYTES_MAX);
        if (a->ad_bytes - (q ? q->ad_bytes : 0) + o->ad.n > CORE_ADS_MAX)
                return err_set(err, CORE_INVALID, "the ads of one agent's queues have more than %u bytes",
                               CORE_ADS_MAX);
        if (a->names >= CORE_NAMES_MAX && names_new(c, o->ad) > 0)
                return err_set(err, CORE_INVALID,
                               "one agent's offers have brought more than %u names of attributes",
                               CORE_NAMES_MAX);
        return 0;
}

int core_offer(struct core *c, const struct core_offer *o, struct err *err)
{
        struct core_agent *a = agent_get(c, str_of(o->agent));
        const struct attributes *at = &c->attr;
        const struct expr *requirements;
        struct symbols_use *before = symbols_use_set(c->symbols, symbols_use_keep(c->symbols));
        struct str away;
        uint32_t names = symbols_used(c->symbols);
        struct queue *q;
        struct ad *ad;
        int r = offer_room(c, a, o, err);

        if (r == 0 && ad_parse(c->symbols, o->ad, CLASSAD_NEW, &ad, err))
                r = CORE_INVALID;
        symbols_use_set(c->symbols, before);
        a->names += symbols_used(c->symbols) - names;
        if (r)
                return r;
        q = queue_get(c, a, str_of(o->queue));
        q->idle_session = false;
        if (o->tags.n)
                cut_tags(c, ad, o->tags);
        default_string(c, ad, at->FileSystemDomain, o->filesystem_domain);
        default_string(c, ad, at->Machine, o->hostname);
        default_string(c, ad, at->Name, str_of(a->name));
        default_string(c, ad, at->QueueName, str_of(q->name));
        default_string(c, ad, at->MyType, STR("Machine"));
        requirements = ad_find(ad, at->Requirements);
        if (!requirements)
                ad_set_boolean(ad, at->Requirements, true);
        ad_is(c, q, ad, o->ad.n);
        q->serial = o->serial;
        set_owners(q, o);
        memcpy(q->wishes, o->wishes, sizeof(q->wishes));
        q->refused_count = 0;
        learn_references(c, q);
        /* What was given and is not accepted yet, the agent did not know of when it made the offer. */
        q->cpus = number_of(c, ad, at->Cpus) - q->taken_cpus;
        q->memory_mib = number_of(c, ad, at->Memory) - q->taken_memory_mib;
        q->disk_kib = number_of(c, ad, at->Disk) - q->taken_disk_kib;
        q->total_cpus = ad_find(ad, at->TotalCpus) ? number_of(c, ad, at->TotalCpus) : INT64_MAX;
        q->total_memory_mib = ad_find(ad, at->TotalMemory) ? number_of(c, ad, at->TotalMemory) : INT64_MAX;
        q->wait_s = real_of(c, ad, at->QueueWait);
        if (q->wait_s >= QUEUE_WAIT_MAX_S)
                q->wait_s = 0;
        q->begins_ms = q->wait_s > 0 ? c->now_ms + (int64_t)(q->wait_s * 1000) : 0;
        q->wait_unknown = false;
        eval_boolean(&c->eval, ad, NULL, at->QueueWaitUnknown, &q->wait_unknown);
        if (q->wait_unknown && !q->begins_ms) /* for who chooses: as long as a job takes */
                q->wait_s = (double)c->estimates->everybody.run_ms / 1000;
        q->price = real_of(c, ad, at->Price);
        q->speed = real_of(c, ad, at->Speed);
        q->search_order = order_of(c, ad);
        free(q->unreachable);
        q->unreachable = eval_string(&c->eval, ad, NULL, at->Unreachable, &away) ? str_dupz(away) : NULL;
        free(q->closed);
        q->closed = o->closed                                               ? mem_dupz(o->closed)
                    : eval_string(&c->eval, ad, NULL, at->WhyClosed, &away) ? str_dupz(away)
                                                                            : NULL;
        profile_update(c, q);
        need_read_resources(c, q);
        if (q->taken_jobs || q->cpus > q->total_cpus || q->memory_mib > q->total_memory_mib)
                queue_show_free(c, q);
        eval_reset(&c->eval);
        q->jobs_left = o->jobs_max > q->taken_jobs ? o->jobs_max - q->taken_jobs : 0;
        q->offers = a->connected && o->jobs_max > 0 && !o->closed;
        index_queue_shown(c, q);
        index_queue_changed(c, q);
        if (q->offers && q->jobs_left > 0)
                queue_look_again(c, q);
        return 0;
}

void core_withdraw(struct core *c, const char *agent, const char *queue)
{
        struct core_agent *a = agent_find(c, agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                if (str_eqz(str_of(queue), q->name))
                        queue_unpark(c, q);
}

/* ---- attempts */

void core_accepted(struct core *c, const char *agent, const struct core_attempts *a)
{
        struct event e = {.type = EVENT_ACCEPTED};
        struct request *r = request_find(c, a->request);

        sift(c, agent, a, &e.members, NULL);
        SET_FOREACH (a->members, m) {
                struct job *j = r ? request_job(r, (uint32_t)m) : NULL;
                if (j && j->accepted)
                        set_remove(&e.members, (uint32_t)m);
        }
        emit_attempts(c, a, &e);
}

/* A refusal does not use up the offer: what the attempt was to take is for others. */
static void offer_again(struct core *c, struct queue *q, const struct need *need, const struct class *k)
{
        if (!q->ad)
                return;
        need_return(c, need, q);
        index_queue_changed(c, q);
        for (unsigned i = 0; k && i < q->refused_count; i++)
                if (q->refused[i] == k->index.serial)
                        return;
        if (k && q->refused_count < REFUSED_MAX) {
                q->refused[q->refused_count++] = k->index.serial;
                if (q->offers && q->jobs_left > 0)
                        queue_look_again(c, q);
        } else {
                queue_unpark(c, q);
        }
}

void core_refused(struct core *c, const char *agent, const struct core_attempts *a, struct str reason,
                  int hold_code)
{
        struct set mine = {0};
        struct request *r = request_find(c, a->request);

        sift(c, agent, a, &mine, NULL);
        SET_FOREACH (&mine, m) {
                struct job *j = request_job(r, (uint32_t)m);
                struct event e = {.type = EVENT_REFUSED, .code = hold_code, .reason = reason};
                const struct bucket *b = request_bucket(c, r, (uint32_t)m);
                struct need need = need_of_attempt(j);
                struct queue *q = j->accepted ? NULL : j->queue;
                char *why = NULL;

                if (j->accepted)
                        links_gave_back(c, j);
                e.next = hold_code ? JOB_HELD : JOB_IDLE;
                if (j->state == JOB_VACATING) {
                        e.next = j->goal;
                        e.code = j->hold_code;
                        why = mem_dupz(j->hold_reason);
                        e.reason = str_of(why);
                }
                set_add(&e.members, (uint32_t)m);
                emit_attempts(c, a, &e);
                free(why);
                if (!hold_code && b && b->class)
                        reserve_refused(b->class);
                if (q)
                        offer_again(c, q, &need, b ? b->class : NULL);
        }
        set_deinit(&mine);
}

/* A time that an agent says, which has a clock of its own: between the submit and now, or nearly; 0 stays. */
static int64_t time_said(const struct core *c, const struct request *r, int64_t at_ms)
{
        int64_t first = r->submitted_ms - CLOCK_OFF_MS, last = c->now_ms + CLOCK_OFF_MS;

        if (at_ms == 0)
                return 0;
        return at_ms < first ? first : at_ms > last ? last : at_ms;
}

void core_started(struct core *c, const char *agent, const struct core_attempts *a, int64_t at_ms)
{
        struct request *r = request_find(c, a->request);
        struct event e = {.type = EVENT_STARTED, .value = r ? time_said(c, r, at_ms) : 0};

        sift(c, agent, a, &e.members, NULL);
        SET_FOREACH (a->members, m) {
                struct job *j = r ? request_job(r, (uint32_t)m) : NULL;
                if (j && j->state != JOB_MATCHED && j->state != JOB_STAGING)
                        set_remove(&e.members, (uint32_t)m);
        }
        emit_attempts(c, a, &e);
}

bool core_checkpoint(struct core *c, const char *agent, const struct core_result *res)
{
        struct event e = {.type = EVENT_CHECKPOINTED,
                          .request = res->request,
                          .fence = res->fence,
                          .cpu_user_ms = res->cpu_user_ms,
                          .cpu_system_ms = res->cpu_system_ms,
                          .values = res->outputs};

        if (!attempt_of(request_find(c, res->request), agent, res->member, res->fence))
                return false;
        set_add(&e.members, res->member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        return true;
}

static bool lists(struct str files, const unsigned char sha256[32])
{
        struct unpack u = unpack_from(files);

        for (uint64_t n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                unpack_str(&u);
                if (u.bad || u.end - u.p < 32)
                        return false;
                if (memcmp(u.p, sha256, 32) == 0)
                        return true;
                u.p += 32;
                unpack_u64(&u);
                unpack_u64(&u);
        }
        return false;
}

bool core_checkpoint_has(struct core *c, const char *agent, uint64_t request, const unsigned char sha256[32])
{
        struct core_agent *a = agent_find(c, agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (j->checkpoint_n && j->request->id == request &&
                            lists(str_make(j->checkpoint, j->checkpoint_n), sha256))
                                return true;
        return false;
}

bool core_result(struct core *c, const char *agent, const struct core_result *said)
{
        struct request *r = request_find(c, said->request);
        struct job *j = attempt_of(r, agent, said->member, said->fence);
        struct core_result bounded = *said, *res = &bounded;
        struct exit_decision d;
        struct event e = {
                .type = EVENT_EXITED,
                .request = res->request,
                .fence = res->fence,
                .outcome = res->outcome,
                .signaled = res->signaled,
                .exit_code = res->exit_code,
                .started_ms = res->started_ms,
                .ended_ms = res->ended_ms,
                .cpu_user_ms = res->cpu_user_ms,
                .cpu_system_ms = res->cpu_system_ms,
                .memory_peak_bytes = res->memory_peak_bytes,
                .outputs = res->outputs,
                .bytes_in = res->bytes_in,
                .bytes_out = res->bytes_out,
        };

        if (!j)
                return false;
        e.started_ms = res->started_ms = time_said(c, r, res->started_ms);
        e.ended_ms = res->ended_ms = time_said(c, r, res->ended_ms);
        if (res->outcome == CORE_OUTCOME_LOST) {
                lose(c, j, res->reason.n ? res->reason : STR("the agent lost the attempt"));
                return true;
        }
        if (res->checkpoint) {
                if (res->outputs.n)
                        core_checkpoint(c, agent, res);
                e.outputs = STR_NONE;
        }
        policy_exit(c, r, j, res, &d);
        e.next = d.next;
        e.code = d.code;
        e.subcode = d.subcode;
        e.reason = str_of(d.reason);
        set_add(&e.members, res->member);
        core_emit(c, &e, NULL);
        event_deinit(&e);
        return true;
}

/* ---- leases */

/* Until then the attempt may go on somewhere, though nothing is heard of its agent. Whose author does not
 * mind two at a time waits for a missed renewal only. */
static int64_t lease_end(const struct core *c, const struct job *j)
{
        const struct core_agent *a = j->queue->agent;
        const struct part *p =
                a->connected || c->config.shadow ? NULL : request_part(j->request, j->member, NULL);
        int64_t term = (int64_t)j->lease_ms / (p && p->template->rerun_eager ? LEASE_RENEWALS : 1);

        return a->renewed_steady_ms + term + c->config.lease_margin_ms;
}

void lease_began(struct core *c, const struct job *j)
{
        int64_t end = lease_end(c, j);

        if (end < c->leases->due_ms)
                c->leases->due_ms = end;
}

static void lose_one(struct core *c, struct job *j, unsigned *left)
{
        --*left;
        lose(c, j,
             j->unknown ? STR("the agent does not know this attempt")
                        : STR("the lease ended: nothing was heard of the agent"));
}

static bool lease_is_over(const struct core *c, const struct core_agent *a)
{
        for (const struct queue *q = a->queues; q; q = q->next)
                for (const struct job *j = q->attempts; j; j = j->next)
                        if (!j->unknown && lease_end(c, j) <= c->steady_ms)
                                return true;
        return false;
}

/* Learns of renewals that were acknowledged without the core. When there is none, there will be none. */
static void hear(struct core *c, struct core_agent *a)
{
        while (c->world.heard && lease_is_over(c, a)) {
                int64_t heard_ms = c->world.heard(c->world.arg, a->name, a->renewed_steady_ms);

                if (heard_ms <= a->renewed_steady_ms)
                        return;
                a->renewed_steady_ms = heard_ms;
        }
}

/* Renewals only put ends off, so none comes before the earliest that was seen when all were looked at last,
 * or that began since: until then there is nothing to look at. */
int64_t leases_end(struct core *c)
{
        unsigned left = LOSE_SLICE;
        void *value;

        if (c->steady_ms >= c->leases->due_ms) {
                c->leases->due_ms = INT64_MAX;
                for (size_t at = 0; map_next(c->agents, &at, NULL, &value);) {
                        struct core_agent *a = value;

                        hear(c, a);
                        for (struct queue *q = a->queues; q; q = q->next)
                                for (struct job *j = q->attempts, *after; j; j = after) {
                                        after = j->next;
                                        if (!j->unknown && lease_end(c, j) > c->steady_ms)
                                                lease_began(c, j);
                                        else if (left == 0)
                                                c->leases->due_ms = c->steady_ms; /* the rest at once */
                                        else
                                                lose_one(c, j, &left);
                                }
                }
        }
        return c->leases->due_ms == INT64_MAX ? INT64_MAX : c->leases->due_ms - c->steady_ms;
}
