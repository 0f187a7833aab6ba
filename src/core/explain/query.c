/* Queries about the core's state; they change nothing. */
#include "core/query.h"
#include "base/format/hex.h"
#include "base/mem.h"
#include "core/accounts/share.h"
#include "core/classes/member_ad.h"
#include "core/data/inputs.h"
#include "core/events/history.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/forgotten.h"
#include "core/model/graph.h"
#include "core/model/item.h"
#include "core/reservation/advance.h"

uint64_t core_request_next(struct core *c, uint64_t after)
{
        struct request *r = after ? request_find(c, after) : NULL;

        if (r)
                return r->next ? r->next->id : 0;
        for (r = c->requests->first; r && r->id <= after; r = r->next)
                ;
        return r ? r->id : 0;
}

uint64_t core_request_prev(struct core *c, uint64_t before)
{
        struct request *r = before ? request_find(c, before) : NULL;

        if (r)
                return r->prev ? r->prev->id : 0;
        for (r = c->requests->last; r && before && r->id >= before; r = r->prev)
                ;
        return r ? r->id : 0;
}

uint64_t core_request_by_uuid(struct core *c, const unsigned char uuid[16], struct str owner)
{
        const struct request *r = request_by_uuid(c, uuid, owner);
        struct forgotten_request f;

        if (r)
                return r->id;
        return forgotten_find(c->requests->forgotten, uuid, owner, &f) ? f.id : 0;
}

uint64_t core_request_last(struct core *c)
{
        return c->requests->last_id;
}

static void count_jobs(const struct request *r, struct core_counts *n)
{
        const struct request_cold *cold = request_cold(r);

        n->jobs += r->count;
        n->waiting += set_count(&cold->waiting);
        n->idle += r->idle + set_count(&cold->waiting) + r->active - r->running;
        n->running += r->running;
        n->held += set_count(&cold->held);
        n->completed += set_count(&cold->completed);
        n->failed += set_count(&cold->failed);
        n->removed += set_count(&cold->removed);
        n->left += set_count(&cold->left);
        if (cold->graph && cold->graph->handles)
                n->handled += set_count(&cold->failed) + set_count(&cold->removed) -
                              graph_failures(r, 0, r->count, NULL);
}

int core_request_get(struct core *c, uint64_t id, struct core_request *ret)
{
        struct request *r = request_find(c, id);

        if (!r)
                return CORE_UNKNOWN;
        *ret = (struct core_request){
                .id = r->id,
                .owner = str_of(request_owner(r)),
                .submitted_ms = r->submitted_ms,
                .finished_ms = request_cold(r)->finished_ms,
                .part_count = r->part_count,
                .edited = set_count(edits_members(r)) > 0,
                .handles = request_cold(r)->graph && request_cold(r)->graph->handles,
        };
        memcpy(ret->uuid, r->uuid, sizeof(ret->uuid));
        count_jobs(r, &ret->counts);
        return 0;
}

void core_totals(struct core *c, struct core_counts *ret)
{
        *ret = (struct core_counts){0};
        for (struct request *r = c->requests->first; r; r = r->next)
                count_jobs(r, ret);
}

const struct ad *core_request_ad(struct core *c, uint64_t id, uint32_t part)
{
        struct request *r = request_find(c, id);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p ? p->job_template->ad : NULL;
}

static int64_t priority_of(struct core *c, const struct request *r, uint32_t member)
{
        const struct bucket *b = request_bucket(c, r, member);

        return b ? b->priority : 0;
}

int core_job_get(struct core *c, uint64_t request, uint32_t member, struct core_job *ret)
{
        struct request *r = request_find(c, request);
        const struct hold_group *h;
        struct job *j;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        j = request_job(r, member);
        *ret = (struct core_job){
                .request = request,
                .member = member,
                .state = request_state(r, member),
                .submitted_ms = r->submitted_ms,
                .entered_ms = r->submitted_ms,
                .priority = priority_of(c, r, member),
                .waits = set_has(&request_cold(r)->waiting, member) &&
                         set_has(&request_cold(r)->blocked, member),
        };
        request_part(r, member, &ret->part);
        if (j) {
                ret->fence = j->fence;
                ret->starts = j->starts;
                ret->agent = j->queue ? j->queue->agent->name : NULL;
                ret->queue = j->queue ? j->queue->name : NULL;
                ret->last_agent = j->last_queue ? j->last_queue->agent->name : NULL;
                ret->away = j->queue && !j->queue->agent->connected;
                ret->unreachable = j->queue ? j->queue->unreachable : NULL;
                ret->removing = ret->state == JOB_VACATING && j->goal == JOB_REMOVED;
                ret->entered_ms = j->entered_ms;
                ret->started_ms = j->started_ms;
                ret->ended_ms = j->ended_ms;
                ret->ended = j->ended;
                ret->signaled = j->signaled;
                ret->exit_code = j->exit_code;
                ret->cpu_user_ms = j->cpu_user_ms;
                ret->cpu_system_ms = j->cpu_system_ms;
                ret->account = j->account ? j->account->path : NULL;
                ret->cpus = j->cpus;
                ret->memory_mib = j->memory_mib;
                ret->disk_kib = j->disk_kib;
                ret->more = j->more_text;
                ret->checkpoint = str_make(j->checkpoint, j->checkpoint_n);
        }
        if (ret->state != JOB_HELD)
                return 0;
        h = request_hold(r, member);
        if (j && j->hold_reason) {
                ret->hold_code = j->hold_code;
                ret->hold_subcode = j->hold_subcode;
                ret->hold_reason = str_of(j->hold_reason);
        } else if (h) {
                ret->entered_ms = h->at_ms;
                ret->hold_code = h->code;
                ret->hold_subcode = h->subcode;
                ret->hold_reason = str_of(h->reason);
        }
        return 0;
}

void core_global_id(struct buf *out, const unsigned char uuid[16], uint64_t request, uint32_t member,
                    int64_t submitted_ms)
{
        char text[HEX_UUID];

        hex_print_uuid(text, uuid);
        buf_printf(out, "%s#%llu.%u#%lld", text, (unsigned long long)request, member,
                   (long long)(submitted_ms / 1000));
}

struct ad *core_job_ad(struct core *c, uint64_t request, uint32_t member)
{
        return core_job_ad_some(c, request, member, NULL, 0);
}

/* Sets where the job is reserved; a: NULL if it is not. */
static void set_reserved(struct core *c, struct ad *ad, const struct advance *a)
{
        BUF_CLEANUP struct buf place = {0};

        if (!a)
                return;
        buf_printf(&place, "%s of %s", a->places[0].queue->name, a->places[0].queue->agent->name);
        ad_set_string(ad, c->attr.DroverReserved, buf_view(&place));
        ad_set_string(ad, c->attr.DroverReservedWhy, str_of(a->reason ? a->reason : ""));
        ad_set_integer(ad, c->attr.DroverReservedStart, a->start_ms / 1000);
}

struct ad *core_job_ad_some(struct core *c, uint64_t request, uint32_t member, const symbol *names,
                            size_t count)
{
        struct request *r = request_find(c, request);
        BUF_CLEANUP struct buf id = {0}, files = {0};
        struct ad *ad;
        struct job *j;

        if (!r || member >= r->count)
                return NULL;
        j = request_job(r, member);
        ad = member_ad_some(c, r, member, j, names, count);
        if (j && j->checkpoint_n) {
                history_print_files(&files, str_make(j->checkpoint, j->checkpoint_n));
                ad_set_text(ad, c->attr.DroverCheckpoint, buf_view(&files), NULL);
        }
        set_reserved(c, ad, advance_for_job(c, request, member));
        core_global_id(&id, r->uuid, request, member, r->submitted_ms);
        ad_set_string(ad, c->attr.GlobalJobId, buf_view(&id));
        ad_set_integer(ad, c->attr.ServerTime, c->now_ms / 1000);
        return ad;
}

bool core_job_kind(struct core *c, uint64_t request, uint32_t member, struct core_job_kind *ret)
{
        struct request *r = request_find(c, request);
        const struct part *p;
        uint32_t part;

        if (!r || member >= r->count || request_job(r, member) || set_has(&request_cold(r)->reserved, member))
                return false;
        p = request_part(r, member, &part);
        *ret = (struct core_job_kind){request, part, request_state(r, member),
                                      p->job_template ? p->job_template->ad : NULL};
        return true;
}

enum core_scope core_job_scope(struct core *c, uint64_t request, uint32_t member, symbol name)
{
        struct request *r = request_find(c, request);

        return r && member < r->count ? member_ad_scope(c, request_part(r, member, NULL), name)
                                      : CORE_SCOPE_JOB;
}

bool core_job_differs(const struct core *c, const struct ad *ad, symbol name)
{
        return member_ad_differs(c, ad, name);
}

/* Adds the idle members in these states, where some are reserved. */
static void idle_members(const struct request *r, uint32_t states, struct set *to)
{
        const struct request_cold *cold = request_cold(r);
        struct set some = {0};

        request_idle_all(r, &some);
        if (!(states & 1u << JOB_IDLE))
                set_keep_all(&some, &cold->reserved);
        if (!(states & 1u << JOB_RESERVED)) {
                set_remove_all(&some, &cold->reserved);
                if (states & 1u << JOB_AUTHORISED)
                        set_add_all(&some, &cold->authorised);
        }
        if (!(states & 1u << JOB_AUTHORISED))
                set_remove_all(&some, &cold->authorised);
        set_add_all(to, &some);
        set_deinit(&some);
}

int core_members(struct core *c, uint64_t request, uint32_t states, struct set *to)
{
        const uint32_t in_sets = 1u << JOB_IDLE | 1u << JOB_RESERVED | 1u << JOB_AUTHORISED | 1u << JOB_HELD |
                                 1u << JOB_COMPLETED | 1u << JOB_REMOVED;
        struct request *r = request_find(c, request);
        const struct request_cold *cold;
        void *value;

        if (!r)
                return CORE_UNKNOWN;
        cold = request_cold(r);
        if (set_count(&cold->reserved))
                idle_members(r, states, to);
        else if (states & 1u << JOB_IDLE)
                request_idle_all(r, to);
        if (states & 1u << JOB_HELD)
                set_add_all(to, &cold->held);
        if (states & 1u << JOB_COMPLETED)
                set_add_all(to, &cold->completed);
        if (states & 1u << JOB_REMOVED)
                set_add_all(to, &cold->removed);
        for (size_t at = 0; states & ~in_sets && r->jobs && idmap_next(r->jobs, &at, NULL, &value);)
                if (states & ~in_sets & 1u << ((struct job *)value)->state)
                        set_add(to, ((struct job *)value)->member);
        return 0;
}

int core_members_left(struct core *c, uint64_t request, struct set *to)
{
        struct request *r = request_find(c, request);

        if (!r)
                return CORE_UNKNOWN;
        set_add_all(to, &request_cold(r)->left);
        return 0;
}

int core_member_item(struct core *c, uint64_t request, uint32_t member, uint32_t *ret_part, uint32_t *ret_row,
                     uint32_t *ret_step, struct str *values, size_t values_max, size_t *ret_count)
{
        struct request *r = request_find(c, request);
        const struct part *p;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        p = request_part(r, member, ret_part);
        *ret_row = (member - p->first) / p->steps;
        *ret_step = (member - p->first) % p->steps;
        *ret_count = part_row(p, *ret_row, values, values_max);
        return 0;
}

struct str core_part_late(struct core *c, uint64_t request, uint32_t part, symbol name)
{
        struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p ? job_template_late_text(p->job_template, name) : STR_NONE;
}

symbol core_part_late_name(struct core *c, uint64_t request, uint32_t part, size_t i)
{
        struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p && p->job_template && i < p->job_template->late_count ? p->job_template->late[i].name : 0;
}

int core_part_members(struct core *c, uint64_t request, uint32_t part, uint64_t *ret_first, uint64_t *ret_end)
{
        struct request *r = request_find(c, request);

        if (!r || part >= r->part_count)
                return CORE_UNKNOWN;
        *ret_first = r->parts[part].first;
        *ret_end = *ret_first + r->parts[part].count;
        return 0;
}

uint64_t core_steps_taken(const struct core *c)
{
        return core_steps(c);
}

int core_member_text(struct core *c, uint64_t request, uint32_t member, symbol name, struct buf *to)
{
        const struct request *r = request_find(c, request);

        return r ? request_member_text(c, r, member, name, to) : CORE_UNKNOWN;
}

bool core_agent_serves(struct core *c, const char *agent, struct str owner)
{
        struct core_agent *a = agent_find(c, agent);

        for (struct queue *q = a ? a->queues : NULL; q; q = q->next)
                if (q->ad && owners_allow(&q->owners, owner))
                        return true;
        return false;
}

size_t core_part_variables(struct core *c, uint64_t request, uint32_t part, char ***ret)
{
        struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        if (!p)
                return 0;
        *ret = p->job_template->variables;
        return p->job_template->variable_count;
}

int core_request_spooled(struct core *c, uint64_t request, const struct submission_file **ret,
                         size_t *ret_count)
{
        struct request *r = request_find(c, request);

        if (!r)
                return CORE_UNKNOWN;
        *ret = request_cold(r)->spooled;
        *ret_count = request_cold(r)->spooled_count;
        return 0;
}

static void tell_entry(const struct joblog_entry *e, core_log_fn *fn, void *arg)
{
        struct core_log_entry out = {
                .at_ms = e->at_ms,
                .type = e->type,
                .fence = e->fence,
                .agent = e->queue ? e->queue->agent->name : NULL,
                .queue = e->queue ? e->queue->name : NULL,
                .code = e->code,
                .text = e->text,
        };

        fn(arg, &out);
}

int core_job_log(struct core *c, uint64_t request, uint32_t member, core_log_fn *fn, void *arg)
{
        struct request *r = request_find(c, request);
        struct core_log_entry first = {.type = EVENT_SUBMITTED};
        const struct request_cold *cold;
        const struct job *j;

        if (!r || member >= r->count)
                return CORE_UNKNOWN;
        j = request_job(r, member);
        first.at_ms = r->submitted_ms;
        fn(arg, &first);
        cold = request_cold(r);
        for (size_t i = 0; i < cold->log_count; i++)
                if (set_has(&cold->log[i].members, member))
                        tell_entry(&cold->log[i].entry, fn, arg);
        for (uint32_t i = 0; j && i < j->log.count; i++)
                tell_entry(&j->log.entries[i], fn, arg);
        return 0;
}

void core_queues(struct core *c, void (*fn)(void *arg, const struct core_queue_view *q), void *arg)
{
        size_t n;
        struct core_agent **all = agents_sorted(c, &n);

        for (size_t i = 0; i < n; i++)
                for (struct queue *q = all[i]->queues; q; q = q->next) {
                        struct core_queue_view view = {
                                .agent = all[i]->name,
                                .queue = q->name,
                                .connected = all[i]->connected,
                                .offers = q->offers && !q->agent->refuses,
                                .closed = q->agent->refuses ? q->agent->refuses : q->closed,
                                .unreachable = q->unreachable,
                                .jobs_max = q->jobs_left,
                                .ad = q->ad,
                                .running = q->running,
                                .attempts = q->attempt_count,
                                .renewed_ms = all[i]->renewed_wall_ms,
                                .finished = q->finished,
                        };

                        fn(arg, &view);
                }
        free(all);
}

size_t core_bytes(struct core *c)
{
        size_t n = 0;
        void *value;

        for (struct request *r = c->requests->first; r; r = r->next) {
                n += sizeof(*r) + 64; /* including its entries in two maps */
                for (size_t i = 0; i < r->part_count; i++) {
                        const struct part *p = &r->parts[i];

                        n += sizeof(*p) + p->items_n + (p->row_at ? (p->rows / ROW_STRIDE + 1) * 4 : 0) +
                             inputs_bytes(p->inputs);
                }
                for (size_t i = 0; i < r->bucket_count; i++) {
                        const struct bucket *b = r->buckets[i];

                        n += sizeof(*b) + set_bytes(&b->idle) +
                             (b->members ? sizeof(*b->members) + set_bytes(b->members) : 0);
                }
                n += request_cold_bytes(r) + edits_bytes(r);
                n += r->jobs ? idmap_count(r->jobs) * (sizeof(struct job) + 32) : 0;
        }
        for (size_t at = 0; map_next(c->templates, &at, NULL, &value);)
                n += job_template_bytes(value);
        return n;
}
