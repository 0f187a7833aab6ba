/* The file is STATE/journal: records, appended in one write at the end of a turn before anything of the turn
 * is told or started. With process queues only it is not flushed to disk: a power cut also ends the
 * processes, and the server finds attempts that the journal lacks lost. A record is a struct head and `size`
 * bytes; the first incomplete record ends the file. When most records are obsolete, the file is written anew
 * from the present state. */
#include "agent/attempt/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agent/attempt/decode.h"
#include "agent/attempt/life.h"
#include "agent/attempt/output_tail.h"
#include "agent/environment/environments.h"
#include "agent/outbox/outbox.h"
#include "agent/queue/queues.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"

#define JOURNAL_MAX   (1u << 30)
#define REWRITE_BYTES (8u << 20)
#define AGAIN_MS      1000 /* between tries, when it cannot be written */

/* KIND_DEVICES: a key as in KIND_GONE, and what the attempt holds. KIND_STOPPED: such a key, of one that
 * ended with its agent. KIND_QUEUE: the name and, behind a NUL, the runner of the queue of the groups that
 * follow */
enum kind {
        KIND_BEGIN = 1,
        KIND_TEMPLATE,
        KIND_GROUP,
        KIND_RESULT,
        KIND_GONE,
        KIND_QUEUE,
        KIND_DEVICES,
        KIND_STOPPED
};
struct head {
        uint32_t size, kind;
        uint64_t check; /* checksum of size, kind and the first bytes, which detects a torn record */
};

struct journal {
        int fd;
        struct buf out;
        /* bytes: size of the file; live_bytes: its size after the last compaction */
        uint64_t bytes, live_bytes;
        int64_t again_ms;
        bool durable;              /* jobs of batch systems outlive this machine: it is flushed to disk */
        const struct queue *queue; /* queue of the last KIND_QUEUE record */
};

static uint64_t check_of(uint32_t size, uint32_t kind, const void *p)
{
        uint64_t h = 0xcbf29ce484222325u;
        const unsigned char *b = p;

        for (size_t i = 0; i < size; i++)
                h = (h ^ b[i]) * 0x100000001b3u;
        return (h ^ size ^ ((uint64_t)kind << 32)) * 0x100000001b3u;
}

static void put_record(struct buf *out, uint32_t kind, const void *p, size_t n)
{
        struct head h = {(uint32_t)n, kind, check_of((uint32_t)n, kind, p)};

        buf_add(out, &h, sizeof(h));
        buf_add(out, p, n);
}

static void put_template(struct buf *out, const struct template *t)
{
        BUF_CLEANUP struct buf b = {0};

        job_template_pack(t->m, &b);
        put_record(out, KIND_TEMPLATE, b.p, b.n);
}

static void put_group(struct buf *out, const Drover__Group *g)
{
        size_t n = drover__group__get_packed_size(g);
        MEM_CLEANUP uint8_t *room = mem_alloc(n);

        drover__group__pack(g, room);
        put_record(out, KIND_GROUP, room, n);
}

static void put_queue(struct journal *j, struct buf *out, const struct queue *q)
{
        BUF_CLEANUP struct buf b = {0};

        if (j->queue == q)
                return;
        j->queue = q;
        buf_add(&b, q->config->name, strlen(q->config->name) + 1);
        buf_addz(&b, q->config->runner);
        put_record(out, KIND_QUEUE, b.p, b.n);
}

void journal_accepted(struct queue *q, struct template *t, const Drover__Group *g)
{
        struct journal *j = q->a->journal;

        put_queue(j, &j->out, q);
        if (!t->journaled) {
                put_template(&j->out, t);
                t->journaled = true;
        }
        put_group(&j->out, g);
}

static void put_devices(struct buf *out, const struct attempt *at)
{
        BUF_CLEANUP struct buf b = {0};
        char key[17];

        agent_key(key, at->request, at->member, at->fence);
        buf_add(&b, key, 16);
        buf_addz(&b, at->devices);
        put_record(out, KIND_DEVICES, b.p, b.n);
}

static void put_stopped(struct buf *out, const struct attempt *at)
{
        char key[17];

        agent_key(key, at->request, at->member, at->fence);
        put_record(out, KIND_STOPPED, key, 16);
}

void journal_devices(const struct attempt *at)
{
        put_devices(&at->a->journal->out, at);
}

void journal_result(struct attempt *at)
{
        BUF_CLEANUP struct buf b = {0};

        outbox_pack_result(at, &b);
        put_record(&at->a->journal->out, KIND_RESULT, b.p, b.n);
}

void journal_stopped(struct attempt *at)
{
        at->stopped = true;
        put_stopped(&at->a->journal->out, at);
}

void journal_gone(struct agent *a, uint64_t request, uint32_t member, uint32_t fence)
{
        char key[17];

        agent_key(key, request, member, fence);
        put_record(&a->journal->out, KIND_GONE, key, 16);
}

static void put_filled(struct buf *out, Drover__Group *g, const struct attempt *at)
{
        size_t n = at->filled_count;
        MEM_CLEANUP Drover__Filled *all = mem_array(NULL, n + 1, sizeof(*all));
        MEM_CLEANUP Drover__Filled **refs = mem_array(NULL, n + 1, sizeof(*refs));

        for (size_t i = 0; i < n; i++) {
                drover__filled__init(&all[i]);
                all[i].inside = at->filled[2 * i];
                all[i].value = at->filled[2 * i + 1];
                refs[i] = &all[i];
        }
        g->filled = refs;
        g->n_filled = n;
        put_group(out, g);
}

/* Appends records of everything that is held. */
static void put_all(struct agent *a, struct buf *out)
{
        struct str key;
        void *value;

        put_record(out, KIND_BEGIN, a->boot_id, strlen(a->boot_id));
        a->journal->queue = NULL;
        for (size_t i = 0; map_next(a->templates, &i, &key, &value);)
                ((struct template *)value)->journaled = false;
        for (size_t i = 0; map_next(a->attempts, &i, &key, &value);) {
                struct attempt *at = value;

                at->t->journaled = false;
        }
        for (size_t i = 0; map_next(a->attempts, &i, &key, &value);) {
                struct attempt *at = value;

                put_queue(a->journal, out, at->q);
                if (!at->t->journaled) {
                        put_template(out, at->t);
                        at->t->journaled = true;
                }
                Drover__Range range = DROVER__RANGE__INIT, *ranges[1] = {&range};
                Drover__Item item = DROVER__ITEM__INIT, *items[1] = {&item};
                Drover__Group g = DROVER__GROUP__INIT;
                range.first = at->member;
                range.count = 1;
                item.member = at->member;
                item.n_values = at->value_count;
                item.values = at->values;
                item.row = at->row;
                item.step = at->step_value;
                g.request = at->request;
                g.part = at->part;
                g.fence = at->fence;
                g.members = ranges;
                g.n_members = 1;
                g.items = items;
                g.n_items = 1;
                g.lease_ms = at->lease_ms;
                g.set = at->set;
                g.set_size = at->set_size;
                if (at->set_machines)
                        g.set_machines = at->set_machines;
                g.wait_for_go = at->wait_for_go;
                put_filled(out, &g, at);
                if (at->devices)
                        put_devices(out, at);
                if (at->stopped)
                        put_stopped(out, at);
                if (at->state == ATTEMPT_DONE) {
                        BUF_CLEANUP struct buf b = {0};

                        outbox_pack_result(at, &b);
                        put_record(out, KIND_RESULT, b.p, b.n);
                }
        }
}

static int write_anew(struct agent *a, struct err *err)
{
        struct journal *j = a->journal;
        BUF_CLEANUP struct buf all = {0};

        put_all(a, &all);
        int r = fs_write(a->dir, "journal", buf_view(&all), 0600, a->journal->durable, err);
        if (r < 0)
                return r;
        int fd = openat(a->dir, "journal", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return err_set(err, -errno, "cannot open the journal: %s", strerror(errno));
        if (j->fd >= 0)
                close(j->fd);
        j->fd = fd;
        j->bytes = j->live_bytes = all.n;
        buf_reset(&j->out);
        a->journal_error = 0;
        return 0;
}

static void has_failed(struct agent *a, int r)
{
        struct journal *j = a->journal;

        if (!a->journal_error)
                log_error("msg=\"cannot write the journal: no more work is taken, and a restart would lose "
                          "what "
                          "has changed\" error=\"%s\"",
                          strerror(-r));
        a->journal_error = r;
        j->again_ms = clock_boot_ms() + AGAIN_MS;
        buf_reset(&j->out);
}

void journal_flush(struct agent *a)
{
        struct journal *j = a->journal;

        if (a->journal_error) {
                int r = clock_boot_ms() < j->again_ms ? -EAGAIN : write_anew(a, NULL);

                if (r == 0)
                        log_info("msg=\"the journal is written again\"");
                else if (r != -EAGAIN)
                        has_failed(a, r);
                buf_reset(&j->out);
                return;
        }
        if (j->out.n == 0)
                return;
        int r = fs_write_all(j->fd, j->out.p, j->out.n);
        if (r == 0 && j->durable && fdatasync(j->fd) < 0)
                r = -errno;
        j->bytes += j->out.n;
        buf_reset(&j->out);
        if (r < 0 && (r = write_anew(a, NULL)) < 0)
                has_failed(a, r);
        else if (j->bytes > REWRITE_BYTES + j->live_bytes * 4)
                write_anew(a, NULL);
}

/* ---- reading */

static void read_group(struct queue *q, const void *p, size_t n)
{
        struct agent *a = q->a;
        Drover__Group *g = drover__group__unpack(NULL, n, p);

        if (!g)
                return;
        char key[32] = {0};
        memcpy(key, &g->request, 8);
        memcpy(key + 8, &g->part, 4);
        struct template *t = map_get(a->templates, str_make(key, 12));
        unsigned left = ASSIGN_MEMBERS_MAX;
        for (size_t i = 0; t && i < g->n_members; i++)
                for (uint32_t k = 0; k < g->members[i]->count && left > 0; k++, left--) {
                        uint32_t member = g->members[i]->first + k;

                        if (agent_find(a, g->request, member, g->fence))
                                continue;
                        struct attempt *at = assign_member(q, t, g, member);
                        at->adopted = true;
                        environments_adopt(at);
                }
        if (t && g->lease_ms)
                lease_clock_hold(&a->lease, (int64_t)g->lease_ms, 0);
        drover__group__free_unpacked(g, NULL);
}

static struct output_ref read_output(const Drover__OutputRef *r)
{
        struct output_ref o = {.name = mem_dupz(r->name), .size = r->size, .mode = r->mode};

        if (r->sha256.len == 32)
                memcpy(o.sha256, r->sha256.data, 32);
        return o;
}

static void read_result(struct agent *a, const void *p, size_t n)
{
        Drover__JobResult *r = drover__job_result__unpack(NULL, n, p);
        struct attempt *at = r ? agent_find(a, r->request, r->member, r->fence) : NULL;

        if (at && at->state != ATTEMPT_DONE) {
                at->result.outcome = (enum outcome)r->outcome;
                at->result.set = true;
                at->result.started_ms = r->started_ms;
                at->result.ended_ms = r->ended_ms;
                at->result.cpu_user_ms = r->cpu_user_ms;
                at->result.cpu_system_ms = r->cpu_system_ms;
                at->result.memory_peak_bytes = r->memory_peak_bytes;
                at->result.hold_code = r->hold_code;
                at->result.hold_subcode = r->hold_subcode;
                at->result.reason = mem_dupz(r->reason);
                at->result.bytes_in = r->bytes_in;
                at->result.bytes_out = r->bytes_out;
                at->result.bytes_freed = r->bytes_freed;
                at->checkpoint.in_result = r->checkpoint;
                for (size_t i = 0; i < r->n_steps && i < STEPS_MAX; i++) {
                        at->result.steps[i] =
                                (struct step_result){r->steps[i]->signaled,
                                                     r->steps[i]->exit_code,
                                                     r->steps[i]->started_ms,
                                                     r->steps[i]->ended_ms,
                                                     {r->steps[i]->stdout_end, r->steps[i]->stderr_end}};
                        at->result.step_count = (unsigned)i + 1;
                }
                for (size_t i = 0; i < r->n_outputs; i++) {
                        MEM_GROW(at->result.outputs, at->result.output_cap, at->result.output_count + 1);
                        at->result.outputs[at->result.output_count++] = read_output(r->outputs[i]);
                }
                for (size_t i = 0; i < r->n_sent; i++) {
                        MEM_GROW(at->result.sent, at->result.sent_cap, at->result.sent_count + 1);
                        at->result.sent[at->result.sent_count++] = read_output(r->sent[i]);
                }
                output_tail_restore(at, 0, r->stdout_tail.data, r->stdout_tail.len, r->stdout_size);
                output_tail_restore(at, 1, r->stderr_tail.data, r->stderr_tail.len, r->stderr_size);
                attempt_move(at, ATTEMPT_DONE);
        }
        drover__job_result__free_unpacked(r, NULL);
}

static int read_queue(struct agent *a, const char *p, size_t n, struct queue **q, struct err *err)
{
        struct str rest = str_make(p, n), name;

        if (!str_cut(&rest, 0, &name))
                return 0;
        MEM_CLEANUP char *name_z = str_dupz(name), *runner = str_dupz(rest);
        *q = queue_of_journal(a, name_z, runner, err);
        return *q ? 0 : -EINVAL;
}

static void read_record(struct agent *a, struct queue *q, uint32_t kind, const void *p, size_t n)
{
        if (kind == KIND_TEMPLATE) {
                assign_template(a, p, n);
        } else if (kind == KIND_GROUP) {
                read_group(q, p, n);
        } else if (kind == KIND_RESULT) {
                read_result(a, p, n);
        } else if (kind == KIND_GONE && n == 16) {
                struct attempt *at = map_get(a->attempts, str_make(p, 16));

                if (at)
                        attempt_free(at);
        } else if (kind == KIND_STOPPED && n == 16) {
                struct attempt *at = map_get(a->attempts, str_make(p, 16));

                if (at)
                        at->stopped = true;
        } else if (kind == KIND_DEVICES && n > 16) {
                struct attempt *at = map_get(a->attempts, str_make(p, 16));

                if (at && !at->devices) {
                        at->devices = str_dupz(str_make((const char *)p + 16, n - 16));
                        devices_mark(a->devices, str_of(at->devices), true);
                }
        }
}

int journal_open(struct agent *a, struct err *err)
{
        a->journal = mem_new(struct journal);
        a->journal->fd = -1;
        for (size_t i = 0; i < a->queue_count; i++)
                a->journal->durable = a->journal->durable || !queue_is_local(a->queues[i]);
        BUF_CLEANUP struct buf text = {0};
        int r = fs_read(a->dir, "journal", JOURNAL_MAX, &text, err);
        if (r < 0 && r != -ENOENT)
                return r;
        size_t at = 0;
        struct queue *q = a->queues[0]; /* for journals of versions with one queue */
        while (at + sizeof(struct head) <= text.n) {
                struct head h;

                memcpy(&h, text.p + at, sizeof(h));
                const char *p = text.p + at + sizeof(h);
                if (h.size > text.n - at - sizeof(h) || h.check != check_of(h.size, h.kind, p))
                        break;
                if (h.kind != KIND_QUEUE)
                        read_record(a, q, h.kind, p, h.size);
                else if ((r = read_queue(a, p, h.size, &q, err)) < 0)
                        return r;
                at += sizeof(h) + h.size;
        }
        if (at < text.n)
                log_warn("msg=\"the journal's end is not whole\" bytes=%zu", text.n - at);
        if (map_count(a->attempts))
                log_info("msg=\"found attempts of an earlier life\" held=%zu done=%zu",
                         map_count(a->attempts) - queues_count(a, ATTEMPT_DONE),
                         queues_count(a, ATTEMPT_DONE));
        bool is_there = r == 0;
        r = write_anew(a, err);
        if (r < 0 && is_there) { /* running attempts go on and are reported */
                has_failed(a, r);
                r = 0;
        }
        return r;
}

void journal_close(struct agent *a)
{
        if (!a->journal)
                return;
        if (a->journal->fd >= 0)
                close(a->journal->fd);
        buf_deinit(&a->journal->out);
        free(a->journal);
        a->journal = NULL;
}
