#include "agent/message/job_group.h"

#include <errno.h>

#include "agent/message/wire.h"
#include "wire/unpack.h"

bool job_group_is_sorted(const struct job_group *g)
{
        for (size_t i = 1; i < g->item_count; i++)
                if (g->items[i - 1].member >= g->items[i].member)
                        return false;
        return true;
}

const struct job_item *job_group_item(const struct job_group *g, uint32_t member)
{
        size_t low = 0, high = g->item_count;

        while (low < high) {
                size_t mid = (low + high) / 2;

                if (g->items[mid].member == member)
                        return &g->items[mid];
                if (g->items[mid].member < member)
                        low = mid + 1;
                else
                        high = mid;
        }
        return NULL;
}

/* ---- from the message */

static void take_item(const Drover__Item *m, struct arena *room, struct job_item *ret)
{
        *ret = (struct job_item){.member = m->member,
                                 .row = m->row,
                                 .step = m->step,
                                 .values = m->values,
                                 .value_count = m->n_values,
                                 .checkpoint_count = m->n_checkpoint};
        if (m->n_checkpoint)
                ret->checkpoint = arena_alloc(room, m->n_checkpoint * sizeof(*ret->checkpoint));
        for (size_t i = 0; i < m->n_checkpoint; i++) {
                const Drover__SpoolRef *f = m->checkpoint[i];

                ret->checkpoint[i] = (struct spool_ref){f->name, f->sha256.len == 32 ? f->sha256.data : NULL,
                                                        f->size, f->executable};
        }
}

void wire_job_group(const Drover__Group *m, struct arena *room, struct job_group *ret)
{
        *ret = (struct job_group){.request = m->request,
                                  .part = m->part,
                                  .fence = m->fence,
                                  .range_count = m->n_members,
                                  .item_count = m->n_items,
                                  .lease_ms = m->lease_ms,
                                  .wait_for_go = m->wait_for_go,
                                  .gang = m->gang,
                                  .gang_size = m->gang_size,
                                  .gang_machines = m->gang_machines,
                                  .filled_count = m->n_filled};
        ret->ranges = arena_alloc(room, (m->n_members + 1) * sizeof(*ret->ranges));
        for (size_t i = 0; i < m->n_members; i++)
                ret->ranges[i] = (struct member_range){m->members[i]->first, m->members[i]->count};
        ret->items = arena_alloc(room, (m->n_items + 1) * sizeof(*ret->items));
        for (size_t i = 0; i < m->n_items; i++)
                take_item(m->items[i], room, &ret->items[i]);
        ret->filled = arena_alloc(room, (2 * m->n_filled + 1) * sizeof(*ret->filled));
        for (size_t i = 0; i < m->n_filled; i++) {
                ret->filled[2 * i] = m->filled[i]->inside;
                ret->filled[2 * i + 1] = m->filled[i]->value;
        }
}

int job_group_unpack(const void *p, size_t n, struct arena *room, struct job_group *ret)
{
        const ProtobufCMessage *m = unpack_message(room, &drover__group__descriptor, str_make(p, n));

        if (!m)
                return -EINVAL;
        room->max = 0;
        wire_job_group((const Drover__Group *)m, room, ret);
        return 0;
}

/* ---- the packed form */

static Drover__Item *make_item(const struct job_item *from, struct arena *room)
{
        Drover__Item *m = arena_alloc(room, sizeof(*m));

        drover__item__init(m);
        m->member = from->member;
        m->row = from->row;
        m->step = from->step;
        m->values = from->values;
        m->n_values = from->value_count;
        m->n_checkpoint = from->checkpoint_count;
        m->checkpoint = arena_alloc(room, (from->checkpoint_count + 1) * sizeof(*m->checkpoint));
        for (size_t i = 0; i < from->checkpoint_count; i++) {
                const struct spool_ref *f = &from->checkpoint[i];
                Drover__SpoolRef *to = m->checkpoint[i] = arena_alloc(room, sizeof(*to));

                drover__spool_ref__init(to);
                to->name = f->name;
                if (f->sha256)
                        to->sha256 = (ProtobufCBinaryData){32, f->sha256};
                to->size = f->size;
                to->executable = f->executable;
        }
        return m;
}

static void make_ranges(Drover__Group *m, const struct job_group *g, struct arena *room)
{
        m->n_members = g->range_count;
        m->members = arena_alloc(room, (g->range_count + 1) * sizeof(*m->members));
        for (size_t i = 0; i < g->range_count; i++) {
                Drover__Range *to = m->members[i] = arena_alloc(room, sizeof(*to));

                drover__range__init(to);
                to->first = g->ranges[i].first;
                to->count = g->ranges[i].count;
        }
}

static void make_filled(Drover__Group *m, const struct job_group *g, struct arena *room)
{
        m->n_filled = g->filled_count;
        m->filled = arena_alloc(room, (g->filled_count + 1) * sizeof(*m->filled));
        for (size_t i = 0; i < g->filled_count; i++) {
                Drover__Filled *to = m->filled[i] = arena_alloc(room, sizeof(*to));

                drover__filled__init(to);
                to->inside = g->filled[2 * i];
                to->value = g->filled[2 * i + 1];
        }
}

void job_group_pack(const struct job_group *g, struct buf *out)
{
        struct arena room = {0};
        Drover__Group m = DROVER__GROUP__INIT;

        m.request = g->request;
        m.part = g->part;
        m.fence = g->fence;
        m.lease_ms = g->lease_ms;
        m.wait_for_go = g->wait_for_go;
        m.gang = g->gang;
        m.gang_size = g->gang_size;
        if (g->gang_machines)
                m.gang_machines = g->gang_machines;
        make_ranges(&m, g, &room);
        m.n_items = g->item_count;
        m.items = arena_alloc(&room, (g->item_count + 1) * sizeof(*m.items));
        for (size_t i = 0; i < g->item_count; i++)
                m.items[i] = make_item(&g->items[i], &room);
        make_filled(&m, g, &room);
        size_t n = drover__group__get_packed_size(&m);
        drover__group__pack(&m, buf_room(out, n));
        out->n += n;
        arena_deinit(&room);
}
