#include "server/access/access.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "auth/ca.h"
#include "auth/certificates.h"
#include "auth/credentials.h"
#include "auth/key_file.h"
#include "base/job/owners.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "server/loop/turn.h"

/* the server makes a new one at each start, and when the clock was set */
#define SERVER_VALID_S  (5 * 365 * 86400LL)
#define STEP_BACK_MS    60000
#define AGENT_VALID_MS  (30 * 86400000LL) /* an agent renews its certificate when it connects */
#define PRUNE_MS        86400000
#define TOKENS_FRESH_MS 2000

int access_open(struct server *s, struct access **ret, struct err *err)
{
        struct access *a = mem_new(struct access);
        int r;

        *ret = a;
        a->sessions = sessions_new();
        for (size_t i = 0; i < 2; i++) {
                struct buf who = {0};

                if (principal_of_uid(&who, i == 0 ? geteuid() : 0, str_of(s->config.domain), NULL) == 0)
                        a->own[i] = buf_take(&who);
                else
                        buf_deinit(&who);
        }
        r = ca_open(s->paths.ca, STR("Drover"), clock_wall_ms(), &a->ca, err);
        if (r == 0)
                r = tokens_load(s->store, &a->tokens, err);
        if (r == 0)
                r = certificates_load(s->store, &a->certificates, err);
        if (r == 0)
                r = credentials_open(s->store, s->paths.credential_key, &a->credentials, err);
        return r;
}

void access_free(struct access *a)
{
        if (!a)
                return;
        credentials_free(a->credentials);
        certificates_free(a->certificates);
        sessions_free(a->sessions);
        tokens_free(a->tokens);
        ca_free(a->ca);
        buf_deinit(&a->description);
        free(a->own[0]);
        free(a->own[1]);
        free(a);
}

#define OWN_NAMES 4

/* The names that this machine has for itself, for who calls the server from here. */
static size_t own_names(char host[static 65], struct str ret[static OWN_NAMES])
{
        size_t n = 0;

        ret[n++] = STR("localhost");
        ret[n++] = STR("127.0.0.1");
        ret[n++] = STR("::1");
        if (gethostname(host, 65) == 0 &&
            host[strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-")] == '\0' &&
            *host)
                ret[n++] = str_of(host);
        return n;
}

/* Issues a certificate with its key. The authority's certificate is appended, because agents that join
 * know only its fingerprint. */
static int issue(struct access *a, const struct config *config, int64_t now_ms, struct buf *ret_cert,
                 struct buf *ret_key, struct err *err)
{
        struct str names[CONFIG_LISTS_MAX + OWN_NAMES];
        char host[65] = "";
        size_t n = own_names(host, names);
        int r;

        for (size_t i = 0; i < config->names.count; i++)
                names[n++] = str_of(config->names.items[i]);
        r = ca_issue_server(a->ca, names, n, now_ms, SERVER_VALID_S, ret_cert, ret_key, err);
        if (r == 0)
                buf_str(ret_cert, ca_cert_pem(a->ca));
        return r;
}

static void wipe(struct buf *key)
{
        if (key->n)
                explicit_bzero(key->p, key->n);
}

int access_tls(struct server *s, struct tls_context **ret, struct err *err)
{
        BUF_CLEANUP struct buf cert = {0}, key = {0};
        struct access *a = s->access;
        struct tls_config tls = {.ca_pem = ca_cert_pem(a->ca), .ask_client = true};
        unsigned char secret[KEY_FILE_BYTES];
        int64_t now = clock_wall_ms();
        int r = issue(a, &s->config, now, &cert, &key, err);
        struct err why;

        if (r != 0)
                return r;
        tls.cert_pem = buf_view(&cert);
        tls.key_pem = buf_view(&key);
        if (key_file_open(s->paths.ticket_key, "remove it, and the server makes another", secret, &why) == 0)
                tls.ticket_secret = secret;
        else
                log_warn("msg=\"agents cannot resume their sessions, and make whole handshakes\" why=\"%s\"",
                         LOG_TEXT(str_of(why.text)));
        r = tls_server_new(&tls, ret, err);
        explicit_bzero(secret, sizeof(secret));
        wipe(&key);
        a->issued_ms = now;
        return r;
}

int access_tls_renew(struct access *a, const struct config *config, struct tls_context *tls, struct err *err)
{
        BUF_CLEANUP struct buf cert = {0}, key = {0};
        int64_t now = clock_wall_ms();
        int r;

        if (now > a->issued_ms - STEP_BACK_MS && now < a->issued_ms + SERVER_VALID_S / 2 * 1000)
                return 0;
        r = issue(a, config, now, &cert, &key, err);
        if (r == 0)
                r = tls_server_renew(tls, buf_view(&cert), buf_view(&key), err);
        wipe(&key);
        if (r == 0)
                a->issued_ms = now;
        return r == 0 ? 1 : r;
}

/* ---- users */

static bool listed(const struct config_list *l, const char *who)
{
        for (size_t i = 0; i < l->count; i++)
                if (strcmp(l->items[i], who) == 0)
                        return true;
        return false;
}

bool access_own(const struct server *s, const char *who)
{
        for (size_t i = 0; i < 2; i++)
                if (s->access->own[i] && strcmp(s->access->own[i], who) == 0)
                        return true;
        return false;
}

enum role access_role(const struct server *s, const char *who)
{
        if (access_own(s, who) || listed(&server_settings(s)->admins, who))
                return ROLE_ADMIN;
        return listed(&server_settings(s)->operators, who) ? ROLE_OPERATOR : ROLE_USER;
}

struct bearer {
        call_fn *next;
        struct str token;
};

static void speak_for(struct server *s, struct call *c, const struct token *t)
{
        enum role today;

        c->who = str_dupz(t->name);
        today = access_role(s, c->who);
        c->role = t->role < today ? t->role : today;
        c->token_until_ms = t->expires_ms;
}

/* A server that follows another reads the tokens again for a call, unless it has just done so: one that was
 * removed there is refused here after that time. Returns false if they cannot be read. */
static bool follow_tokens(struct server *s)
{
        struct access *a = s->access;
        int64_t now = clock_boot_ms();
        struct tokens *fresh = NULL;
        struct err err = {0};

        if (!s->following || (a->tokens_ms && now - a->tokens_ms < TOKENS_FRESH_MS))
                return true;
        if (tokens_load(s->store, &fresh, &err) != 0) {
                log_warn("msg=\"the tokens cannot be read again: none is accepted\" why=\"%s\"",
                         LOG_TEXT(str_of(err.text)));
                return false;
        }
        tokens_free(a->tokens);
        a->tokens = fresh;
        a->tokens_ms = now;
        return true;
}

static void look_up_token(struct server *s, struct call *c)
{
        struct bearer *b = c->state;
        const struct token *t;

        if (follow_tokens(s) && tokens_look(s->access->tokens, b->token, TOKEN_USER,
                                            str_of(ca_fingerprint(s->access->ca)), clock_wall_ms(), &t) == 0)
                speak_for(s, c, t);
        c->state = NULL;
        c->state_free = NULL;
        call_io(c, b->next);
}

static void nothing(void *state)
{
        (void)state; /* the call's arena owns the memory */
}

void access_bearer(struct call *c, struct str token, call_fn *next)
{
        struct bearer *b = arena_alloc(&c->arena, sizeof(*b));

        b->next = next;
        b->token = arena_str(&c->arena, str_head(token, TOKEN_TEXT_MAX));
        c->state = b;
        c->state_free = nothing;
        call_core(c, look_up_token);
}

struct by_cookie {
        call_fn *next;
        struct str cookie, csrf;
        bool changes;
};

/* Checks that the token of the session is still valid, so that revoking the token ends the session. */
static void look_session(struct server *s, struct call *c)
{
        struct by_cookie *b = c->state;
        int64_t now = clock_wall_ms();
        const struct session *session = sessions_find(s->access->sessions, b->cookie, now);
        const struct token *t = session ? tokens_find(s->access->tokens, str_of(session->token_id)) : NULL;

        c->state = NULL;
        c->state_free = NULL;
        if (session && (!t || (t->expires_ms && t->expires_ms <= now))) {
                sessions_close(s->access->sessions, b->cookie);
        } else if (session && b->changes && !session_csrf_is(session, b->csrf)) {
                call_fail(c, 403, "csrf",
                          "a change with a session's cookie needs its X-Drover-Csrf header as well: load the "
                          "page again");
                return;
        } else if (session) {
                speak_for(s, c, t);
        }
        call_io(c, b->next);
}

void access_session(struct call *c, struct str cookie, call_fn *next)
{
        struct by_cookie *b = arena_alloc(&c->arena, sizeof(*b));
        enum http_method m = http_method(c->http);

        b->next = next;
        b->cookie = arena_str(&c->arena, cookie);
        b->csrf = arena_str(&c->arena, str_head(http_header(c->http, "X-Drover-Csrf"), SESSION_SECRET_TEXT));
        b->changes = m != HTTP_GET && m != HTTP_HEAD;
        c->state = b;
        c->state_free = nothing;
        call_core(c, look_session);
}

/* ---- agents */

static bool name_taken(const struct access *a, struct str name)
{
        struct certificate cert;
        size_t at = 0;

        while (certificates_next(a->certificates, &at, &cert))
                if (cert.revoked_ms == 0 && cert.until_ms > clock_wall_ms() && str_eqz(name, cert.name))
                        return true;
        return false;
}

static int64_t valid_s(const struct server *s)
{
        int64_t ms = server_settings(s)->agent_certificate_ms;

        return (ms ? ms : AGENT_VALID_MS) / 1000;
}

/* Only an admin may make tokens for agents. If the maker is no admin any more, the token's agents may
 * serve only jobs of the maker. */
static void ceiling_owners(struct server *s, const struct token *t, struct buf *ret)
{
        MEM_CLEANUP char *maker = str_dupz(t->created_by);
        struct owners said, his = {0}, cut;

        if (access_role(s, maker) == ROLE_ADMIN) {
                buf_str(ret, t->owners);
                return;
        }
        owners_parse(t->owners, &said);
        owners_add(&his, t->created_by);
        owners_cut(&said, &his, &cut);
        for (size_t i = 0; i < cut.count; i++) {
                buf_addz(ret, i ? "," : "");
                buf_str(ret, cut.items[i]);
        }
        owners_deinit(&said);
        owners_deinit(&his);
        owners_deinit(&cut);
}

int access_join(struct server *s, struct str token, struct str name, struct str csr_pem, struct buf *ret_name,
                struct buf *ret_cert, struct buf *ret_ca, struct err *err)
{
        struct access *a = s->access;
        struct str fingerprint = str_of(ca_fingerprint(a->ca));
        int64_t now = clock_wall_ms();
        MEM_CLEANUP char *asked = str_dupz(name);
        BUF_CLEANUP struct buf owners = {0};
        struct cert_facts facts;
        const struct token *t;
        int r = tokens_look(a->tokens, token, TOKEN_AGENT, fingerprint, now, &t);

        if (r > 0)
                return err_set(err, -EACCES, "%s", token_error_text(r));
        if (t->name.n)
                name = t->name;
        else if (name_taken(a, name))
                return err_set(err, -EACCES,
                               "an agent named '" STR_FMT
                               "' is known already: choose another name, or ask for a "
                               "token made for this name",
                               STR_ARG(name));
        else if (core_cleared(s->core, asked, STR("")))
                return err_set(err, -EACCES,
                               "agents named '" STR_FMT
                               "' are cleared for labelled data: that needs a token made for this name",
                               STR_ARG(name));
        if (!csr_name_valid(name))
                return err_set(err, -EINVAL,
                               "'" STR_FMT "' cannot be an agent's name: use letters, digits, . _ -",
                               STR_ARG(name));
        r = ca_issue_agent(a->ca, csr_pem, name, now, valid_s(s), ret_cert, &facts, err);
        if (r != 0)
                return r;
        buf_str(ret_name, name); /* before the token, which `name` may point into, is changed */
        buf_str(ret_ca, ca_cert_pem(a->ca));
        ceiling_owners(s, t, &owners);
        certificates_add(a->certificates, &facts,
                         &(struct cert_ceiling){buf_view(&owners), t->tags, t->labels, t->most},
                         turn_batch(s->turn));
        r = tokens_use(a->tokens, token, TOKEN_AGENT, fingerprint, now, turn_batch(s->turn), NULL);
        return r > 0 ? err_set(err, -EACCES, "%s", token_error_text(r)) : r;
}

int access_agent(struct server *s, struct str name, struct str serial, struct str csr_pem,
                 struct buf *ret_cert, struct certificate *ret, struct err *err)
{
        struct access *a = s->access;
        struct cert_facts facts;

        if (!certificates_find(a->certificates, serial, ret))
                return err_set(err, -EACCES, "this certificate was revoked or is not known: join again");
        if (csr_pem.n == 0 || turn_full(s->turn) ||
            certificates_enough(a->certificates, name, clock_wall_ms()))
                return 0;
        if (ca_issue_agent(a->ca, csr_pem, name, clock_wall_ms(), valid_s(s), ret_cert, &facts, err) != 0) {
                buf_reset(ret_cert);
                log_warn("msg=\"a certificate was not renewed\" agent=\"%s\" why=\"%s\"", LOG_TEXT(name),
                         LOG_TEXT(str_of(err ? err->text : "")));
                return 0;
        }
        certificates_add(a->certificates, &facts, &ret->ceiling, turn_batch(s->turn));
        certificates_find(a->certificates, str_of(facts.serial), ret);
        return 0;
}

struct access_revoked access_revoke(struct server *s, struct str name)
{
        struct access *a = s->access;
        struct access_revoked ret = {0};
        const struct token *t;
        size_t at = 0;

        ret.certificates = certificates_revoke(a->certificates, name, clock_wall_ms(), turn_batch(s->turn));
        while (tokens_next(a->tokens, &at, &t)) {
                char id[TOKEN_ID_TEXT];
                bool good = !t->limited || t->uses_left > 0;

                if (t->kind != TOKEN_AGENT || !str_eq(t->name, name))
                        continue;
                memcpy(id, t->id, sizeof(id));
                tokens_remove(a->tokens, str_of(id), turn_batch(s->turn));
                ret.tokens += good;
                at = 0; /* the table has changed, so start again */
        }
        return ret;
}

bool access_is_revoked(const struct access *a, struct str name)
{
        struct certificate cert;
        bool any = false;
        size_t at = 0;

        while (certificates_next(a->certificates, &at, &cert)) {
                if (!str_eqz(name, cert.name))
                        continue;
                if (cert.revoked_ms == 0)
                        return false;
                any = true;
        }
        return any;
}

void access_prune(struct server *s)
{
        struct access *a = s->access;
        int64_t now = clock_boot_ms();

        if (turn_full(s->turn) || (a->pruned_ms && now - a->pruned_ms < PRUNE_MS))
                return;
        a->pruned_ms = now;
        tokens_prune(a->tokens, clock_wall_ms(), turn_batch(s->turn));
        certificates_prune(a->certificates, clock_wall_ms(), turn_batch(s->turn));
}
