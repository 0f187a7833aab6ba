#include "core/learned.h"

#include <math.h>

#include "base/pack.h"
#include "core/estimate/estimate.h"
#include "core/forecast/eta.h"
#include "core/model/core_parts.h"
#include "core/query.h"

#define LEARNED_VERSION 2
#define PLACES_MAX      5000u

static void pack_places(struct core *c, struct buf *out)
{
        uint64_t left = PLACES_MAX;
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (const struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        if (q->pace.count > 0 && left > 0) {
                                pack_u64(out, 1);
                                pack_str(out, str_of(q->agent->name));
                                pack_str(out, str_of(q->name));
                                pack_u64(out, q->pace.count);
                                pack_double(out, q->pace.mean);
                                pack_double(out, q->pace.variance);
                                left--;
                        }
        pack_u64(out, 0);
}

static struct queue *find_queue(struct core *c, struct str agent, struct str name)
{
        const struct core_agent *a = map_get(c->agents, agent);
        struct queue *q = a ? a->queues : NULL;

        while (q && !str_eqz(name, q->name))
                q = q->next;
        return q;
}

static void unpack_places(struct core *c, struct unpack *in)
{
        while (unpack_max(in, 1) && !in->bad) {
                struct str agent = unpack_str(in), name = unpack_str(in);
                struct estimate_pace pace = {.count = (uint32_t)unpack_max(in, UINT32_MAX)};
                struct queue *q;

                pace.mean = unpack_double(in);
                pace.variance = unpack_double(in);
                in->bad |= !isfinite(pace.mean) || pace.mean < 0 || !isfinite(pace.variance) ||
                           pace.variance < 0;
                q = in->bad ? NULL : find_queue(c, agent, name);
                if (q && q->pace.count < pace.count)
                        q->pace = pace;
        }
}

uint64_t core_learned_count(struct core *c)
{
        struct core_eta_error e;

        core_eta_error(c, &e);
        return c->estimates->everybody.count + e.count;
}

void core_learned_pack(struct core *c, struct buf *out)
{
        size_t from = out->n;
        uint32_t sum;

        pack_u64(out, LEARNED_VERSION);
        estimates_pack(c, out);
        pack_places(c, out);
        eta_pack(c, out);
        sum = pack_crc32c(0, out->p + from, out->n - from);
        for (int i = 0; i < 4; i++)
                buf_char(out, (char)(sum >> 8 * i));
}

int core_learned_unpack(struct core *c, struct str data, struct err *err)
{
        struct unpack in;
        uint32_t sum = 0;

        if (data.n < 5)
                return err_set(err, CORE_DAMAGED, "what was learned is cut off");
        data.n -= 4;
        for (int i = 0; i < 4; i++)
                sum |= (uint32_t)(unsigned char)data.p[data.n + (size_t)i] << 8 * i;
        if (pack_crc32c(0, data.p, data.n) != sum)
                return err_set(err, CORE_DAMAGED, "what was learned is damaged");
        in = unpack_from(data);
        if (unpack_u64(&in) != LEARNED_VERSION)
                return err_set(err, CORE_DAMAGED, "what was learned has a version that is not known here");
        estimates_unpack(c, &in);
        unpack_places(c, &in);
        eta_unpack(c, &in);
        return unpack_done(&in) ? 0 : err_set(err, CORE_DAMAGED, "what was learned is damaged");
}
