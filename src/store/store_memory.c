/* The store of the simulator and of tests: arrays under a lock. Nothing survives closing it.
 *
 * The address "memory:<bytes>" limits its size, for tests of a full disk: an append beyond it is
 * STORE_FULL, and a quarter of the limit is the reserve.
 *
 * Readers hold the lock shared during callbacks, so a callback may read but not write. */
#include "store/backend.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>

struct bytes {
        char *p;
        size_t n;
};

struct blob {
        struct bytes name, data;
};

struct memory {
        struct store_backend be;
        pthread_rwlock_t lock;
        uint64_t term;
        uint64_t cut; /* records up to this one are deleted; log[0] is cut + 1 */
        struct bytes *log;
        size_t log_count, log_cap;
        struct bytes *history;                          /* packed; the row id is the index + 1 */
        size_t history_count, history_cap, history_cut; /* history_cut: number of deleted rows */
        struct blob *blobs;                             /* sorted by name */
        size_t blob_count, blob_cap;
        bool has_snapshot;
        uint64_t snapshot_seq;
        struct bytes snapshot;
        uint64_t limit, used; /* in bytes; limit 0: none */
        bool reserve;
};

static struct bytes bytes_dup(struct str s)
{
        return (struct bytes){mem_dup(s.p, s.n), s.n};
}

static struct str bytes_view(const struct bytes *b)
{
        return str_make(b->p, b->n);
}

static bool memory_fits(const struct memory *m, uint64_t more)
{
        uint64_t limit = m->reserve ? m->limit - m->limit / 4 : m->limit;

        return m->limit == 0 || m->used + more <= limit;
}

static int memory_open(const char *path, const struct store_place *place, struct store_backend **ret,
                       uint64_t *ret_last_seq, bool *ret_network, struct err *err)
{
        struct memory *m;
        uint64_t limit = 0;

        (void)place;
        if (*path && str_to_u64(str_of(path), &limit))
                return err_set(err, -EINVAL, "memory:%s: the limit must be a number of bytes", path);
        m = mem_new(struct memory);
        m->be.ops = &store_memory;
        m->limit = limit;
        m->reserve = limit > 0;
        pthread_rwlock_init(&m->lock, NULL);
        *ret = &m->be;
        *ret_last_seq = 0;
        *ret_network = false;
        return 0;
}

static void memory_close(struct store_backend *be)
{
        struct memory *m = (struct memory *)be;

        for (size_t i = 0; i < m->log_count; i++)
                free(m->log[i].p);
        for (size_t i = 0; i < m->history_count; i++)
                free(m->history[i].p);
        for (size_t i = 0; i < m->blob_count; i++) {
                free(m->blobs[i].name.p);
                free(m->blobs[i].data.p);
        }
        free(m->log);
        free(m->history);
        free(m->blobs);
        free(m->snapshot.p);
        pthread_rwlock_destroy(&m->lock);
        free(m);
}

static int memory_term_take(struct store_backend *be, uint64_t *ret_term, struct err *err)
{
        struct memory *m = (struct memory *)be;

        (void)err;
        *ret_term = ++m->term; /* only used by the store's thread */
        return 0;
}

/* Returns the index of the first blob whose name is not before `name`. */
static size_t blob_place(const struct memory *m, struct str name, bool *ret_there)
{
        size_t low = 0, high = m->blob_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (str_cmp(bytes_view(&m->blobs[mid].name), name) < 0)
                        low = mid + 1;
                else
                        high = mid;
        }
        *ret_there = low < m->blob_count && str_eq(bytes_view(&m->blobs[low].name), name);
        return low;
}

static void blob_delete(struct memory *m, struct str name)
{
        bool there;
        size_t at = blob_place(m, name, &there);

        if (!there)
                return;
        m->used -= m->blobs[at].name.n + m->blobs[at].data.n;
        free(m->blobs[at].name.p);
        free(m->blobs[at].data.p);
        m->blob_count--;
        memmove(m->blobs + at, m->blobs + at + 1, (m->blob_count - at) * sizeof(*m->blobs));
}

static void blob_put(struct memory *m, struct str name, struct str data)
{
        bool there;
        size_t at;

        blob_delete(m, name);
        at = blob_place(m, name, &there);
        MEM_GROW(m->blobs, m->blob_cap, m->blob_count + 1);
        memmove(m->blobs + at + 1, m->blobs + at, (m->blob_count - at) * sizeof(*m->blobs));
        m->blobs[at] = (struct blob){bytes_dup(name), bytes_dup(data)};
        m->blob_count++;
        m->used += name.n + data.n;
}

static void batch_apply(struct memory *m, const struct store_batch *b)
{
        struct unpack u = store_batch_ops(b);
        struct store_op op;

        while (store_batch_next(&u, &op)) {
                struct buf row = {0};

                switch (op.kind) {
                case STORE_OP_EVENT:
                        MEM_GROW(m->log, m->log_cap, m->log_count + 1);
                        m->log[m->log_count++] = bytes_dup(op.data);
                        m->used += op.data.n;
                        break;
                case STORE_OP_HISTORY:
                        store_history_pack(&row, &op.history);
                        MEM_GROW(m->history, m->history_cap, m->history_count + 1);
                        m->used += row.n;
                        m->history[m->history_count].n = row.n;
                        m->history[m->history_count++].p = buf_take(&row);
                        break;
                case STORE_OP_BLOB_PUT: blob_put(m, op.name, op.data); break;
                case STORE_OP_BLOB_DELETE: blob_delete(m, op.name); break;
                case STORE_OP_HISTORY_CUT:
                        for (; m->history_cut < op.row && m->history_cut < m->history_count;
                             m->history_cut++) {
                                struct bytes *old = &m->history[m->history_cut];

                                m->used -= old->n;
                                free(old->p);
                                *old = (struct bytes){0};
                        }
                        break;
                }
        }
}

static int memory_commit(struct store_backend *be, struct store_batch *first, uint64_t *last_seq,
                         struct err *err)
{
        struct memory *m = (struct memory *)be;
        uint64_t bytes = 0;

        for (struct store_batch *b = first; b; b = b->next)
                if (b->term == m->term)
                        bytes += b->ops.n;
        if (!memory_fits(m, bytes))
                return err_set(err, STORE_FULL, "the store's memory is full");
        pthread_rwlock_wrlock(&m->lock);
        for (struct store_batch *b = first; b; b = b->next) {
                b->result = b->term == m->term ? STORE_DURABLE : STORE_STALE_TERM;
                if (b->result == STORE_DURABLE)
                        batch_apply(m, b);
                b->last_seq = *last_seq = m->cut + m->log_count;
        }
        pthread_rwlock_unlock(&m->lock);
        return 0;
}

static int memory_snapshot_slice(struct store_backend *be, struct store_snapshot *sn, struct err *err)
{
        struct memory *m = (struct memory *)be;
        size_t cut = 0;

        if (sn->term != m->term)
                return err_set(err, STORE_STALE_TERM, "another server holds a newer term");
        if (!memory_fits(m, sn->data.n))
                return err_set(err, STORE_FULL, "the store's memory is full");
        pthread_rwlock_wrlock(&m->lock);
        m->used += sn->data.n;
        m->used -= m->snapshot.n;
        free(m->snapshot.p);
        m->snapshot = bytes_dup(sn->data);
        m->snapshot_seq = sn->seq;
        m->has_snapshot = true;
        while (cut < m->log_count && m->cut + cut < sn->cut_to) {
                m->used -= m->log[cut].n;
                free(m->log[cut++].p);
        }
        m->cut += cut;
        m->log_count -= cut;
        if (cut)
                memmove(m->log, m->log + cut, m->log_count * sizeof(*m->log));
        pthread_rwlock_unlock(&m->lock);
        sn->durable = sn->done = true;
        return 0;
}

static int memory_reserve_release(struct store_backend *be)
{
        ((struct memory *)be)->reserve = false;
        return 0;
}

static int memory_reserve_take(struct store_backend *be)
{
        struct memory *m = (struct memory *)be;

        if (m->limit == 0 || m->reserve)
                return 0;
        if (!memory_fits(m, m->limit / 4))
                return STORE_FULL;
        m->reserve = true;
        return 0;
}

/* ---- reading */

static int memory_scan(struct store_backend *be, uint64_t from, store_scan_fn *fn, void *arg, struct err *err)
{
        struct memory *m = (struct memory *)be;
        int r = 0;

        pthread_rwlock_rdlock(&m->lock);
        for (size_t i = from > m->cut ? from - m->cut - 1 : 0; i < m->log_count && r == 0; i++)
                r = fn(arg, m->cut + 1 + i, bytes_view(&m->log[i]), err);
        pthread_rwlock_unlock(&m->lock);
        return r;
}

static int memory_snapshot_get(struct store_backend *be, uint64_t *ret_seq, struct buf *ret_data,
                               struct err *err)
{
        struct memory *m = (struct memory *)be;
        int r = 0;

        pthread_rwlock_rdlock(&m->lock);
        if (m->has_snapshot) {
                *ret_seq = m->snapshot_seq;
                buf_reset(ret_data);
                buf_str(ret_data, bytes_view(&m->snapshot));
        } else {
                r = err_set(err, STORE_NOT_FOUND, "there is no snapshot");
        }
        pthread_rwlock_unlock(&m->lock);
        return r;
}

static int memory_blob_get(struct store_backend *be, struct str name, struct buf *ret_data, struct err *err)
{
        struct memory *m = (struct memory *)be;
        bool there;
        size_t at;
        int r = 0;

        pthread_rwlock_rdlock(&m->lock);
        at = blob_place(m, name, &there);
        if (there) {
                buf_reset(ret_data);
                buf_str(ret_data, bytes_view(&m->blobs[at].data));
        } else {
                r = err_set(err, STORE_NOT_FOUND, "there is no \"" STR_FMT "\"", STR_ARG(name));
        }
        pthread_rwlock_unlock(&m->lock);
        return r;
}

static int memory_blob_list(struct store_backend *be, struct str prefix, struct str from, store_name_fn *fn,
                            void *arg, struct err *err)
{
        struct memory *m = (struct memory *)be;
        bool there;
        int r = 0;

        (void)err;
        pthread_rwlock_rdlock(&m->lock);
        for (size_t i = blob_place(m, from, &there); i < m->blob_count && r == 0; i++) {
                struct str name = bytes_view(&m->blobs[i].name);

                if (!str_starts(name, prefix))
                        break;
                r = fn(arg, name);
        }
        pthread_rwlock_unlock(&m->lock);
        return r;
}

static bool wanted(const struct store_query *q, const struct past_job *h)
{
        uint32_t end = q->member_end ? q->member_end : q->member + 1;

        return (!q->request || h->request == q->request) &&
               (!q->has_member || (h->member >= q->member && h->member < end)) &&
               (!q->owner.n || str_eq(h->owner, q->owner));
}

static int memory_history(struct store_backend *be, const struct store_query *q, store_history_fn *fn,
                          void *arg, struct err *err)
{
        struct memory *m = (struct memory *)be;
        uint32_t left = q->limit ? q->limit : UINT32_MAX;
        uint64_t end;
        int r = 0;

        (void)err;
        pthread_rwlock_rdlock(&m->lock);
        end = q->before && q->before <= m->history_count ? q->before - 1 : m->history_count;
        if (end < m->history_cut)
                end = m->history_cut;
        for (uint64_t n = end - m->history_cut, i = 0; i < n && left > 0 && r == 0; i++) {
                uint64_t row = q->oldest ? m->history_cut + i + 1 : end - i;
                struct unpack u = unpack_from(bytes_view(&m->history[row - 1]));
                struct past_job h;

                store_history_unpack(&u, &h);
                assert(unpack_done(&u));
                if (wanted(q, &h)) {
                        left--;
                        r = fn(arg, row, &h);
                }
        }
        pthread_rwlock_unlock(&m->lock);
        return r;
}

const struct store_backend_ops store_memory = {
        .open = memory_open,
        .close = memory_close,
        .term_take = memory_term_take,
        .commit = memory_commit,
        .snapshot_slice = memory_snapshot_slice,
        .reserve_release = memory_reserve_release,
        .reserve_take = memory_reserve_take,
        .scan = memory_scan,
        .snapshot_get = memory_snapshot_get,
        .blob_get = memory_blob_get,
        .blob_list = memory_blob_list,
        .history = memory_history,
};
