/* Jobs over several nodes of one place: `request_nodes` and `tasks_per_node`.
 *
 * The user asks as in Slurm: processors for each task, memory and GPUs for each node. The attributes of the
 * job say what all of it takes, so that a queue, a share and the bank count it like any other job; the place
 * divides them by NodeCount again when it asks its batch system. */
#include "jdl/condor/reader.h"

/* Far more than any place has. A job's processors, the product of both and of request_cpus, stay a number. */
#define NODES_MAX          100000u
#define TASKS_PER_NODE_MAX 10000u

/* 1, the entry and its number when the keyword is set; 0 and the number 1 when not; or a failure. The number
 * of a late value is 0: only the job's own item tells it. */
static int read_nodes(struct reader *r, const char *keyword, uint64_t most, struct entry *ret,
                      uint64_t *ret_number)
{
        int rc = entry_get(r, keyword, ret);

        *ret_number = rc > 0 ? 0 : 1;
        if (rc <= 0 || ret->late)
                return rc;
        if (str_to_u64(buf_view(&ret->text), ret_number) != 0 || *ret_number < 1 || *ret_number > most)
                return entry_fail(r, ret, "'" STR_FMT "' is not a number from 1 to %llu",
                                  STR_ARG(str_head(buf_view(&ret->text), 60)), (unsigned long long)most);
        return 1;
}

/* Multiplies by `number`, or where that is 0 by the expression `factor`, whose entry is e. */
static int multiply_attribute(struct reader *r, const char *attribute, uint64_t number, const char *factor,
                              const struct entry *e)
{
        const struct form_attribute *a = form_get(r->part, str_of(attribute));
        BUF_CLEANUP struct buf text = {.max = CONDOR_VALUE_MAX};
        struct entry product = {.at = e->at, .keyword = e->keyword, .late = e->late};
        uint64_t each;

        if (!a || number == 1)
                return 0;
        product.late |= a->late;
        if (number && str_to_u64(str_of(a->text), &each) == 0 && each <= UINT32_MAX)
                buf_printf(&text, "%llu", (unsigned long long)(each * number));
        else
                buf_printf(&text, "(%s) * %s", a->text, factor);
        return attribute_expression(r, attribute, &product, buf_view(&text));
}

int nodes_make(struct reader *r)
{
        ENTRY_CLEANUP struct entry nodes = {0}, tasks = {0};
        BUF_CLEANUP struct buf factor = {.max = CONDOR_VALUE_MAX};
        uint64_t node_count, task_count;
        int rc = read_nodes(r, "request_nodes", NODES_MAX, &nodes, &node_count);
        int with_tasks =
                rc < 0 ? rc : read_nodes(r, "tasks_per_node", TASKS_PER_NODE_MAX, &tasks, &task_count);

        if (with_tasks < 0)
                return with_tasks;
        if (rc == 0 && with_tasks)
                reader_warn(r, tasks.at, "tasks_per_node does nothing without request_nodes");
        if (rc == 0)
                return 0;
        if (r->gangs)
                return entry_fail(r, &nodes, "each job of a gang has one node: leave out request_nodes or %s",
                                  r->universe == UNIVERSE_PARALLEL ? "machine_count" : "gang_size");
        if (r->universe == UNIVERSE_DATA)
                return entry_fail(r, &nodes, "a placement job has no nodes");
        rc = attribute_expression(r, "NodeCount", &nodes, buf_view(&nodes.text));
        if (rc == 0 && with_tasks)
                rc = attribute_expression(r, "TasksPerNode", &tasks, buf_view(&tasks.text));
        buf_printf(&factor, "(" STR_FMT ")", STR_ARG(buf_view(&nodes.text)));
        if (rc == 0)
                rc = multiply_attribute(r, "RequestMemory", node_count, buf_z(&factor), &nodes);
        if (rc == 0)
                rc = multiply_attribute(r, "RequestGPUs", node_count, buf_z(&factor), &nodes);
        if (with_tasks)
                buf_printf(&factor, " * (" STR_FMT ")", STR_ARG(buf_view(&tasks.text)));
        nodes.late |= tasks.late;
        if (rc == 0)
                rc = multiply_attribute(r, "RequestCpus", node_count * task_count, buf_z(&factor), &nodes);
        return rc;
}

void nodes_clauses(const struct reader *r, struct buf *out)
{
        const struct form_attribute *a = form_get(r->part, STR("NodeCount"));

        if (!a || strcmp(a->text, "1") == 0)
                return;
        clause_add(out, "(TARGET.MaxNodes >= MY.NodeCount) && "
                        "(TARGET.NodeCpus >= MY.RequestCpus / MY.NodeCount)");
        if (form_get(r->part, STR("RequestMemory")))
                clause_add(out, "(TARGET.NodeMemory >= MY.RequestMemory / MY.NodeCount)");
}
