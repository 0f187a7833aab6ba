/* Builds what a step is started with: arguments, environment, streams, limits, containment. */
#include "agent/step/submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "agent/container/container_step.h"
#include "agent/credential/credentials.h"
#include "agent/model/checkpointing.h"
#include "agent/model/expand.h"
#include "agent/model/sandbox.h"
#include "agent/model/walltime.h"
#include "agent/step/activate.h"
#include "agent/step/launch.h"
#include "agent/transfer/movers.h"
#include "base/job/args.h"
#include "place/handover.h"
#include "run/process/shepherd_protocol.h"
#include "run/sandbox_names.h"

#define TEXT_MAX   (4u << 20)
#define EXEC_BYTES (256u << 20) /* limit of the output of a command beside a job */

/* Returns whether the stream's file was written by an earlier step or round, or by this step's stdout. */
static bool stream_goes_on(const struct attempt *at, int index, bool is_stderr)
{
        char name[32];

        snprintf(name, sizeof(name), ".drover_out.%d", index);
        return (unsigned)index < at->step * 2 + (is_stderr ? 1u : 0u) || at->checkpoint.round ||
               checkpoint_restores(at, name);
}

static void env_set(struct args *env, const char *name, const char *value)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < env->n; i++)
                if (!strncmp(env->v[i], name, n) && env->v[i][n] == '=')
                        return; /* the job's own comes first */
        BUF_CLEANUP struct buf b = {0};
        buf_printf(&b, "%s=%s", name, value);
        args_add(env, buf_view(&b));
}

struct naming {
        struct args *env;
        bool gpus;
};

/* HTCondor's _CONDOR_AssignedNAME; a GPU that is known by its number is CUDA0 there. */
static void name_devices(void *arg, struct str name, struct str ids)
{
        struct naming *n = arg;
        BUF_CLEANUP struct buf variable = {0}, value = {0};
        bool gpus = str_ieqz(name, "GPUs");
        struct str rest = ids, id;

        buf_printf(&variable, "_CONDOR_Assigned" STR_FMT, STR_ARG(name));
        while (rest.n && str_cut(&rest, ',', &id))
                buf_printf(&value, "%s%s" STR_FMT, value.n ? "," : "",
                           gpus && id.p[0] >= '0' && id.p[0] <= '9' ? "CUDA" : "", STR_ARG(id));
        env_set(n->env, buf_z(&variable), buf_z(&value));
        if (!gpus)
                return;
        MEM_CLEANUP char *z = str_dupz(ids);
        n->gpus = true;
        env_set(n->env, "CUDA_VISIBLE_DEVICES", z);
        env_set(n->env, "GPU_DEVICE_ORDINAL", z);
        env_set(n->env, "NVIDIA_VISIBLE_DEVICES", z);
}

static void devices(const struct attempt *at, struct args *env)
{
        struct naming n = {env, false};

        if (at->devices)
                devices_each(str_of(at->devices), name_devices, &n);
        if (n.gpus || devices_total(at->a->devices, &at->q->devices, "GPUs") == 0)
                return;
        env_set(env, "CUDA_VISIBLE_DEVICES", ""); /* the present GPUs belong to other jobs */
        env_set(env, "NVIDIA_VISIBLE_DEVICES", "none");
}

static void queue_environment(const struct config_queue *c, struct args *env)
{
        for (size_t i = 0; i < c->environment.n; i++) {
                struct str value = str_of(c->environment.v[i]), name;

                str_cut(&value, ' ', &name);
                MEM_CLEANUP char *z = str_dupz(name);
                env_set(env, z, value.p);
        }
}

static void set_variable(void *env, const char *name, const char *value)
{
        env_set(env, name, value);
}

/* Sets the variables about the members that start together. The names with _CONDOR_ are those that HTCondor
 * gives to nodes of the parallel universe (manual, "Parallel Applications"). */
static void set_variables(const struct attempt *at, const char *sandbox, struct args *env)
{
        char number[24];

        if (!at->gang_size)
                return;
        snprintf(number, sizeof(number), "%u", at->gang_size);
        env_set(env, "DROVER_GANG_SIZE", number);
        env_set(env, "_CONDOR_NPROCS", number);
        snprintf(number, sizeof(number), "%llu", (unsigned long long)(at->member - at->gang));
        env_set(env, "DROVER_NODE", number);
        env_set(env, "_CONDOR_PROCNO", number);
        if (at->gang_machines)
                env_set(env, "DROVER_GANG_MACHINES", at->gang_machines);
        if (launch_wanted(at))
                launch_variables(at, sandbox, set_variable, env);
}

/* The variables that SUMS sets for a job of a dataset (its manual, "environment variables"). */
static int dataset_variables(const struct attempt *at, const char *sandbox, struct args *env, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = 65536}, value = {0};
        struct activate_list l;
        char number[24];
        int r = activate_file_list(at, &text, &l, err);

        if (r < 0 || !l.name.n)
                return r;
        snprintf(number, sizeof(number), "%u", at->member);
        env_set(env, "PROCESSID", number);
        env_set(env, "JOBINDEX", number);
        buf_printf(&value, STR_FMT "_%s", STR_ARG(l.uuid), number);
        env_set(env, "JOBID", buf_z(&value));
        buf_truncate(&value, l.uuid.n);
        env_set(env, "REQUESTID", buf_z(&value));
        buf_reset(&value);
        buf_str(&value, l.count);
        env_set(env, "INPUTFILECOUNT", buf_z(&value));
        buf_reset(&value);
        buf_printf(&value, "%s/" ACTIVATE_FILES, sandbox);
        if (!queue_hands_on(at->q))
                env_set(env, "FILELIST", buf_z(&value));
        buf_reset(&value);
        buf_str(&value, l.host);
        env_set(env, "SUBMITTINGNODE", buf_z(&value));
        env_set(env, "SUBMITTINGDIRECTORY", at->iwd);
        env_set(env, "SCRATCH", sandbox);
        return 0;
}

static int environment(const struct attempt *at, const struct job_step *step, const char *sandbox,
                       struct args *env, struct err *err)
{
        const struct agent *a = at->a;
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int r = expand_text(at, step->environment_v2, &text, err);

        if (r == 0 && text.n)
                r = args_env_v2(env, buf_view(&text), err);
        if (r < 0)
                return r;
        char job[64], number[24];
        snprintf(job, sizeof(job), "%llu.%u", (unsigned long long)at->request, at->member);
        env_set(env, "DROVER_JOB", job);
        snprintf(number, sizeof(number), "%llu", (unsigned long long)at->request);
        env_set(env, "DROVER_REQUEST", number);
        snprintf(number, sizeof(number), "%u", at->member);
        env_set(env, "DROVER_MEMBER", number);
        snprintf(number, sizeof(number), "%u", (unsigned)((at->cpus_milli + 999) / 1000));
        env_set(env, "DROVER_CPUS", number);
        env_set(env, "OMP_NUM_THREADS", number);
        set_variables(at, sandbox, env);
        if (*at->t->m->file_list && (r = dataset_variables(at, sandbox, env, err)) < 0)
                return r;
        env_set(env, "DROVER_QUEUE", at->q->config->name);
        credentials_env(at, sandbox, env);
        if (queue_is_local(at->q))
                devices(at, env); /* a batch system sets its own */
        queue_environment(at->q->config, env);
        if (at->chirp) {
                BUF_CLEANUP struct buf socket = {0};

                buf_printf(&socket, "%s/" SANDBOX_CHIRP, sandbox);
                env_set(env, "DROVER_CHIRP", buf_z(&socket));
        }
        env_set(env, "DROVER_SCRATCH", sandbox);
        env_set(env, "_CONDOR_SCRATCH_DIR", sandbox);
        env_set(env, "TMPDIR", sandbox);
        bool contained = *step->container;
        env_set(env, "HOME", contained ? sandbox : a->users_path ? at->t->user.home : a->home);
        env_set(env, "USER", a->users_path ? at->t->user.name : a->user);
        env_set(env, "LOGNAME", a->users_path ? at->t->user.name : a->user);
        if (!contained) /* an image has its own environment */
                env_set(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
        BUF_CLEANUP struct buf marker = {0};
        /* what a batch system runs on this machine is none of the shepherd's to end */
        buf_printf(&marker, SHEPHERD_MARKER "%s%s/%s.%u", queue_is_local(at->q) ? "" : "batch:", a->instance,
                   job, at->fence);
        args_add(env, buf_view(&marker));
        return 0;
}

static int arguments(const struct attempt *at, const struct job_step *step, struct args *argv,
                     struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int r = 0;

        if (step->argv_count) {
                for (size_t i = 0; i < step->argv_count && r == 0; i++) {
                        buf_reset(&text);
                        r = expand_text(at, step->argv[i], &text, err);
                        args_add(argv, buf_view(&text));
                }
        } else if (*step->arguments_v2) {
                r = expand_text(at, step->arguments_v2, &text, err);
                if (r == 0)
                        r = args_split_v2(argv, buf_view(&text), err);
        } else if (*step->arguments_v1) {
                r = expand_text(at, step->arguments_v1, &text, err);
                if (r == 0)
                        r = args_split_v1(argv, buf_view(&text), err);
        }
        return r;
}

static unsigned limits(const struct attempt *at, struct run_rlimit room[4])
{
        unsigned n = 0;

        room[n++] = (struct run_rlimit){RLIMIT_CORE, 0, 0};
        if (at->memory_bytes && !attempt_has_container(at) &&
            !(at->cgroup && (cgroups_limits(at->a->cgroups) & CGROUP_MEMORY))) {
                /* a loose limit: the real use is sampled */
                uint64_t bytes = at->memory_bytes * 2 + (256u << 20);

                room[n++] = (struct run_rlimit){RLIMIT_DATA, bytes, bytes};
        }
        return n;
}

static struct run_word *words_of(const struct job_template *m)
{
        struct run_word *words = mem_array(NULL, m->attribute_count + 1, sizeof(*words));

        for (size_t i = 0; i < m->attribute_count; i++)
                words[i] = (struct run_word){m->attributes[i].name, m->attributes[i].value};
        return words;
}

/* Sets what is requested from a batch system. */
static void asks_for(const struct attempt *at, const struct run_word *words, struct run_spec *ret)
{
        const struct job_template *m = at->t->m;

        ret->walltime_ms = walltime_of(at);
        ret->cpus_milli = at->cpus_milli;
        ret->memory_bytes = at->memory_bytes;
        ret->gpus = expand_gpus(m);
        ret->words = words;
        ret->word_count = m->attribute_count;
}

/* Appends the names of the step's outputs, if its author named them; of a step that is not the last, every
 * new file is one. */
static int outputs_of(const struct attempt *at, struct buf *out, struct err *err)
{
        const struct job_template *m = at->t->m;
        int r = 0;

        for (size_t i = 0; i < m->output_file_count && at->step + 1 == m->step_count && r == 0; i++) {
                if (out->n)
                        buf_char(out, ',');
                r = expand_text(at, m->output_files[i], out, err);
        }
        return r;
}

/* Storage of what a step is started with; the runner's spec borrows from it. */
struct expanded {
        struct buf path, in, outputs, credentials, checkpoint_files;
        struct run_checkpoints checkpoints;
        struct args argv, env;
        struct args carried;         /* texts that `attributes` borrow */
        struct run_word *attributes; /* attributes for another server */
        size_t attribute_count;
        int out, err; /* numbers of the files of its streams; -ENOENT: none */
};

/* The job's attributes with its macros filled in; of its Requirements what the other server is to ask. */
static int carried(const struct attempt *at, struct expanded *x, struct err *err)
{
        const struct job_origin *o = at->t->m->origin;

        if (!o || !queue_hands_on(at->q))
                return 0;
        for (size_t i = 0; i < o->attribute_count; i++) {
                BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
                int r = expand_text(at, o->attributes[i].value, &text, err);

                if (r < 0)
                        return r;
                args_add(&x->carried, buf_view(&text));
        }
        MEM_CLEANUP struct handover_attribute *all = mem_array(NULL, o->attribute_count + 1, sizeof(*all));
        x->attributes = mem_array(NULL, o->attribute_count + 1, sizeof(*x->attributes));
        for (size_t i = 0; i < o->attribute_count; i++)
                all[i] = (struct handover_attribute){o->attributes[i].name, x->carried.v[i]};
        for (size_t i = 0; i < o->attribute_count; i++) {
                if (!strcasecmp(all[i].name, "Requirements")) {
                        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
                        int r = handover_requirements(all[i].value, all, o->attribute_count,
                                                      at->q->config->attributes, &text, err);

                        if (r < 0)
                                return r;
                        free(x->carried.v[i]);
                        x->carried.v[i] = mem_dupz(buf_z(&text));
                }
                x->attributes[x->attribute_count++] = (struct run_word){all[i].name, x->carried.v[i]};
        }
        return 0;
}

/* Returns the delegation of the job, for a runner that delegates it. */
static struct run_delegation delegation_of(const struct attempt *at, const char *job, struct expanded *x)
{
        static const struct job_origin none = {(char *)"", (char *)"", (char *)"", (char *)"", (char *)"", 0};
        const struct job_template *m = at->t->m;
        const struct job_origin *o = m->origin ? m->origin : &none;

        return (struct run_delegation){
                .servers = o->servers,
                .owner = o->owner,
                .job = *o->job ? o->job : job,
                .label = o->label,
                .path = o->path,
                .hops_left = o->hops_left,
                .credentials = x->credentials.n ? buf_z(&x->credentials) : NULL,
                .outputs = m->all_outputs || at->step + 1 < m->step_count ? NULL : buf_z(&x->outputs),
                .checkpoints = x->checkpoints,
                .attributes = x->attributes,
                .attribute_count = x->attribute_count,
                .image_program = *m->steps[at->step].container && !m->steps[at->step].transfer_executable,
                .on_success_only = !m->outputs_on_failure && at->step + 1 == m->step_count};
}

static void expanded_deinit(struct expanded *x)
{
        buf_deinit(&x->path);
        buf_deinit(&x->in);
        buf_deinit(&x->outputs);
        buf_deinit(&x->credentials);
        buf_deinit(&x->checkpoint_files);
        args_deinit(&x->argv);
        args_deinit(&x->env);
        args_deinit(&x->carried);
        free(x->attributes);
}

void step_quote(const struct attempt *at)
{
        MEM_CLEANUP struct run_word *words = words_of(at->t->m);
        __attribute__((cleanup(expanded_deinit))) struct expanded x = {.out = -ENOENT, .err = -ENOENT};
        struct run_spec spec = {.id = attempt_task(at), .job = "", .owner = at->t->m->owner};

        asks_for(at, words, &spec);
        if (carried(at, &x, NULL) == 0)
                spec.delegation = (struct run_delegation){.attributes = x.attributes,
                                                          .attribute_count = x.attribute_count};
        at->q->backend->runner->kind->quote(at->q->backend->runner, &spec);
}

/* Builds the command of a placement job: the agent's own mover, whatever program its template names. The
 * names of temporary files contain the fence, so that two attempts never write the same file. */
static int placement(struct attempt *at, const struct job_step *step, struct expanded *x, struct err *err)
{
        const struct job_origin *o = at->t->m->origin;
        BUF_CLEANUP struct buf tag = {0};
        struct args words = {0};
        int r = arguments(at, step, &words, err);

        if (r == 0 && step->argv_count == 0)
                r = err_set(err, -EINVAL,
                            "the job is no placement job: its template has no words for the mover");
        if (r == 0) {
                movers_command(at->a, &x->argv);
                buf_addz(&x->path, x->argv.v[0]);
                args_add(&x->argv, STR("place"));
                for (size_t i = 0; i < words.n; i++)
                        args_add(&x->argv, str_of(words.v[i]));
                buf_printf(&tag, "tag=%.6s-%llu.%u-%u",
                           o && strrchr(o->servers, ' ') ? strrchr(o->servers, ' ') + 1
                           : o                           ? o->servers
                                                         : "",
                           (unsigned long long)at->request, at->member, at->fence);
                args_add(&x->argv, buf_view(&tag));
                credentials_words(at, &x->argv);
        }
        args_deinit(&words);
        return r;
}

static int program(struct attempt *at, const struct job_step *step, const char *sandbox, struct expanded *x,
                   struct err *err)
{
        int r = expand_path(at, step, &x->path, err);

        if (r == 0) {
                args_add(&x->argv, buf_view(&x->path));
                r = arguments(at, step, &x->argv, err);
        }
        return r == 0 && activate_wanted(at) ? activate_wrap(at, sandbox, &x->path, &x->argv, err) : r;
}

static int expand_step(struct attempt *at, const char *sandbox, struct expanded *x, struct err *err)
{
        const struct job_step *step = &at->t->m->steps[at->step];
        int r = config_queue_places(at->q->config) ? placement(at, step, x, err)
                                                   : program(at, step, sandbox, x, err);

        if (r == 0)
                r = environment(at, step,
                                queue_hands_on(at->q) ? sandbox : container_step_target(step, sandbox),
                                &x->env, err);
        if (r == 0)
                r = carried(at, x, err);
        if (r == 0)
                r = expand_input(at, step, &x->in, err);
        if (r == 0)
                r = outputs_of(at, &x->outputs, err);
        if (r == 0)
                r = checkpoint_hop(at, &x->checkpoint_files, &x->checkpoints, err);
        if (r < 0)
                return r;
        credentials_names(at, &x->credentials);
        bool kept;
        x->out = expand_stream_file(at, at->step, false, &kept, err);
        if (x->out < 0 && x->out != -ENOENT)
                return -EINVAL;
        x->err = expand_stream_file(at, at->step, true, &kept, err);
        return x->err < 0 && x->err != -ENOENT ? -EINVAL : 0;
}

/* Checks that a job whose streams are in its sandbox names no other file: the runner opens the names. */
static int streams_beneath(const struct attempt *at, const struct buf *const names[3], struct err *err)
{
        for (size_t i = 0; i < 3 && at->t->m->streams_in_sandbox; i++)
                if (str_starts(buf_view(names[i]), STR("/")))
                        return err_set(err, -EINVAL,
                                       "StreamsInSandbox: " STR_FMT " is not in the job's folder: name a "
                                       "file without / in front",
                                       STR_ARG(str_head(buf_view(names[i]), 500)));
        return 0;
}

int step_submit(struct attempt *at, struct err *err)
{
        const struct job_template *m = at->t->m;
        const struct job_step *step = &m->steps[at->step];
        __attribute__((cleanup(expanded_deinit))) struct expanded x = {.path = {.max = 65536},
                                                                       .in = {.max = 65536},
                                                                       .outputs = {.max = 1 << 20},
                                                                       .credentials = {.max = 65536},
                                                                       .checkpoint_files = {.max = 1 << 20}};
        CONTAINER_STEP_CLEANUP struct container_step contained = {0};
        BUF_CLEANUP struct buf out = {0}, error = {0};
        char name[64], sandbox[4352], job[64];
        struct run_rlimit room[4];

        sandbox_name(at, name);
        snprintf(sandbox, sizeof(sandbox), "%s/%s", at->a->jobs_path, name);
        int r = expand_step(at, sandbox, &x, err);
        if (r == 0 && launch_wanted(at))
                r = launch_write(at, err);
        if (r < 0)
                return r;
        if (x.out >= 0)
                expand_stream_name(at, x.out, &out);
        if (x.err >= 0)
                expand_stream_name(at, x.err, &error);
        if ((r = streams_beneath(at, (const struct buf *const[]){&x.in, &out, &error}, err)) < 0)
                return r;
        snprintf(job, sizeof(job), "%llu.%u", (unsigned long long)at->request, at->member);
        MEM_CLEANUP struct run_word *words = words_of(m);
        struct run_spec spec = {
                .id = attempt_task(at),
                .owner = m->owner,
                .user = at->a->users_path ? at->t->user.name : NULL,
                .flags = (at->a->users_path ? RUN_MAKE_SANDBOX : 0u) |
                         (at->t->m->credential_count ? RUN_CREDENTIALS : 0u),
                .sandbox = sandbox,
                .cwd = at->t->own_cwd ? NULL : at->iwd,
                .stdin_path = buf_z(&x.in),
                .stdout_path = x.out < 0 ? NULL : buf_z(&out),
                .stderr_path = x.err < 0 ? NULL : buf_z(&error),
                .path = buf_z(&x.path),
                .argv = x.argv.v,
                .envp = x.env.v,
                .rlimits = room,
                .rlimit_count = limits(at, room),
                .cgroup_dirs = at->cgroup ? cgroup_dirs(at->cgroup) : NULL,
                .slot = at->cgroup ? cgroup_number(at->cgroup) : UINT32_MAX,
                .job = job,
                .delegation = delegation_of(at, job, &x),
                .begin_by_boot_ms = at->begin_by_ms,
        };
        asks_for(at, words, &spec);
        if (x.out >= 0 && stream_goes_on(at, x.out, false))
                spec.flags |= RUN_STDOUT_APPEND;
        if (x.err >= 0 && x.err == x.out)
                spec.flags |= RUN_STDERR_IS_STDOUT;
        else if (x.err >= 0 && stream_goes_on(at, x.err, true))
                spec.flags |= RUN_STDERR_APPEND;
        bool engine = *step->container && !queue_hands_on(at->q);
        if (!engine)
                spec.flags |= queue_containment(at->q);
        if (engine && (r = container_step_start(at, step, &spec, &contained, err)) < 0)
                return r;
        runner_submit(at->q->backend->runner, &spec);
        credentials_hand_on(at);
        return 0;
}

/* Builds the arguments of the command outside of a container. */
static int exec_words(struct attempt *at, const struct step_exec *exec, const char *sandbox,
                      struct expanded *x, struct err *err)
{
        buf_addz(&x->path, "/usr/bin/env"); /* looks for it in the job's PATH */
        args_add(&x->argv, STR("env"));
        for (size_t i = 0; i < exec->argc; i++)
                args_add(&x->argv, str_of(exec->argv[i]));
        int r = activate_wanted(at) ? activate_wrap(at, sandbox, &x->path, &x->argv, err) : 0;
        if (r == 0)
                r = environment(at, &at->t->m->steps[at->step], sandbox, &x->env, err);
        if (r == 0 && *exec->term)
                env_set(&x->env, "TERM", exec->term);
        return r;
}

int step_exec(struct attempt *at, struct run_id id, const struct step_exec *exec, struct err *err)
{
        const struct job_template *m = at->t->m;
        bool contained = *m->steps[at->step].container;
        __attribute__((cleanup(expanded_deinit))) struct expanded x = {.path = {.max = 65536}};
        CONTAINER_STEP_CLEANUP struct container_step container = {0};
        char name[64], sandbox[4352], out[48], error[48], job[64];
        const struct run_rlimit limits[] = {{RLIMIT_CORE, 0, 0}, {RLIMIT_FSIZE, EXEC_BYTES, EXEC_BYTES}};

        sandbox_name(at, name);
        snprintf(sandbox, sizeof(sandbox), "%s/%s", at->a->jobs_path, name);
        int r = contained ? 0 : exec_words(at, exec, sandbox, &x, err);
        if (r < 0)
                return r;
        snprintf(out, sizeof(out), STEP_EXEC_OUT, id.step);
        snprintf(error, sizeof(error), STEP_EXEC_ERR, id.step);
        snprintf(job, sizeof(job), "%llu.%u", (unsigned long long)at->request, at->member);
        struct run_spec spec = {
                .id = id,
                .owner = m->owner,
                .user = at->a->users_path ? at->t->user.name : NULL,
                .flags = RUN_GUEST | (exec->fd < 0 ? 0u : RUN_STDIN_FD) |
                         (exec->terminal ? (unsigned)RUN_TERMINAL : 0u),
                .sandbox = sandbox,
                .cwd = at->t->own_cwd ? NULL : at->iwd,
                .stdin_fd = exec->fd,
                .stdout_path = out,
                .stderr_path = error,
                .path = buf_z(&x.path),
                .argv = x.argv.v,
                .envp = x.env.v,
                .rlimits = limits,
                .rlimit_count = exec->terminal || exec->unbounded ? 1 : 2,
                .cgroup_dirs = at->cgroup ? cgroup_dirs(at->cgroup) : NULL,
                .slot = at->cgroup ? cgroup_number(at->cgroup) : UINT32_MAX,
                .job = job,
        };
        if (!contained)
                spec.flags |= queue_containment(at->q);
        else if ((r = container_step_exec(at, &spec, exec, &container, err)) < 0)
                return r;
        runner_submit(at->q->backend->runner, &spec);
        return 0;
}
