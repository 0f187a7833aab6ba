/* GET /metrics: the server's state and its counters, for Prometheus. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/format/exposition.h"
#include "base/map.h"
#include "base/system/clock.h"
#include "core/query.h"
#include "server/agents/agents.h"
#include "server/api/routes.h"
#include "server/metrics/metrics.h"

static void with(struct buf *out, const char *name, const char *label, const char *value, double v)
{
        exposition_value(out, name, (struct exposition_label[]){{label, value}, {NULL, NULL}}, v);
}

/* ---- state of the core */

static void write_jobs(struct server *s, struct buf *out)
{
        struct core_counts n;

        core_totals(s->core, &n);
        exposition_family(out, "drover_jobs", "gauge", "Jobs in the queue now, by state.");
        with(out, "drover_jobs", "state", "idle", (double)n.idle);
        with(out, "drover_jobs", "state", "running", (double)n.running);
        with(out, "drover_jobs", "state", "held", (double)n.held);
}

/* Sums over the queues of one name, of all agents. */
struct place_now {
        const char *name;
        uint64_t open, closed, attempts, running;
};
struct places {
        struct map *by_name; /* name → struct place_now */
};

static void on_queue(void *arg, const struct core_queue_view *q)
{
        struct places *x = arg;
        struct str key = str_of(q->queue);
        struct place_now *p = map_get(x->by_name, key);

        if (!p && map_count(x->by_name) >= METRICS_NAMES_MAX)
                p = map_get(x->by_name, key = STR(METRICS_OTHER));
        if (!p) {
                p = mem_new(struct place_now);
                map_put(x->by_name, key, p);
        }
        if (q->connected && !q->closed && !q->unreachable)
                p->open++;
        else
                p->closed++;
        p->attempts += q->attempts;
        p->running += q->running;
}

static void write_queues(struct server *s, struct buf *out)
{
        static const struct {
                const char *name, *help;
        } families[] = {
                {"drover_queues_open", "Agents whose queue of this name takes jobs now."},
                {"drover_queues_closed",
                 "Agents whose queue of this name takes none: it is closed, or they are away."},
                {"drover_queue_attempts", "Attempts that queues of this name have now."},
                {"drover_queue_running", "Of these, attempts that run."},
        };
        struct places x = {map_new()};
        struct str name;
        void *v;

        core_queues(s->core, on_queue, &x);
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
                exposition_family(out, families[i].name, "gauge", families[i].help);
                for (size_t at = 0; map_next(x.by_name, &at, &name, &v);) {
                        const struct place_now *p = v;
                        const uint64_t values[] = {p->open, p->closed, p->attempts, p->running};
                        char text[256];

                        snprintf(text, sizeof(text), STR_FMT, STR_ARG(name));
                        with(out, families[i].name, "queue", text, (double)values[i]);
                }
        }
        map_free_values(x.by_name);
}

struct accounts {
        struct buf *out;
        const char *family;
        int which;
        unsigned count;
};

static void on_account(void *arg, const struct core_account *a)
{
        struct accounts *x = arg;
        const double values[] = {(double)a->running, (double)a->waiting, a->usage_s};

        if (a->user && x->count++ < METRICS_NAMES_MAX)
                with(x->out, x->family, "account", a->path, values[x->which]);
}

static void write_accounts(struct server *s, struct buf *out)
{
        static const struct {
                const char *name, *help;
        } families[] = {
                {"drover_account_running", "Attempts that are charged to the account now."},
                {"drover_account_waiting", "Idle jobs of the account."},
                {"drover_account_usage_seconds",
                 "Processor time that fair share holds against the account; it decays."},
        };

        for (int i = 0; i < 3; i++) {
                struct accounts x = {out, families[i].name, i, 0};

                exposition_family(out, families[i].name, "gauge", families[i].help);
                core_accounts(s->core, on_account, &x);
        }
}

static void write_agents(struct server *s, struct buf *out)
{
        uint64_t connected = 0, away = 0;
        struct agent *a;

        for (size_t at = 0; agents_next(s, &at, &a);)
                *(a->session ? &connected : &away) += 1;
        exposition_family(out, "drover_agents", "gauge",
                          "Agents that came since the server was started, by state.");
        with(out, "drover_agents", "state", "connected", (double)connected);
        with(out, "drover_agents", "state", "away", (double)away);
}

struct node_counts {
        const char *names[NODE_STATES + 1]; /* "up" is shown as idle or busy */
        unsigned n[NODE_STATES + 1];
};

static void count_node(void *arg, const struct core_node *n)
{
        struct node_counts *x = arg;

        for (size_t i = 0; i < NODE_STATES + 1; i++)
                if (x->names[i] && strcmp(x->names[i], n->state_name) == 0)
                        x->n[i]++;
}

static void write_nodes(struct server *s, struct buf *out)
{
        struct node_counts x = {{"idle", "busy"}, {0}};

        for (unsigned i = NODE_BOOTING; i < NODE_STATES; i++)
                x.names[i] = sm_state(&node_states, i);
        core_nodes(s->core, count_node, &x);
        exposition_family(out, "drover_nodes", "gauge", "Machines of agents, by state.");
        for (size_t i = 0; i < NODE_STATES + 1; i++)
                if (x.names[i])
                        with(out, "drover_nodes", "state", x.names[i], (double)x.n[i]);
        if (!s->config.provision.provisioner_count)
                return;
        exposition_gauge(out, "drover_provision_spent", "Spent for machines in this calendar month.",
                         (double)core_spent_micro(s->core) / 1e6);
        if (s->config.provision.month_micro >= 0)
                exposition_gauge(out, "drover_provision_budget", "The month's budget for machines.",
                                 (double)s->config.provision.month_micro / 1e6);
}

static void write_store(const struct server *s, struct buf *out)
{
        static const char *const suffixes[] = {"", "-wal"};
        double bytes = 0;
        bool found = false;

        for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
                char path[4096];
                struct stat st;

                snprintf(path, sizeof(path), "%s%s", s->paths.store, suffixes[i]);
                if (stat(path, &st) == 0) {
                        found = true;
                        bytes += (double)st.st_size;
                }
        }
        if (found)
                exposition_gauge(out, "drover_store_bytes", "Size of the database's files.", bytes);
}

static void finish(struct server *s, struct call *c)
{
        metrics_write_calls(s->metrics, &c->out);
        c->content_type = EXPOSITION_TYPE;
        call_reply(c);
}

/* Runs on the reader thread. */
static void look_at_process(struct server *s, struct call *c)
{
        struct buf *out = &c->out;

        write_store(s, out);
        exposition_process(out);
        call_io(c, finish);
}

/* ---- steps of the call: core, reader, I/O thread */

static void read_metrics(struct server *s, struct call *c)
{
        struct core_moved moved;
        struct buf *out = &c->out;

        core_bytes_moved(s->core, &moved);
        exposition_family(out, "drover_build_info", "gauge", "Always 1; the version is a label.");
        with(out, "drover_build_info", "version", DROVER_VERSION, 1);
        write_jobs(s, out);
        write_agents(s, out);
        write_nodes(s, out);
        write_queues(s, out);
        write_accounts(s, out);
        exposition_family(out, "drover_transferred_bytes_total", "counter",
                          "Bytes copied to jobs (in) and from them (out).");
        with(out, "drover_transferred_bytes_total", "direction", "in", (double)moved.bytes_in);
        with(out, "drover_transferred_bytes_total", "direction", "out", (double)moved.bytes_out);
        exposition_counter(out, "drover_log_records_total", "Records of the log that are durable.",
                           (double)atomic_load(&s->durable_seq));
        exposition_gauge(out, "drover_store_full", "1 while the disk is full and no work is accepted.",
                         turn_full(s->turn));
        metrics_write(s->metrics, out);
        call_reader(c, look_at_process);
}

void api_metrics(struct server *s, struct call *c)
{
        (void)s;
        call_core(c, read_metrics);
}
