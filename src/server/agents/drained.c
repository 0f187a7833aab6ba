#include "server/agents/drained.h"

#include "base/log.h"
#include "base/pack.h"
#include "server/loop/turn.h"

#define BYTES_MAX (64u << 20)
#define NAME      STR("server/drained")

void drained_restore(struct server *s)
{
        BUF_CLEANUP struct buf data = {.max = BYTES_MAX};
        struct err err = {""};
        int r = store_blob_get(s->store, NAME, &data, &err);
        struct unpack u = unpack_from(buf_view(&data));

        while (r == 0 && !u.bad && u.p < u.end) {
                struct str agent = unpack_str(&u), why = unpack_str(&u);
                MEM_CLEANUP char *name = str_dupz(agent), *text = str_dupz(why);

                if (!u.bad)
                        core_agent_drain(s->core, name, text);
        }
        if (u.bad || (r != 0 && r != STORE_NOT_FOUND))
                log_warn("msg=\"which agents are drained is not known any more\" why=\"%s\"",
                         u.bad ? "the list is damaged" : LOG_TEXT(str_of(err.text)));
}

static void pack_one(void *arg, const char *agent, const char *why)
{
        pack_str(arg, str_of(agent));
        pack_str(arg, str_of(why));
}

void drained_set(struct server *s, const char *agent, const char *why)
{
        BUF_CLEANUP struct buf data = {0};

        core_agent_drain(s->core, agent, why);
        core_agents_drained(s->core, pack_one, &data);
        store_batch_blob_put(turn_batch(s->turn), NAME, buf_view(&data));
}
