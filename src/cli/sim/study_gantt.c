/* A job is drawn on the first processors of its cluster that are free when it starts. The simulator does
 * not record which processors of an agent it used, and that does not matter, because the agents of a
 * cluster and their processors are alike. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "cli/sim/study.h"
#include "sim/plot.h"

#define BOXES_MAX 50000u
#define STEPS_MAX 2000000000u /* checks of a processor */

struct gantt {
        const struct study *s;
        double unit_ms;
        const char *label;
        struct sim_plot_panel *panels;
        size_t panel_count, box_count;
        uint64_t steps;
};

static const struct sim_times *sorted_times; /* qsort has no argument for it */

static int by_start(const void *x, const void *y)
{
        size_t a = *(const size_t *)x, b = *(const size_t *)y;
        int64_t m = sorted_times[a].started, n = sorted_times[b].started;

        return m != n ? (m > n) - (m < n) : (a > b) - (a < b);
}

/* Draws the job on processors that are free from its start on; each run of adjacent ones is a box.
 * free_ms: when each processor is free again. */
static void draw_job(struct gantt *g, struct sim_plot_panel *p, struct sim_plot_box **boxes, size_t *cap,
                     size_t job, const struct sim_times *t, int64_t *free_ms, size_t cpus)
{
        uint32_t left = g->s->workload.jobs[job].cpus;

        for (size_t k = 0; k < cpus && left > 0; k++) {
                size_t from = k;

                for (; k < cpus && left > 0 && free_ms[k] <= t->started; k++, left--)
                        free_ms[k] = t->ended;
                g->steps += k - from + 1;
                if (k == from)
                        continue;
                MEM_GROW(*boxes, *cap, p->box_count + 1);
                (*boxes)[p->box_count++] = (struct sim_plot_box){.x_from = (double)t->started / g->unit_ms,
                                                                 .x_to = (double)t->ended / g->unit_ms,
                                                                 .y_from = (double)from,
                                                                 .y_to = (double)k,
                                                                 .colour = g->s->workload.jobs[job].user,
                                                                 .number = (uint32_t)job + 1};
        }
}

/* Draws the panel of a policy and a cluster. Returns false if there is too much to draw. */
static bool draw_panel(struct gantt *g, const struct study_result *r, uint32_t cluster, const size_t *order)
{
        const struct sim_cluster *c = &g->s->site.clusters[cluster];
        struct sim_plot_panel *p = &g->panels[g->panel_count++];
        struct sim_plot_box *boxes = NULL;
        size_t cap = 0, cpus = (size_t)c->agents * c->cpus;
        int64_t *free_ms = mem_zalloc((cpus + 1) * sizeof(*free_ms));
        struct buf title = {0};

        buf_printf(&title, "%s: %s", r->policy, c->name);
        *p = (struct sim_plot_panel){.title = buf_take(&title), .x_label = g->label, .y_label = "processors"};
        for (size_t i = 0;
             i < g->s->workload.job_count && g->box_count + p->box_count <= BOXES_MAX && g->steps < STEPS_MAX;
             i++)
                if (r->times[order[i]].cluster == cluster)
                        draw_job(g, p, &boxes, &cap, order[i], &r->times[order[i]], free_ms, cpus);
        p->boxes = boxes;
        g->box_count += p->box_count;
        free(free_ms);
        return g->box_count <= BOXES_MAX && g->steps < STEPS_MAX;
}

static bool draw_all(struct gantt *g)
{
        const struct study *s = g->s;
        size_t *order = mem_array(NULL, s->workload.job_count + 1, sizeof(*order));
        bool ok = true;

        for (size_t i = 0; i < s->result_count && ok; i++) {
                for (size_t k = 0; k < s->workload.job_count; k++)
                        order[k] = k;
                sorted_times = s->results[i].times;
                qsort(order, s->workload.job_count, sizeof(*order), by_start);
                for (uint32_t c = 0; c < s->site.count && ok; c++)
                        ok = draw_panel(g, &s->results[i], c, order);
        }
        free(order);
        return ok;
}

int study_gantt(const struct study *s, const char *file)
{
        struct gantt g = {.s = s};
        struct buf out BUF_CLEANUP = {0}, title BUF_CLEANUP = {0};
        struct err err;
        int code = CLI_OK;

        g.unit_ms = study_time_unit_ms(s, &g.label);
        g.panels = mem_zalloc((s->result_count * s->site.count + 1) * sizeof(*g.panels));
        if (!draw_all(&g))
                code = cli_error(
                        CLI_FAILED,
                        "--gantt: more than %u areas cannot be shown: see --first, or fewer policies",
                        BOXES_MAX);
        buf_str(&title, buf_view(&s->title));
        buf_addz(&title, "; a colour for each user");
        if (code == CLI_OK) {
                sim_plot_svg(&out, buf_z(&title), g.panels, g.panel_count);
                if (fs_write(AT_FDCWD, file, buf_view(&out), 0644, false, &err))
                        code = cli_error(CLI_FAILED, "%s", err.text);
        }
        for (size_t i = 0; i < g.panel_count; i++) {
                free((char *)(uintptr_t)g.panels[i].title);
                free((void *)(uintptr_t)g.panels[i].boxes);
        }
        free(g.panels);
        return code;
}
