/* Brings a checkpoint that the other server keeps here, while the job runs or waits there.
 *
 * The checkpoint was made when the job was vacated or held there; the job's ad names its files. Each is
 * copied to a file at the top of the sandbox, .drover_hop.STEP.kept.0.INDEX or .1.INDEX, in turns, since the
 * agent may still be reading the previous one. There is no folder: with a map of users the sandbox belongs
 * to the user, who could not remove files in a folder of the agent's. The job is asked for once more when
 * all files are here, in case the other server has made a newer checkpoint; then the agent is told. When a
 * job ends meanwhile its outputs take precedence, and the checkpoint stays there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/format/json_read.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "run/drover/answers.h"
#include "run/drover/checkpoint.h"
#include "run/drover/link.h"
#include "run/drover/names.h"
#include "run/drover/remote_number.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"
#include "run/drover/user.h"
#include "run/process/user_command.h"

#define JOIN_MS     3600000
#define KEEPING_MAX 6 /* most tasks whose checkpoints are brought at the same time */
#define STREAM      ".drover_out."
#define ALL         ".all" /* suffix of a stream's file: joined with the local part */

static const char *name_of(const struct remote_checkpoint *k, size_t i)
{
        const char *z = json_string_value(json_object_get(json_array_get(k->list, i), "Name"));

        return z ? z : "";
}

static bool is_stream(const char *name)
{
        return str_starts(str_of(name), STR(STREAM));
}

/* Returns whether the name is valid for a file of a checkpoint. */
static bool is_fit(const char *name)
{
        BUF_CLEANUP struct buf path = {0};
        bool agent_s = str_starts(str_of(name), STR(".drover_")) && !is_stream(name);

        return !agent_s && !strchr(name, '\n') && remote_path_in(&path, ".", name) == 0;
}

/* Appends the name of the checkpoint's file i in the sandbox. */
static void name_here(const struct remote_task *t, size_t i, struct buf *out)
{
        buf_printf(out, ".drover_hop.%u.kept.%u.%zu", t->id.step, t->checkpoint_turn & 1, i);
}

/* Gives up this checkpoint; a later one may be brought. */
static void checkpoint_give_up(struct remote_task *t, const char *why)
{
        log_warn("msg=\"a checkpoint is left at the other server\" queue=%s job=%llu.%u error=\"%s\"",
                 t->remote->queue, (unsigned long long)t->id.request, t->id.member, LOG_TEXT(str_of(why)));
        free(t->checkpoint_id);
        t->checkpoint_id = mem_dupz(t->checkpoint->id);
        remote_checkpoint_drop(t);
        t->dirty = true;
}

/* Returns the local file of stdout or stderr to which the checkpoint's file `name` is written; NULL: the file
 * is not a stream. ret_append: the stream at the other server has only this step's output, so it is appended
 * to the output of earlier steps. */
static const char *own_stream(const struct remote_task *t, const char *name, bool *ret_append)
{
        bool out = !strcmp(name, STREAM "0");

        *ret_append = out ? t->out_append : t->err_append;
        return out ? t->out : !strcmp(name, STREAM "1") ? t->err : NULL;
}

static int checkpoint_new_file(const struct remote_task *t, size_t i)
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
        unlinkat(dir, buf_z(&name), 0); /* left by an earlier run */
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
        t->dirty |= k->at == json_array_size(k->list); /* ask whether it is still the latest */
        if (!t->dirty)
                fetch_next(t);
}

static void checkpoint_on_file(void *arg, int status, struct str body, const struct err *err)
{
        struct remote_task *t = arg;
        BUF_CLEANUP struct buf why = {0};

        t->call = NULL;
        close(t->fd);
        t->fd = -1;
        if (status == 200) {
                arrived(t);
        } else if (status < 0) {
                checkpoint_give_up(t, err->text);
        } else if (status == 0 || remote_later(status)) {
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
                if (!status)
                        remote_unreachable(t->remote, err->text);
        } else {
                remote_error(&why, status, body);
                checkpoint_give_up(t, buf_z(&why));
        }
        timer_start(t->remote->later, 0);
}

static void fetch_next(struct remote_task *t)
{
        BUF_CLEANUP struct buf path = {0};
        const char *name = name_of(t->checkpoint, t->checkpoint->at);
        int fd = checkpoint_new_file(t, t->checkpoint->at);

        if (fd < 0) {
                checkpoint_give_up(t, strerror(-fd));
                return;
        }
        const json_t *file = json_array_get(t->checkpoint->list, t->checkpoint->at);
        uint64_t size = (uint64_t)remote_number_within(file, "Size", 0, INT64_MAX);
        if (!fs_has_room(fd, size)) {
                close(fd);
                checkpoint_give_up(t, strerror(ENOSPC));
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
        t->call = http_client_call(t->remote->client, &spec, checkpoint_on_file, t);
}

/* ---- all files are here */

static int copy_into(const char *from, int to)
{
        int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (in < 0)
                return errno == ENOENT ? 0 : -errno;
        int r = fs_copy(in, to, NULL);
        close(in);
        return r;
}

/* Writes the local stream followed by the fetched part into a file of its own. */
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

/* Writes lines in pairs. `names`: a file's name in the sandbox, and its name in the checkpoint. `joins`: a
 * fetched stream, and the local stream that it continues. */
static void checkpoint_write_names(const struct remote_task *t, struct buf *names, struct buf *joins)
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
                checkpoint_give_up(t, why);
                return;
        }
        checkpoint_write_names(t, &names, &joins);
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
        t->dirty = true; /* look at the job again */
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

        checkpoint_write_names(t, &names, &joins);
        if (joins.n && t->remote->user) {
                join_by_user(t, buf_view(&joins));
                return;
        }
        for (struct str rest = buf_view(&joins);
             r == 0 && str_cut(&rest, '\n', &came) && str_cut(&rest, '\n', &ours);)
                r = join_stream(t, came, ours);
        joined(t, r < 0 ? strerror(-r) : NULL);
}

/* Removes the files of the turn before the last one. */
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

static void begin_checkpoint(struct remote_task *t, const json_t *list, char *id)
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
                begin_checkpoint(t, list, id);
                return t->checkpoint || t->dirty;
        }
        free(id);
        if (!here && !same) { /* other tasks first */
                t->dirty = true;
                t->not_before_ms = clock_boot_ms() + 1000;
        } else if (same && t->checkpoint->at < n) {
                fetch_next(t);
        } else if (same) {
                complete(t);
        }
        return t->checkpoint || t->dirty;
}
