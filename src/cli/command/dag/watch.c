/* The files have what drover dag show shows. The log has a line for each state of a node that was seen;
 * states between two polls leave none. */
#include "cli/command/dag/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "classad/print.h"
#include "cli/command/dag/graph.h"
#include "cli/command/jobs/wait.h"

struct watch {
        struct cli *cli;
        const char *id, *file;
        const struct dag_files *files;
        unsigned char *seen; /* for each point its logged state plus one */
        size_t seen_count;
        bool *saved, told, began;
        uint64_t lines;
        char *dot; /* name of the file, when it is chosen */
        int64_t status_ms;
};

static void put_file(struct watch *w, const char *path, struct str text)
{
        struct err err = {""};

        if (fs_write(AT_FDCWD, path, text, 0644, false, &err) == 0 || w->told)
                return;
        w->told = true;
        cli_note("%s", err.text);
}

void dag_rescue_write(const struct dag_graph *g, const struct dag_point *before, struct buf *out)
{
        for (size_t i = 0; i < g->count; i++) {
                const struct dag_point *p = &g->points[i];

                if (dag_point_state(p) == DAG_STATE_DONE && (!before || p->ended_ms <= before->started_ms))
                        buf_printf(out, "DONE %s\n", p->name);
        }
}

/* Returns the number of the newest rescue file, as FILE.rescue003; 0: there is none. */
static int newest_rescue(const char *file)
{
        for (int i = DAG_RESCUE_MAX; i > 0; i--) {
                struct buf name BUF_CLEANUP = {0};

                buf_printf(&name, DAG_RESCUE_NAME, file, i);
                if (access(buf_z(&name), F_OK) == 0)
                        return i;
        }
        return 0;
}

void dag_rescue_save(struct cli *cli, const char *id, const char *file, struct str names)
{
        int number = newest_rescue(file) + 1;
        struct buf name BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct err err = {""};
        struct dag_graph g;
        struct str one;

        buf_printf(&name, DAG_RESCUE_NAME, file, number > DAG_RESCUE_MAX ? DAG_RESCUE_MAX : number);
        if (dag_graph_read(cli, id, false, &g) == 0) {
                buf_printf(&out, "# Nodes of request %s that were done when it failed: ", id);
                dag_graph_sum(&g, &out);
                buf_char(&out, '\n');
                while (str_cut(&names, '\n', &one))
                        if (one.n && !map_get(g.by_name, one))
                                buf_printf(&out, "DONE " STR_FMT "\n", STR_ARG(one));
                dag_rescue_write(&g, NULL, &out);
                if (fs_write(AT_FDCWD, buf_z(&name), buf_view(&out), 0644, false, &err) != 0)
                        cli_note("%s", err.text);
                else
                        cli_note("%s names the nodes that are done: drover dag submit %s continues with the "
                                 "others",
                                 buf_z(&name), file);
        }
        dag_graph_deinit(&g);
}

/* ---- DOT */

/* Returns FILE, or with DONT-OVERWRITE the first of FILE.0, FILE.1, … that does not exist. */
static const char *dot_name(struct watch *w)
{
        struct buf name BUF_CLEANUP = {0};

        if (w->dot)
                return w->dot;
        buf_addz(&name, w->files->dot);
        for (unsigned i = 0; w->files->dot_keep && access(buf_z(&name), F_OK) == 0 && i < 100000; i++) {
                buf_reset(&name);
                buf_printf(&name, "%s.%u", w->files->dot, i);
        }
        w->dot = buf_take(&name);
        return w->dot;
}

static void write_dot(struct watch *w, const struct dag_graph *g)
{
        struct buf out BUF_CLEANUP = {0}, more BUF_CLEANUP = {.max = 1u << 20}, all BUF_CLEANUP = {0};
        struct err err = {""};
        ptrdiff_t line;

        if (w->began && !w->files->dot_update)
                return;
        dag_draw_dot(g, &out);
        if (w->files->dot_include && fs_read(AT_FDCWD, w->files->dot_include, 1u << 20, &more, &err) == 0) {
                line = str_find(buf_view(&out), '\n') + 1;
                buf_str(&all, str_head(buf_view(&out), (size_t)line));
                buf_str(&all, buf_view(&more));
                buf_str(&all, str_skip(buf_view(&out), (size_t)line));
        }
        put_file(w, dot_name(w), all.n ? buf_view(&all) : buf_view(&out));
}

/* ---- NODE_STATUS_FILE */

/* The numbers and names that DAGMan uses for states. */
static const struct {
        int number;
        const char *name;
} statuses[DAG_STATES] = {
        [DAG_STATE_DONE] = {5, "STATUS_DONE"},         [DAG_STATE_FAILED] = {6, "STATUS_ERROR"},
        [DAG_STATE_REMOVED] = {7, "STATUS_FUTILE"},    [DAG_STATE_HELD] = {3, "STATUS_SUBMITTED"},
        [DAG_STATE_RUNNING] = {3, "STATUS_SUBMITTED"}, [DAG_STATE_IDLE] = {3, "STATUS_SUBMITTED"},
        [DAG_STATE_WAITS] = {0, "STATUS_NOT_READY"},
};

static void add_status(struct buf *out, const struct dag_point *p)
{
        enum dag_state s = dag_point_state(p);

        buf_addz(out, "[\n  Type = \"NodeStatus\";\n  Node = ");
        print_string(out, str_of(p->name));
        buf_printf(out, ";\n  NodeStatus = %d; /* \"%s\" */\n  StatusDetails = ", statuses[s].number,
                   statuses[s].name);
        print_string(out, str_of(s == DAG_STATE_DONE ? "" : p->note));
        buf_printf(out, ";\n  RetryCount = %lld;\n  JobProcsQueued = %u;\n  JobProcsHeld = %u;\n]\n",
                   (long long)(p->has_parts && s != DAG_STATE_DONE ? p->attempt : 0),
                   p->counts[DAG_STATE_IDLE] + p->counts[DAG_STATE_RUNNING], p->counts[DAG_STATE_HELD]);
}

static void write_status(struct watch *w, const struct dag_graph *g, bool over)
{
        struct buf out BUF_CLEANUP = {0};
        uint64_t sums[DAG_STATES] = {0}, held = 0, idle = 0, left;
        int64_t now_s = (int64_t)time(NULL);

        if (!over && w->status_ms && clock_boot_ms() - w->status_ms < w->files->status_s * 1000)
                return;
        w->status_ms = clock_boot_ms();
        for (size_t i = 0; i < g->count; i++) {
                sums[dag_point_state(&g->points[i])]++;
                held += g->points[i].counts[DAG_STATE_HELD];
                idle += g->points[i].counts[DAG_STATE_IDLE];
        }
        left = g->count - sums[DAG_STATE_DONE] - sums[DAG_STATE_FAILED] - sums[DAG_STATE_REMOVED];
        buf_addz(&out, "[\n  Type = \"DagStatus\";\n  DagFiles = { ");
        print_string(&out, str_of(w->file));
        buf_printf(&out, " };\n  Timestamp = %lld;\n  DagStatus = %d; /* \"%s\" */\n", (long long)now_s,
                   left                     ? 3
                   : sums[DAG_STATE_FAILED] ? 6
                                            : 5,
                   left                     ? "STATUS_SUBMITTED"
                   : sums[DAG_STATE_FAILED] ? "STATUS_ERROR"
                                            : "STATUS_DONE");
        buf_printf(
                &out,
                "  NodesTotal = %zu;\n  NodesDone = %llu;\n  NodesPre = 0;\n  NodesQueued = %llu;\n  "
                "NodesPost = 0;\n"
                "  NodesReady = 0;\n  NodesUnready = %llu;\n  NodesFutile = %llu;\n  NodesFailed = %llu;\n"
                "  JobProcsHeld = %llu;\n  JobProcsIdle = %llu;\n]\n",
                g->count, (unsigned long long)sums[DAG_STATE_DONE],
                (unsigned long long)(sums[DAG_STATE_HELD] + sums[DAG_STATE_RUNNING] + sums[DAG_STATE_IDLE]),
                (unsigned long long)sums[DAG_STATE_WAITS], (unsigned long long)sums[DAG_STATE_REMOVED],
                (unsigned long long)sums[DAG_STATE_FAILED], (unsigned long long)held,
                (unsigned long long)idle);
        for (size_t i = 0; i < g->count; i++)
                add_status(&out, &g->points[i]);
        buf_printf(&out, "[\n  Type = \"StatusEnd\";\n  EndTime = %lld;\n  NextUpdate = 0;\n]\n",
                   (long long)now_s);
        put_file(w, w->files->status, buf_view(&out));
}

/* ---- JOBSTATE_LOG */

static const char *const events[DAG_STATES] = {
        [DAG_STATE_DONE] = "JOB_SUCCESS",    [DAG_STATE_FAILED] = "JOB_FAILURE",
        [DAG_STATE_REMOVED] = "JOB_ABORTED", [DAG_STATE_HELD] = "JOB_HELD",
        [DAG_STATE_RUNNING] = "EXECUTE",     [DAG_STATE_IDLE] = "SUBMIT",
};

static void add_events(struct watch *w, const struct dag_graph *g, bool over)
{
        struct buf out BUF_CLEANUP = {0};
        long long now_s = (long long)time(NULL);
        int fd;

        if (!w->began)
                buf_printf(&out, "%lld INTERNAL *** DAGMAN_STARTED %s.0 ***\n", now_s, w->id);
        if (g->count > w->seen_count) {
                w->seen = mem_array(w->seen, g->count, 1);
                memset(w->seen + w->seen_count, 0, g->count - w->seen_count);
                w->seen_count = g->count;
        }
        for (size_t i = 0; i < g->count; i++) {
                enum dag_state s = dag_point_state(&g->points[i]);

                if (w->seen[i] == s + 1 || !events[s])
                        continue;
                w->seen[i] = (unsigned char)(s + 1);
                buf_printf(&out, "%lld %s %s %s - - %llu\n", now_s, g->points[i].name, events[s], w->id,
                           (unsigned long long)++w->lines);
        }
        if (over)
                buf_printf(&out, "%lld INTERNAL *** DAGMAN_FINISHED 0 ***\n", now_s);
        fd = open(w->files->jobstate, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
        if ((fd < 0 || fs_write_all(fd, out.p, out.n) != 0) && !w->told) {
                w->told = true;
                cli_note("%s cannot be written: %s", w->files->jobstate, strerror(errno));
        }
        if (fd >= 0)
                close(fd);
}

/* ---- SAVE_POINT_FILE */

static void write_saves(struct watch *w, const struct dag_graph *g)
{
        for (uint32_t i = 0; i < w->files->save_count; i++) {
                const struct dag_save *s = &w->files->saves[i];
                size_t at = (size_t)(uintptr_t)map_get(g->by_name, str_of(s->node));
                struct buf out BUF_CLEANUP = {0}, folder BUF_CLEANUP = {0}, older BUF_CLEANUP = {0};

                if (w->saved[i] || at == 0 || g->points[at - 1].started_ms == 0)
                        continue;
                w->saved[i] = true;
                buf_addz(&folder, s->file);
                buf_z(&folder); /* ends it with a null byte, for dirname() */
                if (strchr(s->file, '/'))
                        mkdir(dirname(folder.p), 0755); /* an error is reported when the file is written */
                buf_printf(&out, "# Nodes of request %s that were done when %s started\n", w->id, s->node);
                dag_rescue_write(g, &g->points[at - 1], &out);
                buf_printf(&older, "%s.old", s->file);
                rename(s->file, buf_z(&older)); /* as DAGMan does; there may be none */
                put_file(w, s->file, buf_view(&out));
        }
}

/* ---- the command */

bool dag_files_any(const struct dag_files *f)
{
        return f->dot || f->status || f->jobstate || f->save_count;
}

static void look_at_graph(struct watch *w, bool over)
{
        struct dag_graph g;

        if (dag_graph_read(w->cli, w->id, w->files->dot != NULL, &g) == 0) {
                if (w->files->dot)
                        write_dot(w, &g);
                if (w->files->status)
                        write_status(w, &g, over);
                if (w->files->jobstate)
                        add_events(w, &g, over);
                write_saves(w, &g);
                w->began = true;
        }
        dag_graph_deinit(&g);
}

static void on_change(void *arg)
{
        look_at_graph(arg, false);
}

int dag_watch(struct cli *cli, const char *id, const char *file, const struct dag_files *files)
{
        struct watch w = {.cli = cli, .id = id, .file = file, .files = files};
        int code;

        w.saved = mem_zalloc(files->save_count + 1);
        code = wait_for_jobs(cli, &(struct wait){.ids = id,
                                                 .timeout_s = -1,
                                                 .quiet = cli->json,
                                                 .changed = dag_files_any(files) ? on_change : NULL,
                                                 .arg = &w});
        if (dag_files_any(files) && (code == CLI_OK || code == CLI_FAILED))
                look_at_graph(&w, true);
        free(w.saved);
        free(w.seen);
        free(w.dot);
        return code;
}
