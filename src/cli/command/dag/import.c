/* Workflow instances in the JSON of WfCommons (WfFormat 1.4 and 1.5) as DAG files: a node for each task,
 * which sleeps as long as the task ran, on as many processors. The simulator reads the same files (drover
 * sim), so a simulated run can be compared with a real one. */
#include "cli/command/dag/import.h"

#include <errno.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"

#define CORES_MAX 4096
#define RUN_MAX_S 1e9

struct import {
        const char *file;
        struct view tasks;
        struct map *ran; /* id → the task's entry in workflow.execution */
        struct map *names;
        struct buf *out;
        struct buf arrows;
        double hurry;
        struct set cores;
        struct err *err;
        size_t count;
};

static void id_of(struct view task, struct buf *out)
{
        buf_reset(out);
        view_text(view_get(task, "id"), out);
        if (out->n == 0)
                view_text(view_get(task, "name"), out);
}

/* Characters that cannot be in the name of a node become underscores. */
static void node_name(struct str id, struct buf *out)
{
        for (size_t i = 0; i < id.n; i++)
                buf_char(out, id.p[i] <= ' ' || strchr("+/\"\\\x7f", id.p[i]) ? '_' : id.p[i]);
}

/* Version 1.5 lists run times separately from the tasks. */
static int read_execution(struct import *x, struct view list)
{
        struct view item;
        size_t at = 0;

        while (view_next(list, &at, &item)) {
                struct buf id BUF_CLEANUP = {0};
                struct view *kept;

                id_of(item, &id);
                if (id.n == 0 || map_get(x->ran, buf_view(&id)))
                        continue;
                kept = mem_new(struct view);
                *kept = item;
                map_put(x->ran, buf_view(&id), kept);
        }
        return 0;
}

static double number(struct view task, const char *key, const char *old)
{
        struct buf text BUF_CLEANUP = {0};
        struct view v = view_get(task, key);
        double n = 0;

        if (!view_there(v))
                v = view_get(task, old);
        if (view_type(v) != VIEW_NUMBER)
                return view_there(v) ? -1 : 0;
        view_text(v, &text);
        return str_to_double(buf_view(&text), &n) == 0 ? n : -1;
}

static int bad(struct import *x, struct str id, const char *what)
{
        return err_set(x->err, -EINVAL, "%s: task \"" STR_FMT "\": %s", x->file,
                       STR_ARG(str_head(id, id.n < 80 ? id.n : 80)), what);
}

static int add_node(struct import *x, struct view task)
{
        struct buf id BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
        const struct view *ran;
        double run_s, cores;

        id_of(task, &id);
        if (id.n == 0)
                return err_set(x->err, -EINVAL, "%s: task number %zu has neither id nor name", x->file,
                               x->count + 1);
        node_name(buf_view(&id), &name);
        if (map_get(x->names, buf_view(&name)))
                return bad(x, buf_view(&id), "there are two of this name");
        map_put(x->names, buf_view(&name), x);
        ran = map_get(x->ran, buf_view(&id));
        run_s = number(ran ? *ran : task, "runtimeInSeconds", "runtime");
        cores = number(ran ? *ran : task, "coreCount", "cores");
        if (!(run_s >= 0 && run_s <= RUN_MAX_S))
                return bad(x, buf_view(&id), "its run time is invalid");
        if (!(cores >= 0 && cores <= CORES_MAX))
                return bad(x, buf_view(&id), "its number of cores is invalid");
        cores = cores < 1 ? 1 : cores;
        set_add(&x->cores, (uint32_t)cores);
        buf_printf(x->out, "JOB %s cores%u\nVARS %s seconds=\"%.3f\"\n", buf_z(&name), (unsigned)cores,
                   buf_z(&name), run_s / x->hurry);
        x->count++;
        return 0;
}

/* Adds the dependencies of a task; the file may list each at both ends. */
static int import_add_arrows(struct import *x, struct view task, const char *key, bool parents)
{
        struct view list = view_get(task, key), item;
        struct buf id BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
        size_t at = 0;

        id_of(task, &id);
        node_name(buf_view(&id), &name);
        while (view_next(list, &at, &item)) {
                struct buf other BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};

                view_text(item, &text);
                node_name(buf_view(&text), &other);
                if (!map_get(x->names, buf_view(&other)))
                        return bad(x, buf_view(&id), "a parent or child of it is not in the workflow");
                buf_reset(&text);
                buf_printf(&text, "PARENT %s CHILD %s", parents ? buf_z(&other) : buf_z(&name),
                           parents ? buf_z(&name) : buf_z(&other));
                if (map_get(x->names, buf_view(&text)))
                        continue;
                map_put(x->names, buf_view(&text), x);
                buf_printf(&x->arrows, "%s\n", buf_z(&text));
        }
        return 0;
}

static int import_graph(struct import *x)
{
        struct view task;
        size_t at = 0;
        int rc = 0;

        while (!rc && view_next(x->tasks, &at, &task))
                rc = add_node(x, task);
        if (!rc && x->count == 0)
                return err_set(x->err, -EINVAL,
                               "%s: no tasks: neither workflow.specification.tasks (WfFormat 1.5) nor "
                               "workflow.tasks",
                               x->file);
        for (at = 0; !rc && view_next(x->tasks, &at, &task);) {
                rc = import_add_arrows(x, task, "parents", true);
                if (!rc)
                        rc = import_add_arrows(x, task, "children", false);
        }
        buf_str(x->out, buf_view(&x->arrows));
        SET_FOREACH (&x->cores, n)
                buf_printf(x->out,
                           "SUBMIT-DESCRIPTION cores%llu {\n  executable = /bin/sleep\n  arguments = "
                           "$(seconds)\n"
                           "  transfer_executable = false\n  request_cpus = %llu\n}\n",
                           (unsigned long long)n, (unsigned long long)n);
        return rc;
}

int dag_import_wfcommons(const char *file, struct str text, double hurry, struct buf *out, struct err *err)
{
        struct view workflow = view_get(view_of(text), "workflow"),
                    spec = view_get(workflow, "specification");
        struct import x = {.file = file,
                           .tasks = view_get(view_there(spec) ? spec : workflow, "tasks"),
                           .ran = map_new(),
                           .names = map_new(),
                           .out = out,
                           .hurry = hurry,
                           .err = err};
        void *value;
        int rc = read_execution(&x, view_get(view_get(workflow, "execution"), "tasks"));

        if (!rc)
                rc = import_graph(&x);
        for (size_t at = 0; map_next(x.ran, &at, NULL, &value);)
                free(value);
        map_free(x.ran);
        map_free(x.names);
        set_deinit(&x.cores);
        buf_deinit(&x.arrows);
        return rc;
}
