#include "cli/slurm/batch.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "classad/print.h"
#include "cli/slurm/actions.h"
#include "cli/slurm/depend.h"
#include "cli/slurm/hosts.h"
#include "cli/slurm/moment.h"
#include "jdl/script/script.h"

#define PIECE_MAX    100000 /* bytes of one argument: the system takes 128 KiB */
#define SIGNAL_S     60     /* default time before the end */
#define DEADLINE_FAR 2147483647

/* State of writing one job description. */
struct writing {
        const struct batch *b;
        const struct words *w;
        struct buf *out;
        struct err *err;
        struct tasks tasks;
        bool array;
        struct buf name, folder, user;
        uint64_t nodes;
        uint64_t cpus, ntasks, per_task, gpus, memory_mib; /* amounts on each node */
        int64_t limit_s;                                   /* 0: none */
        /* files of the script's streams; if the second one is empty, both streams go to the first */
        struct buf files[2];
        bool appends; /* the files are appended to */
        struct args environment;
};

/* ---- lines */

/* Text as a submit file has it within one line; `quoted`: within double quotes. */
static void write_text(struct buf *out, struct str s, bool quoted)
{
        while (s.n) {
                size_t n = 1;

                if (quoted && s.p[0] == '"') {
                        buf_addz(out, "\"\"");
                } else if (s.p[0] == '\n') {
                        buf_addz(out, "$(NEWLINE)");
                } else {
                        while (n < s.n && s.p[n] != '"' && s.p[n] != '\n')
                                n++;
                        script_value(out, str_head(s, n));
                }
                s = str_skip(s, n);
        }
}

static void write_string(struct buf *out, const char *attribute, struct str value)
{
        BUF_CLEANUP struct buf text = {0};

        print_string(&text, value);
        buf_printf(out, "+%s = ", attribute);
        script_value(out, buf_view(&text));
        buf_char(out, '\n');
}

/* Writes a value, which must have one line, and no blanks at its ends. */
static int batch_write_line(struct writing *g, const char *keyword, const char *option, struct str value)
{
        if (value.n == 0 || str_trim(value).n != value.n || str_find(value, '\n') >= 0 ||
            str_ends(value, STR("\\")))
                return err_set(g->err, -EINVAL, "--%s cannot be '" STR_FMT "'", option,
                               STR_ARG(str_head(value, 60)));
        buf_printf(g->out, "%s = ", keyword);
        script_value(g->out, value);
        buf_char(g->out, '\n');
        return 0;
}

static int invalid(struct writing *g, const char *option)
{
        return err_set(g->err, -EINVAL, "Invalid --%s specification: \"%s\"", option,
                       words_text(g->w, option));
}

/* ---- resources */

/* "4G", "500M", "500": MiB, rounded up. */
static int read_mib(struct writing *g, const char *option, uint64_t *ret)
{
        struct str text = str_of(words_text(g->w, option));
        uint64_t n, unit = 1024;

        if (text.n && !isdigit((unsigned char)text.p[text.n - 1])) {
                static const char units[] = "kmgt";
                const char *at;

                if (text.n > 1 && (text.p[text.n - 1] | 32) == 'b')
                        text = str_head(text, text.n - 1);
                at = text.n ? strchr(units, text.p[text.n - 1] | 32) : NULL;
                if (!at)
                        return invalid(g, option);
                unit = 1;
                for (; at > units; at--)
                        unit *= 1024;
                text = str_head(text, text.n - 1);
        }
        if (str_to_u64(text, &n) != 0 || n > (1ull << 50) / unit)
                return invalid(g, option);
        *ret = (n * unit + 1023) / 1024;
        return 0;
}

/* "2", "tesla:2", "tesla" */
static int read_gpus(struct writing *g, const char *option, struct str text, uint64_t *ret, struct buf *type)
{
        struct str first, second = text;
        uint64_t n = 1;

        str_cut(&second, ':', &first);
        if (!second.p && str_to_u64(first, &n) == 0) {
                *ret = n;
                return 0;
        }
        if (second.p && str_to_u64(second, &n) != 0)
                return err_set(g->err, -EINVAL, "Invalid --%s specification: \"" STR_FMT "\"", option,
                               STR_ARG(text));
        buf_reset(type);
        buf_str(type, first);
        *ret = n;
        return 0;
}

static int write_gres(struct writing *g, struct buf *type)
{
        struct str list = str_of(words_text(g->w, "gres")), one;

        while (list.p && str_cut(&list, ',', &one)) {
                struct str name, rest = one;
                uint64_t n = 1;

                str_cut(&rest, ':', &name);
                if (str_starts(name, STR("gres/")))
                        name = str_skip(name, 5);
                if (str_ieqz(name, "none") || name.n == 0)
                        continue;
                if (str_ieqz(name, "gpu")) {
                        int rc = rest.p ? read_gpus(g, "gres", rest, &g->gpus, type) : (g->gpus = 1, 0);

                        if (rc != 0)
                                return rc;
                        continue;
                }
                for (size_t i = 0; i < name.n; i++)
                        if (!isalnum((unsigned char)name.p[i]) && name.p[i] != '_')
                                return invalid(g, "gres");
                if (rest.p && str_to_u64(rest, &n) != 0)
                        return invalid(g, "gres");
                buf_printf(g->out, "request_" STR_FMT " = %llu\n", STR_ARG(name), (unsigned long long)n);
        }
        return 0;
}

static int write_gpus(struct writing *g)
{
        static const char *const options[] = {"gpus", "gpus-per-node", "gpus-per-task"};
        BUF_CLEANUP struct buf type = {0};
        int rc = words_has(g->w, "gres") ? write_gres(g, &type) : 0;

        for (size_t i = 0; rc == 0 && i < 3; i++)
                if (words_has(g->w, options[i])) {
                        rc = read_gpus(g, options[i], str_of(words_text(g->w, options[i])), &g->gpus, &type);
                        if (rc == 0 && i == 2)
                                g->gpus *= g->ntasks;
                }
        if (rc != 0 || g->gpus == 0)
                return rc;
        buf_printf(g->out, "request_gpus = %llu\n", (unsigned long long)g->gpus);
        if (type.n) {
                BUF_CLEANUP struct buf pattern = {0};

                for (size_t i = 0; i < type.n; i++)
                        if (!isalnum((unsigned char)type.p[i]) && !strchr("_- ", type.p[i]))
                                return err_set(g->err, -EINVAL, "a type of GPUs cannot be '%s'",
                                               buf_z(&type));
                print_string(&pattern, buf_view(&type));
                buf_printf(g->out, "require_gpus = regexp(%s, DeviceName, \"i\")\n", buf_z(&pattern));
        }
        return 0;
}

int batch_tasks(const struct words *w, int64_t *ret, struct err *err)
{
        static const char *const options[] = {"ntasks", "tasks", "ntasks-per-node", "tasks-per-node"};
        int64_t n = 0;

        *ret = 0;
        for (size_t i = 0; i < 4 && *ret == 0; i++) {
                if (words_number(w, options[i], 1, 0, &n, err) != 0)
                        return -EINVAL;
                *ret = n;
        }
        return 0;
}

/* "2", or "2-4", of which the least are asked for. */
static int read_nodes(struct writing *g)
{
        const char *nodes = words_text(g->w, "nodes");
        struct str rest = str_of(nodes ? nodes : "1"), first;

        str_cut(&rest, '-', &first);
        if (str_to_u64(first, &g->nodes) != 0 || g->nodes == 0 || g->nodes > 100000)
                return err_set(g->err, -EINVAL, "invalid number of nodes (-N %s)", nodes);
        return 0;
}

/* --ntasks is about all nodes together, --ntasks-per-node about each. */
static int tasks_of_node(struct writing *g, int64_t *ret)
{
        int64_t each = 0;

        if (batch_tasks(g->w, ret, g->err) != 0 ||
            words_number(g->w, "ntasks-per-node", 1, 0, &each, g->err) != 0 ||
            (each == 0 && words_number(g->w, "tasks-per-node", 1, 0, &each, g->err) != 0))
                return -EINVAL;
        if (g->nodes > 1)
                *ret = each ? each : (*ret + (int64_t)g->nodes - 1) / (int64_t)g->nodes;
        return 0;
}

static int read_counts(struct writing *g)
{
        const struct words *w = g->w;
        int64_t ntasks, per_task, least;

        if (read_nodes(g) != 0 || tasks_of_node(g, &ntasks) != 0 ||
            words_number(w, "cpus-per-task", 1, 0, &per_task, g->err) != 0 ||
            words_number(w, "mincpus", 1, 1, &least, g->err) != 0)
                return -EINVAL;
        if (ntasks > 1000000 || per_task > 1000000)
                return err_set(g->err, -EINVAL, "more than a million processors are asked for");
        g->ntasks = (uint64_t)(ntasks ? ntasks : 1);
        g->per_task = (uint64_t)(per_task ? per_task : 1);
        g->cpus = g->ntasks * g->per_task;
        if (g->cpus < (uint64_t)least)
                g->cpus = (uint64_t)least;
        return 0;
}

/* The last of the three counts. */
static int write_memory(struct writing *g)
{
        static const char *const options[] = {"mem", "mem-per-cpu", "mem-per-gpu"};
        size_t which = 0;
        uint64_t mib = 0;
        int rc;

        for (size_t i = 1; i < 3; i++)
                if (words_place(g->w, options[i]) > words_place(g->w, options[which]))
                        which = i;
        if (!words_has(g->w, options[which]))
                return 0;
        rc = read_mib(g, options[which], &mib);
        g->memory_mib = mib * (which == 1 ? g->cpus : which == 2 ? g->gpus : 1);
        if (rc == 0 && g->memory_mib)
                buf_printf(g->out, "request_memory = %lluM\n", (unsigned long long)g->memory_mib);
        if (rc == 0 && which == 1 && mib)
                buf_printf(g->out, "+SlurmMemoryPerCpu = %llu\n", (unsigned long long)mib);
        return rc;
}

static int write_resources(struct writing *g)
{
        int64_t per_gpu;
        uint64_t mib = 0;
        int rc = read_counts(g);

        if (rc == 0)
                rc = write_gpus(g);
        if (rc == 0)
                rc = words_number(g->w, "cpus-per-gpu", 1, 0, &per_gpu, g->err);
        if (rc == 0 && per_gpu && !words_has(g->w, "cpus-per-task") && (uint64_t)per_gpu * g->gpus > g->cpus)
                g->cpus = (uint64_t)per_gpu * g->gpus;
        if (rc == 0)
                rc = write_memory(g);
        if (rc == 0 && words_has(g->w, "tmp"))
                rc = read_mib(g, "tmp", &mib);
        if (rc == 0 && mib)
                buf_printf(g->out, "request_disk = %lluM\n", (unsigned long long)mib);
        if (rc == 0 && g->nodes > 1)
                buf_printf(g->out, "request_nodes = %llu\ntasks_per_node = %llu\nrequest_cpus = %llu\n",
                           (unsigned long long)g->nodes, (unsigned long long)g->ntasks,
                           (unsigned long long)((g->cpus + g->ntasks - 1) / g->ntasks));
        else if (rc == 0)
                buf_printf(g->out, "request_cpus = %llu\n", (unsigned long long)g->cpus);
        if (rc == 0)
                buf_printf(g->out, "+SlurmTasksPerJob = %llu\n", (unsigned long long)(g->nodes * g->ntasks));
        return rc;
}

/* ---- where */

static void add_clause(struct buf *all, struct str clause)
{
        buf_printf(all, "%s(" STR_FMT ")", all->n ? " && " : "", STR_ARG(clause));
}

static void batch_add_names(struct buf *out, struct str list, const char *const *attributes, bool are)
{
        struct str one;
        bool any = false;

        while (str_cut(&list, ',', &one))
                for (size_t i = 0; attributes[i] && str_trim(one).n; i++) {
                        buf_printf(out, "%sTARGET.%s %s ", any ? (are ? " || " : " && ") : "", attributes[i],
                                   are ? "=?=" : "=!=");
                        print_string(out, str_trim(one));
                        any = true;
                }
}

/* "a&b|c" with parentheses: each name must be in the place's list. */
static int add_features(struct writing *g, struct buf *out)
{
        struct str s = str_of(words_text(g->w, "constraint"));

        while (s.n) {
                size_t n = 0;

                if (strchr("&|", s.p[0])) {
                        buf_addz(out, s.p[0] == '&' ? " && " : " || ");
                        s = str_skip(s, n = str_starts(str_skip(s, 1), str_head(s, 1)) ? 2 : 1);
                        continue;
                }
                if (strchr("()[], ", s.p[0])) { /* [a|b]: one of them for all nodes, of which there is one */
                        buf_addz(out, s.p[0] == ','                    ? " && "
                                      : s.p[0] == ' '                  ? ""
                                      : s.p[0] == '(' || s.p[0] == '[' ? "("
                                                                       : ")");
                        s = str_skip(s, 1);
                        continue;
                }
                while (n < s.n && (isalnum((unsigned char)s.p[n]) || strchr("_-.=:+", s.p[n])))
                        n++;
                if (n == 0)
                        return err_set(
                                g->err, -EINVAL,
                                "--constraint=%s is not supported: names with & and | and parentheses are",
                                words_text(g->w, "constraint"));
                buf_addz(out, "stringListIMember(");
                print_string(out, str_head(s, n));
                buf_addz(out, ", TARGET.Features) =?= true");
                s = str_skip(s, n);
        }
        return 0;
}

static int write_requirements(struct writing *g)
{
        static const char *const queues[] = {"QueueName", NULL}, *const nodes[] = {"AgentName", "Machine",
                                                                                   NULL};
        BUF_CLEANUP struct buf all = {0}, one = {0}, hosts = {0};
        const char *text = words_text(g->w, "partition");

        if (text && *text) {
                batch_add_names(&one, str_of(text), queues, true);
                add_clause(&all, buf_view(&one));
                write_string(g->out, "SlurmPartition", str_of(text));
        }
        buf_reset(&one);
        if ((text = words_text(g->w, "nodelist"))) {
                if (hosts_expand(str_of(text), &hosts, g->err) != 0)
                        return -EINVAL;
                if (str_find(buf_view(&hosts), ',') >= 0)
                        return err_set(
                                g->err, -EINVAL,
                                "--nodelist=%s names several nodes, and a job runs on one: name one, or "
                                "--exclude the others",
                                text);
                batch_add_names(&one, buf_view(&hosts), nodes, true);
                add_clause(&all, buf_view(&one));
        }
        buf_reset(&one);
        buf_reset(&hosts);
        if ((text = words_text(g->w, "exclude"))) {
                if (hosts_expand(str_of(text), &hosts, g->err) != 0)
                        return -EINVAL;
                batch_add_names(&one, buf_view(&hosts), nodes, false);
                add_clause(&all, buf_view(&one));
        }
        buf_reset(&one);
        if (add_features(g, &one) != 0)
                return -EINVAL;
        if (one.n)
                add_clause(&all, buf_view(&one));
        if (words_place(g->w, "no-requeue") > words_place(g->w, "requeue"))
                add_clause(&all, STR("NumJobStarts =?= undefined || NumJobStarts == 0"));
        if (all.n) {
                buf_addz(g->out, "requirements = ");
                script_value(g->out, buf_view(&all));
                buf_char(g->out, '\n');
        }
        return 0;
}

/* ---- when */

static int batch_read_time(struct writing *g, const char *option, int64_t *ret_s)
{
        return moment_read(str_of(words_text(g->w, option)), g->b->cli->now_ms / 1000, ret_s) == 0
                       ? 0
                       : err_set(g->err, -EINVAL, "Invalid --%s specification: \"%s\"", option,
                                 words_text(g->w, option));
}

/* A job that the agent has ended is over; one that its owner holds, or that waits for what will not come, is
 * not. */
static void write_ends(struct writing *g, int64_t deadline_s)
{
        buf_addz(g->out,
                 "periodic_remove = (JobStatus == 5 && HoldReasonCode =!= 1 && HoldReasonCode =!= 4 && "
                 "HoldReasonCode =!= 15 && HoldReasonCode =!= 1001 && HoldReasonCode =!= 1002)");
        if (words_place(g->w, "no-requeue") > words_place(g->w, "requeue"))
                buf_addz(g->out, " || (JobStatus == 1 && NumJobStarts > 0)");
        if (deadline_s)
                buf_printf(g->out, " || time() > %lld", (long long)deadline_s);
        buf_char(g->out, '\n');
}

static int write_times(struct writing *g)
{
        int64_t at_s, deadline_s = 0, nice, priority;
        const char *text = words_text(g->w, "time");

        if (text && moment_limit(str_of(text), &g->limit_s) != 0)
                return invalid(g, "time");
        if (g->limit_s)
                buf_printf(g->out, "allowed_execute_duration = %lld\n", (long long)g->limit_s);
        if (words_has(g->w, "begin")) {
                if (batch_read_time(g, "begin", &at_s) != 0)
                        return -EINVAL;
                if (at_s > g->b->cli->now_ms / 1000)
                        buf_printf(g->out, "deferral_time = %lld\ndeferral_window = %d\n", (long long)at_s,
                                   DEADLINE_FAR);
        }
        if (words_has(g->w, "deadline")) {
                if (batch_read_time(g, "deadline", &deadline_s) != 0)
                        return -EINVAL;
                buf_printf(g->out, "+SlurmDeadline = %lld\n", (long long)deadline_s);
        }
        write_ends(g, deadline_s);
        if (words_has(g->w, "hold"))
                buf_addz(g->out, "hold = true\n");
        if (words_number(g->w, "priority", 0, 0, &priority, g->err) != 0)
                return -EINVAL;
        text = words_text(g->w, "nice");
        if (text && !*text)
                nice = 100;
        else if (words_number(g->w, "nice", -2147483645, 0, &nice, g->err) != 0)
                return -EINVAL;
        priority -= nice;
        if (priority)
                buf_printf(g->out, "priority = %lld\n", (long long)priority);
        return 0;
}

static int write_dependency(struct writing *g)
{
        BUF_CLEANUP struct buf depends = {0};
        const char *text = words_text(g->w, "dependency"), *kill = words_text(g->w, "kill-on-invalid-dep");
        int rc;

        if (kill && strcasecmp(kill, "yes") != 0 && strcasecmp(kill, "no") != 0)
                return invalid(g, "kill-on-invalid-dep");
        if (!text)
                return 0;
        rc = depend_write(g->b->cli, str_of(text), buf_view(&g->name), &depends, g->err);
        if (rc != 0 || depends.n == 0)
                return rc;
        buf_printf(g->out, "depends_on = %s\n", buf_z(&depends));
        if (kill && strcasecmp(kill, "yes") == 0)
                buf_addz(g->out, "on_dependency_failure = remove\n");
        write_string(g->out, "SlurmDependency", str_of(text));
        return 0;
}

/* ---- for whom */

static int write_mail(struct writing *g)
{
        struct str list = str_of(words_text(g->w, "mail-type")), one;
        const char *user = words_text(g->w, "mail-user");
        bool begin = false, end = false, fail = false;

        if (user && strpbrk(user, "%:/")) /* what a site's own mailer makes an address of */
                cli_note("--mail-user=%s is not a mail address, and is left out: mail goes to you", user);
        else if (user && *user && batch_write_line(g, "notify_user", "mail-user", str_of(user)) != 0)
                return -EINVAL;
        while (list.p && str_cut(&list, ',', &one)) {
                bool all = str_ieqz(one, "ALL");

                begin |= all || str_ieqz(one, "BEGIN");
                end |= all || str_ieqz(one, "END");
                fail |= all || str_ieqz(one, "FAIL") || str_ieqz(one, "INVALID_DEPEND") ||
                        str_ieqz(one, "TIME_LIMIT");
                if (!all && !str_ieqz(one, "NONE") && !str_ieqz(one, "BEGIN") && !str_ieqz(one, "END") &&
                    !str_ieqz(one, "FAIL") && !str_ieqz(one, "REQUEUE") && !str_ieqz(one, "STAGE_OUT") &&
                    !str_ieqz(one, "ARRAY_TASKS") && !str_istarts(one, STR("TIME_LIMIT")) &&
                    !str_ieqz(one, "INVALID_DEPEND"))
                        return invalid(g, "mail-type");
        }
        if (end || fail || begin)
                buf_printf(g->out, "notification = %s\n", end ? "Always" : fail ? "Error" : "Start");
        if (begin && (end || fail))
                cli_note("--mail-type: BEGIN is left out, since other mails are asked for as well");
        return 0;
}

static int write_licenses(struct writing *g)
{
        struct str list = str_of(words_text(g->w, "licenses")), one;
        bool any = false;

        while (list.p && str_cut(&list, ',', &one)) {
                struct str count = one, name, place;
                uint64_t n = 1;

                str_cut(&count, ':', &name);
                place = name;
                str_cut(&place, '@', &name);
                if (name.n == 0 || (count.p && str_to_u64(count, &n) != 0) || str_find(one, '|') >= 0)
                        return invalid(g, "licenses");
                buf_printf(g->out, "%s" STR_FMT ":%llu", any ? ", " : "concurrency_limits = ", STR_ARG(name),
                           (unsigned long long)n);
                any = true;
        }
        if (any)
                buf_char(g->out, '\n');
        return 0;
}

static int write_reservation(struct writing *g, struct str value)
{
        uint64_t id;

        if (str_to_u64(value, &id) != 0 || id == 0)
                return err_set(g->err, -EINVAL,
                               "--reservation: '" STR_FMT "' is no number of one: see drover reserve list",
                               STR_ARG(str_head(value, 60)));
        return batch_write_line(g, "reservation", "reservation", value);
}

static int write_accounts(struct writing *g)
{
        int rc = 0;

        if (words_has(g->w, "account"))
                rc = batch_write_line(g, "accounting_group", "account", str_of(words_text(g->w, "account")));
        if (rc == 0 && words_has(g->w, "qos"))
                rc = batch_write_line(g, "qos", "qos", str_of(words_text(g->w, "qos")));
        if (rc == 0 && words_has(g->w, "reservation"))
                rc = write_reservation(g, str_of(words_text(g->w, "reservation")));
        if (rc == 0)
                rc = write_mail(g);
        if (rc == 0)
                rc = write_licenses(g);
        if (words_has(g->w, "comment"))
                write_string(g->out, "SlurmComment", str_of(words_text(g->w, "comment")));
        buf_printf(g->out, "+SlurmRequeue = %d\n",
                   !(words_place(g->w, "no-requeue") > words_place(g->w, "requeue")));
        return rc;
}

/* ---- files */

static const char *task_macro(const struct writing *g)
{
        return g->array ? "$INT(slurm_task)" : "4294967294";
}

/* The patterns of file names. `padded`: digits between the percent sign and the letter. */
static int expand_pattern(struct writing *g, const char *option, struct str s, struct buf *out)
{
        bool plain = str_find(s, '\\') >= 0;

        for (size_t i = 0; i < s.n; i++) {
                char format[16] = "";
                size_t digits = i + 1;
                int64_t width = 0;

                if (s.p[i] != '%' || plain) {
                        if (s.p[i] != '\\')
                                write_text(out, str_make(s.p + i, 1), false);
                        continue;
                }
                while (digits < s.n && isdigit((unsigned char)s.p[digits]) && digits < i + 3)
                        digits++;
                if (digits > i + 1) {
                        str_to_i64(str_make(s.p + i + 1, digits - i - 1), &width);
                        snprintf(format, sizeof(format), ",%%0%dd", (int)(width > 10 ? 10 : width));
                }
                i = digits;
                switch (i < s.n ? s.p[i] : 0) {
                case '%': buf_char(out, '%'); break;
                case 'A': buf_printf(out, *format ? "$INT(Cluster%s)" : "$(Cluster)", format); break;
                case 'a':
                        if (g->array)
                                buf_printf(out, "$INT(slurm_task%s)", format);
                        else
                                buf_addz(out, task_macro(g));
                        break;
                case 'b': buf_addz(out, g->array ? "$INT($(slurm_task) % 10)" : "4"); break;
                case 'j':
                case 'J': buf_printf(out, "$INT(slurm_id%s)", format); break;
                case 'N': buf_addz(out, "$$(AgentName)"); break;
                case 'n':
                case 't':
                        for (int64_t k = 1; k < width && k < 10; k++)
                                buf_char(out, '0');
                        buf_char(out, '0');
                        break;
                case 's': buf_addz(out, "batch"); break;
                case 'u': write_text(out, buf_view(&g->user), false); break;
                case 'x': write_text(out, buf_view(&g->name), false); break;
                default:
                        return err_set(g->err, -EINVAL, "--%s=" STR_FMT ": %%%c is not known", option,
                                       STR_ARG(str_head(s, 200)), i < s.n ? s.p[i] : ' ');
                }
        }
        return 0;
}

/* The file of a stream: for the script in its environment, for listings as an attribute. */
static int read_stream(struct writing *g, const char *option, const char *attribute, const char *text,
                       struct buf *path)
{
        int rc = expand_pattern(g, option, str_of(text), path);

        if (rc != 0)
                return rc;
        if (path->n == 0 || str_ends(buf_view(path), STR("/")) || str_find(str_of(text), '\n') >= 0)
                return err_set(g->err, -EINVAL, "--%s=%s names no file", option, text);
        buf_printf(g->out, "+%s = \"", attribute);
        if (path->p[0] != '/' && str_find(buf_view(&g->folder), '"') < 0) {
                script_value(g->out, buf_view(&g->folder));
                buf_char(g->out, '/');
        }
        for (size_t i = 0; i < path->n; i++)
                buf_addz(g->out, path->p[i] == '"' ? "'" : (char[]){path->p[i], 0});
        buf_addz(g->out, "\"\n");
        return 0;
}

/* Where the place does not see the working folder, files of folders in it come back to these; others to the
 * folder. */
static void write_remap(struct writing *g)
{
        BUF_CLEANUP struct buf remaps = {0}, folder = {0};

        script_value(&folder, buf_view(&g->folder));
        buf_char(&folder, '/');
        for (int i = 0; i < 2; i++) {
                struct str path = buf_view(&g->files[i]);
                ptrdiff_t slash;

                if (str_starts(path, buf_view(&folder)))
                        path = str_skip(path, folder.n);
                slash = str_rfind(path, '/');
                if (slash < 0 || path.p[0] == '/' || str_search(path, STR("..")) >= 0 ||
                    str_find(path, '"') >= 0 || str_find(path, ';') >= 0 || str_find(path, '=') >= 0)
                        continue;
                buf_printf(&remaps, "%s" STR_FMT "=" STR_FMT, remaps.n ? ";" : "",
                           STR_ARG(str_skip(path, (size_t)slash + 1)), STR_ARG(path));
        }
        if (remaps.n)
                buf_printf(g->out, "transfer_output_remaps = \"%s\"\n", buf_z(&remaps));
}

static int write_streams(struct writing *g)
{
        const char *output = words_text(g->w, "output"), *error = words_text(g->w, "error"),
                   *mode = words_text(g->w, "open-mode");
        BUF_CLEANUP struct buf input = {0};
        int rc;

        if (mode && strcmp(mode, "append") != 0 && strcmp(mode, "truncate") != 0 && strcmp(mode, "a") != 0 &&
            strcmp(mode, "t") != 0)
                return invalid(g, "open-mode");
        g->appends = mode && mode[0] == 'a';
        if (!output || !*output)
                output = g->array ? "slurm-%A_%a.out" : "slurm-%j.out";
        if (error && (!*error || strcmp(error, output) == 0))
                error = NULL;
        rc = read_stream(g, "output", "SlurmOut", output, &g->files[0]);
        if (rc == 0 && error)
                rc = read_stream(g, "error", "SlurmErr", error, &g->files[1]);
        if (rc == 0)
                write_remap(g);
        if (rc == 0 && words_has(g->w, "input"))
                rc = expand_pattern(g, "input", str_of(words_text(g->w, "input")), &input);
        if (rc == 0 && input.n)
                buf_printf(g->out, "input = %s\n", buf_z(&input));
        return rc;
}

/* ---- environment */

static void set_keyword(struct writing *g, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
/* The value is text of the submit language. */
static void set_keyword(struct writing *g, const char *name, const char *fmt, ...)
{
        BUF_CLEANUP struct buf word = {0};
        va_list ap;

        buf_printf(&word, "%s=", name);
        va_start(ap, fmt);
        buf_vprintf(&word, fmt, ap);
        va_end(ap);
        args_add(&g->environment, buf_view(&word));
}

static void set_text(struct writing *g, const char *name, struct str value)
{
        BUF_CLEANUP struct buf text = {0};

        write_text(&text, value, false);
        set_keyword(g, name, "%s", buf_z(&text));
}

/* Variables that a job has of its own, and those of the calling shell, stay behind. */
static bool is_copied(struct str word)
{
        static const char *const left[] = {"_=",       "PWD=",     "OLDPWD=", "SHLVL=",    "SLURMD_",
                                           "_CONDOR_", "_DROVER_", "SLURM_",  "HOSTNAME=", "ENVIRONMENT="};

        if (str_starts(word, STR("SLURM_CONF=")))
                return true;
        for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
                if (str_starts(word, str_of(left[i])))
                        return false;
        if (!str_starts(word, STR("DROVER_")))
                return str_find(word, '=') > 0;
        return str_starts(word, STR("DROVER_DIR=")) || str_starts(word, STR("DROVER_SERVER=")) ||
               str_starts(word, STR("DROVER_TOKEN="));
}

extern char **environ;

static void copy_all(struct writing *g)
{
        for (char **v = environ; *v; v++) {
                struct str word = str_of(*v), name;

                if (!is_copied(word))
                        continue;
                str_cut(&word, '=', &name);
                {
                        MEM_CLEANUP char *z = str_dupz(name);

                        set_text(g, z, word);
                }
        }
}

/* Takes the next entry, which ends with a comma outside of quotes; the quotes are removed. */
static bool next_export(struct str *rest, struct buf *ret)
{
        char quote = 0;
        size_t i = 0;

        buf_reset(ret);
        if (rest->n == 0)
                return false;
        for (; i < rest->n && (quote || rest->p[i] != ','); i++) {
                if (!quote && (rest->p[i] == '\'' || rest->p[i] == '"'))
                        quote = rest->p[i];
                else if (quote == rest->p[i])
                        quote = 0;
                else
                        buf_char(ret, rest->p[i]);
        }
        *rest = str_skip(*rest, i + 1);
        return true;
}

static int write_exports(struct writing *g)
{
        const char *text = words_text(g->w, "export");
        struct str rest = str_of(text && *text ? text : "ALL");
        BUF_CLEANUP struct buf one = {0};

        if (str_ieqz(rest, "NONE") || str_ieqz(rest, "NIL"))
                return 0;
        while (next_export(&rest, &one)) {
                struct str word = str_trim(buf_view(&one)), name;

                if (str_ieqz(word, "ALL")) {
                        copy_all(g);
                        continue;
                }
                if (word.n == 0)
                        continue;
                str_cut(&word, '=', &name);
                {
                        MEM_CLEANUP char *z = str_dupz(name);

                        if (name.n == 0)
                                return invalid(g, "export");
                        if (word.p)
                                set_text(g, z, word);
                        else if (getenv(z))
                                set_text(g, z, str_of(getenv(z)));
                }
        }
        return 0;
}

/* Writes the environment variables that describe and name the single node of a job. */
static void write_own_node(struct writing *g)
{
        const struct words *w = g->w;

        set_keyword(g, "SLURM_JOB_ID", "$INT(slurm_id)");
        set_keyword(g, "SLURM_JOBID", "$INT(slurm_id)");
        set_keyword(g, "SLURM_JOB_PARTITION", "$$(QueueName)");
        set_keyword(g, "SLURM_CLUSTER_NAME", "drover");
        set_keyword(g, "SLURMD_NODENAME", "$$(AgentName)");
        set_keyword(g, "SLURM_JOB_NODELIST", "$$(AgentName)");
        set_keyword(g, "SLURM_NODELIST", "$$(AgentName)");
        set_keyword(g, "SLURM_JOB_NUM_NODES", "1");
        set_keyword(g, "SLURM_NNODES", "1");
        set_keyword(g, "SLURM_NODEID", "0");
        set_keyword(g, "SLURM_PROCID", "0");
        set_keyword(g, "SLURM_LOCALID", "0");
        set_keyword(g, "SLURM_GTIDS", "0");
        set_keyword(g, "SLURM_CPUS_ON_NODE", "%llu", (unsigned long long)g->cpus);
        set_keyword(g, "SLURM_JOB_CPUS_PER_NODE", "%llu", (unsigned long long)g->cpus);
        set_keyword(g, "SLURM_TASKS_PER_NODE", "%llu", (unsigned long long)g->ntasks);
        if (!g->b->streams || words_has(w, "ntasks") || words_has(w, "tasks") ||
            words_has(w, "ntasks-per-node") || words_has(w, "tasks-per-node")) {
                set_keyword(g, "SLURM_NTASKS", "%llu", (unsigned long long)g->ntasks);
                set_keyword(g, "SLURM_NPROCS", "%llu", (unsigned long long)g->ntasks);
        }
        if (words_has(w, "ntasks-per-node") || words_has(w, "tasks-per-node"))
                set_keyword(g, "SLURM_NTASKS_PER_NODE", "%llu", (unsigned long long)g->ntasks);
        if (words_has(w, "cpus-per-task"))
                set_keyword(g, "SLURM_CPUS_PER_TASK", "%llu", (unsigned long long)g->per_task);
        if (words_place(w, "mem-per-cpu") > words_place(w, "mem") && g->cpus)
                set_keyword(g, "SLURM_MEM_PER_CPU", "%llu", (unsigned long long)(g->memory_mib / g->cpus));
        else if (g->memory_mib)
                set_keyword(g, "SLURM_MEM_PER_NODE", "%llu", (unsigned long long)g->memory_mib);
        if (g->gpus) {
                set_keyword(g, "SLURM_GPUS_ON_NODE", "%llu", (unsigned long long)g->gpus);
                if (words_has(w, "gpus"))
                        set_keyword(g, "SLURM_GPUS", "%llu", (unsigned long long)g->gpus);
        }
}

static void write_own(struct writing *g)
{
        char host[256] = "";
        const struct words *w = g->w;
        const struct tasks *t = &g->tasks;

        gethostname(host, sizeof(host) - 1);
        set_keyword(g, "ENVIRONMENT", "BATCH");
        set_text(g, "SLURM_JOB_NAME", buf_view(&g->name));
        set_text(g, "SLURM_SUBMIT_DIR", buf_view(&g->folder));
        set_keyword(g, "SLURM_SUBMIT_HOST", "%s", host);
        set_text(g, "SLURM_JOB_USER", buf_view(&g->user));
        set_keyword(g, "SLURM_JOB_UID", "%u", (unsigned)getuid());
        set_keyword(g, "SLURM_JOB_GID", "%u", (unsigned)getgid());
        if (g->nodes == 1) /* else the batch system says all that, and its launcher reads it */
                write_own_node(g);
        if (words_has(w, "account"))
                set_text(g, "SLURM_JOB_ACCOUNT", str_of(words_text(w, "account")));
        if (words_has(w, "qos"))
                set_text(g, "SLURM_JOB_QOS", str_of(words_text(w, "qos")));
        set_keyword(g, "SLURM_RESTART_COUNT", "$$([NumJobStarts])");
        if (g->array) {
                set_keyword(g, "SLURM_ARRAY_JOB_ID", "$(Cluster)");
                set_keyword(g, "SLURM_ARRAY_TASK_ID", "$INT(slurm_task)");
                set_keyword(g, "SLURM_ARRAY_TASK_COUNT", "%zu", t->count);
                set_keyword(g, "SLURM_ARRAY_TASK_MIN", "%u", t->numbers[0]);
                set_keyword(g, "SLURM_ARRAY_TASK_MAX", "%u", t->numbers[t->count - 1]);
                set_keyword(g, "SLURM_ARRAY_TASK_STEP", "%u", t->step ? t->step : 1);
        }
}

/* The words hold text of the submit language; each stands in single quotes, which keep what macros bring. */
static void write_words(struct buf *out, const char *keyword, const struct args *words)
{
        buf_printf(out, "%s = \"", keyword);
        for (size_t i = 0; i < words->n; i++) {
                buf_addz(out, i ? " '" : "'");
                for (const char *p = words->v[i]; *p; p++)
                        buf_addz(out, *p == '"' ? "\"\"" : *p == '\'' ? "''" : (char[]){*p, 0});
                buf_char(out, '\'');
        }
        buf_addz(out, "\"\n");
}

static int write_environment(struct writing *g)
{
        int rc = write_exports(g);

        if (rc != 0)
                return rc;
        write_own(g);
        write_words(g->out, "environment", &g->environment);
        return 0;
}

/* ---- the script */

/* 0 and *ret_number 0: there is none. */
static int read_signal(struct writing *g, bool *ret_script, int *ret_number, int64_t *ret_s)
{
        struct str rest = str_of(words_text(g->w, "signal")), head = STR_NONE, name;

        *ret_script = false;
        *ret_number = 0;
        *ret_s = SIGNAL_S;
        if (!rest.p)
                return 0;
        if (str_find(rest, ':') >= 0)
                str_cut(&rest, ':', &head);
        for (size_t i = 0; i < head.n; i++) {
                if ((head.p[i] | 32) != 'b' && (head.p[i] | 32) != 'r')
                        return invalid(g, "signal");
                *ret_script |= (head.p[i] | 32) == 'b';
        }
        str_cut(&rest, '@', &name);
        *ret_number = action_signal(name);
        if (*ret_number == 0 || (rest.p && (str_to_i64(rest, ret_s) != 0 || *ret_s < 0 || *ret_s > 65535)))
                return invalid(g, "signal");
        return 0;
}

/* "#!/bin/bash -l" as the system reads it: one program, and what is left as one argument. */
static void write_interpreter(struct buf *shell, struct str script)
{
        struct str line, program;

        str_cut(&script, '\n', &line);
        line = str_trim(str_skip(line, 2));
        program = line;
        for (size_t i = 0; i < line.n; i++)
                if (line.p[i] == ' ' || line.p[i] == '\t') {
                        program = str_head(line, i);
                        break;
                }
        script_quote(shell, program);
        line = str_trim(str_skip(line, program.n));
        if (line.n) {
                buf_char(shell, ' ');
                script_quote(shell, line);
        }
}

/* The script writes into its files itself, so that they can be read while it does, and are there however it
 * ends. */
static void write_redirection(const struct writing *g, struct buf *shell)
{
        const char *arrow = g->appends ? ">>" : ">";

        buf_addz(shell, "o=$DROVER_SLURM_OUT e=$DROVER_SLURM_ERR; unset DROVER_SLURM_OUT DROVER_SLURM_ERR; "
                        "[ ! . -ef \"$DROVER_SCRATCH\" ] || o=${o##*/} e=${e##*/}; ");
        if (g->files[1].n)
                buf_printf(shell, "exec %s\"$o\" 2%s\"$e\"; ", arrow, arrow);
        else
                buf_printf(shell, "exec %s\"$o\" 2>&1; ", arrow);
}

static int write_shell(struct writing *g, size_t pieces, struct buf *shell)
{
        bool script;
        int number;
        int64_t before_s;
        int rc = read_signal(g, &script, &number, &before_s);

        if (rc != 0)
                return rc;
        write_redirection(g, shell);
        buf_addz(shell, "s=$DROVER_SCRATCH/.drover_slurm_script; printf %s");
        for (size_t i = 1; i <= pieces; i++)
                buf_printf(shell, " \"${%zu}\"", i);
        buf_printf(shell,
                   " >\"$s\" || exit 126; shift %zu; [ \"$SLURM_RESTART_COUNT\" != 0 ] || unset "
                   "SLURM_RESTART_COUNT; export SLURM_TASK_PID=$$; ",
                   pieces);
        if (number && g->limit_s) {
                int64_t after_s = g->limit_s > before_s ? g->limit_s - before_s : 0;

                write_interpreter(shell, g->b->script);
                buf_printf(
                        shell,
                        " \"$s\" \"$@\" <&0 & p=$!; (trap 'kill $w; exit' TERM; sleep %lld & w=$!; wait $w; ",
                        (long long)after_s);
                if (script)
                        buf_printf(shell, "kill -%d $p)", number);
                else
                        buf_printf(shell, "kill -%d $(cat /proc/$p/task/*/children))", number);
                buf_addz(shell,
                         " 2>/dev/null & t=$!; for n in INT TERM USR1 USR2 CONT HUP; do trap \"kill -$n $p\" "
                         "$n; done; wait $p; c=$?; while kill -0 $p 2>/dev/null; do wait $p; c=$?; done; "
                         "kill $t 2>/dev/null; exit $c");
        } else {
                buf_addz(shell, "exec ");
                write_interpreter(shell, g->b->script);
                buf_addz(shell, " \"$s\" \"$@\"");
        }
        return 0;
}

static void batch_add_text(struct args *words, struct str text)
{
        BUF_CLEANUP struct buf written = {0};

        write_text(&written, text, false);
        args_add(words, buf_view(&written));
}

/* Writes DroverCommand, the text that listings show as the job's command: the program is a shell that writes
 * and starts the script. */
static void write_command(struct writing *g)
{
        const char *wrap = words_text(g->w, "wrap");
        BUF_CLEANUP struct buf text = {0};

        if (wrap)
                buf_addz(&text, wrap);
        else if (strcmp(g->b->command, "(null)") != 0)
                buf_addz(&text, g->b->command);
        else
                buf_addz(&text, "a script from standard input");
        for (size_t i = 0; i < g->b->argument_count; i++)
                buf_printf(&text, " %s", g->b->arguments[i]);
        write_string(g->out, "DroverCommand", buf_view(&text));
}

static int write_script(struct writing *g)
{
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf shell = {0};
        struct str rest = g->b->script;
        size_t pieces = (rest.n + PIECE_MAX - 1) / PIECE_MAX;
        int rc = write_shell(g, pieces, &shell);

        if (rc != 0)
                return rc;
        set_keyword(g, "DROVER_SLURM_OUT", "%s", buf_z(&g->files[0]));
        if (g->files[1].n)
                set_keyword(g, "DROVER_SLURM_ERR", "%s", buf_z(&g->files[1]));
        args_add(&words, STR("-c"));
        batch_add_text(&words, buf_view(&shell));
        batch_add_text(&words, str_of(g->b->command));
        for (; rest.n; rest = str_skip(rest, PIECE_MAX))
                batch_add_text(&words, str_head(rest, PIECE_MAX));
        for (size_t i = 0; i < g->b->argument_count; i++)
                batch_add_text(&words, str_of(g->b->arguments[i]));
        write_command(g);
        buf_addz(g->out,
                 "executable = /bin/sh\ntransfer_executable = false\nshould_transfer_files = IN_PLACE\n");
        write_words(g->out, "arguments", &words);
        return 0;
}

/* ---- the whole */

static void write_queue(struct writing *g)
{
        const struct tasks *t = &g->tasks;

        if (!g->array) {
                buf_addz(g->out, "queue\n");
        } else if (t->step) {
                buf_printf(g->out, "queue %zu\n", t->count);
        } else {
                buf_addz(g->out, "queue slurm_item in (");
                for (size_t i = 0; i < t->count; i++)
                        buf_printf(g->out, "%s%u", i ? " " : "", t->numbers[i]);
                buf_addz(g->out, ")\n");
        }
}

static int write_array(struct writing *g)
{
        const char *text = words_text(g->w, "array");
        const struct tasks *t = &g->tasks;
        int rc;

        if (!text || !*text)
                return 0;
        rc = tasks_read(str_of(text), &g->tasks, g->err);
        if (rc != 0)
                return rc;
        g->array = true;
        if (t->step)
                buf_printf(g->out, "slurm_task = %u + %u * $(Process)\n", t->numbers[0], t->step);
        else
                buf_addz(g->out, "slurm_task = $(slurm_item)\n");
        buf_addz(g->out, "+SlurmTask = $INT(slurm_task)\n");
        write_string(g->out, "SlurmTasks", str_of(text));
        if (t->at_once)
                buf_printf(g->out, "max_materialize = %u\n", t->at_once);
        return 0;
}

static int write_names(struct writing *g)
{
        const char *name = words_text(g->w, "job-name"), *folder = words_text(g->w, "chdir");
        struct passwd *who = getpwuid(getuid());
        char cwd[4096];

        buf_addz(&g->name, name && *name ? name : g->b->name);
        buf_addz(&g->user, who ? who->pw_name : "unknown");
        if (words_place(g->w, "workdir") > words_place(g->w, "chdir"))
                folder = words_text(g->w, "workdir");
        if (!getcwd(cwd, sizeof(cwd)))
                return err_set(g->err, -errno, "the current folder has no name");
        buf_addz(&g->folder, cwd);
        write_string(g->out, "SlurmName", buf_view(&g->name));
        write_string(g->out, "SlurmCommand", str_of(g->b->command));
        if (batch_write_line(g, "batch_name", "job-name", buf_view(&g->name)) != 0)
                return -EINVAL;
        if (folder && *folder) {
                BUF_CLEANUP struct buf path = {0};

                if (*folder != '/')
                        buf_printf(&path, "%s/", cwd);
                buf_addz(&path, folder);
                return batch_write_line(g, "initialdir", "chdir", buf_view(&path));
        }
        return batch_write_line(g, "initialdir", "chdir", str_of(cwd));
}

int batch_write(const struct batch *b, struct buf *out, struct err *err)
{
        struct writing g = {.b = b, .w = b->words, .out = out, .err = err};
        int rc = write_names(&g);

        if (rc == 0)
                rc = write_array(&g);
        if (rc == 0)
                rc = write_resources(&g);
        if (rc == 0)
                rc = write_requirements(&g);
        if (rc == 0)
                rc = write_times(&g);
        if (rc == 0)
                rc = write_dependency(&g);
        if (rc == 0)
                rc = write_accounts(&g);
        if (rc == 0 && b->streams)
                rc = write_streams(&g);
        if (rc == 0 && b->script.n)
                rc = write_script(&g);
        if (rc == 0 && b->environment)
                rc = write_environment(&g);
        if (rc == 0 && str_search(buf_view(out), STR("slurm_id")) >= 0)
                buf_printf(out, "slurm_id = $(Cluster) + $(Process) * %lld\n", BATCH_MEMBER_STEP);
        if (rc == 0 && b->script.n)
                write_queue(&g);
        tasks_deinit(&g.tasks);
        buf_deinit(&g.name);
        buf_deinit(&g.folder);
        buf_deinit(&g.user);
        buf_deinit(&g.files[0]);
        buf_deinit(&g.files[1]);
        args_deinit(&g.environment);
        return rc;
}
