/* The back end for the protocols of libcurl: getting and probing. Single requests and their answers are in
 * curl_exchange.c, sending in curl_put.c.
 *
 * HTTP: a piece is continued by a range request that is valid only if the file is unchanged (If-Range); a
 * PUT is one request, which servers show when it is complete, and missing folders are made by WebDAV. FTP,
 * SFTP and files are written under a temporary name and renamed.
 */
#include <stdio.h>
#include <time.h>

#include "base/system/clock.h"
#include "move/curl_exchange.h"

static bool curl_handles(const struct mover_config *c, struct str scheme)
{
        (void)c;
        return curl_scheme_in(CURL_SCHEMES, scheme);
}

/* ---- get */

static void http_date(int64_t unix_s, char room[64])
{
        time_t when = (time_t)unix_s;
        struct tm tm;

        gmtime_r(&when, &tm);
        strftime(room, 64, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* Conditions: that it has changed, or, with a piece here already, that it has not. */
static struct curl_slist *conditions(struct exchange *x, struct curl_slist *list)
{
        struct transfer *t = x->t;
        char date[64];

        x->asked = t->resumable ? t->done : 0;
        const struct move_facts *f = x->asked ? &t->piece : &t->task->facts;
        http_date(f->modified_s, date);
        if (x->asked) {
                snprintf(x->why, sizeof(x->why), "bytes=%llu-", (unsigned long long)x->asked);
                list = exchange_line(list, "Range: ", x->why);
                list = exchange_if_same(list, f);
                x->why[0] = 0;
        } else if (t->task->known && f->etag[0]) {
                list = exchange_line(list, "If-None-Match: ", f->etag);
        } else if (t->task->known && f->modified_s) {
                list = exchange_line(list, "If-Modified-Since: ", date);
        }
        return list;
}

static int http_get(struct exchange *x, struct err *err)
{
        x->lines = conditions(x, x->lines);
        exchange_download(x);
        int r = exchange_perform(x, err);
        if (x->other) {
                x->t->resumable = false;
                return err_set(err, MOVER_AGAIN, "it has changed while it was fetched");
        }
        if (r != 0)
                return r;
        if (x->code == 304 && x->t->task->known)
                return MOVER_UNCHANGED;
        if (x->code == 416 && x->asked) { /* our piece is as long as the file, or longer */
                x->t->resumable = false;
                return err_set(err, MOVER_AGAIN, "it has changed while it was fetched");
        }
        if (x->code != 200 && x->code != 206)
                return exchange_refused(x, err);
        if (!x->begun) /* the file is empty */
                return exchange_begin_body(x);
        return 0;
}

/* Gets size and time first, then the contents, if size or time have changed. */
static int plain_get(struct exchange *x, struct err *err)
{
        struct transfer *t = x->t;
        curl_off_t size = -1;
        long when = -1;

        curl_easy_setopt(x->h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x->h, CURLOPT_FILETIME, 1L);
        int r = exchange_perform(x, err);
        if (r != 0)
                return r;
        curl_easy_getinfo(x->h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        curl_easy_getinfo(x->h, CURLINFO_FILETIME, &when);
        const struct move_facts *f = &t->task->facts;
        struct move_facts now = {.size = size >= 0 ? (uint64_t)size : MOVE_SIZE_ANY,
                                 .modified_s = when > 0 ? when : 0};
        if (t->task->known && f->modified_s && f->modified_s == now.modified_s && f->size == now.size)
                return MOVER_UNCHANGED;
        /* continues a piece of the same version */
        bool same = t->resumable && t->done && t->piece.modified_s == now.modified_s &&
                    t->piece.size == now.size && t->done < now.size;
        r = same ? 0 : transfer_restart(t);
        if (r < 0)
                return r;
        exchange_init(x, t, t->task->url);
        x->begun = x->body = true;
        t->found = t->piece = now;
        t->resumable = now.modified_s && now.size != MOVE_SIZE_ANY;
        curl_easy_setopt(x->h, CURLOPT_RESUME_FROM_LARGE, (curl_off_t)t->done);
        exchange_download(x);
        return exchange_perform(x, err);
}

static int get_it(struct transfer *t, struct err *err)
{
        unsigned streams = exchange_scheme(t, "http,https") && !exchange_s3(t) ? curl_streams_wanted(t) : 0;
        struct exchange x;
        int r = streams > 1 ? curl_get_streams(t, streams, err) : CURL_ONE_STREAM;

        if (r != CURL_ONE_STREAM)
                return r;
        exchange_init(&x, t, t->task->url);
        return x.http ? http_get(&x, err) : plain_get(&x, err);
}

/* ---- the back end */

static int64_t time_of(const struct exchange *x, CURLINFO what)
{
        curl_off_t us = 0;

        curl_easy_getinfo(x->h, what, &us);
        return us;
}

/* Returns whether the server answered the failed request at all, if only by refusing the connection's terms.
 * With TLS 1.3 a server that wants a certificate ends a connection that seemed to be set up. */
static bool has_spoken(const struct exchange *x)
{
        switch (x->result) {
        case CURLE_COULDNT_RESOLVE_PROXY:
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT:
        case CURLE_OPERATION_TIMEDOUT:
        case CURLE_GOT_NOTHING: return false;
        case CURLE_SEND_ERROR:
        case CURLE_RECV_ERROR: return time_of(x, CURLINFO_APPCONNECT_TIME_T) > 0;
        default: return true; /* errors of TLS, SSH or FTP: there was a connection */
        }
}

/* Probes the store. Any answer counts, an error too: it came from the store. */
static int probe_it(struct transfer *t, struct err *err)
{
        struct exchange x;

        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x.h, CURLOPT_FRESH_CONNECT, 1L);
        int r = exchange_perform(&x, err);
        int64_t named = time_of(&x, CURLINFO_NAMELOOKUP_TIME_T),
                connected = time_of(&x, CURLINFO_CONNECT_TIME_T);
        bool silent = r < 0 || (r == MOVER_AGAIN && !t->latency_us && !has_spoken(&x));
        if (connected > named)
                t->latency_us = (uint64_t)(connected - named); /* one round trip */
        else if (!silent)
                t->latency_us = (uint64_t)(clock_mono_ns() - x.began_ns) / 1000;
        return silent ? r : 0;
}

/* Calls fn with the task's credential prepared. */
static int shown(struct transfer *t, int (*fn)(struct transfer *t, struct err *err), struct err *err)
{
        struct curl_credential c;
        int r = curl_credential_init(&c, t, err);

        t->shown = &c;
        if (r == 0)
                r = fn(t, err);
        t->shown = NULL;
        curl_credential_deinit(&c);
        return r;
}

static int curl_get_file(struct transfer *t, struct err *err)
{
        return shown(t, get_it, err);
}

static int curl_put_file(struct transfer *t, struct err *err)
{
        return shown(t, curl_put, err);
}

static int curl_probe(struct transfer *t, struct err *err)
{
        return shown(t, probe_it, err);
}

static int curl_stat_url(struct transfer *t, struct err *err)
{
        return shown(t, curl_look, err);
}

static int curl_remove_it(struct transfer *t, struct err *err)
{
        return shown(t, curl_remove, err);
}

static int curl_create_folder(struct transfer *t, struct err *err)
{
        return shown(t, curl_make_folder, err);
}

static int curl_list_folder(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err)
{
        struct curl_credential c;
        int r = curl_credential_init(&c, t, err);

        t->shown = &c;
        if (r == 0)
                r = curl_list(t, fn, arg, err);
        t->shown = NULL;
        curl_credential_deinit(&c);
        return r;
}

static int curl_third_party_pull(struct transfer *t, const struct mover_pull *p, struct err *err)
{
        struct curl_credential c;
        int r = curl_credential_init(&c, t, err);

        t->shown = &c;
        if (r == 0)
                r = curl_pull(t, p, err);
        t->shown = NULL;
        curl_credential_deinit(&c);
        return r;
}

static int curl_free_space(struct transfer *t, uint64_t *ret_free, struct err *err)
{
        struct curl_credential c;
        int r = curl_credential_init(&c, t, err);

        t->shown = &c;
        if (r == 0)
                r = curl_space(t, ret_free, err);
        t->shown = NULL;
        curl_credential_deinit(&c);
        return r;
}

const struct mover_kind mover_curl = {
        "curl",           curl_handles,          curl_get_file,  curl_put_file,
        curl_probe,       curl_stat_url,         curl_remove_it, curl_create_folder,
        curl_list_folder, curl_third_party_pull, curl_free_space};
