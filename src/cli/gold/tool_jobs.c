/* gquote, glsquote, gchquote, grmquote, greserve, glsres, gchres, grmres, gcharge, grefund: what another
 * system asks, reserves and pays for its jobs. */
#include <stdio.h>

#include "cli/client/ids.h"
#include "cli/gold/gold.h"

/* ---- what a job uses */

static int add_number(const struct words *w, const char *option, const char *key, int64_t scale,
                      struct gold_order *o)
{
        const char *text = words_text(w, option);
        int64_t n;

        if (!text)
                return 0;
        if (str_to_i64(str_of(text), &n) != 0 || n < 0 || n > 3000000000)
                return cli_error(1, "--%s: '%s' is not a number from 0 to 3000000000", option, text);
        json_kint(&o->j, key, n * scale);
        return 0;
}

/* Adds who uses how much, where and how long; prices are the server's. */
static int add_use(struct cli *cli, const struct words *w, struct gold_order *o)
{
        BUF_CLEANUP struct buf user = {0};

        if (words_text(w, "user")) {
                if (gold_user(cli, words_text(w, "user"), &user) != 0)
                        return 1;
                json_kstr(&o->j, "user", buf_view(&user));
        }
        gold_order_text(o, "place", words_text(w, "machine"));
        gold_order_text(o, "qos", words_text(w, "qos"));
        if (add_number(w, "processors", "cpus", 1, o) != 0 ||
            add_number(w, "memory", "memory_mib", 1, o) != 0)
                return 1;
        return add_number(w, "duration", "duration_ms", 1000, o);
}

static int jobs_send_or_free(struct cli *cli, struct gold_order *o, int code, struct api_answer *ret)
{
        if (code == 0)
                return gold_order_send(cli, o, ret);
        buf_deinit(&o->body);
        return code;
}

static int64_t amount_in(const struct api_answer *a)
{
        return view_integer(view_get(a->root, "amount"), 0);
}

static const char *job_of(const struct words *w)
{
        const char *job = words_text(w, "jobId");

        if (!job && w->word_count)
                job = w->words[0];
        return job && *job ? job : NULL;
}

/* ---- quotes */

static int gquote(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        bool kept = words_has(w, "guarantee");
        int64_t end_ms = kept ? 0 : cli->now_ms + 1000; /* else it is a price, and no promise */
        struct gold_order o;
        int code;

        if (!words_text(w, "project") || !words_text(w, "duration"))
                return cli_error(1, "a project (-p) and a duration in seconds (-t) are needed");
        gold_order(&o, "quote");
        json_kstrz(&o.j, "account", words_text(w, "project"));
        gold_order_text(&o, "why", words_text(w, "description"));
        code = add_use(cli, w, &o);
        if (code == 0 && kept)
                code = gold_time(w, "end", &end_ms);
        if (end_ms && end_ms < INT64_MAX)
                json_kint(&o.j, "end_ms", end_ms);
        code = jobs_send_or_free(cli, &o, code, &answer);
        if (code != 0)
                return code;
        if (words_has(w, "quiet"))
                printf("%lld\n", (long long)amount_in(&answer));
        gold_say(w, "Successfully quoted %lld credits", (long long)amount_in(&answer));
        if (kept)
                gold_say(w, "Created Quotation %lld",
                         (long long)view_integer(view_get(answer.root, "id"), 0));
        return 0;
}

static bool option_is(const struct words *w, const char *option, struct view text)
{
        return gold_matches(words_text(w, option), text);
}

/* Users are listed with their domain, and may be asked for without. */
static bool user_is(const struct words *w, struct view user)
{
        const char *wanted = words_text(w, "user");
        BUF_CLEANUP struct buf name = {0};
        ptrdiff_t at;

        view_text(user, &name);
        at = str_rfind(buf_view(&name), '@');
        return !wanted || str_eqz(buf_view(&name), wanted) ||
               (at > 0 && str_eqz(str_head(buf_view(&name), (size_t)at), wanted));
}

static void add_view(struct table *t, struct view v)
{
        if (view_there(v))
                table_view(t, v);
        else
                table_text(t, STR(""));
}

static int glsquote(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {{.title = "Id", .right = true},
                                                      {.title = "Amount", .right = true},
                                                      {.title = "Project"},
                                                      {.title = "User"},
                                                      {.title = "Machine"},
                                                      {.title = "EndTime"},
                                                      {.title = "WallDuration", .right = true},
                                                      {.title = "Used"},
                                                      {.title = "Description"}};
        const char *id = words_text(w, "quote") ? words_text(w, "quote") : w->word_count ? w->words[0] : NULL;
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one;
        struct table t;

        if (gold_table(w, &t, columns, 9) != 0 || api_get(cli, "/v1/bank/reserved", &answer) != 0)
                return 1;
        list = view_get(answer.root, "quotes");
        for (size_t at = 0; view_next(list, &at, &one);) {
                if (!gold_matches(id, view_get(one, "id")) ||
                    !option_is(w, "project", view_get(one, "account")) ||
                    !option_is(w, "machine", view_get(one, "place")) || !user_is(w, view_get(one, "user")))
                        continue;
                table_view(&t, view_get(one, "id"));
                gold_units(w, &t, view_integer(view_get(one, "amount"), 0));
                table_view(&t, view_get(one, "account"));
                add_view(&t, view_get(one, "user"));
                add_view(&t, view_get(one, "place"));
                gold_date(&t, view_integer(view_get(one, "end_ms"), 0), "infinity");
                table_format(&t, "%lld", (long long)(view_integer(view_get(one, "duration_ms"), 0) / 1000));
                table_text(&t, view_true(view_get(one, "used")) ? STR("1") : STR("0"));
                add_view(&t, view_get(one, "description"));
        }
        gold_table_print(cli, &t);
        return 0;
}

static int order_quote(const struct words *w, bool cancel, struct gold_order *o)
{
        const char *text = words_text(w, "quote") ? words_text(w, "quote")
                           : w->word_count        ? w->words[0]
                                                  : NULL;
        int64_t id, end_ms = 0;

        if (!text)
                return cli_error(1, "which quote? Give its number with -q");
        if (str_to_i64(str_of(text), &id) != 0 || id <= 0)
                return cli_error(1, "'%s' is not the number of a quote: see glsquote", text);
        json_kint(&o->j, "quote", id);
        if (cancel)
                return 0;
        if (gold_time(w, "end", &end_ms) != 0)
                return 1;
        if (end_ms == INT64_MAX)
                return cli_error(1, "a quote has an end: give a time with -e");
        if (end_ms)
                json_kint(&o->j, "end_ms", end_ms);
        else if (!words_text(w, "description"))
                return cli_error(1, "what is to be changed? Give a time with -e, or a description with -d");
        gold_order_text(o, "why", words_text(w, "description"));
        return 0;
}

static int gchquote(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "requote");
        if (jobs_send_or_free(cli, &o, order_quote(w, false, &o), &answer) != 0)
                return 1;
        gold_say(w, "Successfully modified 1 Quotation");
        return 0;
}

static int grmquote(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "cancel");
        if (jobs_send_or_free(cli, &o, order_quote(w, true, &o), &answer) != 0)
                return 1;
        gold_say(w, "Successfully deleted 1 Quotation");
        return 0;
}

/* ---- reservations */

static int end_lien(struct cli *cli, int64_t id)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct gold_order o;

        gold_order(&o, "release");
        json_kint(&o.j, "id", id);
        return gold_order_send(cli, &o, &answer);
}

static int greserve(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        const char *job = job_of(w), *project = words_text(w, "project");
        int64_t end_ms = 0, old = 0;
        struct gold_order o;
        int code;

        if (!job || !project)
                return cli_error(1, "a job (-J) and a project (-p) are needed");
        if (words_has(w, "replace") && gold_lien(cli, job, project, words_text(w, "user"), &old) != 0)
                return 1;
        if (old && end_lien(cli, old) != 0)
                return 1;
        gold_order(&o, "lien");
        json_kstrz(&o.j, "account", project);
        json_kstrz(&o.j, "job", job);
        code = add_use(cli, w, &o);
        if (code == 0)
                code = add_number(w, "quote", "quote", 1, &o);
        if (code == 0)
                code = gold_time(w, "end", &end_ms);
        if (end_ms && end_ms < INT64_MAX)
                json_kint(&o.j, "end_ms", end_ms);
        code = jobs_send_or_free(cli, &o, code, &answer);
        if (code == 0)
                gold_say(w, "Successfully reserved %lld credits for job %s", (long long)amount_in(&answer),
                         job);
        return code;
}

static int glsres(struct cli *cli, const struct words *w)
{
        static const struct table_column columns[] = {
                {.title = "Id", .right = true}, {.title = "Name"},    {.title = "Amount", .right = true},
                {.title = "StartTime"},         {.title = "EndTime"}, {.title = "User"},
                {.title = "Project"},           {.title = "Machine"}, {.title = "Accounts"}};
        const char *id = words_text(w, "reservation") ? words_text(w, "reservation")
                         : w->word_count              ? w->words[0]
                                                      : NULL;
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view list, one;
        struct table t;

        if (gold_table(w, &t, columns, 9) != 0 || api_get(cli, "/v1/bank/reserved", &answer) != 0)
                return 1;
        list = view_get(answer.root, "liens");
        for (size_t at = 0; view_next(list, &at, &one);) {
                if (!gold_matches(id, view_get(one, "id")) ||
                    !option_is(w, "name", view_get(one, "job_name")) ||
                    !option_is(w, "project", view_get(one, "account")) ||
                    !option_is(w, "machine", view_get(one, "place")) || !user_is(w, view_get(one, "user")))
                        continue;
                table_view(&t, view_get(one, "id"));
                if (view_there(view_get(one, "request")))
                        table_format(&t, "%lld.%lld", (long long)view_integer(view_get(one, "request"), 0),
                                     (long long)view_integer(view_get(one, "job"), 0));
                else
                        add_view(&t, view_get(one, "job_name"));
                gold_units(w, &t, view_integer(view_get(one, "amount"), 0));
                gold_date(&t, view_integer(view_get(one, "at_ms"), 0), "-infinity");
                gold_date(&t, view_integer(view_get(one, "end_ms"), 0), "infinity");
                add_view(&t, view_get(one, "user"));
                table_view(&t, view_get(one, "account"));
                add_view(&t, view_get(one, "place"));
                table_view(&t, view_get(one, "account"));
        }
        gold_table_print(cli, &t);
        return 0;
}

/* Gives the lien of --reservation or the first word, or that of the job of --name. */
static int chosen_lien(struct cli *cli, const struct words *w, int64_t *ret)
{
        const char *id = words_text(w, "reservation") ? words_text(w, "reservation")
                         : w->word_count              ? w->words[0]
                                                      : NULL;

        if (!id && !words_text(w, "name"))
                return cli_error(1, "which reservation? Give its number with -r, or its job with -n");
        if (!id && gold_lien(cli, words_text(w, "name"), NULL, NULL, ret) != 0)
                return 1;
        if (!id && *ret == 0)
                return cli_error(1, "there is no reservation of %s", words_text(w, "name"));
        if (id && (str_to_i64(str_of(id), ret) != 0 || *ret <= 0))
                return cli_error(1, "'%s' is not the number of a reservation: see glsres", id);
        return 0;
}

static int grmres(struct cli *cli, const struct words *w)
{
        int64_t id;

        if (chosen_lien(cli, w, &id) != 0 || end_lien(cli, id) != 0)
                return 1;
        gold_say(w, "Successfully deleted 1 Reservation");
        return 0;
}

static int gchres(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int64_t id, end_ms = 0;
        struct gold_order o;

        if (chosen_lien(cli, w, &id) != 0 || gold_time(w, "end", &end_ms) != 0)
                return 1;
        if (end_ms == 0 || end_ms == INT64_MAX)
                return cli_error(1, "until when? Give a time with -e");
        gold_order(&o, "extend");
        json_kint(&o.j, "id", id);
        json_kint(&o.j, "amount", 0);
        json_kint(&o.j, "end_ms", end_ms);
        if (gold_order_send(cli, &o, &answer) != 0)
                return 1;
        gold_say(w, "Successfully modified 1 Reservation");
        return 0;
}

/* ---- charges and refunds */

static int charge(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        const char *job = job_of(w), *project = words_text(w, "project"),
                   *number = words_text(w, "reservation");
        int64_t lien = 0;
        struct gold_order o;
        int code = 0;

        if (!job || !words_text(w, "duration"))
                return cli_error(1, "a job (-J) and a duration in seconds (-t) are needed");
        if (number && (str_to_i64(str_of(number), &lien) != 0 || lien <= 0))
                return cli_error(1, "'%s' is not the number of a reservation: see glsres", number);
        if (!number)
                code = gold_lien(cli, job, project, words_text(w, "user"), &lien);
        if (code != 0)
                return code;
        if (!lien && !project)
                return cli_error(1, "%s has no reservation: which project pays? Give it with -p", job);
        gold_order(&o, "charge");
        json_kstrz(&o.j, "job", job);
        if (lien)
                json_kint(&o.j, "id", lien);
        else
                json_kstrz(&o.j, "account", project);
        code = jobs_send_or_free(cli, &o, add_use(cli, w, &o), &answer);
        if (code != 0)
                return code;
        gold_say(w, "Successfully charged job %s for %lld credits", job, (long long)amount_in(&answer));
        if (lien)
                gold_say(w, "1 reservations were removed");
        return 0;
}

/* Sends a refund of what the job was charged: of another system's job of this name or, with `id`, of one of
 * this server's. Returns 0; 1 with err. */
static int refund_send(struct cli *cli, const struct words *w, const char *job, const struct id *id,
                       const int64_t *amount, struct api_answer *ret, struct err *err)
{
        struct api_request r = {.method = "POST", .path = "/v1/bank/orders"};
        struct gold_order o;
        int code;

        gold_order(&o, "refund");
        if (id) {
                json_kint(&o.j, "request", (int64_t)id->request);
                json_kint(&o.j, "member", id->first);
        } else {
                json_kstrz(&o.j, "job", job);
        }
        gold_order_text(&o, "account", words_text(w, "account"));
        gold_order_text(&o, "user", words_text(w, "user"));
        if (amount)
                json_kint(&o.j, "amount", *amount);
        json_close(&o.j, '}');
        r.body = buf_view(&o.body);
        code = api_call(cli, &r, ret, err) != 0;
        buf_deinit(&o.body);
        return code;
}

static int grefund(struct cli *cli, const struct words *w)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0}, second API_ANSWER_CLEANUP = {0};
        const struct api_answer *given = &answer;
        const char *job = job_of(w), *text = words_text(w, "amount");
        struct err err = {""}, no_id;
        int64_t amount;
        struct id id;
        int code;

        if (!job)
                return cli_error(1, "which job? Give it with -J");
        if (text && gold_amount(w, text, &amount) != 0)
                return 1;
        code = refund_send(cli, w, job, NULL, text ? &amount : NULL, &answer, &err);
        if (code && answer.status == 404 && id_parse(str_of(job), &id, &no_id) == 0 && !id.whole &&
            id.first == id.last) {
                given = &second;
                code = refund_send(cli, w, job, &id, text ? &amount : NULL, &second, &err);
        }
        if (code)
                return cli_error(1, "%s", err.text);
        gold_say(w, "Successfully refunded %lld credits for job %s", (long long)amount_in(given), job);
        return 0;
}

/* ---- records of jobs */

/* Jobs have no records of their own here: what the bank knows of one are its liens and movements. */
static int no_record(struct cli *cli, const struct words *w)
{
        (void)cli;
        (void)w;
        return cli_error(1,
                         "a job has no record of its own here: greserve and gcharge write what is reserved "
                         "and charged for it, grefund and grmres take it back, and glsjob lists it");
}

/* ---- tables */

#define JOB                                                                                                  \
        {                                                                                                    \
                "jobId", 'J', WORDS_VALUE, WORDS_ACTS, "NAME", NULL,                                         \
                        "The job, by the name that it has in its system."                                    \
        }
#define USE                                                                                                  \
        GOLD_PROJECT, GOLD_USER, GOLD_MACHINE, {"processors",                                                \
                                                'P',                                                         \
                                                WORDS_VALUE,                                                 \
                                                WORDS_ACTS,                                                  \
                                                "COUNT",                                                     \
                                                NULL,                                                        \
                                                "Its processors; 1 if not given."},                          \
                {"qos", 'Q', WORDS_VALUE, WORDS_ACTS, "NAME", NULL, "Its quality of service."},              \
                {"memory", 'M', WORDS_VALUE, WORDS_ACTS, "MIB", NULL, "Its memory."},                        \
        {                                                                                                    \
                "duration", 't', WORDS_VALUE, WORDS_ACTS, "SECONDS", NULL, "How long it runs."               \
        }
#define UNKNOWN_USE                                                                                          \
        {"queue",                                                                                            \
         'C',                                                                                                \
         WORDS_VALUE,                                                                                        \
         WORDS_NAMED,                                                                                        \
         "NAME",                                                                                             \
         NULL,                                                                                               \
         "A queue is a part of a machine: AGENT/QUEUE."},                                                    \
                {"nodes", 'N', WORDS_VALUE, WORDS_NAMED, "COUNT", NULL, "Processors are counted."},          \
                {"disk", 'D', WORDS_VALUE, WORDS_NAMED, "MIB", NULL, "Rates do not look at it here."},       \
                {"organization",                                                                             \
                 'o',                                                                                        \
                 WORDS_VALUE,                                                                                \
                 WORDS_NAMED,                                                                                \
                 "NAME",                                                                                     \
                 NULL,                                                                                       \
                 "An account's name begins with it."},                                                       \
                {"jobName", 'n', WORDS_VALUE, WORDS_NAMED, "NAME", NULL, "Jobs of others are not kept."},    \
                {"application", 0, WORDS_VALUE, WORDS_NAMED, "NAME", NULL, "Jobs of others are not kept."},  \
                {"type", 'T', WORDS_VALUE, WORDS_NAMED, "TYPE", NULL, "Jobs of others are not kept."},       \
        {                                                                                                    \
                "extension", 'X', WORDS_VALUE, WORDS_NAMED, "NAME=VALUE", NULL,                              \
                        "Jobs of others are not kept."                                                       \
        }
#define UNKNOWN_TEXT                                                                                         \
        {                                                                                                    \
                "description", 'd', WORDS_VALUE, WORDS_NAMED, "TEXT", NULL,                                  \
                        "The name of the job stands in its place."                                           \
        }
#define FROM_NOW                                                                                             \
        {                                                                                                    \
                "start", 's', WORDS_VALUE, WORDS_NAMED, "TIME", NULL, "It begins now."                       \
        }
#define UNTIL                                                                                                \
        {                                                                                                    \
                "end", 'e', WORDS_VALUE, WORDS_ACTS, "TIME", NULL, "Until this time: 2026-01-31 [12:34:56]." \
        }
#define RESERVATION                                                                                          \
        {                                                                                                    \
                "reservation", 'r', WORDS_VALUE, WORDS_ACTS, "NUMBER", NULL, "The reservation."              \
        }
#define NAME                                                                                                 \
        {                                                                                                    \
                "name", 'n', WORDS_VALUE, WORDS_ACTS, "JOB", NULL, "The job of the reservation."             \
        }
#define ACTIVE                                                                                               \
        {                                                                                                    \
                "active", 'A', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Open ones; others are not kept."          \
        }
#define QUOTE                                                                                                \
        {                                                                                                    \
                "quote", 'q', WORDS_VALUE, WORDS_ACTS, "NUMBER", NULL, "The quote."                          \
        }

static const struct words_row quote_rows[] = {
        USE,
        {"guarantee", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Keep the quote: a promised price."},
        FROM_NOW,
        UNTIL,
        GOLD_DESCRIPTION,
        UNKNOWN_USE,
        GOLD_COMMON,
        {0}};
static const struct words_row change_quote_rows[] = {
        QUOTE,
        {"start", 's', WORDS_VALUE, WORDS_REFUSED, "TIME", NULL, "a quote holds from when it is made."},
        UNTIL,
        GOLD_DESCRIPTION,
        GOLD_COMMON,
        {0}};
static const struct words_row remove_quote_rows[] = {QUOTE, GOLD_COMMON, {0}};
static const struct words_row list_quote_rows[] = {
        QUOTE, GOLD_PROJECT, GOLD_USER, GOLD_MACHINE, ACTIVE, GOLD_HOURS, GOLD_LIST, GOLD_COMMON, {0}};
static const struct words_row reserve_rows[] = {
        JOB,
        USE,
        QUOTE,
        {"replace", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "In place of an earlier one of the job."},
        FROM_NOW,
        UNTIL,
        UNKNOWN_TEXT,
        UNKNOWN_USE,
        GOLD_COMMON,
        {0}};
static const struct words_row list_reservation_rows[] = {RESERVATION,  NAME,   GOLD_PROJECT, GOLD_USER,
                                                         GOLD_MACHINE, ACTIVE, GOLD_HOURS,   GOLD_LIST,
                                                         GOLD_COMMON,  {0}};
static const struct words_row change_reservation_rows[] = {RESERVATION, NAME,        FROM_NOW,
                                                           UNTIL,       GOLD_COMMON, {0}};
static const struct words_row remove_reservation_rows[] = {RESERVATION, NAME, GOLD_COMMON, {0}};
static const struct words_row charge_rows[] = {
        JOB,
        USE,
        RESERVATION,
        {"quote", 'q', WORDS_VALUE, WORDS_REFUSED, "NUMBER", NULL,
         "greserve takes it, and the charge follows it."},
        {"state", 'S', WORDS_VALUE, WORDS_NAMED, "STATE", NULL, "Jobs of others are not kept."},
        {"incremental", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL,
         "charge a part of the job without its reservation."},
        FROM_NOW,
        {"end", 'e', WORDS_VALUE, WORDS_NAMED, "TIME", NULL, "It is charged now."},
        UNKNOWN_TEXT,
        UNKNOWN_USE,
        GOLD_COMMON,
        {0}};
static const struct words_row record_rows[] = {
        JOB,
        USE,
        {"charge", 0, WORDS_VALUE, WORDS_NAMED, "CREDITS", NULL, "gcharge charges by the rates."},
        {"state", 'S', WORDS_VALUE, WORDS_NAMED, "STATE", NULL, "Jobs of others are not kept."},
        GOLD_TIMES,
        GOLD_DESCRIPTION,
        UNKNOWN_USE,
        GOLD_COMMON,
        {0}};
static const struct words_row refund_rows[] = {
        JOB,
        {"amount", 'z', WORDS_VALUE, WORDS_ACTS, "CREDITS", NULL, "So much; all if it is not given."},
        GOLD_ACCOUNT,
        GOLD_USER,
        UNKNOWN_TEXT,
        GOLD_HOURS,
        GOLD_COMMON,
        {0}};

const struct words_tool gold_gquote = {.name = "gquote",
                                       .usage = "[OPTIONS] -p PROJECT -t SECONDS",
                                       .line = "Asks what a job would cost.",
                                       .rows = quote_rows,
                                       .run = gquote};
const struct words_tool gold_glsquote = {.name = "glsquote",
                                         .usage = "[OPTIONS] [[-q] NUMBER]",
                                         .line = "Lists quotes.",
                                         .rows = list_quote_rows,
                                         .run = glsquote};
const struct words_tool gold_greserve = {.name = "greserve",
                                         .usage = "[OPTIONS] -p PROJECT [-J] JOB",
                                         .line = "Reserves credits for a job, or for --quote.",
                                         .rows = reserve_rows,
                                         .run = greserve};
const struct words_tool gold_glsres = {.name = "glsres",
                                       .usage = "[OPTIONS] [[-r] NUMBER]",
                                       .line = "Lists reservations.",
                                       .rows = list_reservation_rows,
                                       .run = glsres};
const struct words_tool gold_gchres = {.name = "gchres",
                                       .usage = "[OPTIONS] -e TIME {[-r] NUMBER | -n JOB}",
                                       .line = "Changes when a reservation ends.",
                                       .rows = change_reservation_rows,
                                       .run = gchres};
const struct words_tool gold_grmres = {.name = "grmres",
                                       .usage = "[OPTIONS] {[-r] NUMBER | -n JOB}",
                                       .line = "Ends a reservation, and charges nothing.",
                                       .rows = remove_reservation_rows,
                                       .run = grmres};
const struct words_tool gold_gcharge = {.name = "gcharge",
                                        .usage = "[OPTIONS] -t SECONDS [-J] JOB",
                                        .line = "Charges for a job, and ends its reservation.",
                                        .rows = charge_rows,
                                        .run = charge};
const struct words_tool gold_gchargejob = {.name = "gchargejob",
                                           .usage = "[OPTIONS] -t SECONDS [-J] JOB",
                                           .line = "The name that gcharge had in earlier versions.",
                                           .rows = charge_rows,
                                           .run = charge};
const struct words_tool gold_grefund = {.name = "grefund",
                                        .usage = "[OPTIONS] [-J] JOB",
                                        .line = "Gives back what a job was charged.",
                                        .rows = refund_rows,
                                        .run = grefund};
const struct words_tool gold_gchquote = {.name = "gchquote",
                                         .usage = "[OPTIONS] [-q] NUMBER",
                                         .line = "Changes the end or the description of a quote.",
                                         .rows = change_quote_rows,
                                         .run = gchquote};
const struct words_tool gold_grmquote = {.name = "grmquote",
                                         .usage = "[OPTIONS] [-q] NUMBER",
                                         .line = "Withdraws a quote.",
                                         .rows = remove_quote_rows,
                                         .run = grmquote};
const struct words_tool gold_gmkjob = {
        .name = "gmkjob",
        .usage = "[OPTIONS] [-J] JOB",
        .line = "Is refused: greserve and gcharge write what there is of a job.",
        .rows = record_rows,
        .run = no_record};
const struct words_tool gold_gchjob = {
        .name = "gchjob",
        .usage = "[OPTIONS] [-J] JOB",
        .line = "Is refused: grefund and gcharge correct what a job was charged.",
        .rows = record_rows,
        .run = no_record};
const struct words_tool gold_grmjob = {.name = "grmjob",
                                       .usage = "[OPTIONS] [-J] JOB",
                                       .line = "Is refused: the ledger keeps what was charged.",
                                       .rows = record_rows,
                                       .run = no_record};
