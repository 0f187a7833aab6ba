/* A web hook is one POST with libcurl, with restricted settings: no redirects, no proxy, no cookies, no
 * user names or passwords, http and https only. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "notify/notify.h"

#define ANSWER_MAX 65536 /* bytes of the reply that are read and ignored */

struct talk {
        const struct notify_config *config;
        const struct notify_stop *stop;
        size_t read;
        bool refused; /* the address is not public */
};

static bool may_connect(const struct talk *t, const struct sockaddr *to)
{
        if (address_is_public(to))
                return true;
        for (size_t i = 0; i < t->config->hook_count; i++)
                if (address_entry_is(&t->config->hooks[i], to))
                        return true;
        return false;
}

/* The name has been resolved to this address, which will be used. An address that is refused here is not
 * connected to. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
        struct talk *t = arg;

        if (purpose != CURLSOCKTYPE_IPCXN || !may_connect(t, &a->addr)) {
                t->refused = true;
                return CURL_SOCKET_BAD;
        }
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static size_t on_answer(char *data, size_t size, size_t n, void *arg)
{
        struct talk *t = arg;

        (void)data;
        t->read += size * n;
        return t->read > ANSWER_MAX ? 0 : size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
        const struct talk *t = arg;

        (void)a, (void)b, (void)c, (void)d;
        return notify_stopping(t->stop);
}

static struct curl_slist *headers(const struct notify_message *m)
{
        char key[64 + UUID_TEXT];
        struct curl_slist *h = curl_slist_append(NULL, "Content-Type: application/json");

        snprintf(key, sizeof(key), "Idempotency-Key: \"%s\"", m->id);
        h = curl_slist_append(h, key);
        h = curl_slist_append(h, "Expect:");
        return curl_slist_append(h, "Accept:");
}

static void set_up(CURL *c, struct talk *t, const struct notify_message *m, struct curl_slist *h)
{
        curl_easy_setopt(c, CURLOPT_URL, m->to);
        curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(c, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
        curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
        curl_easy_setopt(c, CURLOPT_PROXY, "");
        curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(c, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
        curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(c, CURLOPT_FORBID_REUSE, 1L);
        curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)t->config->timeout_ms);
        curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)t->config->timeout_ms);
        curl_easy_setopt(c, CURLOPT_USERAGENT, "Drover");
        curl_easy_setopt(c, CURLOPT_HTTPHEADER, h);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, m->body.p);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE, (long)m->body.n);
        curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, on_open);
        curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
        curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_answer);
        curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
        curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
        curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
}

static enum notify_result hook_judge(const struct talk *t, CURLcode code, long status, struct err *why)
{
        if (t->refused && code != CURLE_OK) {
                err_set(why, -EACCES,
                        "the host's address is not public, and not one that notify: hooks: names");
                return NOTIFY_REFUSED;
        }
        if (status >= 200 && status < 300 && (code == CURLE_OK || code == CURLE_WRITE_ERROR))
                return NOTIFY_SENT;
        if (code != CURLE_OK && code != CURLE_WRITE_ERROR) {
                err_set(why, -EIO, "%s", curl_easy_strerror(code));
                return NOTIFY_AGAIN;
        }
        err_set(why, -EIO, "the host answered %ld%s", status,
                status >= 300 && status < 400 ? "; redirects are not followed" : "");
        return status == 408 || status == 425 || status == 429 || status >= 500 ? NOTIFY_AGAIN
                                                                                : NOTIFY_REFUSED;
}

enum notify_result hook_send(const struct notify_config *config, const struct notify_message *m,
                             const struct notify_stop *s, struct err *why)
{
        struct talk t = {.config = config, .stop = s};
        enum notify_result result;
        struct address_url url;
        struct curl_slist *h;
        long status = 0;
        CURLcode code;
        CURL *c;

        /* the list may have changed since the notice was accepted */
        if (address_url_parse(str_of(m->to), &url, why) != 0 || notify_hook_allowed(config, &url, why) != 0)
                return NOTIFY_REFUSED;
        c = curl_easy_init();
        if (!c) {
                err_set(why, -ENOMEM, "libcurl gives no handle");
                return NOTIFY_AGAIN;
        }
        h = headers(m);
        set_up(c, &t, m, h);
        code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status);
        result = hook_judge(&t, code, status, why);
        curl_slist_free_all(h);
        curl_easy_cleanup(c);
        return result;
}
