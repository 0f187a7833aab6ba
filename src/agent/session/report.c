/* Messages to the server, gathered over a turn: names of attempts become ranges. */
#include <errno.h>

#include "agent/agent.h"
#include "base/arena.h"
#include "base/clock.h"

#define RESULTS_MAX 256 /* in one message */

struct refusal {
        struct name_list names;
        bool hold;
        char *queue;
        char *reason;
};

void report_name(struct name_list *l, const struct attempt *at)
{
        MEM_GROW(l->v, l->cap, l->n + 1);
        l->v[l->n++] = (struct attempt_name){at->request, at->fence, at->member};
}

void report_accept(struct attempt *at)
{
        report_name(&at->q->accepted, at);
}

void report_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason)
{
        for (size_t i = 0; i < a->refusal_count; i++)
                if (a->refusals[i].hold == hold && !strcmp(a->refusals[i].queue, queue) &&
                    !strcmp(a->refusals[i].reason, reason)) {
                        report_name(&a->refusals[i].names, at);
                        return;
                }
        MEM_GROW(a->refusals, a->refusal_cap, a->refusal_count + 1);
        struct refusal *r = &a->refusals[a->refusal_count++];
        *r = (struct refusal){.hold = hold, .queue = mem_dupz(queue), .reason = mem_dupz(reason)};
        report_name(&r->names, at);
}

void report_refusals_drop(struct agent *a)
{
        for (size_t i = 0; i < a->refusal_count; i++) {
                free(a->refusals[i].queue);
                free(a->refusals[i].reason);
                free(a->refusals[i].names.v);
        }
        a->refusal_count = 0;
}

void report_lists_free(struct agent *a)
{
        report_refusals_drop(a);
        free(a->refusals);
        free(a->started.v);
}

static int by_name(const void *pa, const void *pb)
{
        const struct attempt_name *a = pa, *b = pb;
        if (a->request != b->request)
                return a->request < b->request ? -1 : 1;
        if (a->fence != b->fence)
                return a->fence < b->fence ? -1 : 1;
        return a->member < b->member ? -1 : a->member > b->member;
}

/* Sorts the list; the message's parts live in the arena. */
static size_t ranges(struct name_list *l, struct arena *room, Drover__Attempts ***ret)
{
        if (l->n > 1)
                qsort(l->v, l->n, sizeof(*l->v), by_name);
        Drover__Attempts **all = arena_alloc(room, (l->n + 1) * sizeof(*all));
        size_t count = 0;
        for (size_t i = 0; i < l->n;) {
                Drover__Attempts *t = arena_alloc(room, sizeof(*t));
                drover__attempts__init(t);
                t->request = l->v[i].request;
                t->fence = l->v[i].fence;
                size_t same = i;
                while (same < l->n && l->v[same].request == t->request && l->v[same].fence == t->fence)
                        same++;
                t->members = arena_alloc(room, (same - i) * sizeof(*t->members));
                while (i < same) {
                        Drover__Range *r = arena_alloc(room, sizeof(*r));
                        drover__range__init(r);
                        r->first = l->v[i].member;
                        while (i < same && l->v[i].member <= r->first + r->count)
                                r->count = l->v[i++].member - r->first + 1;
                        t->members[t->n_members++] = r;
                }
                all[count++] = t;
        }
        l->n = 0;
        *ret = all;
        return count;
}

static void fill_result(const struct attempt *at, Drover__JobResult *r, struct arena *room)
{
        drover__job_result__init(r);
        r->request = at->request;
        r->member = at->member;
        r->fence = at->fence;
        r->outcome = at->outcome;
        r->started_ms = at->started_ms;
        r->ended_ms = at->ended_ms;
        r->cpu_user_ms = at->cpu_user_ms;
        r->cpu_system_ms = at->cpu_system_ms;
        r->memory_peak_bytes = at->memory_peak_bytes;
        r->hold_code = at->hold_code;
        r->hold_subcode = at->hold_subcode;
        r->reason = at->reason ? at->reason : (char *)"";
        r->bytes_in = at->bytes_in;
        r->bytes_out = at->bytes_out;
        r->n_steps = at->result_count;
        r->steps = arena_alloc(room, (at->result_count + 1) * sizeof(*r->steps));
        for (unsigned i = 0; i < at->result_count; i++)
                r->steps[i] = (Drover__StepResult *)&at->results[i];
        r->checkpoint = at->checkpoint_result;
        r->n_outputs = at->output_count;
        r->outputs = arena_alloc(room, (at->output_count + 1) * sizeof(*r->outputs));
        for (size_t i = 0; i < at->output_count; i++) {
                Drover__OutputRef *o = r->outputs[i] = arena_alloc(room, sizeof(*o));
                drover__output_ref__init(o);
                o->name = at->outputs[i].name;
                o->sha256.data = at->outputs[i].sha256;
                o->sha256.len = 32;
                o->size = at->outputs[i].size;
                o->mode = at->outputs[i].mode;
        }
}

void report_pack_result(const struct attempt *at, struct buf *out)
{
        struct arena room = {0};
        Drover__JobResult r;
        fill_result(at, &r, &room);
        size_t n = drover__job_result__get_packed_size(&r);
        drover__job_result__pack(&r, buf_room(out, n));
        out->n += n;
        arena_deinit(&room);
}

static void send_results(struct queue *q, struct arena *room)
{
        Drover__JobResult *list[RESULTS_MAX];
        Drover__Result m = DROVER__RESULT__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_RESULT;
        to.result = &m;
        m.jobs = list;
        for (struct attempt *at = q->lists[ATTEMPT_DONE]; at; at = at->next) {
                if (at->result_sent)
                        break; /* newest first: what is behind was sent */
                at->result_sent = true;
                list[m.n_jobs] = arena_alloc(room, sizeof(**list));
                fill_result(at, list[m.n_jobs++], room);
                if (m.n_jobs == RESULTS_MAX) {
                        connect_send(q->a, &to);
                        m.n_jobs = 0;
                }
        }
        if (m.n_jobs)
                connect_send(q->a, &to);
}

static void send_accepted(struct queue *q, struct arena *room)
{
        if (q->accepted.n == 0)
                return;
        Drover__Accept m = DROVER__ACCEPT__INIT;
        m.queue = q->config->name;
        m.n_attempts = ranges(&q->accepted, room, &m.attempts);
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_ACCEPT;
        to.accept = &m;
        connect_send(q->a, &to);
}

static void gather_started(struct queue *q)
{
        for (struct attempt *at = q->lists[ATTEMPT_RUNNING]; at; at = at->next)
                if (!at->told_started && at->started_ms) {
                        at->told_started = true;
                        report_name(&q->a->started, at);
                }
}

void report_flush(struct agent *a)
{
        if (!a->greeted)
                return;
        struct arena room = {0};
        for (size_t i = 0; i < a->queue_count; i++)
                send_accepted(a->queues[i], &room);
        for (size_t i = 0; i < a->refusal_count; i++) {
                Drover__Refuse m = DROVER__REFUSE__INIT;
                m.queue = a->refusals[i].queue;
                m.reason = a->refusals[i].reason;
                m.hold = a->refusals[i].hold;
                m.n_attempts = ranges(&a->refusals[i].names, &room, &m.attempts);
                Drover__ToServer to = DROVER__TO_SERVER__INIT;
                to.kind_case = DROVER__TO_SERVER__KIND_REFUSE;
                to.refuse = &m;
                connect_send(a, &to);
        }
        report_refusals_drop(a);
        for (size_t i = 0; i < a->queue_count; i++)
                gather_started(a->queues[i]);
        if (a->started.n) {
                Drover__Started m = DROVER__STARTED__INIT;
                m.at_ms = (uint64_t)clock_wall_ms();
                m.n_attempts = ranges(&a->started, &room, &m.attempts);
                Drover__ToServer to = DROVER__TO_SERVER__INIT;
                to.kind_case = DROVER__TO_SERVER__KIND_STARTED;
                to.started = &m;
                connect_send(a, &to);
        }
        for (size_t i = 0; i < a->queue_count; i++)
                send_results(a->queues[i], &room);
        arena_deinit(&room);
}

void report_inventory(struct agent *a)
{
        struct arena room = {0};
        struct name_list running = {0}, finished = {0};
        struct str key;
        void *value;
        for (size_t i = 0; map_next(a->attempts, &i, &key, &value);) {
                const struct attempt *at = value;
                if (!at->abandon)
                        report_name(at->state == ATTEMPT_DONE ? &finished : &running, at);
        }
        Drover__Inventory m = DROVER__INVENTORY__INIT;
        m.n_running = ranges(&running, &room, &m.running);
        m.n_finished = ranges(&finished, &room, &m.finished);
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_INVENTORY;
        to.inventory = &m;
        connect_send(a, &to);
        free(running.v);
        free(finished.v);
        arena_deinit(&room);
}

/* Of an attempt that is over: whoever of the runners has kept it. */
static int kept_script(const struct agent *a, struct run_id id, struct buf *out)
{
        int r = -ENOENT;
        for (size_t i = 0; i < a->backend_count && r < 0; i++) {
                struct runner *runner = a->backends[i]->runner;
                if (runner && runner->kind->script)
                        r = runner->kind->script(runner, id, out);
        }
        return r;
}

void report_script(struct agent *a, const Drover__ScriptGet *m)
{
        const struct attempt *at = agent_find(a, m->request, m->member, m->fence);
        struct run_id id = at ? attempt_task(at) : (struct run_id){m->request, m->member, m->fence, 0, 0};
        struct runner *r = at ? at->q->backend->runner : NULL;
        Drover__Script script = DROVER__SCRIPT__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        BUF_CLEANUP struct buf text = {0}, error = {0};
        int n = r && !r->kind->script ? 0 : r ? r->kind->script(r, id, &text) : kept_script(a, id, &text);
        if (r && !r->kind->script)
                buf_printf(&error, "the queue %s submits no script: its runner is %s", at->q->config->name,
                           at->q->config->runner);
        else if (n == -ENOENT)
                buf_addz(&error, at ? "nothing is submitted for the job at this moment"
                                    : "its agent has no script of the job, or keeps it no more");
        else if (n < 0)
                buf_printf(&error, "its script cannot be read: %s", strerror(-n));
        script.serial = m->serial;
        script.text = (char *)buf_z(&text);
        script.error = (char *)buf_z(&error);
        to.kind_case = DROVER__TO_SERVER__KIND_SCRIPT;
        to.script = &script;
        connect_send(a, &to);
}
