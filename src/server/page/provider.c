/* A question goes from one state to the next, each of which waits for one answer of the provider:
 *
 *   DOCUMENT --document_done--> TOKEN --token_done--> KEYS --keys_done--> USERINFO --userinfo_done--> told
 *
 * Questions share the fetching of the document and of the keys. DOCUMENT is the last state of one that only
 * prepares. KEYS is left at once if the token's key is among those that are there; if it is not, the keys are
 * fetched again, once for a question. USERINFO is skipped unless the settings ask for it.
 */
#include "server/page/provider.h"

#include <errno.h>
#include <openssl/sha.h>

#include "auth/jwt.h"
#include "base/format/base64.h"
#include "base/format/url.h"
#include "base/mem.h"
#include "base/share.h"
#include "base/system/clock.h"
#include "base/system/secret.h"
#include "ev/http_client.h"

#define ANSWER_MAX  (256u << 10)
#define CALL_MS     10000
#define FRESH_MS    3600000
#define CONNECTIONS 8
#define ACCESS_MAX  16384u /* bytes of an access token */
#define CALLBACK    "/page/openid/callback"
#define DOCUMENT    "/.well-known/openid-configuration"

struct endpoint {
        char *url, *address, *path; /* NULL: the provider has none */
};
/* What of the provider's document is used (OpenID Connect Discovery 1.0, 3). */
struct document {
        struct endpoint authorize, token, keys, userinfo, end_session;
        bool secret_in_body; /* client_secret_post; else client_secret_basic */
};

enum state { DOCUMENT_STATE, TOKEN_STATE, KEYS_STATE, USERINFO_STATE };

struct question {
        struct provider *provider;
        struct question *next, **link;
        enum state state;
        provider_fn *fn;
        void *arg;
        char *holder;  /* has one of the places in `waiting` */
        bool prepares; /* only the document is asked for */
        char *code, *nonce, *verifier;
        char *id_token, *access_token;
        json_t *claims;
        bool keys_again; /* the keys were fetched for this question */
        struct http_call *call;
};

struct provider {
        const struct config_openid *config;
        struct buf secret;
        struct http_client *client;
        struct endpoint discovery;
        struct document document;
        int64_t document_ms, keys_ms; /* boot clock, of the last answer; 0: never */
        struct jwt_keys *keys;
        struct http_call *document_call, *keys_call;
        struct question *first;
        unsigned count;
        struct share *waiting; /* places for questions */
};

/* ---- questions */

static void wipe(char **text)
{
        if (*text)
                explicit_bzero(*text, strlen(*text));
        free(*text);
        *text = NULL;
}

static void question_free(struct question *q)
{
        *q->link = q->next;
        if (q->next)
                q->next->link = q->link;
        q->provider->count--;
        share_give(q->provider->waiting, str_of(q->holder));
        free(q->holder);
        http_call_cancel(q->call);
        json_decref(q->claims);
        wipe(&q->code);
        wipe(&q->verifier);
        wipe(&q->id_token);
        wipe(&q->access_token);
        free(q->nonce);
        free(q);
}

/* Tells the answer, and ends the question. */
static void tell(struct question *q, int r, const struct err *err)
{
        static const struct err none;
        json_t *claims = r == 0 ? q->claims : NULL;
        provider_fn *fn = q->fn;
        void *arg = q->arg;

        if (claims)
                q->claims = NULL;
        question_free(q);
        fn(arg, r, claims, err ? err : &none);
}

static struct question *question_new(struct provider *p, struct str holder, provider_fn *fn, void *arg)
{
        struct question *q;
        struct err err;

        if (!share_take(p->waiting, holder)) {
                err_set(&err, -EBUSY, "%u sign-ins wait for the provider at the same time", p->count);
                fn(arg, -EBUSY, NULL, &err);
                return NULL;
        }
        q = mem_new(struct question);
        q->provider = p;
        q->holder = str_dupz(holder);
        q->fn = fn;
        q->arg = arg;
        q->link = &p->first;
        q->next = p->first;
        if (q->next)
                q->next->link = &q->next;
        p->first = q;
        p->count++;
        return q;
}

/* Returns a question in this state, or NULL. */
static struct question *question_in(struct provider *p, enum state state)
{
        struct question *q = p->first;

        while (q && q->state != state)
                q = q->next;
        return q;
}

/* All questions that wait for this fail. New ones, asked by who is told, are not among them. */
static void fail_all(struct provider *p, enum state state, int r, const struct err *err)
{
        struct question *q;
        unsigned left = p->count;

        while (left-- && (q = question_in(p, state)))
                tell(q, r, err);
}

static void ask_token(struct question *q);
static void look_at_keys(struct question *q);

/* ---- calls */

static struct http_call *ask(struct provider *p, const struct endpoint *at, struct http_call_spec spec,
                             http_call_fn *fn, void *arg)
{
        spec.address = at->address;
        spec.path = at->path;
        spec.timeout_ms = CALL_MS;
        spec.max = ANSWER_MAX;
        return http_client_call(p->client, &spec, fn, arg);
}

static struct str text_of(const json_t *doc, const char *member)
{
        const json_t *v = json_object_get(doc, member);

        return json_is_string(v) ? str_make(json_string_value(v), json_string_length(v)) : STR_NONE;
}

/* Reads an answer, which must be a JSON object. NULL with err. */
static json_t *answer_read(int status, struct str body, const char *what, const struct err *why,
                           struct err *err)
{
        json_t *doc;

        if (status == 0) {
                err_set(err, 0, "%s: %s", what, why->text);
                return NULL;
        }
        doc = json_loadb(body.p ? body.p : "", body.n, JSON_REJECT_DUPLICATES, NULL);
        if (status == 200 && json_is_object(doc))
                return doc;
        if (status == 200)
                err_set(err, 0, "%s: the answer is not a JSON object", what);
        else
                err_set(err, 0, "%s: status %d, " STR_FMT " " STR_FMT, what, status,
                        STR_ARG(str_head(text_of(doc, "error"), 60)),
                        STR_ARG(str_head(text_of(doc, "error_description"), 200)));
        json_decref(doc);
        return NULL;
}

/* ---- the document */

static void endpoint_free(struct endpoint *e)
{
        free(e->url);
        free(e->address);
        free(e->path);
        *e = (struct endpoint){.url = NULL};
}

static void document_free(struct document *d)
{
        endpoint_free(&d->authorize);
        endpoint_free(&d->token);
        endpoint_free(&d->keys);
        endpoint_free(&d->userinfo);
        endpoint_free(&d->end_session);
}

static int endpoint_set(struct endpoint *e, struct str url)
{
        BUF_CLEANUP struct buf address = {0}, path = {0};

        if (!openid_url_split(url, &address, &path))
                return -EINVAL;
        e->url = str_dupz(url);
        e->address = buf_take(&address);
        e->path = buf_take(&path);
        return 0;
}

/* Reads the URL of an endpoint. 0; -EINVAL with err: it is needed and absent, or not https. */
static int take_endpoint(const json_t *doc, const char *member, bool needed, struct endpoint *ret,
                         struct err *err)
{
        struct str url = text_of(doc, member);

        if (url.n == 0 && !needed)
                return 0;
        return endpoint_set(ret, url) == 0
                       ? 0
                       : err_set(err, -EINVAL, "the provider's document: its %s is not an https URL", member);
}

static bool list_has(const json_t *list, const char *word)
{
        for (size_t i = 0; i < json_array_size(list); i++)
                if (json_is_string(json_array_get(list, i)) &&
                    strcmp(json_string_value(json_array_get(list, i)), word) == 0)
                        return true;
        return false;
}

static int document_read(const struct provider *p, const json_t *doc, struct document *ret, struct err *err)
{
        const json_t *methods = json_object_get(doc, "token_endpoint_auth_methods_supported");
        struct str issuer = text_of(doc, "issuer");
        int r = 0;

        if (!str_eqz(issuer, p->config->issuer))
                r = err_set(err, -EACCES, "the provider's document is of the issuer '" STR_FMT "', not '%s'",
                            STR_ARG(str_head(issuer, 120)), p->config->issuer);
        if (r == 0)
                r = take_endpoint(doc, "authorization_endpoint", true, &ret->authorize, err);
        if (r == 0)
                r = take_endpoint(doc, "token_endpoint", true, &ret->token, err);
        if (r == 0)
                r = take_endpoint(doc, "jwks_uri", true, &ret->keys, err);
        if (r == 0)
                r = take_endpoint(doc, "userinfo_endpoint", p->config->userinfo, &ret->userinfo, err);
        if (r == 0)
                r = take_endpoint(doc, "end_session_endpoint", false, &ret->end_session, err);
        ret->secret_in_body = json_is_array(methods) && !list_has(methods, "client_secret_basic") &&
                              list_has(methods, "client_secret_post");
        return r;
}

static void document_done(void *arg, int status, struct str body, const struct err *why)
{
        struct provider *p = arg;
        struct document fresh = {.secret_in_body = false};
        struct question *q;
        unsigned left;
        struct err err = {0};
        json_t *doc = answer_read(status, body, "the provider's document (" DOCUMENT ")", why, &err);
        int r = doc ? document_read(p, doc, &fresh, &err) : -EIO;

        p->document_call = NULL;
        json_decref(doc);
        if (r != 0) {
                document_free(&fresh);
                fail_all(p, DOCUMENT_STATE, r, &err);
                return;
        }
        document_free(&p->document);
        p->document = fresh;
        p->document_ms = clock_boot_ms();
        left = p->count;
        while (left-- && (q = question_in(p, DOCUMENT_STATE))) {
                if (q->prepares)
                        tell(q, 0, NULL);
                else
                        ask_token(q);
        }
}

static bool fresh(int64_t at_ms)
{
        return at_ms && clock_boot_ms() - at_ms < FRESH_MS;
}

static void need_document(struct question *q)
{
        struct provider *p = q->provider;

        if (fresh(p->document_ms)) {
                if (q->prepares)
                        tell(q, 0, NULL);
                else
                        ask_token(q);
        } else if (!p->document_call) {
                p->document_call =
                        ask(p, &p->discovery, (struct http_call_spec){.method = "GET"}, document_done, p);
        }
}

/* ---- the token */

static void add_form(struct buf *to, const char *name, struct str value)
{
        buf_printf(to, "%s%s=", to->n ? "&" : "", name);
        url_escape(to, value);
}

/* The client's credentials in a line of the head: RFC 6749, 2.3.1. */
static void add_basic(const struct provider *p, struct buf *head)
{
        SECRET_CLEANUP struct buf pair = {0};

        url_escape(&pair, str_of(p->config->client_id));
        buf_char(&pair, ':');
        url_escape(&pair, buf_view(&p->secret));
        buf_addz(head, "Authorization: Basic ");
        base64_encode(head, buf_view(&pair));
        buf_addz(head, "\r\n");
}

static bool printable(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] <= ' ' || s.p[i] > '~')
                        return false;
        return true;
}

static void token_done(void *arg, int status, struct str body, const struct err *why)
{
        struct question *q = arg;
        struct err err = {0};
        json_t *doc = answer_read(status == HTTP_NOT_SENT ? 0 : status, body, "the provider's token endpoint",
                                  why, &err);
        struct str id = text_of(doc, "id_token"), access = text_of(doc, "access_token");
        int r = doc ? 0 : status >= 400 && status < 500 ? -EACCES : -EIO;

        q->call = NULL;
        if (r == 0 && id.n == 0)
                r = err_set(&err, -EACCES,
                            "the provider's token endpoint: there is no ID token in its answer");
        if (r == 0 && q->provider->config->userinfo &&
            (access.n == 0 || access.n > ACCESS_MAX || !printable(access)))
                r = err_set(&err, -EACCES,
                            "the provider's token endpoint: there is no access token in its answer");
        if (r == 0) {
                q->id_token = str_dupz(id);
                q->access_token = q->provider->config->userinfo ? str_dupz(access) : NULL;
        }
        json_decref(doc);
        if (r != 0)
                tell(q, r, &err);
        else
                look_at_keys(q);
}

static void ask_token(struct question *q)
{
        const struct provider *p = q->provider;
        const struct document *d = &p->document;
        SECRET_CLEANUP struct buf form = {0}, head = {0};
        BUF_CLEANUP struct buf back = {0};

        q->state = TOKEN_STATE;
        buf_printf(&back, "%s" CALLBACK, p->config->address);
        add_form(&form, "grant_type", STR("authorization_code"));
        add_form(&form, "code", str_of(q->code));
        add_form(&form, "redirect_uri", buf_view(&back));
        add_form(&form, "code_verifier", str_of(q->verifier));
        buf_addz(&head, "Accept: application/json\r\n");
        if (p->secret.n && !d->secret_in_body) {
                add_basic(p, &head);
        } else {
                add_form(&form, "client_id", str_of(p->config->client_id));
                if (p->secret.n)
                        add_form(&form, "client_secret", buf_view(&p->secret));
        }
        q->call = ask(q->provider, &d->token,
                      (struct http_call_spec){.method = "POST",
                                              .type = "application/x-www-form-urlencoded",
                                              .fields = buf_z(&head),
                                              .body = buf_view(&form),
                                              .once = true}, /* a code is good for one call */
                      token_done, q);
}

/* ---- keys */

static void userinfo_done(void *arg, int status, struct str body, const struct err *why)
{
        struct question *q = arg;
        struct err err = {0};
        json_t *doc = answer_read(status, body, "the provider's userinfo endpoint", why, &err);
        int r = doc ? 0 : -EIO;

        q->call = NULL;
        if (r == 0 &&
            !str_eq(text_of(doc, "sub"), text_of(q->claims, "sub"))) /* OpenID Connect Core 1.0, 5.3.2 */
                r = err_set(&err, -EACCES,
                            "the provider's userinfo endpoint: its answer is about another user");
        if (r == 0)
                json_object_update_missing(q->claims, doc);
        json_decref(doc);
        tell(q, r, &err);
}

/* The claims are there and checked. */
static void claims_done(struct question *q)
{
        SECRET_CLEANUP struct buf head = {0};

        if (!q->access_token) {
                tell(q, 0, NULL);
                return;
        }
        q->state = USERINFO_STATE;
        buf_printf(&head, "Authorization: Bearer %s\r\nAccept: application/json\r\n", q->access_token);
        q->call = ask(q->provider, &q->provider->document.userinfo,
                      (struct http_call_spec){.method = "GET", .fields = buf_z(&head)}, userinfo_done, q);
}

static void keys_done(void *arg, int status, struct str body, const struct err *why)
{
        struct provider *p = arg;
        struct question *q;
        unsigned left;
        struct err err = {0};
        struct jwt_keys *keys = NULL;
        json_t *doc = answer_read(status, body, "the provider's keys (jwks_uri)", why, &err);
        int r = doc ? jwt_keys_parse(body, &keys, &err) : -EIO;

        p->keys_call = NULL;
        json_decref(doc);
        if (r != 0) {
                fail_all(p, KEYS_STATE, r, &err);
                return;
        }
        jwt_keys_free(p->keys);
        p->keys = keys;
        p->keys_ms = clock_boot_ms();
        left = p->count;
        while (left-- && (q = question_in(p, KEYS_STATE))) {
                q->keys_again = true;
                look_at_keys(q);
        }
}

/* Verifies the token, with keys that are fetched first where the ones that are there may be old. */
static void look_at_keys(struct question *q)
{
        struct provider *p = q->provider;
        const struct id_token_wanted wanted = {p->config->issuer, p->config->client_id, q->nonce,
                                               clock_wall_ms()};
        struct err err = {0};
        int r = JWT_NO_KEY;

        q->state = KEYS_STATE;
        if (fresh(p->keys_ms) || q->keys_again)
                r = jwt_verify(p->keys, str_of(q->id_token), &q->claims, &err);
        if (r == JWT_NO_KEY && !q->keys_again) {
                if (!p->keys_call)
                        p->keys_call = ask(p, &p->document.keys, (struct http_call_spec){.method = "GET"},
                                           keys_done, p);
                return;
        }
        if (r == 0)
                r = id_token_check(q->claims, &wanted, &err);
        if (r == 0)
                claims_done(q);
        else
                tell(q, -EACCES, &err);
}

/* ---- for the page */

struct provider *provider_new(struct loop *l, const struct config_openid *config, struct str secret)
{
        struct provider *p = mem_new(struct provider);
        BUF_CLEANUP struct buf url = {0};
        struct str issuer = str_of(config->issuer);

        p->config = config;
        p->waiting = share_new(PROVIDER_WAITING_MAX);
        buf_str(&p->secret, secret);
        if (str_ends(issuer, STR("/")))
                issuer.n--;
        buf_str(&url, issuer);
        buf_addz(&url, DOCUMENT);
        endpoint_set(&p->discovery, buf_view(&url)); /* the settings have checked the issuer */
        p->client = http_client_new(l, &(struct http_client_config){.address = p->discovery.address,
                                                                    .ca_file = config->ca_file,
                                                                    .authorities = !config->ca_file,
                                                                    .connections = CONNECTIONS});
        return p;
}

void provider_free(struct provider *p, void (*drop)(void *arg))
{
        if (!p)
                return;
        while (p->first) {
                void *arg = p->first->arg;

                question_free(p->first);
                drop(arg);
        }
        share_free(p->waiting);
        http_client_free(p->client);
        jwt_keys_free(p->keys);
        document_free(&p->document);
        endpoint_free(&p->discovery);
        secret_deinit(&p->secret);
        free(p);
}

void provider_prepare(struct provider *p, struct str holder, provider_fn *fn, void *arg)
{
        struct question *q = question_new(p, holder, fn, arg);

        if (!q)
                return;
        q->prepares = true;
        need_document(q);
}

void provider_authorize(const struct provider *p, const struct provider_sign_in *x, struct buf *ret_url)
{
        BUF_CLEANUP struct buf form = {0}, challenge = {0}, back = {0};
        unsigned char hash[SHA256_DIGEST_LENGTH];
        const char *url = p->document.authorize.url;

        SHA256((const unsigned char *)x->verifier, strlen(x->verifier), hash);
        base64url_encode(&challenge, str_make((const char *)hash, sizeof(hash)));
        buf_printf(&back, "%s" CALLBACK, p->config->address);
        add_form(&form, "response_type", STR("code"));
        add_form(&form, "client_id", str_of(p->config->client_id));
        add_form(&form, "redirect_uri", buf_view(&back));
        add_form(&form, "scope", str_of(p->config->scopes));
        add_form(&form, "state", str_of(x->state));
        add_form(&form, "nonce", str_of(x->nonce));
        add_form(&form, "code_challenge", buf_view(&challenge));
        add_form(&form, "code_challenge_method", STR("S256"));
        buf_printf(ret_url, "%s%c" STR_FMT, url, strchr(url, '?') ? '&' : '?', STR_ARG(buf_view(&form)));
}

void provider_redeem(struct provider *p, struct str holder, struct str code, const struct provider_sign_in *x,
                     provider_fn *fn, void *arg)
{
        struct question *q = question_new(p, holder, fn, arg);

        if (!q)
                return;
        q->code = str_dupz(code);
        q->nonce = mem_dupz(x->nonce);
        q->verifier = mem_dupz(x->verifier);
        need_document(q);
}

void provider_sign_out(const struct provider *p, struct buf *ret_url)
{
        const char *url = p->document.end_session.url;
        BUF_CLEANUP struct buf form = {0}, back = {0};

        if (!url)
                return;
        buf_printf(&back, "%s/", p->config->address);
        add_form(&form, "client_id", str_of(p->config->client_id));
        add_form(&form, "post_logout_redirect_uri", buf_view(&back));
        buf_printf(ret_url, "%s%c" STR_FMT, url, strchr(url, '?') ? '&' : '?', STR_ARG(buf_view(&form)));
}
