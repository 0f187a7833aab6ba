/* condor_rm, condor_hold, condor_release, condor_suspend, condor_continue, condor_vacate_job: POST
 * /v1/actions for each word, so that each has its line of output. */
#include <stdio.h>

#include "base/format/json.h"
#include "classad/expr.h"
#include "cli/condor/condor.h"
#include "cli/condor/select.h"

struct deed {
        const char *action;           /* name in the API */
        const char *one, *all, *verb; /* "Job 7.0 …", "All jobs … have been …", "Couldn't find/… all jobs" */
        bool takes_held;
};

struct acting {
        struct cli *cli;
        const struct deed *deed;
        const char *reason;
        struct buf constraint; /* combination of -constraint and -held; empty: none */
};

static void write_body(const struct acting *a, const char *id, struct str constraint, struct buf *body)
{
        struct json j = {.out = body};

        json_open(&j, '{');
        json_kstrz(&j, "action", a->deed->action);
        json_key(&j, "ids");
        json_open(&j, '[');
        if (id)
                json_strz(&j, id);
        json_close(&j, ']');
        if (constraint.n)
                json_kstr(&j, "constraint", constraint);
        if (a->reason)
                json_kstrz(&j, "reason", a->reason);
        json_close(&j, '}');
}

/* 0: something was done, or nothing had to be. -1: there is no such job. Else an exit code after an error.
 * *ret_why is the server's word on one job. */
static int act_post(const struct acting *a, const char *id, struct str constraint, struct buf *ret_why)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0};
        struct err err = {""};
        struct view item;
        size_t at = 0;
        int rc;

        write_body(a, id, constraint, &body);
        rc = api_call(a->cli,
                      &(struct api_request){.method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                      &answer, &err);
        if (rc == API_REFUSED && answer.status == 404)
                return -1;
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        if (view_next(view_get(answer.root, "errors"), &at, &item))
                view_text(view_get(item, "message"), ret_why);
        return view_integer(view_get(answer.root, "affected"), 0) > 0 ? 0 : -1;
}

static int act_on_job(const struct acting *a, const char *id)
{
        struct buf why BUF_CLEANUP = {0};
        int rc = act_post(a, id, buf_view(&a->constraint), &why);

        if (rc == 0)
                printf("Job %s %s\n", id, a->deed->one);
        else if (rc < 0 && why.n)
                fprintf(stderr, "Job %s: %s\n", id, buf_z(&why));
        else if (rc < 0)
                fprintf(stderr, "Job %s not found\n", id);
        return rc == 0 ? 0 : 1;
}

static int act_on_many(const struct acting *a, const char *id, struct str constraint, const char *which)
{
        struct buf why BUF_CLEANUP = {0};
        int rc = act_post(a, id, constraint, &why);

        if (rc == 0)
                printf("All jobs%s have been %s\n", which, a->deed->all);
        else if (rc < 0)
                fprintf(stderr, "Couldn't find/%s all jobs%s\n", a->deed->verb, which);
        return rc == 0 ? 0 : 1;
}

static int act_on_word(const struct acting *a, const char *word)
{
        struct buf constraint BUF_CLEANUP = {0}, owner BUF_CLEANUP = {0}, which BUF_CLEANUP = {0};

        if (select_is_id(word) && str_find(str_of(word), '.') >= 0)
                return act_on_job(a, word);
        buf_str(&constraint, buf_view(&a->constraint));
        if (select_is_id(word)) {
                buf_printf(&which, " in cluster %s", word);
                return act_on_many(a, word, buf_view(&constraint), buf_z(&which));
        }
        select_owner(&owner, str_of(word));
        select_and(&constraint, buf_view(&owner));
        buf_printf(&which, " of user \"%s\"", word);
        return act_on_many(a, NULL, buf_view(&constraint), buf_z(&which));
}

static int act_on_jobs(struct cli *cli, const struct flags *f, const struct deed *deed)
{
        struct buf which BUF_CLEANUP = {0};
        struct select s SELECT_CLEANUP = {0};
        struct acting a = {.cli = cli, .deed = deed, .reason = flags_text(f, "reason")};
        const struct flag_given *g;
        struct err err = {""};
        size_t at = 0;
        int code = 0;

        if (select_words(&s, f, NULL, &err) != 0)
                return cli_error(1, "%s", err.text);
        if (deed->takes_held && flags_has(f, "held"))
                select_and(&a.constraint, STR("JobStatus == 5"));
        while ((g = flags_next(f, "constraint", &at)))
                select_and_given(&a.constraint, g->words[0]);
        if (f->word_count == 0 && a.constraint.n == 0 && !flags_has(f, "all"))
                code = cli_error(1, "which jobs? Give cluster, cluster.proc, a user, -constraint or -all");
        for (size_t i = 0; i < f->word_count; i++)
                code |= act_on_word(&a, f->words[i]);
        if (code == 0 && f->word_count == 0) {
                if (a.constraint.n) {
                        buf_addz(&which, " matching constraint ");
                        expr_text_to_old(buf_view(&a.constraint), &which);
                }
                code = act_on_many(&a, NULL, a.constraint.n ? buf_view(&a.constraint) : STR("true"),
                                   buf_z(&which));
        }
        buf_deinit(&a.constraint);
        return code;
}

static int remove_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(
                cli, f, &(struct deed){"remove", "marked for removal", "marked for removal", "remove", true});
}

static int hold_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(cli, f, &(struct deed){"hold", "held", "held", "hold", false});
}

static int release_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(cli, f, &(struct deed){"release", "released", "released", "release", false});
}

static int suspend_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(cli, f, &(struct deed){"suspend", "suspended", "suspended", "suspend", false});
}

static int continue_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(cli, f, &(struct deed){"resume", "continued", "continued", "continue", false});
}

static int vacate_jobs(struct cli *cli, const struct flags *f)
{
        return act_on_jobs(cli, f, &(struct deed){"vacate", "vacated", "vacated", "vacate", false});
}

#define ROWS                                                                                                 \
        {"all", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "All jobs that you may act on."},                            \
                {"constraint", 1,      FLAG_VALUE,                                                           \
                 FLAG_ACTS,    "EXPR", "Only jobs for which this expression is true."},                      \
                {"reason", 1, FLAG_VALUE, FLAG_ACTS, "TEXT", "A reason, kept with the jobs."},               \
                {"totals", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "One line is printed for each word as it is."}, \
        {                                                                                                    \
                "long", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "One line is printed for each word as it is."      \
        }
#define USAGE "[FLAGS] [CLUSTER | CLUSTER.PROC | USER]..."

static const struct flag_row remove_rows[] = {
        ROWS,
        {"held", 4, FLAG_PLAIN, FLAG_ACTS, NULL, "Only jobs that are held."},
        {"forcex", 1, FLAG_PLAIN, FLAG_SO, NULL,
         "A job that lingers because of leave_in_queue leaves when it is removed anyway."},
        {"transfer", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "outputs of a removed job are not brought back."},
        {0},
};
static const struct flag_row hold_rows[] = {
        ROWS,
        {"subcode", 1, FLAG_VALUE, FLAG_WARNED, "N",
         "The code of a hold by its owner is 1, without a subcode."},
        {0},
};
static const struct flag_row vacate_rows[] = {
        ROWS,
        {"fast", 1, FLAG_PLAIN, FLAG_WARNED, NULL, "A job has its job_max_vacate_time to end anyway."},
        {0},
};
static const struct flag_row plain_rows[] = {ROWS, {0}};

const struct condor_tool condor_rm = {"condor_rm", USAGE,  "Removes jobs.", remove_rows,
                                      0,           100000, remove_jobs};
const struct condor_tool condor_hold = {"condor_hold", USAGE,    "Puts jobs on hold.", hold_rows, 0,
                                        100000,        hold_jobs};
const struct condor_tool condor_release = {
        "condor_release", USAGE, "Lets held jobs go on.", plain_rows, 0, 100000, release_jobs};
const struct condor_tool condor_suspend = {
        "condor_suspend", USAGE, "Stops jobs where they run.", plain_rows, 0, 100000, suspend_jobs};
const struct condor_tool condor_continue = {
        "condor_continue", USAGE, "Lets suspended jobs go on.", plain_rows, 0, 100000, continue_jobs};
const struct condor_tool condor_vacate_job = {
        "condor_vacate_job", USAGE, "Takes running jobs from their places; they wait again.",
        vacate_rows,         0,     100000,
        vacate_jobs};
