/* PBS: qsub, qstat, qdel, qhold, qrls, pbsnodes, in the forms of Torque (2.5 to 6) and of PBS Pro and
 * OpenPBS (18 and later), chosen by the queue's setting `form`. Jobs are read from `qstat -f`, whose lines
 * "name = value" are common to both and stable; PBS Pro's JSON was not always valid
 * (github.com/openpbs/openpbs, #1255, #2049). `qsub -v`, hooks and named servers are not used. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/u64.h"
#include "run/batch/runner.h"
#include "run/batch/shape.h"

static const char *const settings[] = {"form", "server", "queue", "account", "resources", "array_max", NULL};

static const struct batch_variable variables[] = {{"PBS_DEFAULT", "server"},
                                                  {"PBS_SERVER", "server"},
                                                  {"PBS_CONF_FILE", NULL},
                                                  {"SLURM_CONF", NULL},
                                                  {NULL, NULL}};

static bool is_torque(const struct batch_settings *s)
{
        const char *form = batch_setting(s, "form");

        return form && !strcmp(form, "torque");
}

static bool has_arrays(const struct batch_settings *s)
{
        const char *max = batch_setting(s, "array_max");

        return !max || strcmp(max, "1") != 0;
}

static int pbs_check(const struct batch_settings *s, struct err *err)
{
        const char *form = batch_setting(s, "form"), *array_max = batch_setting(s, "array_max");
        uint64_t n;

        if (form && strcmp(form, "pro") != 0 && strcmp(form, "torque") != 0)
                return err_set(err, -EINVAL, "form is pro (PBS Pro, OpenPBS) or torque");
        if (array_max && (str_to_u64(str_of(array_max), &n) != 0 || n < 1 || n > 10000))
                return err_set(err, -EINVAL, "array_max is a number, 1 to 10000");
        return 0;
}

static int add_word(const struct batch_settings *s, const struct run_spec *spec, const char *option,
                    const char *setting, const char *const *words, struct buf *out, struct err *err)
{
        const char *value = batch_word(spec, words, s, setting);

        if (!value || !*value)
                return 0;
        if (!batch_plain(value))
                return err_set(err, -EINVAL, "'%.100s' cannot be the %s of a job in PBS", value, setting);
        buf_printf(out, "#PBS %s %s\n", option, value);
        return 0;
}

static void pbs_add_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out)
{
        struct batch_shape shape = batch_shape_of(spec);
        unsigned long long nodes = shape.nodes, gpus = shape.node_gpus, cpus = shape.tasks * shape.task_cpus;
        unsigned long long left =
                (spec->walltime_ms + 999) / 1000 + 60; /* the script ends the program first */

        if (is_torque(s)) { /* memory is for all nodes together there */
                buf_printf(out, "#PBS -l nodes=%llu:ppn=%llu", nodes, cpus);
                if (gpus)
                        buf_printf(out, ":gpus=%llu", gpus);
                if (shape.node_mib)
                        buf_printf(out, ",mem=%llumb", nodes * shape.node_mib);
        } else {
                buf_printf(out, "#PBS -l select=%llu:ncpus=%llu", nodes, cpus);
                if (nodes * shape.tasks > 1)
                        buf_printf(out, ":mpiprocs=%llu", (unsigned long long)shape.tasks);
                if (gpus)
                        buf_printf(out, ":ngpus=%llu", gpus);
                if (shape.node_mib)
                        buf_printf(out, ":mem=%llumb", (unsigned long long)shape.node_mib);
                if (nodes > 1)
                        buf_addz(out, "\n#PBS -l place=scatter");
        }
        buf_char(out, '\n');
        if (spec->walltime_ms)
                buf_printf(out, "#PBS -l walltime=%02llu:%02llu:%02llu\n", left / 3600, left / 60 % 60,
                           left % 60);
}

static int pbs_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                         struct err *err)
{
        static const char *const queue[] = {"PbsQueue", "BatchQueue", NULL},
                                 *const account[] = {"PbsAccount", "BatchProject", NULL},
                                 *const resources[] = {"PbsResources", NULL};

        buf_addz(out, "#PBS -S /bin/sh\n#PBS -j oe\n");
        pbs_add_resources(s, spec, out);
        int r = add_word(s, spec, "-q", "queue", queue, out, err);
        if (r == 0)
                r = add_word(s, spec, "-A", "account", account, out, err);
        return r < 0 ? r : add_word(s, spec, "-l", "resources", resources, out, err);
}

/* Sets where the script's output goes: PBS writes an array's into files with names of its own, which are not
 * needed. PBS Pro rejects arrays whose jobs may not be rerun; a script that has begun once refuses to run
 * again. */
static void pbs_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        buf_printf(out, "#PBS -N %s\n#PBS -r %c\n", name, count > 1 ? 'y' : 'n');
        if (count > 1)
                buf_addz(out, "#PBS -o /dev/null\n");
        else
                buf_printf(out, "#PBS -o %s.0.log\n", log);
}

static void pbs_submit(struct batch_call *c, const struct batch_sending *s)
{
        BUF_CLEANUP struct buf range = {0}, log = {0};

        /* -f: no process is left running to speed up the next qsub (Torque: another meaning) */
        batch_words_add(c, is_torque(c->settings) ? STR("qsub") : STR("qsub -f"));
        if (s->count > 1) {
                buf_printf(&range, "1-%u", s->count);
                batch_word_add(c, is_torque(c->settings) ? "-t" : "-J");
                batch_word_add(c, buf_z(&range));
        } else if (s->log) { /* also here, since Slurm's wrappers use names of their own otherwise */
                buf_printf(&log, "%s.0.log", s->log);
                batch_words_add(c, STR("-j oe -o"));
                batch_word_add(c, buf_z(&log));
        }
        batch_word_add(c, s->script);
}

static struct str digits_of(struct str s)
{
        size_t n = 0;

        while (n < s.n && isdigit((unsigned char)s.p[n]))
                n++;
        return str_head(s, n);
}

/* Reads "17.server" or "17[].server" from the last line. */
static bool pbs_submitted(struct str out, struct buf *ret_native)
{
        struct str last = batch_last_line(out), number = digits_of(last), end = str_skip(last, number.n);

        if (!number.n || (end.n && end.p[0] != '.' && end.p[0] != '['))
                return false;
        buf_str(ret_native, number);
        return true;
}

static bool pbs_refused(int exit_code, struct str errors)
{
        static const char *const unsure[] = {"annot connect",
                                             "Connection refused",
                                             "ommunication",
                                             "No default server",
                                             "timed out",
                                             "timeout",
                                             "pbs_iff",
                                             "too busy",
                                             "Unable to contact",
                                             "Please try",
                                             "shutting down",
                                             "No free conn",
                                             "table full",
                                             "ystem error",
                                             "internal error",
                                             "Failed to save",
                                             NULL};

        return exit_code > 0 && errors.n && !batch_contains(errors, unsure);
}

/* Detects a closed queue, limits on queued jobs and on the size of arrays, which is found by trying, and
 * users whose jobs the server refuses, which is not the job's fault. Limits on a job's resources are not
 * temporary: "Job exceeds queue resource limits", "Job violates queue and/or server resource limits". */
static bool pbs_full(struct str errors)
{
        static const char *const said[] = {"would exceed",
                                           "aximum number of jobs",
                                           "limit on number",
                                           "exceeds the queue limit",
                                           "Array job exceeds",
                                           "array size too large",
                                           "Queue is not enabled",
                                           "Unauthorized Request",
                                           NULL};

        return batch_contains(errors, said);
}

static const char *const limited_by[] = {" -q ", " -A ", NULL};

static bool pbs_refused_array(struct str errors)
{
        static const char *const said[] = {"array", "Array", NULL};

        return batch_contains(errors, said);
}

static void pbs_native_of(const char *native, unsigned index, struct buf *out)
{
        buf_printf(out, "%s[%u]", native, index + 1);
}

/* Runs qstat. With PBS Pro's -w an attribute is one line, whatever its value: otherwise a variable with
 * newlines could imitate another job. Torque's -1 does not break lines at 77 characters; see `continues`. */
static void qstat(struct batch_call *c)
{
        batch_words_add(c, is_torque(c->settings) ? STR("qstat -f -1") : STR("qstat -f -w"));
}

static void pbs_status(struct batch_call *c, const char *user)
{
        (void)user; /* no form of the command has both all attributes and a user */
        qstat(c);
        if (has_arrays(c->settings))
                batch_word_add(c, "-t");
}

struct job { /* a job in the output of qstat -f */
        struct str id, name, owner, state, substate, exit_status, comment;
        bool torque; /* it has an exit status named as by Torque */
        char indent; /* first character of its lines: Torque's a blank; that of Slurm's imitation a tab */
};

/* Derives the phase from the exit status. Both report 256 and more for a signal. Below 0 the job was never
 * started, or was ended by the system for a reason that PBS Pro tells by number (JOB_EXEC_KILL_... of its
 * job.h), and Torque by others under the name "exit_status" (JOB_EXEC_OVERLIMIT_... of its pbs_job.h). A job
 * deleted before it began has no status: PBS Pro reports substate 91, terminated. */
static enum batch_phase ended_phase(const struct job *j)
{
        int64_t status = 0;

        if (str_eqz(j->substate, "91"))
                return BATCH_CANCELLED;
        str_to_i64(j->exit_status, &status);
        if (j->torque && (status == -11 || status == -12)) /* wall time, processor time */
                return BATCH_TIMEOUT;
        if (j->torque && status == -10)
                return BATCH_MEMORY;
        switch (status) {
        case -29: /* wall time */
        case -28: /* processor time */ return BATCH_TIMEOUT;
        case -27:
        case -26: /* virtual memory */ return BATCH_MEMORY;
        case -25: /* more processors than it asked for; the comment says so */
        case -24: return BATCH_CANCELLED;
        default: return status > 256 ? BATCH_CANCELLED : status < 0 ? BATCH_LOST : BATCH_OVER;
        }
}

/* Returns whether the job has no record of its own: Torque's job that was deleted before it began; PBS Pro's
 * member of an array that was, and without a history all that are over, which show the array's attributes
 * except for the state. */
static bool is_bare(const struct job *j)
{
        if (str_eqz(j->state, "C"))
                return !j->exit_status.n;
        return str_eqz(j->state, "X") && j->substate.n && !str_starts(j->substate, STR("9"));
}

static void pbs_take_job(const struct job *j, batch_take_fn *take, void *arg)
{
        ptrdiff_t at = str_find(j->owner, '@');
        struct batch_line line = {.name = j->name,
                                  .user = at > 0 ? str_head(j->owner, (size_t)at) : j->owner,
                                  .reason = j->comment};
        struct str number = digits_of(j->id), rest = str_skip(j->id, number.n);
        char state = j->state.n == 1 ? j->state.p[0] : 0;

        if (!number.n || !state || str_starts(rest, STR("[]")))
                return; /* the array as a whole */
        ptrdiff_t end = rest.n && rest.p[0] == '[' ? str_find(rest, ']') : -1;
        line.native = str_head(j->id, number.n + (size_t)(end + 1));
        if (end > 0) { /* Torque: name-3 */
                ptrdiff_t dash = str_rfind(line.name, '-');

                line.name = dash > 0 ? str_head(line.name, (size_t)dash) : line.name;
        }
        line.bare = is_bare(j);
        if (line.bare)
                line.phase = BATCH_OVER;
        else if (strchr("CFX", state))
                line.phase = ended_phase(j);
        else if (state == 'Q' && str_starts(j->comment, STR("Can Never Run")))
                line.phase = BATCH_UNFIT;
        else if (strchr("QHWTMB", state))
                line.phase = BATCH_WAITING;
        else /* R, E, S, U; or a state of later versions: the job must not be taken for gone */
                line.phase = BATCH_RUNNING;
        line.stopped = strchr("SU", state) != NULL;
        take(arg, &line);
}

/* Returns whether the next line continues the value of this one. In lists, as of variables, Torque puts a
 * backslash before newlines and backslashes, and then breaks long lines, also between the two. `open`: this
 * line is a continuation itself. Ambiguous lines count as continued. (In submit_args newlines are kept as
 * they are.) */
static bool continues(struct str line, bool open)
{
        size_t tab = line.n && line.p[0] == '\t', n = 0;

        while (n < line.n - tab && line.p[line.n - 1 - n] == '\\')
                n++;
        return n % 2 || (open && tab && n == line.n - tab);
}

/* Reads "Job Id: 17.server" and the lines "    Job_Name = x" that follow; a long value continues in lines
 * that begin with a tab. */
static void read_jobs(struct str out, batch_take_fn *take, void *arg)
{
        struct str line;
        struct job j = {0};

        for (bool open = false; out.n && str_cut(&out, '\n', &line);) {
                bool inside = open;

                open = continues(line, open);
                if (!j.indent && line.n)
                        j.indent = line.p[0];
                if (inside || (str_starts(line, STR("\t")) && j.indent != '\t'))
                        continue;
                if (str_starts(line, STR("Job Id:"))) {
                        pbs_take_job(&j, take, arg);
                        j = (struct job){.id = str_trim(str_skip(line, strlen("Job Id:")))};
                        continue;
                }
                ptrdiff_t at = str_search(line, STR(" = "));
                struct str name = at < 0 ? STR("") : str_trim(str_head(line, (size_t)at));
                struct str value = at < 0 ? STR("") : str_trim(str_skip(line, (size_t)at + 3));
                if (str_eqz(name, "Job_Name"))
                        j.name = value;
                else if (str_eqz(name, "Job_Owner"))
                        j.owner = value;
                else if (str_eqz(name, "job_state"))
                        j.state = value;
                else if (str_eqz(name, "substate"))
                        j.substate = value;
                else if (str_ieqz(name, "exit_status"))
                        j.exit_status = value, j.torque = str_starts(name, STR("e"));
                else if (str_eqz(name, "comment"))
                        j.comment = value;
        }
        pbs_take_job(&j, take, arg);
}

/* Ranks of lines about the same job: running, waiting, over. */
static const char ranks[] = {0, 1, 2};

static const char *rank_of(const struct batch_line *line)
{
        return &ranks[line->bare                     ? 0
                      : line->phase == BATCH_RUNNING ? 2
                      : line->phase == BATCH_WAITING ? 1
                                                     : 0];
}

struct believed {
        struct map *best; /* id and name → highest rank */
        batch_take_fn *take;
        void *arg;
};

static const char *best_of(const struct believed *b, const struct batch_line *line, struct buf *key)
{
        buf_printf(key, STR_FMT "\n" STR_FMT, STR_ARG(line->native), STR_ARG(line->name));
        return map_get(b->best, buf_view(key));
}

static void note_line(void *arg, const struct batch_line *line)
{
        struct believed *b = arg;
        BUF_CLEANUP struct buf key = {0};
        const char *best = best_of(b, line, &key), *rank = rank_of(line);

        if (!best || *rank > *best)
                map_put(b->best, buf_view(&key), (void *)(uintptr_t)rank);
}

static void take_best(void *arg, const struct batch_line *line)
{
        struct believed *b = arg;
        BUF_CLEANUP struct buf key = {0};

        if (best_of(b, line, &key) == rank_of(line))
                b->take(b->arg, line);
}

/* Reads a status answer. Torque prints the options of a submit (submit_args) with their newlines, so a user
 * can imitate the end of another job. The real job is in the same answer, so a job that is active in any of
 * its lines counts as active. Its outcome is known from its own files. */
static void pbs_status_read(struct str out, batch_take_fn *take, void *arg)
{
        struct believed b = {map_new(), take, arg};

        read_jobs(out, note_line, &b);
        read_jobs(out, take_best, &b);
        map_free(b.best);
}

/* Returns whether the output has complete lines about jobs, or is empty because there are no jobs. An error
 * with status 0 is no answer. */
static bool pbs_is_answer(struct str out)
{
        return !str_trim(out).n || (out.p[out.n - 1] == '\n' && str_search(out, STR("Job Id:")) >= 0);
}

/* Asks about ended jobs, which PBS Pro keeps if it is configured to, and Torque shows for a while in any
 * case. */
static void pbs_past(struct batch_call *c, const char *user, const char *natives)
{
        (void)user;
        struct str list = str_of(natives), one;
        qstat(c);
        if (!is_torque(c->settings))
                batch_word_add(c, "-x");
        while (list.n && str_cut(&list, ',', &one))
                args_add(&c->argv, one);
}

static void pbs_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const char *const words[] = {
                [BATCH_END] = "qdel", [BATCH_HOLD] = "qhold", [BATCH_RELEASE] = "qrls"};

        batch_words_add(c, str_of(words[verb]));
        batch_words_add(c, natives);
}

/* ---- nodes */

static void pbs_capacity(struct batch_call *c)
{
        batch_words_add(c, STR("pbsnodes -a"));
}

struct node {
        bool there, usable, full; /* full: nothing begins there, even with free resources */
        uint64_t cpus, taken, memory, memory_taken, gpus, gpus_taken;
        struct str queue; /* PBS Pro: only jobs of this queue run there */
};

static void pbs_take_node(const struct node *n, struct run_capacity *c)
{
        bool full = n->full || (n->memory && n->memory_taken >= n->memory);
        const struct batch_node node = {.cpus = n->cpus,
                                        .idle_cpus = full ? 0 : u64_left(n->cpus, n->taken),
                                        .memory_bytes = n->memory,
                                        .idle_memory_bytes = u64_left(n->memory, n->memory_taken),
                                        .gpus = n->gpus,
                                        .idle_gpus = u64_left(n->gpus, n->gpus_taken)};

        if (n->there && n->usable && n->cpus)
                batch_node_add(c, &node, n->cpus);
}

/* Counts processors in Torque's jobs: "0/17.server, 2-3/18.server" are processors 0, 2 and 3. */
static uint64_t processors(struct str jobs)
{
        struct str one, range, first;
        uint64_t n = 0, a, b;

        while (jobs.n && str_cut(&jobs, ',', &one)) {
                one = str_trim(one);
                if (str_find(one, '/') < 0 || !str_cut(&one, '/', &range) || !str_cut(&range, '-', &first) ||
                    str_to_u64(first, &a) != 0)
                        continue;
                n += range.n && str_to_u64(range, &b) == 0 && b >= a && b - a < 100000 ? b - a + 1 : 1;
        }
        return n;
}

/* Reads the memory from Torque's status: "rectime=...,ncpus=8,physmem=16314632kb,..." */
static uint64_t physical_memory(struct str status)
{
        struct str one, name;
        uint64_t bytes = 0;

        while (status.n && str_cut(&status, ',', &one)) {
                one = str_trim(one);
                if (!str_cut(&one, '=', &name))
                        continue;
                if (str_eqz(name, "physmem") || (str_eqz(name, "availmem") && !bytes))
                        batch_size(one, 1, &bytes);
        }
        return bytes;
}

/* Reads Torque's gpu_status: "gpu[0]=gpu_id=...;gpu_state=Unallocated;...,gpu[1]=...". Without it Torque
 * reports the number of GPUs, but not which are in use. */
static void gpu_states(struct node *n, struct str status)
{
        struct str mark = STR("gpu_state=");

        n->gpus = n->gpus_taken = 0;
        for (ptrdiff_t at; (at = str_search(status, mark)) >= 0;) {
                status = str_skip(status, (size_t)at + mark.n);
                n->gpus += !str_starts(status, STR("Unavailable"));
                n->gpus_taken += str_starts(status, STR("Exclusive")) || str_starts(status, STR("Shared"));
        }
}

static void node_resource(struct node *n, struct str name, struct str value)
{
        static const char available[] = "resources_available.", assigned[] = "resources_assigned.";
        bool taken = str_starts(name, str_of(assigned));

        if (!taken && !str_starts(name, str_of(available)))
                return;
        name = str_skip(name, strlen(taken ? assigned : available));
        if (str_eqz(name, "ncpus"))
                str_to_u64(value, taken ? &n->taken : &n->cpus);
        else if (str_eqz(name, "mem"))
                batch_size(value, 1, taken ? &n->memory_taken : &n->memory);
        else if (str_eqz(name, "ngpus"))
                str_to_u64(value, taken ? &n->gpus_taken : &n->gpus);
}

/* Reads a line about a node. Nothing begins on a busy node, whose load is too high or whose processors are
 * all assigned. */
static void pbs_node_line(struct node *n, struct str name, struct str value)
{
        static const char *const away[] = {"down",  "offline", "unknown",      "stale", "sleep",
                                           "drain", "maint",   "provisioning", NULL},
                                 *const full[] = {"exclusive", "busy", NULL};

        if (str_eqz(name, "state")) {
                n->usable = !batch_contains(value, away);
                n->full = batch_contains(value, full);
        } else if (str_eqz(name, "queue"))
                n->queue = value;
        else if (str_eqz(name, "np"))
                str_to_u64(value, &n->cpus);
        else if (str_eqz(name, "jobs") && !n->taken)
                n->taken = processors(value);
        else if (str_eqz(name, "status") && !n->memory)
                n->memory = physical_memory(value);
        else if (str_eqz(name, "gpu_status"))
                gpu_states(n, value);
        else
                node_resource(n, name, value);
}

/* Reads nodes: a node's name alone in a line, then lines "     name = value". queue: counts nodes assigned
 * to it; "": nodes assigned to none. Returns how many there are, of any state. */
static unsigned nodes_of(struct str queue, struct str out, struct run_capacity *c)
{
        struct str line;
        struct node n = {0};
        unsigned count = 0;

        for (bool more = true; more;) {
                more = out.n && str_cut(&out, '\n', &line);
                ptrdiff_t at = more ? str_search(line, STR(" = ")) : -1;
                if (at >= 0) {
                        pbs_node_line(&n, str_trim(str_head(line, (size_t)at)),
                                      str_trim(str_skip(line, (size_t)at + 3)));
                } else if (!more || (line.n && !isspace((unsigned char)line.p[0]))) {
                        if (n.there && str_eq(n.queue, queue)) {
                                count++;
                                pbs_take_node(&n, c);
                        }
                        n = (struct node){.there = true, .queue = STR("")};
                }
        }
        return count;
}

/* A queue to which nodes are assigned uses no others. */
static void pbs_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        const char *queue = batch_setting(s, "queue");

        if (!queue || !*queue || !nodes_of(str_of(queue), out, c))
                nodes_of(STR(""), out, c);
}

const struct batch_system batch_pbs = {
        .name = "pbs",
        .owners = true,
        .settings = settings,
        .variables = variables,
        .index_variable = "PBS_ARRAY_INDEX PBS_ARRAYID",
        .index_first = 1,
        .array_max = 500,
        .short_names = true,
        .none_there = 153, /* PBSE_UNKJOBID as a command's exit status */
        .nodes_setting = "",
        .check = pbs_check,
        .verbs = 1u << BATCH_END | 1u << BATCH_HOLD | 1u << BATCH_RELEASE,
        .resources = pbs_resources,
        .naming = pbs_naming,
        .submit = pbs_submit,
        .submitted = pbs_submitted,
        .refused = pbs_refused,
        .full = pbs_full,
        .limited_by = limited_by,
        .refused_array = pbs_refused_array,
        .native_of = pbs_native_of,
        .status = pbs_status,
        .is_answer = pbs_is_answer,
        .status_read = pbs_status_read,
        .past = pbs_past,
        .past_read = pbs_status_read,
        .act = pbs_act,
        .capacity = pbs_capacity,
        .capacity_read = pbs_capacity_read,
};

static int pbs_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_pbs, &batch_pbs, c, ret, err);
}

const struct runner_kind runner_pbs = {.name = "pbs", .for_users = true, .open = pbs_open, BATCH_VERBS};
