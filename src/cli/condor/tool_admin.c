/* condor_drain and condor_userprio: draining of agents, and the usage of accounts. */
#include <stdio.h>

#include "cli/client/agent.h"
#include "cli/condor/condor.h"

/* ---- condor_drain */

static int drain(struct cli *cli, const struct flags *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        const char *name = f->words[0], *at = strrchr(name, '@');
        bool cancels = flags_has(f, "cancel");
        struct err err = {""};
        int rc;

        if (at) /* a slot: QUEUE@AGENT */
                name = at + 1;
        rc = agent_drain(cli, name, flags_text(f, "reason"), !cancels, &answer, &err);
        if (rc != 0)
                return cli_error(1, "%s", err.text);
        printf("Sent request to %s %s\n", cancels ? "cancel draining on" : "drain", name);
        return 0;
}

static const struct flag_row drain_rows[] = {
        {"graceful", 1, FLAG_PLAIN, FLAG_SO, NULL, "Jobs that run go on to their end."},
        {"cancel", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "The machine is given jobs again."},
        {"reason", 3, FLAG_VALUE, FLAG_ACTS, "TEXT", "Why; shown in listings."},
        {"quick", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "drain it, and use condor_vacate_job."},
        {"fast", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "drain it, and use condor_vacate_job."},
        {"resume-on-completion", 3, FLAG_PLAIN, FLAG_REFUSED, NULL, "use -cancel when it is done."},
        {0},
};
const struct condor_tool condor_drain = {
        .name = "condor_drain",
        .usage = "[FLAGS] MACHINE",
        .line = "Gives a machine (an agent, by its name) no more jobs.",
        .rows = drain_rows,
        .words_min = 1,
        .words_max = 1,
        .run = drain,
};

/* ---- condor_userprio */

#define REAL_LEAST 0.5 /* best real priority, as in HTCondor */

static int list_users(struct cli *cli, const struct flags *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct view item;
        size_t at = 0, users = 0;
        int code = api_get(cli, "/v1/accounts", &answer);

        if (code != 0)
                return 1;
        buf_printf(&out, "%-32s %12s %10s %8s %14s\n%-32s %12s %10s %8s %14s\n", "", "Effective", "Priority",
                   "Res", "Total Usage", "User Name", "Priority", "Factor", "In Use", "(wghted-hrs)");
        while (view_next(view_get(answer.root, "accounts"), &at, &item)) {
                struct buf name BUF_CLEANUP = {0};
                double shares = view_real(view_get(item, "shares")),
                       real = view_real(view_get(item, "mean_cpus")), factor = shares > 0 ? 1000 / shares : 0;

                if (!view_true(view_get(item, "user")))
                        continue;
                view_text(view_get(item, "name"), &name);
                buf_printf(&out, "%-32s %12.2f %10.2f %8.0f %14.2f\n", buf_z(&name),
                           (real > REAL_LEAST ? real : REAL_LEAST) * factor, factor,
                           view_real(view_get(item, "cpus")), view_real(view_get(item, "usage_s")) / 3600);
                users++;
        }
        buf_printf(&out, "Number of users: %zu\n", users);
        (void)f;
        cli_print(&out);
        return 0;
}

static const struct flag_row user_rows[] = {
        {"all", 1, FLAG_PLAIN, FLAG_SO, NULL, "All columns that there are."},
        {"allusers", 4, FLAG_PLAIN, FLAG_SO, NULL, "All users that have used or want something."},
        {"setprio", 4, FLAG_TWO, FLAG_REFUSED, "USER N", "the server computes what a user has had."},
        {"setfactor", 4, FLAG_TWO, FLAG_REFUSED, "USER N", "set shares in droverd.yaml: drover-priority(7)."},
        {"resetusage", 6, FLAG_VALUE, FLAG_REFUSED, "USER", "usage is halved with each half-life."},
        {0},
};
const struct condor_tool condor_userprio = {
        .name = "condor_userprio",
        .usage = "[FLAGS]",
        .line = "Lists users with what they have had of late; the factor is 1000 by their shares.",
        .rows = user_rows,
        .run = list_users,
};
