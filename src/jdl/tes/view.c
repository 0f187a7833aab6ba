/* Writes a job as a task of the service. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "jdl/tes/tes.h"

static const char *const state_names[TES_STATES] = {
        [TES_UNKNOWN] = "UNKNOWN",
        [TES_QUEUED] = "QUEUED",
        [TES_INITIALIZING] = "INITIALIZING",
        [TES_RUNNING] = "RUNNING",
        [TES_PAUSED] = "PAUSED",
        [TES_COMPLETE] = "COMPLETE",
        [TES_EXECUTOR_ERROR] = "EXECUTOR_ERROR",
        [TES_SYSTEM_ERROR] = "SYSTEM_ERROR",
        [TES_CANCELED] = "CANCELED",
        [TES_PREEMPTED] = "PREEMPTED",
        [TES_CANCELING] = "CANCELING",
};

const char *tes_state_name(enum tes_state s)
{
        return state_names[s];
}

int tes_state_read(struct str name, enum tes_state *ret)
{
        for (int i = 0; i < TES_STATES; i++)
                if (str_eqz(name, state_names[i])) {
                        *ret = (enum tes_state)i;
                        return 0;
                }
        return -EINVAL;
}

int tes_view_read(struct str name, enum tes_view *ret)
{
        static const char *const names[] = {"MINIMAL", "BASIC", "FULL"};

        for (int i = 0; i < 3; i++)
                if (str_eqz(name, names[i])) {
                        *ret = (enum tes_view)i;
                        return 0;
                }
        return -EINVAL;
}

/* Writes a time in RFC 3339; nothing for a time that has not come. */
static void write_time(struct json *j, const char *key, int64_t ms)
{
        time_t s = (time_t)(ms / 1000);
        struct tm tm;
        char text[40], whole[48];

        if (ms <= 0 || !gmtime_r(&s, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
                return;
        snprintf(whole, sizeof(whole), "%s.%03dZ", text, (int)(ms % 1000));
        json_kstrz(j, key, whole);
}

static void write_value(struct json *j, const char *key, const json_t *v)
{
        char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

        json_key(j, key);
        json_raw(j, str_of(text ? text : "null"));
        free(text);
}

static void write_inputs(struct json *j, const json_t *inputs, enum tes_view view)
{
        json_t *one, *v;
        const char *key;
        size_t i;

        json_key(j, "inputs");
        json_open(j, '[');
        json_array_foreach (inputs, i, one) {
                json_open(j, '{');
                json_object_foreach (one, key, v)
                        if (view == TES_FULL || !str_eqz(STR("content"), key))
                                write_value(j, key, v);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static bool is_servers(const char *key)
{
        static const char *const servers[] = {"id", "state", "logs", "creation_time"};

        for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++)
                if (str_eqz(str_of(key), servers[i]))
                        return true;
        return false;
}

static void write_asked(struct json *j, const json_t *task, enum tes_view view)
{
        json_t *v;
        const char *key;

        json_object_foreach ((json_t *)(uintptr_t)task, key, v)
                if (json_is_null(v) || is_servers(key))
                        continue;
                else if (str_eqz(STR("inputs"), key))
                        write_inputs(j, v, view);
                else
                        write_value(j, key, v);
}

static void write_executor(struct json *j, const struct tes_executor_log *l, enum tes_view view)
{
        json_open(j, '{');
        write_time(j, "start_time", l->started_ms);
        write_time(j, "end_time", l->ended_ms);
        if (view == TES_FULL) {
                json_kstr(j, "stdout", l->out[0]);
                json_kstr(j, "stderr", l->out[1]);
        }
        json_kint(j, "exit_code", l->exit_code);
        json_close(j, '}');
}

static void write_log(struct json *j, const json_t *warnings, enum tes_view view, const struct tes_status *s)
{
        json_t *one;
        size_t i;

        json_open(j, '{');
        json_key(j, "logs");
        json_open(j, '[');
        for (size_t k = 0; k < s->log_count; k++)
                write_executor(j, &s->logs[k], view);
        json_close(j, ']');
        json_key(j, "metadata");
        json_open(j, '{');
        if (s->host.n)
                json_kstr(j, "host", s->host);
        json_close(j, '}');
        write_time(j, "start_time", s->started_ms);
        write_time(j, "end_time", s->ended_ms);
        json_key(j, "outputs");
        json_open(j, '[');
        json_close(j, ']');
        if (view == TES_FULL) {
                json_key(j, "system_logs");
                json_open(j, '[');
                json_array_foreach (warnings, i, one)
                        if (json_is_string(one))
                                json_strz(j, json_string_value(one));
                if (s->reason.n)
                        json_str(j, s->reason);
                json_close(j, ']');
        }
        json_close(j, '}');
}

void tes_write(struct json *j, const json_t *kept, enum tes_view view, const struct tes_status *s)
{
        const json_t *task = json_object_get(kept, "task"), *warnings = json_object_get(kept, "warnings");
        char id[24];

        snprintf(id, sizeof(id), "%llu", (unsigned long long)s->id);
        json_open(j, '{');
        json_kstrz(j, "id", id);
        json_kstrz(j, "state", tes_state_name(s->state));
        if (view != TES_MINIMAL && json_is_object(task)) {
                write_asked(j, task, view);
                json_key(j, "logs");
                json_open(j, '[');
                if (s->started_ms || s->log_count || s->reason.n || json_array_size(warnings))
                        write_log(j, warnings, view, s);
                json_close(j, ']');
                write_time(j, "creation_time", s->created_ms);
        }
        json_close(j, '}');
}

bool tes_ignores_last(const json_t *kept)
{
        const json_t *all = json_object_get(json_object_get(kept, "task"), "executors");
        size_t n = json_array_size(all);

        return n && json_is_true(json_object_get(json_array_get(all, n - 1), "ignore_error"));
}

bool tes_matches(const json_t *kept, struct str name_prefix, const struct str *keys, const struct str *values,
                 size_t count)
{
        const json_t *task = json_object_get(kept, "task"), *tags = json_object_get(task, "tags");

        if (!str_starts(str_of(json_string_value(json_object_get(task, "name"))), name_prefix))
                return false;
        for (size_t i = 0; i < count; i++) {
                MEM_CLEANUP char *key = str_dupz(keys[i]);
                const json_t *v = json_object_get(tags, key);

                if (!v || (values[i].n && !str_eqz(values[i], json_string_value(v))))
                        return false;
        }
        return true;
}
