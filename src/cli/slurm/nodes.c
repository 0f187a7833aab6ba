#include "cli/slurm/nodes.h"

#include <stdlib.h>

#include "base/mem.h"
#include "cli/client/api.h"
#include "cli/terminal/human.h"

static const struct {
        const char *name, *brief;
} states[NODE_STATES] = {[NODE_ALLOCATED] = {"allocated", "alloc"},
                         [NODE_MIXED] = {"mixed", "mix"},
                         [NODE_IDLE] = {"idle", "idle"},
                         [NODE_DRAINING] = {"draining", "drng"},
                         [NODE_DRAINED] = {"drained", "drain"},
                         [NODE_DOWN] = {"down*", "down*"}};

const char *node_state_name(enum node_state state)
{
        return states[state].name;
}

const char *node_state_short(enum node_state state)
{
        return states[state].brief;
}

bool node_state_in(enum node_state state, const char *list)
{
        struct str rest = str_of(list), one;

        while (rest.p && str_cut(&rest, ',', &one))
                if (str_ieqz(one, states[state].name) || str_ieqz(one, states[state].brief) ||
                    (state == NODE_DOWN && str_ieqz(one, "down")) ||
                    ((state == NODE_DRAINING || state == NODE_DRAINED) && str_ieqz(one, "drain")))
                        return true;
        return false;
}

bool node_has(const struct node *n, const char *partition)
{
        for (size_t i = 0; i < n->partition_count; i++)
                if (strcmp(n->partitions[i], partition) == 0)
                        return true;
        return false;
}

static char *text_of(struct view v)
{
        BUF_CLEANUP struct buf text = {0}, safe = {0};

        view_text(v, &text);
        human_safe(&safe, buf_view(&text));
        return safe.n ? buf_take(&safe) : NULL;
}

static void add_partition(struct nodes *all, const char *name)
{
        for (size_t i = 0; i < all->partition_count; i++)
                if (strcmp(all->partitions[i], name) == 0)
                        return;
        MEM_GROW(all->partitions, all->partition_cap, all->partition_count + 1);
        all->partitions[all->partition_count++] = mem_dupz(name);
}

/* Queues of one agent may share its machine: what is free at the freest is what the node has. */
static void add_queue(struct nodes *all, struct node *n, struct view queue)
{
        struct view ad = view_get(queue, "ad"), total = view_get(queue, "total"),
                    free_now = view_get(queue, "free");
        int64_t cpus = view_integer(view_get(total, "cpus"), 0),
                memory = view_integer(view_get(total, "memory_mib"), 0),
                disk = view_integer(view_get(total, "disk_kib"), 0) / 1024;
        BUF_CLEANUP struct buf load = {0};
        double value;
        char *name;

        if (view_is(view_get(ad, "Runner"), "mover") || n->partition_count == PARTITIONS_MAX)
                return;
        name = text_of(view_get(queue, "name"));
        if (!name)
                return;
        n->partitions[n->partition_count++] = name;
        add_partition(all, name);
        if (cpus > n->cpus) {
                n->cpus = cpus;
                n->free_cpus = view_integer(view_get(free_now, "cpus"), 0);
        }
        if (memory > n->memory_mib) {
                n->memory_mib = memory;
                n->free_memory_mib = view_integer(view_get(free_now, "memory_mib"), 0);
        }
        n->disk_mib = disk > n->disk_mib ? disk : n->disk_mib;
        n->gpus += view_integer(view_get(ad, "TotalGPUs"), view_integer(view_get(ad, "GPUs"), 0));
        n->running += view_integer(view_get(queue, "running"), 0);
        view_text(view_get(ad, "LoadAvg"), &load);
        if (str_to_double(buf_view(&load), &value) == 0)
                n->load = value;
        if (!n->features)
                n->features = text_of(view_get(ad, "Features"));
        if (!n->arch)
                n->arch = text_of(view_get(ad, "Arch"));
}

static void read_node(struct nodes *all, struct view agent)
{
        struct node n = {.name = text_of(view_get(agent, "name")),
                         .host = text_of(view_get(agent, "hostname")),
                         .reason = text_of(view_get(agent, "drained")),
                         .program = text_of(view_get(agent, "program"))};
        struct view queue;

        if (!n.name)
                n.name = mem_dupz("unknown");
        if (!n.host)
                n.host = mem_dupz(n.name);
        for (size_t at = 0; view_next(view_get(agent, "queues"), &at, &queue);)
                add_queue(all, &n, queue);
        if (n.free_cpus < 0 || n.free_cpus > n.cpus)
                n.free_cpus = n.free_cpus < 0 ? 0 : n.cpus;
        n.state = !view_is(view_get(agent, "state"), "connected") || view_true(view_get(agent, "revoked"))
                          ? NODE_DOWN
                  : view_there(view_get(agent, "drained"))  ? (n.running ? NODE_DRAINING : NODE_DRAINED)
                  : n.free_cpus == n.cpus && n.running == 0 ? NODE_IDLE
                  : n.free_cpus == 0                        ? NODE_ALLOCATED
                                                            : NODE_MIXED;
        MEM_GROW(all->items, all->cap, all->count + 1);
        all->items[all->count++] = n;
}

int nodes_read(struct cli *cli, struct nodes *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view agent;
        int code = api_get(cli, "/v1/agents", &answer);

        if (code != 0)
                return 1;
        for (size_t at = 0;
             ret->count < NODES_MAX && view_next(view_get(answer.root, "agents"), &at, &agent);)
                read_node(ret, agent);
        return 0;
}

void nodes_deinit(struct nodes *n)
{
        for (size_t i = 0; i < n->count; i++) {
                struct node *one = &n->items[i];

                for (size_t k = 0; k < one->partition_count; k++)
                        free(one->partitions[k]);
                free(one->name);
                free(one->host);
                free(one->reason);
                free(one->features);
                free(one->program);
                free(one->arch);
        }
        free(n->items);
        for (size_t i = 0; i < n->partition_count; i++)
                free(n->partitions[i]);
        free(n->partitions);
}
