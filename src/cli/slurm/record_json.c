#include "cli/slurm/record_json.h"

#include <stdio.h>
#include <time.h>

#include "base/format/json.h"

static void record_json_add_text(struct json *j, const char *key, const struct record *r,
                                 void (*write)(const struct record *r, struct buf *out))
{
        BUF_CLEANUP struct buf text = {0};

        write(r, &text);
        json_kstr(j, key, buf_view(&text));
}

static void add_attribute(struct json *j, const char *key, const struct record *r, const char *attribute)
{
        BUF_CLEANUP struct buf text = {0};

        record_text(r, attribute, "", &text);
        json_kstr(j, key, buf_view(&text));
}

static void add_number(struct json *j, const char *key, bool there, int64_t value)
{
        json_key(j, key);
        if (there)
                json_int(j, value);
        else
                json_null(j);
}

static void record_json_add_times(struct json *j, const struct record *r)
{
        json_kint(j, "submit_time", r->submitted_s);
        json_kint(j, "eligible_time", r->submitted_s);
        json_kint(j, "start_time", r->started_s);
        json_kint(j, "end_time", record_is_over(r) ? r->ended_s : 0);
        add_number(j, "time_limit", r->limit_s > 0, r->limit_s / 60);
        json_kint(j, "deadline", view_integer(view_get(r->ad, "SlurmDeadline"), 0));
}

void record_json(const struct record *r, struct buf *out)
{
        struct json j = {.out = out};
        int64_t starts = view_integer(view_get(r->job, "starts"), 0);

        json_open(&j, '{');
        json_kint(&j, "job_id", record_number(r));
        json_kint(&j, "array_job_id", r->task >= 0 ? r->request : 0);
        add_number(&j, "array_task_id", r->task >= 0, r->task);
        record_json_add_text(&j, "name", r, record_name);
        json_kstrz(&j, "job_state", record_state_name(r->state));
        json_kstrz(&j, "state_reason", r->reason);
        record_json_add_text(&j, "user_name", r, record_owner);
        json_kint(&j, "user_id", record_uid(r));
        record_json_add_text(&j, "partition", r, record_partition);
        add_attribute(&j, "account", r, "AcctGroup");
        add_attribute(&j, "qos", r, "QOS");
        record_json_add_text(&j, "nodes", r, record_node);
        record_json_add_text(&j, "batch_host", r, record_node);
        json_kint(&j, "node_count", r->nodes);
        json_kint(&j, "cpus", r->cpus);
        json_kint(&j, "tasks", r->tasks);
        add_number(&j, "memory_per_node", view_there(view_get(r->ad, "RequestMemory")),
                   view_integer(view_get(r->ad, "RequestMemory"), 0));
        record_json_add_times(&j, r);
        json_kint(&j, "exit_code", r->exit_code << 8 | r->exit_signal);
        json_kint(&j, "priority", view_integer(view_get(r->ad, "JobPrio"), 0));
        json_kint(&j, "restart_cnt", starts > 1 ? starts - 1 : 0);
        json_kbool(&j, "requeue", view_integer(view_get(r->ad, "SlurmRequeue"), 1) != 0);
        add_attribute(&j, "comment", r, "SlurmComment");
        add_attribute(&j, "dependency", r, "SlurmDependency");
        add_attribute(&j, "command", r, "SlurmCommand");
        add_attribute(&j, "current_working_directory", r, "Iwd");
        record_json_add_text(&j, "standard_output", r, record_output);
        record_json_add_text(&j, "standard_error", r, record_error);
        add_attribute(&j, "standard_input", r, "In");
        json_kstrz(&j, "cluster", "drover");
        json_close(&j, '}');
}

void record_print_now(const struct cli *cli)
{
        time_t now = (time_t)(cli->now_ms / 1000);
        char text[64];
        struct tm tm;

        if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &tm) > 0)
                printf("%s\n", text);
}
