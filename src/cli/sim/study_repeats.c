/* Keeps the values of all seeds for each policy and figure; the interval is Student's. */
#include <inttypes.h>
#include <math.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "cli/sim/study.h"
#include "cli/terminal/human.h"

enum figure { WAIT, SLOWDOWN, TURNAROUND, MAKESPAN, MOVED, FAR, USED, FIGURES };
static const struct {
        const char *key, *column;
} figures[FIGURES] = {{"wait_s", "WAIT"},         {"slowdown", "SLOWDOWN"}, {"turnaround_s", "TURNAROUND"},
                      {"makespan_s", "MAKESPAN"}, {"bytes_moved", "MOVED"}, {"bytes_far", "FAR"},
                      {"utilisation", "USED"}};

struct study_repeats {
        const char *policies[STUDY_POLICIES];
        size_t policy_count;
        double *values[STUDY_POLICIES][FIGURES];
        size_t count, cap; /* of seeds */
        uint64_t first_seed;
        struct buf title;
};

struct interval {
        double mean, half_width;
};

struct study_repeats *study_repeats_new(void)
{
        return mem_new(struct study_repeats);
}

void study_repeats_free(struct study_repeats *r)
{
        if (!r)
                return;
        for (size_t p = 0; p < STUDY_POLICIES; p++)
                for (size_t f = 0; f < FIGURES; f++)
                        free(r->values[p][f]);
        buf_deinit(&r->title);
        free(r);
}

void study_repeats_add(struct study_repeats *r, const struct study *s)
{
        if (r->count == 0) {
                r->first_seed = s->seed;
                r->policy_count = s->result_count;
                buf_str(&r->title, buf_view(&s->title));
        }
        if (r->count == r->cap) {
                r->cap = r->cap ? r->cap * 2 : 16;
                for (size_t p = 0; p < r->policy_count; p++)
                        for (size_t f = 0; f < FIGURES; f++)
                                r->values[p][f] = mem_array(r->values[p][f], r->cap, sizeof(double));
        }
        for (size_t p = 0; p < r->policy_count; p++) {
                const struct sim_measures *m = &s->results[p].m;
                const double v[FIGURES] = {m->wait_s.mean,
                                           m->slowdown.mean,
                                           m->turnaround_s.mean,
                                           m->makespan_s,
                                           (double)(m->bytes_in + m->bytes_out),
                                           (double)m->bytes_far,
                                           m->utilisation};

                r->policies[p] = s->results[p].policy;
                for (size_t f = 0; f < FIGURES; f++)
                        r->values[p][f][r->count] = v[f];
        }
        r->count++;
}

/* Returns the 97.5 % quantile of Student's t. */
static double student(size_t freedom)
{
        static const double few[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                     2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                     2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};

        if (freedom == 0)
                return 0;
        if (freedom <= sizeof(few) / sizeof(few[0]))
                return few[freedom - 1];
        return 1.95996 + 2.3722 / (double)freedom + 2.8225 / ((double)freedom * (double)freedom);
}

static struct interval interval_of(const double *v, size_t n)
{
        struct interval x = {.mean = 0};
        double squares = 0;

        for (size_t i = 0; i < n; i++)
                x.mean += v[i] / (double)n;
        for (size_t i = 0; i < n; i++)
                squares += (v[i] - x.mean) * (v[i] - x.mean);
        if (n > 1)
                x.half_width = student(n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
        return x;
}

static void add_value(struct buf *out, enum figure f, double v)
{
        if (f == MOVED || f == FAR)
                human_bytes(out, (int64_t)v);
        else if (f == SLOWDOWN)
                buf_printf(out, "%.2f", v);
        else if (f == USED)
                buf_printf(out, "%.1f%%", 100 * v);
        else if (v < 1000)
                buf_printf(out, "%.1fs", v);
        else
                human_duration(out, (int64_t)(v * 1000));
}

void study_repeats_print_table(const struct cli *cli, const struct study_repeats *r)
{
        struct table_column columns[FIGURES + 1] = {{"POLICY", false, false}};
        struct table t TABLE_CLEANUP;
        struct buf out BUF_CLEANUP = {0};

        buf_str(&out, buf_view(&r->title));
        buf_printf(&out, "; means over %zu seeds from %" PRIu64 " on, with their 95 %% intervals\n\n",
                   r->count, r->first_seed);
        cli_print(&out);
        for (size_t f = 0; f < FIGURES; f++)
                columns[f + 1] = (struct table_column){figures[f].column, true, false};
        table_init(&t, columns, FIGURES + 1);
        for (size_t p = 0; p < r->policy_count; p++) {
                table_text(&t, str_of(r->policies[p]));
                for (enum figure f = 0; f < FIGURES; f++) {
                        struct interval x = interval_of(r->values[p][f], r->count);
                        struct buf cell BUF_CLEANUP = {0};

                        add_value(&cell, f, x.mean);
                        buf_addz(&cell, " ± ");
                        add_value(&cell, f, x.half_width);
                        table_text(&t, buf_view(&cell));
                }
                table_end_row(&t);
        }
        cli_print_table(cli, &t);
}

void study_repeats_print_json(const struct study_repeats *r)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kstr(&j, "workload", buf_view(&r->title));
        json_kint(&j, "seed", (int64_t)r->first_seed);
        json_kint(&j, "repeats", (int64_t)r->count);
        json_key(&j, "policies");
        json_open(&j, '[');
        for (size_t p = 0; p < r->policy_count; p++) {
                json_open(&j, '{');
                json_kstrz(&j, "policy", r->policies[p]);
                for (size_t f = 0; f < FIGURES; f++) {
                        struct interval x = interval_of(r->values[p][f], r->count);

                        json_key(&j, figures[f].key);
                        json_open(&j, '{');
                        json_key(&j, "mean");
                        json_double(&j, x.mean);
                        json_key(&j, "half_width");
                        json_double(&j, x.half_width);
                        json_close(&j, '}');
                }
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}
