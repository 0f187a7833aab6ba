#include "cli/slurm/node_json.h"

#include "base/format/json.h"

/* Returns the base state that Slurm gives a node; DRAIN is a flag beside it. */
static const char *base_state(const struct node *n)
{
        return n->state == NODE_DOWN                        ? "down"
               : n->free_cpus == n->cpus && n->running == 0 ? "idle"
               : n->free_cpus == 0                          ? "allocated"
                                                            : "mixed";
}

static void node_json_add_text(struct json *j, const char *key, const char *text)
{
        json_kstrz(j, key, text ? text : "");
}

static void node_json_add_flags(struct json *j, const struct node *n)
{
        json_key(j, "state_flags");
        json_open(j, '[');
        if (n->state == NODE_DRAINING || n->state == NODE_DRAINED)
                json_strz(j, "DRAIN");
        if (n->state == NODE_DOWN)
                json_strz(j, "NOT_RESPONDING");
        json_close(j, ']');
}

static void node_json_add_tres(struct json *j, const char *key, int64_t cpus, int64_t memory_mib,
                               const char *more, int64_t count)
{
        BUF_CLEANUP struct buf text = {0};

        buf_printf(&text, "cpu=%lld,mem=%lldM", (long long)cpus, (long long)memory_mib);
        if (count)
                buf_printf(&text, ",%s=%lld", more, (long long)count);
        json_kstr(j, key, buf_view(&text));
}

void node_json(const struct node *n, struct buf *out)
{
        struct json j = {.out = out};
        BUF_CLEANUP struct buf gres = {0};

        if (n->gpus)
                buf_printf(&gres, "gpu:%lld", (long long)n->gpus);
        json_open(&j, '{');
        json_kstrz(&j, "name", n->name);
        json_kstrz(&j, "hostname", n->host);
        json_kstrz(&j, "address", n->host);
        node_json_add_text(&j, "architecture", n->arch);
        json_kstrz(&j, "state", base_state(n));
        node_json_add_flags(&j, n);
        node_json_add_text(&j, "reason", n->reason);
        json_key(&j, "partitions");
        json_open(&j, '[');
        for (size_t i = 0; i < n->partition_count; i++)
                json_strz(&j, n->partitions[i]);
        json_close(&j, ']');
        node_json_add_text(&j, "features", n->features);
        node_json_add_text(&j, "active_features", n->features);
        json_kint(&j, "boards", 1);
        json_kint(&j, "sockets", n->cpus);
        json_kint(&j, "cores", 1);
        json_kint(&j, "threads", 1);
        json_kint(&j, "cpus", n->cpus);
        json_kint(&j, "alloc_cpus", n->cpus - n->free_cpus);
        json_kint(&j, "idle_cpus", n->free_cpus);
        json_kint(&j, "cpu_load", (int64_t)(n->load * 100));
        json_kint(&j, "real_memory", n->memory_mib);
        json_kint(&j, "alloc_memory", n->memory_mib - n->free_memory_mib);
        json_kint(&j, "free_memory", n->free_memory_mib);
        json_kint(&j, "temporary_disk", n->disk_mib);
        json_kint(&j, "weight", 1);
        json_kstr(&j, "gres", buf_view(&gres));
        node_json_add_tres(&j, "tres", n->cpus, n->memory_mib, "gres/gpu", n->gpus);
        node_json_add_tres(&j, "tres_used", n->cpus - n->free_cpus, n->memory_mib - n->free_memory_mib, NULL,
                           0);
        node_json_add_text(&j, "slurmd_version", n->program);
        json_close(&j, '}');
}

void partition_json(const struct nodes *all, const char *name, struct buf *out)
{
        struct json j = {.out = out};
        BUF_CLEANUP struct buf nodes = {0};
        int64_t cpus = 0, memory_mib = 0, count = 0;

        for (size_t i = 0; i < all->count; i++) {
                const struct node *n = &all->items[i];

                if (!node_has(n, name))
                        continue;
                buf_printf(&nodes, "%s%s", count++ ? "," : "", n->name);
                cpus += n->cpus;
                memory_mib += n->memory_mib;
        }
        json_open(&j, '{');
        json_kstrz(&j, "name", name);
        json_kstrz(&j, "state", "UP");
        json_key(&j, "flags");
        json_open(&j, '[');
        if (all->partition_count == 1)
                json_strz(&j, "default");
        json_close(&j, ']');
        json_kstr(&j, "nodes", buf_view(&nodes));
        json_kint(&j, "total_nodes", count);
        json_kint(&j, "total_cpus", cpus);
        json_kint(&j, "priority_job_factor", 1);
        json_kint(&j, "priority_tier", 1);
        json_key(&j, "max_time_limit");
        json_null(&j);
        json_key(&j, "default_time_limit");
        json_null(&j);
        node_json_add_tres(&j, "tres", cpus, memory_mib, "node", count);
        json_close(&j, '}');
}
