/* A batch is one buffer of packed operations, each a kind and its fields, in the order in which they were
 * added. Back ends read it in place, so a record is copied once between the core and the database. */
#include "store/backend.h"

#include <assert.h>
#include <errno.h>

struct store_batch *store_batch_new(void)
{
        return mem_new(struct store_batch);
}

void store_batch_event(struct store_batch *b, struct str record)
{
        pack_u64(&b->ops, STORE_OP_EVENT);
        pack_str(&b->ops, record);
        b->events++;
}

void store_history_pack(struct buf *to, const struct past_job *h)
{
        pack_u64(to, h->request);
        pack_u64(to, h->member);
        pack_u64(to, h->state);
        pack_i64(to, h->submitted_ms);
        pack_i64(to, h->ended_ms);
        pack_i64(to, h->exit_code);
        pack_str(to, h->owner);
        pack_str(to, h->data);
}

void store_history_unpack(struct unpack *u, struct past_job *ret)
{
        ret->request = unpack_u64(u);
        ret->member = (uint32_t)unpack_max(u, UINT32_MAX);
        ret->state = (uint32_t)unpack_max(u, UINT32_MAX);
        ret->submitted_ms = unpack_i64(u);
        ret->ended_ms = unpack_i64(u);
        ret->exit_code = (int32_t)unpack_i64(u);
        ret->owner = unpack_str(u);
        ret->data = unpack_str(u);
}

void store_batch_history(struct store_batch *b, const struct past_job *h)
{
        pack_u64(&b->ops, STORE_OP_HISTORY);
        store_history_pack(&b->ops, h);
}

void store_batch_history_cut(struct store_batch *b, uint64_t row)
{
        pack_u64(&b->ops, STORE_OP_HISTORY_CUT);
        pack_u64(&b->ops, row);
}

void store_batch_blob_put(struct store_batch *b, struct str name, struct str data)
{
        pack_u64(&b->ops, STORE_OP_BLOB_PUT);
        pack_str(&b->ops, name);
        pack_str(&b->ops, data);
}

void store_batch_blob_delete(struct store_batch *b, struct str name)
{
        pack_u64(&b->ops, STORE_OP_BLOB_DELETE);
        pack_str(&b->ops, name);
}

bool store_batch_empty(const struct store_batch *b)
{
        return b->ops.n == 0;
}

size_t store_batch_bytes(const struct store_batch *b)
{
        return b->ops.n;
}

struct unpack store_batch_ops(const struct store_batch *b)
{
        return unpack_from(buf_view(&b->ops));
}

/* Sets u->bad when the operation is malformed. */
static void next_op(struct unpack *u, struct store_op *ret)
{
        *ret = (struct store_op){.kind = (enum store_op_kind)unpack_u64(u)};
        switch (ret->kind) {
        case STORE_OP_EVENT: ret->data = unpack_str(u); break;
        case STORE_OP_HISTORY: store_history_unpack(u, &ret->history); break;
        case STORE_OP_BLOB_PUT:
                ret->name = unpack_str(u);
                ret->data = unpack_str(u);
                break;
        case STORE_OP_BLOB_DELETE: ret->name = unpack_str(u); break;
        case STORE_OP_HISTORY_CUT: ret->row = unpack_u64(u); break;
        default: u->bad = true;
        }
}

bool store_batch_next(struct unpack *u, struct store_op *ret)
{
        if (u->p == u->end)
                return false;
        next_op(u, ret);
        assert(!u->bad);
        return true;
}

void store_batch_pack(const struct store_batch *b, struct buf *to)
{
        buf_str(to, buf_view(&b->ops));
}

int store_batch_read(struct str ops, struct store_batch **ret)
{
        struct unpack u = unpack_from(ops);
        struct store_batch *b;
        uint32_t events = 0;

        while (u.p != u.end && !u.bad) {
                struct store_op op;

                next_op(&u, &op);
                events += op.kind == STORE_OP_EVENT;
        }
        if (u.bad)
                return -EBADMSG;
        b = store_batch_new();
        buf_str(&b->ops, ops);
        b->events = events;
        *ret = b;
        return 0;
}

void store_ops_blobs(struct str ops, void (*fn)(void *arg, struct str name), void *arg)
{
        struct unpack u = unpack_from(ops);

        while (u.p != u.end) {
                struct store_op op;

                next_op(&u, &op);
                if (u.bad)
                        return;
                if (op.kind == STORE_OP_BLOB_PUT)
                        fn(arg, op.name);
        }
}

uint32_t store_record_crc(uint64_t seq, struct str record)
{
        unsigned char number[8];

        for (int i = 0; i < 8; i++)
                number[i] = (unsigned char)(seq >> (8 * i));
        return pack_crc32c(pack_crc32c(0, number, sizeof(number)), record.p, record.n);
}
