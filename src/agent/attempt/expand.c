/* From a template and a member to what is run: macros, arguments, environment, streams, limits. */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#include "agent/agent.h"
#include "agent/attempt/activate.h"
#include "agent/attempt/checkpoint.h"
#include "agent/attempt/credentials.h"
#include "agent/attempt/walltime.h"
#include "agent/container/contain.h"
#include "agent/queue/containment.h"
#include "base/args.h"
#include "base/macro.h"
#include "base/match_macro.h"
#include "run/process/shepherd_protocol.h"

#define TEXT_MAX (4u << 20)

static enum macro_found lookup(void *arg, struct str name, struct buf *out)
{
        const struct attempt *at = arg;
        const Drover__Template *m = at->t->m;
        if (str_ieqz(name, "Process") || str_ieqz(name, "ProcId"))
                buf_printf(out, "%u", at->member);
        else if (str_ieqz(name, "Cluster") || str_ieqz(name, "ClusterId"))
                buf_printf(out, "%llu", (unsigned long long)at->request);
        else if (str_ieqz(name, "Step"))
                buf_printf(out, "%u", at->step_value);
        else if (at->set_size && str_ieqz(name, "Node"))
                buf_printf(out, "%llu", (unsigned long long)(at->member - at->set));
        else if (str_ieqz(name, "ItemIndex") || str_ieqz(name, "Row"))
                buf_printf(out, "%u", at->row);
        else {
                for (size_t i = 0; i < m->n_variables && i < at->value_count; i++)
                        if (str_ieqz(name, m->variables[i]))
                                return macro_item(str_of(at->values[i]), out);
                return MACRO_UNKNOWN;
        }
        return MACRO_FINAL;
}

static bool filled_value(void *arg, struct str inside, struct buf *out)
{
        const struct attempt *at = arg;
        for (size_t i = 0; i < at->filled_count; i++)
                if (str_eqz(inside, at->filled[2 * i])) {
                        buf_addz(out, at->filled[2 * i + 1]);
                        return true;
                }
        return false;
}

/* HTCondor's other word for $(Node). */
static const char node_word[] = "#pArAlLeLnOdE#";

static void fill_node(const struct attempt *at, struct str s, struct buf *out)
{
        ptrdiff_t i;
        while ((i = str_search(s, str_of(node_word))) >= 0) {
                buf_str(out, str_head(s, (size_t)i));
                buf_printf(out, "%llu", (unsigned long long)(at->member - at->set));
                s = str_skip(s, (size_t)i + sizeof(node_word) - 1);
        }
        buf_str(out, s);
}

int expand_text(const struct attempt *at, const char *text, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf noded = {.max = TEXT_MAX};
        struct str s = str_of(text);
        if (!s.n)
                return 0;
        if (at->set_size && str_search(s, str_of(node_word)) >= 0) {
                fill_node(at, s, &noded);
                s = buf_view(&noded);
        }
        if (!memchr(s.p, '$', s.n)) {
                buf_str(out, s);
                return 0;
        }
        uint64_t random = macro_job_seed(at->request, at->member);
        struct macro_world w = {.arg = (void *)at, .lookup = lookup, .random = &random, .cwd = at->t->m->iwd};
        BUF_CLEANUP struct buf expanded = {.max = TEXT_MAX};
        int r = macro_expand(&w, s, &expanded, NULL, err);
        if (r == 0)
                match_macro_fill(buf_view(&expanded), filled_value, (void *)at, out);
        return r;
}

void expand_iwd(struct attempt *at)
{
        BUF_CLEANUP struct buf path = {.max = 65536};
        free(at->iwd);
        at->iwd = expand_text(at, at->t->m->iwd, &path, NULL) == 0 ? mem_dupz(buf_z(&path))
                                                                   : mem_dupz(at->t->m->iwd);
}

static struct str base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

static bool is_spooled(const struct attempt *at, struct str name)
{
        for (size_t i = 0; i < at->t->m->n_spooled; i++)
                if (str_eqz(name, at->t->m->spooled[i]->name))
                        return true;
        return false;
}

static void in_iwd(const struct attempt *at, struct str path, struct buf *out)
{
        if (!str_starts(path, STR("/")) && at->t->same_domain) {
                buf_addz(out, at->iwd);
                buf_char(out, '/');
        }
        buf_str(out, path);
}

static void in_sandbox(const struct attempt *at, struct str name, struct buf *out)
{
        char sandbox[64];
        sandbox_name(at, sandbox);
        buf_printf(out, "%s/%s/" STR_FMT, at->a->jobs_path, sandbox, STR_ARG(name));
}

static int program(const struct attempt *at, const Drover__Step *step, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int r = expand_text(at, step->executable, &text, err);
        if (r < 0)
                return r;
        struct str path = str_trim(buf_view(&text)), name = base_name(path);
        if (step->transfer_executable && is_spooled(at, name))
                in_sandbox(at, name, out);
        else if (step->transfer_executable)
                in_iwd(at, path, out);
        else
                buf_str(out, path); /* as the job's folder finds it */
        return path.n ? 0 : err_set(err, -EINVAL, "the job names no program");
}

void expand_program(const struct attempt *at, const Drover__Step *step, struct buf *out)
{
        program(at, step, out, NULL);
}

/* Streams of one name are one file: "a" for the first name that occurs, and so on. */
int expand_stream(const struct attempt *at, const char *text, struct buf *ret_path, struct err *err)
{
        BUF_CLEANUP struct buf want = {.max = 65536};
        int r = expand_text(at, text, &want, err);
        if (r < 0 || want.n == 0 || str_eqz(buf_view(&want), "/dev/null"))
                return r < 0 ? r : -ENOENT;
        const Drover__Template *m = at->t->m;
        int index = 0;
        for (size_t i = 0; i < m->n_steps; i++) {
                const char *const names[2] = {m->steps[i]->stdout_file, m->steps[i]->stderr_file};
                for (int k = 0; k < 2; k++, index++) {
                        if (names[k] != text && strcmp(names[k], text) != 0) {
                                BUF_CLEANUP struct buf other = {.max = 65536};
                                if (expand_text(at, names[k], &other, NULL) < 0 ||
                                    !str_eq(buf_view(&other), buf_view(&want)))
                                        continue;
                        }
                        if (ret_path)
                                buf_str(ret_path, buf_view(&want));
                        return index;
                }
        }
        return -ENOENT;
}

/* Was that stream's file written by an earlier step or round, or by this step's stdout? */
static bool stream_goes_on(const struct attempt *at, int index, bool is_stderr)
{
        char name[32];
        snprintf(name, sizeof(name), ".drover_out.%d", index);
        return (unsigned)index < at->step * 2 + (is_stderr ? 1u : 0u) || at->round ||
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
        env_set(env, "CUDA_VISIBLE_DEVICES", ""); /* those that are there are other jobs' */
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

/* Who starts together with it. The names with _CONDOR_ are those that HTCondor gives to nodes of the parallel
 * universe (manual, "Parallel Applications"). */
static void set_variables(const struct attempt *at, struct args *env)
{
        char number[24];
        if (!at->set_size)
                return;
        snprintf(number, sizeof(number), "%u", at->set_size);
        env_set(env, "DROVER_SET_SIZE", number);
        env_set(env, "_CONDOR_NPROCS", number);
        snprintf(number, sizeof(number), "%llu", (unsigned long long)(at->member - at->set));
        env_set(env, "DROVER_NODE", number);
        env_set(env, "_CONDOR_PROCNO", number);
        if (at->set_machines)
                env_set(env, "DROVER_SET_MACHINES", at->set_machines);
}

static int environment(const struct attempt *at, const Drover__Step *step, const char *sandbox,
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
        set_variables(at, env);
        env_set(env, "DROVER_QUEUE", at->q->config->name);
        credentials_env(at, sandbox, env);
        if (queue_is_local(at->q))
                devices(at, env); /* a batch system gives its own */
        queue_environment(at->q->config, env);
        env_set(env, "DROVER_SCRATCH", sandbox);
        env_set(env, "_CONDOR_SCRATCH_DIR", sandbox);
        env_set(env, "TMPDIR", sandbox);
        bool contained = *step->container;
        env_set(env, "HOME", contained ? sandbox : a->users_path ? at->t->user.home : a->home);
        env_set(env, "USER", a->users_path ? at->t->user.name : a->user);
        env_set(env, "LOGNAME", a->users_path ? at->t->user.name : a->user);
        if (!contained) /* an image has its own */
                env_set(env, "PATH", "/usr/local/bin:/usr/bin:/bin");
        BUF_CLEANUP struct buf marker = {0};
        buf_printf(&marker, SHEPHERD_MARKER "%s/%s.%u", a->instance, job, at->fence);
        args_add(env, buf_view(&marker));
        return 0;
}

static int arguments(const struct attempt *at, const Drover__Step *step, struct args *argv, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TEXT_MAX};
        int r = 0;
        if (step->n_argv) {
                for (size_t i = 0; i < step->n_argv && r == 0; i++) {
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
        if (at->memory_bytes && !contain_any(at) &&
            !(at->cgroup && (cgroups_limits(at->a->cgroups) & CGROUP_MEMORY))) {
                /* a far fence: what is really used is sampled */
                uint64_t bytes = at->memory_bytes * 2 + (256u << 20);
                room[n++] = (struct run_rlimit){RLIMIT_DATA, bytes, bytes};
        }
        return n;
}

/* The input of a step: 0, or -EINVAL. An empty path is none. */
int expand_input(const struct attempt *at, const Drover__Step *step, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = 65536};
        int r = expand_text(at, step->stdin_file, &text, err);
        if (r < 0 || text.n == 0 || str_eqz(buf_view(&text), "/dev/null"))
                return r;
        if (is_spooled(at, base_name(buf_view(&text))))
                buf_str(out, base_name(buf_view(&text)));
        else
                in_iwd(at, buf_view(&text), out);
        return 0;
}

static struct run_word *words_of(const Drover__Template *m)
{
        struct run_word *words = mem_array(NULL, m->n_attributes + 1, sizeof(*words));
        for (size_t i = 0; i < m->n_attributes; i++)
                words[i] = (struct run_word){m->attributes[i]->name, m->attributes[i]->value};
        return words;
}

uint64_t expand_gpus(const Drover__Template *m)
{
        for (size_t i = 0; i < m->n_resources; i++)
                if (str_ieqz(STR("GPUs"), m->resources[i]->name))
                        return m->resources[i]->count;
        return 0;
}

/* What a batch system is asked for. */
static void asks_for(const struct attempt *at, const struct run_word *words, struct run_spec *ret)
{
        const Drover__Template *m = at->t->m;
        ret->walltime_ms = walltime_of(at);
        ret->cpus_milli = at->cpus_milli;
        ret->memory_bytes = at->memory_bytes;
        ret->gpus = expand_gpus(m);
        ret->words = words;
        ret->word_count = m->n_attributes;
}

void expand_quote(const struct attempt *at)
{
        MEM_CLEANUP struct run_word *words = words_of(at->t->m);
        struct run_spec spec = {.id = attempt_task(at), .job = "", .owner = at->t->m->owner};
        asks_for(at, words, &spec);
        at->q->backend->runner->kind->quote(at->q->backend->runner, &spec);
}

/* What it leaves, as far as its author has said; of a step that is not the last, every new file is. */
static int outputs_of(const struct attempt *at, struct buf *out, struct err *err)
{
        const Drover__Template *m = at->t->m;
        int r = 0;
        for (size_t i = 0; i < m->n_output_files && at->step + 1 == m->n_steps && r == 0; i++) {
                if (out->n)
                        buf_char(out, ',');
                r = expand_text(at, m->output_files[i], out, err);
        }
        return r;
}

/* What a step is started with; the spec that a runner gets borrows it. */
struct expanded {
        struct buf path, in, outputs, credentials, checkpoint_files;
        struct run_checkpoints checkpoints;
        struct args argv, env;
        int out, err; /* numbers of the files of its streams; -ENOENT: none */
};

/* For a runner that hands the job on. */
static struct run_hop hop_of(const struct attempt *at, const char *job, struct expanded *x)
{
        static const Drover__Origin none = DROVER__ORIGIN__INIT;
        const Drover__Template *m = at->t->m;
        const Drover__Origin *o = m->origin ? m->origin : &none;
        return (struct run_hop){.servers = o->servers,
                                .owner = o->owner,
                                .job = *o->job ? o->job : job,
                                .label = o->label,
                                .path = o->path,
                                .hops_left = o->hops_left,
                                .credentials = x->credentials.n ? buf_z(&x->credentials) : NULL,
                                .outputs = m->all_outputs || at->step + 1 < m->n_steps ? NULL
                                                                                       : buf_z(&x->outputs),
                                .checkpoints = x->checkpoints,
                                .on_success_only = !m->outputs_on_failure && at->step + 1 == m->n_steps};
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
}

static int expand_step(struct attempt *at, const char *sandbox, struct expanded *x, struct err *err)
{
        const Drover__Step *step = at->t->m->steps[at->step];
        int r = program(at, step, &x->path, err);
        if (r == 0) {
                args_add(&x->argv, buf_view(&x->path));
                r = arguments(at, step, &x->argv, err);
        }
        if (r == 0 && activate_wanted(at))
                r = activate_wrap(at, sandbox, &x->path, &x->argv, err);
        if (r == 0)
                r = environment(at, step, contain_target(step, sandbox), &x->env, err);
        if (r == 0)
                r = expand_input(at, step, &x->in, err);
        if (r == 0)
                r = outputs_of(at, &x->outputs, err);
        if (r == 0)
                r = checkpoint_hop(at, &x->checkpoint_files, &x->checkpoints, err);
        if (r < 0)
                return r;
        credentials_names(at, &x->credentials);
        x->out = expand_stream(at, step->stdout_file, NULL, err);
        if (x->out < 0 && x->out != -ENOENT)
                return -EINVAL;
        x->err = expand_stream(at, step->stderr_file, NULL, err);
        return x->err < 0 && x->err != -ENOENT ? -EINVAL : 0;
}

int expand_submit(struct attempt *at, struct err *err)
{
        const Drover__Template *m = at->t->m;
        const Drover__Step *step = m->steps[at->step];
        __attribute__((cleanup(expanded_deinit))) struct expanded x = {.path = {.max = 65536},
                                                                       .in = {.max = 65536},
                                                                       .outputs = {.max = 1 << 20},
                                                                       .credentials = {.max = 65536},
                                                                       .checkpoint_files = {.max = 1 << 20}};
        CONTAINED_CLEANUP struct contained contained = {0};
        char name[64], sandbox[4352], out[32], error[32], job[64];
        struct run_rlimit room[4];
        sandbox_name(at, name);
        snprintf(sandbox, sizeof(sandbox), "%s/%s", at->a->jobs_path, name);
        int r = expand_step(at, sandbox, &x, err);
        if (r < 0)
                return r;
        snprintf(out, sizeof(out), ".drover_out.%d", x.out);
        snprintf(error, sizeof(error), ".drover_out.%d", x.err);
        snprintf(job, sizeof(job), "%llu.%u", (unsigned long long)at->request, at->member);
        MEM_CLEANUP struct run_word *words = words_of(m);
        struct run_spec spec = {
                .id = attempt_task(at),
                .owner = m->owner,
                .user = at->a->users_path ? at->t->user.name : NULL,
                .flags = (at->a->users_path ? RUN_MAKE_SANDBOX : 0u) |
                         (at->t->m->n_credentials ? RUN_CREDENTIALS : 0u),
                .sandbox = sandbox,
                .cwd = at->t->own_cwd ? NULL : at->iwd,
                .stdin_path = buf_z(&x.in),
                .stdout_path = x.out < 0 ? NULL : out,
                .stderr_path = x.err < 0 ? NULL : error,
                .path = buf_z(&x.path),
                .argv = x.argv.v,
                .envp = x.env.v,
                .rlimits = room,
                .rlimit_count = limits(at, room),
                .cgroup_dirs = at->cgroup ? cgroup_dirs(at->cgroup) : NULL,
                .slot = at->cgroup ? cgroup_number(at->cgroup) : UINT32_MAX,
                .job = job,
                .hop = hop_of(at, job, &x),
        };
        asks_for(at, words, &spec);
        if (x.out >= 0 && stream_goes_on(at, x.out, false))
                spec.flags |= RUN_STDOUT_APPEND;
        if (x.err >= 0 && x.err == x.out)
                spec.flags |= RUN_STDERR_IS_STDOUT;
        else if (x.err >= 0 && stream_goes_on(at, x.err, true))
                spec.flags |= RUN_STDERR_APPEND;
        if (!*step->container)
                spec.flags |= queue_containment(at->q);
        if (*step->container && (r = contain_start(at, step, &spec, &contained, err)) < 0)
                return r;
        runner_submit(at->q->backend->runner, &spec);
        credentials_hand_on(at);
        return 0;
}
