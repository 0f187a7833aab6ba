/* gstatement, gusage, glstxn, glsjob: what has moved, from the statements of the bank. */
#include <stdio.h>
#include <time.h>

#include "base/format/url.h"
#include "base/map.h"
#include "cli/gold/gold.h"

#define RULE "################################################################################\n"

/* The object and the action that Gold has for a movement: what belongs to a job, and what to an account. */
static const char *object_of(struct view m)
{
        return view_is(view_get(m, "what"), "charge") || view_is(view_get(m, "what"), "refund") ? "Job"
                                                                                                : "Account";
}

static const char *action_of(struct view m)
{
        static const char *const names[][2] = {{"charge", "Charge"},     {"refund", "Refund"},
                                               {"deposit", "Deposit"},   {"withdraw", "Withdraw"},
                                               {"transfer", "Transfer"}, {NULL, NULL}};

        for (size_t i = 0; names[i][0]; i++)
                if (view_is(view_get(m, "what"), names[i][0]))
                        return names[i][1];
        return "Modify";
}

static void job_print(struct view m, struct buf *out)
{
        if (view_there(view_get(m, "request")))
                buf_printf(out, "%lld.%lld", (long long)view_integer(view_get(m, "request"), 0),
                           (long long)view_integer(view_get(m, "job"), 0));
        else if (view_there(view_get(m, "job_name")))
                view_text(view_get(m, "job_name"), out);
}

static void add_or_empty(struct table *t, struct view v)
{
        if (view_there(v))
                table_view(t, v);
        else
                table_text(t, STR(""));
}

struct range {
        int64_t from_ms, to_ms;
};

static int range_of(const struct words *w, struct range *ret)
{
        *ret = (struct range){0, INT64_MAX};
        return gold_time(w, "start", &ret->from_ms) != 0 || gold_time(w, "end", &ret->to_ms) != 0 ? 1 : 0;
}

static void moment_print(struct buf *out, int64_t ms)
{
        time_t s = (time_t)(ms / 1000);
        char text[40] = "now";
        struct tm tm;

        if (ms == 0)
                snprintf(text, sizeof(text), "-infinity");
        else if (ms < INT64_MAX && localtime_r(&s, &tm))
                strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
        buf_addz(out, text);
}

/* ---- gstatement */

struct statement {
        const struct words *w;
        struct table credits, debits;
        int64_t credit, debit;
};

static int on_movement(void *arg, struct view m)
{
        struct statement *s = arg;
        int64_t amount = view_integer(view_get(m, "amount"), 0);
        struct table *t = amount < 0 ? &s->debits : &s->credits;
        BUF_CLEANUP struct buf job = {0};

        *(amount < 0 ? &s->debit : &s->credit) += amount;
        job_print(m, &job);
        table_text(t, str_of(object_of(m)));
        table_text(t, str_of(action_of(m)));
        table_text(t, buf_view(&job));
        if (amount < 0) {
                add_or_empty(t, view_get(m, "user"));
                add_or_empty(t, view_get(m, "place"));
        }
        gold_units(s->w, t, amount);
        gold_date(t, view_integer(view_get(m, "at_ms"), 0), "");
        return 0;
}

static int add_amount(void *arg, struct view m)
{
        *(int64_t *)arg += view_integer(view_get(m, "amount"), 0);
        return 0;
}

static void print_head(struct buf *out, const char *title, const char *account, const struct range *r,
                       int64_t now_ms)
{
        buf_printf(out, RULE "#\n# %s %s\n# Generated on ", title, account);
        moment_print(out, now_ms);
        buf_addz(out, "\n# Reporting from ");
        moment_print(out, r->from_ms);
        buf_addz(out, " to ");
        moment_print(out, r->to_ms);
        buf_addz(out, "\n#\n" RULE "\n");
}

static void print_line(const struct words *w, struct buf *out, const char *what, int64_t amount)
{
        if (words_has(w, "hours"))
                buf_printf(out, "%-18s %20.2f\n", what, (double)amount / 3600);
        else
                buf_printf(out, "%-18s %20lld\n", what, (long long)amount);
}

/* The balances at both ends follow from that of now. Users who see their own movements only are not told
 * balances, since these would not add up. */
static int print_sums(struct cli *cli, const struct statement *s, const char *account, const struct range *r,
                      struct buf *out)
{
        static const char line[] = "------------------ --------------------\n";
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        BUF_CLEANUP struct buf path = {0};
        int64_t end, later = 0;
        bool all;

        buf_addz(&path, "/v1/bank/accounts/");
        url_escape(&path, str_of(account));
        if (api_get(cli, buf_z(&path), &answer) != 0)
                return 1;
        all = !view_is(view_get(answer.root, "role"), "user");
        if (r->to_ms < INT64_MAX &&
            gold_movements(cli, str_of(account), r->to_ms, 0, add_amount, &later) != 0)
                return 1;
        end = view_integer(view_get(answer.root, "balance"), 0) - later;
        if (all) {
                print_line(s->w, out, "Beginning Balance:", end - s->credit - s->debit);
                buf_addz(out, line);
        }
        print_line(s->w, out, "Total Credits:", s->credit);
        print_line(s->w, out, "Total Debits:", s->debit);
        if (all) {
                buf_addz(out, line);
                print_line(s->w, out, "Ending Balance:", end);
        }
        return 0;
}

static int gstatement(struct cli *cli, const struct words *w)
{
        static const struct table_column credit_columns[] = {{.title = "Object"},
                                                             {.title = "Action"},
                                                             {.title = "JobId"},
                                                             {.title = "Amount", .right = true},
                                                             {.title = "Time"}},
                                         debit_columns[] = {
                                                 {.title = "Object"},  {.title = "Action"},
                                                 {.title = "JobId"},   {.title = "User"},
                                                 {.title = "Machine"}, {.title = "Amount", .right = true},
                                                 {.title = "Time"}};
        const char *account = gold_account(w);
        struct statement s = {.w = w};
        BUF_CLEANUP struct buf out = {0};
        struct range r;
        int code;

        if (!account)
                return cli_error(1, "which account? Give it with -a or -p");
        if (range_of(w, &r) != 0)
                return 1;
        table_init(&s.credits, credit_columns, 5);
        table_init(&s.debits, debit_columns, 7);
        s.credits.ruled = s.debits.ruled = true;
        code = gold_movements(cli, str_of(account), r.from_ms, r.to_ms, on_movement, &s);
        if (code == 0) {
                print_head(&out, "Statement for account", account, &r, cli->now_ms);
                code = print_sums(cli, &s, account, &r, &out);
        }
        if (code == 0) {
                buf_addz(&out, "\n############################### Credit Detail "
                               "##################################\n\n");
                table_print(&s.credits, &out);
                buf_addz(&out, "\n############################### Debit Detail "
                               "###################################\n\n");
                table_print(&s.debits, &out);
                cli_print(&out);
        }
        table_deinit(&s.credits);
        table_deinit(&s.debits);
        return code;
}

/* ---- gusage */

static int add_usage(void *arg, struct view m)
{
        struct map *users = arg;
        BUF_CLEANUP struct buf user = {0};
        int64_t *sum;

        if (!view_is(view_get(m, "what"), "charge"))
                return 0;
        view_text(view_get(m, "user"), &user);
        sum = map_get(users, buf_view(&user));
        if (!sum) {
                sum = mem_new(int64_t);
                map_put(users, buf_view(&user), sum);
        }
        *sum -= view_integer(view_get(m, "amount"), 0);
        return 0;
}

static int gusage(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "User"}, {.title = "Amount", .right = true}};
        const char *account = gold_account(w);
        BUF_CLEANUP struct buf out = {0};
        struct table t TABLE_CLEANUP = {0};
        struct map *users;
        struct range r;
        struct str user;
        void *sum;
        int code;

        if (!account)
                return cli_error(1, "which project? Give its name");
        if (range_of(w, &r) != 0)
                return 1;
        users = map_new();
        code = gold_movements(cli, str_of(account), r.from_ms, r.to_ms, add_usage, users);
        table_init(&t, columns, 2);
        t.ruled = true;
        t.sort = 0;
        for (size_t at = 0; map_next(users, &at, &user, &sum);) {
                table_text(&t, user);
                gold_units(w, &t, *(int64_t *)sum);
                free(sum);
        }
        map_free(users);
        if (code != 0)
                return code;
        print_head(&out, "Usage Summary for project", account, &r, cli->now_ms);
        table_print(&t, &out);
        cli_print(&out);
        return 0;
}

/* ---- glstxn */

struct listing {
        const struct words *w;
        struct table *t;
        const char *account;
};

static int on_transaction(void *arg, struct view m)
{
        struct listing *l = arg;
        const char *object = words_text(l->w, "object"), *action = words_text(l->w, "action"),
                   *wanted = words_text(l->w, "jobId");
        BUF_CLEANUP struct buf job = {0};

        job_print(m, &job);
        if ((object && strcmp(object, object_of(m)) != 0) || (action && strcmp(action, action_of(m)) != 0) ||
            (wanted && !str_eqz(buf_view(&job), wanted)) ||
            !gold_matches(words_text(l->w, "user"), view_get(m, "user")) ||
            !gold_matches(words_text(l->w, "machine"), view_get(m, "place")))
                return 0;
        table_view(l->t, view_get(m, "id"));
        table_text(l->t, str_of(object_of(m)));
        table_text(l->t, str_of(action_of(m)));
        table_text(l->t, buf_view(&job));
        table_text(l->t, str_of(l->account));
        add_or_empty(l->t, view_get(m, "user"));
        add_or_empty(l->t, view_get(m, "place"));
        gold_units(l->w, l->t, view_integer(view_get(m, "amount"), 0));
        gold_date(l->t, view_integer(view_get(m, "at_ms"), 0), "");
        return 0;
}

static int glstxn(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Id", .right = true},
                                                      {.title = "Object"},
                                                      {.title = "Action"},
                                                      {.title = "JobId"},
                                                      {.title = "Project"},
                                                      {.title = "User"},
                                                      {.title = "Machine"},
                                                      {.title = "Amount", .right = true},
                                                      {.title = "Time"}};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one;
        struct range r;
        struct table t;
        int code = 0;

        if (range_of(w, &r) != 0 || gold_table(w, &t, columns, 9) != 0 ||
            api_get(cli, "/v1/bank", &answer) != 0)
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; code == 0 && view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf name = {0};
                struct listing l = {.w = w, .t = &t};

                view_text(view_get(one, "name"), &name);
                if (!gold_matches(gold_account(w), view_get(one, "name")))
                        continue;
                l.account = buf_z(&name);
                code = gold_movements(cli, buf_view(&name), r.from_ms, r.to_ms, on_transaction, &l);
        }
        if (code == 0)
                gold_table_print(cli, &t);
        else
                table_deinit(&t);
        return code;
}

/* ---- glsjob */

/* A job's quotes, liens and charges in one account. */
struct record {
        char *job, *account, *user, *place;
        int64_t reserved, charged, refunded, first_ms, last_ms;
        struct record *next; /* in the order in which they were first heard of */
};
struct records {
        const struct words *w;
        const char *account;
        struct map *by_key;
        struct record *first, **end;
};

static char *text_of(struct view v)
{
        struct buf text = {0};

        view_text(v, &text);
        return buf_take(&text);
}

/* Returns the record of a movement's or lien's job; NULL: it is no job's, or not asked for. */
static struct record *record_of(struct records *r, struct view x, const char *account)
{
        const char *wanted = words_text(r->w, "jobId");
        BUF_CLEANUP struct buf job = {0}, key = {0};
        struct record *one;

        job_print(x, &job);
        wanted = wanted ? wanted : r->w->word_count ? r->w->words[0] : NULL;
        if (!job.n || (wanted && !str_eqz(buf_view(&job), wanted)))
                return NULL;
        buf_printf(&key, "%s\n" STR_FMT, account, STR_ARG(buf_view(&job)));
        one = map_get(r->by_key, buf_view(&key));
        if (one)
                return one;
        one = mem_new(struct record);
        one->job = str_dupz(buf_view(&job));
        one->account = mem_dupz(account);
        one->user = text_of(view_get(x, "user"));
        one->place = text_of(view_get(x, "place"));
        one->first_ms = view_integer(view_get(x, "at_ms"), 0);
        map_put(r->by_key, buf_view(&key), one);
        *r->end = one;
        r->end = &one->next;
        return one;
}

static int on_job_movement(void *arg, struct view m)
{
        struct records *r = arg;
        struct record *one = record_of(r, m, r->account);
        int64_t amount = view_integer(view_get(m, "amount"), 0);

        if (!one)
                return 0;
        if (view_is(view_get(m, "what"), "charge"))
                one->charged -= amount;
        else if (view_is(view_get(m, "what"), "refund"))
                one->refunded += amount;
        one->last_ms = view_integer(view_get(m, "at_ms"), 0);
        return 0;
}

static int read_records(struct cli *cli, struct records *r)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0}, liens API_ANSWER_CLEANUP = {0};
        struct view list, one;
        int code = 0;

        if (api_get(cli, "/v1/bank", &answer) != 0 || api_get(cli, "/v1/bank/reserved", &liens) != 0)
                return 1;
        list = view_get(answer.root, "accounts");
        for (size_t at = 0; code == 0 && view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf name = {0};

                view_text(view_get(one, "name"), &name);
                if (!gold_matches(words_text(r->w, "project"), view_get(one, "name")))
                        continue;
                r->account = buf_z(&name);
                code = gold_movements(cli, buf_view(&name), 0, INT64_MAX, on_job_movement, r);
        }
        list = view_get(liens.root, "liens");
        for (size_t at = 0; code == 0 && view_next(list, &at, &one);) {
                BUF_CLEANUP struct buf name = {0};
                struct record *job;

                view_text(view_get(one, "account"), &name);
                job = gold_matches(words_text(r->w, "project"), view_get(one, "account"))
                              ? record_of(r, one, buf_z(&name))
                              : NULL;
                if (job)
                        job->reserved += view_integer(view_get(one, "amount"), 0);
        }
        return code;
}

static void record_print(const struct words *w, struct table *t, const struct record *r)
{
        table_text(t, str_of(r->job));
        table_text(t, str_of(r->user));
        table_text(t, str_of(r->account));
        table_text(t, str_of(r->place));
        table_text(t, r->reserved ? STR("Reserve") : r->refunded ? STR("Refund") : STR("Charge"));
        gold_units(w, t, r->reserved);
        gold_units(w, t, r->charged);
        gold_units(w, t, r->refunded);
        gold_date(t, r->first_ms, "");
        gold_date(t, r->last_ms, "");
}

/* Compares with --user and --machine, which the first movement of a job has, and a refund may not have. */
static bool is_wanted(const struct words *w, const struct record *r)
{
        const char *user = words_text(w, "user");
        MEM_CLEANUP char *name = str_dupz(str_head(str_of(r->user), strcspn(r->user, "@")));

        return (gold_matches_text(user, r->user) || gold_matches_text(user, name)) &&
               gold_matches_text(words_text(w, "machine"), r->place);
}

static int glsjob(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "JobId"},
                                                      {.title = "User"},
                                                      {.title = "Project"},
                                                      {.title = "Machine"},
                                                      {.title = "Stage"},
                                                      {.title = "Reserved", .right = true},
                                                      {.title = "Charge", .right = true},
                                                      {.title = "Refunded", .right = true},
                                                      {.title = "CreationTime"},
                                                      {.title = "ModificationTime"}};
        struct records r = {.w = w};
        struct table t;
        int code;

        if (gold_table(w, &t, columns, 10) != 0)
                return 1;
        r.by_key = map_new();
        r.end = &r.first;
        code = read_records(cli, &r);
        for (struct record *one = r.first, *next; one; one = next) {
                next = one->next;
                if (is_wanted(w, one))
                        record_print(w, &t, one);
                free(one->job);
                free(one->account);
                free(one->user);
                free(one->place);
                free(one);
        }
        map_free(r.by_key);
        if (code == 0)
                gold_table_print(cli, &t);
        else
                table_deinit(&t);
        return code;
}

/* ---- tables */

static const struct words_row statement_rows[] = {GOLD_ACCOUNT, GOLD_PROJECT, GOLD_TIMES,
                                                  GOLD_HOURS,   GOLD_COMMON,  {0}};
static const struct words_row usage_rows[] = {GOLD_PROJECT, GOLD_TIMES, GOLD_HOURS, GOLD_COMMON, {0}};
static const struct words_row job_rows[] = {
        {"jobId", 'J', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "This job only."},
        GOLD_PROJECT,
        GOLD_USER,
        GOLD_MACHINE,
        GOLD_HOURS,
        GOLD_LIST,
        GOLD_COMMON,
        {0}};
static const struct words_row transaction_rows[] = {
        {"object", 'O', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Of this: Job or Account."},
        {"action", 'A', WORDS_VALUE, WORDS_ACTS, "NAME", NULL,
         "Charge, Refund, Deposit, Withdraw or Transfer."},
        {"jobId", 'J', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Of this job."},
        GOLD_ACCOUNT,
        GOLD_PROJECT,
        GOLD_USER,
        GOLD_MACHINE,
        GOLD_TIMES,
        GOLD_HOURS,
        GOLD_LIST,
        GOLD_COMMON,
        {0}};

const struct words_tool gold_gstatement = {.name = "gstatement",
                                           .usage = "[OPTIONS] {-a ACCOUNT | -p PROJECT}",
                                           .line = "Shows what came into an account and what left it.",
                                           .rows = statement_rows,
                                           .run = gstatement};
const struct words_tool gold_gusage = {.name = "gusage",
                                       .usage = "[OPTIONS] [-p] PROJECT",
                                       .line = "Shows what each user of a project was charged for.",
                                       .rows = usage_rows,
                                       .run = gusage};
const struct words_tool gold_glstxn = {.name = "glstxn",
                                       .usage = "[OPTIONS]",
                                       .line = "Lists movements of all accounts that you may see.",
                                       .rows = transaction_rows,
                                       .run = glstxn};
const struct words_tool gold_glsjob = {.name = "glsjob",
                                       .usage = "[OPTIONS] [[-J] JOB]",
                                       .line = "Lists what is reserved and was charged for jobs.",
                                       .rows = job_rows,
                                       .run = glsjob};
