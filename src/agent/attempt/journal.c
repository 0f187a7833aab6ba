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

static void put_template(struct buf *out, const struct held_template *t)
{
        BUF_CLEANUP struct buf b = {0};

        job_template_pack(t->m, &b);
        put_record(out, KIND_TEMPLATE, b.p, b.n);
}

static void put_group(struct buf *out, const struct job_group *g)
{
        BUF_CLEANUP struct buf b = {0};

        job_group_pack(g, &b);
        put_record(out, KIND_GROUP, b.p, b.n);
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

void journal_accepted(struct queue *q, struct held_template *t, const struct job_group *g)
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

static void put_result(struct buf *out, const struct attempt *at)
{
        BUF_CLEANUP struct buf b = {0};
        struct attempt_name name = attempt_name(at);

        job_result_pack(&name, &at->result, &b);
        put_record(out, KIND_RESULT, b.p, b.n);
}

void journal_result(struct attempt *at)
{
        put_result(&at->a->journal->out, at);
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

/* Appends the group of which this attempt is the only member. */
static void put_member(struct buf *out, const struct attempt *at)
{
        struct member_range range = {at->member, 1};
        struct job_item item = {.member = at->member,
                                .row = at->row,
                                .step = at->step_value,
                                .values = at->values,
                                .value_count = at->value_count,
                                .checkpoint = at->checkpoint.restore,
                                .checkpoint_count = at->checkpoint.restore_count};
        struct job_group g = {.request = at->request,
                              .part = at->part,
                              .fence = at->fence,
                              .ranges = &range,
                              .range_count = 1,
                              .items = &item,
                              .item_count = 1,
                              .lease_ms = at->lease_ms,
                              .wait_for_go = at->wait_for_go,
                              .gang = at->gang,
                              .gang_size = at->gang_size,
                              .gang_machines = at->gang_machines,
                              .filled = at->filled,
                              .filled_count = at->filled_count};

        put_group(out, &g);
}

/* Appends records of everything that is held. */
static void put_all(struct agent *a, struct buf *out)
{
        struct str key;
        void *value;

        put_record(out, KIND_BEGIN, a->boot_id, strlen(a->boot_id));
        a->journal->queue = NULL;
        for (size_t i = 0; map_next(a->templates, &i, &key, &value);)
                ((struct held_template *)value)->journaled = false;
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
                put_member(out, at);
                if (at->devices)
                        put_devices(out, at);
                if (at->stopped)
                        put_stopped(out, at);
                if (at->state == ATTEMPT_DONE)
                        put_result(out, at);
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
        struct arena room = {0};
        struct job_group g;

        if (job_group_unpack(p, n, &room, &g) < 0) {
                arena_deinit(&room);
                return;
        }
        char key[32];
        held_template_key(key, g.request, g.part);
        struct held_template *t = map_get(a->templates, str_make(key, 12));
        unsigned left = ASSIGN_MEMBERS_MAX;
        for (size_t i = 0; t && i < g.range_count; i++)
                for (uint32_t k = 0; k < g.ranges[i].count && left > 0; k++, left--) {
                        uint32_t member = g.ranges[i].first + k;

                        if (agent_find(a, g.request, member, g.fence))
                                continue;
                        struct attempt *at = assign_member(q, t, &g, member);
                        at->adopted = true;
                        environments_adopt(at);
                }
        if (t && g.lease_ms)
                lease_clock_hold(&a->lease, (int64_t)g.lease_ms, 0);
        arena_deinit(&room);
}

static void read_result(struct agent *a, const void *p, size_t n)
{
        struct attempt_name name;
        struct job_result r;

        if (job_result_unpack(p, n, &name, &r) < 0)
                return;
        struct attempt *at = agent_find(a, name.request, name.member, name.fence);
        if (!at || at->state == ATTEMPT_DONE) {
                job_result_deinit(&r);
                return;
        }
        struct stream_tail tails[2] = {r.tails[0], r.tails[1]};
        r.tails[0] = r.tails[1] = (struct stream_tail){0};
        at->result = r;
        for (int k = 0; k < 2; k++) {
                output_tail_restore(at, k, tails[k].bytes, tails[k].count, tails[k].size);
                free(tails[k].bytes);
        }
        attempt_move(at, ATTEMPT_DONE);
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
