#include "server/config/openid.h"

#include <errno.h>

#include "base/mem.h"

#define VALUES_MAX 256u
#define URL_MAX    2000u
#define CALLBACK   "/page/openid/callback"

void config_openid_deinit(struct config_openid *o)
{
        free(o->issuer);
        free(o->client_id);
        free(o->secret_file);
        free(o->address);
        free(o->name);
        free(o->ca_file);
        free(o->scopes);
        id_token_users_deinit(&o->users);
        *o = (struct config_openid){0};
}

bool openid_url_split(struct str url, struct buf *ret_address, struct buf *ret_path)
{
        struct str rest = str_skip(url, 8), host, port;
        ptrdiff_t at = -1, colon;
        size_t n = 0;

        if (url.n > URL_MAX || !str_starts(url, STR("https://")))
                return false;
        for (size_t i = 0; i < url.n; i++)
                if ((unsigned char)url.p[i] <= ' ' || (unsigned char)url.p[i] > '~' ||
                    strchr("#\\\"<>^`{|}", url.p[i]))
                        return false;
        while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?')
                n++;
        host = str_head(rest, n);
        rest = str_skip(rest, n);
        if (str_find(host, '@') >= 0)
                return false;
        if (host.n && host.p[0] == '[')
                at = str_find(host, ']');
        colon = str_find(str_skip(host, at > 0 ? (size_t)at : 0), ':');
        port = colon < 0 ? STR("443") : str_skip(host, (at > 0 ? (size_t)at : 0) + (size_t)colon + 1);
        if (colon >= 0)
                host = str_head(host, (at > 0 ? (size_t)at : 0) + (size_t)colon);
        for (size_t i = 0; i < port.n; i++)
                if (port.p[i] < '0' || port.p[i] > '9')
                        return false;
        if (host.n == 0 || port.n == 0 || port.n > 5)
                return false;
        buf_printf(ret_address, STR_FMT ":" STR_FMT, STR_ARG(host), STR_ARG(port));
        buf_printf(ret_path, "%s" STR_FMT, rest.n && rest.p[0] == '/' ? "" : "/", STR_ARG(rest));
        return true;
}

/* ---- members */

static int openid_take_text(const struct doc *map, const char *key, char **ret, struct err *err)
{
        const struct doc *d = doc_get(map, key);
        struct str text = STR_NONE;
        int r = d ? doc_text(d, &text, err) : 0;

        if (r == 0 && d && text.n == 0)
                r = doc_refuse(d, err, "is empty");
        if (r == 0 && d)
                *ret = str_dupz(text);
        return r;
}

static int take_needed(const struct doc *map, const char *key, char **ret, const char *what, struct err *err)
{
        return doc_get(map, key) ? openid_take_text(map, key, ret, err) : doc_refuse(map, err, what);
}

/* Reads an https URL, which keeps no '/' at its end where none may stand. */
static int take_url(const struct doc *map, const char *key, bool no_path, char **ret, const char *what,
                    struct err *err)
{
        BUF_CLEANUP struct buf address = {0}, path = {0};
        int r = take_needed(map, key, ret, what, err);

        if (r != 0)
                return r;
        if (!openid_url_split(str_of(*ret), &address, &path) || strchr(*ret, '?'))
                return doc_refuse(doc_get(map, key), err, "must be an https URL");
        if (!no_path)
                return 0;
        if (path.n > 1)
                return doc_refuse(doc_get(map, key), err,
                                  "is https://HOST:PORT without a path: the provider sends users to " CALLBACK
                                  " there");
        if (str_ends(str_of(*ret), STR("/")))
                (*ret)[strlen(*ret) - 1] = '\0';
        return 0;
}

static int take_path(const struct doc *map, const char *key, char **ret, struct err *err)
{
        int r = openid_take_text(map, key, ret, err);

        if (r == 0 && *ret && **ret != '/')
                r = doc_refuse(doc_get(map, key), err, "must be a path that begins with /");
        return r;
}

static int add_scope(void *arg, struct str word, struct err *err)
{
        struct buf *words = arg;

        for (size_t i = 0; i < word.n; i++)
                if (word.p[i] <= ' ' || word.p[i] > '~' || word.p[i] == '"' || word.p[i] == '\\')
                        return err_set(err, -EINVAL, "'" STR_FMT "' is not a scope",
                                       STR_ARG(str_head(word, 40)));
        if (word.n && !str_eqz(word, "openid"))
                buf_printf(words, " " STR_FMT, STR_ARG(word));
        return 0;
}

static int read_scopes(const struct doc *d, char **ret, struct err *err)
{
        BUF_CLEANUP struct buf words = {0};
        int r;

        buf_addz(&words, d ? "openid" : "openid profile email");
        r = d ? doc_words(d, add_scope, &words, err) : 0;
        if (r == 0)
                *ret = buf_take(&words);
        return r;
}

/* ---- users */

static int add_value(void *arg, struct str word, struct err *err)
{
        struct id_token_rule *rule = arg;
        size_t n = 0;

        while (rule->values[n])
                n++;
        if (n == VALUES_MAX)
                return err_set(err, -E2BIG, "there are more than %u values", VALUES_MAX);
        rule->values[n] = str_dupz(word);
        return 0;
}

static int read_allow(const struct doc *map, struct id_token_users *u, struct err *err)
{
        const struct doc *d = doc_get(map, "allow");
        struct str word;
        int r = 0;

        if (d && d->kind == DOC_WORD && doc_text(d, &word, NULL) == 0 && str_eqz(word, "everybody")) {
                u->everybody = true;
                return 0;
        }
        if (!d || d->kind != DOC_MAP || !d->first)
                return doc_refuse(
                        d ? d : map, err,
                        "needs allow, a map from claims to values, as {groups: [drover]}, or the word "
                        "everybody: whom of the provider's users this server admits");
        for (const struct doc *x = d->first; x && r == 0; x = x->next) {
                struct id_token_rule *rule = &u->allow[u->allow_count];

                if (u->allow_count == ID_TOKEN_RULES_MAX)
                        return doc_refuse(x, err, "is one claim too many: there may be 16");
                u->allow_count++;
                rule->claim = str_dupz(x->key);
                rule->values = mem_zalloc((VALUES_MAX + 1) * sizeof(*rule->values));
                r = doc_words(x, add_value, rule, err);
        }
        return r;
}

static int openid_read_users(const struct doc *map, struct id_token_users *u, struct err *err)
{
        BUF_CLEANUP struct buf who = {0};
        int r = openid_take_text(map, "user_claim", &u->claim, err);

        if (r == 0 && !u->claim)
                u->claim = mem_dupz("preferred_username");
        if (r == 0)
                r = openid_take_text(map, "user_suffix", &u->suffix, err);
        if (r == 0)
                r = take_needed(map, "user_domain", &u->domain,
                                "needs user_domain: a user of the provider is NAME@user_domain here", err);
        if (r == 0 && principal_print(&who, STR("x"), str_of(u->domain)) != 0)
                r = doc_refuse(doc_get(map, "user_domain"), err, "is not a domain of users");
        return r ? r : read_allow(map, u, err);
}

static int read_rights(const struct doc *map, struct config_openid *o, struct err *err)
{
        const struct doc *role = doc_get(map, "role"), *session = doc_get(map, "session"),
                         *userinfo = doc_get(map, "userinfo");
        uint64_t ms = 0;
        int r = 0;

        if (role && !(role->kind == DOC_WORD && role_parse(role->text, &o->role) == 0))
                r = doc_refuse(role, err, "must be user, operator or admin");
        if (r == 0 && session)
                r = doc_duration(session, &ms, err);
        if (r == 0 && session && ms == 0)
                r = doc_refuse(session, err, "must be longer than that");
        if (r == 0 && userinfo)
                r = doc_bool(userinfo, &o->userinfo, err);
        o->session_ms = (int64_t)ms;
        return r;
}

int config_openid_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {
                "issuer",     "client_id",   "client_secret_file", "address", "name",
                "ca_file",    "scopes",      "userinfo",           "role",    "session",
                "user_claim", "user_suffix", "user_domain",        "allow",   NULL};
        struct config_openid *o = place;
        int r;

        if (d->kind != DOC_MAP)
                return doc_refuse(d, err, "must be a map");
        r = doc_only(d, keys, err);
        config_openid_deinit(o);
        if (r == 0)
                r = take_url(d, "issuer", false, &o->issuer, "needs issuer: the provider's https URL", err);
        if (r == 0)
                r = take_url(d, "address", true, &o->address,
                             "needs address: the page's own, as https://head.example.org:7332", err);
        if (r == 0)
                r = take_needed(d, "client_id", &o->client_id,
                                "needs client_id: what the provider calls this server", err);
        if (r == 0)
                r = take_path(d, "client_secret_file", &o->secret_file, err);
        if (r == 0)
                r = take_path(d, "ca_file", &o->ca_file, err);
        if (r == 0)
                r = openid_take_text(d, "name", &o->name, err);
        if (r == 0)
                r = read_scopes(doc_get(d, "scopes"), &o->scopes, err);
        if (r == 0)
                r = read_rights(d, o, err);
        return r ? r : openid_read_users(d, &o->users, err);
}
