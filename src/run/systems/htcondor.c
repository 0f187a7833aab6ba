/* HTCondor: condor_submit, condor_q, condor_history, condor_rm, condor_hold, condor_release, condor_suspend,
 * condor_continue, condor_status, with the options and attributes that HTCondor's manual documents, as of
 * 8.6 (the pages of the commands; "Job ClassAd Attributes"; "Machine ClassAd Attributes"; "Hold reason
 * codes").
 *
 * Tasks that are alike become one cluster. Its jobs carry DroverName, by which they are found again, and
 * DroverCount, which tells whether the native id is that of the cluster ("7") or of one of its jobs ("7.3").
 * HTCondor restarts a job by itself when its machine is lost; the script would not begin twice, and Drover
 * chooses the next place itself: a job that has begun and is idle again is lost, and is removed.
 *
 * A hold or removal is in the queue before the job has ended: it still runs while RemoteHost is set.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "run/batch/runner.h"
#include "run/systems/htcondor.h"

#define HEAD           "# condor_submit: " /* followed by a line of a submit file */
#define INDEX_VARIABLE "DROVER_TASK"
#define MORE_TIME_S    60 /* longer than the walltime, so that the script ends the program first */
#define VACATE_S       30 /* longer than the script takes to end the program */
#define EXPRESSION_MAX 1000

static const char *const settings[] = {"config",
                                       "schedd",
                                       "pool",
                                       "queue",
                                       "accounting_group",
                                       "concurrency_limits",
                                       "requirements",
                                       "rank",
                                       "filesystem_domain",
                                       "array_max",
                                       NULL};

static const struct batch_variable variables[] = {{"CONDOR_CONFIG", "config"}, {"KRB5CCNAME", NULL},
                                                  {"X509_USER_PROXY", NULL},   {"BEARER_TOKEN_FILE", NULL},
                                                  {"XDG_RUNTIME_DIR", NULL},   {NULL, NULL}};

static const struct {
        const char *command, *setting;
        const char *const words[3]; /* attributes of the job */
} options[] = {
        {"accounting_group", "accounting_group", {"HtcondorAccountingGroup", "BatchProject", NULL}},
        {"concurrency_limits", "concurrency_limits", {"HtcondorConcurrencyLimits", NULL}},
};

/* Returns whether the text is a ClassAd expression on one line and nothing more: no macro, no newline, no
 * bracket that closes what it did not open. Comments and quoted names could hide brackets from this count. */
static bool is_expression(const char *text)
{
        char open[64];
        size_t depth = 0, n = strlen(text);
        bool quoted = false;

        for (const char *p = text; *p; p++) {
                static const char opening[] = "([{", closing[] = ")]}";
                const char *at = strchr(opening, *p);

                if ((unsigned char)*p < ' ' || *p == 127 || *p == '$' || *p == '\\')
                        return false;
                if (*p == '"')
                        quoted = !quoted;
                if (quoted)
                        continue;
                if (*p == '\'' || (*p == '/' && (p[1] == '/' || p[1] == '*')))
                        return false;
                if (at && depth == sizeof(open))
                        return false;
                if (at)
                        open[depth++] = closing[at - opening];
                else if (strchr(closing, *p) && (depth == 0 || open[--depth] != *p))
                        return false;
        }
        return n > 0 && n <= EXPRESSION_MAX && depth == 0 && !quoted;
}

static bool has_any_domain(const struct batch_settings *s)
{
        const char *domain = batch_setting(s, "filesystem_domain");

        return domain && !strcmp(domain, "any");
}

static int condor_check(const struct batch_settings *s, struct err *err)
{
        const char *domain = batch_setting(s, "filesystem_domain"),
                   *array_max = batch_setting(s, "array_max");
        uint64_t n;

        if (domain && strcmp(domain, "same") != 0 && strcmp(domain, "any") != 0)
                return err_set(err, -EINVAL, "filesystem_domain is same or any");
        if (array_max && (str_to_u64(str_of(array_max), &n) != 0 || n < 1 || n > 10000))
                return err_set(err, -EINVAL, "array_max is a number, 1 to 10000");
        for (size_t i = 0; i < s->n; i++) {
                const struct run_word *w = &s->v[i];
                bool expression =
                        !strcmp(w->name, "requirements") || !strcmp(w->name, "rank") || *w->name == '+';

                if (expression && !is_expression(w->value))
                        return err_set(err, -EINVAL, "%s is an expression of ClassAds in one line, without $",
                                       w->name);
        }
        return 0;
}

/* ---- submit files */

static int add_expression(const struct batch_settings *s, const struct run_spec *spec, const char *command,
                          const char *word, struct buf *out, struct err *err)
{
        const char *words[] = {word, NULL}, *own = batch_word(spec, words, NULL, NULL),
                   *all = batch_setting(s, command);

        if (own && !is_expression(own))
                return err_set(err, -EINVAL, "'%.100s' cannot be the %s of a job in HTCondor", own, command);
        if (own && all && !strcmp(command, "requirements"))
                buf_printf(out, HEAD "%s = (%s) && (%s)\n", command, all, own);
        else if (own || all)
                buf_printf(out, HEAD "%s = %s\n", command, own ? own : all);
        return 0;
}

static int add_words(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                     struct err *err)
{
        static const char *const queue_words[] = {"HtcondorQueue", "BatchQueue", NULL};
        const char *queue = batch_word(spec, queue_words, s, "queue");

        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
                const char *value = batch_word(spec, options[i].words, s, options[i].setting);

                if (value && *value && !batch_plain(value))
                        return err_set(err, -EINVAL, "'%.100s' cannot be the %s of a job in HTCondor", value,
                                       options[i].command);
                if (value && *value)
                        buf_printf(out, HEAD "%s = %s\n", options[i].command, value);
        }
        if (queue && *queue && !batch_plain(queue))
                return err_set(err, -EINVAL, "'%.100s' cannot be a queue's name", queue);
        if (queue && *queue) /* HTCondor has no queues; sites route by the attribute */
                buf_printf(out, HEAD "+BatchQueue = \"%s\"\n", queue);
        for (size_t i = 0; i < s->n; i++)
                if (*s->v[i].name == '+')
                        buf_printf(out, HEAD "%s = %s\n", s->v[i].name, s->v[i].value);
        return 0;
}

static int condor_resources(const struct batch_settings *s, const struct run_spec *spec, struct buf *out,
                            struct err *err)
{
        unsigned long long cpus = (spec->cpus_milli + 999) / 1000,
                           mib = (spec->memory_bytes + (1 << 20) - 1) >> 20;

        buf_printf(out, HEAD "request_cpus = %llu\n", cpus ? cpus : 1);
        if (mib)
                buf_printf(out, HEAD "request_memory = %llu\n", mib);
        if (spec->gpus)
                buf_printf(out, HEAD "request_gpus = %llu\n", (unsigned long long)spec->gpus);
        /* allowed_execute_duration does not end a job that begins in the second in which its shadow started,
         * as happens when nothing is transferred (23.9.6, 25.14.1) */
        if (spec->walltime_ms)
                buf_printf(out, HEAD "allowed_job_duration = %llu\n",
                           (unsigned long long)((spec->walltime_ms + 999) / 1000 + MORE_TIME_S));
        int r = add_expression(s, spec, "requirements", "HtcondorRequirements", out, err);
        if (r == 0)
                r = add_expression(s, spec, "rank", "HtcondorRank", out, err);
        return r < 0 ? r : add_words(s, spec, out, err);
}

static void condor_naming(const char *name, const char *log, unsigned count, struct buf *out)
{
        buf_printf(out, "# %s, %u; output: %s\n", name, count, log);
}

static void add_tool(struct batch_call *c, struct str words)
{
        const char *schedd = batch_setting(c->settings, "schedd"), *pool = batch_setting(c->settings, "pool");

        batch_words_add(c, words);
        if (schedd) {
                batch_word_add(c, "-name");
                batch_word_add(c, schedd);
        }
        if (pool) {
                batch_word_add(c, "-pool");
                batch_word_add(c, pool);
        }
}

static void add_path(struct buf *out, const char *command, struct str path, const char *end)
{
        buf_printf(out, "%s = ", command);
        for (size_t i = 0; i < path.n; i++)
                if (path.p[i] == '$')
                        buf_addz(out, "$(DOLLAR)");
                else
                        buf_char(out, path.p[i]);
        buf_printf(out, "%s\n", end);
}

/* The submit file goes to the command's standard input. */
static void condor_submit(struct batch_call *c, const struct batch_sending *s)
{
        struct buf *out = &c->input;
        struct str script = str_of(s->script), base = script, head = str_of(s->head), line;

        add_tool(c, STR("condor_submit -terse"));
        batch_word_add(c, "-");
        if (str_ends(base, STR(".sh")))
                base = str_head(base, base.n - 3);
        buf_addz(out, "universe = vanilla\ntransfer_executable = false\ninitialdir = /\n"
                      "notification = never\nwant_graceful_removal = true\n");
        buf_addz(out, has_any_domain(c->settings)
                              ? "should_transfer_files = YES\ntransfer_output_files = \"\"\n"
                              : "should_transfer_files = NO\n");
        buf_printf(out,
                   "job_max_vacate_time = %d\nenvironment = \"" INDEX_VARIABLE
                   "=$(Process)\"\nbatch_name = %s\n+" HTCONDOR_NAME " = \"%s\"\n+" HTCONDOR_COUNT " = %u\n",
                   VACATE_S, s->name, s->name, s->count);
        add_path(out, "executable", script, "");
        add_path(out, "output", base, ".$(Process).log");
        add_path(out, "error", base, ".$(Process).log");
        while (head.n && str_cut(&head, '\n', &line))
                if (str_starts(line, STR(HEAD)))
                        buf_printf(out, STR_FMT "\n", STR_ARG(str_skip(line, strlen(HEAD))));
        buf_printf(out, "queue %u\n", s->count);
}

/* Reads "7.0 - 7.3" from the last line. */
static bool condor_submitted(struct str out, struct buf *ret_native)
{
        struct str last = batch_last_line(out), cluster, rest = last;
        uint64_t n;

        if (!str_cut(&rest, '.', &cluster) || !rest.p || str_search(rest, STR(" - ")) < 0 ||
            str_to_u64(cluster, &n) != 0)
                return false;
        buf_str(ret_native, cluster);
        return true;
}

/* Detects limits on the number of jobs, where a cluster that does not fit is refused as a whole, and users
 * that the schedd does not know or let submit, which is not the job's fault. */
static bool condor_full(struct str errors)
{
        static const char *const said[] = {"MAX_JOBS_SUBMITTED", "MAX_JOBS_PER_OWNER",
                                           "SECMAN:2010:Received \"DENIED\"",
                                           "AUTHENTICATE:1003:Failed to authenticate", NULL};

        return batch_contains(errors, said);
}

/* Returns whether condor_submit or the schedd refused the job; false for failures to reach the schedd, and
 * for a failed commit without a reason, which may have been accepted. */
static bool condor_refused(int exit_code, struct str errors)
{
        static const char *const unsure[] = {"onnect",        "an't find address", "SECMAN:",
                                             "AUTHENTICATE:", "ommunication",      "timed out",
                                             "imeout",        "no Drover server",  NULL},
                                 *const said[] = {"ERROR:", "condor_submit: ", NULL};
        ptrdiff_t commit = str_search(errors, STR("Failed to commit job submission"));

        if (commit >= 0 && str_search(str_skip(errors, (size_t)commit), STR("ERROR:")) < 0)
                return false;
        return exit_code > 0 && batch_contains(errors, said) && !batch_contains(errors, unsure);
}

static bool condor_refused_array(struct str errors)
{
        static const char *const said[] = {"MAX_JOBS_PER_SUBMISSION", "SUBMIT_MAX_PROCS_IN_CLUSTER", NULL};

        return batch_contains(errors, said);
}

static void condor_native_of(const char *native, unsigned index, struct buf *out)
{
        buf_printf(out, "%s.%u", native, index);
}

/* ---- questions */

static void condor_status(struct batch_call *c, const char *user)
{
        (void)user; /* the user may have another name there */
        add_tool(c, STR("condor_q -json -allusers -attributes " HTCONDOR_JOB));
        batch_word_add(c, "-constraint");
        batch_word_add(c, HTCONDOR_NAME " =!= undefined");
}

/* Asks the history, which is read from its end until all jobs are found. */
static void condor_past(struct batch_call *c, const char *user, const char *natives)
{
        (void)user;
        BUF_CLEANUP struct buf limit = {0};
        struct str list = str_of(natives), one;
        unsigned n = 1;
        for (const char *p = natives; *p; p++)
                n += *p == ',';
        buf_printf(&limit, "%u", n);
        add_tool(c, STR("condor_history -json -attributes " HTCONDOR_JOB));
        batch_word_add(c, "-limit");
        batch_word_add(c, buf_z(&limit));
        while (list.n && str_cut(&list, ',', &one))
                args_add(&c->argv, one);
}

/* Holds only jobs that are idle when the command arrives, since a hold ends a running job. */
static void hold_waiting(struct batch_call *c, struct str natives)
{
        BUF_CLEANUP struct buf clusters = {0}, jobs = {0}, constraint = {0};
        struct str one;

        while (natives.n && str_cut(&natives, ' ', &one)) {
                struct buf *list = str_find(one, '.') < 0 ? &clusters : &jobs;

                buf_printf(list, "%s" STR_FMT, list->n ? "," : "", STR_ARG(one));
        }
        buf_printf(&constraint,
                   "JobStatus == 1 && (stringListMember(string(ClusterId), \"%s\") || "
                   "stringListMember(strcat(ClusterId, \".\", ProcId), \"%s\"))",
                   buf_z(&clusters), buf_z(&jobs));
        add_tool(c, STR("condor_hold"));
        batch_word_add(c, "-constraint");
        batch_word_add(c, buf_z(&constraint));
}

static void condor_act(struct batch_call *c, enum batch_verb verb, struct str natives)
{
        static const char *const words[] = {[BATCH_END] = "condor_rm",
                                            [BATCH_STOP] = "condor_suspend",
                                            [BATCH_CONTINUE] = "condor_continue",
                                            [BATCH_RELEASE] = "condor_release"};

        if (verb == BATCH_HOLD) {
                hold_waiting(c, natives);
                return;
        }
        add_tool(c, str_of(words[verb]));
        batch_words_add(c, natives);
}

/* ---- slots */

static void condor_capacity(struct batch_call *c)
{
        const char *pool = batch_setting(c->settings, "pool"),
                   *requirements = batch_setting(c->settings, "requirements");

        batch_words_add(c, STR("condor_status -json -attributes " HTCONDOR_SLOT));
        if (pool) {
                batch_word_add(c, "-pool");
                batch_word_add(c, pool);
        }
        if (requirements) {
                batch_word_add(c, "-constraint");
                batch_word_add(c, requirements);
        }
}

const struct batch_system batch_htcondor = {
        .name = "htcondor",
        .settings = settings,
        .set_free = "+",
        .variables = variables,
        .index_variable = INDEX_VARIABLE,
        .array_max = 1000,
        .verbs = 1u << BATCH_END | 1u << BATCH_STOP | 1u << BATCH_CONTINUE | 1u << BATCH_HOLD |
                 1u << BATCH_RELEASE,
        .check = condor_check,
        .resources = condor_resources,
        .naming = condor_naming,
        .submit = condor_submit,
        .submitted = condor_submitted,
        .refused = condor_refused,
        .full = condor_full,
        .refused_array = condor_refused_array,
        .native_of = condor_native_of,
        .status = condor_status,
        .is_answer = htcondor_is_answer,
        .status_read = htcondor_jobs_read,
        .past = condor_past,
        .past_read = htcondor_jobs_read,
        .act = condor_act,
        .capacity = condor_capacity,
        .capacity_read = htcondor_slots_read,
};

static int condor_open(const struct runner_config *c, struct runner **ret, struct err *err)
{
        return batch_open(&runner_htcondor, &batch_htcondor, c, ret, err);
}

const struct runner_kind runner_htcondor = {
        .name = "htcondor", .for_users = true, .open = condor_open, BATCH_VERBS};
