/* Operations of the curl back end at a URL besides getting and putting contents: looking, removing, making
 * folders, listing them, and having one server copy from another. FTP and SFTP use commands of the session,
 * local files are handled directly, HTTP uses the methods of WebDAV (RFC 4918).
 *
 * A copy between servers is HTTP-TPC as on the grid: COPY to the destination server, with the URL of the
 * source in the header Source. The server answers at once and reports progress in lines of its body; only
 * the last line says whether the copy succeeded.
 *
 * Free space is a property of WebDAV's quotas (RFC 4331); of files it is the file system's.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/format/url.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "move/curl_exchange.h"

#define LIST_BYTES  (16u << 20)
#define MARK_BYTES  4096 /* bytes kept of the last lines of a copying server */
#define DAV_COLLECT "collection"

/* ---- looking */

static int look_at(struct transfer *t, const char *url, struct err *err)
{
        struct exchange x;
        curl_off_t size = -1;
        long when = -1;

        exchange_init(&x, t, url);
        t->named = (struct sum){SUM_NONE, ""};
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x.h, CURLOPT_FILETIME, 1L);
        if (x.http && !exchange_s3(t))
                x.lines = exchange_line(x.lines, "Want-Digest: ", "adler32");
        int r = exchange_perform(&x, err);
        if (r == 0 && x.http && x.code != 200)
                r = exchange_refused(&x, err);
        if (r != 0)
                return r;
        curl_easy_getinfo(x.h, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
        curl_easy_getinfo(x.h, CURLINFO_FILETIME, &when);
        t->found.size = size >= 0 ? (uint64_t)size : MOVE_SIZE_ANY;
        t->found.modified_s = when > 0 ? when : 0;
        return 0;
}

int curl_look(struct transfer *t, struct err *err)
{
        return look_at(t, t->task->url, err);
}

/* ---- a session's commands */

/* The path of the URL as a command of its session takes it: of FTP from where the session begins. */
static char *command_path(const struct transfer *t)
{
        char *path = curl_url_path(t->task->url);

        if (path && !exchange_scheme(t, "sftp"))
                memmove(path, path + 1, strlen(path));
        for (size_t n = path ? strlen(path) : 0; n > 1 && path[n - 1] == '/'; n--)
                path[n - 1] = 0;
        if (path && *path && !strpbrk(path, "\r\n"))
                return path;
        free(path);
        return NULL;
}

/* Returns one command for each folder above the path and one for the path; or one for the path only. */
static struct curl_slist *commands(const struct transfer *t, const char *ftp, const char *sftp, bool above)
{
        MEM_CLEANUP char *path = command_path(t);
        struct curl_slist *list = NULL;
        bool is_sftp = exchange_scheme(t, "sftp");

        for (const char *slash = path ? path + 1 : NULL; slash;) {
                const char *next = strchr(slash, '/');
                BUF_CLEANUP struct buf b = {0};

                if (next && !above) {
                        slash = next + 1;
                        continue;
                }
                MEM_CLEANUP char *folder = mem_dup(path, next ? (size_t)(next - path) : strlen(path));
                buf_printf(&b, "*%s ", is_sftp ? sftp : ftp); /* a failure is found afterwards */
                if (is_sftp)
                        curl_quote_sftp(&b, folder);
                else
                        buf_addz(&b, folder);
                list = curl_slist_append(list, buf_z(&b));
                slash = next ? next + 1 : NULL;
        }
        return list;
}

char *curl_url_root(const char *url)
{
        const char *host = strstr(url, "://"), *slash = host ? strchr(host + 3, '/') : NULL;
        struct buf root = {0};

        buf_add(&root, url, slash ? (size_t)(slash - url) : strlen(url));
        buf_char(&root, '/');
        return buf_take(&root);
}

static int run_commands(struct transfer *t, struct curl_slist *list, struct err *err)
{
        MEM_CLEANUP char *root = curl_url_root(t->task->url);
        struct exchange x;

        if (!list)
                return err_set(err, MOVER_REFUSED, "it names no file");
        exchange_init(&x, t, root);
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        curl_easy_setopt(x.h, CURLOPT_QUOTE, list);
        curl_easy_setopt(x.h, CURLOPT_FRESH_CONNECT, 1L); /* an earlier request may have changed its folder */
        int r = exchange_perform(&x, err);
        curl_slist_free_all(list);
        return r;
}

/* ---- answers of WebDAV servers */

struct listing {
        struct transfer *t;
        struct buf text;
        mover_listed_fn *fn;
        void *arg;
};

/* Finds the value of the next element of this name, with any prefix. */
static bool element(struct str *rest, const char *name, struct str *ret)
{
        size_t n = strlen(name);

        for (ptrdiff_t at; (at = str_find(*rest, '<')) >= 0;) {
                struct str tag = str_skip(*rest, (size_t)at + 1);
                ptrdiff_t end = str_find(tag, '>'), colon;

                if (end < 0)
                        return false;
                *rest = str_skip(tag, (size_t)end + 1);
                tag = str_head(tag, (size_t)end);
                colon = str_find(tag, ':');
                if (colon >= 0 && !str_starts(tag, STR("/")))
                        tag = str_skip(tag, (size_t)colon + 1);
                if (!str_istarts(tag, str_of(name)) || (tag.n > n && !strchr(" \t\r\n/", tag.p[n])))
                        continue;
                end = str_find(*rest, '<');
                *ret = str_head(*rest, end < 0 ? rest->n : (size_t)end);
                return true;
        }
        return false;
}

/* ---- removing */

static int file_remove(const struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(t->task->url);
        const char *name;
        int dir, r = path ? hidden_open_parent(t->config->hidden, path, &dir, &name) : -EINVAL;

        if (r == -ENOENT)
                return 0;
        if (r == -EINVAL)
                return err_set(err, MOVER_REFUSED, "it names no file");
        if (r == HIDDEN_INSIDE)
                return err_set(err, MOVER_REFUSED, "it is in a folder of Drover's own");
        if (r < 0)
                return err_set(err, MOVER_REFUSED, "%s", strerror(-r));
        r = unlinkat(dir, name, 0) < 0 && errno != ENOENT ? errno : 0;
        if (r == EISDIR || r == EPERM)
                r = unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? errno : 0;
        close(dir);
        return r ? err_set(err, r == EACCES || r == EPERM ? MOVER_DENIED : MOVER_REFUSED, "%s", strerror(r))
                 : 0;
}

static size_t on_list(char *p, size_t size, size_t n, void *arg);

/* Returns whether the URL is a folder, as far as its server says. DELETE would remove a folder with
 * everything in it (RFC 4918, 9.6.1). */
static bool is_collection(struct transfer *t)
{
        struct listing l = {.text = {.max = LIST_BYTES}};
        struct exchange x;
        struct str rest, none;

        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_WRITEFUNCTION, on_list);
        curl_easy_setopt(x.h, CURLOPT_WRITEDATA, &l);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "PROPFIND");
        x.lines = exchange_line(x.lines, "Depth: ", "0");
        bool is = exchange_perform(&x, NULL) == 0 && x.code == 207;
        rest = buf_view(&l.text);
        is = is && element(&rest, DAV_COLLECT, &none);
        buf_deinit(&l.text);
        return is;
}

static int http_remove(struct transfer *t, struct err *err)
{
        struct exchange x;

        if (!exchange_s3(t) && is_collection(t))
                return err_set(err, MOVER_REFUSED, "it is a folder");
        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "DELETE");
        int r = exchange_perform(&x, err);
        if (r == 0 && x.code != 404 && x.code != 410 && (x.code < 200 || x.code > 299))
                r = exchange_refused(&x, err);
        return r;
}

int curl_remove(struct transfer *t, struct err *err)
{
        if (exchange_scheme(t, "file"))
                return file_remove(t, err);
        if (exchange_scheme(t, CURL_OF_HTTP))
                return http_remove(t, err);
        int r = run_commands(t, commands(t, "DELE", "rm", false), err);
        if (r != 0)
                return r;
        r = curl_look(t, NULL);
        return r == MOVER_REFUSED || r == MOVER_DENIED ? 0
               : r == 0 ? err_set(err, MOVER_DENIED, "the store does not remove it")
                        : err_set(err, r, "the store does not say whether it is gone");
}

/* ---- folders */

static int file_make_folder(const struct transfer *t, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(t->task->url);
        size_t n = path ? strlen(path) : 0;
        int r = n ? 0 : -EINVAL;

        for (size_t at = 1; r == 0 && at <= n; at++) {
                if ((at < n && path[at] != '/') || path[at - 1] == '/')
                        continue;
                MEM_CLEANUP char *folder = mem_dup(path, at);
                r = hidden_make_folder(t->config->hidden, folder, 0777);
        }
        if (r == HIDDEN_INSIDE)
                return err_set(err, MOVER_REFUSED, "it is in a folder of Drover's own");
        return r < 0 ? err_set(err, r == -EACCES ? MOVER_DENIED : MOVER_REFUSED, "%s", strerror(-r)) : 0;
}

int curl_make_folder(struct transfer *t, struct err *err)
{
        BUF_CLEANUP struct buf url = {0};

        if (exchange_scheme(t, "file"))
                return file_make_folder(t, err);
        if (exchange_scheme(t, "s3"))
                return 0; /* keys have no folders */
        buf_printf(&url, "%s%s", t->task->url, str_ends(str_of(t->task->url), STR("/")) ? "" : "/");
        if (exchange_scheme(t, CURL_OF_HTTP))
                return curl_make_folders(t, buf_z(&url), err);
        struct exchange x;
        int r = run_commands(t, commands(t, "MKD", "mkdir", true), err);
        if (r != 0)
                return r;
        exchange_init(&x, t, buf_z(&url));
        curl_easy_setopt(x.h, CURLOPT_NOBODY, 1L);
        return exchange_perform(&x, err);
}

/* ---- listing */

static size_t on_list(char *p, size_t size, size_t n, void *arg)
{
        struct listing *l = arg;

        buf_add(&l->text, p, size * n);
        return buf_check(&l->text) ? 0 : size * n;
}

static void listed(const struct listing *l, struct str name, bool folder, uint64_t size)
{
        if (name.n && !str_eqz(name, ".") && !str_eqz(name, "..") && str_find(name, '/') < 0)
                l->fn(l->arg, name, folder, folder ? MOVE_SIZE_ANY : size);
}

static int file_list(const struct listing *l, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(l->t->task->url);
        DIR *dir = path ? opendir(path) : NULL;
        struct dirent *e;
        struct stat st;

        if (!dir)
                return err_set(err, errno == EACCES ? MOVER_DENIED : MOVER_REFUSED, "%s", strerror(errno));
        while ((e = readdir(dir)))
                if (fstatat(dirfd(dir), e->d_name, &st, 0) == 0 &&
                    (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
                        listed(l, str_of(e->d_name), S_ISDIR(st.st_mode), (uint64_t)st.st_size);
        closedir(dir);
        return 0;
}

/* Lines as `ls -l` writes them, which servers of FTP and SFTP send: eight words, then the name. */
static void read_lines(const struct listing *l)
{
        struct str rest = buf_view(&l->text), line;

        while (str_cut(&rest, '\n', &line)) {
                struct str word;
                bool folder = str_starts(line, STR("d")), file = str_starts(line, STR("-"));
                uint64_t size = MOVE_SIZE_ANY;

                if (str_ends(line, STR("\r")))
                        line.n--;
                for (int i = 0; i < 8 && (folder || file); i++)
                        if (!str_word(&line, &word))
                                line = STR_NONE;
                        else if (i == 4 && str_to_u64(word, &size) != 0)
                                size = MOVE_SIZE_ANY;
                if (folder || file)
                        listed(l, str_trim_left(line), folder, size);
        }
}

/* multistatus of RFC 4918: the first response is the folder itself, or not; its name tells. */
static void read_multistatus(const struct listing *l)
{
        struct str rest = buf_view(&l->text), href;
        MEM_CLEANUP char *own = curl_url_path(l->t->task->url);

        while (element(&rest, "href", &href)) {
                struct str until = rest, next = rest, none, length;
                uint64_t size = MOVE_SIZE_ANY;

                if (element(&next, "href", &none))
                        until = str_head(rest, (size_t)(none.p - rest.p));
                next = until;
                if (element(&next, "getcontentlength", &length) && str_to_u64(str_trim(length), &size) != 0)
                        size = MOVE_SIZE_ANY;
                bool folder = element(&until, DAV_COLLECT, &none);
                ptrdiff_t host = str_search(href, STR("://"));
                if (host >= 0) {
                        href = str_skip(href, (size_t)host + 3);
                        href = str_skip(href, str_find(href, '/') < 0 ? href.n : (size_t)str_find(href, '/'));
                }
                MEM_CLEANUP char *path = curl_unescape_path(str_trim(href));
                struct str name = str_of(path ? path : "");
                while (str_ends(name, STR("/")))
                        name.n--;
                if (own && strlen(own) > 0 && name.n + 1 >= strlen(own) &&
                    !(str_starts(name, str_head(str_of(own), strlen(own) - 1)) && name.n + 1 == strlen(own)))
                        listed(l, str_skip(name, (size_t)(str_rfind(name, '/') + 1)), folder, size);
        }
}

int curl_list(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err)
{
        BUF_CLEANUP struct buf url = {0};
        struct listing l = {t, {.max = LIST_BYTES}, fn, arg};
        struct exchange x;

        if (exchange_scheme(t, "file"))
                return file_list(&l, err);
        if (exchange_s3(t))
                return err_set(err, MOVER_REFUSED, "keys of an S3 store are not listed: name each file");
        buf_printf(&url, "%s%s", t->task->url, str_ends(str_of(t->task->url), STR("/")) ? "" : "/");
        exchange_init(&x, t, buf_z(&url));
        curl_easy_setopt(x.h, CURLOPT_WRITEFUNCTION, on_list);
        curl_easy_setopt(x.h, CURLOPT_WRITEDATA, &l);
        if (x.http) {
                curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "PROPFIND");
                x.lines = exchange_line(x.lines, "Depth: ", "1");
        }
        int r = exchange_perform(&x, err);
        if (r == 0 && x.http && x.code != 207)
                r = x.code == 405 || x.code == 501
                            ? err_set(err, MOVER_REFUSED, "the store lists no folders (HTTP %ld)", x.code)
                            : exchange_refused(&x, err);
        if (r == 0 && x.http)
                read_multistatus(&l);
        else if (r == 0)
                read_lines(&l);
        buf_deinit(&l.text);
        return r;
}

/* ---- free space */

/* Asks the file system of the path, or of the nearest folder above it that there is. */
static int file_space(const struct transfer *t, uint64_t *ret_free, struct err *err)
{
        MEM_CLEANUP char *path = curl_url_path(t->task->url);
        struct statvfs v;

        while (path && *path && statvfs(path, &v) < 0) {
                char *slash = strrchr(path, '/');

                if (errno != ENOENT || !slash || !path[1])
                        return err_set(err, MOVER_REFUSED, "%s", strerror(errno));
                slash[slash == path] = 0;
        }
        if (!path || !*path)
                return err_set(err, MOVER_REFUSED, "it names no folder");
        *ret_free = (uint64_t)v.f_bavail * v.f_frsize;
        return 0;
}

static int http_space(struct transfer *t, uint64_t *ret_free, struct err *err)
{
        static const char asks[] = "<?xml version=\"1.0\"?><propfind xmlns=\"DAV:\"><prop>"
                                   "<quota-available-bytes/></prop></propfind>";
        struct listing l = {.text = {.max = LIST_BYTES}};
        struct str rest, value = STR_NONE;
        struct exchange x;

        exchange_init(&x, t, t->task->url);
        curl_easy_setopt(x.h, CURLOPT_WRITEFUNCTION, on_list);
        curl_easy_setopt(x.h, CURLOPT_WRITEDATA, &l);
        curl_easy_setopt(x.h, CURLOPT_POSTFIELDS, asks);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "PROPFIND");
        x.lines = exchange_line(x.lines, "Depth: ", "0");
        x.lines = exchange_line(x.lines, "Content-Type: ", "application/xml");
        int r = exchange_perform(&x, err);
        if (r == 0 && x.code != 207)
                r = exchange_refused(&x, err);
        rest = buf_view(&l.text);
        if (r == 0 &&
            (!element(&rest, "quota-available-bytes", &value) || str_to_u64(str_trim(value), ret_free) != 0))
                r = err_set(err, MOVER_REFUSED, "the store does not say how much is free");
        buf_deinit(&l.text);
        return r;
}

int curl_space(struct transfer *t, uint64_t *ret_free, struct err *err)
{
        if (exchange_scheme(t, "file"))
                return file_space(t, ret_free, err);
        if (exchange_scheme(t, "http,https") && !exchange_s3(t))
                return http_space(t, ret_free, err);
        return err_set(err, MOVER_REFUSED, "the protocol does not say how much is free");
}

/* ---- one server copies from another */

struct marks {
        struct buf text; /* the end of the received text */
        uint64_t moved;
        void (*told)(void *arg, uint64_t bytes);
        void *arg;
};

static size_t on_marks(char *p, size_t size, size_t n, void *arg)
{
        struct marks *m = arg;
        struct str rest, line;

        buf_add(&m->text, p, size * n);
        for (rest = buf_view(&m->text); str_cut(&rest, '\n', &line);) {
                struct str value = str_trim(line), name;
                uint64_t bytes;

                if (str_cut(&value, ':', &name) && str_ieqz(str_trim(name), "Stripe Bytes Transferred") &&
                    str_to_u64(str_trim(value), &bytes) == 0 && bytes > m->moved)
                        m->moved = bytes;
        }
        if (m->text.n > MARK_BYTES) {
                struct buf end = {0};

                buf_add(&end, m->text.p + m->text.n - MARK_BYTES / 2, MARK_BYTES / 2);
                buf_deinit(&m->text);
                m->text = end;
        }
        if (m->told)
                m->told(m->arg, m->moved);
        return size * n;
}

static bool last_word(const struct marks *m, struct str *ret)
{
        struct str rest = buf_view(&m->text), line;

        *ret = STR_NONE;
        while (str_cut(&rest, '\n', &line))
                if (str_trim(line).n)
                        *ret = str_trim(line);
        return str_istarts(*ret, STR("success"));
}

/* Compares the copy with the expected checksum, as far as its server reports one. */
static int compare_copy(struct transfer *t, const char *url, const struct mover_pull *p, struct err *err)
{
        int r = look_at(t, url, err);

        return r != 0 ? r : transfer_compare_copy(t, p, err);
}

int curl_pull(struct transfer *t, const struct mover_pull *p, struct err *err)
{
        struct marks m = {.told = p->told, .arg = p->arg};
        MEM_CLEANUP char *temporary = curl_temporary(t);
        bool moves = curl_can_move(t, temporary);
        struct exchange x;
        struct str last;

        exchange_init(&x, t, moves ? temporary : t->task->url);
        curl_easy_setopt(x.h, CURLOPT_CUSTOMREQUEST, "COPY");
        curl_easy_setopt(x.h, CURLOPT_WRITEFUNCTION, on_marks);
        curl_easy_setopt(x.h, CURLOPT_WRITEDATA, &m);
        x.lines = exchange_line(x.lines, "Source: ", p->source);
        x.lines = exchange_line(x.lines, "Overwrite: ", "T");
        x.lines = exchange_line(x.lines, "Credential: ", "none");
        if (p->header)
                x.lines = exchange_line(x.lines, "TransferHeaderAuthorization: ", p->header);
        int r = exchange_perform(&x, err);
        bool success = last_word(&m, &last);
        if (r == 0 && (x.code < 200 || x.code > 202))
                r = exchange_refused(&x, err);
        else if (r == 0 && x.code != 201 && !success)
                r = err_set(err, MOVER_AGAIN, "the server that copies says: " STR_FMT,
                            STR_ARG(str_head(last.n ? last : STR("nothing"), 200)));
        else if (r == 0 && x.code == 201 && last.n && !success)
                r = err_set(err, MOVER_AGAIN, "the server that copies says: " STR_FMT,
                            STR_ARG(str_head(last, 200)));
        t->moved += m.moved;
        buf_deinit(&m.text);
        if (r == 0)
                r = compare_copy(t, moves ? temporary : t->task->url, p, err);
        if (r == 0 && moves)
                r = curl_move(t, temporary, err);
        if (r != 0 && moves)
                curl_drop(t, temporary);
        return r;
}
