/* GET /v1/server, GET /v1/openapi.json */
#include "base/system/clock.h"
#include "core/query.h"
#include "server/api/counts.h"
#include "server/api/routes.h"
#include "server/calls/openapi.h"

static void read_server(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        struct core_counts n;
        struct core_moved moved;
        bool full = turn_full(s->turn);

        core_bytes_moved(s->core, &moved);
        core_totals(s->core, &n);
        json_open(&j, '{');
        json_kstrz(&j, "version", DROVER_VERSION);
        json_kstrz(&j, "uuid", s->uuid);
        json_kstrz(&j, "domain", s->config.domain);
        json_kint(&j, "now_ms", clock_wall_ms());
        json_kint(&j, "seq", (int64_t)atomic_load(&s->durable_seq));
        json_kbool(&j, "remote_agents", s->remote_agents);
        json_kstrz(&j, "you", c->who);
        json_kbool(&j, "admin", c->role == ROLE_ADMIN);
        json_key(&j, "moved");
        json_open(&j, '{');
        json_kint(&j, "bytes_in", (int64_t)moved.bytes_in);
        json_kint(&j, "bytes_out", (int64_t)moved.bytes_out);
        json_close(&j, '}');
        json_kbool(&j, "accepting", !full);
        json_kstrz(&j, "reason", full ? "the disk is full" : NULL);
        json_key(&j, "jobs");
        json_open(&j, '{');
        counts_write(&j, &n);
        json_close(&j, '}');
        json_close(&j, '}');
        call_reply(c);
}

void api_server(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, read_server);
}

void api_openapi(struct server *s, struct call *c)
{
        (void)s;
        buf_add(&c->out, openapi_text, openapi_size);
        call_reply(c);
}
