#include "run/batch/shape.h"

#define NODES_MAX          100000u
#define TASKS_PER_NODE_MAX 10000u

/* Returns the number in the job's attribute; 1 if there is none, or if it is larger than any system allows.
 */
static uint64_t word_number(const struct run_spec *spec, const char *name, uint64_t most)
{
        const char *const names[] = {name, NULL}, *value = batch_word(spec, names, NULL, NULL);
        uint64_t n;

        return value && str_to_u64(str_of(value), &n) == 0 && n >= 1 && n <= most ? n : 1;
}

static uint64_t divide_up(uint64_t n, uint64_t by)
{
        return n / by + (n % by != 0);
}

struct batch_shape batch_shape_of(const struct run_spec *spec)
{
        struct batch_shape s = {.nodes = word_number(spec, "NodeCount", NODES_MAX),
                                .tasks = word_number(spec, "TasksPerNode", TASKS_PER_NODE_MAX)};

        s.task_cpus = divide_up(divide_up(spec->cpus_milli, 1000), s.nodes * s.tasks);
        s.task_cpus = s.task_cpus ? s.task_cpus : 1;
        s.node_mib = divide_up(divide_up(spec->memory_bytes, 1 << 20), s.nodes);
        s.node_gpus = divide_up(spec->gpus, s.nodes);
        return s;
}
