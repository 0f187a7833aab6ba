/* One thread makes batches durable. It takes all batches in the queue, passes them to the back end as one
 * group, and calls their callbacks in order; meanwhile the next group collects. Taking a term and writing
 * a snapshot are tasks of the same thread: the caller waits, and the thread does one slice of the first
 * task after each group, so that a large snapshot delays a commit by one slice at most.
 *
 * A client that waited for a commit often sends its next batch right after it. If the thread took the
 * queue at once, half of these batches would miss the group and wait for two flushes. Therefore, when
 * there are several clients, the thread waits for the batches of those that were just answered: for an
 * eighth of the duration of the last commit, but at most a millisecond.
 *
 * The order is kept on a full disk. A batch that was returned with STORE_FULL is in the list `refused`
 * until its owner appends it again or frees it. While the list is not empty only its first batch is
 * accepted; the others, and new batches, are returned with STORE_FULL too. Otherwise a batch that is
 * appended before the previous one's callback has run could overtake that one. */
#include "store/backend.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/system/clock.h"

#define STORE_MAGIC     0x53746f72u
#define GROUP_BYTES_MAX (16u << 20) /* of the batches in one transaction */
#define GATHER_PART     8 /* fraction of a commit's duration to wait for the next batches of its clients */
#define GATHER_MAX_NS   1000000

struct task {
        struct task *next;
        bool (*slice)(struct store *s, struct task *t); /* returns true when the task is done */
        int result;
        bool done;
        uint64_t term;
        struct store_snapshot snapshot;
        struct err *err;
};

struct store {
        unsigned magic;
        struct store_backend *be;
        pthread_t thread;
        pthread_mutex_t lock;
        sem_t work; /* wakes the thread; a condition variable would take a system call more each time */
        pthread_cond_t task_done;
        struct store_batch *first, **last; /* appended batches, in order */
        size_t queued;                     /* number of these batches */
        /* batches waiting and written at the time of the last group: an estimate of the number of clients */
        size_t about;
        size_t wake_at; /* the thread sleeps until this many batches are queued */
        struct store_batch *refused_first, *refused_last;
        struct task *tasks;
        bool closing;
        bool follows; /* it has no thread, and is only read */
        int failed;   /* the error after which nothing is accepted any more */
        struct err failed_err;
        uint64_t last_seq;
        bool lost;                  /* as found when it was opened */
        struct store_mirror mirror; /* without functions: none */
};

static void refused_remove(struct store *s, struct store_batch *b)
{
        *(b->refused_prev ? &b->refused_prev->refused_next : &s->refused_first) = b->refused_next;
        *(b->refused_next ? &b->refused_next->refused_prev : &s->refused_last) = b->refused_prev;
        b->refused_next = b->refused_prev = NULL;
        b->refused_by = NULL;
}

/* Inserts b after `after`, or at the front when that is NULL. */
static void refused_insert(struct store *s, struct store_batch *b, struct store_batch *after)
{
        struct store_batch *next = after ? after->refused_next : s->refused_first;

        assert(!b->refused_by);
        b->refused_by = s;
        b->refused_prev = after;
        b->refused_next = next;
        *(after ? &after->refused_next : &s->refused_first) = b;
        *(next ? &next->refused_prev : &s->refused_last) = b;
}

void store_batch_free(struct store_batch *b)
{
        if (!b)
                return;
        if (b->refused_by) {
                struct store *s = b->refused_by;

                pthread_mutex_lock(&s->lock);
                refused_remove(s, b);
                pthread_mutex_unlock(&s->lock);
        }
        buf_deinit(&b->ops);
        free(b);
}

/* ---- the thread */

static void finish(struct store_batch *b, const struct err *err)
{
        store_done_fn *done = b->done;
        void *arg = b->arg;
        uint64_t last_seq = b->last_seq;
        int result = b->result;

        if (result != STORE_FULL) {
                store_batch_free(b);
                b = NULL;
        }
        done(arg, result, last_seq, b, result == STORE_DURABLE ? NULL : err);
}

/* Takes the first batches of the queue that can be treated alike: all refused, or all written. Lock held. */
static struct store_batch *take_group(struct store *s)
{
        struct store_batch *group = s->first, *b = group;
        size_t bytes, count = 1;

        if (!group)
                return NULL;
        bytes = b->ops.n;
        while (b->next && b->next->refused == group->refused && bytes < GROUP_BYTES_MAX) {
                b = b->next;
                bytes += b->ops.n;
                count++;
        }
        s->first = b->next;
        if (!s->first)
                s->last = &s->first;
        b->next = NULL;
        s->queued -= count;
        return group;
}

/* The group did not fit: returns it to its owner, with everything that was appended later. These batches
 * come before those refused earlier, so they go to the front of the list. */
static struct store_batch *refuse_all(struct store *s, struct store_batch *group)
{
        struct store_batch *b, *after = NULL;

        pthread_mutex_lock(&s->lock);
        for (b = group; b->next; b = b->next)
                ;
        b->next = s->first;
        s->first = NULL;
        s->last = &s->first;
        s->queued = 0;
        for (b = group; b; b = b->next) {
                if (b->refused)
                        continue;
                refused_insert(s, b, after);
                after = b;
        }
        pthread_mutex_unlock(&s->lock);
        return group;
}

static void fail_store(struct store *s, int result, const struct err *err)
{
        pthread_mutex_lock(&s->lock);
        s->failed = result;
        s->failed_err = *err;
        pthread_mutex_unlock(&s->lock);
}

static int mirror_first(struct store *s, const struct store_batch *group, size_t count,
                        struct store_batch *add, struct err *err)
{
        MEM_CLEANUP struct str *ops = mem_array(NULL, count, sizeof(*ops));
        size_t n = 0;

        for (const struct store_batch *b = group; b; b = b->next)
                ops[n++] = buf_view(&b->ops);
        return s->mirror.before(s->mirror.arg, ops, n, add, err);
}

/* Commits the group, at the mirror first. */
static int commit_mirrored(struct store *s, struct store_batch *group, size_t count, uint64_t *last_seq,
                           struct err *err)
{
        struct store_batch *add;
        int r;

        if (!s->mirror.before)
                return s->be->ops->commit(s->be, group, last_seq, err);
        add = store_batch_new();
        r = mirror_first(s, group, count, add, err);
        if (r == 0) {
                add->term = group->term;
                add->next = group;
                r = s->be->ops->commit(s->be, add, last_seq, err);
                s->mirror.after(s->mirror.arg, r == 0);
        }
        store_batch_free(add);
        return r;
}

static void commit_group(struct store *s, struct store_batch *group)
{
        struct err err = {0};
        uint64_t last_seq = s->last_seq; /* only this thread changes it */
        size_t count = 0;
        int r = s->failed;

        for (const struct store_batch *b = group; b; b = b->next)
                count++;

        if (r) {
                err = s->failed_err;
        } else if (group->refused) {
                r = err_set(&err, STORE_FULL, "the disk is full: an earlier batch waits to be written");
        } else {
                r = commit_mirrored(s, group, count, &last_seq, &err);
                if (r == 0) {
                        pthread_mutex_lock(&s->lock);
                        s->last_seq = last_seq;
                        /* set before the first callback, so that no client counts twice */
                        s->about = count + s->queued;
                        pthread_mutex_unlock(&s->lock);
                        err_set(&err, 0, "another server holds a newer term");
                } else if (r != STORE_FULL) {
                        fail_store(s, r, &err);
                }
        }
        if (r == STORE_FULL && !group->refused)
                group = refuse_all(s, group);
        for (struct store_batch *b = group, *next; b; b = next) {
                next = b->next;
                b->next = NULL;
                if (r) {
                        b->result = r;
                        b->last_seq = s->last_seq;
                }
                finish(b, &err);
        }
}

static void run_slice(struct store *s, struct task *t)
{
        bool done;

        if (s->failed) {
                t->result = err_set(t->err, s->failed, "%s", s->failed_err.text);
                done = true;
        } else {
                done = t->slice(s, t);
        }
        if (!done)
                return;
        pthread_mutex_lock(&s->lock);
        s->tasks = t->next;
        t->done = true;
        pthread_cond_broadcast(&s->task_done);
        pthread_mutex_unlock(&s->lock);
}

/* Waits until this many batches are queued, or there is another task; end NULL: without a timeout. Lock
 * held. */
static void sleep_until(struct store *s, size_t queued, const struct timespec *end)
{
        bool over = false;

        s->wake_at = queued;
        while (s->queued < queued && !s->tasks && !s->closing && !over) {
                pthread_mutex_unlock(&s->lock);
                over = (end ? sem_clockwait(&s->work, CLOCK_MONOTONIC, end) : sem_wait(&s->work)) < 0 &&
                       errno == ETIMEDOUT;
                pthread_mutex_lock(&s->lock);
        }
        s->wake_at = 0;
}

static void *store_main(void *arg)
{
        struct store *s = arg;
        int64_t gather_until = 0;

        pthread_setname_np(pthread_self(), "store");
        /* the waits below are shorter than the default timer slack */
        prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
        for (;;) {
                struct store_batch *group;
                struct task *t;
                int64_t began, ended, part;

                pthread_mutex_lock(&s->lock);
                sleep_until(s, 1, NULL);
                if (s->about > 1) {
                        struct timespec end = {.tv_sec = gather_until / 1000000000,
                                               .tv_nsec = gather_until % 1000000000};

                        sleep_until(s, s->about, &end);
                }
                s->about = 0;
                group = take_group(s);
                t = s->tasks;
                pthread_mutex_unlock(&s->lock);
                if (!group && !t)
                        return NULL;
                began = clock_mono_ns();
                if (group)
                        commit_group(s, group);
                ended = clock_mono_ns();
                part = (ended - began) / GATHER_PART;
                gather_until = ended + (part < GATHER_MAX_NS ? part : GATHER_MAX_NS);
                if (t)
                        run_slice(s, t);
        }
}

/* ---- calls */

static const struct {
        const char *prefix;
        const struct store_backend_ops *ops;
} backends[] = {
        {"memory:", &store_memory},
        {"sqlite:", &store_sqlite},
        {"sqlite-exclusive:", &store_sqlite_exclusive},
        {"postgresql:", &store_postgres},
        {"postgres:", &store_postgres},
};

static void start_thread(struct store *s)
{
        sigset_t all, before;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&s->thread, NULL, store_main, s);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        assert(r == 0);
}

/* *ret_path: the part of the address behind the name of the back end. */
static int find_backend(const char *address, const struct store_backend_ops **ret, const char **ret_path,
                        struct err *err)
{
        for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++)
                if (str_starts(str_of(address), str_of(backends[i].prefix))) {
                        *ret = backends[i].ops;
                        *ret_path = address + strlen(backends[i].prefix);
                        return 0;
                }
        return err_set(err, -EINVAL,
                       "\"%s\" is not a store's address: write sqlite:/path/file.db or "
                       "postgresql://USER@HOST/DATABASE",
                       address);
}

static struct store *store_new(struct store_backend *be)
{
        struct store *s = mem_new(struct store);

        s->magic = STORE_MAGIC;
        s->be = be;
        s->last = &s->first;
        pthread_mutex_init(&s->lock, NULL);
        sem_init(&s->work, 0, 0);
        pthread_cond_init(&s->task_done, NULL);
        return s;
}

int store_follow(const char *address, const struct store_place *place, struct store **ret, struct err *err)
{
        const struct store_backend_ops *ops;
        struct store_backend *be;
        const char *path;
        int r = find_backend(address, &ops, &path, err);

        if (r == 0 && !ops->follow)
                r = err_set(err, -ENOTSUP, "\"%s\" cannot be read while another server writes it", address);
        if (r == 0)
                r = ops->follow(path, place, &be, err);
        if (r)
                return r;
        *ret = store_new(be);
        (*ret)->follows = true;
        return 0;
}

int store_follow_last(struct store *s, uint64_t *ret_seq, struct err *err)
{
        assert(s->magic == STORE_MAGIC && s->follows);
        return s->be->ops->follow_last(s->be, ret_seq, err);
}

int store_open_at(const char *address, const struct store_place *place, struct store **ret, bool *ret_network,
                  struct err *err)
{
        const struct store_backend_ops *ops;
        struct store_backend *be;
        struct store *s;
        const char *path;
        uint64_t last_seq = 0;
        bool network = false;
        int r = find_backend(address, &ops, &path, err);

        if (r == 0)
                r = ops->open(path, place, &be, &last_seq, &network, err);
        if (r)
                return r;
        s = store_new(be);
        s->lost = be->lost;
        if (place->mirror)
                s->mirror = *place->mirror;
        s->last_seq = last_seq;
        start_thread(s);
        if (ret_network)
                *ret_network = network;
        *ret = s;
        return 0;
}

int store_open(const char *address, struct store **ret, bool *ret_network, struct err *err)
{
        return store_open_at(address, &(struct store_place){0}, ret, ret_network, err);
}

void store_close(struct store *s)
{
        if (!s)
                return;
        assert(s->magic == STORE_MAGIC);
        pthread_mutex_lock(&s->lock);
        s->closing = true;
        sem_post(&s->work);
        pthread_mutex_unlock(&s->lock);
        if (!s->follows)
                pthread_join(s->thread, NULL);
        while (s->refused_first)
                refused_remove(s, s->refused_first); /* they stay with their owner */
        s->be->ops->close(s->be);
        pthread_cond_destroy(&s->task_done);
        sem_destroy(&s->work);
        pthread_mutex_destroy(&s->lock);
        s->magic = 0;
        free(s);
}

void store_append(struct store *s, uint64_t term, struct store_batch *b, store_done_fn *done, void *arg)
{
        bool wake;

        assert(s->magic == STORE_MAGIC && !s->follows);
        assert(!b->refused_by || b->refused_by == s);
        b->term = term;
        b->done = done;
        b->arg = arg;
        b->next = NULL;
        pthread_mutex_lock(&s->lock);
        b->refused = s->refused_first && s->refused_first != b;
        if (b->refused && !b->refused_by)
                refused_insert(s, b, s->refused_last);
        else if (!b->refused && b->refused_by)
                refused_remove(s, b);
        *s->last = b;
        s->last = &b->next;
        s->queued++;
        wake = s->queued == s->wake_at;
        pthread_mutex_unlock(&s->lock);
        if (wake) /* after the lock is released; the thread would wake only to wait for it */
                sem_post(&s->work);
}

static int run_task(struct store *s, struct task *t)
{
        struct task **at;

        assert(s->magic == STORE_MAGIC && !s->follows);
        pthread_mutex_lock(&s->lock);
        for (at = &s->tasks; *at; at = &(*at)->next)
                ;
        *at = t;
        sem_post(&s->work);
        while (!t->done)
                pthread_cond_wait(&s->task_done, &s->lock);
        pthread_mutex_unlock(&s->lock);
        return t->result;
}

static bool term_slice(struct store *s, struct task *t)
{
        t->result = s->be->ops->term_take(s->be, &t->term, t->err);
        return true;
}

int store_term_take(struct store *s, uint64_t *ret_term, struct err *err)
{
        struct task t = {.slice = term_slice, .err = err};
        int r = run_task(s, &t);

        if (r == 0)
                *ret_term = t.term;
        return r;
}

static bool store_snapshot_slice(struct store *s, struct task *t)
{
        struct err err = {0};

        t->result = s->be->ops->snapshot_slice(s->be, &t->snapshot, &err);
        if (t->result == 0)
                return t->snapshot.done;
        err_set(t->err, 0, "%s", err.text);
        if (t->result < 0 || t->result == STORE_CORRUPT)
                fail_store(s, t->result, &err);
        else if (t->snapshot.durable)
                t->result = 0; /* cleanup that failed is repeated with the next snapshot */
        return true;
}

int store_snapshot_put(struct store *s, uint64_t term, uint64_t seq, struct str data, uint64_t cut_to,
                       struct err *err)
{
        struct task t = {
                .slice = store_snapshot_slice,
                .err = err,
                .snapshot = {.term = term, .seq = seq, .cut_to = cut_to, .data = data},
        };

        if (cut_to > seq || seq > store_last_seq(s))
                return err_set(err, -EINVAL, "a snapshot of record %llu, cut to %llu, when the last is %llu",
                               (unsigned long long)seq, (unsigned long long)cut_to,
                               (unsigned long long)store_last_seq(s));
        return run_task(s, &t);
}

static bool release_slice(struct store *s, struct task *t)
{
        t->result = s->be->ops->reserve_release(s->be);
        return true;
}

static bool take_slice(struct store *s, struct task *t)
{
        t->result = s->be->ops->reserve_take(s->be);
        return true;
}

int store_reserve_release(struct store *s)
{
        return run_task(s, &(struct task){.slice = release_slice});
}

int store_reserve_take(struct store *s)
{
        return run_task(s, &(struct task){.slice = take_slice});
}

bool store_lost(const struct store *s)
{
        return s->lost;
}

uint64_t store_last_seq(struct store *s)
{
        uint64_t seq;

        pthread_mutex_lock(&s->lock);
        seq = s->last_seq;
        pthread_mutex_unlock(&s->lock);
        return seq;
}

int store_scan(struct store *s, uint64_t from, store_scan_fn *fn, void *arg, struct err *err)
{
        return s->be->ops->scan(s->be, from, fn, arg, err);
}

int store_snapshot_get(struct store *s, uint64_t *ret_seq, struct buf *ret_data, struct err *err)
{
        return s->be->ops->snapshot_get(s->be, ret_seq, ret_data, err);
}

int store_blob_get(struct store *s, struct str name, struct buf *ret_data, struct err *err)
{
        return s->be->ops->blob_get(s->be, name, ret_data, err);
}

void store_blobs_begin(struct store *s)
{
        if (s->be->ops->blobs_begin)
                s->be->ops->blobs_begin(s->be);
}

void store_blobs_end(struct store *s)
{
        if (s->be->ops->blobs_end)
                s->be->ops->blobs_end(s->be);
}

int store_blob_list_from(struct store *s, struct str prefix, struct str from, store_name_fn *fn, void *arg,
                         struct err *err)
{
        return s->be->ops->blob_list(s->be, prefix, str_cmp(from, prefix) > 0 ? from : prefix, fn, arg, err);
}

int store_blob_list(struct store *s, struct str prefix, store_name_fn *fn, void *arg, struct err *err)
{
        return s->be->ops->blob_list(s->be, prefix, prefix, fn, arg, err);
}

int store_history_query(struct store *s, const struct store_query *q, store_history_fn *fn, void *arg,
                        struct err *err)
{
        return s->be->ops->history(s->be, q, fn, arg, err);
}
