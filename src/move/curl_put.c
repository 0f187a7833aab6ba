/* Sending with curl: by HTTP as one request, which servers show when it is whole; into a file under a
 * temporary name, by our own hand; by FTP and SFTP under one too, which the session renames. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "move/curl_exchange.h"

/* ---- HTTP */

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
                int r = exchange_perform(&x, err);
                if (r != 0)
                        return r;
                *ret_made = *ret_made || x.code == 201;
        }
        return 0;
}

static int http_put_once(struct exchange *x, struct transfer *t, struct err *err)
{
        exchange_init(x, t, t->task->url);
        exchange_upload(x);
        return exchange_perform(x, err);
}

/* What the store says it has now; a store that does not answer this is believed. */
static int compare_sent(struct transfer *t, struct err *err)
{
        struct exchange x;
        curl_off_t size = -1;
        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        if (exchange_perform(&x, NULL) != 0 || (x.http && x.code != 200))
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
        if (r == 0 && !exchange_s3(t) && (x.code == 404 || x.code == 409 || x.code == 500)) {
                r = make_folders(t, &made, err); /* one is missing; 500 is nginx's */
                if (r == 0 && made)
                        r = http_put_once(&x, t, err);
        }
        if (r == 0 && (x.code < 200 || x.code > 299))
                r = exchange_refused(&x, err);
        return r == 0 ? compare_sent(t, err) : r;
}

/* ---- files, FTP and SFTP */

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
        if (r == 0 && fsync(fd) < 0)
                r = -errno;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        if (r == 0 && renameat(dir, buf_z(&temp), dir, name) < 0)
                r = -errno;
        if (r < 0)
                unlinkat(dir, buf_z(&temp), 0);
        close(dir);
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
        if (!exchange_scheme(t, "sftp")) { /* the session stands in the folder */
                list = exchange_line(NULL, "RNFR ", temp_last ? temp_last + 1 : temp);
                return exchange_line(list, "RNTO ", last ? last + 1 : path);
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
        exchange_upload(&x);
        struct curl_slist *rename = renaming(t, path, buf_z(&temp));
        curl_easy_setopt(x.h, CURLOPT_POSTQUOTE, rename);
        curl_easy_setopt(x.h, CURLOPT_FTP_CREATE_MISSING_DIRS, (long)CURLFTP_CREATE_DIR);
        int r = exchange_perform(&x, err);
        curl_slist_free_all(rename);
        return r == 0 ? compare_sent(t, err) : r;
}

int curl_put(struct transfer *t, struct err *err)
{
        if (exchange_scheme(t, CURL_OF_HTTP))
                return http_put(t, err);
        return exchange_scheme(t, "file") ? file_put(t, err) : renamed_put(t, err);
}
