/* Grid Engine: qsub, qstat, qacct, qhold, qrls, qmod, qdel, with their options as in 6.2u5, Son of Grid
 * Engine 8.1 and Univa's 8 (qsub(1), qstat(1), qmod(1), ...). Jobs are submitted with -notify: before it
 * kills or stops a job the system sends SIGUSR2 or SIGUSR1, which the script handles. Ended jobs are asked
 * about with qacct, one job or array at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/u64.h"
#include "run/batch/runner.h"
#include "run/batch/shape.h"

#define MORE_TIME_S 30 /* added to h_rt, so that the script ends the program first */

static const char *const settings[] = {"root",         "cell",    "qmaster_port",    "execd_port",
                                       "queue",        "project", "resources",       "parallel_environment",
                                       "gpu_resource", "gpu_per", "memory_resource", "nodes_environment",
                                       "reservations", NULL};

static const struct batch_variable variables[] = {
        {"SGE_ROOT", "root"},
        {"SGE_CELL", "cell"},
        {"SGE_QMASTER_PORT", "qmaster_port"},
        {"SGE_EXECD_PORT", "execd_port"},
        {"SGE_CLUSTER_NAME", NULL},
        {"LD_LIBRARY_PATH", NULL},
        {NULL, NULL},
};

static const struct {
        const char *option, *setting;
        const char *const words[3]; /* attributes of the job */
} options[] = {
        {"-q", "queue", {"GridEngineQueue", "BatchQueue", NULL}},
        {"-P", "project", {"GridEngineProject", "BatchProject", NULL}},
        {"-l", "resources", {"GridEngineResources", NULL}},
};

static const char *gpu_name(const struct batch_settings *s)
{
        const char *name = batch_setting(s, "gpu_resource");

        return name && batch_plain(name) ? name : "gpu";
}

/* Returns whether the GPU resource is a consumable counted once for a job, not for each of its slots
 * (complex(5)). */
static bool gpus_are_of_jobs(const struct batch_settings *s)
{
        const char *per = batch_setting(s, "gpu_per");

        return per && !strcmp(per, "job");
}

static int grid_check(const struct batch_settings *s, struct err *err)
{
        const char *per = batch_setting(s, "gpu_per"), *name = batch_setting(s, "gpu_resource"),
                   *users = batch_setting(s, "reservations");

        if (users && !batch_plain(users))
                return err_set(err, -EINVAL, "reservations is yes, or local users, not '%.40s'", users);
        if (per && !gpus_are_of_jobs(s) && strcmp(per, "slot") != 0)
                return err_set(err, -EINVAL, "gpu_per is slot or job, not '%.40s'", per);
        if (name && (!batch_plain(name) || strpbrk(name, ",=")))
                return err_set(err, -EINVAL, "gpu_resource is the name of a resource, not '%.40s'", name);
        return 0;
}

static int add_parallel(const struct batch_settings *s, const struct run_spec *spec, uint64_t cpus,
                        struct buf *out, struct err *err)
{
        static const char *const words[] = {"GridEngineParallelEnvironment", NULL};
        bool spread = batch_shape_of(spec).nodes > 1;
        const char *setting = spread ? "nodes_environment" : "parallel_environment";
        const char *pe = batch_word(spec, words, s, setting);

        if (cpus <= 1)
                return 0;
        if (!pe)
                return err_set(err, -EINVAL,
                               "several %s need a parallel environment: the queue's setting %s, or "
                               "+GridEngineParallelEnvironment",
                               spread ? "nodes" : "processors", setting);
        if (!batch_plain(pe))
                return err_set(err, -EINVAL, "'%.100s' cannot be a parallel environment", pe);
        buf_printf(out, "#$ -pe %s %llu\n", pe, (unsigned long long)cpus);
        return 0;
}

/* Requests are made for each slot. */
static void gridengine_add_resources(const struct batch_settings *s, const struct run_spec *spec,
                                     uint64_t cpus, struct buf *out)
{
        const char *memory = batch_setting(s, "memory_resource");
        uint64_t mib = ((spec->memory_bytes + (1 << 20) - 1) >> 20), sharing = gpus_are_of_jobs(s) ? 1 : cpus;

        if (spec->walltime_ms)
                buf_printf(out, "#$ -l h_rt=%llu\n",
                           (unsigned long long)((spec->walltime_ms + 999) / 1000 + MORE_TIME_S));
        if (mib && memory && batch_plain(memory))
                buf_printf(out, "#$ -l %s=%lluM\n", memory, (unsigned long long)((mib + cpus - 1) / cpus));
        if (spec->gpus)
                buf_printf(out, "#$ -l %s=%llu\n", gpu_name(s),
                           (unsigned long long)((spec->gpus + sharing - 1) / sharing));
}

static int grid_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                          struct err *err)
{
        uint64_t cpus = (spec->cpus_milli + 999) / 1000;

        cpus = cpus ? cpus : 1;
        buf_addz(out, "#$ -S /bin/sh\n#$ -r n\n#$ -j y\n#$ -wd /\n#$ -notify\n#$ -w e\n");
        int r = add_parallel(s, spec, cpus, out, err);
        if (r < 0)
                return r;
        gridengine_add_resources(s, spec, cpus, out);
        if (spec->reservation)
                buf_printf(out, "#$ -ar %s\n", spec->reservation);
        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                const char *value = batch_word(spec, options[i].words, s, options[i].setting);

                if (!value || !*value)
                        continue;
                if (!batch_plain(value))
                        return err_set(err, -EINVAL, "'%.100s' cannot be the %s of a job in Grid Engine",
                                       value, options[i].setting);
                buf_printf(out, "#$ %s %s\n", options[i].option, value);
        }
        return 0;
}

static void grid_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        buf_printf(out, "#$ -N %s\n", name);
        if (count > 1)
                buf_printf(out, "#$ -t 1-%u\n#$ -o %s.$TASK_ID.log\n", count, log);
        else
                buf_printf(out, "#$ -o %s.0.log\n", log);
}

static void grid_submit(struct batch_call *c, const struct batch_sending *s)
{
        batch_words_add(c, STR("qsub -terse"));
        batch_word_add(c, s->script);
}

/* Reads "17", or "17.1-3:1" for an array, from the last line. */
static bool grid_submitted(struct str out, struct buf *ret_native)
{
        struct str last = batch_last_line(out), number;
        uint64_t n;

        if (!str_cut(&last, '.', &number) || str_to_u64(number, &n) != 0)
                return false;
        buf_str(ret_native, number);
        return true;
}

/* Returns whether the master itself refused the job; false for failures to reach it, and for limits on a
 * user's jobs. */
static bool grid_refused(int exit_code, struct str errors)
{
        (void)exit_code;
        static const char *const unsure[] = {"commlib error",          "unable to send message",
                                             "unable to contact",      "can't connect",
                                             "got select error",       "timeout",
                                             "jobs are allowed per",   "maximum number of jobs",
                                             "unable to read qmaster", NULL},
                                 *const said[] = {"Unable to run job", "denied:", "qsub: ", NULL};
        return !batch_contains(errors, unsure) && batch_contains(errors, said);
}

/* Detects max_u_jobs, and max_jobs of the whole cell. */
static bool grid_full(struct str errors)
{
        static const char *const said[] = {"jobs are allowed per", "maximum number of jobs", NULL};

        return batch_contains(errors, said);
}

static bool grid_refused_array(struct str errors)
{
        static const char *const said[] = {"tasks", "array", NULL};

        return str_search(errors, STR("rejected")) >= 0 && batch_contains(errors, said);
}

static void grid_native_of(const char *native, unsigned index, struct buf *out)
{
        buf_printf(out, "%s.%u", native, index + 1);
}

static void grid_status(struct batch_call *c, const char *user)
{
        batch_words_add(c, STR("qstat -xml -g d -u"));
        batch_word_add(c, user);
}

/* Letters: q w waiting, h held, r running, t being sent to a host, R restarted, s S T N stopped, d being
 * deleted, E in error: it failed to start and waits for an administrator. */
static bool gridengine_phase_of(struct str state, enum batch_phase *ret)
{
        if (!state.n)
                return false;
        if (str_find(state, 'E') >= 0)
                *ret = BATCH_UNFIT;
        else if (str_find(state, 'q') >= 0 || str_find(state, 'w') >= 0)
                *ret = BATCH_WAITING;
        else
                *ret = BATCH_RUNNING;
        return true;
}

struct job_element {
        struct str number, task, name, owner, state;
};

static void gridengine_take_job(const struct job_element *j, batch_take_fn *take, void *arg)
{
        BUF_CLEANUP struct buf native = {0};
        struct batch_line line = {.name = j->name, .user = j->owner, .reason = STR("")};

        if (!j->number.n || !gridengine_phase_of(j->state, &line.phase))
                return;
        line.stopped =
                line.phase == BATCH_RUNNING && (str_find(j->state, 's') >= 0 ||
                                                str_find(j->state, 'S') >= 0 || str_find(j->state, 'T') >= 0);
        buf_str(&native, j->number);
        if (j->task.n)
                buf_printf(&native, "." STR_FMT, STR_ARG(j->task));
        line.native = buf_view(&native);
        take(arg, &line);
}

/* Returns whether the document is complete: jobs missing from a truncated one would be taken for gone. */
static bool grid_is_answer(struct str out)
{
        return str_search(out, STR("<job_info")) >= 0 && str_ends(str_trim(out), STR("</job_info>"));
}

/* <job_list state="running"> <JB_job_number>17</JB_job_number> ... <tasks>3</tasks> </job_list> */
static void grid_status_read(struct str out, batch_take_fn *take, void *arg)
{
        struct str tag, attributes, text;
        struct job_element j = {0};

        while (batch_next_tag(&out, &tag, &attributes, &text)) {
                if (str_eqz(tag, "job_list"))
                        j = (struct job_element){0};
                else if (str_eqz(tag, "/job_list"))
                        gridengine_take_job(&j, take, arg);
                else if (str_eqz(tag, "JB_job_number"))
                        j.number = text;
                else if (str_eqz(tag, "JB_name"))
                        j.name = text;
                else if (str_eqz(tag, "JB_owner"))
                        j.owner = text;
                else if (str_eqz(tag, "state"))
                        j.state = text;
                else if (str_eqz(tag, "tasks"))
                        j.task = text;
        }
}

/* Asks about the whole array of the first id. */
static void grid_past(struct batch_call *c, const char *user, const char *natives)
{
        (void)user;
        batch_words_add(c, STR("qacct -j"));
        args_add(&c->argv, str_head(str_of(natives), strcspn(natives, ".,")));
}

/* "failed": 0 the job ended by itself; 100 it was ended by a signal: a qdel, since the script enforces the
 * time limit first; 37 the master's time limit; otherwise it was never started, or the host failed
 * (accounting(5), sge_diagnostics(1)). A script that was notified of the signal has ended its program, and
 * itself with the signal's status. */
static enum batch_phase past_phase(struct str failed, struct str exit_status)
{
        struct str number;
        uint64_t code = 0, status = 0;

        if (str_word(&exit_status, &number))
                str_to_u64(number, &status);
        if (!str_word(&failed, &number) || str_to_u64(number, &code) != 0 || code == 0)
                return status > 128 ? BATCH_CANCELLED : BATCH_OVER;
        return code == 100 ? BATCH_CANCELLED : code == 37 ? BATCH_TIMEOUT : BATCH_LOST;
}

struct record { /* a record of qacct */
        struct str number, task, name, failed, status;
};

static void take_record(const struct record *r, batch_take_fn *take, void *arg)
{
        BUF_CLEANUP struct buf native = {0};
        uint64_t n;
        struct batch_line line = {
                .name = r->name, .phase = past_phase(r->failed, r->status), .reason = STR("")};
        ptrdiff_t colon = str_find(r->failed, ':');

        if (!r->number.n)
                return;
        buf_str(&native, r->number);
        if (str_to_u64(r->task, &n) == 0)
                buf_printf(&native, "." STR_FMT, STR_ARG(r->task));
        line.native = buf_view(&native);
        if (colon >= 0 && line.phase == BATCH_LOST)
                line.reason = str_trim(str_skip(r->failed, (size_t)colon + 1));
        take(arg, &line);
}

/* Reads records of lines "name  value", each begun by a line of '='. */
static void grid_past_read(struct str out, batch_take_fn *take, void *arg)
{
        struct str line, name;
        struct record r = {0};

        while (out.n && str_cut(&out, '\n', &line)) {
                if (str_starts(line, STR("===="))) {
                        take_record(&r, take, arg);
                        r = (struct record){0};
                        continue;
                }
                if (!str_word(&line, &name))
                        continue;
                if (str_eqz(name, "jobnumber"))
                        r.number = str_trim(line);
                else if (str_eqz(name, "taskid"))
                        r.task = str_trim(line);
                else if (str_eqz(name, "jobname"))
                        r.name = str_trim(line);
                else if (str_eqz(name, "failed"))
                        r.failed = str_trim(line);
                else if (str_eqz(name, "exit_status"))
                        r.status = str_trim(line);
        }
        take_record(&r, take, arg);
}

static void grid_explain(struct batch_call *c, struct str native)
{
        ptrdiff_t dot = str_find(native, '.');

        batch_words_add(c, STR("qstat -j"));
        args_add(&c->argv, str_head(native, dot < 0 ? native.n : (size_t)dot));
}

/* "error reason          1:      11/21/2026 19:46:28 [0:15093]: error: can't chdir to /none: No such file" */
static struct str grid_explained(struct str out, enum batch_phase *phase)
{
        (void)phase;
        struct str line;

        while (out.n && str_cut(&out, '\n', &line)) {
                if (!str_starts(line, STR("error reason")))
                        continue;
                ptrdiff_t at = str_search(line, STR("]: "));
                ptrdiff_t colon = str_find(line, ':');
                return str_trim(str_skip(line, at >= 0      ? (size_t)at + 3
                                               : colon >= 0 ? (size_t)colon + 1
                                                            : 0));
        }
        return STR("");
}

static void grid_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const char *const words[] = {[BATCH_END] = "qdel",
                                            [BATCH_STOP] = "qmod -sj",
                                            [BATCH_CONTINUE] = "qmod -usj",
                                            [BATCH_HOLD] = "qhold",
                                            [BATCH_RELEASE] = "qrls"};

        batch_words_add(c, str_of(words[verb]));
        batch_words_add(c, natives);
}

/* ---- the queues' instances */

/* Asks for the queues' instances. Slots and GPUs are reported as what is left under the limits of the host
 * and the whole cell, beside those of the queue. */
static void grid_capacity(struct batch_call *c)
{
        const char *queue = batch_setting(c->settings, "queue");
        BUF_CLEANUP struct buf resources = {0};

        buf_printf(&resources, "mem_total,mem_free,slots,%s", gpu_name(c->settings));
        batch_words_add(c, STR("qstat -f -xml -u nobody -F"));
        batch_word_add(c, buf_z(&resources));
        if (queue) {
                batch_word_add(c, "-q");
                batch_word_add(c, queue);
        }
}

struct instance { /* an instance of a queue at a host */
        struct str name, state;
        uint64_t used, reserved, total, left, memory, memory_free, gpus;
        bool in_job, limited; /* limited: `left` is known */
        bool reserves;        /* the agent makes reservations, whose slots its jobs may have */
        bool of_cell;         /* its GPUs are those left in the whole cell */
};

struct host { /* the maximum over its instances */
        struct str name;
        uint64_t free, total, memory, memory_free, gpus;
};

struct hosts {
        struct map *index; /* name → index into v, plus one */
        struct host *v;
        size_t n, cap;
        uint64_t cell_gpus; /* GPUs left in the cell; UINT64_MAX: no limit */
};

/* Adds an instance. A host may be in several queues, which share its processors. */
static void take_instance(const struct instance *i, struct hosts *all)
{
        ptrdiff_t at = str_rfind(i->name, '@');
        struct str name = str_skip(i->name, (size_t)(at + 1));
        uint64_t left = u64_left(i->total, i->used + (i->reserves ? 0 : i->reserved));

        if (i->state.n || !i->total) /* disabled, suspended, unknown, overloaded, ... */
                return;
        uintptr_t k = (uintptr_t)map_get(all->index, name);
        if (!k) {
                MEM_GROW(all->v, all->cap, all->n + 1);
                all->v[all->n++] = (struct host){.name = name};
                k = all->n;
                map_put(all->index, name, (void *)k);
        }
        struct host *h = &all->v[k - 1];
        if (i->limited)
                left = u64_min(left, i->left);
        h->free = u64_max(h->free, left);
        h->total = u64_max(h->total, i->total);
        h->memory = u64_max(h->memory, i->memory);
        h->memory_free = u64_max(h->memory_free, i->memory_free);
        h->gpus = u64_max(h->gpus, i->gpus);
        if (i->of_cell && i->gpus < all->cell_gpus)
                all->cell_gpus = i->gpus;
}

/* Reads <resource name="gpu" type="hc">2.000000</resource>: what is left of a consumable under the host's
 * limit. A load value or a fixed value is not counted down by the system and is ignored. */
static void resource_tag(struct instance *i, const char *gpu, struct str attributes, struct str text)
{
        BUF_CLEANUP struct buf gpu_mark = {0};
        bool consumed = str_search(attributes, STR("type=\"hc\"")) >= 0 ||
                        str_search(attributes, STR("type=\"qc\"")) >= 0,
             of_cell = str_search(attributes, STR("type=\"gc\"")) >= 0;

        buf_printf(&gpu_mark, "name=\"%s\"", gpu);
        if (str_search(attributes, STR("\"mem_total\"")) >= 0)
                batch_size(text, 1, &i->memory);
        else if (str_search(attributes, STR("\"mem_free\"")) >= 0)
                batch_size(text, 1, &i->memory_free);
        else if (str_search(attributes, STR("\"slots\"")) >= 0)
                i->limited = batch_size(text, 1, &i->left);
        else if ((consumed || of_cell) && str_search(attributes, buf_view(&gpu_mark)) >= 0)
                i->of_cell = batch_size(text, 1, &i->gpus) && of_cell;
}

static void instance_tag(struct instance *i, struct str tag, struct str text)
{
        uint64_t n = 0;

        if (str_eqz(tag, "name")) {
                i->name = text;
        } else if (str_eqz(tag, "state")) {
                i->state = text;
        } else if (str_to_u64(text, &n) == 0) {
                if (str_eqz(tag, "slots_used"))
                        i->used = n;
                else if (str_eqz(tag, "slots_resv"))
                        i->reserved = n;
                else if (str_eqz(tag, "slots_total"))
                        i->total = n;
        }
}

static void add_host(const struct host *h, bool parallel, struct run_capacity *c)
{
        const struct batch_node node = {.cpus = h->total,
                                        .idle_cpus = h->free,
                                        .memory_bytes = h->memory,
                                        .idle_memory_bytes = h->memory_free,
                                        .gpus = h->gpus,
                                        .idle_gpus = h->gpus};

        batch_node_add(c, &node, parallel ? h->total : 1);
}

static bool gives_several_slots(const struct batch_settings *s)
{
        return batch_setting(s, "parallel_environment") || batch_setting(s, "nodes_environment");
}

static void grid_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        struct str tag, attributes, text;
        struct instance i = {0};
        struct hosts all = {.index = map_new(), .cell_gpus = UINT64_MAX};

        while (batch_next_tag(&out, &tag, &attributes, &text)) {
                if (str_eqz(tag, "Queue-List"))
                        i = (struct instance){.reserves = batch_setting(s, "reservations") != NULL};
                else if (str_eqz(tag, "/Queue-List"))
                        take_instance(&i, &all);
                else if (str_eqz(tag, "job_list") || str_eqz(tag, "/job_list"))
                        i.in_job = tag.p[0] != '/';
                else if (!i.in_job && str_eqz(tag, "resource"))
                        resource_tag(&i, gpu_name(s), attributes, text);
                else if (!i.in_job)
                        instance_tag(&i, tag, text);
        }
        for (size_t k = 0; k < all.n; k++)
                add_host(&all.v[k], gives_several_slots(s), c);
        if (c->gpus > all.cell_gpus)
                c->gpus = all.cell_gpus;
        if (c->idle_gpus > c->gpus)
                c->idle_gpus = c->gpus;
        map_free(all.index);
        free(all.v);
}

/* ---- quotes */

/* Asks whether the job would begin now, which is all that the system can tell. */
static void grid_when(struct batch_call *c, const struct batch_sending *s)
{
        batch_words_add(c, STR("qsub -w p"));
        batch_word_add(c, s->script);
}

static bool grid_when_said(struct str out, struct str errors, uint64_t *ret_ms)
{
        (void)errors;
        *ret_ms = 1; /* now, at the earliest */
        return str_search(out, STR("found suitable queue")) >= 0 ||
               str_search(out, STR("found possible assignment")) >= 0;
}

/* ---- advance reservations, of slots */

static void add_moment(struct batch_call *c, const char *option, int64_t at_ms)
{
        time_t at = (time_t)(at_ms / 1000);
        struct tm tm = {.tm_year = 70};
        char text[32];

        localtime_r(&at, &tm);
        strftime(text, sizeof(text), "%Y%m%d%H%M.%S", &tm);
        batch_word_add(c, option);
        batch_word_add(c, text);
}

static bool grid_reserve(struct batch_call *c, const struct batch_reserving *r)
{
        const char *queue = batch_setting(c->settings, "queue"),
                   *pe = batch_setting(c->settings, "parallel_environment");
        BUF_CLEANUP struct buf slots = {0};

        if (r->maintenance || r->cpus == 0 || (r->cpus > 1 && !pe))
                return false;
        batch_words_add(c, STR("qrsub -N"));
        batch_word_add(c, r->name);
        if (queue) {
                batch_word_add(c, "-q");
                batch_word_add(c, queue);
        }
        if (r->cpus > 1) {
                buf_printf(&slots, "%llu", (unsigned long long)r->cpus);
                batch_word_add(c, "-pe");
                batch_word_add(c, pe);
                batch_word_add(c, buf_z(&slots));
        }
        if (r->start_ms > clock_wall_ms())
                add_moment(c, "-a", r->start_ms);
        add_moment(c, "-e", r->end_ms);
        batch_word_add(c, "-u");
        batch_word_add(c, r->users);
        return true;
}

static void grid_unreserve(struct batch_call *c, const char *name)
{
        batch_word_add(c, "qrdel");
        batch_word_add(c, name);
}

static void grid_reserved(struct batch_call *c)
{
        batch_words_add(c, STR("qrstat -xml"));
}

/* Returns the text between a tag and its end, if the line has the tag. */
static struct str between(struct str line, struct str tag)
{
        ptrdiff_t at = str_search(line, tag);
        struct str text = at < 0 ? STR_NONE : str_skip(line, (size_t)at + tag.n);

        return str_head(text, str_find(text, '<') < 0 ? 0 : (size_t)str_find(text, '<'));
}

static struct str grid_reserved_read(struct str line)
{
        return between(line, STR("<name>"));
}

static struct str grid_reserved_id(struct str line)
{
        struct str id = between(line, STR("<id>"));
        uint64_t n;

        return str_to_u64(id, &n) == 0 ? id : STR_NONE;
}

const struct batch_system batch_gridengine = {
        .name = "gridengine",
        .owners = true,
        .settings = settings,
        .variables = variables,
        .index_variable = "SGE_TASK_ID",
        .traps = "trap 'again=1; told' USR2 # it will be killed\n"
                 "trap 'again=1; kill -s STOP -- \"-$child\"' USR1 # it will be stopped\n",
        .index_first = 1,
        .array_max = 1000,
        .past_max = 1,
        .wordless_s = 30, /* accounting is written every 15 s */
        .verbs = 1u << BATCH_END | 1u << BATCH_STOP | 1u << BATCH_CONTINUE | 1u << BATCH_HOLD |
                 1u << BATCH_RELEASE,
        .gpus_left = true,
        .nodes_setting = "nodes_environment",
        .check = grid_check,
        .resources = grid_resources,
        .naming = grid_naming,
        .submit = grid_submit,
        .submitted = grid_submitted,
        .refused = grid_refused,
        .full = grid_full,
        .refused_array = grid_refused_array,
        .native_of = grid_native_of,
        .status = grid_status,
        .is_answer = grid_is_answer,
        .status_read = grid_status_read,
        .past = grid_past,
        .past_read = grid_past_read,
        .explain = grid_explain,
        .explained = grid_explained,
        .act = grid_act,
        .capacity = grid_capacity,
        .capacity_read = grid_capacity_read,
        .when = grid_when,
        .when_said = grid_when_said,
        .when_is_now = true,
        .reserve = grid_reserve,
        .unreserve = grid_unreserve,
        .reserved = grid_reserved,
        .reserved_read = grid_reserved_read,
        .reserved_id = grid_reserved_id,
};

static int grid_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_gridengine, &batch_gridengine, c, ret, err);
}

const struct runner_kind runner_gridengine = {
        .name = "gridengine", .for_users = true, .open = grid_open, BATCH_VERBS};
