#include "server/agents/node_orders.h"

#include "base/pack.h"
#include "base/system/log.h"
#include "server/loop/turn.h"

#define BYTES_MAX (64u << 20)
#define NAME      STR("server/drained")

/* "drained by ann@lab: new kernel" */
static void drain(struct server *s, struct str agent, struct str why)
{
        MEM_CLEANUP char *name = str_dupz(agent);
        struct str by = str_starts(why, STR("drained by ")) ? str_skip(why, 11) : why;
        ptrdiff_t colon = str_search(by, STR(": "));
        struct core_node_order o = {.agent = name,
                                    .to = NODE_DRAINING,
                                    .by = colon < 0 ? by : str_head(by, (size_t)colon),
                                    .reason = colon < 0 ? STR_NONE : str_skip(by, (size_t)colon + 2)};
        struct err err = {""};

        if (!core_agent_known(s->core, name)) {
                o.to = NODE_BOOTING; /* the log has no record of the node */
                core_node_set(s->core, &o, NULL);
                o.to = NODE_DRAINING;
        }
        if (core_node_set(s->core, &o, &err) != 0)
                log_warn("msg=\"an agent is not drained any more\" name=\"%s\" why=\"%s\"", LOG_TEXT(agent),
                         err.text);
}

void node_orders_take_over(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        struct err err = {""};
        int r = store_blob_get(s->store, NAME, &data, &err);
        struct unpack u = unpack_from(buf_view(&data));

        if (r == STORE_NOT_FOUND)
                return;
        while (r == 0 && !u.bad && u.p < u.end) {
                struct str agent = unpack_str(&u), why = unpack_str(&u);

                if (!u.bad)
                        drain(s, agent, why);
        }
        if (u.bad || r != 0)
                log_warn("msg=\"which agents are drained is not known any more\" why=\"%s\"",
                         u.bad ? "the list is damaged" : LOG_TEXT(str_of(err.text)));
        store_batch_blob_delete(turn_batch(s->turn), NAME);
}
