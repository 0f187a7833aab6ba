/* Reads what Kubernetes' API answers.
 *
 * Three lists say what becomes of all tasks: Jobs, their pods, which know why they wait and what has ended
 * them, and events, which alone tell that a quota or a limit keeps a Job from making its pod. */
#include <ctype.h>

#include "base/mem.h"
#include "base/u64.h"
#include "run/systems/kubernetes.h"

#define GPU         KUBERNETES_GPU
#define LINE_PARTS  12
#define VERSION_MAX 64 /* letters and digits of a resource version */
/* Most pods, and most nodes, of an answer. Clusters have up to 150,000 and 5,000; an entry takes ten times
 * the memory of its line. */
#define ENTRIES_MAX 200000u

/* ---- answers as lines */

enum {
        NAME,
        JOB_NAME,
        CREATED,
        PHASE,
        REASON,
        WAITING,
        TERMINATED,
        TYPES,
        STATUSES,
        MESSAGES,
        SUSPENDED,
        READY,
        OBJECT,
        MESSAGE,
        UNSCHEDULABLE,
        NODE_CPU,
        NODE_MEMORY,
        NODE_GPU,
        TAINTS,
        NODE,
        POD_CPU,
        POD_MEMORY,
        POD_GPU
};
static const char *const of_items[] = {"metadata.name",
                                       "metadata.labels.job-name",
                                       "metadata.creationTimestamp",
                                       "status.phase",
                                       "status.reason",
                                       "status.containerStatuses.state.waiting.reason",
                                       "status.containerStatuses.state.terminated.reason",
                                       "status.conditions.type",
                                       "status.conditions.status",
                                       "status.conditions.message",
                                       "spec.suspend",
                                       "status.ready",
                                       "involvedObject.name",
                                       "message",
                                       "spec.unschedulable",
                                       "status.allocatable.cpu",
                                       "status.allocatable.memory",
                                       "status.allocatable." GPU,
                                       "spec.taints.effect",
                                       "spec.nodeName",
                                       "spec.containers.resources.requests.cpu",
                                       "spec.containers.resources.requests.memory",
                                       "spec.containers.resources.requests." GPU,
                                       NULL};
enum {
        KIND,
        VERSION,
        ANSWER_NAME,
        ANSWER_STATUS,
        ANSWER_REASON,
        ANSWER_MESSAGE,
        MISSING,
        MISSING_KIND,
        HARD_CPU,
        HARD_CPUS,
        HARD_MEMORY,
        HARD_ALL_MEMORY,
        HARD_GPU,
        USED_CPU,
        USED_CPUS,
        USED_MEMORY,
        USED_ALL_MEMORY,
        USED_GPU
};
static const char *const of_answer[] = {"kind",
                                        "metadata.resourceVersion",
                                        "metadata.name",
                                        "status",
                                        "reason",
                                        "message",
                                        "details.name",
                                        "details.kind",
                                        "status.hard.requests.cpu",
                                        "status.hard.cpu",
                                        "status.hard.requests.memory",
                                        "status.hard.memory",
                                        "status.hard.requests." GPU,
                                        "status.used.requests.cpu",
                                        "status.used.cpu",
                                        "status.used.requests.memory",
                                        "status.used.memory",
                                        "status.used.requests." GPU,
                                        NULL};
static const struct json_skim_rows rows[] = {{"items", of_items}, {NULL, of_answer}, {NULL, NULL}};

/* Adds a line; its fields have none of the signs that part fields and lines. */
static void add_line(struct buf *out, const char *kind, const struct str *values, const int *fields,
                     size_t count)
{
        buf_addz(out, kind);
        for (size_t i = 0; i < count; i++) {
                struct str s = values[fields[i]];

                buf_char(out, '|');
                for (size_t k = 0; k < s.n; k++)
                        buf_char(out, s.p[k] == '|' || (unsigned char)s.p[k] < ' ' ? '?' : s.p[k]);
        }
        buf_char(out, '\n');
}
#define ADD_LINE(out, kind, values, ...)                                                                     \
        add_line(out, kind, values, (const int[]){__VA_ARGS__},                                              \
                 sizeof((const int[]){__VA_ARGS__}) / sizeof(int))

/* A Job that is not there is an answer, too. */
static void take_answer(const struct str *v, struct buf *out, struct buf *errors)
{
        if (str_eqz(v[ANSWER_REASON], "NotFound") && str_eqz(v[MISSING_KIND], "jobs"))
                ADD_LINE(out, "gone", v, MISSING);
        if (str_eqz(v[KIND], "Status") && str_eqz(v[ANSWER_STATUS], "Failure"))
                buf_printf(errors, "%s" STR_FMT ": " STR_FMT, errors->n ? "; " : "",
                           STR_ARG(v[ANSWER_REASON]), STR_ARG(v[ANSWER_MESSAGE]));
        else if (str_eqz(v[KIND], "Job"))
                ADD_LINE(out, "applied", v, ANSWER_NAME);
        else if (str_eqz(v[KIND], "JobList"))
                ADD_LINE(out, "version", v, VERSION);
        else if (str_eqz(v[KIND], "ResourceQuota"))
                ADD_LINE(out, "quota", v, HARD_CPU, HARD_CPUS, HARD_MEMORY, HARD_ALL_MEMORY, HARD_GPU,
                         USED_CPU, USED_CPUS, USED_MEMORY, USED_ALL_MEMORY, USED_GPU);
}

static void take(const void *arg, const struct json_skim_rows *which, const struct str *v, struct buf *out,
                 struct buf *errors)
{
        (void)arg;
        if (!which->list)
                take_answer(v, out, errors);
        else if (v[OBJECT].n)
                ADD_LINE(out, "event", v, OBJECT, MESSAGE);
        else if (v[NODE_CPU].n)
                ADD_LINE(out, "node", v, NAME, UNSCHEDULABLE, TAINTS, TYPES, STATUSES, NODE_CPU, NODE_MEMORY,
                         NODE_GPU);
        else if (v[PHASE].n)
                ADD_LINE(out, "pod", v, JOB_NAME, PHASE, REASON, WAITING, TERMINATED, TYPES, STATUSES,
                         MESSAGES, NODE, POD_CPU, POD_MEMORY, POD_GPU);
        else if (v[NAME].n)
                ADD_LINE(out, "job", v, NAME, SUSPENDED, READY, TYPES, STATUSES, MESSAGES);
}

const struct request_service kubernetes_service = {.name = "Kubernetes",
                                                   .token_field = "Authorization: Bearer ",
                                                   .any_token = true,
                                                   .rows = rows,
                                                   .take = take};

struct line {
        struct str kind, part[LINE_PARTS];
};
static bool next_line(struct str *out, struct line *ret)
{
        struct str text;

        *ret = (struct line){{0}};
        if (!out->n || !str_cut(out, '\n', &text))
                return false;
        str_cut(&text, '|', &ret->kind);
        for (size_t i = 0; i < LINE_PARTS && text.n; i++)
                str_cut(&text, '|', &ret->part[i]);
        return true;
}

/* Returns whether the condition of this type is true, of lists of all types and of what each is. */
static bool is_true(struct str types, struct str statuses, const char *type)
{
        struct str one, status;

        while (types.n && str_cut(&types, ',', &one)) {
                str_cut(&statuses, ',', &status);
                if (str_eqz(one, type))
                        return str_eqz(status, "True");
        }
        return false;
}

/* ---- what becomes of tasks */

struct pod {
        struct line line;
        struct str refused; /* why the Job could not make one */
};
enum {
        POD_JOB,
        POD_PHASE,
        POD_REASON,
        POD_WAITING,
        POD_TERMINATED,
        POD_TYPES,
        POD_STATUSES,
        POD_MESSAGES,
        POD_NODE,
        POD_CPUS,
        POD_BYTES,
        POD_GPUS
};
enum { JOB, JOB_SUSPENDED, JOB_READY, JOB_TYPES, JOB_STATUSES, JOB_MESSAGES };

/* Returns the pod of a Job; NULL: it is not known, and there are too many to keep it. */
static struct pod *pod_of(struct map *pods, struct str job)
{
        struct pod *p = map_get(pods, job);

        if (!p && map_count(pods) < ENTRIES_MAX) {
                p = mem_new(struct pod);
                map_put(pods, job, p);
        }
        return p;
}

static void read_pods(struct str out, struct map *pods)
{
        struct line line;
        struct pod *p;

        while (next_line(&out, &line))
                if (str_eqz(line.kind, "pod") && (p = pod_of(pods, line.part[POD_JOB])))
                        p->line = line;
                else if (str_eqz(line.kind, "event") && (p = pod_of(pods, line.part[0])))
                        p->refused = line.part[1];
}

/* Reads how a failed Job ended. A node that fails, an eviction and a preemption are nobody's fault; the
 * cluster marks the pod. */
static enum batch_phase failed_phase(const struct line *job, const struct line *pod, struct str *ret_reason)
{
        static const char *const lost[] = {"Evicted",
                                           "Preempt",
                                           "NodeLost",
                                           "Shutdown",
                                           "NodeAffinity",
                                           "Terminated",
                                           "UnexpectedAdmissionError",
                                           NULL};

        *ret_reason = pod->part[POD_REASON].n ? pod->part[POD_REASON] : job->part[JOB_MESSAGES];
        if (str_search(job->part[JOB_MESSAGES], STR("longer than specified deadline")) >= 0)
                return BATCH_TIMEOUT;
        if (str_search(pod->part[POD_TERMINATED], STR("OOMKilled")) >= 0)
                return BATCH_MEMORY;
        if (is_true(pod->part[POD_TYPES], pod->part[POD_STATUSES], "DisruptionTarget") ||
            batch_contains(pod->part[POD_REASON], lost))
                return BATCH_LOST;
        return BATCH_OVER;
}

/* Reads why a pod does not run yet. */
static enum batch_phase waiting_phase(const struct line *job, const struct pod *pod, struct str *ret_reason)
{
        static const char *const never[] = {"InvalidImageName", "ErrImageNeverPull", NULL};
        const struct str *p = pod->line.part;

        if (str_eqz(job->part[JOB_SUSPENDED], "true"))
                *ret_reason = STR("the Job is suspended");
        else
                *ret_reason = p[POD_WAITING].n && !str_eqz(p[POD_WAITING], "ContainerCreating")
                                      ? p[POD_WAITING]
                              : p[POD_MESSAGES].n ? p[POD_MESSAGES]
                              : p[POD_PHASE].n    ? p[POD_WAITING]
                                                  : pod->refused;
        return batch_contains(p[POD_WAITING], never) ? BATCH_UNFIT : BATCH_WAITING;
}

static void read_job(const struct line *job, const struct pod *pod, struct batch_line *ret)
{
        struct str types = job->part[JOB_TYPES], statuses = job->part[JOB_STATUSES];
        uint64_t ready = 0;

        *ret = (struct batch_line){.native = job->part[JOB], .name = job->part[JOB]};
        str_to_u64(job->part[JOB_READY], &ready);
        if (is_true(types, statuses, "Complete"))
                ret->phase = BATCH_OVER;
        else if (is_true(types, statuses, "Failed"))
                ret->phase = failed_phase(job, &pod->line, &ret->reason);
        else if (ready > 0 || str_eqz(pod->line.part[POD_PHASE], "Running") ||
                 str_eqz(pod->line.part[POD_PHASE], "Succeeded") ||
                 str_eqz(pod->line.part[POD_PHASE], "Failed"))
                ret->phase = BATCH_RUNNING; /* of the last two the Job will say more */
        else
                ret->phase = waiting_phase(job, pod, &ret->reason);
        ret->stays = ret->phase != BATCH_RUNNING && ret->phase != BATCH_WAITING;
}

void kubernetes_status_read(struct str out, batch_take_fn *fn, void *arg)
{
        static const struct pod none = {.refused = {0}};
        struct map *pods = map_new();
        struct str rest = out, key;
        struct line line;
        void *value;

        read_pods(out, pods);
        while (next_line(&rest, &line)) {
                const struct pod *pod = map_get(pods, line.part[JOB]);
                struct batch_line told;

                if (!str_eqz(line.kind, "job"))
                        continue;
                read_job(&line, pod ? pod : &none, &told);
                fn(arg, &told);
        }
        for (size_t at = 0; map_next(pods, &at, &key, &value);)
                free(value);
        map_free(pods);
}

/* The version becomes a part of a path. */
struct str kubernetes_version(struct str out)
{
        struct line line;
        size_t n = 0;

        while (next_line(&out, &line))
                if (str_eqz(line.kind, "version")) {
                        while (n < line.part[0].n && isalnum((unsigned char)line.part[0].p[n]))
                                n++;
                        return n == line.part[0].n && n <= VERSION_MAX ? line.part[0] : STR_NONE;
                }
        return STR_NONE;
}

void kubernetes_past_read(struct str out, batch_take_fn *fn, void *arg)
{
        struct line line;

        while (next_line(&out, &line))
                if (str_eqz(line.kind, "gone"))
                        fn(arg, &(struct batch_line){.native = line.part[0],
                                                     .name = line.part[0],
                                                     .reason = STR("the Job was deleted"),
                                                     .phase = BATCH_CANCELLED});
}

/* ---- what there is */

#define MILLI_MAX 1000000000000000000u /* no machine has that much, and sums of a few stay below 2^64 */

static uint64_t add_milli(uint64_t a, uint64_t b)
{
        return a + b < MILLI_MAX ? a + b : MILLI_MAX;
}

/* Reads a quantity ("1500m", "2", "16Gi", "1e3") in thousandths, up to MILLI_MAX. What is none counts as
 * nothing. */
static uint64_t quantity_milli(struct str text)
{
        static const struct {
                const char *suffix;
                double factor;
        } units[] = {{"", 1},
                     {"m", 1e-3},
                     {"k", 1e3},
                     {"M", 1e6},
                     {"G", 1e9},
                     {"T", 1e12},
                     {"P", 1e15},
                     {"Ki", 1024.0},
                     {"Mi", 1048576.0},
                     {"Gi", 1073741824.0},
                     {"Ti", 1099511627776.0},
                     {"Pi", 1125899906842624.0}};
        size_t n = 0;
        double value;

        while (n < text.n && (isdigit((unsigned char)text.p[n]) || text.p[n] == '.' ||
                              (text.p[n] == 'e' && n + 1 < text.n && isdigit((unsigned char)text.p[n + 1]))))
                n++;
        if (n == 0 || str_to_double(str_head(text, n), &value) != 0 || value < 0)
                return 0;
        for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
                if (str_eqz(str_skip(text, n), units[i].suffix))
                        return value * units[i].factor * 1000 < (double)MILLI_MAX
                                       ? (uint64_t)(value * units[i].factor * 1000 + 0.5)
                                       : MILLI_MAX;
        return 0;
}

/* Reads how much there is of something; more than can be counts as nothing. */
static uint64_t offered_milli(struct str text)
{
        uint64_t n = quantity_milli(text);

        return n < MILLI_MAX ? n : 0;
}

static uint64_t sum_milli(struct str list)
{
        struct str one;
        uint64_t sum = 0;

        while (list.n && str_cut(&list, ',', &one))
                sum = add_milli(sum, quantity_milli(one));
        return sum;
}

static uint64_t less(uint64_t all, uint64_t used)
{
        return all > used ? all - used : 0;
}

/* All that a namespace may have is one place, as large as the quota: it says nothing of nodes. */
static void read_quota(const struct line *line, struct run_capacity *c)
{
        const struct str *p = line->part;
        struct str cpu[] = {p[0].n ? p[0] : p[1], p[5].n ? p[5] : p[6]},
                   memory[] = {p[2].n ? p[2] : p[3], p[7].n ? p[7] : p[8]};
        const struct batch_node node = {
                .cpus = offered_milli(cpu[0]) / 1000,
                .idle_cpus = less(offered_milli(cpu[0]), quantity_milli(cpu[1])) / 1000,
                .memory_bytes = offered_milli(memory[0]) / 1000,
                .idle_memory_bytes = less(offered_milli(memory[0]), quantity_milli(memory[1])) / 1000,
                .gpus = offered_milli(p[4]) / 1000,
                .idle_gpus = less(offered_milli(p[4]), quantity_milli(p[9])) / 1000};

        batch_node_add(c, &node, node.cpus);
        if (!node.cpus)
                c->nothing = "the quota has no limit named requests.cpu, or it is 0";
}

struct node {
        uint64_t cpu, memory, gpus; /* allocatable, in thousandths */
        uint64_t used_cpu, used_memory, used_gpus;
};

static void read_node(const struct batch_settings *s, const struct line *line, struct map *nodes)
{
        const struct str *p = line->part;
        bool tainted = str_search(p[2], STR("NoExecute")) >= 0;

        for (struct str rest = p[2], one; rest.n && str_cut(&rest, ',', &one);)
                tainted |= str_eqz(one, "NoSchedule");
        if (str_eqz(p[1], "true") || !is_true(p[3], p[4], "Ready") ||
            (tainted && !batch_setting(s, "tolerations")) || map_get(nodes, p[0]) ||
            map_count(nodes) >= ENTRIES_MAX)
                return;
        struct node *n = mem_new(struct node);
        *n = (struct node){
                .cpu = offered_milli(p[5]), .memory = offered_milli(p[6]), .gpus = offered_milli(p[7])};
        map_put(nodes, p[0], n);
}

void kubernetes_capacity_read(const struct batch_settings *s, struct str out, struct run_capacity *c)
{
        struct map *nodes = map_new();
        struct line line;
        struct str key;
        void *value;

        while (next_line(&out, &line)) {
                struct node *n = map_get(nodes, line.part[POD_NODE]);

                if (str_eqz(line.kind, "quota"))
                        read_quota(&line, c);
                else if (str_eqz(line.kind, "node"))
                        read_node(s, &line, nodes);
                else if (str_eqz(line.kind, "pod") && n) {
                        n->used_cpu = add_milli(n->used_cpu, sum_milli(line.part[POD_CPUS]));
                        n->used_memory = add_milli(n->used_memory, sum_milli(line.part[POD_BYTES]));
                        n->used_gpus = add_milli(n->used_gpus, sum_milli(line.part[POD_GPUS]));
                }
        }
        for (size_t at = 0; map_next(nodes, &at, &key, &value);) {
                const struct node *n = value;
                const struct batch_node node = {.cpus = n->cpu / 1000,
                                                .idle_cpus = less(n->cpu, n->used_cpu) / 1000,
                                                .memory_bytes = n->memory / 1000,
                                                .idle_memory_bytes = less(n->memory, n->used_memory) / 1000,
                                                .gpus = n->gpus / 1000,
                                                .idle_gpus = less(n->gpus, n->used_gpus) / 1000};

                batch_node_add(c, &node, node.cpus);
                free(value);
        }
        map_free(nodes);
        if (!c->cpus_milli && !c->nothing)
                c->nothing = "no node is ready and without a taint";
}
