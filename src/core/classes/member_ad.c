/* The ad of one member has the template's ad as its parent, and the few attributes that are the member's own.
 */
#include "core/classes/member_ad.h"

#include <stddef.h>

#include "base/mem.h"
#include "core/classes/fill.h"
#include "core/data/label.h"
#include "core/model/changes.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/graph.h"
#include "core/model/item.h"

static void set_seconds(struct ad *ad, symbol name, int64_t ms)
{
        if (ms)
                ad_set_integer(ad, name, ms / 1000);
}

static void set_queue(struct ad *ad, symbol name, const struct queue *q)
{
        struct buf BUF_CLEANUP b = {0};

        if (!q)
                return;
        buf_printf(&b, "%s@%s", q->name, q->agent->name);
        ad_set_string(ad, name, buf_view(&b));
}

/* Sets CpusProvisioned to GPUsProvisioned: the resources that the attempt takes. */
static void set_provisioned(struct core *c, struct ad *ad, const struct job *j)
{
        ad_set_integer(ad, c->attr.CpusProvisioned, j->cpus);
        ad_set_integer(ad, c->attr.MemoryProvisioned, (int64_t)j->memory_mib);
        ad_set_integer(ad, c->attr.DiskProvisioned, (int64_t)j->disk_kib);
        for (unsigned i = 0; j->more && i < j->more->count; i++) {
                struct buf BUF_CLEANUP name = {0};

                buf_str(&name, symbols_name(c->symbols, j->more->v[i].name));
                buf_addz(&name, "Provisioned");
                ad_set_integer(ad, symbols_intern(c->symbols, buf_view(&name)), j->more->v[i].n);
        }
}

/* HTCondor counts shadows, runs and starts separately; all three are the starts here. */
void member_ad_starts(const struct core *c, struct ad *ad, int64_t starts)
{
        ad_set_integer(ad, c->attr.NumJobStarts, starts);
        ad_set_integer(ad, c->attr.JobRunCount, starts);
        ad_set_integer(ad, c->attr.NumShadowStarts, starts);
}

static void set_record(struct core *c, struct ad *ad, const struct job *j)
{
        const struct attributes *a = &c->attr;

        member_ad_starts(c, ad, j->starts);
        ad_set_integer(ad, a->NumJobCompletions, j->completions);
        ad_set_integer(ad, a->DroverFence, j->fence);
        set_seconds(ad, a->JobStartDate, j->first_started_ms);
        set_seconds(ad, a->JobCurrentStartDate, j->started_ms);
        if (j->queue) {
                set_queue(ad, a->RemoteHost, j->queue);
                set_provisioned(c, ad, j);
        }
        set_queue(ad, a->LastRemoteHost, j->last_queue);
        ad_set_real(ad, a->RemoteWallClockTime,
                    (double)(j->wall_ms + (job_state_runs(j->state) ? c->now_ms - j->started_ms : 0)) / 1000);
        ad_set_integer(ad, a->CumulativeSuspensionTime,
                       (j->suspended_ms + (j->suspended_at_ms ? c->now_ms - j->suspended_at_ms : 0)) / 1000);
        ad_set_real(ad, a->BytesRecvd, (double)j->bytes_in); /* these are reals in HTCondor */
        ad_set_real(ad, a->BytesSent, (double)j->bytes_out);
        ad_set_real(ad, a->RemoteUserCpu, (double)j->cpu_user_ms / 1000);
        ad_set_real(ad, a->RemoteSysCpu, (double)j->cpu_system_ms / 1000);
        if (j->energy_uj)
                ad_set_real(ad, a->EnergyJoules, (double)j->energy_uj / 1e6);
        if (j->memory_peak_bytes) {
                ad_set_integer(ad, a->MemoryUsage, (int64_t)((j->memory_peak_bytes + (1 << 20) - 1) >> 20));
                ad_set_integer(ad, a->ResidentSetSize, (int64_t)((j->memory_peak_bytes + 1023) >> 10));
        }
        if (j->ended) {
                ad_set_boolean(ad, a->ExitBySignal, j->signaled);
                ad_set_integer(ad, j->signaled ? a->ExitSignal : a->ExitCode, j->exit_code);
        }
}

/* Sets the labels that the server found, not only those that the author wrote, since servers and places that
 * the job is handed to go by this attribute. */
static void set_labels(struct core *c, struct ad *ad, const struct request *r, uint32_t member)
{
        const struct bucket *b = request_bucket(c, r, member);
        BUF_CLEANUP struct buf names = {0};

        if (!b || !b->job_class || !b->job_class->labels)
                return;
        label_print(c, b->job_class->labels, &names);
        ad_set_string(ad, c->attr.DataLabels, buf_view(&names));
}

static bool has_symbol(const symbol *names, size_t count, symbol name)
{
        for (size_t i = 0; i < count; i++)
                if (names[i] == name)
                        return true;
        return false;
}

/* An expression takes far longer to read than a text of the same length: of an ad's memory beyond the
 * ordinary so many bytes take as long as a step of an evaluation. */
#define AD_ORDINARY 8192u
#define AD_STEP     128u

/* Sets the late attributes, or of these only `only` if that is not NULL. Both steps were tried at submit with
 * the first member; a text that fails for another member becomes undefined. */
static void set_late(struct core *c, struct ad *ad, const struct request *r, const struct part *p,
                     uint32_t member, const symbol *only, size_t only_count)
{
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        size_t left = LATE_TEXT_MAX;

        for (size_t i = 0; p->job_template && i < p->job_template->late_count; i++) {
                const struct job_template_late *l = &p->job_template->late[i];

                if (only && !has_symbol(only, only_count, l->name))
                        continue;
                buf_reset(&text);
                if (part_expand(c, r, p, member, l->text, &left, &text, NULL) != 0 ||
                    ad_set_text(ad, l->name, buf_view(&text), NULL) != 0)
                        ad_set_undefined(ad, l->name);
                ad_set_spelling(ad, l->name, l->spelling);
        }
        if (ad_bytes(ad) > AD_ORDINARY)
                c->late_steps += ad_bytes(ad) / AD_STEP;
}

/* Sets the hold reason: the member's own, or that of its hold group. */
static void set_hold(struct core *c, struct ad *ad, const struct request *r, uint32_t member,
                     const struct job *j)
{
        const struct attributes *a = &c->attr;
        const struct hold_group *h = j && j->hold_reason ? NULL : request_hold(r, member);

        ad_set_string(ad, a->HoldReason, str_of(h ? h->reason : j ? j->hold_reason : ""));
        ad_set_integer(ad, a->HoldReasonCode, h ? h->code : j ? j->hold_code : 0);
        ad_set_integer(ad, a->HoldReasonSubCode, h ? h->subcode : j ? j->hold_subcode : 0);
        if (h)
                set_seconds(ad, a->EnteredCurrentStatus, h->at_ms);
}

/* Sets the attributes of the gang that the member is in. */
static void set_gang(struct core *c, struct ad *ad, const struct request *r, uint32_t member)
{
        BUF_CLEANUP struct buf text = {0};
        uint32_t first, size;

        if (!gang_of(r, member, &first, &size))
                return;
        buf_printf(&text, "%llu.%u-%u", (unsigned long long)r->id, first, first + size - 1);
        ad_set_string(ad, c->attr.DroverGang, buf_view(&text));
        ad_set_integer(ad, c->attr.DroverNode, member - first);
}

/* Returns the edge from the jobs that the member handles: those whose result it replaces, or whose being held
 * it waits for. */
static const struct graph_edge *stands_for(const struct graph *g, uint32_t member)
{
        for (uint32_t n = graph_node(g, member), i = g->in_at[n]; i < g->in_at[n + 1]; i++) {
                const struct graph_edge *e = &g->edges[g->in[i]];

                if (e->when == DEPENDENCY_POST || e->when == DEPENDENCY_HELD)
                        return e;
        }
        return NULL;
}

/* Returns the exit code of the first parent that has not succeeded; 0: all have; -1001, as in DAGMan, without
 * an exit code. */
static int32_t exit_of(const struct request *r, const struct graph *g, const struct graph_edge *e)
{
        const struct request_cold *cold = request_cold(r);

        for (uint32_t k = 0; k < e->parent_runs; k++) {
                const struct graph_run *run = &graph_parents(g, e)[k];
                uint64_t failed = set_next(&cold->failed, run->first);
                uint64_t removed = set_next(&cold->removed, run->first);

                if (failed < run->end && failed < removed)
                        return request_exit(r, (uint32_t)failed);
                if (removed < run->end)
                        return -1001;
        }
        return 0;
}

static bool is_aborted(const struct request *r, const struct graph *g)
{
        const struct set *failed = &request_cold(r)->failed;

        for (uint64_t m = set_first(failed); g->has_aborts && m != SET_END; m = set_next(failed, m + 1)) {
                int32_t code = request_part(r, (uint32_t)m, NULL)->job_template->abort_code;

                if (code && request_exit(r, (uint32_t)m) == code)
                        return true;
        }
        return false;
}

#define ENDED_STEP 16u /* ended nodes whose look-up takes as long as a step of an evaluation */

/* Sets the attributes that scripts of a graph's nodes ask for, such as $$([DAGReturn]) (fill.h). */
static void set_graph(struct core *c, struct ad *ad, const struct request *r, const struct part *p,
                      uint32_t member)
{
        const struct graph *g = request_cold(r)->graph;
        const struct graph_edge *e;
        BUF_CLEANUP struct buf id = {0};
        uint64_t failures, removed;
        int32_t code;

        if (!g || !p->job_template || (p->job_template->fill_count == 0 && !p->item_fills))
                return;
        if (g->handles || g->has_aborts)
                c->late_steps +=
                        (set_count(&request_cold(r)->failed) + set_count(&request_cold(r)->removed)) /
                        ENDED_STEP;
        failures = graph_failures(r, 0, r->count, &removed);
        ad_set_integer(ad, c->attr.DAGFailedCount, (int64_t)(failures - removed));
        ad_set_integer(ad, c->attr.DAGStatus, is_aborted(r, g) ? 3 : failures ? 2 : 0);
        e = stands_for(g, member);
        if (!e)
                return;
        code = exit_of(r, g, e);
        buf_printf(&id, "%llu.%u", (unsigned long long)r->id, graph_parents(g, e)->first);
        ad_set_string(ad, c->attr.DAGJobId, buf_view(&id));
        ad_set_integer(ad, c->attr.DAGJobCount,
                       (int64_t)graph_runs_members(graph_parents(g, e), e->parent_runs));
        ad_set_integer(ad, c->attr.DAGReturn, code);
        ad_set_string(ad, c->attr.DAGSuccess, code == 0 ? STR("True") : STR("False"));
}

/* Sets the attributes that the job's program has set (lifecycle/chirp.c). */
static void set_own(struct core *c, struct ad *ad, struct str changes)
{
        struct submission_attribute a;

        while (changes_next(&changes, &a)) {
                symbol name = symbols_intern(c->symbols, a.name);

                if (a.text.n == 0 || ad_set_text(ad, name, a.text, NULL) != 0)
                        ad_set_undefined(ad, name);
                ad_set_spelling(ad, name, symbols_spelling(c->symbols, name, a.name));
        }
}

struct ad *member_ad(struct core *c, const struct request *r, uint32_t member, const struct job *j)
{
        return member_ad_some(c, r, member, j, NULL, 0);
}

struct ad *member_ad_some(struct core *c, const struct request *r, uint32_t member, const struct job *j,
                          const symbol *late, size_t late_count)
{
        const struct request_cold *cold = request_cold(r);
        const struct attributes *a = &c->attr;
        const struct part *p = request_part(r, member, NULL);
        enum job_state state = request_state(r, member);
        struct symbols_use *before = job_template_names(c, p->job_template);
        struct ad *ad = ad_new(c->symbols);
        struct str user = str_of(request_owner(r)), name = user;

        if (str_find(user, '@') >= 0)
                name = str_head(user, (size_t)str_find(user, '@'));
        if (p->job_template)
                ad_set_parent(ad, p->job_template->ad);
        ad_set_integer(ad, a->ClusterId, (int64_t)r->id);
        ad_set_integer(ad, a->ProcId, member);
        ad_set_string(ad, a->Owner, name);
        ad_set_string(ad, a->User, user);
        ad_set_integer(ad, a->QDate, r->submitted_ms / 1000);
        set_late(c, ad, r, p, member, late, late_count);
        set_graph(c, ad, r, p, member);
        ad_set_integer(ad, a->JobStatus, job_state_status(state));
        ad_set_string(ad, a->DroverState, str_of(job_state_name(state)));
        set_seconds(ad, a->EnteredCurrentStatus, j ? j->entered_ms : r->submitted_ms);
        if (j) {
                set_record(c, ad, j);
        } else {
                member_ad_starts(c, ad, 0);
                ad_set_integer(ad, a->NumJobCompletions, 0);
                ad_set_integer(ad, a->RemoteWallClockTime, 0);
                ad_set_integer(ad, a->CumulativeSuspensionTime, 0);
        }
        if (j && state == JOB_COMPLETED)
                set_seconds(ad, a->CompletionDate, j->entered_ms);
        if (j && j->filled_n)
                fill_show(c, p, str_make(j->filled, j->filled_n), ad);
        if (j && j->own_n)
                set_own(c, ad, str_make(j->own, j->own_n));
        if (state == JOB_HELD)
                set_hold(c, ad, r, member, j);
        set_labels(c, ad, r, member);
        set_gang(c, ad, r, member);
        for (size_t i = 0; i < cold->priority_count; i++)
                if (set_has(&cold->priorities[i].members, member))
                        ad_set_integer(ad, a->JobPrio, cold->priorities[i].priority);
        symbols_use_set(c->symbols, before);
        return ad;
}

/* ---- which attributes members have of their own */

static bool is_attribute(const struct core *c, const size_t *offsets, size_t count, symbol name)
{
        for (size_t i = 0; i < count; i++)
                if (name == *(const symbol *)(const void *)((const char *)&c->attr + offsets[i]))
                        return true;
        return false;
}

#define AT(name)                    offsetof(struct attributes, name)
#define IS_ATTRIBUTE(c, list, name) is_attribute(c, list, sizeof(list) / sizeof(*(list)), name)

/* Members in one state have the same value, as long as they have no record. */
static const size_t of_state[] = {
        AT(JobStatus),       AT(DroverState),       AT(NumJobStarts),        AT(JobRunCount),
        AT(NumShadowStarts), AT(NumJobCompletions), AT(RemoteWallClockTime), AT(CumulativeSuspensionTime)};
static const size_t of_request[] = {AT(ClusterId), AT(Owner), AT(User), AT(QDate)};
/* Some members have one. */
static const size_t some_have[] = {AT(JobPrio),           AT(DataLabels),          AT(DroverGang),
                                   AT(DroverNode),        AT(HoldReason),          AT(HoldReasonCode),
                                   AT(HoldReasonSubCode), AT(DAGFailedCount),      AT(DAGStatus),
                                   AT(DAGJobId),          AT(DAGJobCount),         AT(DAGReturn),
                                   AT(DAGSuccess),        AT(EnteredCurrentStatus)};
/* Each member has another one, or the same at that moment only. */
static const size_t each_has[] = {AT(ProcId), AT(GlobalJobId), AT(ServerTime)};

bool member_ad_differs(const struct core *c, const struct ad *ad, symbol name)
{
        if (IS_ATTRIBUTE(c, some_have, name))
                return true;
        return !IS_ATTRIBUTE(c, of_state, name) && !IS_ATTRIBUTE(c, of_request, name) &&
               ad_find_own(ad, name) != NULL;
}

enum core_scope member_ad_scope(const struct core *c, const struct part *p, symbol name)
{
        if (IS_ATTRIBUTE(c, of_state, name))
                return CORE_SCOPE_STATE;
        if (IS_ATTRIBUTE(c, of_request, name) || IS_ATTRIBUTE(c, some_have, name) ||
            IS_ATTRIBUTE(c, each_has, name) ||
            (p->job_template && job_template_late_text(p->job_template, name).p))
                return CORE_SCOPE_JOB;
        return CORE_SCOPE_TEMPLATE;
}
