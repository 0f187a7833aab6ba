#include "cli/sim/study.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/format/quantity.h"
#include "base/system/fs.h"
#include "cli/terminal/human.h"
#include "sim/generate.h"
#include "sim/trace_outages.h"
#include "sim/trace_swf.h"
#include "sim/trace_workflow.h"

#define FILE_BYTES_MAX (1u << 30)
#define AGENTS_DEFAULT 16
#define CPUS_DEFAULT   16
#define INPUT_DEFAULT  (10ull << 30) /* median size for a job of a trace */
#define SETS_OF_A_USER 8u

static const struct study_policy policies[STUDY_POLICIES] = {
        {"cost", false, CORE_PLACE_COST, 0},
        {"blind", false, CORE_PLACE_BLIND, 0},
        {"fifo", false, CORE_PLACE_FIFO, 0},
        {"cached-bytes", false, CORE_PLACE_CACHED, 0},
        {"passive", false, CORE_PLACE_PASSIVE, 0},
        {"cluster-monitor", false, CORE_PLACE_CLUSTER, 0},
        {"queue-monitor", false, CORE_PLACE_QUEUE, 0},
        {"fcfs", true, 0, SIM_FCFS},
        {"easy", true, 0, SIM_EASY},
        {"conservative", true, 0, SIM_CONSERVATIVE},
        {"easy-fairshare", true, 0, SIM_EASY_FAIRSHARE},
};

void study_deinit(struct study *s)
{
        for (size_t i = 0; i < s->result_count; i++) {
                sim_measures_deinit(&s->results[i].m);
                free(s->results[i].times);
        }
        sim_workload_deinit(&s->workload);
        sim_site_deinit(&s->site);
        buf_deinit(&s->title);
}

/* ---- options */
/* Reads an option such as "50M" or "1.5GiB"; `otherwise` if it is not given. Returns false after printing
 * an error. */
static bool read_size(const struct options *o, const char *name, uint64_t otherwise, uint64_t *ret)
{
        const char *text = options_text(o, name);

        *ret = otherwise;
        if (!text || quantity_size(str_of(text), ret) == 0)
                return true;
        cli_error(0, "--%s %s: a size is needed, as in 50M or 1.5G", name, text);
        return false;
}

static bool read_count(const struct options *o, const char *name, int64_t otherwise, int64_t min, int64_t max,
                       int64_t *ret)
{
        *ret = options_number(o, name, otherwise);
        if (!options_text(o, name) || (*ret >= min && *ret <= max))
                return true;
        cli_error(0, "--%s must be from %" PRId64 " to %" PRId64, name, min, max);
        return false;
}

static bool read_factor(const struct options *o, const char *name, double *ret)
{
        const char *text = options_text(o, name);

        *ret = 1;
        if (!text || (str_to_double(str_of(text), ret) == 0 && *ret >= 0.001 && *ret <= 1000000))
                return true;
        cli_error(0, "--%s %s: a number above 0 is needed", name, text);
        return false;
}

static bool read_policies(struct study *s, const char *list)
{
        struct str rest = str_of(list ? list : "cost"), word;

        while (str_cut(&rest, ',', &word)) {
                size_t p = 0;

                while (p < STUDY_POLICIES && !str_eqz(str_trim(word), policies[p].name))
                        p++;
                if (p == STUDY_POLICIES || s->policy_count == STUDY_POLICIES) {
                        cli_error(0,
                                  "--compare: \"" STR_FMT
                                  "\" is none of cost, blind, fifo, cached-bytes, passive, "
                                  "cluster-monitor, queue-monitor, fcfs, easy, conservative and "
                                  "easy-fairshare",
                                  STR_ARG(word));
                        return false;
                }
                s->policies[s->policy_count++] = &policies[p];
        }
        return true;
}

/* ---- files */
static bool read_file(const char *name, struct buf *text)
{
        struct err err;

        if (fs_read(AT_FDCWD, name, FILE_BYTES_MAX, text, &err) == 0)
                return true;
        cli_error(0, "%s", err.text);
        return false;
}

/* Returns NAME of NAME=FILE, or the file's name up to its first dot. */
static struct str trace_name(const char *word, const char **ret_file)
{
        struct str s = str_of(word);
        ptrdiff_t equals = str_find(s, '='), slash, dot;

        *ret_file = word + (equals > 0 ? equals + 1 : 0);
        if (equals > 0)
                return str_head(s, (size_t)equals);
        slash = str_rfind(s, '/');
        s = str_skip(s, (size_t)(slash + 1));
        dot = str_find(s, '.');
        return dot > 0 ? str_head(s, (size_t)dot) : s;
}

static bool is_workflow(struct str text)
{
        text = str_trim_left(text);
        return text.n > 0 && (text.p[0] == '{' || text.p[0] == '[');
}

/* Adds a trace, whose jobs come from the cluster of its name. A site without that cluster gets it, with as
 * many processors as the trace says. */
static bool add_swf(struct study *s, const struct options *o, struct str name, const char *file,
                    struct str text)
{
        int at = sim_site_find(&s->site, name);
        struct sim_swf_options so = {.cluster = at < 0 ? (uint32_t)s->site.count : (uint32_t)at};
        struct sim_swf_header head;
        struct err err;
        int64_t first;

        if (!read_count(o, "first", 0, 1, SIM_JOBS_MAX, &first) || !read_factor(o, "hurry", &so.hurry))
                return false;
        so.first_max = (uint64_t)first;
        if (at < 0 && options_text(o, "site")) {
                cli_error(0, "%s: there is no cluster \"" STR_FMT "\" in %s; name it in front, as in NAME=%s",
                          file, STR_ARG(name), options_text(o, "site"), file);
                return false;
        }
        if (sim_swf_read(&s->workload, file, text, &so, &head, &err)) {
                cli_error(0, "%s", err.text);
                return false;
        }
        if (head.skipped && s->repeat == 0)
                cli_error(0, "%s: %" PRIu64 " jobs that never ran are left out", file, head.skipped);
        if (at < 0)
                sim_site_add(&s->site, name, 1, head.procs > head.widest ? head.procs : head.widest);
        buf_printf(&s->title, "%s" STR_FMT " (", s->title.n ? ", " : "", STR_ARG(name));
        human_count(&s->title, (int64_t)head.jobs, "job)", "jobs)");
        return true;
}

static bool add_workflow(struct study *s, const struct options *o, struct str name, const char *file,
                         struct str text)
{
        int64_t copies;
        struct sim_workflow_options wo = {.every_ms = options_number(o, "every", 0) * 1000};
        struct sim_workflow_header head;
        struct err err;

        if (!read_count(o, "copies", 1, 1, 100000, &copies))
                return false;
        wo.copies = (uint32_t)copies;
        if (sim_workflow_read(&s->workload, file, text, &wo, &head, &err)) {
                cli_error(0, "%s", err.text);
                return false;
        }
        if (head.untimed && s->repeat == 0)
                cli_error(0, "%s: %zu of %zu tasks have no run time: they are taken to need none", file,
                          head.untimed, head.tasks);
        if (head.empty && s->repeat == 0)
                cli_error(0, "%s: %zu of %zu files have no size: they are taken to be empty", file,
                          head.empty, head.files);
        buf_printf(&s->title, "%s" STR_FMT " (", s->title.n ? ", " : "", STR_ARG(name));
        human_count(&s->title, (int64_t)head.tasks, "task", "tasks");
        if (copies > 1)
                buf_printf(&s->title, ", %" PRId64 " times", copies);
        buf_char(&s->title, ')');
        return true;
}

static bool add_trace(struct study *s, const struct options *o, const char *word)
{
        struct buf text BUF_CLEANUP = {0};
        const char *file;
        struct str name = trace_name(word, &file);

        if (!read_file(file, &text))
                return false;
        return is_workflow(buf_view(&text)) ? add_workflow(s, o, name, file, buf_view(&text))
                                            : add_swf(s, o, name, file, buf_view(&text));
}

/* ---- the site */
static bool read_site(struct study *s, const struct options *o)
{
        const char *file = options_text(o, "site");
        struct buf text BUF_CLEANUP = {0};
        struct err err;
        uint64_t near, far;

        sim_site_init(&s->site);
        if (!read_size(o, "near", s->site.near.bytes_per_s, &near) ||
            !read_size(o, "far", s->site.far.bytes_per_s, &far))
                return false;
        if (near == 0 || far == 0) {
                cli_error(0, "--near and --far must be above 0");
                return false;
        }
        s->site.near.bytes_per_s = near;
        s->site.far.bytes_per_s = far;
        if (!file)
                return true;
        if (!read_file(file, &text))
                return false;
        if (sim_site_read(&s->site, file, buf_view(&text), &err)) {
                cli_error(0, "%s", err.text);
                return false;
        }
        return true;
}

/* Makes clusters that are not described, for workloads that bring none. */
static bool make_clusters(struct study *s, const struct options *o)
{
        int64_t clusters, agents, cpus;

        if (!read_count(o, "clusters", 2, 1, SIM_CLUSTERS_MAX, &clusters) ||
            !read_count(o, "agents", AGENTS_DEFAULT, 1, SIM_AGENTS_MAX, &agents) ||
            !read_count(o, "cpus", CPUS_DEFAULT, 1, 1000000, &cpus))
                return false;
        if (s->site.count)
                return true;
        clusters = clusters > agents ? agents : clusters;
        for (int64_t i = 0; i < clusters; i++) {
                struct buf name BUF_CLEANUP = {0};

                buf_printf(&name, "c%" PRId64, i);
                sim_site_add(&s->site, buf_view(&name),
                             (uint32_t)(agents / clusters + (i < agents % clusters)), (uint32_t)cpus);
        }
        return true;
}

/* Options for all clusters override the site's file. */
static bool change_clusters(struct study *s, const struct options *o)
{
        uint64_t cache;

        if (!read_size(o, "cache", 0, &cache))
                return false;
        for (size_t i = 0; i < s->site.count; i++) {
                struct sim_cluster *c = &s->site.clusters[i];

                if (options_text(o, "cache"))
                        c->cache_bytes = cache;
                if (options_text(o, "mtbf"))
                        c->mtbf_ms = options_number(o, "mtbf", 0) * 1000;
                if (options_text(o, "repair"))
                        c->repair_ms = options_number(o, "repair", 3600) * 1000;
                if (options_text(o, "start-delay"))
                        c->start_delay_ms = options_number(o, "start-delay", 0) * 1000;
        }
        return true;
}

static bool read_outages_file(struct study *s, const struct options *o)
{
        const char *file = options_text(o, "outages");
        struct buf text BUF_CLEANUP = {0};
        struct err err;

        if (!file)
                return true;
        if (!read_file(file, &text))
                return false;
        if (sim_outages_read(&s->site, file, buf_view(&text), &err) == 0)
                return true;
        cli_error(0, "%s", err.text);
        return false;
}

/* ---- the workload */
static bool make_jobs(struct study *s, const struct options *o)
{
        struct sim_generate_options g = {.run_ms = options_number(o, "run", 600) * 1000,
                                         .every_ms = options_number(o, "every", 0) * 1000,
                                         .clusters = (uint32_t)s->site.count,
                                         .cpus_max = 1};
        struct sim_random random;
        int64_t jobs, classes, users, gangs, gang_size;

        if (!read_count(o, "jobs", 1000, 1, SIM_JOBS_MAX, &jobs) ||
            !read_count(o, "classes", 10, 1, 1000000, &classes) ||
            !read_count(o, "users", 0, 1, 1000000, &users) || !read_count(o, "gangs", 0, 0, 100, &gangs) ||
            !read_count(o, "gang-size", 8, 2, 10000, &gang_size) ||
            !read_size(o, "input", 1 << 30, &g.input_bytes))
                return false;
        g.jobs = (uint64_t)jobs;
        g.classes = (uint32_t)classes;
        g.users = (uint32_t)users;
        g.gangs = (uint32_t)gangs;
        g.gang_size = (uint32_t)gang_size;
        sim_random_seed(&random, s->seed);
        sim_generate(&s->workload, &g, &random);
        human_count(&s->title, (int64_t)s->workload.job_count, "generated job in ", "generated jobs in ");
        human_count(&s->title, classes, "class", "classes");
        return true;
}

static bool make_files(struct study *s, const struct options *o)
{
        struct sim_random random;
        uint64_t median;

        if (!read_size(o, "input", INPUT_DEFAULT, &median))
                return false;
        sim_random_seed(&random, s->seed);
        if (median)
                sim_generate_files(&s->workload, median, SETS_OF_A_USER, &random);
        return true;
}

/* Refuses options that the chosen workload does not use. */
static bool check_options(const struct options *o)
{
        static const char *const generated[] = {"jobs",  "classes",   "users", "run",
                                                "gangs", "gang-size", NULL},
                                 *const traced[] = {"first", "hurry", "copies", "load", NULL};
        const char *const *none = o->word_count ? generated : traced;

        for (; *none; none++)
                if (options_text(o, *none)) {
                        cli_error(0, "--%s is for %s", *none,
                                  o->word_count ? "jobs that are generated, without a trace"
                                                : "traces, and there is none");
                        return false;
                }
        return true;
}

/* Scales the times of submission so that the total work is --load times what all processors can do in that
 * time. */
static bool scale_load(struct study *s, const struct options *o)
{
        double load, work_ms = 0, cpus = 0, factor;
        int64_t last_ms = 0;

        if (!options_text(o, "load"))
                return true;
        if (options_text(o, "hurry")) {
                cli_error(0, "--load and --hurry both say how fast jobs come");
                return false;
        }
        if (!read_factor(o, "load", &load))
                return false;
        for (size_t i = 0; i < s->site.count; i++)
                cpus += (double)s->site.clusters[i].agents * s->site.clusters[i].cpus *
                        s->site.clusters[i].speed;
        for (size_t i = 0; i < s->workload.job_count; i++) {
                const struct sim_job *j = &s->workload.jobs[i];

                work_ms += (double)j->cpus * (double)j->run_ms;
                last_ms = j->submit_ms > last_ms ? j->submit_ms : last_ms;
        }
        if (last_ms == 0 || work_ms == 0) {
                cli_error(0, "--load: all jobs come at once, or need no time");
                return false;
        }
        factor = work_ms / (cpus * load) / (double)last_ms;
        for (size_t i = 0; i < s->workload.job_count; i++)
                s->workload.jobs[i].submit_ms = (int64_t)((double)s->workload.jobs[i].submit_ms * factor);
        return true;
}

/* Converts to the core's form: 0 when it is not given, -1 for 0. */
static int64_t read_wait(const struct options *o, const char *name)
{
        int64_t ms = options_number(o, name, 0) * 1000;

        return options_text(o, name) && ms == 0 ? -1 : ms;
}

int study_read(struct study *s, const struct options *o)
{
        int64_t idle = 0;
        bool ok = check_options(o) && read_policies(s, options_text(o, "compare")) && read_site(s, o) &&
                  read_count(o, "reserve-idle", 0, 1, 100, &idle),
             workflows;

        s->seed = (uint64_t)options_number(o, "seed", 1) + s->repeat;
        s->guesses = options_flag(o, "eta");
        s->lease_ms = options_number(o, "lease", 0) * 1000;
        s->better_wait_ms = read_wait(o, "better-wait");
        s->reserve_after_ms = read_wait(o, "reserve-after");
        s->reserve_idle = (double)idle / 100;
        for (size_t i = 0; ok && i < o->word_count; i++)
                ok = add_trace(s, o, o->words[i]);
        ok = ok && make_clusters(s, o) && change_clusters(s, o) && read_outages_file(s, o) &&
             scale_load(s, o);
        if (ok && o->word_count == 0)
                ok = make_jobs(s, o);
        workflows = false;
        for (size_t i = 0; i < s->workload.job_count && !workflows; i++)
                workflows = s->workload.jobs[i].outputs.count > 0 || s->workload.jobs[i].waits > 0;
        if (ok && o->word_count && !workflows)
                ok = make_files(s, o);
        if (!ok)
                return CLI_USAGE;
        for (size_t i = 0; options_flag(o, "no-estimates") && i < s->workload.job_count; i++)
                s->workload.jobs[i].asked_s = 0;
        sim_workload_finish(&s->workload);
        sim_site_finish(&s->site);
        buf_addz(&s->title, ", ");
        human_count(&s->title, (int64_t)sim_site_agents(&s->site), "agent with ", "agents with ");
        human_count(&s->title, (int64_t)sim_site_cpus(&s->site), "processor", "processors");
        return CLI_OK;
}
