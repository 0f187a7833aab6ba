/* scancel: POST /v1/actions for the jobs that are named, or that options choose. */
#include <signal.h>
#include <stdio.h>

#include "base/format/json.h"
#include "cli/client/api.h"
#include "cli/slurm/actions.h"
#include "cli/slurm/ids.h"
#include "cli/slurm/select.h"
#include "cli/slurm/slurm.h"

/* Slurm's scancel takes a job that has ended, or never was, for cancelled already: its exit code is 0. */
static int cancel_word(struct cli *cli, const struct words *w, const char *word, const struct action *a)
{
        struct err err = {""};
        struct job_id id;
        int rc;

        if (job_id_parse(str_of(word), &id, &err) != 0)
                return slurm_error(1, "Invalid job id %s", word);
        job_id_deinit(&id);
        rc = action_do(cli, a, word, STR_NONE, &err);
        if (rc > 0 && words_has(w, "verbose"))
                slurm_error(0, "Kill job error on job id %s: Invalid job id specified", word);
        if (rc < 0)
                return slurm_error(1, "%s", err.text);
        return 0;
}

struct chosen {
        struct cli *cli;
        const struct select *select;
        const struct action *action;
        bool states; /* states were named */
        int code;
};

static void cancel_one(void *arg, const struct record *r)
{
        struct chosen *c = arg;
        BUF_CLEANUP struct buf id = {0};
        struct err err = {""};

        if (!select_takes(c->select, r))
                return;
        buf_printf(&id, "%lld", (long long)record_number(r));
        if (action_do(c->cli, c->action, buf_z(&id), STR_NONE, &err) < 0)
                c->code = slurm_error(1, "%s", err.text);
}

/* All requests of an owner that have not ended: an action by ids looks at their jobs only. */
static int cancel_owner(struct cli *cli, struct str owner, const struct action *a)
{
        BUF_CLEANUP struct buf path = {0}, cursor = {0};

        do {
                struct api_answer answer API_ANSWER_CLEANUP = {0};
                struct view request;
                struct err err = {""};
                size_t at = 0;
                int code;

                buf_reset(&path);
                buf_addz(&path, "/v1/requests");
                api_query(&path, "owner", owner);
                api_query(&path, "limit", STR("1000"));
                api_query(&path, "after", buf_view(&cursor));
                code = api_get(cli, buf_z(&path), &answer);
                if (code != 0)
                        return 1;
                while (view_next(view_get(answer.root, "requests"), &at, &request)) {
                        BUF_CLEANUP struct buf id = {0};

                        view_text(view_get(request, "id"), &id);
                        if (action_do(cli, a, buf_z(&id), STR_NONE, &err) < 0)
                                return slurm_error(1, "%s", err.text);
                }
                buf_reset(&cursor);
                view_text(view_get(answer.root, "next"), &cursor);
        } while (cursor.n);
        return 0;
}

/* Cancels jobs of the owners named by --user, or of the caller. */
static int cancel_owners(struct cli *cli, const struct words *w, const struct action *a)
{
        struct str rest = str_of(words_text(w, "user")), one;
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf you = {0};
        int code = 0;

        if (rest.n == 0) {
                code = api_get(cli, "/v1/server", &answer);
                view_text(view_get(answer.root, "you"), &you);
                return code ? 1 : cancel_owner(cli, buf_view(&you), a);
        }
        while (code == 0 && str_cut(&rest, ',', &one))
                code = cancel_owner(cli, str_trim(one), a);
        return code;
}

static int cancel_chosen(struct cli *cli, const struct words *w, const struct action *a)
{
        SELECT_CLEANUP struct select s = {.any_state = true};
        struct chosen c = {.cli = cli, .select = &s, .action = a};
        struct err err = {""};
        const char *state;
        int code = 0;

        if (w->word_count == 0 && !words_has(w, "state") && !words_has(w, "name") &&
            !words_has(w, "partition") && !words_has(w, "account") && !words_has(w, "qos") &&
            !words_has(w, "nodelist"))
                return cancel_owners(cli, w, a);
        for (size_t i = 0; i < w->word_count; i++)
                if (select_ids(&s, str_of(w->words[i]), &err) != 0)
                        return slurm_error(1, "%s", err.text);
        if (words_has(w, "user"))
                code = select_users(&s, str_of(words_text(w, "user")));
        else if (w->word_count == 0)
                code = select_me(cli, &s);
        for (size_t at = 0; code == 0 && (state = words_next(w, "state", &at));)
                if (select_states(&s, str_of(state), &err) != 0)
                        code = slurm_error(1, "%s", err.text);
        s.names = words_text(w, "name");
        s.partitions = words_text(w, "partition");
        s.accounts = words_text(w, "account");
        s.qos = words_text(w, "qos");
        s.nodes = words_text(w, "nodelist");
        if (code != 0)
                return code;
        code = select_fetch(cli, &s, "/v1/jobs", "after", "", cancel_one, &c);
        return code > 0 ? code : c.code;
}

static int scancel(struct cli *cli, const struct words *w)
{
        static const char *const choosing[] = {"user",      "me",      "name", "state",
                                               "partition", "account", "qos",  "nodelist"};
        struct action a = {.name = "remove"};
        const char *text = words_text(w, "signal");
        bool chooses = false;
        int code = 0;

        if (text) {
                int number = action_signal(str_of(text));

                if (number == 0)
                        return slurm_error(1, "Unknown job signal: %s", text);
                if (number != SIGKILL && number != SIGTERM)
                        a = (struct action){.name = "signal", .value = number, .has_value = true};
        }
        for (size_t i = 0; i < sizeof(choosing) / sizeof(choosing[0]); i++)
                chooses |= words_has(w, choosing[i]);
        if (chooses)
                return cancel_chosen(cli, w, &a);
        if (w->word_count == 0)
                return slurm_error(1, "No job identification provided");
        for (size_t i = 0; i < w->word_count; i++) {
                struct str rest = str_of(w->words[i]), one;

                /* Several may stand in one word, parted by commas or blanks. */
                while (str_word(&rest, &one)) {
                        BUF_CLEANUP struct buf word = {0};

                        buf_str(&word, one);
                        code |= cancel_word(cli, w, buf_z(&word), &a);
                }
        }
        return code;
}

static const struct words_row rows[] = {
        {"account", 'A', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Jobs of these accounting groups."},
        {"me", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "One's own jobs."},
        {"name", 'n', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Jobs of these names."},
        {"jobname", 0, WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL, "use --name."},
        {"nodelist", 'w', WORDS_VALUE, WORDS_ACTS, "NODES", NULL, "Jobs at these agents."},
        {"partition", 'p', WORDS_VALUE, WORDS_ACTS, "QUEUES", NULL, "Jobs of these queues."},
        {"qos", 'q', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL, "Jobs of these qualities of service."},
        {"signal", 's', WORDS_VALUE, WORDS_ACTS, "SIGNAL", NULL,
         "Send that signal to jobs that run; TERM and KILL remove them."},
        {"state", 't', WORDS_VALUE, WORDS_ACTS, "STATES", NULL, "Jobs in these states."},
        {"user", 'u', WORDS_VALUE, WORDS_ACTS, "NAMES", NULL,
         "Jobs of these users, of those that one may remove."},
        {"quiet", 'Q', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Nothing is told of jobs that have ended."},
        {"verbose", 'v', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Tell of jobs that have ended, or never were."},
        {"batch", 'b', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Signals go to all of a job."},
        {"full", 'f', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Signals go to all of a job."},
        {"hurry", 'H', WORDS_PLAIN, WORDS_SO, NULL, NULL, "There are no burst buffers."},
        {"ctld", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Signals go by the server."},
        {"interactive", 'i', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "squeue shows what would be removed."},
        {"clusters", 'M', WORDS_VALUE, WORDS_REFUSED, "NAMES", NULL,
         "$DROVER_DIR or $DROVER_SERVER name the server."},
        {"reservation", 'R', WORDS_VALUE, WORDS_REFUSED, "NAME", NULL,
         "drover reserve list shows reservations."},
        {"sibling", 0, WORDS_VALUE, WORDS_REFUSED, "NAME", NULL, "there is one cluster."},
        {"wckey", 0, WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL, "there are no such keys."},
        {0},
};
const struct words_tool slurm_scancel = {
        .name = "scancel",
        .usage = "[OPTIONS] [ID | ID_TASK | ID_[TASKS]]...",
        .line = "Removes jobs, or sends them a signal.",
        .rows = rows,
        .run = scancel,
};
