#include "server/page/openid.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>

#include "auth/ca.h"
#include "base/format/hex.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/secret.h"
#include "server/access/access.h"
#include "server/page/page.h"
#include "server/page/provider.h"

#define COOKIE     "__Host-drover-openid" /* see page.c for the prefix */
#define KEY_BYTES  32
#define DERIVED    65 /* 64 hexadecimal digits and a NUL */
#define STATE_TEXT (DERIVED + 17)
#define CODE_MAX   3072u
#define SECRET_MAX 4096u
#define USED_MAX   4096u
#define USED_BYTES 16u
#define LOG_MS     1000

struct openid {
        const struct config_openid *config;
        struct provider *provider;
        unsigned char key[KEY_BYTES];
        /* Values of `state` that have returned from the provider, so that each is accepted once; the newest
         * overwrites the oldest. A client that fills the list can repeat only a sign-in of its own browser,
         * or of one whose cookie it has, and the provider accepts the code of a sign-in only once. */
        unsigned char used[USED_MAX][USED_BYTES];
        size_t used_next;
        int64_t logged_ms; /* boot clock */
        char host[128];    /* of the issuer, for users */
};

/* ---- opening */

static int read_secret(const struct config_openid *config, struct buf *ret, struct err *err)
{
        int r;

        if (!config->secret_file)
                return 0;
        r = fs_read_secret(AT_FDCWD, config->secret_file, SECRET_MAX, ret, err);
        while (r == 0 && ret->n && (ret->p[ret->n - 1] == '\n' || ret->p[ret->n - 1] == '\r'))
                buf_truncate(ret, ret->n - 1);
        if (r == 0 && (ret->n == 0 || memchr(ret->p, '\0', ret->n)))
                r = err_set(err, -EINVAL, "%s has no client secret in it", config->secret_file);
        return r < 0 ? err_prefix(err, r, "openid: client_secret_file") : r;
}

int openid_new(struct server *s, struct loop *l, struct openid **ret, struct err *err)
{
        SECRET_CLEANUP struct buf secret = {0};
        const struct config_openid *config = &s->config.openid;
        struct openid *o;
        struct str host;
        int r;

        *ret = NULL;
        if (!config->issuer)
                return 0;
        r = read_secret(config, &secret, err);
        if (r != 0)
                return r;
        o = mem_new(struct openid);
        if (RAND_bytes(o->key, sizeof(o->key)) != 1) {
                free(o);
                return err_set(err, -EIO, "there are no random numbers");
        }
        host = str_skip(str_of(config->issuer), sizeof("https://") - 1);
        host = str_head(host, strcspn(host.p, "/"));
        snprintf(o->host, sizeof(o->host), STR_FMT, STR_ARG(host));
        o->config = config;
        o->provider = provider_new(l, config, buf_view(&secret));
        *ret = o;
        return 0;
}

/* The call's connection is still there, and its end frees the call; or the client has gone. */
static void drop_waiting(void *arg)
{
        struct call *c = arg;

        if (c->http)
                c->waits = true;
        else
                call_free(c);
}

void openid_free(struct openid *o)
{
        if (!o)
                return;
        provider_free(o->provider, drop_waiting);
        OPENSSL_cleanse(o->key, sizeof(o->key));
        free(o);
}

/* ---- what a sign-in has of its own */

struct signing_in {
        char state[STATE_TEXT], nonce[DERIVED], verifier[DERIVED];
        char cookie[SESSION_SECRET_TEXT]; /* begin: the secret in the browser's cookie */
        struct str token_id;              /* callback */
        char set[160];                    /* the header Set-Cookie of the session */
        struct str who;                   /* in the call's arena */
};

/* Derives a text that only who has the process's key and the browser's secret can make. */
static void derive(const struct openid *o, const char *purpose, int64_t until_s, struct str secret,
                   char ret[DERIVED])
{
        unsigned char mac[32];
        char said[160];
        int n = snprintf(said, sizeof(said), "%s %lld " STR_FMT, purpose, (long long)until_s,
                         STR_ARG(secret));

        HMAC(EVP_sha256(), o->key, KEY_BYTES, (const unsigned char *)said, (size_t)n, mac, NULL);
        hex_print(ret, mac, sizeof(mac));
}

/* Fills in state, nonce and verifier. secret has the form of a session's cookie. */
static void derive_all(const struct openid *o, int64_t until_s, struct str secret, struct signing_in *x)
{
        char mark[DERIVED];

        derive(o, "state", until_s, secret, mark);
        snprintf(x->state, sizeof(x->state), "%llx.%s", (unsigned long long)until_s, mark);
        derive(o, "nonce", until_s, secret, x->nonce);
        derive(o, "verifier", until_s, secret, x->verifier);
}

static bool secret_valid(struct str text)
{
        unsigned char bytes[(SESSION_SECRET_TEXT - 1) / 2];

        return hex_read(text, bytes, sizeof(bytes)) == 0;
}

/* Reads the time that a state begins with, in the form that derive_all writes. 0: it has none. */
static int64_t state_until(struct str state)
{
        struct str digits;
        int64_t v = 0;

        if (!str_cut(&state, '.', &digits) || digits.n == 0 || digits.n > 12)
                return 0;
        for (size_t i = 0; i < digits.n; i++) {
                int d = hex_digit(digits.p[i]);

                if (d < 0)
                        return 0;
                v = v << 4 | d;
        }
        return v;
}

/* Remembers that a state has come back. False: it had already. `mark` is derive's. */
static bool use_state(struct openid *o, const char *mark)
{
        unsigned char bytes[(DERIVED - 1) / 2];

        if (hex_read(str_of(mark), bytes, sizeof(bytes)) != 0)
                return false;
        for (size_t i = 0; i < USED_MAX; i++)
                if (memcmp(o->used[i], bytes, USED_BYTES) == 0)
                        return false;
        memcpy(o->used[o->used_next], bytes, USED_BYTES);
        o->used_next = (o->used_next + 1) % USED_MAX;
        return true;
}

/* Checks that the state is of this browser, in time, and new. The comparison takes the same time wherever
 * they differ. */
static bool state_good(struct openid *o, struct str state, struct str secret, struct signing_in *x)
{
        int64_t until_s = state_until(state), now_s = clock_wall_ms() / 1000;

        if (!secret_valid(secret) || until_s <= now_s || until_s > now_s + OPENID_VALID_MS / 1000 + 1)
                return false;
        derive_all(o, until_s, secret, x);
        if (state.n != strlen(x->state) || CRYPTO_memcmp(state.p, x->state, state.n) != 0)
                return false;
        return use_state(o, strchr(x->state, '.') + 1);
}

/* ---- replies */

static void redirect(struct call *c, const char *to)
{
        page_guard(c->http);
        http_add_header(c->http, "Location", to);
        c->status = 303;
        call_reply(c);
}

/* Sends the browser to the page, which has a sentence for the word. What happened is in the log, once a
 * second at most. */
static void give_up(struct call *c, const char *word, const char *why)
{
        struct openid *o = c->server->openid;
        char to[64];

        if (why && clock_boot_ms() - o->logged_ms >= LOG_MS) {
                o->logged_ms = clock_boot_ms();
                log_warn("msg=\"a sign-in by OpenID Connect failed\" reason=%s why=\"%s\"", word,
                         LOG_TEXT(str_of(why)));
        }
        http_add_header(c->http, "Set-Cookie", COOKIE "=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");
        snprintf(to, sizeof(to), "/#/not-signed-in/%s", word);
        redirect(c, to);
}

static const char *word_of(int r)
{
        return r == -EBUSY ? "busy" : r == -EACCES ? "untrusted" : "provider";
}

/* The step of a call that goes on after a question to the provider, whose client may have gone meanwhile. */
static bool is_gone(struct call *c)
{
        if (c->http)
                return false;
        call_free(c);
        return true;
}

static bool is_off(struct server *s, struct call *c)
{
        if (s->openid)
                return false;
        call_fail(c, 404, "not_found", "this server's settings name no provider of OpenID Connect");
        return true;
}

/* ---- the way there */

static void prepared(void *arg, int r, json_t *claims, const struct err *err)
{
        struct call *c = arg;
        struct signing_in *x = c->state;
        BUF_CLEANUP struct buf url = {0};
        char set[200];

        (void)claims;
        if (is_gone(c))
                return;
        if (r != 0) {
                give_up(c, word_of(r), err->text);
                return;
        }
        provider_authorize(c->server->openid->provider,
                           &(struct provider_sign_in){x->state, x->nonce, x->verifier}, &url);
        snprintf(set, sizeof(set), COOKIE "=%s; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=%d",
                 x->cookie, OPENID_VALID_MS / 1000);
        http_add_header(c->http, "Set-Cookie", set);
        redirect(c, buf_z(&url));
}

void openid_begin(struct server *s, struct call *c)
{
        struct signing_in *x;

        if (is_off(s, c))
                return;
        x = call_state(c, sizeof(*x), NULL);
        token_random(x->cookie);
        derive_all(s->openid, (clock_wall_ms() + OPENID_VALID_MS) / 1000, str_of(x->cookie), x);
        provider_prepare(s->openid->provider, http_peer_holder(c->http), prepared, c);
}

/* ---- the way back */

static void signed_in(struct server *s, struct call *c)
{
        struct signing_in *x = c->state;

        (void)s;
        if (!x->set[0]) { /* c->err says why */
                give_up(c, "server", c->err.text);
                return;
        }
        http_add_header(c->http, "Set-Cookie", COOKIE "=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0");
        http_add_header(c->http, "Set-Cookie", x->set);
        redirect(c, "/");
}

/* Core thread: makes the session, and a token for it to end with. */
static void openid_open_session(struct server *s, struct call *c)
{
        struct signing_in *x = c->state;
        const struct config_openid *config = &s->config.openid;
        struct access *a = s->access;
        int64_t now = clock_wall_ms(), valid = config->session_ms && config->session_ms < SESSION_VALID_MS
                                                       ? config->session_ms
                                                       : SESSION_VALID_MS;
        BUF_CLEANUP struct buf maker = {0};
        SECRET_CLEANUP struct buf text = {0};
        struct token t = {.kind = TOKEN_USER,
                          .role = config->role,
                          .created_ms = now,
                          .expires_ms = now + valid,
                          .name = x->who};

        buf_printf(&maker, OPENID_MAKER "%s", config->issuer);
        t.created_by = buf_view(&maker);
        token_make(&t, str_of(ca_fingerprint(a->ca)), &text);
        if (turn_full(s->turn))
                err_set(&c->err, 0, "the server's disk is full");
        else if (tokens_add(a->tokens, &t, turn_batch(s->turn), &c->err) == 0)
                page_open_session(s, str_of(t.id), x->set, sizeof(x->set));
        c->when = TURN_DURABLE;
        call_io(c, signed_in);
}

static void redeemed(void *arg, int r, json_t *claims, const struct err *err)
{
        struct call *c = arg;
        struct server *s = c->server;
        struct signing_in *x = c->state;
        BUF_CLEANUP struct buf who = {0};
        struct err why = *err;
        const char *word = word_of(r);

        if (r == 0 && id_token_user(claims, &s->config.openid.users, &who, &why) != 0) {
                r = -EPERM;
                word = "not-allowed";
        }
        json_decref(claims);
        if (is_gone(c))
                return;
        if (r == 0 && access_own(s, buf_z(&who))) {
                r = err_set(&why, -EPERM, "nobody signs in as %s, who is root or the server's own user",
                            buf_z(&who));
                word = "not-allowed";
        }
        if (r != 0) {
                give_up(c, word, why.text);
                return;
        }
        x->who = arena_str(&c->arena, buf_view(&who));
        call_core(c, openid_open_session);
}

void openid_callback(struct server *s, struct call *c)
{
        struct str state = STR_NONE, code = STR_NONE, issuer;
        struct signing_in *x;

        if (is_off(s, c))
                return;
        x = call_state(c, sizeof(*x), NULL);
        http_query(c->http, "state", &state);
        if (!state_good(s->openid, state, page_cookie_named(c->http, COOKIE), x)) {
                give_up(c, "stale", NULL);
        } else if (http_query(c->http, "iss", &issuer) && !str_eqz(issuer, s->config.openid.issuer)) {
                give_up(c, "untrusted", "the answer is of another issuer (RFC 9207)");
        } else if (!http_query(c->http, "code", &code) || code.n == 0 || code.n > CODE_MAX) {
                give_up(c, "denied", NULL);
        } else {
                provider_redeem(s->openid->provider, http_peer_holder(c->http), code,
                                &(struct provider_sign_in){x->state, x->nonce, x->verifier}, redeemed, c);
        }
}

void openid_ways(struct server *s, struct call *c)
{
        struct json j = {.out = &c->out};
        BUF_CLEANUP struct buf url = {0};

        json_open(&j, '{');
        json_key(&j, "openid");
        if (s->openid) {
                provider_sign_out(s->openid->provider, &url);
                json_open(&j, '{');
                json_kstrz(&j, "name", s->config.openid.name ? s->config.openid.name : s->openid->host);
                json_key(&j, "sign_out");
                if (url.n)
                        json_str(&j, buf_view(&url));
                else
                        json_null(&j);
                json_close(&j, '}');
        } else {
                json_null(&j);
        }
        json_close(&j, '}');
        page_guard(c->http);
        call_reply(c);
}
