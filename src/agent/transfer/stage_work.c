#include "agent/transfer/stage_work.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/credential/credential_file.h"
#include "agent/transfer/file_call.h"
#include "agent/transfer/move_files.h"
#include "agent/transfer/userlog_file.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/system/fs.h"
#include "base/system/secret.h"
#include "run/sandbox_names.h"

#define STAGE_MAGIC 0x31676174532d7244u /* "Dr-Stag1" */
#define CONTENTS_AT 4096
#define TASK_MAX    (64u << 20)
#define ROOM        (1u << 17)
#define LIST_MAX    1000000
#define ROOM_LEFT   (64ull << 20) /* bytes that a copy leaves free on the disk */

struct head {
        uint64_t magic, task_at, task_size, answer_at, answer_size;
};

/* Offset of the progress, after the head. The child maps it; the agent, whose child may shorten the file,
 * reads it. */
#define PROGRESS_AT 64
struct stage_progress {
        atomic_uint_fast64_t steps, number;
};
_Static_assert(sizeof(struct head) <= PROGRESS_AT, "progress is behind the head");

void stage_work_init(struct stage_work *w, enum stage_kind kind, uint32_t fence)
{
        *w = (struct stage_work){
                .kind = kind, .fence = fence, .sandbox = -1, .data = -1, .holes_max = STAGE_HOLES_MAX};
}

static void files_free(struct stage_work *w)
{
        for (size_t i = 0; i < w->count; i++) {
                free(w->files[i].from);
                free(w->files[i].to);
        }
        free(w->files);
        w->files = NULL;
        w->count = w->cap = 0;
}

void stage_work_deinit(struct stage_work *w)
{
        files_free(w);
        for (size_t i = 0; i < w->input_count; i++)
                free(w->inputs[i].name);
        free(w->inputs);
        for (size_t i = 0; i < w->remap_count; i++) {
                free(w->remaps[i].from);
                free(w->remaps[i].to);
        }
        free(w->remaps);
        free(w->iwd);
        free(w->destination);
        if (w->sandbox >= 0)
                close(w->sandbox);
        if (w->data >= 0)
                close(w->data);
}

struct stage_file *stage_work_file(struct stage_work *w, char *from, char *to)
{
        MEM_GROW(w->files, w->cap, w->count + 1);
        struct stage_file *f = &w->files[w->count++];
        *f = (struct stage_file){.from = from, .to = to, .mtime_ns = INT64_MIN};
        return f;
}

/* ---- names */

char *stage_work_join(const char *dir, struct str name)
{
        struct buf b = {0};

        if (!str_starts(name, STR("/"))) {
                buf_addz(&b, dir);
                buf_char(&b, '/');
        }
        buf_str(&b, name);
        return buf_take(&b);
}

bool stage_work_is_pattern(struct str name)
{
        return str_find(name, '*') >= 0 || str_find(name, '?') >= 0 || str_find(name, '[') >= 0;
}

/* A pattern is remapped to a folder, whose name ends with a slash, or to a name for its only match. In the
 * folder a file has its last component as name, or everything after "/./" in the pattern. */
#define KEPT_FROM "/./"

static char *destination_in(const struct stage_work *w, struct str to, struct str base)
{
        BUF_CLEANUP struct buf b = {0};

        buf_str(&b, to);
        if (str_ends(to, STR("/")))
                buf_str(&b, base);
        return stage_work_place(w, buf_view(&b));
}

/* The place of the sandbox's file `name`: of what the job remaps it to, else of its last component. */
static char *stage_work_destination(const struct stage_work *w, const char *name)
{
        struct str to = str_of(name);

        to = str_skip(to, (size_t)(str_rfind(to, '/') + 1));
        for (size_t i = 0; i < w->remap_count; i++)
                if (!strcmp(w->remaps[i].from, name))
                        return stage_work_place(w, str_of(w->remaps[i].to));
        for (size_t i = 0; i < w->remap_count; i++) {
                BUF_CLEANUP struct buf pattern = {0};
                struct str from = str_of(w->remaps[i].from);
                ptrdiff_t cut = str_search(from, STR(KEPT_FROM));

                if (!stage_work_is_pattern(from))
                        continue;
                buf_str(&pattern, str_head(from, cut >= 0 ? (size_t)cut + 1 : from.n));
                buf_str(&pattern, str_skip(from, cut >= 0 ? (size_t)cut + strlen(KEPT_FROM) : from.n));
                if (fnmatch(buf_z(&pattern), name, FNM_PATHNAME | FNM_PERIOD) == 0)
                        return destination_in(w, str_of(w->remaps[i].to),
                                              cut >= 0 ? str_skip(str_of(name), (size_t)cut + 1) : to);
        }
        return stage_work_place(w, to);
}

bool stage_work_is_url(const char *place)
{
        return str_search(str_of(place), STR("://")) > 0;
}

char *stage_work_place(const struct stage_work *w, struct str name)
{
        if (str_search(name, STR("://")) > 0)
                return str_dupz(name);
        if (w->destination && !str_starts(name, STR("/")))
                return stage_work_join(w->destination, name);
        return w->kind == STAGE_OUT ? stage_work_join(w->iwd, name) : str_dupz(name);
}

int stage_work_output(struct stage_work *w, struct str name, bool optional)
{
        if (w->count >= STAGE_FILES_MAX)
                return err_set(&w->err, -E2BIG, "the job has more than %d outputs", STAGE_FILES_MAX);
        char *from = str_dupz(name);
        stage_work_file(w, from, stage_work_destination(w, from))->optional = optional;
        return 0;
}

int stage_work_pattern(struct stage_work *w, struct str name, bool optional)
{
        int r = stage_work_output(w, name, optional);

        if (r == 0)
                w->files[w->count - 1].pattern = true;
        return r;
}

static int64_t mtime_of(const struct stat *st)
{
        return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool is_new(const struct stage_work *w, const char *name)
{
        struct stat st;

        if (fstatat(w->sandbox, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
                return false;
        for (size_t i = 0; i < w->input_count; i++)
                if (!strcmp(w->inputs[i].name, name))
                        return w->inputs[i].mtime_ns != mtime_of(&st) ||
                               w->inputs[i].size != (uint64_t)st.st_size;
        return mtime_of(&st) / 1000000 >= w->new_since_ms;
}

bool stage_work_lists(const struct stage_work *w, struct str name, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (str_eqz(name, w->files[i].stands_in ? w->files[i].to : w->files[i].from))
                        return true;
        return false;
}

static bool is_own(const char *name)
{
        return strncmp(name, ".drover_", 8) == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

struct matching {
        size_t pattern; /* index of the pattern among the files */
        bool keep;      /* files have their names in the sandbox where they go, too */
        bool found;     /* anything */
};

/* Adds a match of a pattern. */
static int add_match(struct stage_work *w, const struct stage_file *pattern, struct str name,
                     struct matching *m)
{
        struct stat st;
        MEM_CLEANUP char *z = str_dupz(name);
        bool optional = pattern->optional; /* the list may move */

        if (fstatat(w->sandbox, z, &st, AT_SYMLINK_NOFOLLOW) < 0 || (!S_ISDIR(st.st_mode) && !is_new(w, z)))
                return 0;
        m->found = true;
        if (stage_work_lists(w, name, w->count))
                return 0; /* already listed, by its name or by another pattern */
        int r = stage_work_output(w, name, optional);
        if (r == 0 && m->keep) {
                free(w->files[w->count - 1].to);
                w->files[w->count - 1].to = str_dupz(name);
        }
        return r;
}

/* Files called like `rest` in the folder `path`; links are not followed. */
static int find_matches(struct stage_work *w, struct matching *m, struct str path, struct str rest)
{
        struct str first;

        str_cut(&rest, '/', &first);
        MEM_CLEANUP char *name = str_dupz(first), *folder = str_dupz(path.n ? path : STR("."));
        int fd = fs_open_beneath(w->sandbox, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0),
            r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        while (dir && r == 0 && (e = readdir(dir)) && (r = fs_pace_step(&w->pace)) == 0) {
                BUF_CLEANUP struct buf found = {0};

                if (is_own(e->d_name) || fnmatch(name, e->d_name, FNM_PERIOD) != 0)
                        continue;
                buf_str(&found, path);
                buf_printf(&found, "%s%s", path.n ? "/" : "", e->d_name);
                if (rest.p)
                        r = find_matches(w, m, buf_view(&found), rest);
                else
                        r = add_match(w, &w->files[m->pattern], buf_view(&found), m);
        }
        if (dir)
                closedir(dir);
        return r;
}

/* Replaces patterns by their matches. */
static int find_patterns(struct stage_work *w)
{
        size_t listed = w->count, kept = 0;
        int r = 0;

        for (size_t i = 0; i < listed && r == 0; i++) {
                if (!w->files[i].pattern)
                        continue;
                if (faccessat(w->sandbox, w->files[i].from, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
                        w->files[i].pattern = false;
                        continue;
                }
                MEM_CLEANUP char *pattern = mem_dupz(w->files[i].from);
                struct matching m = {.pattern = i, .keep = strcmp(w->files[i].from, w->files[i].to) == 0};
                r = find_matches(w, &m, STR_NONE, str_of(pattern));
                if (r == 0 && !m.found && !w->files[i].optional)
                        r = err_set(&w->err, -ENOENT, "the job has left no file that is called like %s",
                                    pattern);
        }
        for (size_t i = 0; i < w->count; i++)
                if (w->files[i].pattern) {
                        free(w->files[i].from);
                        free(w->files[i].to);
                } else {
                        w->files[kept++] = w->files[i];
                }
        w->count = kept;
        return r;
}

static int by_place(const void *x, const void *y)
{
        const struct stage_file *const *a = x, *const *b = y;
        int order = strcmp((*a)->to, (*b)->to);

        return order ? order : strcmp((*a)->from, (*b)->from);
}

/* Refuses two files of the job that would go to one place, where only one would be left. */
static int check_places(struct stage_work *w)
{
        const struct stage_file **files = mem_array(NULL, w->count + 1, sizeof(*files));
        size_t n = 0;
        int r = 0;

        for (size_t i = 0; i < w->count; i++)
                if (!is_own(w->files[i].from) && !w->files[i].stands_in)
                        files[n++] = &w->files[i];
        if (n > 1)
                qsort(files, n, sizeof(*files), by_place);
        for (size_t i = 1; i < n && r == 0; i++)
                if (strcmp(files[i - 1]->to, files[i]->to) == 0 &&
                    strcmp(files[i - 1]->from, files[i]->from) != 0)
                        r = err_set(&w->err, -EEXIST, "the outputs %s and %s both go to %s",
                                    files[i - 1]->from, files[i]->from, files[i]->to);
        free(files);
        return r;
}

int stage_work_find(struct stage_work *w)
{
        int found = find_patterns(w);

        if (found < 0)
                return found;
        size_t listed = w->count;
        int fd = w->find_new ? openat(w->sandbox, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, r = 0;
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;
        while (dir && r == 0 && (e = readdir(dir)))
                if (!is_own(e->d_name) && is_new(w, e->d_name) &&
                    !stage_work_lists(w, str_of(e->d_name), listed))
                        r = stage_work_output(w, str_of(e->d_name), w->new_optional);
        if (dir)
                closedir(dir);
        w->find_new = false;
        return r == 0 && (w->kind == STAGE_OUT || w->kind == STAGE_HASH) ? check_places(w) : r;
}

/* ---- files */

static int write_at(int fd, const char *p, size_t n, uint64_t at)
{
        while (n > 0) {
                ssize_t done = pwrite(fd, p, n, (off_t)at);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return -errno;
                p += done;
                n -= (size_t)done;
                at += (uint64_t)done;
        }
        return 0;
}

/* Copies a part of a file to a place in another; a short source is an error. */
static int copy_part(int from, uint64_t from_at, int to, uint64_t to_at, uint64_t size, struct fs_pace *pace)
{
        MEM_CLEANUP char *room = mem_alloc(ROOM);

        while (size > 0) {
                ssize_t n = pread(from, room, size < ROOM ? (size_t)size : ROOM, (off_t)from_at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                int r = write_at(to, room, (size_t)n, to_at);
                if (r < 0)
                        return r;
                from_at += (uint64_t)n;
                to_at += (uint64_t)n;
                size -= (uint64_t)n;
                if ((r = fs_pace_step(pace)) < 0)
                        return r;
        }
        return 0;
}

static int carry_in(struct stage_work *w, const struct stage_file *f)
{
        const char *slash = strrchr(f->to, '/');
        int r = 0;

        if (slash) {
                MEM_CLEANUP char *folder = mem_dup(f->to, (size_t)(slash - f->to));

                r = fs_mkdirs_beneath(w->sandbox, folder, 0700);
        }
        int to = r < 0 ? r
                       : fs_open_beneath(w->sandbox, f->to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
        if (to >= 0) {
                r = copy_part(w->data, f->at, to, 0, f->size, &w->pace);
                if (r == 0 && fchmod(to, 0600 | (f->executable ? 0111 : 0)) < 0)
                        r = -errno;
                if (close(to) < 0 && r == 0)
                        r = -errno;
        } else {
                r = to;
        }
        w->bytes += f->size;
        return r < 0 ? err_set(&w->err, r, "cannot write the input %s: %s", f->to, strerror(-r)) : 0;
}

/* Returns whether the disk has room for the copy of a hole, which takes no room in the source but may in the
 * copy. */
static bool stage_work_has_room(int fd, uint64_t bytes)
{
        struct statvfs v;
        uint64_t room = fstatvfs(fd, &v) < 0 ? UINT64_MAX : (uint64_t)v.f_bavail * v.f_frsize;

        return bytes <= ROOM_LEFT || (bytes < room && room - bytes >= ROOM_LEFT);
}

/* A hole of a file, which may be empty, and the data after it. */
struct extent {
        uint64_t data, end;
};

/* Finds the extent at `at`. If the file system does not report holes, all is data. */
static struct extent extent_find(int fd, uint64_t at, uint64_t size)
{
        off_t data = lseek(fd, (off_t)at, SEEK_DATA), end = data < 0 ? -1 : lseek(fd, data, SEEK_HOLE);

        if (data < 0)
                return (struct extent){errno == ENXIO ? size : at, size};
        return (struct extent){(uint64_t)data < size ? (uint64_t)data : size,
                               end > data && (uint64_t)end < size ? (uint64_t)end : size};
}

/* Sums a file; with a task file its contents are copied there as they are read, and holes stay holes. */
static int hash_file(struct stage_work *w, struct stage_file *f)
{
        int fd = fs_open_beneath(w->sandbox, f->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        struct stat st;

        if (fd < 0)
                return fd;
        int r = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
        if (r == 0 && w->data >= 0 && !stage_work_has_room(w->data, (uint64_t)st.st_size))
                r = -ENOSPC;
        EVP_MD_CTX *md = EVP_MD_CTX_new();
        EVP_DigestInit_ex(md, EVP_sha256(), NULL);
        MEM_CLEANUP char *room = mem_alloc(ROOM);
        f->at = w->data >= 0 ? w->data_end : 0;
        struct extent next = {0};
        /* stops at the old size, because the file may be growing */
        while (r == 0 && f->size < (uint64_t)st.st_size) {
                if (f->size == next.end) {
                        next = extent_find(fd, f->size, (uint64_t)st.st_size);
                        w->holes += next.data - f->size;
                        if (w->holes > w->holes_max)
                                r = -EFBIG;
                }
                bool hole = f->size < next.data;
                uint64_t left = (hole ? next.data : next.end) - f->size;
                ssize_t n = left < ROOM ? (ssize_t)left : ROOM;
                if (r == 0 && hole)
                        memset(room, 0, (size_t)n);
                else if (r == 0)
                        n = pread(fd, room, (size_t)n, (off_t)f->size);
                if (n < 0 && errno == EINTR)
                        continue;
                if (r == 0 && n < 0)
                        r = -errno;
                if (r < 0 || n <= 0)
                        break;
                if (w->data >= 0 && !hole)
                        r = write_at(w->data, room, (size_t)n, f->at + f->size);
                f->size += (uint64_t)n;
                EVP_DigestUpdate(md, room, (size_t)n);
                if (r == 0)
                        r = fs_pace_step(&w->pace);
        }
        w->data_end += f->size;
        EVP_DigestFinal_ex(md, f->sha256, NULL);
        EVP_MD_CTX_free(md);
        close(fd);
        f->mode = st.st_mode & 0777;
        return r;
}

static int read_bytes(int fd, uint64_t at, uint64_t size, struct buf *out)
{
        if (size == 0 || size > TASK_MAX)
                return -EPROTO;
        char *room = buf_room(out, (size_t)size);
        for (uint64_t done = 0; done < size;) {
                ssize_t n = pread(fd, room + done, (size_t)(size - done), (off_t)(at + done));

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return -EPROTO;
                done += (uint64_t)n;
        }
        out->n += (size_t)size;
        return 0;
}

static int write_log(struct stage_work *w, struct stage_file *f)
{
        struct userlog_file_result result = {0};
        BUF_CLEANUP struct buf text = {.max = TASK_MAX + 1};
        int r = read_bytes(w->data, f->at, f->size, &text);

        if (r < 0)
                return err_set(&w->err, r, "the lines for the log cannot be read");
        r = userlog_file_append(w->hidden, f->to, buf_view(&text), f->maybe_there, &result, &w->err);
        f->again = result.again;
        f->added = result.added;
        return r;
}

/* Does a file operation. The answer is written after the task in a child's file; a worker reads no task
 * there. */
static int do_file_call(struct stage_work *w, struct stage_file *f)
{
        BUF_CLEANUP struct buf packed = {.max = TASK_MAX + 1}, out = {0};
        struct file_answer answer = {0};
        struct file_call call;
        int r = read_bytes(w->data, f->at, f->size, &packed);

        if (r == 0 && !file_call_unpack(buf_view(&packed), &call))
                r = -EPROTO;
        if (r < 0)
                return err_set(&w->err, r, "the call cannot be read");
        r = file_call_run(w->hidden, f->from, &call, &answer, &w->err);
        file_answer_pack(&out, &answer);
        buf_deinit(&answer.data);
        f->at = w->data_end;
        f->size = out.n;
        w->data_end += out.n;
        if (r == 0 && (r = write_at(w->data, out.p, out.n, f->at)) < 0)
                err_set(&w->err, r, "the answer cannot be kept: %s", strerror(-r));
        return r;
}

int stage_work_said(const struct stage_work *w, struct buf *out)
{
        return w->count == 1 && w->files[0].size < FILE_CALL_DATA_MAX + 1024
                       ? read_bytes(w->data, w->files[0].at, w->files[0].size, out)
                       : -EPROTO;
}

bool stage_work_is_apart(const struct stage_work *w)
{
        return w->kind == STAGE_LOG || w->kind == STAGE_FILE;
}

/* The mover has it from the sandbox; here it is only seen that it can. */
static int look_at(struct stage_work *w, struct stage_file *f)
{
        int fd = fs_open_beneath(w->sandbox, f->from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
        struct stat st;
        int r = fd < 0 ? fd : fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;

        if (r == 0)
                f->size = (uint64_t)st.st_size;
        if (fd >= 0)
                close(fd);
        return r;
}

static int write_credential(struct stage_work *w, const struct stage_file *f)
{
        SECRET_CLEANUP struct buf text = {.max = TASK_MAX + 1};
        int r = strchr(f->to, '/') ? -EINVAL : read_bytes(w->data, f->at, f->size, &text);

        if (r == 0)
                r = credential_write(w->sandbox, f->to, buf_view(&text));
        return r < 0 ? err_set(&w->err, r, "cannot write the credential %s: %s", f->to, strerror(-r)) : 0;
}

/* Returns an error text, in `room` or static. */
static const char *why_unread(const struct stage_work *w, int r, char room[160])
{
        if (r != -EFBIG)
                return strerror(-r);
        snprintf(room, 160,
                 "holes in outputs are more than %llu GiB, and the job's request_disk is no larger",
                 (unsigned long long)(w->holes_max >> 30));
        return room;
}

static int make_folder(struct stage_work *w, const struct stage_file *f)
{
        int r = fs_mkdirs_beneath(w->sandbox, f->to, 0700);

        return r < 0 ? err_set(&w->err, r, "cannot make the folder %s: %s", f->to, strerror(-r)) : 0;
}

static int stage_work_do(struct stage_work *w, struct stage_file *f)
{
        if (w->kind == STAGE_LOG)
                return write_log(w, f);
        if (w->kind == STAGE_FILE)
                return do_file_call(w, f);
        if (w->kind == STAGE_CREDENTIALS)
                return write_credential(w, f);
        if (w->kind == STAGE_IN && f->folder)
                return make_folder(w, f);
        if (w->kind == STAGE_IN && f->carried)
                return carry_in(w, f);
        if (w->kind == STAGE_IN)
                return move_in(f->cached ? NULL : w->hidden, f->from, w->sandbox, f->to, f->contents,
                               f->executable ? 0111 : 0, &w->pace, &w->bytes, &w->err);
        char why[160];
        int r;
        if (stage_work_is_url(f->to)) {
                r = w->data >= 0 ? hash_file(w, f) : look_at(w, f);
                if (r < 0)
                        err_set(&w->err, r, "cannot send the output %s to its URL: %s", f->from,
                                r == -EINVAL || r == -EISDIR ? "it is no regular file"
                                                             : why_unread(w, r, why));
        } else if (w->kind == STAGE_OUT) {
                r = move_out(w->hidden, w->sandbox, f->from, w->iwd, f->to, w->fence, false, &w->pace,
                             &w->bytes, &w->err);
        } else {
                r = hash_file(w, f);
                w->bytes += f->size;
                if (r < 0)
                        err_set(&w->err, r, "cannot read the output %s: %s", f->from, why_unread(w, r, why));
        }
        if (r == -ENOENT && f->optional && faccessat(w->sandbox, f->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0) {
                f->missing = true;
                r = 0;
        }
        return r;
}

/* Records time and size of the inputs when the job begins, which tell outputs from inputs later. */
static void look_at_inputs(struct stage_work *w)
{
        for (size_t i = 0; i < w->count; i++) {
                struct stage_file *f = &w->files[i];
                struct stat st;

                if (strchr(f->to, '/') || fstatat(w->sandbox, f->to, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                f->mtime_ns = mtime_of(&st);
                f->size = (uint64_t)st.st_size;
        }
}

/* Returns the file's name for messages. */
static const char *stage_work_name_of(const struct stage_work *w, const struct stage_file *f)
{
        return w->kind == STAGE_OUT || w->kind == STAGE_LOG || f->cached ? f->to : f->from;
}

void stage_work_run(struct stage_work *w)
{
        if (w->over && w->sandbox >= 0)
                fs_remove_tree(w->sandbox, SANDBOX_CREDENTIALS);
        if (w->result == 0)
                w->result = stage_work_find(w);
        if (w->result == 0 && (w->kind == STAGE_HASH || w->kind == STAGE_OUT))
                w->result = stage_work_folders(w);
        for (size_t i = 0; i < w->count && w->result == 0 && (w->result = fs_pace_step(&w->pace)) == 0; i++) {
                w->where = stage_work_name_of(w, &w->files[i]);
                if (w->progress)
                        atomic_store(&w->progress->number, w->files[i].number);
                w->result = stage_work_do(w, &w->files[i]);
        }
        if (w->kind == STAGE_IN && w->result == 0)
                look_at_inputs(w);
}

/* ---- as bytes */

static void pack_z(struct buf *b, const char *z)
{
        pack_str(b, str_of(z ? z : ""));
}

static void pack_work(const struct stage_work *w, struct buf *b)
{
        pack_u64(b, w->kind);
        pack_u64(b, w->fence);
        pack_u64(b, w->data_end);
        pack_u64(b, (w->find_new ? 1u : 0u) | (w->new_optional ? 2u : 0u) | (w->over ? 4u : 0u));
        pack_i64(b, w->new_since_ms);
        pack_u64(b, w->holes_max);
        pack_z(b, w->iwd);
        pack_z(b, w->destination);
        pack_i64(b, w->result);
        pack_u64(b, w->bytes);
        pack_z(b, w->err.text);
        pack_u64(b, w->input_count);
        for (size_t i = 0; i < w->input_count; i++) {
                pack_z(b, w->inputs[i].name);
                pack_i64(b, w->inputs[i].mtime_ns);
                pack_u64(b, w->inputs[i].size);
        }
        pack_u64(b, w->remap_count);
        for (size_t i = 0; i < w->remap_count; i++) {
                pack_z(b, w->remaps[i].from);
                pack_z(b, w->remaps[i].to);
        }
        pack_u64(b, w->count);
        for (size_t i = 0; i < w->count; i++) {
                const struct stage_file *f = &w->files[i];

                pack_z(b, f->from);
                pack_z(b, f->to);
                pack_u64(b, (f->contents ? 1u : 0u) | (f->executable ? 2u : 0u) | (f->carried ? 4u : 0u) |
                                    (f->optional ? 8u : 0u) | (f->missing ? 16u : 0u) |
                                    (f->maybe_there ? 32u : 0u) | (f->again ? 64u : 0u) |
                                    (f->added ? 128u : 0u) | (f->stands_in ? 256u : 0u) |
                                    (f->pattern ? 512u : 0u) | (f->folder ? 1024u : 0u));
                pack_str(b, str_make((const char *)f->sha256, 32));
                pack_u64(b, f->size);
                pack_u64(b, f->at);
                pack_u64(b, f->mode);
                pack_i64(b, f->mtime_ns);
        }
}

static void unpack_file(struct unpack *u, struct stage_work *w)
{
        char *from = str_dupz(unpack_str(u)), *to = str_dupz(unpack_str(u));
        struct stage_file *f = stage_work_file(w, from, to);
        uint64_t flags = unpack_u64(u);

        f->contents = flags & 1;
        f->executable = flags & 2;
        f->carried = flags & 4;
        f->optional = flags & 8;
        f->missing = flags & 16;
        f->maybe_there = flags & 32;
        f->again = flags & 64;
        f->added = flags & 128;
        f->stands_in = flags & 256;
        f->pattern = flags & 512;
        f->folder = flags & 1024;
        struct str sum = unpack_str(u);
        if (sum.n == 32)
                memcpy(f->sha256, sum.p, 32);
        f->size = unpack_max(u, INT64_MAX / 4);
        f->at = unpack_max(u, INT64_MAX / 4);
        f->mode = (uint32_t)unpack_u64(u) & 0777;
        f->mtime_ns = unpack_i64(u);
        f->number = (uint32_t)w->count;
}

/* Into an empty *w. */
static bool unpack_work(struct str bytes, struct stage_work *w)
{
        struct unpack u = unpack_from(bytes);

        w->kind = (enum stage_kind)unpack_max(&u, STAGE_CREDENTIALS);
        w->fence = (uint32_t)unpack_max(&u, UINT32_MAX);
        w->data_end = unpack_max(&u, INT64_MAX / 4);
        uint64_t flags = unpack_u64(&u);
        w->find_new = flags & 1;
        w->new_optional = flags & 2;
        w->over = flags & 4;
        w->new_since_ms = unpack_i64(&u);
        w->holes_max = unpack_u64(&u);
        w->iwd = str_dupz(unpack_str(&u));
        struct str destination = unpack_str(&u);
        w->destination = destination.n ? str_dupz(destination) : NULL;
        int64_t result = unpack_i64(&u);
        w->result = result > 0 || result < -4095 ? -EPROTO : (int)result;
        w->bytes = unpack_u64(&u);
        struct str text = unpack_str(&u);
        err_set(&w->err, w->result, "%.*s", (int)(text.n < 512 ? text.n : 512), text.n ? text.p : "");
        uint64_t n = unpack_max(&u, LIST_MAX);
        for (uint64_t i = 0; i < n && !u.bad; i++) {
                MEM_GROW(w->inputs, w->input_cap, w->input_count + 1);
                struct staged_input *in = &w->inputs[w->input_count++];
                in->name = str_dupz(unpack_str(&u));
                in->mtime_ns = unpack_i64(&u);
                in->size = unpack_u64(&u);
        }
        n = unpack_max(&u, LIST_MAX);
        for (uint64_t i = 0; i < n && !u.bad; i++) {
                MEM_GROW(w->remaps, w->remap_cap, w->remap_count + 1);
                struct stage_remap *m = &w->remaps[w->remap_count++];
                m->from = str_dupz(unpack_str(&u));
                m->to = str_dupz(unpack_str(&u));
        }
        n = unpack_max(&u, LIST_MAX);
        for (uint64_t i = 0; i < n && !u.bad; i++)
                unpack_file(&u, w);
        return unpack_done(&u);
}

int stage_work_text(struct stage_work *w, struct stage_file *f, struct str text)
{
        f->at = w->data_end > CONTENTS_AT ? w->data_end : CONTENTS_AT;
        f->size = text.n;
        w->data_end = f->at + f->size;
        int r = write_at(w->data, text.p, text.n, f->at);
        return r < 0 ? err_set(&w->err, r, "the agent cannot prepare it: %s", strerror(-r)) : 0;
}

int stage_work_write(struct stage_work *w)
{
        int r = 0;

        w->data_end = CONTENTS_AT;
        for (size_t i = 0; i < w->count && r == 0 && (r = fs_pace_step(&w->pace)) == 0; i++) {
                struct stage_file *f = &w->files[i];
                struct stat st;
                bool text = stage_work_is_apart(w) || w->kind == STAGE_CREDENTIALS;

                if (text)
                        w->data_end = f->at + f->size;
                if (!f->carried || text)
                        continue;
                int fd = open(f->from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
                f->at = w->data_end;
                f->size = r == 0 ? (uint64_t)st.st_size : 0;
                if (r == 0)
                        r = copy_part(fd, 0, w->data, f->at, f->size, &w->pace);
                w->data_end += f->size;
                if (fd >= 0)
                        close(fd);
        }
        BUF_CLEANUP struct buf task = {0};
        pack_work(w, &task);
        struct head h = {.magic = STAGE_MAGIC, .task_at = w->data_end, .task_size = task.n};
        if (r == 0)
                r = write_at(w->data, task.p, task.n, h.task_at);
        if (r == 0)
                r = write_at(w->data, (const char *)&h, sizeof(h), 0);
        return r < 0 ? err_set(&w->err, r, "the agent cannot prepare the inputs: %s", strerror(-r)) : 0;
}

int stage_work_answer(struct stage_work *w)
{
        struct head h;
        struct stage_work got;
        BUF_CLEANUP struct buf b = {.max = TASK_MAX + 1};

        if (pread(w->data, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || h.magic != STAGE_MAGIC ||
            h.answer_at > INT64_MAX / 4 || read_bytes(w->data, h.answer_at, h.answer_size, &b) < 0)
                return -EPROTO;
        stage_work_init(&got, w->kind, w->fence);
        bool ok = unpack_work(buf_view(&b), &got) && got.kind == w->kind &&
                  got.count <= STAGE_FILES_MAX + 1000 && (!stage_work_is_apart(&got) || got.count == 1);
        if (ok) {
                files_free(w);
                w->files = got.files;
                w->count = got.count;
                w->cap = got.cap;
                got.files = NULL;
                got.count = 0;
                w->result = got.result;
                w->bytes = got.bytes;
                w->err = got.err;
        }
        stage_work_deinit(&got);
        return ok ? 0 : -EPROTO;
}

int stage_work_look(const struct stage_work *w, uint64_t *ret_steps, const char **ret_where)
{
        uint64_t p[2];

        if (pread(w->data, p, sizeof(p), PROGRESS_AT) != (ssize_t)sizeof(p))
                return -EPROTO;
        *ret_steps = p[0];
        *ret_where = p[1] > 0 && p[1] <= w->count ? stage_work_name_of(w, &w->files[p[1] - 1]) : NULL;
        return 0;
}

bool stage_work_empties(const struct stage_work *w)
{
        bool sends = w->destination;

        for (size_t i = 0; i < w->count && !sends; i++)
                sends = stage_work_is_url(w->files[i].to);
        for (size_t i = 0; i < w->remap_count && !sends; i++)
                sends = stage_work_is_url(w->remaps[i].to);
        return w->kind == STAGE_REMOVE || (w->kind == STAGE_OUT && !sends);
}

static void empty_folder(int folder)
{
        int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        while (dir && (e = readdir(dir)))
                if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                        fs_remove_tree(folder, e->d_name);
        if (dir)
                closedir(dir);
}

static int show_progress(struct stage_work *w)
{
        char *page = mmap(NULL, CONTENTS_AT, PROT_READ | PROT_WRITE, MAP_SHARED, w->data, 0);

        if (page == MAP_FAILED)
                return err_set(&w->err, -errno, "the file of its task cannot be mapped: %s", strerror(errno));
        w->progress = (struct stage_progress *)(void *)(page + PROGRESS_AT);
        w->pace.shown = &w->progress->steps;
        return 0;
}

int stage_work_child(void)
{
        struct head h;
        struct stage_work w;
        BUF_CLEANUP struct buf b = {.max = TASK_MAX + 1};

        stage_work_init(&w, STAGE_IN, 0);
        if (pread(0, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || h.magic != STAGE_MAGIC ||
            read_bytes(0, h.task_at, h.task_size, &b) < 0 || !unpack_work(buf_view(&b), &w))
                return 2;
        w.data = 0;
        w.data_end = h.task_at + h.task_size;
        if (!stage_work_is_apart(&w))
                w.sandbox = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (w.sandbox < 0 && !stage_work_is_apart(&w))
                w.result = err_set(&w.err, -errno, "the job's folder cannot be opened: %s", strerror(errno));
        if (w.result == 0)
                w.result = show_progress(&w);
        stage_work_run(&w);
        if (w.progress)
                atomic_store(&w.progress->steps, STAGE_STEPS_DONE);
        buf_reset(&b);
        pack_work(&w, &b);
        h.answer_at = w.data_end;
        h.answer_size = b.n;
        int r = write_at(0, b.p, b.n, h.answer_at);
        if (r == 0)
                r = write_at(0, (const char *)&h, sizeof(h), 0);
        if (w.sandbox >= 0 && stage_work_empties(&w))
                empty_folder(w.sandbox);
        stage_work_deinit(&w);
        return r < 0 ? 1 : 0;
}
