/* GET /healthz, /readyz: for probes, which have no token. Nothing but a word is told. */
#include "server/api/routes.h"

static void health_answer(struct call *c, int status, const char *word)
{
        c->status = status;
        c->content_type = "text/plain";
        buf_addz(&c->out, word);
        call_reply(c);
}

/* The thread of the API lives. */
void api_health(struct server *s, struct call *c)
{
        (void)s;
        health_answer(c, 200, "ok\n");
}

/* The thread of the core lives, too, and takes work. */
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
