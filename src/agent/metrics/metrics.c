#include "agent/metrics/metrics.h"

#include <stdlib.h>

#include "agent/model/queue.h"
#include "agent/queue/queues.h"
#include "agent/queue/sensors.h"
#include "agent/transfer/cache.h"
#include "agent/transfer/movers.h"
#include "base/format/exposition.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "ev/http.h"

static const char *const states[ATTEMPT_STATES] = {
        [ATTEMPT_WAITING] = "waiting",       [ATTEMPT_STAGING] = "staging", [ATTEMPT_RUNNING] = "running",
        [ATTEMPT_DELIVERING] = "delivering", [ATTEMPT_DONE] = "done",
};
static const char *const outcomes[OUTCOMES] = {
        [OUTCOME_EXITED] = "exited",
        [OUTCOME_NOT_STARTED] = "not_started",
        [OUTCOME_STAGING_FAILED] = "staging_failed",
        [OUTCOME_LIMIT_EXCEEDED] = "limit_exceeded",
        [OUTCOME_KILLED] = "killed",
        [OUTCOME_LOST] = "lost",
};

static void write_sample(struct buf *out, const char *name, const struct queue *q, const char *label,
                         const char *value, double number)
{
        exposition_value(
                out, name,
                (struct exposition_label[]){{"queue", q->config->name}, {label, value}, {NULL, NULL}},
                number);
}

static void write_queues(const struct agent *a, struct buf *out)
{
        exposition_family(out, "drover_agent_attempts", "gauge",
                          "Attempts of jobs that are here; done: their results are not acknowledged yet.");
        for (size_t i = 0; i < a->queue_count; i++)
                for (int s = 0; s < ATTEMPT_STATES; s++)
                        write_sample(out, "drover_agent_attempts", a->queues[i], "state", states[s],
                                     (double)a->queues[i]->counts[s]);
        exposition_family(out, "drover_agent_attempts_ended_total", "counter",
                          "Attempts that have ended here, since the agent's start.");
        for (size_t i = 0; i < a->queue_count; i++)
                for (int o = 0; o < OUTCOMES; o++)
                        write_sample(out, "drover_agent_attempts_ended_total", a->queues[i], "outcome",
                                     outcomes[o], (double)a->queues[i]->ended[o]);
        exposition_family(
                out, "drover_agent_queue_ready", "gauge",
                "1: the queue's runner answers, and what it had before the agent's start is known.");
        for (size_t i = 0; i < a->queue_count; i++)
                write_sample(out, "drover_agent_queue_ready", a->queues[i], NULL, NULL,
                             a->queues[i]->backend->ready && !a->queues[i]->backend->unreachable);
}

static void add_sensor(void *arg, const char *sensor, struct str attribute, double value)
{
        MEM_CLEANUP char *name = str_dupz(attribute);

        exposition_value(arg, "drover_agent_sensor",
                         (struct exposition_label[]){{"sensor", sensor}, {"attribute", name}, {NULL, NULL}},
                         value);
}

static void write_sensors(const struct agent *a, struct buf *out)
{
        exposition_family(out, "drover_agent_sensor", "gauge",
                          "What the site's sensors report, if it is a number, or true (1) or false (0).");
        sensors_numbers(a, add_sensor, out);
        if (sensors_health(a) >= 0)
                exposition_gauge(out, "drover_agent_healthy", "0: the health check fails.",
                                 sensors_health(a));
}

static void write_committed(const struct agent *a, struct buf *out)
{
        static const struct {
                const char *name, *help;
                size_t offset;
                double unit;
        } rows[] = {
                {"drover_agent_committed_cpus", "Processors that attempts of the queue have.",
                 offsetof(struct queue, committed_cpus_milli), 1000},
                {"drover_agent_committed_memory_bytes", "Memory that attempts of the queue have asked for.",
                 offsetof(struct queue, committed_memory_bytes), 1},
                {"drover_agent_committed_disk_bytes", "Disk that attempts of the queue have asked for.",
                 offsetof(struct queue, committed_disk_bytes), 1},
        };

        for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
                exposition_family(out, rows[r].name, "gauge", rows[r].help);
                for (size_t i = 0; i < a->queue_count; i++)
                        write_sample(out, rows[r].name, a->queues[i], NULL, NULL,
                                     (double)*(const uint64_t *)(const void *)((const char *)a->queues[i] +
                                                                               rows[r].offset) /
                                             rows[r].unit);
        }
}

static void write_agent(struct agent *a, struct buf *out)
{
        int64_t end = lease_clock_end(&a->lease);
        size_t waiting, moving = movers_count(a, &waiting);

        exposition_family(out, "drover_agent_build_info", "gauge", "Always 1; the version is a label.");
        exposition_value(out, "drover_agent_build_info",
                         (struct exposition_label[]){{"version", DROVER_VERSION}, {NULL, NULL}}, 1);
        exposition_gauge(out, "drover_agent_connected", "1: a session with the server is open.", a->greeted);
        if (end != LEASE_CLOCK_NEVER)
                exposition_gauge(out, "drover_agent_lease_seconds",
                                 "Until the jobs here end without the server.",
                                 (double)(end - clock_boot_ms()) / 1000);
        exposition_gauge(out, "drover_agent_journal_writable",
                         "0: the journal cannot be written, and no job is taken.", a->journal_error == 0);
        write_queues(a, out);
        write_committed(a, out);
        write_sensors(a, out);
        exposition_gauge(out, "drover_agent_cache_bytes", "Inputs that are kept.",
                         (double)cache_bytes(a->cache));
        exposition_gauge(out, "drover_agent_cache_limit_bytes", "Inputs that may be kept.",
                         (double)a->config.cache_bytes);
        exposition_gauge(out, "drover_agent_transfers", "Transfers of URLs that are under way.",
                         (double)moving);
        exposition_gauge(out, "drover_agent_transfers_waiting", "Transfers of URLs that wait for a turn.",
                         (double)waiting);
        exposition_process(out);
}

static void on_request(void *agent, struct http_request *r)
{
        struct agent *a = agent;
        struct buf out = {0};
        int status = 200;

        if (!str_eqz(http_path(r), "/metrics")) {
                buf_addz(&out, "only /metrics is here\n");
                status = 404;
        } else if (http_method(r) != HTTP_GET && http_method(r) != HTTP_HEAD) {
                http_add_header(r, "Allow", "GET, HEAD");
                status = 405;
        } else {
                write_agent(a, &out);
        }
        http_reply(r, status, EXPOSITION_TYPE, &out);
        buf_deinit(&out);
}

int metrics_open(struct agent *a, struct err *err)
{
        const char *address;
        int r;

        if (!a->config.metrics)
                return 0;
        a->metrics = http_server_new(a->loop, on_request, a);
        r = http_server_listen(a->metrics, a->config.metrics, 0600, NULL, &address, err);
        if (r == 0)
                log_info("msg=\"numbers for monitoring are served\" address=%s path=/metrics", address);
        return r;
}

void metrics_close(struct agent *a)
{
        if (a->metrics)
                http_server_free(a->metrics);
        a->metrics = NULL;
}
