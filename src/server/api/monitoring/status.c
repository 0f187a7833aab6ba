/* GET /v1/server/status, POST /v1/server/promote and /drain: this server among those that stand in for each
 * other. A server of a mirror that does not lead answers the first two itself (mirror/serve.c). */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "server/api/routes.h"
#include "server/backends/backends.h"
#include "server/mirror/mirror.h"

static void reply_status(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void write_status(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        bool standby = config_postgres(&s->config) && s->config.standby_ms;

        c->when = TURN_NOW; /* also while nothing can be committed */
        json_open(&j, '{');
        json_kstrz(&j, "kind", s->mirror ? "mirror" : standby ? "standby" : "single");
        if (s->mirror)
                mirror_write(s->mirror, &j);
        else
                json_kstrz(&j, "role", "leader");
        if (standby)
                json_kint(&j, "standby_ms", s->config.standby_ms);
        if (s->backends) {
                json_key(&j, "backends");
                backends_write(s, &j);
        }
        json_close(&j, '}');
        call_io(c, reply_status);
}

void api_server_status(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, write_status);
}

static bool may(struct call *c)
{
        if (c->role == ROLE_ADMIN)
                return true;
        call_fail(c, 403, "forbidden", "only an admin may say which server leads");
        return false;
}

void api_server_promote(struct server *s, struct call *c)
{
        struct err err = {0};

        if (!may(c))
                return;
        if (!s->mirror)
                call_fail(c, 409, "conflict", "this server leads already");
        else if (mirror_promote(s->mirror, call_flag(c, "force"), &err) != 0)
                call_fail_err(c, 409, "conflict", &err);
        else
                api_server_status(s, c);
}

static void reply_drain(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
        kill(getpid(), SIGTERM);
}

static void begin_drain(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};

        s->drained = true;
        json_open(&j, '{');
        json_kbool(&j, "drained", true);
        json_close(&j, '}');
        call_io(c, reply_drain);
}

void api_server_drain(struct server *s, struct call *c)
{
        bool standby = config_postgres(&s->config) && s->config.standby_ms;

        if (!may(c))
                return;
        if (!s->mirror && !standby)
                call_fail(c, 409, "conflict", "no other server stands by for this one");
        else if (s->mirror && !mirror_is_joined(s->mirror))
                call_fail(c, 409, "conflict",
                          "the mirror, %s, has not all that this server has: it could not take over",
                          mirror_peer(s->mirror));
        else
                call_core(c, begin_drain);
}
