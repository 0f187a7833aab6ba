/* See curl_exchange.h. */
#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "move/curl_exchange.h"

#define REDIRECTED "http,https" /* a redirection to a file is refused */
#define STALL_MS   60000
#define CONNECT_S  30L
#define HOPS       5L
#define BLOCK                                                                                                \
        (256L << 10) /* bytes read or written at a time; libcurl's own number costs many system calls        \
                      */

bool curl_scheme_in(const char *list, struct str scheme)
{
        struct str rest = str_of(list), one;

        while (str_cut(&rest, ',', &one))
                if (str_ieq(one, scheme))
                        return true;
        return false;
}

bool exchange_scheme(const struct transfer *t, const char *list)
{
        return curl_scheme_in(list, mover_scheme(str_of(t->task->url)));
}

bool exchange_s3(const struct transfer *t)
{
        return exchange_scheme(t, "s3") ||
               (t->task->credential.type && !strcmp(t->task->credential.type, "s3"));
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

/* Takes an Adler-32 from a header. Some stores report zero before they have computed it. */
static void take_adler(struct transfer *t, struct str hex)
{
        BUF_CLEANUP struct buf text = {0};
        struct sum s;

        buf_printf(&text, "adler32:" STR_FMT, STR_ARG(hex));
        if (sum_parse(buf_view(&text), &s) && strcmp(s.hex, "00000000") != 0)
                t->named = s;
}

/* sha-256=BASE64 of Digest (RFC 3230), sha-256=:BASE64: of Repr-Digest (RFC 9530) */
static void take_digest(struct transfer *t, struct str v)
{
        struct str one, name;

        while (str_cut(&v, ',', &one)) {
                one = str_trim(one);
                if (!str_cut(&one, '=', &name))
                        continue;
                if (str_ieqz(name, "adler32"))
                        take_adler(t, one);
                if (!str_ieqz(name, "sha-256"))
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
        if (str_starts(line, STR("HTTP/"))) { /* begins a new answer, perhaps after a redirection */
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

int exchange_begin_body(struct exchange *x)
{
        struct transfer *t = x->t;
        curl_off_t length = -1;

        x->begun = true;
        curl_easy_getinfo(x->h, CURLINFO_RESPONSE_CODE, &x->code);
        x->body = !x->http || x->code == 200 || x->code == 206;
        if (!x->body)
                return 0;
        /* the server ignored the range and sends from the beginning */
        if (x->http && x->asked && x->code == 200) {
                int r = transfer_restart(t);

                if (r < 0)
                        return r;
        }
        x->other = x->http && x->asked && x->code == 206 && !exchange_is_same(x->h, &t->piece, x->asked);
        if (x->other)
                return -ESTALE;
        curl_easy_getinfo(x->h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
        if (length >= 0)
                t->found.size = t->done + (uint64_t)length;
        t->piece = t->found;
        t->resumable = x->http && (t->found.etag[0] || t->found.modified_s) &&
                       t->found.etag[0] != 'W'; /* a weak ETag does not identify identical contents */
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
        x->error = x->begun ? 0 : exchange_begin_body(x);
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

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
        struct exchange *x = arg;

        (void)a, (void)b, (void)c, (void)d;
        x->error = x->error ? x->error : transfer_alive(x->t);
        return x->error != 0;
}

/* ---- one request */

static CURL *handle;

void exchange_forget(void)
{
        handle = NULL; /* closing it would end the other process's TLS sessions */
}

void exchange_close(void)
{
        curl_easy_cleanup(handle);
        handle = NULL;
}

static CURL *the_handle(void)
{
        if (!handle) {
                curl_global_init(CURL_GLOBAL_DEFAULT);
                handle = curl_easy_init();
                if (!handle)
                        abort();
        }
        curl_easy_reset(handle);
        return handle;
}

/* Accepts a server of SSH only if its key is known (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT). */
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

/* Before the connection, because the window that a receiver may offer is agreed on then (RFC 7323). */
static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
        const struct tuning *tune = arg;
        int bytes = (int)tune->buffer;

        if (purpose == CURLSOCKTYPE_IPCXN) {
                setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
                setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
        }
        return CURL_SOCKOPT_OK;
}

static void set_tuning(CURL *h, const struct mover_config *c, const char *url)
{
        const struct tuning *tune = tuning_of(c->tunings, c->tuning_count, str_of(url));
        long block = tune && tune->block ? (long)tune->block : BLOCK;

        curl_easy_setopt(h, CURLOPT_BUFFERSIZE, block);
        curl_easy_setopt(h, CURLOPT_UPLOAD_BUFFERSIZE, block);
        if (tune && tune->buffer) {
                curl_easy_setopt(h, CURLOPT_SOCKOPTFUNCTION, on_socket);
                curl_easy_setopt(h, CURLOPT_SOCKOPTDATA, (void *)(uintptr_t)tune);
        }
}

/* Returns the certificate authorities of this machine: libcurl's own choice, or, on a distribution other than
 * the one that it was built for, the first file that is there. NULL: none is. */
static const char *authorities(void)
{
        static const char *const files[] = {"/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
                                            "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat */
                                            "/etc/ssl/ca-bundle.pem"};            /* SUSE */
        const char *own = curl_version_info(CURLVERSION_NOW)->cainfo;

        if (own && access(own, R_OK) == 0)
                return own;
        for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
                if (access(files[i], R_OK) == 0)
                        return files[i];
        return NULL;
}

void exchange_init(struct exchange *x, struct transfer *t, const char *url)
{
        exchange_setup(x, t, url, the_handle());
}

void exchange_setup(struct exchange *x, struct transfer *t, const char *url, CURL *h)
{
        const struct mover_config *c = t->config;
        const struct curl_credential *shown = t->shown;

        *x = (struct exchange){.t = t, .h = h, .began_ns = clock_mono_ns()};
        x->http = exchange_scheme(t, CURL_OF_HTTP);
        if (shown->url && url == t->task->url)
                url = shown->url;
        curl_easy_setopt(x->h, CURLOPT_URL, url);
        curl_easy_setopt(x->h, CURLOPT_PROTOCOLS_STR, CURL_PROTOCOLS);
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
        if (c->ca_file || authorities())
                curl_easy_setopt(x->h, CURLOPT_CAINFO, c->ca_file ? c->ca_file : authorities());
        set_tuning(x->h, c, url);
        if (exchange_scheme(t, "sftp"))
                set_known_hosts(x->h, c);
        x->lines = curl_credential_set(shown, x->h, NULL);
}

/* Maps an error of libcurl, for any of its protocols, to an outcome. `code`: the last reply of an FTP
 * server. Only 53x refuses a login (RFC 959, 5.4); with 500 vsftpd reports that one of its processes has
 * died. */
static int curl_outcome(CURLcode r, long code)
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
        case CURLE_LOGIN_DENIED: return code / 10 == 50 ? MOVER_AGAIN : MOVER_DENIED;
        case CURLE_SSL_CERTPROBLEM: return MOVER_DENIED;
        default: return MOVER_AGAIN;
        }
}

/* Returns the error code in an S3 store's answer, <Code>...</Code>; empty: none. */
static struct str s3_code(const struct exchange *x)
{
        struct str rest = str_make(x->said, x->said_n), code = STR_NONE;
        ptrdiff_t at = exchange_s3(x->t) ? str_search(rest, STR("<Code>")) : -1;

        if (at < 0)
                return STR_NONE;
        rest = str_skip(rest, (size_t)at + 6);
        str_cut(&rest, '<', &code);
        for (size_t i = 0; i < code.n; i++)
                if (!isalnum((unsigned char)code.p[i]))
                        return STR_NONE;
        return str_head(code, code.n < 64 ? code.n : 64);
}

int exchange_refused(const struct exchange *x, struct err *err)
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

int exchange_perform(struct exchange *x, struct err *err)
{
        curl_easy_setopt(x->h, CURLOPT_HTTPHEADER, x->lines);
        CURLcode r = curl_easy_perform(x->h);
        curl_easy_setopt(x->h, CURLOPT_HTTPHEADER, NULL);
        curl_slist_free_all(x->lines);
        x->lines = NULL;
        curl_easy_getinfo(x->h, CURLINFO_RESPONSE_CODE, &x->code);
        x->result = r;
        if (x->error < 0)
                return x->error;
        if (r == CURLE_OK)
                return 0;
        return exchange_failed(x, err);
}

int exchange_failed(const struct exchange *x, struct err *err)
{
        CURLcode r = (CURLcode)x->result;

        return err_set(err, curl_outcome(r, x->code), "%s%s%s", curl_easy_strerror(r), *x->why ? ": " : "",
                       x->why);
}

struct curl_slist *exchange_if_same(struct curl_slist *list, const struct move_facts *f)
{
        char date[64];
        time_t when = (time_t)f->modified_s;
        struct tm tm;

        gmtime_r(&when, &tm);
        strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
        return exchange_line(list, "If-Range: ", f->etag[0] ? f->etag : date);
}

static bool header_of(CURL *h, const char *name, struct str *ret)
{
        struct curl_header *line;

        if (curl_easy_header(h, name, 0, CURLH_HEADER, -1, &line) != CURLHE_OK)
                return false;
        *ret = str_of(line->value);
        return true;
}

bool exchange_is_same(CURL *h, const struct move_facts *f, uint64_t from)
{
        struct str v, word;
        uint64_t first;

        if (header_of(h, "Content-Range", &v) && str_word(&v, &word) && str_ieqz(word, "bytes") &&
            str_cut(&v, '-', &word) && (str_to_u64(str_trim(word), &first) != 0 || first != from))
                return false;
        if (f->etag[0] && header_of(h, "ETag", &v))
                return str_eqz(v, f->etag);
        if (!f->modified_s || !header_of(h, "Last-Modified", &v))
                return true;
        MEM_CLEANUP char *date = str_dupz(v);
        return curl_getdate(date, NULL) == f->modified_s;
}

struct curl_slist *exchange_line(struct curl_slist *list, const char *name, const char *value)
{
        BUF_CLEANUP struct buf b = {0};

        buf_addz(&b, name);
        buf_addz(&b, value);
        return curl_slist_append(list, buf_z(&b));
}

/* ---- requests */

void exchange_download(struct exchange *x)
{
        curl_easy_setopt(x->h, CURLOPT_WRITEFUNCTION, on_body);
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

void exchange_upload(struct exchange *x)
{
        curl_easy_setopt(x->h, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(x->h, CURLOPT_INFILESIZE_LARGE, (curl_off_t)x->t->task->size);
        curl_easy_setopt(x->h, CURLOPT_READFUNCTION, on_read);
        curl_easy_setopt(x->h, CURLOPT_READDATA, x);
        curl_easy_setopt(x->h, CURLOPT_SEEKFUNCTION, on_seek);
        curl_easy_setopt(x->h, CURLOPT_SEEKDATA, x);
}
