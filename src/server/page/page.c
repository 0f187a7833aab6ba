#include "server/page/page.h"

#include "base/system/clock.h"
#include "server/access/access.h"
#include "server/page/openid.h"

/* with the prefix __Host- a browser accepts the cookie only from this host, over TLS, for all paths */
#define COOKIE "__Host-drover"

/* Content-Security-Policy: no inline script or style, nothing from other hosts, no text parsed as HTML. */
#define POLICY                                                                                               \
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "      \
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "                                      \
        "require-trusted-types-for 'script'; trusted-types 'none'"
#define GUARD_POLICY "default-src 'none'; sandbox; frame-ancestors 'none'"

static void add_common(struct http_request *r)
{
        http_add_header(r, "X-Content-Type-Options", "nosniff");
        http_add_header(r, "X-Frame-Options", "DENY");
        http_add_header(r, "Referrer-Policy", "no-referrer");
        http_add_header(r, "Cross-Origin-Opener-Policy", "same-origin");
        http_add_header(r, "Cross-Origin-Resource-Policy", "same-origin");
}

void page_guard(struct http_request *r)
{
        add_common(r);
        http_add_header(r, "Content-Security-Policy", GUARD_POLICY);
        http_add_header(r, "Cache-Control", "no-store");
}

struct str page_cookie_named(const struct http_request *r, const char *name)
{
        struct str all = http_header(r, "Cookie"), one, found;

        while (str_cut(&all, ';', &one)) {
                one = str_trim(one);
                if (str_cut(&one, '=', &found) && one.p && str_eqz(found, name))
                        return one;
        }
        return STR_NONE;
}

struct str page_cookie(const struct http_request *r)
{
        return page_cookie_named(r, COOKIE);
}

/* ---- files */

static void send_file(struct call *c, struct str name)
{
        for (size_t i = 0; i < page_file_count; i++) {
                const struct page_file *f = &page_files[i];

                if (!str_eqz(name, f->name))
                        continue;
                add_common(c->http);
                http_add_header(c->http, "Content-Security-Policy", POLICY);
                http_add_header(c->http, "Cache-Control", "no-cache");
                http_add_header(c->http, "ETag", f->tag);
                c->content_type = f->content_type;
                if (str_eqz(http_header(c->http, "If-None-Match"), f->tag))
                        c->status = 304;
                else
                        buf_add(&c->out, f->text, f->size);
                call_reply(c);
                return;
        }
        call_fail(c, 404, "not_found", "the page has no file of this name");
}

static void get_index(struct server *s, struct call *c)
{
        (void)s;
        send_file(c, STR("index.html"));
}

static void get_file(struct server *s, struct call *c)
{
        (void)s;
        send_file(c, c->param[0]);
}

/* ---- sessions */

struct signing {
        struct str token_id, cookie; /* allocated in the call's arena */
        char set[160];               /* the Set-Cookie header */
};

static void write_session(struct call *c, const struct session *session)
{
        struct json j = {.out = &c->out};

        json_open(&j, '{');
        json_kstrz(&j, "you", c->who);
        json_kstrz(&j, "role", role_name(c->role));
        json_kstrz(&j, "csrf", session->csrf);
        json_kint(&j, "expires_ms", session->expires_ms);
        json_close(&j, '}');
}

static void send_with_cookie(struct server *s, struct call *c)
{
        struct signing *x = c->state;

        (void)s;
        if (x->set[0])
                http_add_header(c->http, "Set-Cookie", x->set);
        if (c->status == 201)
                page_guard(c->http); /* replies to calls that a cookie authenticated have these headers */
        call_reply(c);
}

const struct session *page_open_session(struct server *s, struct str token_id, char *ret_set, size_t size)
{
        const struct token *t = tokens_find(s->access->tokens, token_id);
        const struct session *session;
        char cookie[SESSION_SECRET_TEXT];

        if (!t)
                return NULL;
        session = sessions_open(s->access->sessions, t, clock_wall_ms(), cookie);
        snprintf(ret_set, size, COOKIE "=%s; Path=/; Secure; HttpOnly; SameSite=Strict", cookie);
        explicit_bzero(cookie, sizeof(cookie));
        return session;
}

static void api_open_session(struct server *s, struct call *c)
{
        struct signing *x = c->state;
        const struct session *session = page_open_session(s, x->token_id, x->set, sizeof(x->set));

        if (!session) {
                call_fail(c, 401, "unauthorized", "this token is not valid: ask for a new one");
                return;
        }
        write_session(c, session);
        c->status = 201;
        call_io(c, send_with_cookie);
}

/* Makes a session. The call itself carries a valid token, which a page of another origin cannot send, so
 * such a page cannot sign the browser in as somebody else. */
static void post_session(struct server *s, struct call *c)
{
        struct signing *x = call_state(c, sizeof(*x), NULL);
        struct str header = http_header(c->http, "Authorization");
        struct token_text text;

        (void)s;
        if (!str_istarts(header, STR("Bearer ")) ||
            token_text_parse(str_trim(str_skip(header, 7)), &text) != 0) {
                call_fail(c, 401, "unauthorized", "sign in with a user token: Authorization: Bearer …");
                return;
        }
        x->token_id = arena_str(&c->arena, text.id);
        call_core(c, api_open_session);
}

static void look_session(struct server *s, struct call *c)
{
        struct signing *x = c->state;
        const struct session *session = sessions_find(s->access->sessions, x->cookie, clock_wall_ms());

        if (!session) {
                call_fail(c, 401, "unauthorized", "there is no session: sign in");
                return;
        }
        write_session(c, session);
        call_io(c, send_with_cookie);
}

static void get_session(struct server *s, struct call *c)
{
        struct signing *x = call_state(c, sizeof(*x), NULL);

        (void)s;
        x->cookie = arena_str(&c->arena, page_cookie(c->http));
        call_core(c, look_session);
}

static void close_session(struct server *s, struct call *c)
{
        struct signing *x = c->state;
        const struct session *session = sessions_find(s->access->sessions, x->cookie, clock_wall_ms());
        const struct token *t = session ? tokens_find(s->access->tokens, str_of(session->token_id)) : NULL;

        if (t && str_starts(t->created_by, STR(OPENID_MAKER))) /* it was made for this session */
                tokens_remove(s->access->tokens, str_of(session->token_id), turn_batch(s->turn));
        sessions_close(s->access->sessions, x->cookie);
        snprintf(x->set, sizeof(x->set), COOKIE "=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
        buf_addz(&c->out, "{}");
        call_io(c, send_with_cookie);
}

static void delete_session(struct server *s, struct call *c)
{
        struct signing *x = call_state(c, sizeof(*x), NULL);

        (void)s;
        x->cookie = arena_str(&c->arena, page_cookie(c->http));
        call_core(c, close_session);
}

/* ---- routes */

static const struct route routes[] = {
        {HTTP_GET, "/", get_index, true},
        {HTTP_GET, "/page/session", get_session},
        {HTTP_POST, "/page/session", post_session},
        {HTTP_DELETE, "/page/session", delete_session},
        {HTTP_GET, "/page/sign-in", openid_ways, true},
        {HTTP_GET, "/page/openid/begin", openid_begin, true},
        {HTTP_GET, "/page/openid/callback", openid_callback, true},
        {HTTP_GET, "/page/{name}", get_file, true},
};

const struct route *page_find(enum http_method method, struct str path, struct str param[2],
                              bool *ret_path_known)
{
        return route_find(routes, sizeof(routes) / sizeof(routes[0]), method, path, param, ret_path_known);
}
