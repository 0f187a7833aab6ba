#include "move/curl_credential.h"

#include <ctype.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/secret.h"
#include "move/curl_exchange.h"

/* ---- S3 */

/* The lines of one profile (the first, or [default] where there is one) of a credentials file. */
static bool next_setting(struct str *text, struct str *ret_name, struct str *ret_value,
                         struct str *ret_section)
{
        struct str line;

        while (text->n && str_cut(text, '\n', &line)) {
                line = str_trim(line);
                if (line.n > 1 && line.p[0] == '[' && line.p[line.n - 1] == ']') {
                        *ret_section = str_trim(str_make(line.p + 1, line.n - 2));
                        continue;
                }
                if (!line.n || line.p[0] == '#' || line.p[0] == ';' || str_find(line, '=') < 0)
                        continue;
                *ret_value = line;
                str_cut(ret_value, '=', ret_name);
                *ret_name = str_trim(*ret_name);
                *ret_value = str_trim(*ret_value);
                return true;
        }
        return false;
}

static bool setting(struct str text, const char *name, struct str *ret)
{
        struct str rest = text, section = STR_NONE, first = STR_NONE, n, v;
        bool found = false, has_default = str_search(text, STR("[default]")) >= 0, begun = false;

        while (next_setting(&rest, &n, &v, &section)) {
                if (!begun)
                        first = section;
                begun = true;
                if ((has_default ? str_eqz(section, "default") : str_eq(section, first)) &&
                    str_ieqz(n, name)) {
                        *ret = v;
                        found = true;
                }
        }
        return found;
}

/* Appends a path in the form that is signed: every byte but these, and '/', is escaped once. */
static void add_path(struct buf *out, struct str path)
{
        for (size_t i = 0; i < path.n; i++) {
                unsigned char c = (unsigned char)path.p[i];
                unsigned v;

                if (c == '%' && i + 2 < path.n && isxdigit((unsigned char)path.p[i + 1]) &&
                    isxdigit((unsigned char)path.p[i + 2])) {
                        char hex[3] = {path.p[i + 1], path.p[i + 2], 0};

                        sscanf(hex, "%2x", &v);
                        c = (unsigned char)v;
                        i += 2;
                }
                if (isalnum(c) || strchr("-._~/", c))
                        buf_char(out, (char)c);
                else
                        buf_printf(out, "%%%02X", c);
        }
}

/* s3://BUCKET/KEY at the endpoint; a URL of http(s) with its path as it is signed. */
static void s3_url(struct str url, struct str endpoint, struct str region, struct buf *out)
{
        struct str rest, host, query = STR_NONE;
        ptrdiff_t at = str_search(url, STR("://"));

        rest = str_skip(url, (size_t)at + 3);
        if (str_istarts(url, STR("s3://"))) {
                while (str_ends(endpoint, STR("/")))
                        endpoint.n--;
                if (endpoint.n)
                        buf_str(out, endpoint);
                else
                        buf_printf(out, "https://s3." STR_FMT ".amazonaws.com", STR_ARG(region));
                buf_char(out, '/');
                add_path(out, rest);
                return;
        }
        ptrdiff_t slash = str_find(rest, '/');
        host = slash < 0 ? rest : str_head(rest, (size_t)slash);
        rest = slash < 0 ? STR("/") : str_skip(rest, (size_t)slash);
        ptrdiff_t q = str_find(rest, '?');
        if (q >= 0) {
                query = str_skip(rest, (size_t)q);
                rest = str_head(rest, (size_t)q);
        }
        buf_str(out, str_head(url, (size_t)at + 3));
        buf_str(out, host);
        add_path(out, rest);
        buf_str(out, query);
}

static int s3_init(struct curl_credential *c, struct str url, struct err *err)
{
        struct str text = buf_view(&c->c->data), id, secret, session = STR_NONE, region = STR("us-east-1"),
                   endpoint = STR_NONE;
        struct buf asked = {0};

        if (!setting(text, "aws_access_key_id", &id) || !setting(text, "aws_secret_access_key", &secret))
                return err_set(err, MOVER_DENIED, "it has no aws_access_key_id or no aws_secret_access_key");
        setting(text, "aws_session_token", &session);
        setting(text, "region", &region);
        setting(text, "endpoint_url", &endpoint);
        if (endpoint.n && !str_istarts(endpoint, STR("https://")) && !str_istarts(endpoint, STR("http://")))
                return err_set(err, MOVER_DENIED, "its endpoint_url is neither http:// nor https://");
        s3_url(url, endpoint, region, &asked);
        c->url = buf_take(&asked);
        buf_str(&c->id, id);
        buf_str(&c->secret, secret);
        if (session.n) {
                buf_addz(&c->session, "x-amz-security-token: ");
                buf_str(&c->session, session);
        }
        buf_printf(&c->sign, "aws:amz:" STR_FMT ":s3", STR_ARG(region));
        buf_z(&c->id), buf_z(&c->secret), buf_z(&c->session), buf_z(&c->sign);
        return 0;
}

/* ---- all */

static bool one_of(struct str scheme, const char *list)
{
        struct str rest = str_of(list), one;

        while (str_cut(&rest, ',', &one))
                if (str_ieq(one, scheme))
                        return true;
        return false;
}

/* A connection of SSH is authenticated once, by its key. It is kept for the next request only if that has the
 * same key, or neither has one. */
static void drop_other_keys(const struct move_credential *mine, struct str scheme)
{
        static unsigned char last[SHA256_DIGEST_LENGTH]; /* zeros: no key */
        unsigned char now[SHA256_DIGEST_LENGTH] = {0};

        if (!str_ieqz(scheme, "sftp"))
                return;
        if (mine->type && !strcmp(mine->type, "file"))
                EVP_Digest(mine->data.p ? mine->data.p : "", mine->data.n, now, NULL, EVP_sha256(), NULL);
        if (memcmp(last, now, sizeof(now)) != 0)
                exchange_close();
        memcpy(last, now, sizeof(now));
}

int curl_credential_init(struct curl_credential *c, const struct transfer *t, struct err *err)
{
        static const struct {
                const char *type, *schemes;
        } where[] = {{"token", "https"}, {"proxy", "https,ftps"}, {"s3", "s3,http,https"}, {"file", "sftp"}};
        const struct move_credential *mine = &t->task->credential;
        struct str url = str_of(t->task->url), scheme = mover_scheme(url);
        size_t i = 0;

        *c = (struct curl_credential){.file = -1};
        drop_other_keys(mine, scheme);
        if (!mine->type && str_ieqz(scheme, "s3"))
                return err_set(err, MOVER_DENIED, "there is no key for it");
        if (!mine->type)
                return 0;
        c->c = mine;
        while (i < sizeof(where) / sizeof(*where) && strcmp(where[i].type, mine->type) != 0)
                i++;
        if (i == sizeof(where) / sizeof(*where) || !one_of(scheme, where[i].schemes))
                return err_set(err, MOVER_DENIED,
                               "a credential of the type %s is of no use for " STR_FMT "://", mine->type,
                               STR_ARG(scheme));
        if (!strcmp(mine->type, "token")) {
                buf_str(&c->secret, str_trim(buf_view(&mine->data)));
                buf_z(&c->secret);
        }
        if (!strcmp(mine->type, "s3"))
                return s3_init(c, url, err);
        if (!strcmp(mine->type, "file") && (c->file = move_credential_file(mine)) < 0)
                return err_set(err, MOVER_AGAIN, "the key cannot be written into memory: %s",
                               strerror(errno));
        return 0;
}

void curl_credential_deinit(struct curl_credential *c)
{
        free(c->url);
        secret_deinit(&c->id);
        secret_deinit(&c->secret);
        secret_deinit(&c->session);
        buf_deinit(&c->sign);
        if (c->file >= 0)
                close(c->file);
}

static void set_certificate(const struct move_credential *m, CURL *h)
{
        struct curl_blob pem = {m->data.p, m->data.n, CURL_BLOB_COPY};

        curl_easy_setopt(h, CURLOPT_SSLCERT_BLOB, &pem);
        curl_easy_setopt(h, CURLOPT_SSLKEY_BLOB, &pem);
        curl_easy_setopt(h, CURLOPT_SSLCERTTYPE, "PEM");
        curl_easy_setopt(h, CURLOPT_SSLKEYTYPE, "PEM");
}

struct curl_slist *curl_credential_set(const struct curl_credential *c, CURL *h, struct curl_slist *lines)
{
        char path[40];

        if (!c->c)
                return lines;
        if (!strcmp(c->c->type, "token")) {
                curl_easy_setopt(h, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
                curl_easy_setopt(h, CURLOPT_XOAUTH2_BEARER, c->secret.p ? c->secret.p : "");
        } else if (!strcmp(c->c->type, "proxy")) {
                set_certificate(c->c, h);
        } else if (!strcmp(c->c->type, "s3")) {
                curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L); /* a signature is valid for one host */
                curl_easy_setopt(h, CURLOPT_AWS_SIGV4, c->sign.p);
                curl_easy_setopt(h, CURLOPT_USERNAME, c->id.p);
                curl_easy_setopt(h, CURLOPT_PASSWORD, c->secret.p);
                lines = curl_slist_append(lines, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
                if (c->session.n)
                        lines = curl_slist_append(lines, c->session.p);
        } else {
                snprintf(path, sizeof(path), "/proc/self/fd/%d", c->file);
                curl_easy_setopt(h, CURLOPT_SSH_AUTH_TYPES, (long)CURLSSH_AUTH_PUBLICKEY);
                curl_easy_setopt(h, CURLOPT_SSH_PRIVATE_KEYFILE, path);
        }
        return lines;
}
