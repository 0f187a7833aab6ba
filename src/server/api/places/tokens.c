/* POST /v1/tokens, GET /v1/tokens, DELETE /v1/tokens/ID */
#include <stdio.h>

#include "auth/ca.h"
#include "base/system/clock.h"
#include "server/access/access.h"
#include "server/api/routes.h"

#define AGENT_S 3600
#define USER_S  (90 * 86400)
#define MAX_S   (10LL * 365 * 86400)

struct make {
        json_t *doc;
        struct token token;
        struct str name;
        int64_t expires_s;
};

static void tokens_state_free(void *arg)
{
        struct make *m = arg;

        json_decref(m->doc);
        free(m);
}

static void send_token(struct server *s, struct call *c)
{
        (void)s;
        call_reply(c);
}

static void make_token(struct server *s, struct call *c)
{
        struct make *m = c->state;
        struct json j = {.out = &c->out};
        BUF_CLEANUP struct buf text = {0};
        struct err err = {0};

        if (turn_full(s->turn)) {
                call_fail(c, 503, "disk_full", "the server's disk is full: try again later");
                return;
        }
        m->token.created_ms = clock_wall_ms();
        m->token.expires_ms = m->token.created_ms + m->expires_s * 1000;
        if (c->token_until_ms && m->token.expires_ms > c->token_until_ms)
                /* a new token must not outlive the token that made it */
                m->token.expires_ms = c->token_until_ms;
        m->token.created_by = str_of(c->who);
        token_make(&m->token, str_of(ca_fingerprint(s->access->ca)), &text);
        if (tokens_add(s->access->tokens, &m->token, turn_batch(s->turn), &err) != 0) {
                call_fail_err(c, 400, "bad_token", &err);
                return;
        }
        json_open(&j, '{');
        json_kstrz(&j, "id", m->token.id);
        json_kstr(&j, "token", buf_view(&text));
        json_kint(&j, "expires_ms", m->token.expires_ms);
        json_close(&j, '}');
        explicit_bzero(text.p, text.n);
        c->status = 201;
        c->when = TURN_DURABLE;
        call_io(c, send_token);
}

/* Reads the wanted token. Returns false when the call has ended. */
static bool read_token(struct server *s, struct call *c, struct make *m)
{
        struct str role = call_json_text(m->doc, "role");
        const json_t *uses = json_object_get(m->doc, "uses"), *expires = json_object_get(m->doc, "expires_s");

        if (token_kind_parse(call_json_text(m->doc, "kind"), &m->token.kind) != 0) {
                call_fail(c, 400, "bad_token", "\"kind\" must be agent or user");
                return false;
        }
        if (role.n && role_parse(role, &m->token.role) != 0) {
                call_fail(c, 400, "bad_token", "\"role\" must be user, operator or admin");
                return false;
        }
        m->expires_s = json_is_integer(expires)       ? json_integer_value(expires)
                       : m->token.kind == TOKEN_AGENT ? AGENT_S
                                                      : USER_S;
        if (m->expires_s < 1 || m->expires_s > MAX_S) {
                call_fail(c, 400, "bad_token", "\"expires_s\" must be from a second to ten years");
                return false;
        }
        m->token.limited = json_is_integer(uses) || m->token.kind == TOKEN_AGENT;
        m->token.uses_left =
                json_is_integer(uses) && json_integer_value(uses) > 0 && json_integer_value(uses) < UINT32_MAX
                        ? (uint32_t)json_integer_value(uses)
                        : 1;
        m->name = call_json_text(m->doc, "name");
        if (m->token.kind == TOKEN_USER && m->name.n == 0)
                m->name = str_of(c->who);
        if (m->token.kind == TOKEN_USER && str_rfind(m->name, '@') < 0) {
                BUF_CLEANUP struct buf b = {0};

                buf_printf(&b, STR_FMT "@%s", STR_ARG(m->name), s->config.domain);
                m->name = arena_str(&c->arena, buf_view(&b));
        }
        m->token.name = m->name;
        m->token.owners = call_json_text(m->doc, "owners");
        m->token.tags = call_json_text(m->doc, "tags");
        m->token.labels = call_json_text(m->doc, "labels");
        m->token.most = call_json_text(m->doc, "most");
        if (m->token.kind == TOKEN_USER) {
                MEM_CLEANUP char *who = str_dupz(m->name);
                enum role most = access_role(s, who);

                if (m->token.role > most) {
                        call_fail(c, 400, "bad_token",
                                  "%s has the role %s here, and a token cannot have more: admins and "
                                  "operators are "
                                  "named in droverd.yaml",
                                  who, role_name(most));
                        return false;
                }
        }
        return true;
}

void api_token_new(struct server *s, struct call *c)
{
        json_t *doc = call_json(c); /* after a failure the call and its state are freed */
        struct make *m;

        if (!doc)
                return;
        m = call_state(c, sizeof(*m), tokens_state_free);
        m->doc = doc;
        if (!read_token(s, c, m))
                return;
        if (c->role != ROLE_ADMIN &&
            (m->token.kind != TOKEN_USER || !str_eqz(m->name, c->who) || m->token.role > c->role))
                call_fail(c, 403, "forbidden", "only an admin makes tokens for agents and for others");
        else
                call_core(c, make_token);
}

static bool may_see(const struct call *c, const struct token *t)
{
        return c->role == ROLE_ADMIN || (t->kind == TOKEN_USER && str_eqz(t->name, c->who));
}

static void list_tokens(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        const struct token *t;
        size_t at = 0;

        json_open(&j, '{');
        json_key(&j, "tokens");
        json_open(&j, '[');
        while (tokens_next(s->access->tokens, &at, &t)) {
                if (!may_see(c, t))
                        continue;
                json_open(&j, '{');
                json_kstrz(&j, "id", t->id);
                json_kstrz(&j, "kind", token_kind_name(t->kind));
                json_kstr(&j, "name", t->name);
                json_kstrz(&j, "role", t->kind == TOKEN_USER ? role_name(t->role) : NULL);
                json_key(&j, "uses");
                if (t->limited)
                        json_int(&j, t->uses_left);
                else
                        json_null(&j);
                if (t->kind == TOKEN_AGENT) {
                        json_kstr(&j, "owners", t->owners);
                        json_kstr(&j, "tags", t->tags);
                        json_kstr(&j, "labels", t->labels);
                        json_kstr(&j, "most", t->most);
                }
                json_kstr(&j, "created_by", t->created_by);
                json_kint(&j, "created_ms", t->created_ms);
                json_kint(&j, "expires_ms", t->expires_ms);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        call_reply(c);
}

void api_tokens(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, list_tokens);
}

static void remove_token(struct server *s, struct call *c)
{
        const struct token *t = tokens_find(s->access->tokens, c->param[0]);

        if (!t || !may_see(c, t)) {
                call_fail(c, 404, "not_found", "there is no token " STR_FMT, STR_ARG(c->param[0]));
                return;
        }
        tokens_remove(s->access->tokens, c->param[0], turn_batch(s->turn));
        buf_addz(&c->out, "{}");
        c->when = TURN_DURABLE;
        call_io(c, send_token);
}

void api_token_delete(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, remove_token);
}
