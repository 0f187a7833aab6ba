/* A checkpoint that the remote server keeps, brought here while the job goes on there or waits.
 *
 * It was made because somebody vacated or held the job there; its files are named in the job's ad. Each comes
 * into a file at the top of the sandbox, .drover_hop.STEP.kept.0.INDEX or .1.INDEX, in turns: the agent may
 * still be reading the one before. There is no folder: with a map of users the sandbox is its user's, who
 * could not remove what is in a folder of ours. What the job looks like is asked for once more when all are
 * here: the remote server may have had the next one meanwhile. Then the agent is told of them. A job that
 * ends meanwhile has better things to bring, and they stay where they are. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "run/drover/private.h"
#include "run/drover/remote_number.h"

#define JOIN_MS     3600000
#define KEEPING_MAX 6 /* tasks whose checkpoints are on their way at the same time */
#define STREAM      ".drover_out."
#define ALL         ".all" /* behind the name of a stream: joined to what was here */

static const char *name_of(const struct remote_checkpoint *k, size_t i)
{
        const char *z = json_string_value(json_object_get(json_array_get(k->list, i), "Name"));
        return z ? z : "";
}

static bool is_stream(const char *name)
{
        return str_starts(str_of(name), STR(STREAM));
}

/* Can a file of the checkpoint be called so? */
static bool is_fit(const char *name)
{
        BUF_CLEANUP struct buf path = {0};
        bool agent_s = str_starts(str_of(name), STR(".drover_")) && !is_stream(name);
        return !agent_s && !strchr(name, '\n') && remote_path_in(&path, ".", name) == 0;
}

/* What it is in the sandbox. */
static void name_here(const struct remote_task *t, size_t i, struct buf *out)
{
        buf_printf(out, ".drover_hop.%u.kept.%u.%zu", t->id.step, t->checkpoint_turn & 1, i);
}

/* What is not brought: a later one may be. */
static void give_up(struct remote_task *t, const char *why)
{
        log_warn("msg=\"a checkpoint is left at the other server\" queue=%s job=%llu.%u error=\"%s\"",
                 t->remote->queue, (unsigned long long)t->id.request, t->id.member, LOG_TEXT(str_of(why)));
        free(t->checkpoint_id);
        t->checkpoint_id = mem_dupz(t->checkpoint->id);
        remote_checkpoint_drop(t);
        t->dirty = true;
}

/* The remote job's streams are those of this step's rounds there: they belong behind what is here already. */
static const char *own_stream(const struct remote_task *t, const char *name, bool *ret_append)
{
        bool out = !strcmp(name, STREAM "0");
        *ret_append = out ? t->out_append : t->err_append;
        return out ? t->out : !strcmp(name, STREAM "1") ? t->err : NULL;
}

static int new_file(const struct remote_task *t, size_t i)
{
        BUF_CLEANUP struct buf name = {0};
        const json_t *mode = json_object_get(json_array_get(t->checkpoint->list, i), "Mode");
        mode_t bits = ((mode_t)json_integer_value(mode) & 0777) | (t->remote->user ? 0644 : 0600);
        if (!is_fit(name_of(t->checkpoint, i)))
                return -EINVAL;
        int dir = open(t->sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return -errno;
        name_here(t, i, &name);
        unlinkat(dir, buf_z(&name), 0); /* of an earlier life */
        int fd = openat(dir, buf_z(&name), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        int r = fd < 0 || fchmod(fd, bits) < 0 ? -errno : 0;
        close(dir);
        if (r < 0 && fd >= 0)
                close(fd);
        return r < 0 ? r : fd;
}

static void fetch_next(struct remote_task *t);

static void arrived(struct remote_task *t)
{
        struct remote_checkpoint *k = t->checkpoint;
        k->at++;
        t->dirty |= k->at == json_array_size(k->list); /* is it still so? */
        if (!t->dirty)
                fetch_next(t);
}

static void on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        BUF_CLEANUP struct buf why = {0};
        t->call = NULL;
        close(t->fd);
        t->fd = -1;
        if (status == 200) {
                arrived(t);
        } else if (status < 0) {
                give_up(t, err->text);
        } else if (status == 0 || remote_later(status)) {
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
                if (!status)
                        remote_unreachable(t->remote, err->text);
        } else {
                remote_error(&why, status, body);
                give_up(t, buf_z(&why));
        }
        timer_start(t->remote->later, 0);
}

static void fetch_next(struct remote_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        const char *name = name_of(t->checkpoint, t->checkpoint->at);
        int fd = new_file(t, t->checkpoint->at);
        if (fd < 0) {
                give_up(t, strerror(-fd));
                return;
        }
        const json_t *file = json_array_get(t->checkpoint->list, t->checkpoint->at);
        uint64_t size = (uint64_t)remote_number_within(file, "Size", 0, INT64_MAX);
        if (!fs_has_room(fd, size)) {
                close(fd);
                give_up(t, strerror(ENOSPC));
                return;
        }
        t->fd = fd;
        remote_file_path(t, name, &path);
        const struct http_call_spec spec = {.method = "GET",
                                            .path = buf_z(&path),
                                            .fd = fd,
                                            .to_fd = true,
                                            .limited = true,
                                            .limit = size,
                                            .timeout_ms = 3600000};
        t->call = http_client_call(t->remote->client, &spec, on_file, t);
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

/* What the stream has here, and behind it what came: in a file of its own. */
static int join_stream(const struct remote_task *t, struct str came, struct str ours)
{
        BUF_CLEANUP struct buf there = {0}, here = {0}, all = {0};
        buf_printf(&there, "%s/" STR_FMT, t->sandbox, STR_ARG(came));
        buf_printf(&here, "%s/" STR_FMT, t->sandbox, STR_ARG(ours));
        buf_printf(&all, "%s" ALL, buf_z(&there));
        int fd = open(buf_z(&all), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        int r = copy_into(buf_z(&here), fd);
        if (r == 0)
                r = copy_into(buf_z(&there), fd);
        close(fd);
        return r;
}

/* Lines in pairs. `names`: what is in the sandbox as the first shall be the second in it. `joins`: the first
 * belongs behind what the stream has here already, the second. */
static void write_names(const struct remote_task *t, struct buf *names, struct buf *joins)
{
        for (size_t i = 0; i < json_array_size(t->checkpoint->list); i++) {
                BUF_CLEANUP struct buf here = {0};
                const char *name = name_of(t->checkpoint, i);
                bool append = false;
                const char *ours = is_stream(name) ? own_stream(t, name, &append) : name;
                if (!ours || *ours == '/')
                        continue;
                name_here(t, i, &here);
                if (append)
                        buf_printf(joins, "%s\n%s\n", buf_z(&here), ours);
                buf_printf(names, "%s%s\n%s\n", buf_z(&here), append ? ALL : "", ours);
        }
}

static void joined(struct remote_task *t, const char *why)
{
        BUF_CLEANUP struct buf names = {0}, joins = {0};
        if (t->state != REMOTE_IN || !t->checkpoint)
                return;
        if (why) {
                give_up(t, why);
                return;
        }
        write_names(t, &names, &joins);
        free(t->checkpoint_id);
        t->checkpoint_id = mem_dupz(t->checkpoint->id);
        remote_checkpoint_drop(t);
        event_queue_checkpointed(t->remote->events, t->id, buf_z(&names));
}

static void on_joined(void *arg, int status, struct str out, struct str errors)
{
        struct remote_task *t = arg;
        BUF_CLEANUP struct buf why = {0};
        (void)out;
        t->user_command = NULL;
        if (status != 0)
                remote_user_said(&why, errors);
        joined(t, status == 0 ? NULL : why.n ? buf_z(&why) : "its streams cannot be joined");
        t->dirty = true; /* what has happened meanwhile? */
        timer_start(t->remote->later, 0);
}

static void join_by_user(struct remote_task *t, struct str lines)
{
        static const char script[] = "cd -- \"$1\" || exit 1\n"
                                     "while read -r came && read -r stream; do\n"
                                     "        [ -e \"./$stream\" ] || : >\"./$stream\"\n"
                                     "        cat -- \"./$stream\" \"$came\" >\"$came.all\" || exit 1\n"
                                     "done\n";
        const char *words[] = {t->sandbox, NULL};
        const struct user_command_spec s = {.input = lines, .timeout_ms = JOIN_MS};
        t->user_command = remote_user_run(t->remote->user, script, words, &s, on_joined, t);
}

static void complete(struct remote_task *t)
{
        BUF_CLEANUP struct buf names = {0}, joins = {0};
        struct str came, ours;
        int r = 0;
        write_names(t, &names, &joins);
        if (joins.n && t->remote->user) {
                join_by_user(t, buf_view(&joins));
                return;
        }
        for (struct str rest = buf_view(&joins);
             r == 0 && str_cut(&rest, '\n', &came) && str_cut(&rest, '\n', &ours);)
                r = join_stream(t, came, ours);
        joined(t, r < 0 ? strerror(-r) : NULL);
}

/* Those of the turn before the last one. */
static void remove_old(struct remote_task *t, size_t count)
{
        size_t *most = &t->checkpoint_most[t->checkpoint_turn & 1];
        int dir = open(t->sandbox, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        for (size_t i = 0; dir >= 0 && i < *most; i++) {
                BUF_CLEANUP struct buf name = {0};
                name_here(t, i, &name);
                unlinkat(dir, buf_z(&name), 0);
                buf_addz(&name, ALL);
                unlinkat(dir, buf_z(&name), 0);
        }
        if (dir >= 0)
                close(dir);
        *most = count;
}

static void begin(struct remote_task *t, const json_t *list, char *id)
{
        remote_checkpoint_drop(t);
        t->remote->table.keeping++;
        t->checkpoint = mem_new(struct remote_checkpoint);
        t->checkpoint->list = json_deep_copy(list);
        t->checkpoint->id = id;
        t->checkpoint_turn++;
        remove_old(t, json_array_size(list));
        fetch_next(t);
}

bool remote_checkpoint_bring(struct remote_task *t, const json_t *job)
{
        const json_t *list = json_object_get(json_object_get(job, "ad"), "DroverCheckpoint");
        size_t n = json_array_size(list);
        if (t->state != REMOTE_IN || t->call || t->dirty || t->killing || t->remote->shared || n == 0 ||
            n > REMOTE_FILES_MAX)
                return t->call || t->dirty;
        char *dump = json_dumps(list, JSON_COMPACT), *id = mem_dupz(dump);
        free(dump);
        bool same = t->checkpoint && !strcmp(t->checkpoint->id, id),
             here = t->checkpoint_id && !strcmp(t->checkpoint_id, id);
        if (!here && !same && (t->checkpoint || t->remote->table.keeping < KEEPING_MAX)) {
                begin(t, list, id);
                return t->checkpoint || t->dirty;
        }
        free(id);
        if (!here && !same) { /* others' first */
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
        } else if (same && t->checkpoint->at < n) {
                fetch_next(t);
        } else if (same) {
                complete(t);
        }
        return t->checkpoint || t->dirty;
}
