/* Handles the server's messages about attempts: accepts, refuses, continues and ends them. */
#include "agent/session/assign.h"

#include "agent/attempt/checkpoint.h"
#include "agent/attempt/decode.h"
#include "agent/attempt/event.h"
#include "agent/attempt/journal.h"
#include "agent/attempt/kill.h"
#include "agent/attempt/life.h"
#include "agent/container/container_step.h"
#include "agent/message/wire.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/offers.h"
#include "agent/session/connect.h"
#include "base/system/clock.h"
#include "base/system/log.h"

/* Bytes of templates and attempts: their journal is read as a whole. */
#define HELD_MAX (UINT64_C(512) << 20)

/* Why these can never run here; NULL: they can. *ret_hold: nor anywhere else. */
static const char *unfit(const struct queue *q, const struct held_template *t, bool *ret_hold)
{
        const struct agent *a = q->a;
        const struct job_template *m = t->m;
        const char *why;

        *ret_hold = true;
        if (m->step_count == 0 || m->step_count > STEPS_MAX)
                return "the job has no step, or more than 64";
        for (size_t i = 0; i < m->step_count && !queue_hands_on(q); i++)
                if ((why = container_step_refused(q, &m->steps[i]))) {
                        *ret_hold = false;
                        return why;
                }
        *ret_hold = false;
        if (queue_hands_on(q) && (m->step_count > 1 || m->mount_count || m->streams_in_sandbox))
                return "the job has several steps, or files that its containers mount, which is not handed "
                       "on to "
                       "another server";
        if (t->not_mapped)
                return t->not_mapped;
        if (!a->users_path && !users_own(&a->config, m->owner))
                return "this agent does not run the owner's jobs";
        if (!t->same_domain && m->transfer == TRANSFER_NO)
                return "the submitter's files are not visible here, and should_transfer_files is NO";
        return offers_never_fits(q, m);
}

/* Members that were taken, for the journal. */
struct taken {
        struct member_range *v;
        size_t n, cap;
};

static void taken_add(struct taken *t, uint32_t member)
{
        struct member_range *last = t->n ? &t->v[t->n - 1] : NULL;

        if (last && last->first + last->count == member) {
                last->count++;
                return;
        }
        MEM_GROW(t->v, t->cap, t->n + 1);
        t->v[t->n++] = (struct member_range){member, 1};
}

/* Records the accepted members, which may be fewer than the message names. */
static void write_down(struct queue *q, struct held_template *t, const struct job_group *g,
                       const struct taken *taken)
{
        struct job_group of_them = *g;

        of_them.ranges = taken->v;
        of_them.range_count = taken->n;
        journal_accepted(q, t, &of_them);
}

static void take_group(struct agent *a, const char *name, const struct job_group *g, unsigned *left)
{
        struct taken taken = {0};
        unsigned kind;
        struct queue *q = queue_find_offer(a, name, &kind);
        char key[32];

        held_template_key(key, g->request, g->part);
        struct held_template *t = map_get(a->templates, str_make(key, 12));
        bool hold = false;
        const char *why = !q || q->retired          ? "the agent has no such queue"
                          : !t                      ? "the server sent no template"
                          : !job_group_is_sorted(g) ? "the server's items are in no order"
                                                    : unfit(q, t, &hold);
        for (size_t i = 0; i < g->range_count; i++) {
                for (uint32_t k = 0; *left && k < g->ranges[i].count; k++, (*left)--) {
                        uint32_t member = g->ranges[i].first + k;

                        if (agent_find(a, g->request, member, g->fence))
                                continue; /* known already */
                        if (!why && a->held_bytes > HELD_MAX)
                                why = "the agent holds as much as it can keep";
                        if (why) {
                                if (t && t->not_mapped)
                                        offers_deny(a, t->m->owner, why);
                                struct attempt none = {
                                        .request = g->request, .member = member, .fence = g->fence};
                                outbox_refuse(a, name, &none, hold, why);
                                continue;
                        }
                        struct attempt *at = assign_member(q, t, g, member);
                        at->kind = kind;
                        at->assigned_ms = clock_boot_ms();
                        if (at->wait_for_go && queue_is_local(q))
                                attempt_keep_room(at);
                        outbox_accept(at);
                        pull_use_started(&q->use);
                        offers_assigned(q, kind, 1);
                        taken_add(&taken, member);
                }
        }
        if (taken.n) {
                write_down(q, t, g, &taken);
                if (g->lease_ms && (!a->lease.term_ms || (int64_t)g->lease_ms < a->lease.term_ms)) {
                        lease_clock_hold(&a->lease, (int64_t)g->lease_ms, clock_boot_ms());
                        connect_lease_changed(a);
                }
        }
        free(taken.v);
}

static void take_template(struct agent *a, const Drover__Template *m)
{
        MEM_CLEANUP uint8_t *room = mem_alloc(drover__template__get_packed_size(m));

        assign_template(a, room, drover__template__pack(m, room));
}

void assign_message(struct agent *a, const Drover__Assign *m)
{
        unsigned left = ASSIGN_MEMBERS_MAX;
        struct arena room = {0};

        for (size_t i = 0; i < m->n_templates; i++)
                take_template(a, m->templates[i]);
        for (size_t i = 0; i < m->n_groups; i++) {
                struct job_group g;

                wire_job_group(m->groups[i], &room, &g);
                take_group(a, m->queue, &g, &left);
        }
        arena_deinit(&room);
        if (a->template_bytes > HELD_MAX / 2) /* unused templates are dropped when the next session begins */
                connect_anew(a);
}

static void attempts_each(struct agent *a, Drover__Attempts *const *list, size_t count,
                          void (*fn)(struct attempt *at, void *arg), void *arg)
{
        size_t left =
                map_count(a->attempts) + ASSIGN_MEMBERS_MAX; /* some may be gone; none is counted twice */

        for (size_t i = 0; i < count; i++)
                for (size_t r = 0; r < list[i]->n_members; r++)
                        for (uint32_t k = 0; k < list[i]->members[r]->count && left > 0; k++, left--) {
                                struct attempt *at = agent_find(
                                        a, list[i]->request, list[i]->members[r]->first + k, list[i]->fence);

                                if (at)
                                        fn(at, arg);
                        }
}

static void attempt_go(struct attempt *at, void *arg)
{
        (void)arg;
        at->wait_for_go = false;
}

void assign_go(struct agent *a, const Drover__Go *m)
{
        attempts_each(a, m->attempts, m->n_attempts, attempt_go, NULL);
}

static void control(struct attempt *at, void *arg)
{
        static const char *const reasons[] = {"removed", "held", "vacated"};
        struct agent *a = at->a;
        const Drover__Control *m = arg;
        Drover__Command command = m->command;
        struct run_id id = attempt_task(at);

        if (command == DROVER__COMMAND__SUSPEND || command == DROVER__COMMAND__RESUME) {
                at->suspended = command == DROVER__COMMAND__SUSPEND;
                struct runner *r = at->q->backend->runner;
                if (at->state == ATTEMPT_RUNNING && at->suspended)
                        r->kind->suspend(r, id);
                else if (at->state == ATTEMPT_RUNNING)
                        r->kind->resume(r, id);
        } else if (command == DROVER__COMMAND__CHECKPOINT) {
                checkpoint_ask(at);
        } else if (command == DROVER__COMMAND__SIGNAL) {
                if (m->signal >= 1 && m->signal <= 64)
                        attempt_signal(at, m->signal);
        } else if (command == DROVER__COMMAND__END) {
                attempt_end(at, "ended with its gang");
        } else if (command == DROVER__COMMAND__VACATE && at->state == ATTEMPT_DELIVERING) {
                return; /* nothing is left to run elsewhere */
        } else if (command == DROVER__COMMAND__REMOVE && at->state == ATTEMPT_DELIVERING) {
                attempt_stop_delivery(at, OUTCOME_KILLED, reasons[command], 0);
        } else if (command <= DROVER__COMMAND__VACATE &&
                   (command == DROVER__COMMAND__REMOVE || !attempt_vacate(at, reasons[command]))) {
                attempt_kill(at, OUTCOME_KILLED, a->config.kill_grace_ms, reasons[command], 0);
        }
}

void assign_control(struct agent *a, const Drover__Control *m)
{
        attempts_each(a, m->attempts, m->n_attempts, control, (void *)(uintptr_t)m);
}

static void acked(struct attempt *at, void *arg)
{
        (void)arg;
        if (at->state == ATTEMPT_DONE)
                attempt_forget(at);
}

static void checkpoint_ack(struct attempt *at, void *arg)
{
        (void)arg;
        checkpoint_acked(at);
}

void assign_checkpoint_acked(struct agent *a, const Drover__ResultAck *m)
{
        attempts_each(a, m->attempts, m->n_attempts, checkpoint_ack, NULL);
}

void assign_acked(struct agent *a, const Drover__ResultAck *m)
{
        attempts_each(a, m->attempts, m->n_attempts, acked, NULL);
}

static void stale(struct attempt *at, void *arg)
{
        (void)arg;
        attempt_abandon(at);
}

void assign_inventory(struct agent *a, const Drover__InventoryReply *m)
{
        attempts_each(a, m->kill, m->n_kill, stale, NULL);
        /* results that were not refused are sent again */
        for (size_t i = 0; i < a->queue_count; i++) {
                struct queue *q = a->queues[i];

                for (struct attempt *at = q->lists[ATTEMPT_DONE]; at; at = at->next)
                        at->result_sent = false;
                for (struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next)
                        at->told_started = false;
                for (int s = ATTEMPT_WAITING; s < ATTEMPT_DONE; s++)
                        for (struct attempt *at = q->lists[s]; at; at = at->next)
                                at->told_where = 0;
        }
}
