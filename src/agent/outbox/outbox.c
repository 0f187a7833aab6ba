/* Names of attempts are gathered over a turn and sent as ranges. */
#include "agent/outbox/outbox.h"

#include <errno.h>

#include "agent/message/wire.h"
#include "base/system/clock.h"

#define RESULTS_MAX 256        /* limit in one message */
#define TAILS_MAX   (2u << 20) /* limit of the output in a message, exceeded by at most one job's */
#define JOIN_MS     5          /* between two messages of results, unless one is full */

struct refusal {
        struct name_list names;
        bool hold;
        char *queue;
        char *reason;
};
struct outbox {
        struct session *session; /* NULL: there is none, and messages are dropped */
        struct name_list started;
        struct timer *join; /* runs while results wait for others */
        int64_t results_ms; /* boot clock: when the last ones left */
        struct refusal *refusals;
        size_t refusal_count, refusal_cap;
};

static void refusals_drop(struct outbox *o)
{
        for (size_t i = 0; i < o->refusal_count; i++) {
                free(o->refusals[i].queue);
                free(o->refusals[i].reason);
                free(o->refusals[i].names.v);
        }
        o->refusal_count = 0;
}

static void on_join(void *arg)
{
        agent_turn_later(arg);
}

void outbox_open(struct agent *a)
{
        a->outbox = mem_new(struct outbox);
        a->outbox->join = timer_new(a->loop, on_join, a);
}

void outbox_close(struct agent *a)
{
        struct outbox *o = a->outbox;

        if (!o)
                return;
        refusals_drop(o);
        timer_free(o->join);
        free(o->refusals);
        free(o->started.v);
        free(o);
        a->outbox = NULL;
}

void outbox_session(struct agent *a, struct session *session)
{
        struct outbox *o = a->outbox;

        o->session = session;
        if (session)
                return;
        /* results that were sent and not acknowledged are sent again; the Inventory tells the rest */
        o->started.n = 0;
        for (size_t i = 0; i < a->queue_count; i++)
                a->queues[i]->accepted.n = 0;
        refusals_drop(o);
}

void outbox_accept(struct attempt *at)
{
        name_list_add(&at->q->accepted, at);
}

void outbox_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason)
{
        for (size_t i = 0; i < a->outbox->refusal_count; i++)
                if (a->outbox->refusals[i].hold == hold && !strcmp(a->outbox->refusals[i].queue, queue) &&
                    !strcmp(a->outbox->refusals[i].reason, reason)) {
                        name_list_add(&a->outbox->refusals[i].names, at);
                        return;
                }
        MEM_GROW(a->outbox->refusals, a->outbox->refusal_cap, a->outbox->refusal_count + 1);
        struct refusal *r = &a->outbox->refusals[a->outbox->refusal_count++];
        *r = (struct refusal){.hold = hold, .queue = mem_dupz(queue), .reason = mem_dupz(reason)};
        name_list_add(&r->names, at);
}

void outbox_send(struct agent *a, Drover__ToServer *m)
{
        if (a->outbox->session)
                session_send(a->outbox->session, &m->base);
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

static Drover__JobResult *result_of(const struct attempt *at, struct arena *room)
{
        struct attempt_name name = attempt_name(at);

        return wire_job_result(&name, &at->result, room);
}

void outbox_checkpoint(const struct attempt *at)
{
        struct arena room = {0};
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        to.kind_case = DROVER__TO_SERVER__KIND_CHECKPOINT;
        to.checkpoint = result_of(at, &room);
        outbox_send(at->a, &to);
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
        size_t tails = 0;
        for (struct attempt *at = q->lists[ATTEMPT_DONE]; at; at = at->next) {
                if (at->result_sent)
                        break; /* newest first: all later ones were sent */
                at->result_sent = true;
                list[m.n_jobs++] = result_of(at, room);
                tails += at->result.tails[0].count + at->result.tails[1].count;
                if (m.n_jobs == RESULTS_MAX || tails > TAILS_MAX) {
                        outbox_send(q->a, &to);
                        m.n_jobs = tails = 0;
                }
        }
        if (m.n_jobs)
                outbox_send(q->a, &to);
}

/* Returns whether results should wait because the last ones were sent a moment ago: a server that receives
 * each result alone wakes up and commits for each. */
static bool results_wait(const struct agent *a)
{
        struct outbox *o = a->outbox;
        int64_t now = clock_boot_ms();
        size_t count = 0;

        for (size_t i = 0; i < a->queue_count; i++)
                for (const struct attempt *at = a->queues[i]->lists[ATTEMPT_DONE];
                     at && !at->result_sent && count < RESULTS_MAX; at = at->next)
                        count++;
        if (count == 0)
                return false;
        if (count < RESULTS_MAX && now - o->results_ms < JOIN_MS) {
                timer_start(o->join, o->results_ms + JOIN_MS - now);
                return true;
        }
        o->results_ms = now;
        return false;
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
        outbox_send(q->a, &to);
}

/* Gathers started attempts. An attempt may have ended before its start was reported, and its delivery may
 * take long: the server shows it as running. */
static void gather_started(struct queue *q)
{
        static const enum attempt_state states[] = {ATTEMPT_RUNNING, ATTEMPT_DELIVERING};

        for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
                for (struct attempt *at = q->lists[states[i]]; at; at = at->next)
                        if (!at->told_started && at->result.started_ms) {
                                at->told_started = true;
                                name_list_add(&q->a->outbox->started, at);
                        }
}

void outbox_flush(struct agent *a)
{
        if (!a->greeted)
                return;
        struct arena room = {0};
        for (size_t i = 0; i < a->queue_count; i++)
                send_accepted(a->queues[i], &room);
        for (size_t i = 0; i < a->outbox->refusal_count; i++) {
                Drover__Refuse m = DROVER__REFUSE__INIT;

                m.queue = a->outbox->refusals[i].queue;
                m.reason = a->outbox->refusals[i].reason;
                m.hold = a->outbox->refusals[i].hold;
                m.n_attempts = ranges(&a->outbox->refusals[i].names, &room, &m.attempts);
                Drover__ToServer to = DROVER__TO_SERVER__INIT;
                to.kind_case = DROVER__TO_SERVER__KIND_REFUSE;
                to.refuse = &m;
                outbox_send(a, &to);
        }
        refusals_drop(a->outbox);
        if (results_wait(a)) {
                arena_deinit(&room);
                return;
        }
        for (size_t i = 0; i < a->queue_count; i++)
                gather_started(a->queues[i]);
        if (a->outbox->started.n) {
                Drover__Started m = DROVER__STARTED__INIT;

                m.at_ms = (uint64_t)clock_wall_ms();
                m.n_attempts = ranges(&a->outbox->started, &room, &m.attempts);
                Drover__ToServer to = DROVER__TO_SERVER__INIT;
                to.kind_case = DROVER__TO_SERVER__KIND_STARTED;
                to.started = &m;
                outbox_send(a, &to);
        }
        for (size_t i = 0; i < a->queue_count; i++)
                send_results(a->queues[i], &room);
        arena_deinit(&room);
}

void outbox_inventory(struct agent *a)
{
        struct arena room = {0};
        struct name_list running = {0}, finished = {0};
        struct str key;
        void *value;

        for (size_t i = 0; map_next(a->attempts, &i, &key, &value);) {
                const struct attempt *at = value;

                if (at->kill.state != KILL_ABANDONED)
                        name_list_add(at->state == ATTEMPT_DONE ? &finished : &running, at);
        }
        Drover__Inventory m = DROVER__INVENTORY__INIT;
        m.n_running = ranges(&running, &room, &m.running);
        m.n_finished = ranges(&finished, &room, &m.finished);
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        to.kind_case = DROVER__TO_SERVER__KIND_INVENTORY;
        to.inventory = &m;
        outbox_send(a, &to);
        free(running.v);
        free(finished.v);
        arena_deinit(&room);
}

/* ---- small ones */

static ProtobufCBinaryData bytes_of(struct str s)
{
        return (ProtobufCBinaryData){s.n, (uint8_t *)(uintptr_t)s.p};
}

static ProtobufCBinaryData sum_of(const unsigned char *sha256)
{
        return (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)sha256};
}

void outbox_credential_get(struct agent *a, uint64_t request, uint32_t part, const char *name)
{
        Drover__CredentialGet m = DROVER__CREDENTIAL_GET__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.request = request;
        m.part = part;
        m.name = (char *)(uintptr_t)name;
        to.kind_case = DROVER__TO_SERVER__KIND_CREDENTIAL_GET;
        to.credential_get = &m;
        outbox_send(a, &to);
}

void outbox_streams(struct agent *a, const struct streams_answer *s)
{
        Drover__Streams m = DROVER__STREAMS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.serial = s->serial;
        m.stdout_bytes = bytes_of(s->bytes[0]);
        m.stderr_bytes = bytes_of(s->bytes[1]);
        m.stdout_offset = s->offset[0];
        m.stderr_offset = s->offset[1];
        m.input_next = s->input_next;
        m.over = s->over;
        m.unknown = s->unknown;
        m.signaled = s->signaled;
        m.exit_code = s->exit_code;
        m.cpu_ms = s->cpu_ms;
        m.memory_bytes = s->memory_bytes;
        if (s->error)
                m.error = (char *)(uintptr_t)s->error;
        to.kind_case = DROVER__TO_SERVER__KIND_STREAMS;
        to.streams = &m;
        outbox_send(a, &to);
}

_Static_assert((int)CHIRP_LAUNCHED == DROVER__CHIRP_OP__CHIRP_LAUNCHED, "the numbers are the wire's");

void outbox_chirp(const struct attempt *at, uint64_t serial, const struct chirp_call *c)
{
        Drover__Chirp m = DROVER__CHIRP__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.serial = serial;
        m.request = at->request;
        m.member = at->member;
        m.fence = at->fence;
        m.op = (Drover__ChirpOp)c->op;
        m.name = (char *)(uintptr_t)c->name;
        m.data = bytes_of(c->data);
        m.offset = c->offset;
        m.length = c->length;
        m.flags = c->flags;
        m.mode = c->mode;
        m.node = c->node;
        m.command = c->command;
        m.stderr_offset = c->stderr_offset;
        to.kind_case = DROVER__TO_SERVER__KIND_CHIRP;
        to.chirp = &m;
        outbox_send(at->a, &to);
}

void outbox_file_reply(struct agent *a, uint64_t serial, const struct file_reply *r)
{
        Drover__ChirpReply m = DROVER__CHIRP_REPLY__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.serial = serial;
        m.error = (uint32_t)r->error;
        if (r->error)
                m.text = (char *)(uintptr_t)r->text;
        m.data = bytes_of(r->data);
        m.size = r->size;
        m.mode = r->mode;
        m.changed = r->changed;
        to.kind_case = DROVER__TO_SERVER__KIND_FILE_REPLY;
        to.file_reply = &m;
        outbox_send(a, &to);
}

void outbox_locations(struct agent *a, const struct attempt_location *v, size_t count)
{
        Drover__Whereabouts m = DROVER__WHEREABOUTS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        MEM_CLEANUP Drover__Whereabout *all = mem_array(NULL, count + 1, sizeof(*all));
        MEM_CLEANUP Drover__Whereabout **list = mem_array(NULL, count + 1, sizeof(*list));

        for (size_t i = 0; i < count; i++) {
                Drover__Whereabout *w = list[i] = &all[i];

                drover__whereabout__init(w);
                w->request = v[i].at->request;
                w->member = v[i].at->member;
                w->fence = v[i].at->fence;
                w->runner = v[i].at->q->config->runner;
                w->native = (char *)(uintptr_t)v[i].native;
                w->word = (char *)(uintptr_t)v[i].word;
                w->said = (char *)(uintptr_t)v[i].said;
                w->hops = bytes_of(v[i].hops);
                w->doing = (char *)(uintptr_t)v[i].doing;
                w->doing_since_ms = v[i].doing_since_ms;
                w->doing_bytes = v[i].doing_bytes;
                w->doing_bytes_all = v[i].doing_bytes_all;
        }
        m.attempts = list;
        m.n_attempts = count;
        to.kind_case = DROVER__TO_SERVER__KIND_WHEREABOUTS;
        to.whereabouts = &m;
        if (count)
                outbox_send(a, &to);
}

void outbox_offer(struct agent *a, const struct offer *o)
{
        Drover__Offer m = DROVER__OFFER__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        MEM_CLEANUP Drover__Wish *wishes = mem_array(NULL, o->wish_count + 1, sizeof(*wishes));

        for (size_t i = 0; i < o->wish_count; i++)
                wishes[i] = (Drover__Wish)o->wishes[i];
        m.queue = (char *)(uintptr_t)o->queue;
        m.serial = o->serial;
        m.ad = (char *)(uintptr_t)o->ad;
        m.jobs_max = o->jobs_max;
        m.owners = o->owners;
        m.n_owners = o->owner_count;
        m.wishes = wishes;
        m.n_wishes = o->wish_count;
        m.own_users = o->own_users;
        m.hands_on = o->hands_on;
        to.kind_case = DROVER__TO_SERVER__KIND_OFFER;
        to.offer = &m;
        outbox_send(a, &to);
}

void outbox_cache_delta(struct agent *a, bool full, const struct cached_file *added, size_t added_count,
                        uint64_t *removed, size_t removed_count)
{
        Drover__CacheDelta m = DROVER__CACHE_DELTA__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        MEM_CLEANUP Drover__Cached *all = mem_array(NULL, added_count + 1, sizeof(*all));
        MEM_CLEANUP Drover__Cached **list = mem_array(NULL, added_count + 1, sizeof(*list));

        for (size_t i = 0; i < added_count; i++) {
                Drover__Cached *c = list[i] = &all[i];

                drover__cached__init(c);
                c->file = added[i].id;
                c->size = added[i].size;
                c->kind = (Drover__CachedKind)added[i].kind;
                if (added[i].name)
                        c->name = (char *)(uintptr_t)added[i].name;
        }
        m.full = full;
        m.added = list;
        m.n_added = added_count;
        m.removed = removed;
        m.n_removed = removed_count;
        to.kind_case = DROVER__TO_SERVER__KIND_CACHE_DELTA;
        to.cache_delta = &m;
        outbox_send(a, &to);
}

void outbox_links(struct agent *a, const struct store_link *v, size_t count)
{
        Drover__Links m = DROVER__LINKS__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;
        MEM_CLEANUP Drover__Link *all = mem_array(NULL, count + 1, sizeof(*all));
        MEM_CLEANUP Drover__Link **list = mem_array(NULL, count + 1, sizeof(*list));

        for (size_t i = 0; i < count; i++) {
                Drover__Link *l = list[i] = &all[i];

                drover__link__init(l);
                l->store = (char *)(uintptr_t)v[i].store;
                l->latency_us = v[i].latency_us;
                l->bytes_per_s = v[i].bytes_per_s;
                l->bytes_per_s_out = v[i].bytes_per_s_out;
                l->down_ms = v[i].down_ms;
                if (v[i].down_why)
                        l->down_why = (char *)(uintptr_t)v[i].down_why;
                l->measured_ms = v[i].measured_ms;
                l->free_known = v[i].free_known;
                l->free_bytes = v[i].free_bytes;
        }
        m.links = list;
        m.n_links = count;
        to.kind_case = DROVER__TO_SERVER__KIND_LINKS;
        to.links = &m;
        if (count)
                outbox_send(a, &to);
}

void outbox_spool_read(struct agent *a, uint64_t request, const unsigned char *sha256, uint64_t offset,
                       uint32_t length)
{
        Drover__SpoolRead m = DROVER__SPOOL_READ__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.request = request;
        m.sha256 = sum_of(sha256);
        m.offset = offset;
        m.length = length;
        to.kind_case = DROVER__TO_SERVER__KIND_SPOOL_READ;
        to.spool_read = &m;
        outbox_send(a, &to);
}

void outbox_spool_write(const struct attempt *at, const unsigned char *sha256, uint64_t offset,
                        struct str data, bool last)
{
        Drover__SpoolWrite m = DROVER__SPOOL_WRITE__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.request = at->request;
        m.member = at->member;
        m.fence = at->fence;
        m.sha256 = sum_of(sha256);
        m.offset = offset;
        m.data = (ProtobufCBinaryData){data.n, (uint8_t *)(uintptr_t)data.p};
        m.last = last;
        to.kind_case = DROVER__TO_SERVER__KIND_SPOOL_WRITE;
        to.spool_write = &m;
        outbox_send(at->a, &to);
}

void outbox_userlog_written(struct agent *a, uint64_t serial, const char *error, bool again, bool added)
{
        Drover__UserLogWritten m = DROVER__USER_LOG_WRITTEN__INIT;
        Drover__ToServer to = DROVER__TO_SERVER__INIT;

        m.serial = serial;
        m.error = (char *)(uintptr_t)error;
        m.again = again;
        m.added = added;
        to.kind_case = DROVER__TO_SERVER__KIND_USER_LOG_WRITTEN;
        to.user_log_written = &m;
        outbox_send(a, &to);
}
