#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/system/fs.h"
#include "cli/sim/study.h"
#include "cli/terminal/human.h"
#include "sim/plot.h"

#define JOULES_KWH 3.6e6

/* ---- tables */
static void cell_seconds(struct table *t, double s)
{
        struct buf b BUF_CLEANUP = {0};

        human_duration(&b, (int64_t)(s * 1000));
        table_text(t, buf_view(&b));
}

static void cell_bytes(struct table *t, uint64_t n)
{
        struct buf b BUF_CLEANUP = {0};

        human_bytes(&b, (int64_t)n);
        table_text(t, buf_view(&b));
}

static double decisions_per_s(const struct sim_measures *m)
{
        return m->match_s > 0 ? (double)m->decisions / m->match_s : 0;
}

static void print_main(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {
                {"POLICY", false, false},     {"MAKESPAN", true, false},   {"MOVED", true, false},
                {"FAR", true, false},         {"CACHED", true, false},     {"WAIT", true, false},
                {"P95", true, false},         {"TURNAROUND", true, false}, {"SLOWDOWN", true, false},
                {"FAIRNESS", true, false},    {"USED", true, false},       {"LOST", true, false},
                {"DECISIONS/S", true, false}, {"MEMORY", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->result_count; i++) {
                const struct sim_measures *m = &s->results[i].m;

                table_text(&t, str_of(s->results[i].policy));
                cell_seconds(&t, m->makespan_s);
                cell_bytes(&t, m->bytes_in + m->bytes_out);
                cell_bytes(&t, m->bytes_far);
                cell_bytes(&t, m->bytes_cached);
                cell_seconds(&t, m->wait_s.mean);
                cell_seconds(&t, m->wait_s.p95);
                cell_seconds(&t, m->turnaround_s.mean);
                table_format(&t, "%.1f", m->slowdown.mean);
                table_format(&t, "%.3f", m->fairness);
                table_format(&t, "%.1f%%", m->utilisation * 100);
                table_format(&t, "%" PRIu64, m->lost);
                table_format(&t, "%.0f", decisions_per_s(m));
                cell_bytes(&t, m->memory_bytes);
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

static void print_waits(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {{"PROCESSORS", false, false}, {"JOBS", true, false},
                                                      {"POLICY", false, false},     {"WAIT", true, false},
                                                      {"MEDIAN", true, false},      {"P95", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (unsigned size = 0; size < SIM_SIZES; size++)
                for (size_t i = 0; i < s->result_count; i++) {
                        const struct sim_spread *w = &s->results[i].m.wait_by_size_s[size];

                        if (w->count == 0)
                                continue;
                        table_text(&t, str_of(i ? "" : sim_size_names[size]));
                        if (i == 0)
                                table_format(&t, "%" PRIu64, w->count);
                        else
                                table_text(&t, STR(""));
                        table_text(&t, str_of(s->results[i].policy));
                        cell_seconds(&t, w->mean);
                        cell_seconds(&t, w->median);
                        cell_seconds(&t, w->p95);
                        table_end_row(&t);
                }
        cli_print_table(cli, &t);
}

static void print_guesses(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {
                {"POLICY", false, false},   {"JOBS", true, false},       {"WAIT", true, false},
                {"LAST TEN", true, false},  {"RUN", true, false},        {"LAST TWO", true, false},
                {"ASKED FOR", true, false}, {"END", true, false},        {"LAST TEN + ASKED", true, false},
                {"HALF", true, false},      {"NINE IN TEN", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->result_count; i++) {
                const struct sim_guess_errors *g = &s->results[i].m.guesses;
                const double v[] = {g->wait_s,      g->wait_usual_s, g->run_s,      g->run_two_s,
                                    g->run_asked_s, g->end_s,        g->end_usual_s};

                table_text(&t, str_of(s->results[i].policy));
                table_format(&t, "%" PRIu64, g->count);
                for (size_t k = 0; k < sizeof(v) / sizeof(v[0]); k++)
                        cell_seconds(&t, v[k]);
                table_format(&t, "%.0f%%", 100 * g->by_half);
                table_format(&t, "%.0f%%", 100 * g->by_most);
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

static void print_gangs(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {{"POLICY", false, false}, {"SETS", true, false},
                                                      {"WAIT", true, false},    {"MEDIAN", true, false},
                                                      {"P95", true, false},     {"RESERVED", true, false},
                                                      {"LATE", true, false},    {"BACKFILLED", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->result_count; i++) {
                const struct sim_measures *m = &s->results[i].m;

                table_text(&t, str_of(s->results[i].policy));
                table_format(&t, "%" PRIu64, m->gangs);
                cell_seconds(&t, m->gang_wait_s.mean);
                cell_seconds(&t, m->gang_wait_s.median);
                cell_seconds(&t, m->gang_wait_s.p95);
                table_format(&t, "%" PRIu64, m->gangs_reserved);
                table_format(&t, "%" PRIu64, m->gangs_late);
                table_format(&t, "%" PRIu64, m->backfilled);
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

static void print_energy(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {
                {"POLICY", false, false}, {"ENERGY", true, false}, {"A JOB", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->result_count; i++) {
                const struct sim_measures *m = &s->results[i].m;
                double kwh = m->energy_j / JOULES_KWH;

                table_text(&t, str_of(s->results[i].policy));
                table_format(&t, "%.3f kWh", kwh);
                table_format(&t, "%.3f kWh", m->jobs ? kwh / (double)m->jobs : 0);
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

static void print_nodes(const struct cli *cli, const struct study *s)
{
        static const struct table_column columns[] = {{"POLICY", false, false},
                                                      {"HOURS", true, false},
                                                      {"COST", true, false},
                                                      {"STARTED", true, false},
                                                      {"INTERRUPTED", true, false}};
        struct table t TABLE_CLEANUP;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        for (size_t i = 0; i < s->result_count; i++) {
                const struct sim_measures *m = &s->results[i].m;

                table_text(&t, str_of(s->results[i].policy));
                table_format(&t, "%.1f", m->node_hours);
                table_format(&t, "%.2f", m->cost);
                table_format(&t, "%" PRIu64, m->nodes_started);
                table_format(&t, "%" PRIu64, m->nodes_interrupted);
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

void study_print_table(const struct cli *cli, const struct study *s)
{
        struct buf out BUF_CLEANUP = {0};

        buf_str(&out, buf_view(&s->title));
        buf_addz(&out, "\n\n");
        cli_print(&out);
        print_main(cli, s);
        buf_addz(&out, "\nwaits by the size of the job\n");
        cli_print(&out);
        print_waits(cli, s);
        if (s->result_count && s->results[0].m.gangs) {
                buf_addz(&out,
                         "\ngangs, the places kept for them, and other jobs that were started meanwhile\n");
                cli_print(&out);
                print_gangs(cli, s);
        }
        if (sim_site_has_watts(&s->site)) {
                buf_addz(&out, "\nenergy that the processors take\n");
                cli_print(&out);
                print_energy(cli, s);
        }
        if (sim_site_has_nodes(&s->site)) {
                buf_addz(&out, "\nnodes\n");
                cli_print(&out);
                print_nodes(cli, s);
        }
        if (!s->guesses)
                return;
        buf_addz(&out, "\nmedian error of expected waits, runs and ends, and of what people go by\n");
        cli_print(&out);
        print_guesses(cli, s);
}

/* ---- JSON */
static void add_double(struct json *j, const char *key, double v)
{
        json_key(j, key);
        json_double(j, v);
}

static void add_uint(struct json *j, const char *key, uint64_t v)
{
        json_key(j, key);
        json_uint(j, v);
}

static void add_spread(struct json *j, const char *key, const struct sim_spread *s)
{
        json_key(j, key);
        json_open(j, '{');
        add_uint(j, "count", s->count);
        add_double(j, "mean", s->mean);
        add_double(j, "median", s->median);
        add_double(j, "p95", s->p95);
        add_double(j, "max", s->max);
        json_close(j, '}');
}

static void add_guesses(struct json *j, const struct sim_guess_errors *g)
{
        json_key(j, "expected_median_error_s");
        json_open(j, '{');
        add_uint(j, "jobs", g->count);
        add_uint(j, "unknown", g->unknown);
        add_double(j, "wait", g->wait_s);
        add_double(j, "wait_by_last_ten", g->wait_usual_s);
        add_double(j, "run", g->run_s);
        add_double(j, "run_by_last_two", g->run_two_s);
        add_double(j, "run_as_asked", g->run_asked_s);
        add_double(j, "end", g->end_s);
        add_double(j, "end_by_last_ten_and_asked", g->end_usual_s);
        add_double(j, "ended_by_half", g->by_half);
        add_double(j, "ended_by_most", g->by_most);
        json_close(j, '}');
}

static void add_result(struct json *j, const struct study_result *r, bool guesses)
{
        const struct sim_measures *m = &r->m;

        json_open(j, '{');
        json_kstrz(j, "policy", r->policy);
        add_double(j, "makespan_s", m->makespan_s);
        add_uint(j, "bytes_moved", m->bytes_in + m->bytes_out);
        add_uint(j, "bytes_in", m->bytes_in);
        add_uint(j, "bytes_out", m->bytes_out);
        add_uint(j, "bytes_far", m->bytes_far);
        add_uint(j, "bytes_cached", m->bytes_cached);
        add_spread(j, "wait_s", &m->wait_s);
        json_key(j, "wait_by_processors_s");
        json_open(j, '{');
        for (unsigned i = 0; i < SIM_SIZES; i++)
                add_spread(j, sim_size_names[i], &m->wait_by_size_s[i]);
        json_close(j, '}');
        add_spread(j, "turnaround_s", &m->turnaround_s);
        add_spread(j, "slowdown", &m->slowdown);
        add_double(j, "fairness", m->fairness);
        add_double(j, "utilisation", m->utilisation);
        if (m->gangs) {
                json_key(j, "gangs");
                json_open(j, '{');
                add_spread(j, "wait_s", &m->gang_wait_s);
                add_uint(j, "reserved", m->gangs_reserved);
                add_uint(j, "late", m->gangs_late);
                add_uint(j, "backfilled", m->backfilled);
                json_close(j, '}');
        }
        add_uint(j, "attempts_lost", m->lost);
        add_double(j, "cpu_lost_s", m->lost_cpu_s);
        add_uint(j, "attempts_revoked", m->revoked);
        add_double(j, "recovery_s", m->recovery_s);
        if (m->energy_j > 0)
                add_double(j, "energy_kwh", m->energy_j / JOULES_KWH);
        if (m->cost > 0 || m->nodes_started) {
                json_key(j, "nodes");
                json_open(j, '{');
                add_double(j, "hours", m->node_hours);
                add_double(j, "cost", m->cost);
                add_uint(j, "started", m->nodes_started);
                add_uint(j, "interrupted", m->nodes_interrupted);
                json_close(j, '}');
        }
        if (guesses)
                add_guesses(j, &m->guesses);
        add_uint(j, "decisions", m->decisions);
        add_double(j, "decisions_per_s", decisions_per_s(m));
        add_double(j, "wall_s", m->wall_s);
        add_uint(j, "memory_bytes", m->memory_bytes);
        json_close(j, '}');
}

void study_print_json(const struct study *s)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kstr(&j, "workload", buf_view(&s->title));
        add_uint(&j, "jobs", s->workload.job_count);
        add_uint(&j, "agents", sim_site_agents(&s->site));
        add_uint(&j, "processors", sim_site_cpus(&s->site));
        add_uint(&j, "seed", s->seed);
        json_key(&j, "policies");
        json_open(&j, '[');
        for (size_t i = 0; i < s->result_count; i++)
                add_result(&j, &s->results[i], s->guesses);
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}

/* ---- plots */
struct curves {
        struct sim_plot_series waiting[STUDY_POLICIES], moved[STUDY_POLICIES];
        double *values[3 * STUDY_POLICIES];
        size_t count;
};

static double *column(struct curves *c, size_t n)
{
        return c->values[c->count++] = mem_array(NULL, n + 1, sizeof(double));
}

/* Chooses hours, or days for a long study. */
double study_time_unit_ms(const struct study *s, const char **ret_label)
{
        double longest = 0;

        for (size_t i = 0; i < s->result_count; i++)
                if (s->results[i].m.makespan_s > longest)
                        longest = s->results[i].m.makespan_s;
        *ret_label = longest > 3 * 86400 ? "days since the start"
                     : longest > 7200    ? "hours since the start"
                                         : "minutes since the start";
        return longest > 3 * 86400 ? 86400e3 : longest > 7200 ? 3600e3 : 60e3;
}

/* Chooses the unit in which the largest amount moved is below a thousand. */
static double bytes_unit(const struct study *s, const char **ret_label)
{
        static const char *const names[] = {"MiB", "GiB", "TiB", "PiB"}; /* as in the tables */
        double most = 0, unit = 1 << 20;
        size_t n = 0;

        for (size_t i = 0; i < s->result_count; i++)
                for (size_t k = 0; k < s->results[i].m.sample_count; k++)
                        if ((double)s->results[i].m.samples[k].moved_bytes > most)
                                most = (double)s->results[i].m.samples[k].moved_bytes;
        for (; n < 3 && most >= unit * 1024; n++)
                unit *= 1024;
        *ret_label = names[n];
        return unit;
}

static void add_curves(struct curves *c, const struct study *s, size_t i, double unit_ms, double unit_bytes)
{
        const struct sim_measures *m = &s->results[i].m;
        double *x = column(c, m->sample_count), *waiting = column(c, m->sample_count),
               *moved = column(c, m->sample_count);

        for (size_t k = 0; k < m->sample_count; k++) {
                x[k] = (double)m->samples[k].at_ms / unit_ms;
                waiting[k] = (double)m->samples[k].waiting;
                moved[k] = (double)m->samples[k].moved_bytes / unit_bytes;
        }
        c->waiting[i] = (struct sim_plot_series){s->results[i].policy, x, waiting, m->sample_count};
        c->moved[i] = (struct sim_plot_series){s->results[i].policy, x, moved, m->sample_count};
}

int study_file_check(const char *file)
{
        const char *slash = strrchr(file, '/');
        BUF_CLEANUP struct buf folder = {0};
        struct stat st;
        int e = 0;

        buf_str(&folder, slash ? str_make(file, (size_t)(slash - file) + 1) : STR("."));
        if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
                e = EISDIR;
        else if (access(buf_z(&folder), W_OK | X_OK) != 0)
                e = errno;
        return e ? cli_error(CLI_FAILED, "cannot write %s: %s", file, strerror(e)) : CLI_OK;
}

int study_plot(const struct study *s, const char *file)
{
        struct curves c = {.count = 0};
        struct buf out BUF_CLEANUP = {0}, title BUF_CLEANUP = {0};
        const char *label, *bytes;
        double unit_ms = study_time_unit_ms(s, &label), unit_bytes = bytes_unit(s, &bytes);
        struct sim_plot_panel panels[] = {
                {"Jobs that wait", label, "jobs", c.waiting, s->result_count, false, false, false},
                {"Bytes moved so far", label, bytes, c.moved, s->result_count, false, false, false}};
        struct err err;
        int code = CLI_OK;

        for (size_t i = 0; i < s->result_count; i++)
                add_curves(&c, s, i, unit_ms, unit_bytes);
        buf_str(&title, buf_view(&s->title));
        sim_plot_svg(&out, buf_z(&title), panels, sizeof(panels) / sizeof(panels[0]));
        if (fs_write(AT_FDCWD, file, buf_view(&out), 0644, false, &err))
                code = cli_error(CLI_FAILED, "%s", err.text);
        for (size_t i = 0; i < c.count; i++)
                free(c.values[i]);
        return code;
}

int study_write_jobs(const struct study *s, const char *file)
{
        struct buf out BUF_CLEANUP = {0};
        struct err err;

        buf_addz(&out,
                 "policy,job,user,processors,asked_s,submitted_s,started_s,ended_s,place,bytes_fetched\n");
        for (size_t i = 0; i < s->result_count; i++)
                for (size_t k = 0; k < s->workload.job_count; k++) {
                        const struct sim_job *j = &s->workload.jobs[k];
                        const struct sim_times *t = &s->results[i].times[k];

                        buf_printf(&out, "%s,%zu,%u,%u,%u,%.3f,%.3f,%.3f,%s,%" PRIu64 "\n",
                                   s->results[i].policy, k + 1, j->user, j->cpus, j->asked_s,
                                   (double)t->submitted / 1000, (double)t->started / 1000,
                                   (double)t->ended / 1000, s->site.clusters[t->cluster].name, t->bytes_in);
                }
        if (fs_write(AT_FDCWD, file, buf_view(&out), 0644, false, &err))
                return cli_error(CLI_FAILED, "%s", err.text);
        return CLI_OK;
}
