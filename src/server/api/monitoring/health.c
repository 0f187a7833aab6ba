/* GET /healthz, /readyz: for probes, which have no token. The reply is one word. */
#include "server/api/routes.h"

static void health_answer(struct call *c, int status, const char *word)
{
        c->status = status;
        c->content_type = "text/plain";
        buf_addz(&c->out, word);
        call_reply(c);
}

/* Replying shows that the I/O thread runs. */
void api_health(struct server *s, struct call *c)
{
        (void)s;
        health_answer(c, 200, "ok\n");
}

/* Replying shows that the core thread runs too, and accepts work. */
static void read_health(struct server *s, struct call *c)
{
        if (turn_full(s->turn))
                health_answer(c, 503, "the disk is full\n");
        else
                health_answer(c, 200, "ready\n");
}

void api_ready(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, read_health);
}
