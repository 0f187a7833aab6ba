/* Decides which queue a place becomes: its runner, by the class that Galaxy would load, and its settings, by
 * its params. */
#include <stdlib.h>

#include "agent/import/galaxy.h"

/* Names searched in "module:Class"; the first match counts. runner NULL: no agent has such queues; then the
 * reason. */
static const struct known {
        const char *in_load, *runner, *why_not;
} known[] = {
        {"LocalJobRunner", "process", NULL},
        {"SlurmJobRunner", "slurm", NULL},
        {"UnivaJobRunner", "gridengine", NULL},
        {"HTCondorJobRunner", "htcondor", NULL},
        {"CondorJobRunner", "htcondor", NULL},
        {"PBSJobRunner", "pbs", NULL},
        {"DRMAAJobRunner", "drmaa", NULL},
        {"ShellJobRunner", "cli", NULL},
        {"pulsar:", NULL, "where a Pulsar server runs, run drover-agent instead"},
        {"Pulsar", NULL, "where a Pulsar server runs, run drover-agent instead"},
        {"Kubernetes", NULL, "add a queue with runner: kubernetes by hand, see drover-runner-kubernetes(7)"},
        {"Godocker", NULL, "there is no runner for GoDocker"},
        {"Chronos", NULL, "there is no runner for Chronos"},
        {"TES", NULL, "there is no runner for TES"},
        {"AWSBatch", NULL,
         "add a queue with runner: exec and the program awsbatch by hand, see drover-runner-exec(7)"},
};

static bool text_has(const char *text, const char *part)
{
        return text && str_search(str_of(text), str_of(part)) >= 0;
}

static const char *param(const struct galaxy_place *p, const char *name)
{
        const struct galaxy_word *w = galaxy_word(&p->params, name);

        return w ? w->value : NULL;
}

static const char *native_of(const struct galaxy_place *p)
{
        const char *native = param(p, "nativeSpecification");

        return native ? native : param(p, "native_specification");
}

/* DRMAA hides which batch system it is: the library, names and options give it away. */
static const char *guess_drmaa(struct galaxy_conf *c, const struct galaxy_runner *r,
                               const struct galaxy_place *p)
{
        const struct galaxy_word *library = galaxy_word(&r->params, "drmaa_library_path");
        const char *path = library ? library->value : "", *native = native_of(p);

        if (text_has(path, "slurm") || text_has(r->id, "slurm"))
                return "slurm";
        if (text_has(path, "sge") || text_has(path, "gridengine") || text_has(path, "univa") ||
            text_has(r->id, "sge"))
                return "gridengine";
        if (text_has(path, "pbs") || text_has(path, "torque") || text_has(r->id, "pbs"))
                return "pbs";
        if (text_has(path, "condor") || text_has(r->id, "condor"))
                return "htcondor";
        if (text_has(native, "--"))
                return "slurm";
        if (text_has(native, "walltime=") || text_has(native, "nodes="))
                return "pbs";
        galaxy_note(c, p->line, "%s: which batch system is behind DRMAA is not said; gridengine is written",
                    p->id);
        return "gridengine";
}

static void guess_cli(struct galaxy_queue *q)
{
        static const char *const plugins[][2] = {{"SlurmTorque", "pbs"}, {"Slurm", "slurm"},
                                                 {"Torque", "pbs"},      {"PBS", "pbs"},
                                                 {"LSF", "exec"},        {"SGE", "gridengine"}};
        const char *job = param(q->place, "job_plugin"), *shell = param(q->place, "shell_plugin");

        if (shell && !text_has(shell, "Local")) {
                q->why_not = "its jobs are submitted through a shell on another host: run drover-agent there";
                return;
        }
        for (size_t i = 0; job && i < sizeof(plugins) / sizeof(*plugins); i++)
                if (text_has(job, plugins[i][0])) {
                        q->runner = plugins[i][1];
                        return;
                }
        q->why_not = "its batch system needs a program for the runner exec; there is none to name";
}

/* Sets the options as described at the top of dist/runners/lsf. */
static void use_lsf(struct galaxy_queue *q, struct galaxy_conf *c)
{
        static const char *const words[][2] = {{"program", "lsf"},
                                               {"verbs", "hold release nudge"},
                                               {"index_variable", "LSB_JOBINDEX"},
                                               {"array_max", "1000"}};
        unsigned line = q->place->line;

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                galaxy_add_word(&q->native, str_of(words[i][0]), str_of(words[i][1]), line);
        galaxy_note(c, line, "%s: LSF is the runner exec with the program lsf that comes with Drover",
                    q->place->id);
}

static void find_runner(struct galaxy_queue *q, struct galaxy_conf *c)
{
        const struct galaxy_runner *r = galaxy_runner(c, q->place->runner);

        q->why_not = "its runner is not in the file";
        if (q->place->runner && strcmp(q->place->runner, "dynamic") == 0) {
                q->why_not = "a rule that chooses a destination has no equivalent: Drover chooses the queue, "
                             "by the "
                             "job's requirements and rank";
                return;
        }
        for (size_t i = 0; r && i < sizeof(known) / sizeof(*known); i++) {
                if (!text_has(r->load, known[i].in_load))
                        continue;
                q->why_not = known[i].why_not;
                q->runner = known[i].runner;
                if (q->runner && strcmp(q->runner, "drmaa") == 0) {
                        q->runner = guess_drmaa(c, r, q->place);
                } else if (q->runner && strcmp(q->runner, "cli") == 0) {
                        q->runner = NULL;
                        guess_cli(q);
                }
                if (q->runner && strcmp(q->runner, "exec") == 0)
                        use_lsf(q, c);
                return;
        }
        if (r)
                q->why_not = "there is no runner of that kind";
}

/* ---- params */

static void ask_cpus(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_note(c, w->line, "%s: %s is what a job asks for itself: request_cpus = %s", q->place->id,
                    w->name, w->value);
}

static void as_submit_keyword(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_note(c, w->line, "%s: %s is said in the submit file: %s = %s", q->place->id, w->name, w->name,
                    w->value);
}

static bool is_condor(const struct galaxy_queue *q)
{
        return strcmp(q->runner, "htcondor") == 0;
}

/* Adds a setting of an HTCondor queue; for other runners a note for the submit file. */
static void condor_setting(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        if (is_condor(q))
                galaxy_add_word(&q->native, str_of(w->name), str_of(w->value), w->line);
        else
                as_submit_keyword(c, q, w);
}

/* Sets the HTCondor pool; other runners have none. */
static void condor_pool(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        struct str name = str_skip(str_of(w->name), strlen("htcondor_"));

        if (is_condor(q))
                galaxy_add_word(&q->native, str_eqz(name, "collector") ? STR("pool") : name, str_of(w->value),
                                w->line);
        else
                galaxy_note(c, w->line, "%s: %s has no equivalent", q->place->id, w->name);
}

static void ask_memory(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_note(c, w->line, "%s: %s is what a job asks for itself: request_memory = %s", q->place->id,
                    w->name, w->value);
}

static void container_image(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_note(c, w->line, "%s: %s: a job names its image itself: container_image = %s", q->place->id,
                    w->name, w->value);
}

static void container_enabled(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        (void)c;
        if (!str_ieqz(str_of(w->value), "false") && !q->engine)
                q->engine = str_starts(str_of(w->name), STR("docker")) ? "docker" : "singularity";
}

static void container_network(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        (void)c;
        q->network = w->value;
}

/* "$defaults,/data:ro": the job's own folder is there anyway. */
static void container_volumes(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        struct str rest = str_of(w->value), one;

        while (str_cut(&rest, ',', &one)) {
                one = str_trim(one);
                if (str_ends(one, STR(":rw")))
                        one = str_head(one, one.n - 3);
                if (str_starts(one, STR("/")) && str_find(one, '$') < 0)
                        galaxy_add_word(&q->mounts, one, STR_NONE, w->line);
                else if (one.n && !str_eqz(one, "$defaults"))
                        galaxy_note(c, w->line, "%s: the volume " STR_FMT " has no equivalent", q->place->id,
                                    STR_ARG(one));
        }
}

static void resubmit(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_note(c, w->line,
                    "%s: resubmit: a job that passed its limits is held and tells why; max_retries, "
                    "periodic_release and requirements in the submit file say what then",
                    q->place->id);
}

static void own_tmp(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        if (!str_ieqz(str_of(w->value), "true") && !str_ieqz(str_of(w->value), "false"))
                galaxy_note(c, w->line, "%s: %s: TMPDIR is the job's own folder, and nothing else",
                            q->place->id, w->name);
}

static void native(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_native(c, q, w);
}

static void resource_list(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        galaxy_resource_list(c, q, str_of(w->value), w->line);
}

static void walltime(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        if (!galaxy_time(str_of(w->value), false, &q->walltime_s))
                galaxy_note(c, w->line, "%s: %s: '%s' is read as no time", q->place->id, w->name, w->value);
}

static void partition(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        (void)c;
        galaxy_add_word(&q->native, strcmp(q->runner, "slurm") == 0 ? STR("partition") : STR("queue"),
                        str_of(w->value), w->line);
}

static void project(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        (void)c;
        galaxy_add_word(&q->native,
                        strcmp(q->runner, "gridengine") == 0 || strcmp(q->runner, "exec") == 0
                                ? STR("project")
                        : is_condor(q) ? STR("accounting_group")
                                       : STR("account"),
                        str_of(w->value), w->line);
}

static void known_already(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        (void)c;
        (void)q;
        (void)w;
}

static const struct rule {
        const char *name;
        void (*use)(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w);
} rules[] = {
        {"nativeSpecification", native},
        {"native_specification", native},
        {"Resource_List", resource_list},
        {"job_Resource_List", resource_list},
        {"job_plugin", known_already},
        {"shell_plugin", known_already},
        {"job_time", walltime},
        {"job_walltime", walltime},
        {"request_walltime", walltime},
        {"job_partition", partition},
        {"job_queue", partition},
        {"job_project", project},
        {"job_ncpus", ask_cpus},
        {"job_cores", ask_cpus},
        {"local_slots", ask_cpus},
        {"job_memory", ask_memory},
        {"docker_memory", ask_memory},
        {"request_cpus", as_submit_keyword},
        {"request_memory", as_submit_keyword},
        {"request_gpus", as_submit_keyword},
        {"request_disk", as_submit_keyword},
        {"requirements", condor_setting},
        {"rank", condor_setting},
        {"accounting_group", condor_setting},
        {"concurrency_limits", condor_setting},
        {"htcondor_schedd", condor_pool},
        {"htcondor_collector", condor_pool},
        {"htcondor_config", condor_pool},
        {"universe", as_submit_keyword},
        {"docker_enabled", container_enabled},
        {"singularity_enabled", container_enabled},
        {"docker_volumes", container_volumes},
        {"singularity_volumes", container_volumes},
        {"docker_net", container_network},
        {"docker_default_container_id", container_image},
        {"docker_container_id_override", container_image},
        {"singularity_default_container_id", container_image},
        {"singularity_container_id_override", container_image},
        {"resubmit", resubmit},
        {"tmp_dir", own_tmp},
};

static void use_param(struct galaxy_conf *c, struct galaxy_queue *q, const struct galaxy_word *w)
{
        for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
                if (strcmp(rules[i].name, w->name) == 0) {
                        rules[i].use(c, q, w);
                        return;
                }
        if (is_condor(q) && w->name[0] == '+' && w->name[1])
                condor_setting(c, q, w);
        else
                galaxy_note(c, w->line, "%s: %s has no equivalent", q->place->id, w->name);
}

void galaxy_queue_init(struct galaxy_queue *q, struct galaxy_conf *c, const struct galaxy_place *p)
{
        *q = (struct galaxy_queue){.place = p};
        find_runner(q, c);
        if (!q->runner)
                return;
        for (size_t i = 0; i < p->params.n; i++)
                use_param(c, q, &p->params.v[i]);
}
