/* A checkpoint that the far server keeps, brought here while the job goes on there or waits.
 *
 * It was made because somebody vacated or held the job there; its files are named in the job's ad. They come
 * into a folder of their own in the sandbox, .drover_hop.STEP.kept.0 or .1, in turns: the agent may still be
 * reading the one before. What the job looks like is asked for once more when all are here: the far server
 * may have had the next one meanwhile. Then the agent is told of them. A job that ends meanwhile has better
 * things to bring, and they stay where they are. With a map of users they are left there, too. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/url.h"
#include "run/drover_private.h"

#define FILES_MAX   20000
#define KEEPING_MAX 6 /* tasks whose checkpoints are on their way at the same time */
#define STREAM      ".drover_out."

struct far_kept {
        json_t *list;
        char *id; /* the list as a text */
        size_t at;
};

void far_kept_drop(struct far_task *t)
{
        if (!t->kept)
                return;
        t->far->keeping--;
        json_decref(t->kept->list);
        free(t->kept->id);
        free(t->kept);
        t->kept = NULL;
}

static const char *name_of(const struct far_kept *k, size_t i)
{
        const char *z = json_string_value(json_object_get(json_array_get(k->list, i), "Name"));
        return z ? z : "";
}

static void folder(const struct far_task *t, struct buf *out)
{
        buf_printf(out, ".drover_hop.%u.kept.%u", t->id.step, t->kept_turn & 1);
}

/* What is not brought: a later one may be. */
static void give_up(struct far_task *t, const char *why)
{
        log_warn("msg=\"a checkpoint is left at the other server\" queue=%s job=%llu.%u error=\"%s\"",
                 t->far->queue, (unsigned long long)t->id.request, t->id.member, LOG_TEXT(str_of(why)));
        free(t->kept_id);
        t->kept_id = mem_dupz(t->kept->id);
        far_kept_drop(t);
        t->dirty = true;
}

/* The far job's streams are those of this step's rounds there: they belong behind what is here already. */
static const char *own_stream(const struct far_task *t, const char *name, bool *ret_append)
{
        bool out = !strcmp(name, STREAM "0");
        *ret_append = out ? t->out_append : t->err_append;
        return out ? t->out : !strcmp(name, STREAM "1") ? t->err : NULL;
}

static int path_of(const struct far_task *t, const char *name, struct buf *out)
{
        bool stream = str_starts(str_of(name), STR(STREAM));
        BUF_CLEANUP struct buf dir = {0};
        buf_printf(&dir, "%s/", t->sandbox);
        folder(t, &dir);
        if (!stream && str_starts(str_of(name), STR(".drover_")))
                return -EINVAL;
        return far_path_in(out, buf_z(&dir), name);
}

static int new_file(const struct far_task *t, const char *name)
{
        BUF_CLEANUP struct buf to = {0}, dir = {0};
        int r = path_of(t, name, &to);
        if (r < 0)
                return r;
        buf_str(&dir, str_head(buf_view(&to), (size_t)str_rfind(buf_view(&to), '/')));
        r = fs_mkdirs(buf_z(&dir), 0755);
        int fd = r < 0 ? -1 : open(buf_z(&to), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        return r < 0 ? r : fd < 0 ? -errno : fd;
}

static void fetch_next(struct far_task *t);

static void arrived(struct far_task *t)
{
        struct far_kept *k = t->kept;
        BUF_CLEANUP struct buf path = {0};
        const json_t *mode = json_object_get(json_array_get(k->list, k->at), "Mode");
        if (path_of(t, name_of(k, k->at), &path) == 0)
                chmod(buf_z(&path), ((mode_t)json_integer_value(mode) & 0777) | 0600);
        k->at++;
        t->dirty |= k->at == json_array_size(k->list); /* is it still so? */
        if (!t->dirty)
                fetch_next(t);
}

static void on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct far_task *t = arg;
        BUF_CLEANUP struct buf why = {0};
        t->call = NULL;
        close(t->fd);
        t->fd = -1;
        if (status == 200) {
                arrived(t);
        } else if (status < 0) {
                give_up(t, "it cannot be written here");
        } else if (status == 0 || status == 503 || status == 401) { /* later */
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
                if (!status)
                        far_away(t->far, err->text);
        } else {
                far_error(&why, status, body);
                give_up(t, buf_z(&why));
        }
        timer_start(t->far->later, 0);
}

static void fetch_next(struct far_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        const char *name = name_of(t->kept, t->kept->at);
        int fd = new_file(t, name);
        if (fd < 0) {
                give_up(t, strerror(-fd));
                return;
        }
        t->fd = fd;
        far_file_path(t, name, &path);
        const struct http_call_spec spec = {
                .method = "GET", .path = buf_z(&path), .fd = fd, .to_fd = true, .timeout_ms = 3600000};
        t->call = http_client_call(t->far->client, &spec, on_file, t);
}

/* ---- all is here */

static int copy_into(const char *from, int to)
{
        int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (in < 0)
                return errno == ENOENT ? 0 : -errno;
        int r = fs_copy(in, to, NULL);
        close(in);
        return r;
}

/* A stream of this step: what it wrote here before, and there. */
static int join_stream(const struct far_task *t, const char *name, const char *ours, bool append)
{
        BUF_CLEANUP struct buf there = {0}, here = {0}, all = {0};
        int r = path_of(t, name, &there);
        if (r < 0)
                return r;
        buf_printf(&all, "%s.all", buf_z(&there));
        buf_printf(&here, "%s/%s", t->sandbox, ours);
        int fd = open(buf_z(&all), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        if (append)
                r = copy_into(buf_z(&here), fd);
        if (r == 0)
                r = copy_into(buf_z(&there), fd);
        close(fd);
        return r;
}

/* "FILE NAME" lines: what is in the sandbox as FILE shall be NAME in it. */
static int write_names(struct far_task *t, struct buf *out)
{
        BUF_CLEANUP struct buf dir = {0};
        folder(t, &dir);
        for (size_t i = 0; i < json_array_size(t->kept->list); i++) {
                const char *name = name_of(t->kept, i);
                bool append, is_stream = str_starts(str_of(name), STR(STREAM));
                const char *ours = is_stream ? own_stream(t, name, &append) : name;
                int r = ours && is_stream ? join_stream(t, name, ours, append) : 0;
                if (r < 0)
                        return r;
                if (ours && !strchr(name, '\n') && *ours != '/')
                        buf_printf(out, "%s/%s%s\n%s\n", buf_z(&dir), name, is_stream ? ".all" : "", ours);
        }
        return 0;
}

static void complete(struct far_task *t)
{
        BUF_CLEANUP struct buf names = {0};
        int r = write_names(t, &names);
        if (r < 0) {
                give_up(t, strerror(-r));
                return;
        }
        free(t->kept_id);
        t->kept_id = mem_dupz(t->kept->id);
        far_kept_drop(t);
        far_gather(t->far, (struct run_event){.id = t->id,
                                              .state = RUN_CHECKPOINTED,
                                              .slot = UINT32_MAX,
                                              .text = buf_z(&names)});
}

static void begin(struct far_task *t, const json_t *list, char *id)
{
        BUF_CLEANUP struct buf dir = {0};
        int sandbox = open(t->sandbox, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        far_kept_drop(t);
        t->far->keeping++;
        t->kept = mem_new(struct far_kept);
        t->kept->list = json_deep_copy(list);
        t->kept->id = id;
        t->kept_turn++;
        folder(t, &dir);
        if (sandbox >= 0) {
                fs_remove_tree(sandbox, buf_z(&dir));
                close(sandbox);
        }
        fetch_next(t);
}

void far_keep_here(struct far_task *t, const json_t *job)
{
        const json_t *list = json_object_get(json_object_get(job, "ad"), "DroverCheckpoint");
        size_t n = json_array_size(list);
        if (t->state != FAR_IN || t->call || t->dirty || t->killing || t->far->user || t->far->shared ||
            n == 0 || n > FILES_MAX)
                return;
        char *dump = json_dumps(list, JSON_COMPACT), *id = mem_dupz(dump);
        free(dump);
        bool same = t->kept && !strcmp(t->kept->id, id), here = t->kept_id && !strcmp(t->kept_id, id);
        if (!here && !same && (t->kept || t->far->keeping < KEEPING_MAX)) {
                begin(t, list, id);
                return;
        }
        free(id);
        if (!here && !same) { /* others' first */
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
        } else if (same && t->kept->at < n)
                fetch_next(t);
        else if (same)
                complete(t);
}
