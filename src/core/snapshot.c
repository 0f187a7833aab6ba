/* Snapshots: the state after a record of the log, without what the requests' records hold.
 *
 * Made by a shadow core on another thread from the last snapshot and the log, so that the live one never
 * waits. The shadow has no templates and no classes, and its snapshot is the same as the live one's would be:
 * a test compares.
 */
#include <errno.h>

#include "bank/bank.h"
#include "base/mem.h"
#include "base/pack.h"
#include "core/accounts/share.h"
#include "core/classes/admission.h"
#include "core/classes/bucket.h"
#include "core/classes/split.h"
#include "core/data/space.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/lifecycle/delegation.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"
#include "core/model/forgotten.h"
#include "core/reservation/advance.h"

/* 1: without accounts and limits; 2: without hops; 3: without uuids; 4: without edits; 5: without those that
 * wait for others; 6: without the exit codes of graphs; 7: without nodes; 8: without the bank;
 * 9: without the machines that provisioners started; 10: without advance reservations; 11: without
 * lots and files of stores; 12: without the bank's machines; 13: without the jobs of other systems that
 * liens are for; 14: without the bank's closed accounts */
#define SNAPSHOT_VERSION 16

/* What is said of a job by a bit, and which fields it has. */
enum flag {
        FLAG_ENDED = 1,
        FLAG_SIGNALED = 2,
        FLAG_ACCEPTED = 4,
        FLAG_FILLED = 8,
        FLAG_MOVED = 16, /* bytes, in or out */
        FLAG_MORE = 32,
        FLAG_CHECKPOINT = 0x2000,
        FLAG_SET = 0x4000,
        FLAG_GOES = 0x8000,
        FLAG_LOSSES = 0x10000,
        FLAG_OWN = 0x20000, /* attributes that its program has set, and how often it did so */
        FLAG_ENERGY = 0x40000,
        FLAGS = 63 | FLAG_CHECKPOINT | FLAG_SET | FLAG_GOES | FLAG_LOSSES | FLAG_OWN | FLAG_ENERGY,
};

static unsigned flags_of(const struct job *j)
{
        return (j->ended ? FLAG_ENDED : 0u) | (j->signaled ? FLAG_SIGNALED : 0u) |
               (j->accepted ? FLAG_ACCEPTED : 0u) | (j->filled_n ? FLAG_FILLED : 0u) |
               (j->bytes_in || j->bytes_out ? FLAG_MOVED : 0u) | (j->more ? FLAG_MORE : 0u) |
               (j->gang_size ? FLAG_SET : 0u) | (j->gang_goes ? FLAG_GOES : 0u) |
               (j->checkpoint_n ? FLAG_CHECKPOINT : 0u) | (j->losses ? FLAG_LOSSES : 0u) |
               (j->remarks ? FLAG_OWN : 0u) | (j->energy_uj ? FLAG_ENERGY : 0u);
}

/* ---- writing */

struct writer {
        struct buf *out;
        struct idmap *queues; /* from pointer to number */
};

static void put_queue(struct writer *w, const struct queue *q)
{
        pack_u64(w->out, q ? (uint64_t)(uintptr_t)idmap_get(w->queues, (uintptr_t)q) : 0);
}

static void put_text(struct writer *w, const char *text)
{
        pack_u64(w->out, text != NULL);
        if (text)
                pack_str(w->out, str_of(text));
}

static void put_entry(struct writer *w, const struct joblog_entry *e)
{
        pack_i64(w->out, e->at_ms);
        pack_u64(w->out, e->type);
        pack_u64(w->out, e->fence);
        pack_i64(w->out, e->code);
        put_queue(w, e->queue);
        put_text(w, e->text);
}

static void put_losses(struct buf *out, const struct job_losses *l)
{
        pack_u64(out, l->lost);
        pack_u64(out, l->failed);
        pack_i64(out, l->until_ms);
        pack_u64(out, l->node_count);
        for (uint32_t i = 0; i < l->node_count; i++)
                pack_str(out, str_of(l->nodes[i]->name));
}

static void put_job(struct writer *w, const struct job *j)
{
        const uint64_t numbers[] = {j->member,           j->state, j->goal,       j->fence,    j->starts,
                                    j->completions,      j->cpus,  j->memory_mib, j->disk_kib, j->lease_ms,
                                    j->memory_peak_bytes};
        const int64_t times[] = {j->entered_ms,    j->started_ms,   j->first_started_ms,
                                 j->ended_ms,      j->wall_ms,      j->cpu_user_ms,
                                 j->cpu_system_ms, j->suspended_ms, j->suspended_at_ms};

        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
                pack_u64(w->out, numbers[i]);
        for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
                pack_i64(w->out, times[i]);
        pack_u64(w->out, flags_of(j));
        pack_i64(w->out, j->exit_code);
        pack_i64(w->out, j->hold_code);
        pack_i64(w->out, j->hold_subcode);
        put_text(w, j->hold_reason);
        if (j->more)
                pack_str(w->out, str_of(j->more_text));
        put_queue(w, j->queue);
        put_queue(w, j->last_queue);
        pack_str(w->out, str_make(j->outputs, j->outputs_n));
        if (j->queue) {
                pack_str(w->out, str_of(j->account ? j->account->path : NULL));
                pack_str(w->out, str_of(j->draws ? j->draws->text : NULL));
        }
        pack_u64(w->out, j->log.dropped);
        pack_u64(w->out, j->log.count);
        for (uint32_t i = 0; i < j->log.count; i++)
                put_entry(w, &j->log.entries[i]);
        if (j->filled_n)
                pack_str(w->out, str_make(j->filled, j->filled_n));
        if (j->bytes_in || j->bytes_out) {
                pack_u64(w->out, j->bytes_in);
                pack_u64(w->out, j->bytes_out);
        }
        if (j->gang_size) {
                pack_u64(w->out, j->gang_first);
                pack_u64(w->out, j->gang_size);
        }
        if (j->checkpoint_n)
                pack_str(w->out, str_make(j->checkpoint, j->checkpoint_n));
        if (j->losses)
                put_losses(w->out, j->losses);
        if (j->remarks) {
                pack_u64(w->out, j->remarks);
                pack_str(w->out, str_make(j->own, j->own_n));
        }
        if (j->energy_uj)
                pack_u64(w->out, j->energy_uj);
}

static bool has_record(const struct core_agent *a)
{
        return a->losses.row > 0 || a->node.state || a->node.facts || a->node.instance;
}

static void put_nodes(struct core *c, struct buf *out)
{
        size_t n;
        struct core_agent **all = agents_sorted(c, &n);
        uint64_t count = 0;

        for (size_t i = 0; i < n; i++)
                count += has_record(all[i]);
        pack_u64(out, count);
        for (size_t i = 0; i < n; i++) {
                const struct node_losses *l = &all[i]->losses;

                const struct node_record *r = &all[i]->node;

                if (!has_record(all[i]))
                        continue;
                pack_str(out, str_of(all[i]->name));
                pack_u64(out, r->state);
                pack_u64(out, r->back);
                pack_i64(out, r->since_ms);
                pack_i64(out, r->deadline_ms);
                pack_str(out, str_of(r->by));
                pack_str(out, str_of(r->reason));
                pack_str(out, str_of(r->facts));
                pack_u64(out, l->row);
                pack_i64(out, l->at_ms);
                pack_u64(out, l->unrelated);
                for (uint32_t k = 0; k < l->unrelated; k++) {
                        pack_u64(out, l->jobs[k].request);
                        pack_u64(out, l->jobs[k].member);
                }
                pack_str(out, str_make(r->instance, r->instance_n));
                pack_i64(out, r->boot_ms);
        }
        pack_i64(out, c->spending.month);
        pack_i64(out, c->spending.micro);
        free(all);
}

/* Exit codes of a graph's failed jobs, in the order of their members. */
static void put_exits(struct writer *w, const struct request *r)
{
        const struct request_cold *cold = request_cold(r);

        pack_u64(w->out, cold->exits ? 1 + idmap_count(cold->exits) : 0);
        if (!cold->exits || idmap_count(cold->exits) == 0)
                return;
        SET_FOREACH (&cold->failed, m) {
                int32_t code = request_exit(r, (uint32_t)m);

                if (!code)
                        continue;
                pack_u64(w->out, m);
                pack_i64(w->out, code);
        }
}

static void put_request(struct writer *w, const struct request *r)
{
        const struct request_cold *cold = request_cold(r);
        struct set idle = {0}, recorded = {0};
        void *value;

        request_idle_all(r, &idle);
        pack_u64(w->out, r->id);
        pack_i64(w->out, r->submitted_ms);
        pack_i64(w->out, cold->finished_ms);
        pack_u64(w->out, r->count);
        set_pack(w->out, &idle);
        set_pack(w->out, &cold->held);
        set_pack(w->out, &cold->completed);
        set_pack(w->out, &cold->removed);
        set_pack(w->out, &cold->failed);
        set_pack(w->out, &cold->unfiled);
        set_pack(w->out, &cold->blocked);
        put_exits(w, r);
        pack_u64(w->out, cold->hold_count);
        for (size_t i = 0; i < cold->hold_count; i++) {
                const struct hold_group *h = &cold->holds[i];

                set_pack(w->out, &h->members);
                pack_i64(w->out, h->at_ms);
                pack_i64(w->out, h->code);
                pack_i64(w->out, h->subcode);
                put_text(w, h->reason);
        }
        pack_u64(w->out, cold->log_count);
        for (size_t i = 0; i < cold->log_count; i++) {
                set_pack(w->out, &cold->log[i].members);
                put_entry(w, &cold->log[i].entry);
        }
        pack_u64(w->out, cold->priority_count);
        for (size_t i = 0; i < cold->priority_count; i++) {
                set_pack(w->out, &cold->priorities[i].members);
                pack_i64(w->out, cold->priorities[i].priority);
        }
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);)
                set_add(&recorded, ((struct job *)value)->member);
        pack_u64(w->out, set_count(&recorded));
        SET_FOREACH (&recorded, m) {
                put_job(w, request_job(r, (uint32_t)m));
        }
        set_deinit(&idle);
        set_deinit(&recorded);
}

static void put_edits(const struct core *c, struct buf *out)
{
        uint64_t n = 0;

        for (const struct request *r = c->requests->first; r; r = r->next)
                n += request_cold(r)->edits != NULL;
        pack_u64(out, n);
        for (const struct request *r = c->requests->first; r; r = r->next) {
                const struct edits *e = request_cold(r)->edits;

                if (!e)
                        continue;
                pack_u64(out, r->id);
                pack_u64(out, e->next_serial);
                pack_u64(out, e->count);
                for (uint32_t i = 0; i < e->count; i++) {
                        pack_u64(out, e->groups[i]->serial);
                        set_pack(out, &e->groups[i]->members);
                        pack_str(out, e->groups[i]->changes);
                }
        }
}

void core_snapshot(struct core *c, struct buf *out)
{
        struct writer w = {out, idmap_new()};
        size_t n, number = 0;
        struct core_agent **agents = agents_sorted(c, &n);

        pack_u64(out, SNAPSHOT_VERSION);
        pack_u64(out, c->requests->last_id);
        for (size_t i = 0; i < n; i++)
                for (struct queue *q = agents[i]->queues; q; q = q->next)
                        if (q->logged)
                                idmap_put(w.queues, (uintptr_t)q, (void *)(uintptr_t)++number);
        pack_u64(out, number);
        for (size_t i = 0; i < n; i++)
                for (struct queue *q = agents[i]->queues; q; q = q->next) {
                        if (!q->logged)
                                continue;
                        pack_str(out, str_of(agents[i]->name));
                        pack_str(out, str_of(q->name));
                }
        free(agents);
        pack_u64(out, idmap_count(c->requests->by_id));
        for (struct request *r = c->requests->first; r; r = r->next)
                put_request(&w, r);
        pack_u64(out, c->requests->finished_count);
        for (size_t i = 0; i < c->requests->finished_count; i++)
                pack_u64(out, c->requests->finished[i]);
        idmap_free(w.queues);
        shares_pack(c->shares, out);
        delegations_pack(c, out);
        forgotten_pack(c->requests->forgotten, out);
        put_edits(c, out);
        put_nodes(c, out);
        bank_pack(c->bank, out);
        advances_pack(c, out);
        space_pack(c, out);
        bank_machines_pack(c->bank, out);
        bank_jobs_pack(c->bank, out);
        bank_closed_pack(c->bank, out);
        bank_users_pack(c->bank, out);
}

/* ---- reading */

struct reader {
        struct core *core;
        struct unpack in;
        struct queue **queues;
        uint64_t queue_count, version;
};

static struct queue *get_queue(struct reader *r)
{
        uint64_t n = unpack_max(&r->in, r->queue_count);

        return n && !r->in.bad ? r->queues[n - 1] : NULL;
}

static char *get_text(struct reader *r)
{
        return unpack_max(&r->in, 1) ? str_dupz(unpack_str(&r->in)) : NULL;
}

static struct joblog_entry get_entry(struct reader *r)
{
        struct joblog_entry e = {0};

        e.at_ms = unpack_i64(&r->in);
        e.type = (enum event_type)unpack_max(&r->in, EVENT_TYPES - 1);
        e.fence = (uint32_t)unpack_max(&r->in, UINT32_MAX);
        e.code = (int32_t)unpack_i64(&r->in);
        e.queue = get_queue(r);
        e.text = get_text(r);
        return e;
}

static void get_attempt(struct reader *r, struct job *j)
{
        struct queue *q = get_queue(r);

        if (job_state_has_attempt(j->state) != (q != NULL)) {
                r->in.bad = true;
                j->state = JOB_IDLE;
                return;
        }
        if (!q)
                return;
        queue_attach(q, j);
        j->request->active++;
        j->request->running += job_state_runs(j->state);
        q->running += job_state_runs(j->state);
}

static void get_losses(struct reader *r, struct request *req, struct job *j)
{
        struct unpack *u = &r->in;
        struct job_losses *l = j->losses = mem_new(struct job_losses);
        uint64_t nodes;

        l->lost = (uint32_t)unpack_max(u, UINT32_MAX);
        l->failed = (uint32_t)unpack_max(u, UINT32_MAX);
        l->until_ms = unpack_i64(u);
        nodes = unpack_max(u, LOSSES_NODES);
        while (l->node_count < nodes && !u->bad)
                l->nodes[l->node_count++] = agent_get(r->core, unpack_str(u));
        r->core->requests->suspected |= job_is_suspected(j);
        if (j->state != JOB_IDLE || !l->until_ms)
                return;
        set_add(&request_cold_make(req)->delayed, j->member);
        idmap_put(r->core->requests->delayed, req->id, req);
}

static void get_claim(struct reader *r, struct job *j)
{
        struct str account = STR_NONE, draws = STR_NONE;

        if (!j->queue)
                return;
        if (r->version > 1) {
                account = unpack_str(&r->in);
                draws = unpack_str(&r->in);
        }
        r->in.bad |= charge_resume(r->core, j, account, draws, NULL) != 0;
}

static void get_job(struct reader *r, struct request *req)
{
        struct unpack *u = &r->in;
        uint32_t member = (uint32_t)unpack_max(u, req->count - 1);
        struct job *j;
        struct str outputs;
        uint64_t flags;

        if (u->bad || request_job(req, member)) {
                u->bad = true;
                return;
        }
        j = request_job_make(r->core, req, member);
        j->state = (enum job_state)unpack_max(u, JOB_STATES - 1);
        j->goal = (enum job_state)unpack_max(u, JOB_STATES - 1);
        u->bad |= !job_states.states[j->state];
        j->fence = (uint32_t)unpack_max(u, UINT32_MAX);
        j->starts = (uint32_t)unpack_max(u, UINT32_MAX);
        j->completions = (uint32_t)unpack_max(u, UINT32_MAX);
        j->cpus = (uint32_t)unpack_max(u, UINT32_MAX);
        j->memory_mib = unpack_u64(u);
        j->disk_kib = unpack_u64(u);
        j->lease_ms = unpack_u64(u);
        j->memory_peak_bytes = unpack_u64(u);
        j->entered_ms = unpack_i64(u);
        j->started_ms = unpack_i64(u);
        j->first_started_ms = unpack_i64(u);
        j->ended_ms = unpack_i64(u);
        j->wall_ms = unpack_i64(u);
        j->cpu_user_ms = unpack_i64(u);
        j->cpu_system_ms = unpack_i64(u);
        j->suspended_ms = unpack_i64(u);
        j->suspended_at_ms = unpack_i64(u);
        flags = unpack_max(u, FLAGS);
        if (j->state == JOB_COMPLETED || j->state == JOB_REMOVED)
                retention_stay(r->core, req, j);
        j->ended = flags & FLAG_ENDED;
        j->signaled = flags & FLAG_SIGNALED;
        j->accepted = flags & FLAG_ACCEPTED;
        j->exit_code = (int32_t)unpack_i64(u);
        j->hold_code = (int32_t)unpack_i64(u);
        j->hold_subcode = (int32_t)unpack_i64(u);
        j->hold_reason = get_text(r);
        if (flags & FLAG_MORE)
                u->bad |= job_set_more(r->core, j, unpack_str(u)) != 0;
        get_attempt(r, j);
        j->last_queue = get_queue(r);
        outputs = unpack_str(u);
        if (outputs.n) {
                j->outputs = mem_dup(outputs.p, outputs.n);
                j->outputs_n = outputs.n;
        }
        get_claim(r, j);
        j->log.dropped = (uint32_t)unpack_max(u, UINT32_MAX);
        for (uint64_t n = unpack_max(u, LOG_ENTRIES_MAX); n > 0 && !u->bad; n--)
                joblog_push(&j->log, get_entry(r));
        if (flags & FLAG_FILLED && !u->bad) {
                struct str filled = unpack_str(u);

                j->filled = mem_dup(filled.p, filled.n);
                j->filled_n = filled.n;
        }
        if (flags & FLAG_MOVED) {
                j->bytes_in = unpack_u64(u);
                j->bytes_out = unpack_u64(u);
        }
        if (flags & FLAG_SET) {
                j->gang_first = (uint32_t)unpack_max(u, UINT32_MAX);
                j->gang_size = (uint32_t)unpack_max(u, UINT32_MAX);
        }
        j->gang_goes = flags & FLAG_GOES;
        if (flags & FLAG_CHECKPOINT && !u->bad) {
                struct str files = unpack_str(u);

                j->checkpoint = mem_dup(files.p, files.n);
                j->checkpoint_n = files.n;
        }
        if (flags & FLAG_LOSSES && !u->bad)
                get_losses(r, req, j);
        if (flags & FLAG_OWN && !u->bad) {
                struct str own;

                j->remarks = (uint32_t)unpack_max(u, UINT32_MAX);
                own = unpack_str(u);
                j->own = own.n ? mem_dup(own.p, own.n) : NULL;
                j->own_n = own.n;
        }
        if (flags & FLAG_ENERGY)
                j->energy_uj = unpack_u64(u);
}

static void get_groups(struct reader *r, struct request_cold *cold)
{
        struct unpack *u = &r->in;

        for (uint64_t n = unpack_max(u, UINT32_MAX); n > 0 && !u->bad; n--) {
                struct hold_group *h;

                MEM_GROW(cold->holds, cold->hold_cap, cold->hold_count + 1);
                h = &cold->holds[cold->hold_count++];
                *h = (struct hold_group){0};
                set_unpack(&h->members, u);
                h->at_ms = unpack_i64(u);
                h->code = (int32_t)unpack_i64(u);
                h->subcode = (int32_t)unpack_i64(u);
                h->reason = get_text(r);
        }
        for (uint64_t n = unpack_max(u, 256); n > 0 && !u->bad; n--) {
                struct range_log *l;

                MEM_GROW(cold->log, cold->log_cap, cold->log_count + 1);
                l = &cold->log[cold->log_count++];
                *l = (struct range_log){0};
                set_unpack(&l->members, u);
                l->entry = get_entry(r);
        }
        for (uint64_t n = unpack_max(u, UINT32_MAX); n > 0 && !u->bad; n--) {
                struct priority_group *g;

                MEM_GROW(cold->priorities, cold->priority_cap, cold->priority_count + 1);
                g = &cold->priorities[cold->priority_count++];
                *g = (struct priority_group){0};
                set_unpack(&g->members, u);
                g->priority = unpack_i64(u);
        }
}

static void get_exits(struct reader *rd, struct request *r)
{
        struct unpack *u = &rd->in;
        uint64_t n = unpack_max(u, (uint64_t)r->count + 1);

        if (n == 0 || u->bad)
                return;
        request_cold_make(r)->exits = idmap_new();
        while (--n && !u->bad) {
                uint32_t member = (uint32_t)unpack_max(u, r->count - 1);

                request_exit_set(r, member, (int32_t)unpack_i64(u));
        }
}

static int get_request(struct reader *rd, struct err *err)
{
        struct core *c = rd->core;
        struct unpack *u = &rd->in;
        uint64_t id = unpack_max(u, c->requests->last_id);
        int64_t submitted_ms = unpack_i64(u), finished_ms = unpack_i64(u);
        uint64_t count = unpack_max(u, SUBMISSION_MEMBERS_MAX);
        struct set idle = {0};
        struct request_cold *cold;
        struct request *r;
        int e;

        if (u->bad || count == 0 || (c->requests->last && id <= c->requests->last->id))
                return err_set(err, CORE_DAMAGED, "the snapshot is damaged");
        r = request_new(id, submitted_ms, (uint32_t)count);
        cold = request_cold_make(r);
        cold->finished_ms = finished_ms;
        set_unpack(&idle, u);
        set_unpack(&cold->held, u);
        set_unpack(&cold->completed, u);
        set_unpack(&cold->removed, u);
        set_unpack(&cold->failed, u);
        set_unpack(&cold->unfiled, u);
        if (rd->version > 5)
                set_unpack(&cold->blocked, u);
        if (rd->version > 6)
                get_exits(rd, r);
        c->requests->unfiled += set_count(&cold->unfiled);
        get_groups(rd, cold);
        request_cold_trim(r);
        e = request_load_stored(c, r, err);
        request_show(c, r);
        for (uint64_t n = unpack_max(u, count); n > 0 && !u->bad && !e; n--)
                get_job(rd, r);
        if (!e && u->bad)
                e = err_set(err, CORE_DAMAGED, "request %llu of the snapshot is damaged",
                            (unsigned long long)id);
        if (!e) {
                if (request_ended(r)) {
                        /* Nothing waits: it needs no classes. */
                } else {
                        request_split(c, r);
                        request_idle_add(c, r, &idle);
                }
        }
        set_deinit(&idle);
        return e;
}

static void get_nodes(struct reader *r)
{
        struct unpack *u = &r->in;

        for (uint64_t n = unpack_u64(u); n > 0 && !u->bad; n--) {
                struct event e = {.type = EVENT_NODE, .agent = unpack_str(u)};
                struct str instance = STR_NONE;
                struct node_losses l = {0};
                struct node_instance i;
                int64_t boot_ms = 0;
                enum node_state back;
                struct core_agent *a;

                e.next = (uint32_t)unpack_max(u, NODE_STATES - 1);
                back = (enum node_state)unpack_max(u, NODE_STATES - 1);
                e.at_ms = unpack_i64(u);
                e.value = unpack_i64(u);
                e.who = unpack_str(u);
                e.reason = unpack_str(u);
                e.values = unpack_str(u);
                l.row = (uint32_t)unpack_max(u, UINT32_MAX);
                l.at_ms = unpack_i64(u);
                l.unrelated = (uint32_t)unpack_max(u, LOSSES_DRAIN);
                for (uint32_t k = 0; k < l.unrelated; k++) {
                        l.jobs[k].request = unpack_u64(u);
                        l.jobs[k].member = (uint32_t)unpack_max(u, UINT32_MAX);
                }
                if (r->version > 9) {
                        instance = unpack_str(u);
                        boot_ms = unpack_i64(u);
                        u->bad |= instance.n && node_instance_unpack(instance, &i) != 0;
                }
                if (u->bad)
                        return;
                a = agent_get(r->core, e.agent);
                a->node.instance = instance.n ? str_dupz(instance) : NULL;
                a->node.instance_n = instance.n;
                a->node.facts = e.values.n ? str_dupz(e.values) : NULL;
                if (e.next)
                        agent_node_move(a, &e);
                a->node.back = back;
                a->node.deadline_ms = e.value;
                a->node.boot_ms = boot_ms;
                a->losses = l;
        }
        if (r->version > 9) {
                r->core->spending.month = unpack_i64(u);
                r->core->spending.micro = unpack_i64(u);
        }
}

static int get_edits(struct reader *rd, struct err *err)
{
        struct core *c = rd->core;
        struct unpack *u = &rd->in;
        int result = 0;

        for (uint64_t n = unpack_u64(u); n > 0 && !u->bad && !result; n--) {
                struct request *r = request_find(c, unpack_u64(u));
                uint64_t next_serial = unpack_max(u, UINT32_MAX);

                u->bad |= !r;
                for (uint64_t k = unpack_u64(u); k > 0 && !u->bad && !result; k--) {
                        uint32_t serial = (uint32_t)unpack_max(u, UINT32_MAX);
                        struct set members = {0};
                        struct str changes;
                        int64_t kib = 0;

                        set_unpack(&members, u);
                        changes = unpack_str(u);
                        if (!u->bad)
                                result = edits_restore(c, r, serial, &members, changes, &kib, err);
                        charge_request_kib(r, kib);
                        set_deinit(&members);
                }
                if (u->bad || result)
                        break;
                edits_continue(r, (uint32_t)next_serial);
                if (!c->config.shadow && !request_ended(r))
                        request_split(c, r);
        }
        return result ? CORE_DAMAGED : 0;
}

int core_restore(struct core *c, struct str snapshot, struct err *err)
{
        struct reader r = {.core = c, .in = unpack_from(snapshot)};
        uint64_t n;
        int e = 0;

        r.version = unpack_u64(&r.in);
        if (r.version == 0 || r.version > SNAPSHOT_VERSION)
                return err_set(err, CORE_DAMAGED, "the snapshot has a version that is not known here");
        c->requests->last_id = unpack_u64(&r.in);
        r.queue_count = unpack_max(&r.in, 1u << 20);
        r.queues = mem_array(NULL, r.queue_count + 1, sizeof(struct queue *));
        for (uint64_t i = 0; i < r.queue_count; i++) {
                struct str agent = unpack_str(&r.in), queue = unpack_str(&r.in);

                r.queues[i] = queue_get(c, agent_get(c, agent), queue);
                r.queues[i]->logged = true;
        }
        for (n = unpack_u64(&r.in); n > 0 && !r.in.bad && !e; n--)
                e = get_request(&r, err);
        for (n = e ? 0 : unpack_u64(&r.in); n > 0 && !r.in.bad; n--) {
                uint64_t id = unpack_u64(&r.in);

                if (!request_find(c, id)) {
                        r.in.bad = true;
                        break;
                }
                MEM_GROW(c->requests->finished, c->requests->finished_cap, c->requests->finished_count + 1);
                c->requests->finished[c->requests->finished_count++] = id;
        }
        free(r.queues);
        if (!e && r.version > 1)
                shares_unpack(c->shares, &r.in);
        if (!e && r.version > 2)
                delegations_unpack(c, &r.in);
        if (!e && r.version > 3)
                forgotten_unpack(c->requests->forgotten, &r.in);
        if (!e && r.version > 4) {
                c->replaying = true; /* what was accepted once is not refused */
                e = get_edits(&r, err);
                c->replaying = false;
        }
        if (!e && r.version > 7)
                get_nodes(&r);
        if (!e && r.version > 8)
                bank_unpack(c->bank, &r.in);
        if (!e && r.version > 10)
                advances_unpack(c, &r.in);
        if (!e && r.version > 11)
                space_unpack(c, &r.in);
        if (!e && r.version > 12)
                bank_machines_unpack(c->bank, &r.in);
        if (!e && r.version > 13)
                bank_jobs_unpack(c->bank, &r.in);
        if (!e && r.version > 14)
                bank_closed_unpack(c->bank, &r.in);
        if (!e && r.version > 15)
                bank_users_unpack(c->bank, &r.in);
        shares_restored(c->shares);
        if (!e && !unpack_done(&r.in))
                e = err_set(err, CORE_DAMAGED, "the snapshot is damaged");
        return e;
}
