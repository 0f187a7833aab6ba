#include "cli/slurm/account_json.h"

#include <string.h>

#include "base/format/json.h"

/* Numbers of trackable resources, as Slurm's database has them. */
enum tres { TRES_CPU = 1, TRES_MEMORY = 2, TRES_NODE = 4, TRES_GPU = 1001 };

static void account_json_add_text(struct json *j, const char *key, const struct record *r,
                                  void (*write)(const struct record *r, struct buf *out))
{
        BUF_CLEANUP struct buf text = {0};

        write(r, &text);
        json_kstr(j, key, buf_view(&text));
}

static void account_json_add_attribute(struct json *j, const char *key, const struct record *r,
                                       const char *attribute)
{
        BUF_CLEANUP struct buf text = {0};

        record_text(r, attribute, "", &text);
        json_kstr(j, key, buf_view(&text));
}

static void add_array(struct json *j, const struct record *r)
{
        json_key(j, "array");
        json_open(j, '{');
        json_kint(j, "job_id", r->task >= 0 ? r->request : 0);
        json_key(j, "limits");
        json_raw(j, STR("{\"max\": {\"running\": {\"tasks\": "));
        buf_printf(j->out, "%lld}}}", (long long)view_integer(view_get(r->ad, "JobMaterializeLimit"), 0));
        json_key(j, "task");
        json_null(j);
        json_key(j, "task_id");
        if (r->task >= 0)
                json_int(j, r->task);
        else
                json_null(j);
        json_close(j, '}');
}

static void add_exit_code(struct json *j, const char *key, const struct record *r)
{
        json_key(j, key);
        json_open(j, '{');
        json_kstrz(j, "status",
                   !record_is_over(r) ? "PENDING"
                   : r->exit_signal   ? "SIGNALED"
                   : r->exit_code     ? "ERROR"
                                      : "SUCCESS");
        json_kint(j, "return_code", r->exit_code);
        if (r->exit_signal) {
                json_key(j, "signal");
                json_open(j, '{');
                json_kint(j, "signal_id", r->exit_signal);
                json_kstrz(j, "name", strsignal((int)r->exit_signal));
                json_close(j, '}');
        }
        json_close(j, '}');
}

static void add_seconds(struct json *j, const char *key, int64_t seconds)
{
        json_key(j, key);
        json_open(j, '{');
        json_kint(j, "seconds", seconds);
        json_kint(j, "microseconds", 0);
        json_close(j, '}');
}

static void account_json_add_time(struct json *j, const struct record *r, bool step)
{
        int64_t user = view_integer(view_get(r->ad, "RemoteUserCpu"), 0),
                system = view_integer(view_get(r->ad, "RemoteSysCpu"), 0);

        json_key(j, "time");
        json_open(j, '{');
        json_kint(j, "elapsed", r->elapsed_s);
        json_kint(j, "start", r->started_s);
        json_kint(j, "end", record_is_over(r) ? r->ended_s : 0);
        json_kint(j, "suspended", view_integer(view_get(r->ad, "CumulativeSuspensionTime"), 0));
        if (!step) {
                json_kint(j, "submission", r->submitted_s);
                json_kint(j, "eligible", r->submitted_s);
                json_key(j, "limit");
                if (r->limit_s)
                        json_int(j, (r->limit_s + 59) / 60);
                else
                        json_null(j);
        }
        add_seconds(j, "user", user);
        add_seconds(j, "system", system);
        add_seconds(j, "total", user + system);
        json_close(j, '}');
}

static void add_resource(struct json *j, const char *type, const char *name, enum tres id, int64_t count)
{
        json_open(j, '{');
        json_kstrz(j, "type", type);
        json_kstrz(j, "name", name);
        json_kint(j, "id", id);
        json_kint(j, "count", count);
        json_close(j, '}');
}

static void add_resources(struct json *j, const char *key, const struct record *r, bool any)
{
        int64_t mib = view_integer(view_get(r->ad, "RequestMemory"), 0),
                gpus = view_integer(view_get(r->ad, "RequestGPUs"), 0);

        json_key(j, key);
        json_open(j, '[');
        if (any) {
                add_resource(j, "cpu", NULL, TRES_CPU, r->cpus);
                if (mib)
                        add_resource(j, "mem", NULL, TRES_MEMORY, mib * r->nodes);
                add_resource(j, "node", NULL, TRES_NODE, r->nodes);
                if (gpus)
                        add_resource(j, "gres", "gpu", TRES_GPU, gpus);
        }
        json_close(j, ']');
}

/* The most memory that the step has used is in bytes, as in Slurm. */
static void account_json_add_step(struct json *j, const struct record *r)
{
        BUF_CLEANUP struct buf node = {0};
        int64_t rss_kib = view_integer(view_get(r->ad, "ResidentSetSize"), 0);

        record_node(r, &node);
        json_open(j, '{');
        json_key(j, "step");
        json_open(j, '{');
        json_kint(j, "job_id", record_number(r));
        json_kstrz(j, "id", "batch");
        json_kstrz(j, "name", "batch");
        json_close(j, '}');
        json_kstrz(j, "state", record_state_name(r->state));
        add_exit_code(j, "exit_code", r);
        account_json_add_time(j, r, true);
        json_key(j, "nodes");
        json_open(j, '{');
        json_kint(j, "count", r->nodes);
        json_kstr(j, "range", buf_view(&node));
        json_close(j, '}');
        json_key(j, "tasks");
        json_open(j, '{');
        json_kint(j, "count", 1);
        json_close(j, '}');
        json_key(j, "tres");
        json_open(j, '{');
        json_key(j, "requested");
        json_open(j, '{');
        json_key(j, "max");
        json_open(j, '[');
        if (rss_kib)
                add_resource(j, "mem", NULL, TRES_MEMORY, rss_kib * 1024);
        json_close(j, ']');
        json_close(j, '}');
        add_resources(j, "allocated", r, true);
        json_close(j, '}');
        json_close(j, '}');
}

void account_json(const struct record *r, bool steps, struct buf *out)
{
        struct json j = {.out = out};

        json_open(&j, '{');
        json_kint(&j, "job_id", record_number(r));
        add_array(&j, r);
        account_json_add_text(&j, "name", r, record_name);
        account_json_add_text(&j, "user", r, record_owner);
        account_json_add_attribute(&j, "account", r, "AcctGroup");
        json_kstrz(&j, "cluster", "drover");
        account_json_add_text(&j, "partition", r, record_partition);
        account_json_add_attribute(&j, "qos", r, "QOS");
        json_key(&j, "state");
        json_open(&j, '{');
        json_kstrz(&j, "current", record_state_name(r->state));
        json_kstrz(&j, "reason", r->reason);
        json_close(&j, '}');
        add_exit_code(&j, "exit_code", r);
        add_exit_code(&j, "derived_exit_code", r);
        account_json_add_time(&j, r, false);
        account_json_add_text(&j, "nodes", r, record_node);
        json_kint(&j, "allocation_nodes", r->started_s ? r->nodes : 0);
        json_kint(&j, "priority", view_integer(view_get(r->ad, "JobPrio"), 0));
        json_key(&j, "required");
        json_open(&j, '{');
        json_kint(&j, "CPUs", r->cpus);
        json_kint(&j, "memory", view_integer(view_get(r->ad, "RequestMemory"), 0));
        json_close(&j, '}');
        json_key(&j, "tres");
        json_open(&j, '{');
        add_resources(&j, "requested", r, true);
        add_resources(&j, "allocated", r, r->started_s > 0);
        json_close(&j, '}');
        json_key(&j, "comment");
        json_open(&j, '{');
        account_json_add_attribute(&j, "job", r, "SlurmComment");
        json_close(&j, '}');
        account_json_add_attribute(&j, "working_directory", r, "Iwd");
        json_key(&j, "steps");
        json_open(&j, '[');
        if (steps)
                account_json_add_step(&j, r);
        json_close(&j, ']');
        json_close(&j, '}');
}
