/* POST /v1/agents/NAME/revoke */
#include "base/system/log.h"
#include "server/access/access.h"
#include "server/agents/agents.h"
#include "server/api/routes.h"

static void reply_revoked(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void revoke(struct server *s, struct call *c)
{
        struct str name = c->param[0];
        struct json j = {.out = &c->out};
        struct access_revoked done;
        bool connected;

        if (turn_full(s->turn)) { /* the revocation could not be stored, and would be lost with a restart */
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        done = access_revoke(s, name);
        connected = agents_expel(s, name, "its certificate was revoked: it must join again");
        if (done.certificates == 0 && done.tokens == 0 && !access_is_revoked(s->access, name)) {
                call_fail(c, 404, "not_found",
                          "there is no agent " STR_FMT " that has joined, and no token for it",
                          STR_ARG(name));
                return;
        }
        log_info("msg=\"an agent was revoked\" name=\"%s\" by=\"%s\" certificates=%zu tokens=%zu",
                 LOG_TEXT(name), LOG_TEXT(str_of(c->who)), done.certificates, done.tokens);
        json_open(&j, '{');
        json_kstr(&j, "name", name);
        json_kint(&j, "certificates", (int64_t)done.certificates);
        json_kint(&j, "tokens", (int64_t)done.tokens);
        json_kbool(&j, "was_connected", connected);
        json_close(&j, '}');
        c->when = TURN_DURABLE;
        call_io(c, reply_revoked);
}

void api_agent_revoke(struct server *s, struct call *c)
{
        (void)s;
        if (c->role != ROLE_ADMIN)
                call_fail(c, 403, "forbidden", "only an admin revokes agents");
        else
                call_core(c, revoke);
}
