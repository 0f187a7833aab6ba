/* Brings outputs out of the sandbox: to their destinations, to the spool, or to URLs; and files of
 * checkpoints. Quick operations (renames within the file system of the sandboxes) are done at once; another
 * file system may not answer, so a worker does the rest. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/credential/credentials.h"
#include "agent/model/checkpointing.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/transfer/move_files.h"
#include "agent/transfer/output_transfers.h"
#include "agent/transfer/stage_task.h"

static int add_remaps(struct stage *s)
{
        struct attempt *at = s->at;
        const struct job_template *m = at->t->m;
        int r = 0;

        for (size_t i = 0; i < m->output_remap_count && r == 0; i++) {
                BUF_CLEANUP struct buf from = {.max = 65536}, to = {.max = 65536};

                r = expand_text(at, m->output_remaps[i].name, &from, &s->w.err);
                if (r == 0)
                        r = expand_text(at, m->output_remaps[i].path, &to, &s->w.err);
                MEM_GROW(s->w.remaps, s->w.remap_cap, s->w.remap_count + 1);
                s->w.remaps[s->w.remap_count++] = (struct stage_remap){buf_take(&from), buf_take(&to)};
        }
        return r;
}

static int add_streams(struct stage *s, struct err *err)
{
        struct attempt *at = s->at;
        const struct job_template *m = at->t->m;
        uint64_t seen[2] = {0};

        if (m->streams_in_sandbox)
                return 0;
        for (size_t i = 0; i < m->step_count && i <= at->step; i++) {
                const char *const names[2] = {m->steps[i].stdout_file, m->steps[i].stderr_file};

                for (int k = 0; k < 2; k++) {
                        BUF_CLEANUP struct buf path = {.max = 65536};
                        int index = expand_stream(at, names[k], &path, err);

                        if (index == -ENOENT || (index >= 0 && (seen[index / 64] >> (index % 64)) & 1))
                                continue;
                        if (index < 0)
                                return index;
                        seen[index / 64] |= 1ull << (index % 64);
                        char from[32];
                        snprintf(from, sizeof(from), ".drover_out.%d", index);
                        stage_work_file(&s->w, mem_dupz(from), stage_work_place(&s->w, buf_view(&path)))
                                ->optional = true;
                }
        }
        return 0;
}

/* Records the inputs and the start of the job: a new file is neither an input nor older than the job. */
static void know_inputs(struct stage *s)
{
        struct attempt *at = s->at;

        if (s->w.input_count)
                return;
        s->w.new_since_ms = at->adopted ? (int64_t)at->result.started_ms : INT64_MIN;
        for (size_t i = 0; i < at->input_count; i++) {
                const struct staged_input *in = &at->inputs[i];

                MEM_GROW(s->w.inputs, s->w.input_cap, s->w.input_count + 1);
                s->w.inputs[s->w.input_count++] =
                        (struct staged_input){mem_dupz(in->name), in->mtime_ns, in->size};
        }
}

static void find_new(struct stage *s)
{
        if (s->w.find_new)
                return;
        s->w.find_new = true;
        s->w.new_optional = s->at->adopted;
        know_inputs(s);
}

/* Adds the names of a list, except those among the first `listed` files. */
static int add_names(struct stage *s, char *const *list, size_t count, bool optional, size_t listed)
{
        int r = 0;

        for (size_t i = 0; i < count && r == 0; i++) {
                BUF_CLEANUP struct buf b = {.max = 1 << 20};

                r = expand_text(s->at, list[i], &b, &s->w.err);
                struct str rest = buf_view(&b), name;
                while (r == 0 && rest.n && str_cut(&rest, ',', &name)) {
                        name = str_trim(name);
                        if (!name.n || stage_work_lists(&s->w, name, listed))
                                continue;
                        if (stage_work_is_pattern(name)) {
                                know_inputs(s);
                                r = stage_work_pattern(&s->w, name, optional);
                        } else {
                                r = stage_work_output(&s->w, name, optional);
                        }
                }
        }
        return r;
}

/* Gives files behind the first `count` the names that they have in the sandbox. */
static void keep_names(struct stage *s, size_t count)
{
        for (size_t i = count; i < s->w.count; i++) {
                free(s->w.files[i].to);
                s->w.files[i].to = mem_dupz(s->w.files[i].from);
        }
}

/* Adds a checkpoint's files, or else the outputs. */
static int add_kept(struct stage *s)
{
        const struct job_template *m = s->at->t->m;
        const struct job_checkpointing *c = m->checkpointing;
        bool own = c && c->file_count;
        size_t count = own ? c->file_count : m->output_file_count, first = s->w.count;
        int r = add_names(s, own ? c->files : m->output_files, count, true, first);

        keep_names(s, first);
        if (count == 0 && r == 0)
                find_new(s);
        s->w.new_optional = true; /* the program may still be writing */
        return r;
}

/* Adds the checkpoint of a job that came from another server. The job goes on there in its folder, so
 * outputs that are already here are sent with it. */
static int add_home(struct stage *s)
{
        const struct job_template *m = s->at->t->m;
        size_t first = s->w.count;
        int r = add_kept(s);

        if (r == 0)
                r = add_names(s, m->output_files, m->output_file_count, true, s->w.count);
        keep_names(s, first);
        if (r == 0 && m->output_file_count == 0 && m->all_outputs)
                find_new(s);
        return r;
}

static int add_outputs(struct stage *s)
{
        struct attempt *at = s->at;
        const struct job_template *m = at->t->m;
        const struct step_result *last =
                at->result.step_count ? &at->result.steps[at->result.step_count - 1] : NULL;
        bool failed =
                at->result.outcome != OUTCOME_EXITED || (last && (last->signaled || last->exit_code != 0) &&
                                                         !m->steps[at->result.step_count - 1].ignore_failure);

        if (m->transfer == TRANSFER_NO || at->result.outcome != OUTCOME_EXITED)
                return 0;
        if (last && checkpoint_goes_home(at, last))
                return add_home(s);
        if ((failed && !m->outputs_on_failure) || (m->output_file_count == 0 && !m->all_outputs))
                return 0;
        int r = add_remaps(s);
        size_t first = s->w.count;
        if (r == 0) /* after a restart the file may have been delivered already */
                r = add_names(s, m->output_files, m->output_file_count, at->adopted, 0);
        if (s->w.kind == STAGE_HASH && m->origin && *m->origin->job)
                keep_names(s, first); /* destinations are known at the server that it came from */
        if (m->output_file_count || r < 0)
                return r;
        find_new(s);
        return 0;
}

/* Outputs that go to URLs, out of the list of files; *ret is of struct outputs. */
static size_t take_transfers(struct stage *s, struct output_transfer **ret)
{
        size_t count = 0, kept = 0;

        *ret = mem_array(NULL, s->w.count + 1, sizeof(**ret));
        for (size_t i = 0; i < s->w.count; i++) {
                struct stage_file *f = &s->w.files[i];

                if (!stage_work_is_url(f->to)) {
                        s->w.files[kept++] = *f;
                } else if (f->missing) {
                        free(f->from);
                        free(f->to);
                } else {
                        (*ret)[count++] = (struct output_transfer){f->from, f->to, f->at, f->size};
                }
        }
        s->w.count = kept;
        return count;
}

/* Takes the outputs for the server's spool: their names go to at->result.outputs, their paths are returned.
 */
static char **take_outputs(struct attempt *at, const struct stage *s)
{
        char **paths = mem_array(NULL, s->w.count + 1, sizeof(*paths));

        for (size_t i = 0; i < s->w.count; i++) {
                const struct stage_file *f = &s->w.files[i];

                if (f->missing)
                        continue;
                MEM_GROW(at->result.outputs, at->result.output_cap, at->result.output_count + 1);
                struct output_ref *o = &at->result.outputs[at->result.output_count];
                *o = (struct output_ref){.name = mem_dupz(f->to), .size = f->size, .mode = f->mode};
                o->at = f->at;
                memcpy(o->sha256, f->sha256, 32);
                paths[at->result.output_count++] = mem_dupz(f->from);
        }
        paths[at->result.output_count] = NULL;
        return paths;
}

/* Holds a job whose outputs are more than it has claimed in their store. */
static bool is_too_much(struct attempt *at, const struct outputs *o)
{
        uint64_t most = at->t->m->output_bytes_max, sum = 0;
        char why[256];

        for (size_t i = 0; i < o->count; i++)
                sum += o->files[i].size;
        if (!most || sum <= most)
                return false;
        snprintf(why, sizeof(why),
                 "the outputs for the store have %llu bytes, and the job may write %llu there: say how large "
                 "they "
                 "are, as in transfer_output_size = %lluM",
                 (unsigned long long)sum, (unsigned long long)most, (unsigned long long)((sum >> 20) + 1));
        at->result.hold_subcode = ENOSPC;
        at->a->news->delivered(at, HOLD_OUTPUT, why);
        return true;
}

void stage_done_out(struct attempt *at, struct stage *s)
{
        at->result.bytes_out += s->w.bytes;
        if (s->w.result < 0) {
                at->result.hold_subcode = -s->w.result;
                at->a->news->delivered(at, HOLD_OUTPUT, s->w.err.text);
                return;
        }
        struct outputs o = {.data = s->w.data};
        o.count = take_transfers(s, &o.files);
        if (is_too_much(at, &o)) {
                outputs_deinit(&o);
                s->w.data = -1;
                return;
        }
        o.paths = s->w.kind == STAGE_HASH ? take_outputs(at, s) : NULL;
        s->w.data = -1;
        at->a->news->outputs(at, &o);
}

bool stage_is_near(const struct agent *a, const char *path)
{
        const struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_CACHED};
        const char *slash = strrchr(path, '/');
        struct statx there, ours;
        bool near = false;

        if (!slash)
                return false;
        MEM_CLEANUP char *folder = mem_dup(path, (size_t)(slash - path) + 1);
        int fd = (int)syscall(SYS_openat2, AT_FDCWD, folder, &how, sizeof(how));
        if (fd < 0)
                return false;
        if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &there) == 0 &&
            statx(a->jobs, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &ours) == 0)
                near = there.stx_dev_major == ours.stx_dev_major && there.stx_dev_minor == ours.stx_dev_minor;
        close(fd);
        return near;
}

/* Delivers what can be delivered at once. Returns true when nothing is left. */
static bool quick(struct stage *s)
{
        size_t kept = 0;

        for (size_t i = 0; i < s->w.count; i++) {
                struct stage_file *f = &s->w.files[i];

                if (stage_work_is_url(f->to) || !stage_is_near(s->a, f->to)) {
                        s->w.files[kept++] = *f;
                        continue;
                }
                int r = move_out(s->w.hidden, s->w.sandbox, f->from, s->w.iwd, f->to, s->w.fence, true, NULL,
                                 &s->w.bytes, &s->w.err);
                if (r == -ENOENT && f->optional &&
                    faccessat(s->w.sandbox, f->from, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        r = 0;
                if (r == -EXDEV) {
                        s->w.files[kept++] = *f;
                        continue;
                }
                free(f->from);
                free(f->to);
                if (r < 0 && s->w.result == 0)
                        s->w.result = r;
        }
        s->w.count = kept;
        return kept == 0 || s->w.result < 0;
}

/* Removes the folder if it is empty. Returns whether it did. */
static bool leave_empty(struct attempt *at, const char *name)
{
        if (sandbox_recycle(at))
                return true;
        if (unlinkat(at->a->jobs, name, AT_REMOVEDIR) < 0)
                return false;
        at->has_sandbox = false;
        return true;
}

/* Sets the destinations of the outputs. */
static int add_places(struct stage *s)
{
        BUF_CLEANUP struct buf b = {.max = 65536};
        struct attempt *at = s->at;
        int r = expand_text(at, at->t->m->output_destination, &b, &s->w.err);
        struct str url = str_trim(buf_view(&b));

        while (str_ends(url, STR("/")))
                url.n--;
        s->w.iwd = mem_dupz(at->iwd);
        if (r == 0 && url.n && !stage_work_is_url(buf_z(&b)))
                return err_set(&s->w.err, -EINVAL, "output_destination " STR_FMT " is no URL", STR_ARG(url));
        s->w.destination = r == 0 && url.n ? str_dupz(url) : NULL;
        return r == 0 ? add_streams(s, &s->w.err) : r;
}

/* With `users`: lists all outputs for the child of the job's user. Returns true if there is nothing to do,
 * or on an error. */
static bool name_outputs(struct stage *s)
{
        int r = add_places(s);

        if (r == 0)
                r = add_outputs(s);
        s->w.result = r;
        return r < 0 || (s->w.count == 0 && !s->w.find_new);
}

/* Without `users`: delivers what can be delivered at once. Returns true if that is all, or on an error. */
static bool bring_outputs(struct attempt *at, struct stage *s)
{
        int r = add_places(s);
        char name[64];

        sandbox_name(at, name);
        /* usually no file is left then, and removing the empty folder shows that */
        bool maybe_all =
                r == 0 && s->w.kind == STAGE_OUT && at->t->m->output_file_count == 0 && at->input_count == 0;
        if (maybe_all && s->w.count == 0 && leave_empty(at, name))
                return true;
        s->w.sandbox = openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (s->w.sandbox < 0 && errno == ENOENT && at->adopted && maybe_all) {
                /* a sandbox emptied before the agent was killed: nothing else removes it before the result
                 * is recorded */
                at->has_sandbox = false;
                return true;
        }
        if (s->w.sandbox < 0)
                r = err_set(&s->w.err, -errno, "the job's folder is gone: %s", strerror(errno));
        if (r == 0 && maybe_all && s->w.count > 0 && quick(s) && s->w.result == 0 && leave_empty(at, name))
                return true;
        if (r == 0 && s->w.result == 0)
                r = add_outputs(s);
        if (r == 0 && s->w.result == 0)
                r = stage_work_find(&s->w);
        if (r == 0)
                r = s->w.result;
        s->w.result = r;
        return r < 0 || (s->w.kind == STAGE_OUT && quick(s)) || s->w.count == 0;
}

void stage_out(struct attempt *at)
{
        if (!at->has_sandbox) {
                at->a->news->delivered(at, 0, NULL);
                return;
        }
        struct stage *s = stage_new(at, at->t->same_domain ? STAGE_OUT : STAGE_HASH);
        s->w.over = at->t->m->credential_count > 0;
        if (s->w.over)
                credentials_drop(at); /* an empty folder can then go at once */
        if (at->a->users_path ? name_outputs(s) : bring_outputs(at, s)) {
                stage_done_out(at, s);
                stage_free(s);
        } else {
                stage_hand_over(s);
        }
}

/* Adds files that stand in for files of the sandbox. */
static void add_carried(struct stage *s, struct str lines)
{
        struct str from, to;

        while (lines.n && str_cut(&lines, '\n', &from) && str_cut(&lines, '\n', &to))
                stage_work_file(&s->w, str_dupz(from), str_dupz(to))->stands_in = true;
}

static int add_checkpoint(struct stage *s)
{
        size_t carried = s->w.count;
        int r = 0;

        for (size_t i = 0; i < 2 * s->at->t->m->step_count && r == 0; i++) {
                BUF_CLEANUP struct buf name = {0};

                if (expand_stream_is_kept(s->at, (unsigned)i / 2, i % 2))
                        continue; /* not delivered anywhere */
                buf_printf(&name, ".drover_out.%zu", i);
                if (!stage_work_lists(&s->w, buf_view(&name), carried))
                        r = stage_work_output(&s->w, buf_view(&name), true);
        }
        return r == 0 ? add_kept(s) : r;
}

void stage_checkpoint(struct attempt *at, const char *carried)
{
        struct stage *s = stage_new(at, STAGE_HASH);

        if (carried)
                add_carried(s, str_of(carried));
        char name[64];
        int r = at->has_sandbox ? add_checkpoint(s) : err_set(&s->w.err, -ENOENT, "there is no sandbox");
        s->w.iwd = mem_dupz("");
        sandbox_name(at, name);
        if (r == 0 && !at->a->users_path) {
                s->w.sandbox = openat(at->a->jobs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = s->w.sandbox < 0
                            ? err_set(&s->w.err, -errno, "the job's folder is gone: %s", strerror(errno))
                            : 0;
        }
        s->w.result = r;
        if (r == 0) {
                stage_hand_over(s);
                return;
        }
        stage_done_out(at, s);
        stage_free(s);
}
