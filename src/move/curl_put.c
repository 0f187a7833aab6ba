/* Sends with curl: by HTTP as one request, which servers show when it is complete; into a local file under a
 * temporary name, without libcurl; by FTP and SFTP also under a temporary name, which the session renames.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "move/curl_exchange.h"

/* ---- HTTP */

/* WebDAV: the folders above, outermost first. What is there already answers 405. *ret_made: there was one to
 * make; *ret_code: the last answer. */
static int make_folders(struct transfer *t, const char *url, bool *ret_made, long *ret_code, struct err *err)
{
        const char *path = strstr(url, "://");

        path = path ? strchr(path + 3, '/') : NULL;
        for (const char *slash = path ? strchr(path + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
                struct exchange x;
                MEM_CLEANUP char *folder = mem_dup(url, (size_t)(slash + 1 - url));

                exchange_init(&x, t, folder);
                curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "MKCOL");
                int r = exchange_perform(&x, err);
                if (r != 0)
                        return r;
                *ret_made = *ret_made || x.code == 201;
                *ret_code = x.code;
        }
        return 0;
}

int curl_make_folders(struct transfer *t, const char *url, struct err *err)
{
        bool made = false;
        long code = 0;
        int r = make_folders(t, url, &made, &code, err);

        if (r != 0 || code == 201 || code == 405 || code == 301)
                return r;
        struct exchange x = {.t = t, .code = code};
        return exchange_refused(&x, err);
}

static int http_put_once(struct exchange *x, struct transfer *t, const char *url, struct err *err)
{
        exchange_init(x, t, url);
        exchange_upload(x);
        return exchange_perform(x, err);
}

/* Compares the size and checksum that the store reports now; a store that does not report them is trusted.
 */
static int compare_sent(struct transfer *t, const char *url, struct err *err)
{
        struct exchange x;
        curl_off_t size = -1;

        exchange_init(&x, t, url);
        t->named = (struct sum){SUM_NONE, ""};
        if (t->config->sent)
                *t->config->sent = (struct mover_sent){0}; /* it is of an earlier attempt */
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        if (x.http && !exchange_s3(t) && t->config->sent)
                x.lines = exchange_line(x.lines, "Want-Digest: ", "adler32");
        if (exchange_perform(&x, NULL) != 0 || (x.http && x.code != 200))
                return 0;
        curl_easy_getinfo(x.h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        if (t->config->sent)
                *t->config->sent =
                        (struct mover_sent){true, size >= 0 ? (uint64_t)size : MOVE_SIZE_ANY, t->named};
        return size >= 0 && (uint64_t)size != t->task->size
                       ? err_set(err, MOVER_AGAIN, "the store has %lld bytes of %llu", (long long)size,
                                 (unsigned long long)t->task->size)
                       : 0;
}

static int http_put_at(struct transfer *t, const char *url, struct err *err)
{
        struct exchange x;
        bool made = false;
        long code = 0;
        int r = http_put_once(&x, t, url, err);

        if (r == 0 && !exchange_s3(t) && (x.code == 404 || x.code == 409 || x.code == 500)) {
                /* a folder is missing; nginx answers 500 then */
                r = make_folders(t, t->task->url, &made, &code, err);
                /* another sender may have made it meanwhile */
                if (r == 0 && (made || (x.code != 500 && code == 405)))
                        r = http_put_once(&x, t, url, err);
        }
        if (r == 0 && (x.code < 200 || x.code > 299))
                r = exchange_refused(&x, err);
        return r == 0 ? compare_sent(t, url, err) : r;
}

/* ---- HTTP, under a temporary name */

char *curl_temporary(const struct transfer *t)
{
        struct buf b = {0};

        buf_printf(&b, "%s.drover-%s.tmp", t->task->url, t->task->tag);
        return buf_take(&b);
}

static int resource_move(struct transfer *t, const char *from, long *ret_code, struct err *err)
{
        struct exchange x;

        exchange_init(&x, t, from);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "MOVE");
        x.lines = exchange_line(x.lines, "Destination: ", t->task->url);
        x.lines = exchange_line(x.lines, "Overwrite: ", "T");
        int r = exchange_perform(&x, err);
        *ret_code = x.code;
        /* 207: its body says what could not be done */
        if (r == 0 && (x.code < 200 || x.code > 299 || x.code == 207))
                r = exchange_refused(&x, err);
        return r;
}

/* Returns whether the server supports the method MOVE. Each server is asked once, with a name that does not
 * exist: a server with MOVE answers that it is not found. */
bool curl_can_move(struct transfer *t, const char *temporary)
{
        static char last[256];
        static bool last_can;
        MEM_CLEANUP char *host = curl_url_host(t->task->url);
        struct err err = {""};
        long code = 0;

        if (exchange_s3(t) || !host || strchr(t->task->url, '?'))
                return false;
        if (!strcmp(host, last))
                return last_can;
        if (resource_move(t, temporary, &code, &err) == MOVER_AGAIN && code == 0)
                return false;
        snprintf(last, sizeof(last), "%s", host);
        last_can = code >= 400 && code != 400 && code != 403 && code != 405 && code != 501;
        return last_can;
}

/* Renames the temporary file to the target. If the server refuses, the target is deleted first and the move
 * repeated: some servers ignore `Overwrite: T` and never replace an existing file. */
int curl_move(struct transfer *t, const char *temporary, struct err *err)
{
        struct err first = {""};
        struct exchange x;
        long code;
        int r = resource_move(t, temporary, &code, &first);

        if (r == 0)
                return 0;
        if (code == 0) /* no answer: it may be renamed already, and the target be the new file */
                return r < 0 ? r : err_set(err, r, "%s", first.text);
        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "DELETE");
        if (exchange_perform(&x, err) == 0 && x.code >= 200 && x.code < 300)
                return resource_move(t, temporary, &code, err);
        return err_set(err, r, "%s", first.text);
}

void curl_drop(struct transfer *t, const char *temporary)
{
        struct exchange x;

        exchange_init(&x, t, temporary);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "DELETE");
        exchange_perform(&x, NULL);
}

static bool hides_partial(const struct transfer *t)
{
        return t->config->flow || t->config->whole;
}

/* Sends by HTTP, under a temporary name if the server can rename: some servers show an incomplete file whose
 * sender has died. */
static int http_put(struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *temporary = curl_temporary(t);

        if (!hides_partial(t) || !curl_can_move(t, temporary))
                return http_put_at(t, t->task->url, err);
        int r = http_put_at(t, temporary, err);
        if (r == 0)
                r = curl_move(t, temporary, err);
        if (r != 0)
                curl_drop(t, temporary);
        return r;
}

/* ---- files, FTP and SFTP */

char *curl_url_host(const char *url)
{
        CURLU *u = curl_url();
        char *host = NULL, *port = NULL;
        struct buf b = {0};

        if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
            curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK) {
                buf_addz(&b, host);
                if (curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
                        buf_printf(&b, ":%s", port);
        }
        curl_free(host);
        curl_free(port);
        curl_url_cleanup(u);
        return b.n ? buf_take(&b) : NULL;
}

char *curl_url_path(const char *url)
{
        CURLU *u = curl_url();
        char *path = NULL, *ret = NULL;

        if (curl_url_set(u, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
            curl_url_get(u, CURLUPART_PATH, &path, CURLU_URLDECODE) == CURLUE_OK)
                ret = mem_dupz(path);
        curl_free(path);
        curl_url_cleanup(u);
        return ret;
}

char *curl_unescape_path(struct str escaped)
{
        int n = 0;
        char *plain = curl_easy_unescape(NULL, escaped.p, (int)escaped.n, &n),
             *ret = plain && !memchr(plain, 0, (size_t)n) ? mem_dup(plain, (size_t)n) : NULL;

        curl_free(plain);
        return ret;
}

int curl_sync_folder(int dirfd, const char *path)
{
        int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

        if (fd < 0) /* it may be written and not read */
                return errno == EACCES || errno == ENOENT ? 0 : -errno;
        r = fsync(fd) < 0 && errno != EINVAL ? -errno : 0; /* EINVAL: the file system does not do that */
        close(fd);
        return r;
}

/* Writes a file of this machine. A single put syncs the folder too; a placement of several files syncs each
 * folder once, at its end. */
static int file_put(struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(t->task->url), *room = mem_alloc(65536);
        BUF_CLEANUP struct buf temp = {0};
        const char *name;
        int dir, r = path ? hidden_open_parent(t->config->hidden, path, &dir, &name) : -EINVAL;

        if (r == -EINVAL)
                return err_set(err, MOVER_REFUSED, "it names no file");
        if (r == HIDDEN_INSIDE)
                return err_set(err, MOVER_REFUSED, "it is in a folder of Drover's own");
        if (r < 0)
                return r;
        buf_printf(&temp, "%s.drover-%s.tmp", name, t->task->tag);
        int fd = openat(dir, buf_z(&temp), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0) {
                r = -errno;
                close(dir);
                return r;
        }
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
        if (r == 0)
                r = transfer_sync(t, fd, t->task->size);
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && renameat(dir, buf_z(&temp), dir, name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir, buf_z(&temp), 0);
        else if (!hides_partial(t))
                r = curl_sync_folder(dir, ".");
        close(dir);
        return r;
}

void curl_quote_sftp(struct buf *b, const char *path)
{
        buf_char(b, '"');
        for (; *path; path++) {
                if (*path == '"' || *path == '\\')
                        buf_char(b, '\\');
                buf_char(b, *path);
        }
        buf_char(b, '"');
}

/* Returns the commands that rename the temporary file to its final name. */
static struct curl_slist *renaming(const struct transfer *t, const char *path, const char *temp)
{
        BUF_CLEANUP struct buf b = {0};
        struct curl_slist *list;
        const char *last = strrchr(path, '/'), *temp_last = strrchr(temp, '/');

        if (!exchange_scheme(t, "sftp")) { /* the session's current folder is the file's */
                list = exchange_line(NULL, "RNFR ", temp_last ? temp_last + 1 : temp);
                return exchange_line(list, "RNTO ", last ? last + 1 : path);
        }
        buf_addz(&b, "*rm "); /* with * it may fail; most servers do not rename onto an existing file */
        curl_quote_sftp(&b, path);
        list = curl_slist_append(NULL, buf_z(&b));
        buf_reset(&b);
        buf_addz(&b, "rename ");
        curl_quote_sftp(&b, temp);
        buf_char(&b, ' ');
        curl_quote_sftp(&b, path);
        return curl_slist_append(list, buf_z(&b));
}

static int renamed_put(struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(t->task->url);
        BUF_CLEANUP struct buf url = {0}, temp = {0};
        struct exchange x;

        if (!path || strpbrk(path, "\r\n"))
                return err_set(err, MOVER_REFUSED, "it names no file");
        buf_printf(&url, "%s.drover-%s.tmp", t->task->url, t->task->tag);
        buf_printf(&temp, "%s.drover-%s.tmp", path, t->task->tag);
        exchange_init(&x, t, buf_z(&url));
        exchange_upload(&x);
        struct curl_slist *rename = renaming(t, path, buf_z(&temp));
        curl_easy_setopt(x.h, CURLOPT_POSTQUOTE, rename);
        curl_easy_setopt(x.h, CURLOPT_FTP_CREATE_MISSING_DIRS,
                         (long)CURLFTP_CREATE_DIR_RETRY); /* another sender may make it, too */
        int r = exchange_perform(&x, err);
        curl_slist_free_all(rename);
        if (r != 0 && hides_partial(t)) { /* an incomplete file may be there */
                struct exchange gone;
                BUF_CLEANUP struct buf b = {0};
                bool is_sftp = exchange_scheme(t, "sftp");

                buf_printf(&b, "*%s ", is_sftp ? "rm" : "DELE");
                if (is_sftp)
                        curl_quote_sftp(&b, buf_z(&temp));
                else
                        buf_addz(&b, buf_z(&temp) + 1);
                MEM_CLEANUP char *root = curl_url_root(t->task->url);
                struct curl_slist *list = curl_slist_append(NULL, buf_z(&b));
                exchange_init(&gone, t, root);
                curl_easy_setopt(gone.h, CURLOPT_NOBODY, 1L);
                curl_easy_setopt(gone.h, CURLOPT_QUOTE, list);
                curl_easy_setopt(gone.h, CURLOPT_FRESH_CONNECT,
                                 1L); /* the other one is in the file's folder */
                exchange_perform(&gone, NULL);
                curl_slist_free_all(list);
        }
        return r == 0 ? compare_sent(t, t->task->url, err) : r;
}

int curl_put(struct transfer *t, struct err *err)
{
        if (exchange_scheme(t, CURL_OF_HTTP))
                return http_put(t, err);
        return exchange_scheme(t, "file") ? file_put(t, err) : renamed_put(t, err);
}
