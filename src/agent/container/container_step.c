#include "agent/container/container_step.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/container/containers.h"
#include "agent/machine/kernel_log.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "base/system/fs.h"
#include "base/system/log.h"
#include "base/system/program.h"
#include "run/call/command.h"
#include "run/process/shepherd_protocol.h"

#define TAIL_MAX 8192
#define ENV_FILE "container-env."

struct ending { /* the end of a container: the engine is asked about it before its step is over */
        struct attempt *at;
        enum run_why why;
        struct command *command;
        bool removing;
        bool asked; /* the engine is, whether it works: an agent that was started again goes on behind that */
};

bool container_step_elsewhere(const struct attempt *at)
{
        const struct container_host *h = engine_host(at->q->engine);

        return h && !h->in_place && attempt_has_container(at);
}

int container_step_image(const struct attempt *at, const struct job_step *step, struct buf *out,
                         struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = 65536};
        const struct container_host *h = engine_host(at->q->engine);
        int r = expand_text(at, step->container, &text, err);

        if (r == 0 && !h)
                r = err_set(err, -EINVAL, "no container engine works here");
        if (r == 0)
                r = container_image(h->engine, str_trim(buf_view(&text)), out, err);
        if (r == 0 && !container_image_allowed(engine_settings(at->q->engine), h->engine, buf_view(out)))
                r = err_set(err, -EINVAL, "this queue does not run the image %s", buf_z(out));
        return r;
}

const char *container_step_refused(const struct queue *q, const struct job_step *step)
{
        static struct err err;
        const struct container_host *h = engine_host(q->engine);
        BUF_CLEANUP struct buf image = {0};

        if (!*step->container)
                return NULL;
        if (!h)
                return "this queue runs no containers";
        if (!strchr(step->container, '$') &&
            container_image(h->engine, str_trim(str_of(step->container)), &image, &err) < 0)
                return err.text;
        if (image.n && !container_image_allowed(engine_settings(q->engine), h->engine, buf_view(&image)))
                return "this queue does not run the job's image";
        if (strchr(step->container_network, '$'))
                return NULL;
        return container_network_refused(engine_settings(q->engine), step->container_network);
}

/* ---- starting */

void container_step_deinit(struct container_step *c)
{
        args_deinit(&c->argv);
        args_deinit(&c->envp);
        args_deinit(&c->after);
        args_deinit(&c->words);
        mounts_deinit(&c->mounts);
        if (c->has_input)
                close(c->input);
        buf_deinit(&c->program);
        buf_deinit(&c->cwd);
        buf_deinit(&c->streams);
        buf_deinit(&c->env_file);
        buf_deinit(&c->folder);
        buf_deinit(&c->workdir);
        buf_deinit(&c->init);
}

const char *container_step_target(const struct job_step *step, const char *sandbox)
{
        return *step->container && step->container_target_dir[0] == '/' ? step->container_target_dir
                                                                        : sandbox;
}

/* ---- the file of variables
 *
 * It is in the agent's own folder, which is hidden from jobs: the engine opens it by its name, and one in the
 * sandbox could be replaced by a link. With `users`, and on nodes, the engine runs as the user, and the file
 * is in the sandbox. */

static bool env_is_ours(const struct attempt *at)
{
        return queue_is_local(at->q) && !at->a->users_path;
}

static void env_name(const struct attempt *at, char room[96])
{
        char name[64];

        sandbox_name(at, name);
        snprintf(room, 96, ENV_FILE "%s", name);
}

static void env_remove(const struct attempt *at)
{
        char name[96];

        if (!env_is_ours(at) || !*at->t->m->steps[at->step].container)
                return;
        env_name(at, name);
        unlinkat(at->a->dir, name, 0);
}

void container_steps_sweep(struct agent *a)
{
        int fd = openat(a->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        struct dirent *e;

        while (dir && (e = readdir(dir))) {
                unsigned long long request;
                unsigned member, fence;

                if (sscanf(e->d_name, ENV_FILE "%llu.%u.%u", &request, &member, &fence) != 3)
                        continue;
                const struct attempt *at = agent_find(a, request, member, fence);
                if (!at || at->state == ATTEMPT_DONE)
                        unlinkat(a->dir, e->d_name, 0);
        }
        if (dir)
                closedir(dir);
}

/* The folder that the engine is started in, and the file of variables. In a sandbox that is a user's no name
 * is taken for what it was. */
static int make_folder(const struct attempt *at, const struct run_spec *spec, struct container_step *c,
                       const struct buf *file, struct err *err)
{
        char name[64], path[128], env[96] = "env";
        bool shared = sandbox_is_shared(at); /* only its user can get here */
        bool ours = env_is_ours(at);

        sandbox_name(at, name);
        snprintf(path, sizeof(path), "%s/" CONTAINER_FOLDER ".%u", name, at->step);
        int r = fs_mkdirs_beneath(at->a->jobs, path, 0700);
        buf_printf(&c->folder, "%s/" CONTAINER_FOLDER ".%u", spec->sandbox, at->step);
        if (ours)
                env_name(at, env);
        buf_printf(&c->env_file, "%s/%s", ours ? at->a->config.dir : buf_z(&c->folder), env);
        buf_printf(&c->streams, CONTAINER_FOLDER ".%u/stderr", at->step);
        int fd = r < 0 ? r : openat(at->a->jobs, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (r == 0 && (fd < 0 || (shared && fchmod(fd, 0777) < 0)))
                r = -errno;
        if (r == 0 && file->n)
                r = fs_write(ours ? at->a->dir : fd, env, buf_view(file), shared ? 0644 : 0600, false, NULL);
        if (fd >= 0)
                close(fd);
        return r < 0 ? err_set(err, r, "cannot use %s: %s", buf_z(&c->folder), strerror(-r)) : 0;
}

/* Sets the engine's environment: on this machine the agent's own, whose settings are the administrator's; on
 * a node the script's. */
static void engine_environment(const struct attempt *at, const struct run_spec *spec,
                               struct container_step *c, const struct args *more)
{
        char *const *e;
        size_t n = strlen(SHEPHERD_MARKER);

        if (queue_is_local(at->q)) {
                containers_environment(at, &c->envp);
        } else {
                BUF_CLEANUP struct buf home = {0};

                buf_printf(&home, "HOME=%s", at->a->users_path ? at->t->user.home : at->a->home);
                args_add(&c->envp, buf_view(&home));
                args_add(&c->envp, STR("PATH=/usr/local/bin:/usr/bin:/bin"));
        }
        for (e = spec->envp; *e; e++)
                if (!strncmp(*e, SHEPHERD_MARKER, n))
                        args_add(&c->envp, str_of(*e));
        for (size_t i = 0; i < more->n; i++)
                args_add(&c->envp, str_of(more->v[i]));
}

static void on_gpus(void *arg, struct str name, struct str ids)
{
        if (str_ieqz(name, "GPUs"))
                buf_str(arg, ids);
}

/* Returns the agent's own hard limit; podman first lowers its own to `most`. */
static uint64_t hard_limit(int resource, uint64_t most)
{
        struct rlimit l;

        return getrlimit((__rlimit_resource_t)resource, &l) < 0 || l.rlim_max > most ? most : l.rlim_max;
}

/* Returns whether the user has subordinate user ids (subuid(5)). */
static bool has_more_ids(const struct passwd *pw)
{
        BUF_CLEANUP struct buf text = {0};
        struct str rest, line, who;
        char uid[16];

        snprintf(uid, sizeof(uid), "%u", (unsigned)pw->pw_uid);
        if (fs_read(AT_FDCWD, "/etc/subuid", 1 << 20, &text, NULL) < 0)
                return false;
        for (rest = buf_view(&text); rest.n && str_cut(&rest, '\n', &line);)
                if (str_cut(&line, ':', &who) && (str_eqz(who, pw->pw_name) || str_eqz(who, uid)))
                        return true;
        return false;
}

/* Makes the engine the program that the runner starts; a batch system searches it where the job runs. */
static void run_engine(struct run_spec *spec, struct container_step *c, bool local)
{
        buf_reset(&c->program);
        if (strchr(c->argv.v[0], '/') || !local || !machine_find_program(c->argv.v[0], &c->program))
                buf_addz(&c->program, c->argv.v[0]);
        spec->path = buf_z(&c->program);
        spec->argv = c->argv.v;
        spec->envp = c->envp.v;
        spec->after = c->after.n ? c->after.v : NULL;
        spec->cwd = buf_z(&c->folder);
        if (!spec->stderr_path)
                spec->stderr_path = buf_z(&c->streams);
        spec->flags |= RUN_CONTAINER;
}

static const char *env_value(char *const *envp, const char *head)
{
        for (; envp && *envp; envp++)
                if (!strncmp(*envp, head, strlen(head)))
                        return *envp + strlen(head);
        return NULL;
}

static int refuse_hidden(const struct agent *a, const char *path, struct err *err)
{
        int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;
        int r = fd < 0 ? 0 : hidden_check(a->hidden, fd); /* the engine reports missing files */

        if (fd >= 0)
                close(fd);
        return r == HIDDEN_INSIDE ? err_set(err, -EINVAL, "%s is in a folder of Drover's own", path)
               : r < 0            ? err_set(err, r, "cannot look at %s: %s", path, strerror(-r))
                                  : 0;
}

/* Opens standard input. A program without a container opens it where Drover's own folders are hidden; an
 * engine sees them. On this machine the file is therefore opened and then checked, so that nobody can change
 * a link in between. With `users` the job's user opens it, who may not read these folders; a batch system's
 * script opens it where the job runs. */
static int take_input(const struct attempt *at, struct run_spec *spec, struct container_step *c,
                      struct err *err)
{
        const char *path = spec->stdin_path;
        struct stat st;

        if (at->a->users_path || !path || *path != '/')
                return 0;
        if (!queue_is_local(at->q))
                return refuse_hidden(at->a, path, err);
        int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        int r = fd < 0 ? -errno : hidden_check(at->a->hidden, fd);
        if (r == 0 && (fstat(fd, &st) < 0 || (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))))
                r = -EINVAL;
        if (r != 0) {
                if (fd >= 0)
                        close(fd);
                return r == HIDDEN_INSIDE
                               ? err_set(err, -EINVAL, "%s is in a folder of Drover's own", path)
                               : err_set(err, r, "cannot open the standard input %s: %s", path, strerror(-r));
        }
        c->has_input = true;
        c->input = spec->stdin_fd = fd;
        spec->flags |= RUN_STDIN_FD;
        return 0;
}

/* Has drover-init compare the mounts with what was looked at, as the container's init. */
static int use_init(struct container_step *c, struct container_job *job, struct err *err)
{
        int r = program_find("drover-init", &c->init, err);

        job->init = buf_z(&c->init);
        job->seen = &c->mounts.seen;
        return r;
}

int container_step_start(struct attempt *at, const struct job_step *step, struct run_spec *spec,
                         struct container_step *c, struct err *err)
{
        struct engine *e = at->q->engine;
        const struct container_settings *s = engine_settings(e);
        const struct container_host *h = engine_host(e);
        BUF_CLEANUP struct buf image = {0}, network = {0}, gpus = {0}, file = {0};
        ARGS_CLEANUP struct args engine_env = {0};
        char name[96];
        size_t n = strlen(spec->sandbox);
        const char *target = container_step_target(step, spec->sandbox), *refused;
        int r = container_step_image(at, step, &image, err);

        if (r == 0)
                r = expand_text(at, step->container_network, &network, err);
        if (r < 0)
                return r;
        refused = container_network_refused(s, buf_z(&network));
        if (refused)
                return err_set(err, -EINVAL, "%s: %s", refused, buf_z(&network));
        container_environment(s, h->engine, spec->envp, &file, &c->words, &engine_env);
        r = make_folder(at, spec, c, &file, err);
        if (r == 0)
                r = expand_text(at, step->container_workdir, &c->workdir, err);
        if (r < 0)
                return r;
        const struct passwd *pw = at->a->users_path ? getpwnam(at->t->user.name) : NULL;
        bool local = queue_is_local(at->q),
             inside = !strncmp(spec->path, spec->sandbox, n) && spec->path[n] == '/';
        buf_printf(&c->program, "%s%s", inside ? target : "", inside ? spec->path + n : spec->path);
        container_name(at->a->instance, attempt_task(at), name);
        if (at->devices)
                devices_each(str_of(at->devices), on_gpus, &gpus);
        struct container_job job = {
                .name = name,
                .instance = at->a->instance,
                .image = buf_z(&image),
                .network = buf_z(&network),
                .sandbox = spec->sandbox,
                .target = target,
                .home = env_value(spec->envp, "HOME="),
                .cwd = spec->cwd,
                .own_workdir = step->container_own_workdir,
                .workdir = c->workdir.n ? buf_z(&c->workdir) : NULL,
                .program = buf_z(&c->program),
                .mount_program =
                        step->transfer_executable && !inside && spec->path[0] == '/' ? spec->path : NULL,
                .override_entrypoint = step->container_override_entrypoint,
                .argv = spec->argv,
                .env = &c->words,
                .env_file = file.n ? buf_z(&c->env_file) : NULL,
                .uid = pw ? pw->pw_uid : geteuid(),
                .gid = pw ? pw->pw_gid : getegid(),
                .one_id = pw && !has_more_ids(pw),
                .memory_bytes =
                        local ? spec->memory_bytes : 0, /* elsewhere the batch system's limits apply */
                .cpus_milli = local ? spec->cpus_milli : 0,
                .pids = local ? at->a->config.pids_max : 0,
                .files = local ? hard_limit(RLIMIT_NOFILE, 1048576) : 0,
                .processes = local ? hard_limit(RLIMIT_NPROC, 32768) : 0,
                .gpus = gpus.n ? buf_z(&gpus) : NULL,
                .self_removing = !local || pw,
        };
        r = mounts_find(at, &job, &c->mounts, err);
        if (r == 0 && c->mounts.seen.n && h->engine != CONTAINER_APPTAINER)
                r = use_init(c, &job, err);
        if (r == 0)
                r = take_input(at, spec, c, err);
        if (r == 0)
                r = container_start(s, h, &job, &c->argv, err);
        if (r < 0)
                return r;
        engine_environment(at, spec, c, &engine_env);
        if (!local)
                container_remove(s, h->engine, name, &c->after);
        run_engine(spec, c, local);
        return 0;
}

/* ---- a command in a container that runs */

const char *container_step_exec_refused(const struct attempt *at)
{
        const struct container_host *h = engine_host(at->q->engine);

        if (!*at->t->m->steps[at->step].container)
                return NULL;
        return !h                                 ? "no container engine works at its agent"
               : h->engine == CONTAINER_APPTAINER ? "the job runs in a container of apptainer, which cannot "
                                                    "run a command in one that runs"
                                                  : NULL;
}

int container_step_exec(struct attempt *at, struct run_spec *spec, const struct step_exec *exec,
                        struct container_step *c, struct err *err)
{
        const struct container_host *h = engine_host(at->q->engine);
        BUF_CLEANUP struct buf marker = {0}, term = {0};
        char name[96];

        if (!h)
                return err_set(err, -ENOENT, "no container engine works here");
        container_name(at->a->instance, attempt_task(at), name);
        buf_printf(&marker, SHEPHERD_GUEST_MARKER "%s/%llu.%u.%u.%x", at->a->instance,
                   (unsigned long long)spec->id.request, spec->id.member, spec->id.fence, spec->id.step);
        args_add(&c->words, buf_view(&marker));
        if (*exec->term) {
                buf_printf(&term, "TERM=%s", exec->term);
                args_add(&c->words, buf_view(&term));
        }
        container_exec(engine_settings(at->q->engine), h->engine, name,
                       &(struct container_command){.argv = exec->argv,
                                                   .argc = exec->argc,
                                                   .env = &c->words,
                                                   .input = exec->fd >= 0,
                                                   .init = env_is_ours(at),
                                                   .terminal = exec->terminal},
                       &c->argv);
        containers_environment(at, &c->envp);
        args_add(&c->envp, buf_view(&marker));
        if (*exec->term)
                args_add(&c->envp, buf_view(&term));
        buf_printf(&c->folder, "%s/" CONTAINER_FOLDER ".%u", spec->sandbox, at->step);
        run_engine(spec, c, true);
        return 0;
}

/* ---- the end */

static void read_tail(const struct attempt *at, struct buf *out)
{
        BUF_CLEANUP struct buf file = {0};
        char name[64], path[128], room[TAIL_MAX];
        bool kept;
        int index = expand_stream_file(at, at->step, true, &kept, NULL);
        struct stat st;

        sandbox_name(at, name);
        snprintf(path, sizeof(path), "%s/" CONTAINER_FOLDER ".%u", name, at->step);
        if (index >= 0)
                expand_stream_name(at, index, &file);
        else
                buf_addz(&file, "stderr");
        /* links and pipes of the job are refused: no link is followed, and opening does not block */
        int dir =
                openat(at->a->jobs, index >= 0 ? name : path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int fd = dir < 0 ? -1
                         : fs_open_beneath(dir, buf_z(&file),
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
        off_t end = fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ? -1 : lseek(fd, 0, SEEK_END);
        ssize_t n = end < 0 ? -1 : pread(fd, room, sizeof(room), end > TAIL_MAX ? end - TAIL_MAX : 0);
        if (fd >= 0)
                close(fd);
        if (dir >= 0)
                close(dir);
        if (n > 0)
                buf_add(out, room, (size_t)n);
}

/* conmon leaves a file of this name where it was started, when the kernel has told it so. */
static bool told_memory(const struct attempt *at)
{
        char name[64], path[128];

        sandbox_name(at, name);
        snprintf(path, sizeof(path), "%s/" CONTAINER_FOLDER ".%u/oom", name, at->step);
        return faccessat(at->a->jobs, path, F_OK, 0) == 0;
}

/* Handles an engine that did not start the container: one that pulls images itself may have failed at a
 * registry. */
static void not_started(struct attempt *at, struct str words)
{
        BUF_CLEANUP struct buf why = {0}, image = {0};
        struct engine *e = at->q->engine;

        buf_printf(&why, "%s could not start the container: " STR_FMT,
                   container_engine_name(engine_host(e)->engine), STR_ARG(words));
        bool passes = !engine_lists(e) && container_passes(words) &&
                      container_step_image(at, &at->t->m->steps[at->step], &image, NULL) == 0;
        if (passes)
                containers_image_away(e, buf_z(&image), at->t->m->owner, buf_z(&why));
        attempt_set_outcome(at, passes ? OUTCOME_LOST : OUTCOME_NOT_STARTED, passes ? 0 : HOLD_IMAGE, "%s",
                            buf_z(&why));
}

/* Finishes the attempt if the engine failed. Returns whether it did. */
static bool container_failed(struct attempt *at)
{
        const struct step_result *r = &at->result.steps[at->step];
        const struct job_step *step = &at->t->m->steps[at->step];
        const struct container_host *h = engine_host(at->q->engine);
        BUF_CLEANUP struct buf tail = {0}, path = {0};
        struct str words;

        if (!h || r->signaled || r->exit_code == 0 || at->result.set)
                return false;
        read_tail(at, &tail);
        enum container_end end = container_ended(h->engine, r->exit_code, buf_view(&tail), &words);
        if (end == CONTAINER_PROGRAM_ENDED)
                return false;
        if (end == CONTAINER_NO_PROGRAM) {
                expand_program(at, step, &path);
                attempt_set_outcome(at, OUTCOME_NOT_STARTED, HOLD_NOT_STARTED,
                                    "cannot run %s in the image %s: " STR_FMT, buf_z(&path), step->container,
                                    STR_ARG(words));
        } else if (end == CONTAINER_NO_IMAGE && engine_lists(at->q->engine)) {
                containers_image_gone(at->q->engine);
                attempt_set_outcome(at, OUTCOME_LOST, 0, "the image %s has gone from here", step->container);
        } else {
                not_started(at, words);
        }
        at->stepping = false;
        at->a->news->finish(at);
        return true;
}

static void container_step_on_removed(void *arg)
{
        struct ending *x = arg;
        struct attempt *at = x->at;
        enum run_why why = x->why;

        at->container.ending = NULL;
        at->container.over = true;
        free(x);
        at->a->news->step_over(at, why);
        agent_turn_later(at->a);
}

static void remove_now(struct ending *x)
{
        char name[96];

        container_name(x->at->a->instance, attempt_task(x->at), name);
        x->removing = true;
        containers_remove(x->at->q->engine, x->at, name, container_step_on_removed, x);
}

static void on_inspected(void *arg, int status, struct str out, struct str errors)
{
        struct ending *x = arg;

        (void)errors;
        x->command = NULL;
        struct str rest = status == 0 ? out : STR_NONE, killed, id;
        if (str_word(&rest, &killed) && str_word(&rest, &id))
                x->at->container.out_of_memory = str_eqz(killed, "true") || kernel_log_out_of_memory(id);
        remove_now(x);
}

bool container_step_ended(struct attempt *at, enum run_why why)
{
        const struct step_result *r = &at->result.steps[at->step];
        const struct container_host *h = engine_host(at->q->engine);
        ARGS_CLEANUP struct args words = {0};
        char name[96];

        env_remove(at);
        if (*at->t->m->steps[at->step].container && engine_is_asked(at->q->engine)) {
                at->container.ending = mem_new(struct ending);
                *at->container.ending = (struct ending){.at = at, .why = why, .asked = true};
                at->stepping = true; /* not over yet */
                return true;
        }
        if (!*at->t->m->steps[at->step].container || !h)
                return false;
        if (at->container.over || !queue_is_local(at->q) || h->engine == CONTAINER_APPTAINER)
                return why == RUN_ITSELF && container_failed(at);
        struct ending *x = mem_new(struct ending);
        *x = (struct ending){.at = at, .why = why};
        at->container.ending = x;
        at->stepping = true; /* not over yet */
        at->container.out_of_memory = told_memory(at);
        if (r->signaled && r->exit_code == SIGKILL && !at->container.out_of_memory &&
            at->kill.state == KILL_NONE) {
                container_name(at->a->instance, attempt_task(at), name);
                container_inspect(engine_settings(at->q->engine), h->engine, name, &words);
                x->command = containers_ask(at->q->engine, at, &words, on_inspected, x);
        } else {
                remove_now(x);
        }
        return true;
}

void container_steps_go_on(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                for (struct attempt *at = a->queues[i]->lists[ATTEMPT_RUNNING], *next; at; at = next) {
                        struct ending *x = at->container.ending;

                        next = at->next;
                        if (!x || !x->asked || engine_is_asked(at->q->engine))
                                continue;
                        enum run_why why = x->why;
                        at->container.ending = NULL;
                        free(x);
                        a->news->step_over(at, why);
                        agent_turn_later(a);
                }
}

void container_step_lost(struct attempt *at)
{
        const struct container_host *h = engine_host(at->q->engine);
        char name[96];

        env_remove(at);
        if (!h || h->engine == CONTAINER_APPTAINER || !queue_is_local(at->q) ||
            !*at->t->m->steps[at->step].container || at->container.ending)
                return;
        container_name(at->a->instance, attempt_task(at), name);
        containers_remove(at->q->engine, at, name, NULL, NULL);
}

void container_step_cancel(struct attempt *at)
{
        struct ending *x = at->container.ending;

        if (!x)
                return;
        if (x->removing)
                containers_remove_forget(at->q->engine, x);
        command_cancel(x->command);
        free(x);
        at->container.ending = NULL;
}
