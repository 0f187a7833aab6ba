/* The back end for what libcurl speaks. One handle for all transfers, so that connections are used again.
 *
 * HTTP: a piece is gone on with by a range that holds only if the file is still the same (If-Range); a PUT is
 * one request, which servers show when it is whole, and folders that are missing are made as WebDAV has it.
 * FTP, SFTP and files are written under a temporary name and renamed. */
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "move/curl_credential.h"

#define PROTOCOLS  "http,https,ftp,ftps,sftp,file"
#define SCHEMES    PROTOCOLS ",s3"
#define OF_HTTP    "http,https,s3"
#define SAID_MAX   1024         /* of an error that a store explains */
#define REDIRECTED "http,https" /* a server may not send us to a file */
#define STALL_MS   60000
#define CONNECT_S  30L
#define HOPS       5L

struct exchange { /* one request */
        struct transfer *t;
        CURL *h;
        char why[CURL_ERROR_SIZE];
        bool http, body, begun; /* body: what comes is the file */
        uint64_t asked, sent, length;
        long code;
        int error; /* -errno of ours: why we stopped it */
        int64_t began_ns;
        struct curl_slist *lines; /* of the request's head */
        char said[SAID_MAX];      /* the beginning of an answer that is not the file */
        size_t said_n;
};

static bool handles(const struct mover_config *c, struct str scheme)
{
        struct str rest = STR(SCHEMES), one;
        (void)c;
        while (str_cut(&rest, ',', &one))
                if (str_ieq(one, scheme))
                        return true;
        return false;
}

static bool is_scheme(const struct transfer *t, const char *list)
{
        struct str rest = str_of(list), one;
        while (str_cut(&rest, ',', &one))
                if (str_ieq(one, mover_scheme(str_of(t->task->url))))
                        return true;
        return false;
}

static bool is_s3(const struct transfer *t)
{
        return is_scheme(t, "s3") || (t->task->credential.type && !strcmp(t->task->credential.type, "s3"));
}

/* ---- callbacks */

static void note_answer(struct exchange *x)
{
        if (!x->t->latency_us)
                x->t->latency_us = (uint64_t)(clock_mono_ns() - x->began_ns) / 1000;
}

static bool header_is(struct str line, const char *name, struct str *ret)
{
        struct str n;
        *ret = line;
        if (!str_cut(ret, ':', &n) || !ret->p || !str_ieqz(n, name))
                return false;
        *ret = str_trim(*ret);
        return true;
}

/* sha-256=BASE64 of Digest (RFC 3230), sha-256=:BASE64: of Repr-Digest (RFC 9530) */
static void take_digest(struct transfer *t, struct str v)
{
        struct str one, name;
        while (str_cut(&v, ',', &one)) {
                one = str_trim(one);
                if (!str_cut(&one, '=', &name) || !str_ieqz(name, "sha-256"))
                        continue;
                if (one.n > 2 && one.p[0] == ':')
                        one = str_make(one.p + 1, one.n - 2);
                free(t->digest);
                t->digest = str_dupz(one);
        }
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        struct transfer *t = x->t;
        struct str line = str_make(p, size * n), v;
        note_answer(x);
        if (str_starts(line, STR("HTTP/"))) { /* of a new answer, perhaps behind a redirection */
                t->found.etag[0] = 0;
                t->found.modified_s = 0;
                free(t->digest);
                t->digest = NULL;
        } else if (header_is(line, "etag", &v) && v.n < sizeof(t->found.etag)) {
                snprintf(t->found.etag, sizeof(t->found.etag), STR_FMT, STR_ARG(v));
        } else if (header_is(line, "last-modified", &v)) {
                MEM_CLEANUP char *date = str_dupz(v);
                time_t when = curl_getdate(date, NULL);
                t->found.modified_s = when > 0 ? when : 0;
        } else if (header_is(line, "digest", &v) || header_is(line, "repr-digest", &v)) {
                take_digest(t, v);
        }
        return size * n;
}

/* The first bytes of an answer: are they the file's, and from where on? */
static int begin_body(struct exchange *x)
{
        struct transfer *t = x->t;
        curl_off_t length = -1;
        x->begun = true;
        curl_easy_getinfo(x->h, CURLINFO_RESPONSE_CODE, &x->code);
        x->body = !x->http || x->code == 200 || x->code == 206;
        if (!x->body)
                return 0;
        if (x->http && x->asked && x->code == 200) { /* from its beginning after all */
                int r = transfer_restart(t);
                if (r < 0)
                        return r;
        }
        curl_easy_getinfo(x->h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length >= 0)
                t->found.size = t->done + (uint64_t)length;
        t->piece = t->found;
        t->resumable = x->http && (t->found.etag[0] || t->found.modified_s) &&
                       t->found.etag[0] != 'W'; /* a weak one: alike, not the same */
        return 0;
}

static void keep_words(struct exchange *x, const char *p, size_t n)
{
        size_t room = sizeof(x->said) - x->said_n;
        n = n < room ? n : room;
        memcpy(x->said + x->said_n, p, n);
        x->said_n += n;
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        note_answer(x);
        x->error = x->begun ? 0 : begin_body(x);
        if (x->error == 0 && x->body)
                x->error = transfer_write(x->t, p, size * n);
        else
                keep_words(x, p, size * n);
        return x->error ? 0 : size * n;
}

static size_t on_nothing(char *p, size_t size, size_t n, void *arg)
{
        note_answer(arg);
        keep_words(arg, p, size * n);
        return size * n;
}

static size_t on_read(char *p, size_t size, size_t n, void *arg)
{
        struct exchange *x = arg;
        long got = transfer_read(x->t, x->sent, p, size * n);
        if (got < 0) {
                x->error = (int)got;
                return CURL_READFUNC_ABORT;
        }
        x->sent += (uint64_t)got;
        x->t->moved += (uint64_t)got;
        return (size_t)got;
}

static int on_seek(void *arg, curl_off_t offset, int origin)
{
        struct exchange *x = arg;
        if (origin != SEEK_SET)
                return CURL_SEEKFUNC_CANTSEEK;
        x->sent = (uint64_t)offset;
        return CURL_SEEKFUNC_OK;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
        struct exchange *x = arg;
        (void)a, (void)b, (void)c, (void)d;
        x->error = x->error ? x->error : transfer_alive(x->t);
        return x->error != 0;
}

/* ---- one request */

static CURL *the_handle(void)
{
        static CURL *h;
        if (!h) {
                curl_global_init(CURL_GLOBAL_DEFAULT);
                h = curl_easy_init();
                if (!h)
                        abort();
        }
        curl_easy_reset(h);
        return h;
}

/* A server of SSH is believed only when its key is known (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
static void set_known_hosts(CURL *h, const struct mover_config *c)
{
        BUF_CLEANUP struct buf path = {0};
        const struct passwd *me = c->known_hosts ? NULL : getpwuid(geteuid());
        if (c->known_hosts)
                buf_addz(&path, c->known_hosts);
        else if (me)
                buf_printf(&path, "%s/.ssh/known_hosts", me->pw_dir);
        if (!c->known_hosts && access(buf_z(&path), R_OK) < 0) {
                buf_reset(&path);
                buf_addz(&path, "/etc/ssh/ssh_known_hosts");
        }
        curl_easy_setopt(h, CURLOPT_SSH_KNOWNHOSTS, buf_z(&path));
}

/* perform() ends it. */
static void exchange_init(struct exchange *x, struct transfer *t, const char *url)
{
        const struct mover_config *c = t->config;
        const struct curl_credential *shown = t->shown;
        *x = (struct exchange){.t = t, .h = the_handle(), .began_ns = clock_mono_ns()};
        x->http = is_scheme(t, OF_HTTP);
        if (shown->url && url == t->task->url)
                url = shown->url;
        curl_easy_setopt(x->h, CURLOPT_URL, url);
        curl_easy_setopt(x->h, CURLOPT_PROTOCOLS_STR, PROTOCOLS);
        curl_easy_setopt(x->h, CURLOPT_REDIR_PROTOCOLS_STR, REDIRECTED);
        curl_easy_setopt(x->h, CURLOPT_FOLLOWLOCATION, 1L);
        curl_easy_setopt(x->h, CURLOPT_MAXREDIRS, HOPS);
        curl_easy_setopt(x->h, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(x->h, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
        curl_easy_setopt(x->h, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(x->h, CURLOPT_LOW_SPEED_TIME,
                         (long)((c->stall_ms ? c->stall_ms : STALL_MS) + 999) / 1000);
        curl_easy_setopt(x->h, CURLOPT_ERRORBUFFER, x->why);
        curl_easy_setopt(x->h, CURLOPT_USERAGENT, "drover-mover/" DROVER_VERSION);
        curl_easy_setopt(x->h, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(x->h, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(x->h, CURLOPT_XFERINFODATA, x);
        curl_easy_setopt(x->h, CURLOPT_HEADERFUNCTION, on_header);
        curl_easy_setopt(x->h, CURLOPT_HEADERDATA, x);
        curl_easy_setopt(x->h, CURLOPT_WRITEFUNCTION, on_nothing);
        curl_easy_setopt(x->h, CURLOPT_WRITEDATA, x);
        if (c->ca_file)
                curl_easy_setopt(x->h, CURLOPT_CAINFO, c->ca_file);
        if (is_scheme(t, "sftp"))
                set_known_hosts(x->h, c);
        x->lines = curl_credential_set(shown, x->h, NULL);
}

/* An outcome for what curl says, which may be about any of its protocols. */
static int curl_outcome(CURLcode r)
{
        switch (r) {
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_URL_MALFORMAT:
        case CURLE_REMOTE_ACCESS_DENIED:
        case CURLE_REMOTE_FILE_NOT_FOUND:
        case CURLE_FILE_COULDNT_READ_FILE:
        case CURLE_PEER_FAILED_VERIFICATION:
        case CURLE_SSL_CACERT_BADFILE:
        case CURLE_TOO_MANY_REDIRECTS:
        case CURLE_QUOTE_ERROR: return MOVER_REFUSED;
        case CURLE_LOGIN_DENIED:
        case CURLE_SSL_CERTPROBLEM: return MOVER_DENIED;
        default: return MOVER_AGAIN;
        }
}

/* What an S3 store says in its own words: <Code>...</Code>; empty: nothing. */
static struct str s3_code(const struct exchange *x)
{
        struct str rest = str_make(x->said, x->said_n), code = STR_NONE;
        ptrdiff_t at = is_s3(x->t) ? str_search(rest, STR("<Code>")) : -1;
        if (at < 0)
                return STR_NONE;
        rest = str_skip(rest, (size_t)at + 6);
        str_cut(&rest, '<', &code);
        for (size_t i = 0; i < code.n; i++)
                if (!isalnum((unsigned char)code.p[i]))
                        return STR_NONE;
        return str_head(code, code.n < 64 ? code.n : 64);
}

static int http_outcome(const struct exchange *x, struct err *err)
{
        long code = x->code;
        struct str s3 = s3_code(x);
        bool denied =
                code == 401 || code == 403 || str_eqz(s3, "ExpiredToken") || str_eqz(s3, "InvalidToken");
        const char *what = code == 404 || code == 410                  ? "it is not there"
                           : denied                                    ? "the store does not allow it"
                           : code == 507                               ? "the store is full"
                           : code >= 500                               ? "the store cannot do it now"
                           : code == 408 || code == 425 || code == 429 ? "the store is too busy"
                                                                       : "the store refuses it";
        bool again = code == 408 || code == 425 || code == 429 ||
                     (code >= 500 && code != 501 && code != 505 && code != 507);
        return err_set(err,
                       again    ? MOVER_AGAIN
                       : denied ? MOVER_DENIED
                                : MOVER_REFUSED,
                       "%s (HTTP %ld%s" STR_FMT ")", what, code, s3.n ? ", " : "", STR_ARG(s3));
}

/* 0: there was an answer; of HTTP its code is in x->code. */
static int perform(struct exchange *x, struct err *err)
{
        curl_easy_setopt(x->h, CURLOPT_HTTPHEADER, x->lines);
        CURLcode r = curl_easy_perform(x->h);
        curl_easy_setopt(x->h, CURLOPT_HTTPHEADER, NULL);
        curl_slist_free_all(x->lines);
        x->lines = NULL;
        curl_easy_getinfo(x->h, CURLINFO_RESPONSE_CODE, &x->code);
        if (x->error < 0)
                return x->error;
        if (r == CURLE_OK)
                return 0;
        return err_set(err, curl_outcome(r), "%s%s%s", curl_easy_strerror(r), *x->why ? ": " : "", x->why);
}

/* ---- get */

static struct curl_slist *add_line(struct curl_slist *list, const char *fmt, const char *value)
{
        BUF_CLEANUP struct buf b = {0};
        buf_addz(&b, fmt);
        buf_addz(&b, value);
        return curl_slist_append(list, buf_z(&b));
}

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
                list = add_line(list, "Range: ", x->why);
                list = add_line(list, "If-Range: ", f->etag[0] ? f->etag : date);
                x->why[0] = 0;
        } else if (t->task->known && f->etag[0]) {
                list = add_line(list, "If-None-Match: ", f->etag);
        } else if (t->task->known && f->modified_s) {
                list = add_line(list, "If-Modified-Since: ", date);
        }
        return list;
}

static int http_get(struct exchange *x, struct err *err)
{
        x->lines = conditions(x, x->lines);
        curl_easy_setopt(x->h, CURLOPT_WRITEFUNCTION, on_body);
        int r = perform(x, err);
        if (r != 0)
                return r;
        if (x->code == 304 && x->t->task->known)
                return MOVER_UNCHANGED;
        if (x->code == 416 && x->asked) { /* our piece is as long as it, or longer */
                x->t->resumable = false;
                return err_set(err, MOVER_AGAIN, "it has changed while it was fetched");
        }
        if (x->code != 200 && x->code != 206)
                return http_outcome(x, err);
        if (!x->begun) /* it is empty */
                return begin_body(x);
        return 0;
}

/* Size and time first; then the contents, if these are others than those known. */
static int plain_get(struct exchange *x, struct err *err)
{
        struct transfer *t = x->t;
        curl_off_t size = -1;
        long when = -1;
        curl_easy_setopt(x->h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x->h, CURLOPT_FILETIME, 1L);
        int r = perform(x, err);
        if (r != 0)
                return r;
        curl_easy_getinfo(x->h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        curl_easy_getinfo(x->h, CURLINFO_FILETIME, &when);
        const struct move_facts *f = &t->task->facts;
        struct move_facts now = {.size = size >= 0 ? (uint64_t)size : MOVE_SIZE_ANY,
                                 .modified_s = when > 0 ? when : 0};
        if (t->task->known && f->modified_s && f->modified_s == now.modified_s && f->size == now.size)
                return MOVER_UNCHANGED;
        /* a piece of the same version is gone on with */
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
        curl_easy_setopt(x->h, CURLOPT_WRITEFUNCTION, on_body);
        return perform(x, err);
}

static int get_it(struct transfer *t, struct err *err)
{
        struct exchange x;
        exchange_init(&x, t, t->task->url);
        return x.http ? http_get(&x, err) : plain_get(&x, err);
}

/* ---- put */

/* WebDAV: the folders above, outermost first. What is there already answers 405. *ret_made: there was one to
 * make. */
static int make_folders(struct transfer *t, bool *ret_made, struct err *err)
{
        const char *url = t->task->url, *path = strstr(url, "://");
        path = path ? strchr(path + 3, '/') : NULL;
        for (const char *slash = path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
                struct exchange x;
                MEM_CLEANUP char *folder = mem_dup(url, (size_t)(slash + 1 - url));
                exchange_init(&x, t, folder);
                curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "MKCOL");
                int r = perform(&x, err);
                if (r != 0)
                        return r;
                *ret_made = *ret_made || x.code == 201;
        }
        return 0;
}

static void upload(struct exchange *x)
{
        curl_easy_setopt(x->h, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(x->h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->t->task->size);
        curl_easy_setopt(x->h, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(x->h, CURLOPT_READDATA, x);
        curl_easy_setopt(x->h, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(x->h, CURLOPT_SEEKDATA, x);
}

static int http_put_once(struct exchange *x, struct transfer *t, struct err *err)
{
        exchange_init(x, t, t->task->url);
        upload(x);
        return perform(x, err);
}

/* What the store says it has now; a store that does not answer this is believed. */
static int compare_sent(struct transfer *t, struct err *err)
{
        struct exchange x;
        curl_off_t size = -1;
        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        if (perform(&x, NULL) != 0 || (x.http && x.code != 200))
                return 0;
        curl_easy_getinfo(x.h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        return size >= 0 && (uint64_t)size != t->task->size
                       ? err_set(err, MOVER_AGAIN, "the store has %lld bytes of %llu", (long long)size,
                                 (unsigned long long)t->task->size)
                       : 0;
}

static int http_put(struct transfer *t, struct err *err)
{
        struct exchange x;
        bool made = false;
        int r = http_put_once(&x, t, err);
        if (r == 0 && !is_s3(t) && (x.code == 404 || x.code == 409 || x.code == 500)) {
                r = make_folders(t, &made, err); /* one is missing; 500 is nginx's */
                if (r == 0 && made)
                        r = http_put_once(&x, t, err);
        }
        if (r == 0 && (x.code < 200 || x.code > 299))
                r = http_outcome(&x, err);
        return r == 0 ? compare_sent(t, err) : r;
}

/* The path of the task's URL as it is meant; the caller's. */
static char *url_path(const struct transfer *t)
{
        CURLU *u = curl_url();
        char *path = NULL, *ret = NULL;
        if (curl_url_set(u, CURLUPART_URL, t->task->url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
            curl_url_get(u, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK)
                ret = mem_dupz(path);
        curl_free(path);
        curl_url_cleanup(u);
        return ret;
}

static int file_put(struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = url_path(t), *room = mem_alloc(65536);
        BUF_CLEANUP struct buf temp = {0};
        if (!path)
                return err_set(err, MOVER_REFUSED, "it names no file");
        buf_printf(&temp, "%s.drover-%s.tmp", path, t->task->tag);
        int fd = open(buf_z(&temp), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644), r = 0;
        if (fd < 0)
                return -errno;
        for (uint64_t at = 0; r == 0 && at < t->task->size;) {
                long n = transfer_read(t, at, room, 65536);
                r = n < 0 ? (int)n : transfer_alive(t);
                for (ssize_t put = 0, k; r == 0 && put < n; put += k) {
                        k = write(fd, room + put, (size_t)(n - put));
                        if (k < 0)
                                r = -errno;
                }
                at += n > 0 ? (uint64_t)n : 0;
                t->moved += n > 0 ? (uint64_t)n : 0;
        }
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && rename(buf_z(&temp), path) < 0)
                r = -errno;
        if (r < 0)
                unlink(buf_z(&temp));
        return r;
}

static void quote_sftp(struct buf *b, const char *path)
{
        buf_char(b, '"');
        for (; *path; path++) {
                if (*path == '"' || *path == '\\')
                        buf_char(b, '\\');
                buf_char(b, *path);
        }
        buf_char(b, '"');
}

/* The commands that make the temporary file the one that is meant. */
static struct curl_slist *renaming(const struct transfer *t, const char *path, const char *temp)
{
        BUF_CLEANUP struct buf b = {0};
        struct curl_slist *list;
        const char *last = strrchr(path, '/'), *temp_last = strrchr(temp, '/');
        if (!is_scheme(t, "sftp")) { /* the session stands in the folder */
                list = add_line(NULL, "RNFR ", temp_last ? temp_last + 1 : temp);
                return add_line(list, "RNTO ", last ? last + 1 : path);
        }
        buf_addz(&b, "*rm "); /* with * it may fail; most servers don't rename onto a file */
        quote_sftp(&b, path);
        list = curl_slist_append(NULL, buf_z(&b));
        buf_reset(&b);
        buf_addz(&b, "rename ");
        quote_sftp(&b, temp);
        buf_char(&b, ' ');
        quote_sftp(&b, path);
        return curl_slist_append(list, buf_z(&b));
}

static int renamed_put(struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = url_path(t);
        BUF_CLEANUP struct buf url = {0}, temp = {0};
        struct exchange x;
        if (!path || strpbrk(path, "\r\n"))
                return err_set(err, MOVER_REFUSED, "it names no file");
        buf_printf(&url, "%s.drover-%s.tmp", t->task->url, t->task->tag);
        buf_printf(&temp, "%s.drover-%s.tmp", path, t->task->tag);
        exchange_init(&x, t, buf_z(&url));
        upload(&x);
        struct curl_slist *rename = renaming(t, path, buf_z(&temp));
        curl_easy_setopt(x.h, CURLOPT_POSTQUOTE, rename);
        curl_easy_setopt(x.h, CURLOPT_FTP_CREATE_MISSING_DIRS, (long)CURLFTP_CREATE_DIR);
        int r = perform(&x, err);
        curl_slist_free_all(rename);
        return r == 0 ? compare_sent(t, err) : r;
}

static int put_it(struct transfer *t, struct err *err)
{
        if (is_scheme(t, OF_HTTP))
                return http_put(t, err);
        return is_scheme(t, "file") ? file_put(t, err) : renamed_put(t, err);
}

/* Any answer will do, a refusal too: it came from there. */
static int probe_it(struct transfer *t, struct err *err)
{
        struct exchange x;
        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x.h, CURLOPT_FRESH_CONNECT, 1L);
        int r = perform(&x, err);
        if (r < 0 || (r == MOVER_AGAIN && !t->latency_us))
                return r;
        curl_off_t named = 0, connected = 0;
        curl_easy_getinfo(x.h, CURLINFO_NAMELOOKUP_TIME_T, &named);
        curl_easy_getinfo(x.h, CURLINFO_CONNECT_TIME_T, &connected);
        t->latency_us = connected > named ? (uint64_t)(connected - named) /* one way and back */
                                          : (uint64_t)(clock_mono_ns() - x.began_ns) / 1000;
        return 0;
}

/* With what the store is to be shown. */
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

static int get(struct transfer *t, struct err *err)
{
        return shown(t, get_it, err);
}

static int put(struct transfer *t, struct err *err)
{
        return shown(t, put_it, err);
}

static int probe(struct transfer *t, struct err *err)
{
        return shown(t, probe_it, err);
}

const struct mover_kind mover_curl = {"curl", handles, get, put, probe};
