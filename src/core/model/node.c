#include "core/model/node.h"

#include <errno.h>
#include <stdlib.h>

#include "base/pack.h"

static const char *const names[NODE_STATES] = {
        [NODE_UP] = "up",           [NODE_BOOTING] = "booting", [NODE_DRAINING] = "draining",
        [NODE_DRAINED] = "drained", [NODE_FAILED] = "failed",   [NODE_DOWN] = "down",
        [NODE_RETIRED] = "retired",
};

#define ENDS   (SM_TO(NODE_DOWN) | SM_TO(NODE_RETIRED))
#define DRAINS (SM_TO(NODE_DRAINING) | SM_TO(NODE_DRAINED))

/* A move to the present state records a new orderer, reason and deadline. */
static const uint32_t moves[NODE_STATES] = {
        [NODE_UP] = SM_TO(NODE_UP) | SM_TO(NODE_BOOTING) | SM_TO(NODE_DRAINING) | SM_TO(NODE_FAILED) | ENDS,
        [NODE_BOOTING] = SM_TO(NODE_BOOTING) | SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | DRAINS | ENDS,
        [NODE_DRAINING] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | DRAINS | ENDS,
        [NODE_DRAINED] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | SM_TO(NODE_BOOTING) | DRAINS | ENDS,
        [NODE_FAILED] = SM_TO(NODE_UP) | SM_TO(NODE_FAILED) | SM_TO(NODE_BOOTING) | DRAINS | ENDS,
        [NODE_DOWN] = SM_TO(NODE_UP) | SM_TO(NODE_BOOTING) | SM_TO(NODE_DRAINING) | ENDS,
        [NODE_RETIRED] = SM_TO(NODE_UP) | SM_TO(NODE_BOOTING) | SM_TO(NODE_RETIRED),
};

const struct sm node_states = {"node", names, moves, NODE_STATES};

void node_deinit(struct node_record *n)
{
        free(n->by);
        free(n->reason);
        free(n->facts);
        free(n->instance);
}

void node_instance_pack(struct buf *to, const struct node_instance *i)
{
        pack_str(to, i->provisioner);
        pack_str(to, i->shape);
        pack_str(to, i->launch);
        pack_str(to, i->account);
        pack_str(to, i->id);
        pack_i64(to, i->price_micro);
        pack_i64(to, i->paid_until_ms);
        pack_i64(to, i->cost_micro);
}

int node_instance_unpack(struct str record, struct node_instance *ret)
{
        struct unpack u = unpack_from(record);

        ret->provisioner = unpack_str(&u);
        ret->shape = unpack_str(&u);
        ret->launch = unpack_str(&u);
        ret->account = unpack_str(&u);
        ret->id = unpack_str(&u);
        ret->price_micro = unpack_i64(&u);
        ret->paid_until_ms = unpack_i64(&u);
        ret->cost_micro = unpack_i64(&u);
        return unpack_done(&u) && ret->cost_micro >= 0 && ret->price_micro >= 0 ? 0 : -EBADMSG;
}

bool node_instance_of(const struct node_record *n, struct node_instance *ret)
{
        return n->instance && node_instance_unpack(str_make(n->instance, n->instance_n), ret) == 0;
}

/* Months of the proleptic Gregorian calendar in UTC; days are counted from the first of March of the year
 * 0. */
static int64_t month_of(int64_t at_ms)
{
        int64_t days = at_ms / 86400000 + 719468, era = days / 146097, day = days % 146097;
        int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
        int64_t month = (5 * (day - (365 * year + year / 4 - year / 100)) + 2) / 153;

        return (era * 400 + year) * 12 + month;
}

void node_spending_add(struct node_spending *s, int64_t micro, int64_t at_ms)
{
        int64_t month = month_of(at_ms);

        if (month > s->month) /* a clock that was set back does not begin a new month */
                *s = (struct node_spending){.month = month};
        s->micro += micro < INT64_MAX - s->micro ? micro : INT64_MAX - s->micro;
}

int64_t node_spending_of(const struct node_spending *s, int64_t at_ms)
{
        return month_of(at_ms) > s->month ? 0 : s->micro;
}
