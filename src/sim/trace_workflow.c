#include "sim/trace_workflow.h"

#include <errno.h>
#include <jansson.h>

#include "base/map.h"
#include "base/mem.h"

struct task {
        const char *id;
        json_t *about, *ran; /* in 1.4 both are one object */
        uint32_t *inputs, *outputs, *children;
        size_t input_count, input_cap, output_count, output_cap, child_count, child_cap;
        uint32_t waits, program;
};
struct file {
        uint64_t bytes;
        bool made; /* by a task */
        uint32_t number;
};
struct workflow {
        const char *name;
        struct err *err;
        size_t untimed; /* tasks without a run time */
        struct task *tasks;
        size_t task_count;
        struct map *ids; /* task id -> index + 1 */
        struct file *files;
        size_t file_count, file_cap;
        struct map *file_ids, *programs; /* id -> index + 1 */
};

static int bad(struct workflow *f, const struct task *t, const char *what)
{
        return err_set(f->err, -EINVAL, "%s: task \"%s\": %s", f->name, t->id, what);
}

static size_t number_of(struct map *m, const char *text, size_t otherwise)
{
        size_t known = (size_t)(uintptr_t)map_get(m, str_of(text));

        if (!known && otherwise != SIZE_MAX) {
                known = otherwise + 1;
                map_put(m, str_of(text), (void *)(uintptr_t)known);
        }
        return known ? known - 1 : SIZE_MAX;
}

/* Reads a number that may be missing. False: the value is no number, or out of range. */
static bool number_in(json_t *v, double most, double *ret)
{
        *ret = json_number_value(v);
        return !v || json_is_null(v) || (json_is_number(v) && *ret >= 0 && *ret <= most);
}

static bool bytes_of(json_t *file, uint64_t *ret)
{
        json_t *size = json_object_get(file, "sizeInBytes");
        double v;
        bool ok = number_in(size ? size : json_object_get(file, "size"), 1e18, &v);

        *ret = ok ? (uint64_t)v : 0;
        return ok;
}

static struct file *file_of(struct workflow *f, const char *id)
{
        size_t n = number_of(f->file_ids, id, f->file_count);

        if (n == f->file_count) {
                MEM_GROW(f->files, f->file_cap, f->file_count + 1);
                f->files[f->file_count++] = (struct file){.bytes = 0};
        }
        return &f->files[n];
}

static void link_file(struct workflow *f, struct task *t, const char *id, bool output, uint64_t bytes)
{
        struct file *file = file_of(f, id);
        uint32_t n = (uint32_t)(file - f->files);

        if (bytes)
                file->bytes = bytes;
        file->made |= output;
        if (output) {
                MEM_GROW(t->outputs, t->output_cap, t->output_count + 1);
                t->outputs[t->output_count++] = n;
        } else {
                MEM_GROW(t->inputs, t->input_cap, t->input_count + 1);
                t->inputs[t->input_count++] = n;
        }
}

/* 1.5: names only; sizes are in specification.files. */
static int link_names(struct workflow *f, struct task *t, const char *key, bool output)
{
        json_t *list = json_object_get(t->about, key), *name;
        size_t i;

        json_array_foreach (list, i, name) {
                if (!json_is_string(name))
                        return bad(f, t, output ? "outputFiles must be names" : "inputFiles must be names");
                link_file(f, t, json_string_value(name), output, 0);
        }
        return 0;
}

/* 1.4: objects with a link, a name and a size. */
static int link_objects(struct workflow *f, struct task *t)
{
        json_t *list = json_object_get(t->about, "files"), *file;
        size_t i;

        json_array_foreach (list, i, file) {
                const char *link = json_string_value(json_object_get(file, "link"));
                const char *id = json_string_value(json_object_get(file, "id"));
                uint64_t bytes;

                if (!id)
                        id = json_string_value(json_object_get(file, "name"));
                if (!id || !link || (strcmp(link, "input") != 0 && strcmp(link, "output") != 0))
                        return bad(f, t, "a file needs a name, and a link that is input or output");
                if (!bytes_of(file, &bytes))
                        return err_set(f->err, -EINVAL,
                                       "%s: task \"%s\": the size of its file \"%s\" makes no sense", f->name,
                                       t->id, id);
                link_file(f, t, id, link[0] == 'o', bytes);
        }
        return 0;
}

static const char *id_of(json_t *task)
{
        const char *id = json_string_value(json_object_get(task, "id"));

        return id ? id : json_string_value(json_object_get(task, "name"));
}

static int read_task(struct workflow *f, size_t i, json_t *about)
{
        struct task *t = &f->tasks[i];
        const char *program;
        int r;

        t->about = t->ran = about;
        t->id = id_of(about);
        if (!t->id)
                return err_set(f->err, -EINVAL, "%s: task number %zu has neither id nor name", f->name,
                               i + 1);
        if (number_of(f->ids, t->id, i) != i)
                return bad(f, t, "there are two of this id");
        program = json_string_value(json_object_get(json_object_get(about, "command"), "program"));
        if (!program) /* the name without the number behind it: individuals_ID0000001 */
                program = json_string_value(json_object_get(about, "category"));
        if (!program)
                program = t->id;
        t->program = (uint32_t)number_of(f->programs, program, map_count(f->programs));
        r = link_names(f, t, "inputFiles", false);
        if (r == 0)
                r = link_names(f, t, "outputFiles", true);
        return r == 0 ? link_objects(f, t) : r;
}

/* A task waits for its parents; those that only a parent's list of children names count as well. */
static int add_edge(struct workflow *f, struct task *t, const char *parent, const char *child)
{
        size_t from = parent ? number_of(f->ids, parent, SIZE_MAX) : SIZE_MAX,
               to = child ? number_of(f->ids, child, SIZE_MAX) : SIZE_MAX;
        struct task *p;

        if (from == SIZE_MAX || to == SIZE_MAX)
                return bad(f, t, "a parent or child of it is not in the workflow");
        p = &f->tasks[from];
        for (size_t i = 0; i < p->child_count; i++)
                if (p->children[i] == to)
                        return 0;
        MEM_GROW(p->children, p->child_cap, p->child_count + 1);
        p->children[p->child_count++] = (uint32_t)to;
        f->tasks[to].waits++;
        return 0;
}

static int read_edges(struct workflow *f)
{
        for (size_t i = 0; i < f->task_count; i++) {
                struct task *t = &f->tasks[i];
                json_t *other;
                size_t k;
                int r = 0;

                json_array_foreach (json_object_get(t->about, "parents"), k, other) {
                        r = r ? r : add_edge(f, t, json_string_value(other), t->id);
                }
                json_array_foreach (json_object_get(t->about, "children"), k, other) {
                        r = r ? r : add_edge(f, t, t->id, json_string_value(other));
                }
                if (r)
                        return r;
        }
        return 0;
}

/* Checks that the graph has no cycle: removes tasks without parents until none is left; the remaining tasks
 * are in a cycle. */
static int check_circles(struct workflow *f)
{
        uint32_t *waits = mem_array(NULL, f->task_count + 1, sizeof(*waits)),
                 *ready = mem_array(NULL, f->task_count + 1, sizeof(*ready));
        size_t done = 0, n = 0;
        int r = 0;

        for (size_t i = 0; i < f->task_count; i++)
                if ((waits[i] = f->tasks[i].waits) == 0)
                        ready[n++] = (uint32_t)i;
        for (; done < n; done++) {
                const struct task *t = &f->tasks[ready[done]];

                for (size_t k = 0; k < t->child_count; k++)
                        if (--waits[t->children[k]] == 0)
                                ready[n++] = t->children[k];
        }
        for (size_t i = 0; i < f->task_count && n < f->task_count && r == 0; i++)
                if (waits[i])
                        r = bad(f, &f->tasks[i], "it waits for itself, by way of its parents");
        free(waits);
        free(ready);
        return r;
}

static int read_tasks(struct workflow *f, json_t *list)
{
        json_t *about;
        size_t i;
        int r;

        if (!json_is_array(list) || json_array_size(list) == 0)
                return err_set(f->err, -EINVAL,
                               "%s: no tasks: neither workflow.specification.tasks (WfFormat 1.5) nor "
                               "workflow.tasks",
                               f->name);
        f->task_count = json_array_size(list);
        f->tasks = mem_zalloc(f->task_count * sizeof(*f->tasks));
        json_array_foreach (list, i, about) {
                r = read_task(f, i, about);
                if (r)
                        return r;
        }
        r = read_edges(f);
        return r == 0 ? check_circles(f) : r;
}

static int workflow_read_document(struct workflow *f, json_t *root)
{
        json_t *workflow = json_object_get(root, "workflow"),
               *spec = json_object_get(workflow, "specification");
        json_t *item;
        size_t i;
        int r = read_tasks(f, json_object_get(spec ? spec : workflow, "tasks"));

        if (r || !spec)
                return r;
        json_array_foreach (json_object_get(spec, "files"), i, item) {
                const char *id = id_of(item);

                if (!id)
                        return err_set(f->err, -EINVAL, "%s: file number %zu has no id", f->name, i + 1);
                if (!bytes_of(item, &file_of(f, id)->bytes))
                        return err_set(f->err, -EINVAL, "%s: the size of file \"%s\" makes no sense", f->name,
                                       id);
        }
        json_array_foreach (json_object_get(json_object_get(workflow, "execution"), "tasks"), i, item) {
                const char *id = id_of(item), *program;
                size_t n = id ? number_of(f->ids, id, SIZE_MAX) : SIZE_MAX;

                if (n == SIZE_MAX)
                        return err_set(f->err, -EINVAL, "%s: execution.tasks names \"%s\", which is no task",
                                       f->name, id ? id : "");
                f->tasks[n].ran = item;
                program = json_string_value(json_object_get(json_object_get(item, "command"), "program"));
                if (program)
                        f->tasks[n].program =
                                (uint32_t)number_of(f->programs, program, map_count(f->programs));
        }
        return 0;
}

/* ---- into the workload */
static bool value_of(const struct task *t, const char *key, const char *old, double most, double *ret)
{
        json_t *v = json_object_get(t->ran, key);

        return number_in(v ? v : json_object_get(t->ran, old), most, ret);
}

static struct sim_span span_of(struct sim_workload *w, const uint32_t *refs, size_t count, uint32_t add)
{
        struct sim_span span = sim_span_begin(w);

        for (size_t i = 0; i < count; i++)
                sim_span_add(w, &span, refs[i] + add);
        return span;
}

static struct sim_span workflow_files_of(struct sim_workload *w, const struct workflow *f,
                                         const uint32_t *files, size_t count)
{
        struct sim_span span = sim_span_begin(w);

        for (size_t i = 0; i < count; i++)
                sim_span_add(w, &span, f->files[files[i]].number);
        return span;
}

static int add_copy(struct workflow *f, struct sim_workload *w, const struct sim_workflow_options *o,
                    uint32_t copy, uint32_t user, uint32_t program)
{
        uint32_t first = (uint32_t)w->job_count;

        for (size_t i = 0; i < f->file_count; i++)
                if (copy == 0 || f->files[i].made)
                        f->files[i].number = sim_workload_add_file(w, f->files[i].bytes, o->cluster);
        for (size_t i = 0; i < f->task_count; i++) {
                const struct task *t = &f->tasks[i];
                double run_s, cores, memory;
                struct sim_job *j;

                if (!value_of(t, "runtimeInSeconds", "runtime", 1e9, &run_s))
                        return bad(f, t, "its run time is invalid");
                if (!value_of(t, "coreCount", "cores", 1e6, &cores))
                        return bad(f, t, "its number of cores is invalid");
                if (!value_of(t, "memoryInBytes", "memory", 1e15, &memory))
                        return bad(f, t, "its memory makes no sense");
                f->untimed += copy == 0 && !json_object_get(t->ran, "runtimeInSeconds") &&
                              !json_object_get(t->ran, "runtime");
                run_s /= o->hurry > 0 ? o->hurry : 1;
                j = sim_workload_add_job(w);
                j->submit_ms = copy * o->every_ms;
                j->run_ms = run_s * 1000 < 1 ? 1 : (int64_t)(run_s * 1000);
                j->cpus = cores >= 1 ? (uint32_t)cores : 1;
                j->memory_mib = (uint32_t)(memory / 1048576);
                j->user = user;
                j->program = program + t->program;
                j->home = o->cluster;
                j->waits = t->waits;
                j->inputs = workflow_files_of(w, f, t->inputs, t->input_count);
                j->outputs = workflow_files_of(w, f, t->outputs, t->output_count);
                j->children = span_of(w, t->children, t->child_count, first);
        }
        return 0;
}

static size_t count_empty(const struct workflow *f)
{
        size_t n = 0;

        for (size_t i = 0; i < f->file_count; i++)
                n += f->files[i].bytes == 0;
        return n;
}

static void workflow_deinit(struct workflow *f)
{
        for (size_t i = 0; i < f->task_count; i++) {
                free(f->tasks[i].inputs);
                free(f->tasks[i].outputs);
                free(f->tasks[i].children);
        }
        free(f->tasks);
        free(f->files);
        map_free(f->ids);
        map_free(f->file_ids);
        map_free(f->programs);
}

int sim_workflow_read(struct sim_workload *w, const char *name, struct str text,
                      const struct sim_workflow_options *o, struct sim_workflow_header *ret, struct err *err)
{
        struct workflow f = {
                .name = name, .err = err, .ids = map_new(), .file_ids = map_new(), .programs = map_new()};
        uint32_t user = w->user_count, program = w->program_count;
        json_error_t error;
        json_t *root = json_loadb(text.p, text.n, 0, &error);
        int r = root ? workflow_read_document(&f, root)
                     : err_set(err, -EINVAL, "%s:%d: this is no JSON: %s", name, error.line, error.text);

        for (uint32_t i = 0; i < (o->copies ? o->copies : 1) && r == 0; i++) {
                if (w->job_count + f.task_count > SIM_JOBS_MAX)
                        r = err_set(err, -EINVAL, "%s: more than %u jobs", name, SIM_JOBS_MAX);
                else
                        r = add_copy(&f, w, o, i, user, program);
        }
        if (r == 0)
                *ret = (struct sim_workflow_header){f.task_count, f.file_count, f.untimed, count_empty(&f)};
        sim_workload_finish(w);
        workflow_deinit(&f);
        json_decref(root);
        return r;
}
