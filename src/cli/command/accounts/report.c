/* drover report: sums of what attempts have used, and the bank's bill, as text, CSV, JSON, a chart or a page;
 * and the records of attempts themselves, as the OGF's Usage Record 2.0 (GFD.204), CSV or JSON lines. */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "base/format/json.h"
#include "base/format/xml.h"
#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/session_batch.h"
#include "cli/client/session_report.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

#define HOUR_MS    3600000.0
#define GIB        1073741824.0
#define JOULES_KWH 3600000.0
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

/* ---- columns of a group */

static double sum_of(struct view g, const char *key)
{
        return (double)view_integer(view_get(g, key), 0);
}

static double ratio(double a, double b)
{
        return b > 0 ? a / b : 0;
}

enum metric_id {
        ATTEMPTS,
        COMPLETED,
        FAILED,
        LOST,
        SUCCESS,
        WALL_H,
        CPUS_H,
        CPU_H,
        GPUS_H,
        CPU_PART,
        MEMORY_GIB_H,
        MEMORY_PART,
        GIB_IN,
        GIB_OUT,
        ENERGY_KWH,
        STARTS,
        WAIT_MEAN,
        WAIT_MAX,
        AMOUNT,
        FOR_JOBS,
        FOR_RESERVATIONS,
        FOR_OTHERS,
        REFUNDED,
        DEPOSITED,
        RECEIVED,
        SENT,
        WITHDRAWN,
        REQUESTS,
        JOBS,
        METRICS
};
static const struct metric {
        const char *title;
        int digits; /* decimals */
        const char *what;
        const char *key; /* of a number of the server's that is printed as it is; NULL: it is computed */
} metrics[METRICS] = {
        [ATTEMPTS] = {"ATTEMPTS", 0, "attempts that have ended"},
        [COMPLETED] = {"COMPLETED", 0, "exited with code 0"},
        [FAILED] = {"FAILED", 0, "exited otherwise, or passed a limit"},
        [LOST] = {"LOST", 0, "lost with their place"},
        [SUCCESS] = {"SUCCESS%", 1, "completed, of all attempts"},
        [WALL_H] = {"WALL_H", 2, "hours that attempts ran"},
        [CPUS_H] = {"CPUS_H", 2, "processor hours that were held"},
        [CPU_H] = {"CPU_H", 2, "processor hours that were used"},
        [GPUS_H] = {"GPUS_H", 2, "GPU hours that were held"},
        [CPU_PART] = {"CPU%", 1, "of the processors that were held, what was used"},
        [MEMORY_GIB_H] = {"GIB_H", 2, "GiB of memory that were asked for, by hours"},
        [MEMORY_PART] = {"MEMORY%", 1, "of the memory that was asked for, the most that was used"},
        [GIB_IN] = {"GIB_IN", 2, "GiB that were brought to jobs"},
        [GIB_OUT] = {"GIB_OUT", 2, "GiB that were brought back"},
        [ENERGY_KWH] = {"KWH", 3, "kWh that were consumed, as far as places measure it"},
        [STARTS] = {"STARTED", 0, "jobs that began"},
        [WAIT_MEAN] = {"WAIT_MEAN_S", 1, "seconds from submit to start, in the mean"},
        [WAIT_MAX] = {"WAIT_MAX_S", 1, "the longest of these"},
        [AMOUNT] = {"AMOUNT", 0, "to be paid: all charges, less what was refunded", "amount"},
        [FOR_JOBS] = {"FOR_JOBS", 0, "charged for jobs", "for_jobs"},
        [FOR_RESERVATIONS] = {"FOR_RESERVATIONS", 0, "charged for reservations", "for_reservations"},
        [FOR_OTHERS] = {"FOR_OTHERS", 0, "charged by other systems, or by hand", "for_others"},
        [REFUNDED] = {"REFUNDED", 0, "given back of charges", "refunded"},
        [DEPOSITED] = {"DEPOSITED", 0, "deposits", "deposited"},
        [RECEIVED] = {"RECEIVED", 0, "transferred from other accounts", "received"},
        [SENT] = {"SENT", 0, "transferred to other accounts", "sent"},
        [WITHDRAWN] = {"WITHDRAWN", 0, "withdrawn, or left over in allocations that have ended", "withdrawn"},
        [REQUESTS] = {"REQUESTS", 0, "requests that had the keyword", "requests"},
        [JOBS] = {"JOBS", 0, "their jobs", "jobs"},
};

static double metric_of(struct view g, enum metric_id m)
{
        switch (m) {
        case ATTEMPTS: return sum_of(g, "attempts");
        case COMPLETED: return sum_of(g, "completed");
        case FAILED: return sum_of(g, "failed");
        case LOST: return sum_of(g, "lost");
        case SUCCESS: return 100 * ratio(sum_of(g, "completed"), sum_of(g, "attempts"));
        case WALL_H: return sum_of(g, "wall_ms") / HOUR_MS;
        case CPUS_H: return sum_of(g, "cpus_ms") / HOUR_MS;
        case CPU_H: return sum_of(g, "cpu_ms") / HOUR_MS;
        case GPUS_H: return sum_of(g, "gpus_ms") / HOUR_MS;
        case CPU_PART: return 100 * ratio(sum_of(g, "cpu_ms"), sum_of(g, "cpus_ms"));
        case MEMORY_GIB_H: return sum_of(g, "memory_mib_ms") / HOUR_MS / 1024;
        case MEMORY_PART: return 100 * ratio(sum_of(g, "memory_used_mib_ms"), sum_of(g, "memory_mib_ms"));
        case GIB_IN: return sum_of(g, "bytes_in") / GIB;
        case GIB_OUT: return sum_of(g, "bytes_out") / GIB;
        case ENERGY_KWH: return sum_of(g, "energy_j") / JOULES_KWH;
        case STARTS: return sum_of(g, "first_starts");
        case WAIT_MEAN: return ratio(sum_of(g, "wait_ms"), sum_of(g, "first_starts")) / 1000;
        case WAIT_MAX: return sum_of(g, "wait_max_ms") / 1000;
        default: return sum_of(g, metrics[m].key);
        }
}

/* Appends a hint about a resource that users request too much of, if there is one. */
static void hint_print(struct buf *out, struct view g)
{
        double memory = metric_of(g, MEMORY_PART), cpu = metric_of(g, CPU_PART);
        double cpus = ratio(sum_of(g, "cpus_ms"), sum_of(g, "wall_ms"));
        double asked = ratio(sum_of(g, "memory_mib_ms"), sum_of(g, "wall_ms")) / 1024;
        double used = ratio(sum_of(g, "memory_used_mib_ms"), sum_of(g, "wall_ms")) / 1024;

        if (used > 0 && memory < 50 && asked - used >= 0.5)
                buf_printf(out, "asked %.1f GiB, used %.1f", asked, used);
        if (cpus >= 1.5 && cpu < 50)
                buf_printf(out, "%sasked %.1f processors, used %.1f", out->n ? "; " : "", cpus,
                           cpus * cpu / 100);
}

static const struct kind {
        const char *name, *by;
        enum metric_id shown[10];
        size_t count;
        bool hints;
} kinds[] = {
        {"usage",
         "user",
         {CPUS_H, CPU_H, WALL_H, GPUS_H, ATTEMPTS, COMPLETED, FAILED, GIB_IN, GIB_OUT, ENERGY_KWH},
         10,
         false},
        {"wait", "user", {WAIT_MEAN, WAIT_MAX, STARTS}, 3, false},
        {"efficiency", "user", {CPU_PART, CPUS_H, CPU_H, MEMORY_PART, MEMORY_GIB_H, ATTEMPTS}, 6, true},
        {"sites",
         "site",
         {CPUS_H, ATTEMPTS, COMPLETED, FAILED, LOST, SUCCESS, CPU_PART, WAIT_MEAN, ENERGY_KWH},
         9,
         false},
        {"bank",
         "account,month",
         {AMOUNT, FOR_JOBS, FOR_RESERVATIONS, FOR_OTHERS, REFUNDED, DEPOSITED, RECEIVED, SENT, WITHDRAWN},
         9,
         false},
        {"keywords", "keyword", {REQUESTS, JOBS}, 2, false},
};
/* In the order of the server's columns, also where it has some of them only. */
static const char *const by_names[] = {"keyword", "user", "account", "place", "site", "month"};

struct report {
        const struct kind *kind;
        const char *by;
        struct table_column columns[TABLE_COLUMNS_MAX];
        const char *keys[COUNT(by_names)];
        char titles[COUNT(by_names)][16];
        size_t key_count,
                period_count; /* the bill's last columns, FROM and TO: in CSV, or where they are named */
        int64_t from_ms, to_ms;
};

static bool is_bill(const struct report *r)
{
        return strcmp(r->kind->name, "bank") == 0;
}

static bool is_by(const char *by, const char *name)
{
        struct str rest = str_of(by), one;

        while (rest.n && str_cut(&rest, ',', &one))
                if (str_eqz(str_trim(one), name))
                        return true;
        return false;
}

static void columns_make(struct report *r, bool csv)
{
        size_t n = 0;

        for (size_t i = 0; i < COUNT(by_names); i++) {
                if (!is_by(r->by, by_names[i]))
                        continue;
                for (size_t k = 0; k <= strlen(by_names[i]); k++)
                        r->titles[n][k] = (char)(by_names[i][k] ? by_names[i][k] - 'a' + 'A' : 0);
                r->keys[n] = by_names[i];
                r->columns[n] = (struct table_column){r->titles[n], false, true};
                n++;
        }
        r->key_count = n;
        for (size_t i = 0; i < r->kind->count; i++)
                r->columns[n++] = (struct table_column){metrics[r->kind->shown[i]].title, true};
        if (r->kind->hints)
                r->columns[n++] = (struct table_column){"HINT", false, true};
        if (is_bill(r)) {
                r->period_count = 2;
                r->columns[n++] = (struct table_column){.title = "FROM", .extra = !csv};
                r->columns[n++] = (struct table_column){.title = "TO", .extra = !csv};
        }
}

static void day_print(struct buf *out, int64_t at_ms)
{
        time_t s = (time_t)(at_ms / 1000);
        struct tm tm = {0};
        char text[32];

        gmtime_r(&s, &tm);
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
        buf_addz(out, text);
}

static void period_print(struct buf *out, const struct report *r)
{
        buf_addz(out, "From ");
        day_print(out, r->from_ms);
        buf_addz(out, " to ");
        day_print(out, r->to_ms);
        buf_char(out, '.');
}

/* Without those of the period. */
static size_t columns_count(const struct report *r)
{
        return r->key_count + r->kind->count + r->kind->hints;
}

/* The text of one column of a group. */
static void cell_print(struct buf *out, const struct report *r, struct view g, size_t column)
{
        const struct metric *m;

        if (column < r->key_count) {
                view_text(view_get(g, r->keys[column]), out);
        } else if (column < r->key_count + r->kind->count) {
                m = &metrics[r->kind->shown[column - r->key_count]];
                if (m == &metrics[ENERGY_KWH] && metric_of(g, ENERGY_KWH) == 0) /* nothing has measured it */
                        return;
                if (m->key)
                        view_text(view_get(g, m->key), out);
                else
                        buf_printf(out, "%.*f", m->digits,
                                   metric_of(g, r->kind->shown[column - r->key_count]));
        } else if (column < columns_count(r)) {
                hint_print(out, g);
        } else {
                day_print(out, column == columns_count(r) ? r->from_ms : r->to_ms);
        }
}

/* ---- formats */

static int print_table(struct cli *cli, const struct report *r, struct view groups, bool csv)
{
        struct table t TABLE_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0};
        size_t count = columns_count(r) + r->period_count;
        struct view g;
        int code;

        cli->form.csv |= csv;
        code = cli_table(cli, &t, r->columns, (unsigned)count);
        if (code != 0)
                return code;
        for (size_t at = 0; view_next(groups, &at, &g);)
                for (size_t i = 0; i < count; i++) {
                        buf_reset(&text);
                        cell_print(&text, r, g, i);
                        table_text(&t, buf_view(&text));
                }
        buf_reset(&text);
        if (table_rows(&t) > 0 || !cli_plain(cli))
                cli_print_table(cli, &t);
        else
                buf_printf(&text, "nothing %s in that time\n",
                           strcmp(r->kind->name, "keywords") == 0 ? "was submitted"
                           : is_bill(r)                           ? "has moved"
                                                                  : "has ended");
        if (cli_plain(cli)) {
                period_print(&text, r);
                buf_char(&text, '\n');
                cli_print(&text);
        }
        return CLI_OK;
}

static void key_print(struct buf *out, const struct report *r, struct view g)
{
        for (size_t i = 0; i < r->key_count; i++) {
                if (i)
                        buf_addz(out, ", ");
                view_text(view_get(g, r->keys[i]), out);
        }
}

#define CHART_LEFT  200
#define CHART_WIDTH 420

/* Prints a bar for each group, for the first number of the report: to the right of zero, or for a negative
 * number, as of an account that got back more than it was charged, to its left. */
static void chart_print(struct buf *out, const struct report *r, struct view groups)
{
        const struct metric *m = &metrics[r->kind->shown[0]];
        double most = 0, least = 0, scale, zero;
        size_t n = 0;
        struct view g;

        for (size_t at = 0; view_next(groups, &at, &g); n++) {
                double v = metric_of(g, r->kind->shown[0]);

                most = v > most ? v : most;
                least = v < least ? v : least;
        }
        scale = most > least ? CHART_WIDTH / (most - least) : 0;
        zero = CHART_LEFT - scale * least;
        buf_printf(out,
                   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"%zu\" "
                   "font-family=\"sans-serif\" font-size=\"12\">\n<title>%s: %s</title>\n",
                   24 * n + 30, m->title, m->what);
        n = 0;
        for (size_t at = 0; view_next(groups, &at, &g); n++) {
                struct buf key BUF_CLEANUP = {0};
                double v = metric_of(g, r->kind->shown[0]);
                double left = v < 0 ? zero + scale * v : zero, right = v < 0 ? zero : zero + scale * v;

                key_print(&key, r, g);
                buf_printf(out, "<text x=\"192\" y=\"%zu\" text-anchor=\"end\">", 24 * n + 18);
                xml_escape(out, buf_view(&key));
                buf_printf(out,
                           "</text><rect x=\"%.1f\" y=\"%zu\" width=\"%.1f\" height=\"16\" fill=\"%s\"/>",
                           left, 24 * n + 5, right - left, v < 0 ? "#cc6677" : "#4477aa");
                buf_printf(out, "<text x=\"%.1f\" y=\"%zu\">%.*f</text>\n", right + 5, 24 * n + 18, m->digits,
                           v);
        }
        buf_printf(out, "<text x=\"200\" y=\"%zu\">%s: %s</text>\n</svg>\n", 24 * n + 20, m->title, m->what);
}

static void page_print(struct buf *out, const struct report *r, struct view groups)
{
        int64_t sums[10] = {0};
        struct view g;

        buf_printf(out,
                   "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>drover report "
                   "%s</title>\n"
                   "<style>body{font-family:sans-serif;margin:2em}table{border-collapse:collapse}"
                   "td,th{border-bottom:1px solid #ccc;padding:.3em .8em;text-align:left}"
                   ".n{text-align:right}</style></head>\n<body><h1>%s by %s</h1>\n<p>",
                   r->kind->name, r->kind->name, r->by);
        period_print(out, r);
        buf_addz(out, "</p>\n<table><tr>");
        for (size_t i = 0; i < columns_count(r); i++)
                buf_printf(out, "<th%s>%s</th>", r->columns[i].right ? " class=\"n\"" : "",
                           r->columns[i].title);
        buf_addz(out, "</tr>\n");
        for (size_t at = 0; view_next(groups, &at, &g);) {
                buf_addz(out, "<tr>");
                for (size_t i = 0; i < columns_count(r); i++) {
                        struct buf text BUF_CLEANUP = {0};

                        cell_print(&text, r, g, i);
                        buf_printf(out, "<td%s>", r->columns[i].right ? " class=\"n\"" : "");
                        xml_escape(out, buf_view(&text));
                        buf_addz(out, "</td>");
                }
                for (size_t i = 0; i < r->kind->count; i++)
                        if (metrics[r->kind->shown[i]].key)
                                sums[i] += view_integer(view_get(g, metrics[r->kind->shown[i]].key), 0);
                buf_addz(out, "</tr>\n");
        }
        if (r->key_count && is_bill(r)) {
                buf_printf(out, "<tr><th colspan=\"%zu\">Sum</th>", r->key_count);
                for (size_t i = 0; i < r->kind->count; i++)
                        buf_printf(out, "<th class=\"n\">%lld</th>", (long long)sums[i]);
                buf_addz(out, "</tr>\n");
        }
        buf_addz(out, "</table>\n<dl>");
        for (size_t i = 0; i < r->kind->count; i++)
                buf_printf(out, "<dt>%s</dt><dd>%s</dd>", metrics[r->kind->shown[i]].title,
                           metrics[r->kind->shown[i]].what);
        buf_addz(out, "</dl>\n");
        chart_print(out, r, groups);
        buf_addz(out, "</body></html>\n");
}

/* ---- records */

struct records {
        struct buf out;
        struct table table;
        enum { RECORDS_JSONL, RECORDS_CSV, RECORDS_UR } form;
        struct buf
                server; /* of usage records: the server's uuid, which makes their ids unique in the world */
};

static const struct table_column record_columns[] = {{"request"},
                                                     {"job"},
                                                     {"attempt"},
                                                     {"starts"},
                                                     {"owner"},
                                                     {"account"},
                                                     {"agent"},
                                                     {"queue"},
                                                     {"outcome"},
                                                     {"exit_code"},
                                                     {"exit_signal"},
                                                     {"submitted_ms"},
                                                     {"started_ms"},
                                                     {"ended_ms"},
                                                     {"cpu_user_ms"},
                                                     {"cpu_system_ms"},
                                                     {"cpus"},
                                                     {"memory_mib"},
                                                     {"memory_peak_bytes"},
                                                     {"amount"},
                                                     {"reservation"},
                                                     {"gpus"},
                                                     {"bytes_in"},
                                                     {"bytes_out"},
                                                     {"energy_uj"}};

static void duration_print(struct buf *out, const char *tag, const char *more, double ms)
{
        buf_printf(out, "<urf:%s%s>PT%.3fS</urf:%s>", tag, more, ms / 1000, tag);
}

static void element_print(struct buf *out, const char *tag, struct view v)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(v, &text);
        if (!text.n)
                return;
        buf_printf(out, "<urf:%s>", tag);
        xml_escape(out, buf_view(&text));
        buf_printf(out, "</urf:%s>", tag);
}

static void instant_print(struct buf *out, const char *tag, struct view v)
{
        if (!view_there(v))
                return;
        buf_printf(out, "<urf:%s>", tag);
        day_print(out, view_integer(v, 0));
        buf_printf(out, "</urf:%s>", tag);
}

/* A value that GFD.204 has no element for, in a namespace of its own. */
static void own_element_print(struct buf *out, const char *tag, struct view v)
{
        if (view_integer(v, 0) > 0)
                buf_printf(out, "<drover:%s>%lld</drover:%s>", tag, (long long)view_integer(v, 0), tag);
}

/* A job that died by a signal has the exit status that a shell gives it. */
static void exit_status_print(struct buf *out, struct view u)
{
        if (view_there(view_get(u, "exit_signal")))
                buf_printf(out, "<urf:ExitStatus>%lld</urf:ExitStatus>",
                           128 + (long long)view_integer(view_get(u, "exit_signal"), 0));
        else
                element_print(out, "ExitStatus", view_get(u, "exit_code"));
}

/* The blocks are in the order of GFD.204. */
static void ur_print(struct buf *out, struct str server, struct view u)
{
        long long request = (long long)view_integer(view_get(u, "request"), 0),
                  job = (long long)view_integer(view_get(u, "job"), 0),
                  attempt = (long long)view_integer(view_get(u, "attempt"), 0);
        double user = sum_of(u, "cpu_user_ms"), sys = sum_of(u, "cpu_system_ms"),
               started = sum_of(u, "started_ms"), ended = sum_of(u, "ended_ms");

        buf_printf(out,
                   "<urf:UsageRecord><urf:RecordIdentityBlock><urf:RecordId>" STR_FMT "/%lld.%lld-%lld</"
                   "urf:RecordId>",
                   STR_ARG(server), request, job, attempt);
        instant_print(out, "CreateTime", view_get(u, "ended_ms"));
        buf_addz(out, "</urf:RecordIdentityBlock><urf:SubjectIdentityBlock>");
        element_print(out, "LocalUserId", view_get(u, "owner"));
        element_print(out, "LocalGroupId", view_get(u, "account"));
        element_print(out, "GlobalUserId", view_get(u, "owner"));
        buf_addz(out, "</urf:SubjectIdentityBlock><urf:ComputeUsageBlock>");
        duration_print(out, "CpuDuration", " urf:usageType=\"all\"", user + sys);
        duration_print(out, "CpuDuration", " urf:usageType=\"user\"", user);
        duration_print(out, "CpuDuration", " urf:usageType=\"system\"", sys);
        duration_print(out, "WallDuration", "", started > 0 ? ended - started : 0);
        instant_print(out, "StartTime", view_get(u, started > 0 ? "started_ms" : "ended_ms"));
        instant_print(out, "EndTime", view_get(u, "ended_ms"));
        element_print(out, "Processors", view_get(u, "cpus"));
        exit_status_print(out, u);
        element_print(out, "Charge", view_get(u, "amount"));
        buf_printf(out,
                   "</urf:ComputeUsageBlock><urf:JobUsageBlock><urf:GlobalJobId>" STR_FMT
                   "/%lld.%lld</urf:GlobalJobId><urf:LocalJobId>%lld.%lld</urf:LocalJobId>",
                   STR_ARG(server), request, job, request, job);
        element_print(out, "MachineName", view_get(u, "agent"));
        element_print(out, "Queue", view_get(u, "queue"));
        buf_addz(out, "<urf:TimeInstant urf:type=\"submit\">");
        day_print(out, view_integer(view_get(u, "submitted_ms"), 0));
        buf_addz(out, "</urf:TimeInstant>");
        element_print(out, "Status", view_get(u, "outcome"));
        buf_addz(out, "</urf:JobUsageBlock><urf:MemoryUsageBlock>");
        element_print(out, "MemoryResourceCapacityUsed", view_get(u, "memory_peak_bytes"));
        buf_printf(out, "<urf:MemoryResourceCapacityAllocated>%.0f</urf:MemoryResourceCapacityAllocated>",
                   sum_of(u, "memory_mib") * 1048576);
        instant_print(out, "StartTime", view_get(u, started > 0 ? "started_ms" : "ended_ms"));
        instant_print(out, "EndTime", view_get(u, "ended_ms"));
        buf_addz(out, "</urf:MemoryUsageBlock><urf:NetworkUsageBlock>");
        element_print(out, "NetworkInboundUsed", view_get(u, "bytes_in"));
        element_print(out, "NetworkOutboundUsed", view_get(u, "bytes_out"));
        buf_addz(out, "</urf:NetworkUsageBlock>");
        if (sum_of(u, "gpus") > 0 || sum_of(u, "energy_uj") > 0) {
                buf_addz(out, "<drover:UsageBlock>");
                own_element_print(out, "Gpus", view_get(u, "gpus"));
                own_element_print(out, "EnergyMicrojoules", view_get(u, "energy_uj"));
                buf_addz(out, "</drover:UsageBlock>");
        }
        buf_addz(out, "</urf:UsageRecord>\n");
}

static void json_line_print(struct buf *out, struct view u)
{
        struct view value;
        struct str key;

        buf_char(out, '{');
        for (size_t at = 0, n = 0; view_member(u, &at, &key, &value); n++)
                buf_printf(out, "%s\"" STR_FMT "\":" STR_FMT, n ? "," : "", STR_ARG(key),
                           STR_ARG(value.text));
        buf_addz(out, "}\n");
}

static int on_record(void *arg, struct view u)
{
        struct records *r = arg;

        if (r->form == RECORDS_CSV) {
                for (size_t i = 0; i < COUNT(record_columns); i++) {
                        struct view v = view_get(u, record_columns[i].title);

                        if (view_there(v))
                                table_view(&r->table, v);
                        else
                                table_text(&r->table, STR(""));
                }
                return 0;
        }
        if (r->form == RECORDS_UR)
                ur_print(&r->out, buf_view(&r->server), u);
        else
                json_line_print(&r->out, u);
        cli_print(&r->out);
        return 0;
}

static int print_records(struct cli *cli, struct buf *path, const char *form)
{
        struct records r = {.form = RECORDS_JSONL};
        int code = 0;

        if (form && strcmp(form, "csv") == 0)
                r.form = RECORDS_CSV;
        else if (form && strcmp(form, "ur") == 0)
                r.form = RECORDS_UR;
        else if (form && strcmp(form, "jsonl") != 0)
                return cli_error(CLI_USAGE, "--format: records are written as jsonl, csv or ur");
        cli->form.csv |= r.form == RECORDS_CSV;
        code = cli_table(cli, &r.table, record_columns, COUNT(record_columns));
        if (r.form == RECORDS_UR)
                buf_addz(&r.out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urf:UsageRecords "
                                 "xmlns:urf=\"http://schema.ogf.org/urf/2013/04/urf\" "
                                 "xmlns:drover=\"urn:drover:usage\">\n");
        if (code == 0 && r.form == RECORDS_UR) {
                struct api_answer answer API_ANSWER_CLEANUP = {0};

                code = api_get(cli, "/v1/server", &answer);
                view_text(view_get(answer.root, "uuid"), &r.server);
        }
        if (code == 0)
                code = api_list(cli, &(struct api_list){.path = path,
                                                        .array = "records",
                                                        .cursor = "after",
                                                        .each = on_record,
                                                        .arg = &r});
        if (code == 0 && r.form == RECORDS_CSV)
                cli_print_table(cli, &r.table);
        if (code == 0 && r.form == RECORDS_UR) {
                buf_addz(&r.out, "</urf:UsageRecords>\n");
                cli_print(&r.out);
        }
        table_deinit(&r.table);
        buf_deinit(&r.out);
        buf_deinit(&r.server);
        return code;
}

/* ---- the command */

/* Moves the time to the first of its month, in UTC as the server's months are. */
static int64_t month_begin(int64_t at_ms)
{
        time_t s = (time_t)(at_ms / 1000);
        struct tm tm = {0};

        gmtime_r(&s, &tm);
        tm.tm_mday = 1;
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
        return (int64_t)timegm(&tm) * 1000;
}

static int path_make(struct buf *path, const struct options *o, struct report *r)
{
        char number[24];
        int code;

        r->to_ms = clock_wall_ms() + 1000;
        r->from_ms = r->to_ms - 30 * 86400000ll;
        if (r->kind &&
            (is_bill(r) || is_by(r->by, "month"))) /* a part of a month would be taken for all of it */
                r->from_ms = month_begin(r->from_ms);
        code = cli_time(o, "from", &r->from_ms);
        if (code == 0)
                code = cli_time(o, "to", &r->to_ms);
        if (code != 0)
                return code;
        if (r->to_ms < r->from_ms)
                return cli_error(CLI_USAGE, "the end, %s, is before the start: --from must be earlier",
                                 options_text(o, "to") ? "--to" : "now");
        if (r->from_ms < 0)
                r->from_ms = 0;
        snprintf(number, sizeof(number), "%lld", (long long)r->from_ms);
        api_query(path, "from_ms", str_of(number));
        snprintf(number, sizeof(number), "%lld", (long long)r->to_ms);
        api_query(path, "to_ms", str_of(number));
        api_query(path, "owner", str_of(options_text(o, "owner")));
        return 0;
}

static int print_report(struct cli *cli, const struct report *r, struct view groups, const char *form)
{
        struct buf out BUF_CLEANUP = {0};

        if (!form || strcmp(form, "text") == 0 || strcmp(form, "csv") == 0)
                return print_table(cli, r, groups, form && form[0] == 'c');
        if (strcmp(form, "svg") == 0)
                chart_print(&out, r, groups);
        else if (strcmp(form, "html") == 0)
                page_print(&out, r, groups);
        else
                return cli_error(CLI_USAGE, "--format: '%s' is none of text, csv, json, svg and html", form);
        cli_print(&out);
        return CLI_OK;
}

static void report_print_json(const struct session_file *s, struct str text, struct str requests)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};

        json_open(&j, '{');
        json_kstr(&j, "file", buf_view(&s->file));
        json_kstr(&j, "folder", buf_view(&s->folder));
        json_key(&j, "report");
        if (text.n)
                json_str(&j, text);
        else
                json_null(&j);
        json_key(&j, "requests");
        json_open(&j, '[');
        buf_str(&out, requests);
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}

/* What the submit wrote, and what has become of the jobs since, if the server answers. */
static int report_session(struct cli *cli, const char *path)
{
        struct session_file s SESSION_FILE_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {0}, ids BUF_CLEANUP = {0}, now BUF_CLEANUP = {0};
        int code = session_file_read(path, &s);
        struct err err = {""};
        bool gone = false;

        if (code != 0)
                return code;
        if (!s.own)
                return cli_error(CLI_USAGE,
                                 "%s belongs to another user, and the report that it names is not read",
                                 path);
        if (session_report_read(&s, &text, &err) != 0)
                cli_note("%s", err.text);
        if (!cli->json)
                cli_print(&text);
        code = session_file_use(cli, &s, false, &ids, &gone);
        if (code == 0)
                session_batch_note(cli, path, &s);
        if (code == 0)
                code = cli->json ? session_report_json(cli, &s, &now) : session_report_text(cli, &s, &now);
        if (cli->json) {
                report_print_json(&s, buf_view(&text), buf_view(&now));
        } else {
                if (code == 0)
                        session_report_write(&s, buf_view(&now));
                cli_print(&now);
        }
        return code;
}

int cmd_report(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct report r = {.kind = NULL};
        const char *form = options_text(o, "format"),
                   *session = options_row(o->command, STR("session")) ? options_text(o, "session") : NULL;
        int code;

        if (session && o->word_count == 0) {
                cli->json |= form && strcmp(form, "json") == 0;
                return report_session(cli, session);
        }
        if (session || o->word_count == 0)
                return cli_error(CLI_USAGE,
                                 "give one of usage, wait, efficiency, sites, bank, keywords and records, or "
                                 "--session FILE");
        if (strcmp(o->words[0], "records") == 0) {
                buf_addz(&path, "/v1/usage/records");
                code = path_make(&path, o, &r);
                return code ? code : print_records(cli, &path, form);
        }
        for (size_t i = 0; i < COUNT(kinds); i++)
                if (strcmp(kinds[i].name, o->words[0]) == 0)
                        r.kind = &kinds[i];
        if (!r.kind)
                return cli_error(CLI_USAGE,
                                 "'%s' is none of usage, wait, efficiency, sites, bank, keywords and records",
                                 o->words[0]);
        r.by = options_text(o, "by") ? options_text(o, "by") : r.kind->by;
        buf_addz(&path, strcmp(r.kind->name, "keywords") == 0 ? "/v1/usage/keywords"
                        : strcmp(r.kind->name, "bank") == 0   ? "/v1/bank/bill"
                                                              : "/v1/usage");
        code = path_make(&path, o, &r);
        if (code != 0)
                return code;
        api_query(&path, "by", str_of(r.by));
        columns_make(&r, cli->form.csv || (form && strcmp(form, "csv") == 0));
        if (form && strcmp(form, "json") == 0)
                cli->json = true;
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        return print_report(cli, &r, view_get(answer.root, "groups"), form);
}

int cmd_stats(struct cli *cli, const struct options *o)
{
        const char *words[] = {"keywords"};
        struct options report = *o;

        report.words = words;
        report.word_count = 1;
        return cmd_report(cli, &report);
}
