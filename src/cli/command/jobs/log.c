#include "base/format/json.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/command/commands.h"

static const struct table_column columns[] = {
        {"TIME", false, false}, {"EVENT", false, false}, {"DETAILS", false, true, false, true}};

/* Adds every field that has no column. The fence, which counts a job's attempts, is only in --json. */
static void add_details(struct buf *out, struct view event)
{
        struct view value;
        struct str key;
        size_t at = 0;

        while (view_member(event, &at, &key, &value)) {
                if (!view_there(value) || str_eqz(key, "seq") || str_eqz(key, "at_ms") ||
                    str_eqz(key, "event") || str_eqz(key, "fence"))
                        continue;
                if (out->n)
                        buf_addz(out, ", ");
                if (!str_eqz(key, "text") && !str_eqz(key, "reason")) {
                        buf_str(out, key);
                        buf_char(out, ' ');
                }
                view_text(value, out);
        }
}

/* ---- the trace: steps of the job, with the part of the system that made each */

/* The steps of a job that was submitted to the queue manager, and of one that was submitted to the meta
 * scheduler, which has steps before and one after those that they share. */
enum step {
        SUBMITTED,
        ASKED,
        QUOTED,
        CHOSEN,
        BALANCE,
        QUEUED,
        ARRIVED,
        LOOKED,
        RESERVED,
        MATCHED,
        HANDED,
        ENDED,
        FREED,
        WITHDRAWN,
        REPORTED,
        TOLD,
        STEPS
};
enum { PLAIN = 1, META = 2 }; /* in which of the two traces a step is */
static const struct {
        const char *from, *to, *what;
        int traces;
} step_names[STEPS] = {
        [SUBMITTED] = {"user", NULL, "submits the job", PLAIN | META},
        [ASKED] = {"meta scheduler", "schedulers", "asks which could run it the soonest", META},
        [QUOTED] = {"schedulers", "allocation manager", "ask for quotes", META},
        [CHOSEN] = {"meta scheduler", "scheduler", "reserves the best place", META},
        [BALANCE] = {"queue manager", "allocation manager", "checks the balance", PLAIN},
        [QUEUED] = {"meta scheduler", "queue manager", "stages and queues the job", META},
        [ARRIVED] = {"queue manager", "scheduler", "reports the new job", PLAIN | META},
        [LOOKED] = {"scheduler", "node manager", "looks at nodes and jobs until it can run", PLAIN | META},
        [RESERVED] = {"scheduler", "allocation manager", "reserves what it may cost", PLAIN | META},
        [MATCHED] = {"scheduler", "queue manager", "has it run", PLAIN | META},
        [HANDED] = {"queue manager", "process manager", "hands it over", PLAIN | META},
        [ENDED] = {"process manager", "queue manager", "reports its end", PLAIN | META},
        [FREED] = {"queue manager", "scheduler", "reports that its room is free", PLAIN | META},
        [WITHDRAWN] = {"queue manager", "allocation manager", "withdraws what it cost", PLAIN | META},
        [REPORTED] = {"scheduler", "meta scheduler", "reports its end", META},
        [TOLD] = {NULL, "user", "reports how it ended", PLAIN | META},
};
/* The user speaks with the queue manager, or with the meta scheduler. */
static struct str party(const char *name, int which)
{
        return str_of(name ? name : which == META ? "meta scheduler" : "queue manager");
}

static const struct table_column trace_columns[] = {{"STEP", true, false},
                                                    {"TIME", false, false},
                                                    {"FROM", false, false, false, false, true},
                                                    {"TO", false, false, false, false, true},
                                                    {"WHAT", false, true},
                                                    {"DETAILS", false, true, false, true}};

struct trace {
        int which; /* PLAIN or META */
        struct {
                int64_t at_ms; /* 0: the step was not reached */
                struct buf text;
        } steps[STEPS];
};

static void trace_deinit(struct trace *t)
{
        for (int i = 0; i < STEPS; i++)
                buf_deinit(&t->steps[i].text);
}

static void trace_set(struct trace *t, enum step step, struct view event, const char *text)
{
        t->steps[step].at_ms = view_integer(view_get(event, "at_ms"), 0);
        buf_reset(&t->steps[step].text);
        buf_addz(&t->steps[step].text, text);
}

static void trace_clear(struct trace *t, enum step first)
{
        for (int i = first; i < STEPS; i++) {
                t->steps[i].at_ms = 0;
                buf_reset(&t->steps[i].text);
        }
}

/* The code of a job that is held because its account cannot pay for it. */
#define HOLD_BANK 1003

/* The log has no events of their own for the balance check, at the submit, and for the quotes, with the query
 * of the schedulers. That a bank was asked is known from what came of it: a lien, or that the job is held. */
static void trace_asked_bank(struct trace *t)
{
        t->steps[BALANCE].at_ms = t->steps[SUBMITTED].at_ms;
        t->steps[QUOTED].at_ms = t->steps[ASKED].at_ms;
}

static void trace_bank(struct trace *t, struct view event)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(view_get(event, "text"), &text);
        if (str_starts(buf_view(&text), STR("lien"))) {
                trace_set(t, RESERVED, event, buf_z(&text));
                trace_asked_bank(t);
        } else {
                trace_set(t, WITHDRAWN, event, buf_z(&text));
        }
}

/* The reservation of a meta job: made, moved, authorised, released. */
static void trace_reservation(struct trace *t, struct view event)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(view_get(event, "text"), &text);
        if (str_starts(buf_view(&text), STR("authorised"))) {
                trace_set(t, QUEUED, event, buf_z(&text));
                trace_set(t, ARRIVED, event, "");
        } else if (str_starts(buf_view(&text), STR("released"))) {
                trace_clear(t, ASKED);
        } else {
                trace_clear(t, ASKED);
                trace_set(t, ASKED, event, "");
                trace_set(t, CHOSEN, event, buf_z(&text));
        }
}

static void trace_end(struct trace *t, struct view event)
{
        struct buf text BUF_CLEANUP = {0};

        view_text(view_get(event, "text"), &text);
        trace_set(t, ENDED, event, buf_z(&text));
        trace_set(t, FREED, event, "");
        trace_set(t, REPORTED, event, "");
        trace_set(t, TOLD, event, "by drover wait, the job's log and notices");
}

static void trace_event(struct trace *t, struct view event)
{
        struct view what = view_get(event, "event");
        struct buf place BUF_CLEANUP = {0};

        if (view_is(what, "submitted")) {
                trace_set(t, SUBMITTED, event, "");
                for (enum step i = QUEUED; t->which == PLAIN && i <= ARRIVED; i++)
                        trace_set(t, i, event, "");
        } else if (view_is(what, "reservation")) {
                trace_reservation(t, event);
        } else if (view_is(what, "matched")) {
                trace_clear(t, LOOKED);
                view_text(view_get(event, "queue"), &place);
                buf_addz(&place, " of ");
                view_text(view_get(event, "agent"), &place);
                trace_set(t, LOOKED, event, "");
                trace_set(t, MATCHED, event, buf_z(&place));
        } else if (view_is(what, "bank")) {
                trace_bank(t, event);
        } else if (view_is(what, "held") && view_integer(view_get(event, "code"), 0) == HOLD_BANK) {
                trace_asked_bank(t);
        } else if (view_is(what, "accepted")) {
                trace_set(t, HANDED, event, "");
        } else if (view_is(what, "started") && !t->steps[HANDED].at_ms) {
                trace_set(t, HANDED, event, ""); /* both reports of the agent came together */
        } else if (view_is(what, "exited") || view_is(what, "lost") || view_is(what, "refused")) {
                trace_end(t, event);
        } else if (view_is(what, "removed")) {
                trace_set(t, TOLD, event, "removed");
        }
}

static void print_trace_json(const struct trace *t)
{
        struct buf out BUF_CLEANUP = {0};
        struct json j = {.out = &out};
        int number = 0;

        json_open(&j, '{');
        json_key(&j, "steps");
        json_open(&j, '[');
        for (int i = 0; i < STEPS; i++) {
                if (!(step_names[i].traces & t->which))
                        continue;
                json_open(&j, '{');
                json_kint(&j, "step", ++number);
                json_kstr(&j, "from", party(step_names[i].from, t->which));
                json_kstr(&j, "to", party(step_names[i].to, t->which));
                json_kstrz(&j, "what", step_names[i].what);
                json_key(&j, "at_ms");
                if (t->steps[i].at_ms)
                        json_int(&j, t->steps[i].at_ms);
                else
                        json_null(&j);
                json_kstr(&j, "details", buf_view(&t->steps[i].text));
                json_close(&j, '}');
        }
        json_close(&j, ']');
        json_close(&j, '}');
        buf_char(&out, '\n');
        cli_print(&out);
}

static int print_trace(struct cli *cli, struct view root)
{
        struct trace t = {.which = view_true(view_get(root, "meta")) ? META : PLAIN};
        struct view events = view_get(root, "events"), event;
        struct table table TABLE_CLEANUP;
        int code, number = 0;

        for (size_t at = 0; view_next(events, &at, &event);)
                trace_event(&t, event);
        code = cli_table(cli, &table, trace_columns, sizeof(trace_columns) / sizeof(trace_columns[0]));
        if (code == 0 && cli->json) {
                print_trace_json(&t);
        } else if (code == 0) {
                for (int i = 0; i < STEPS; i++) {
                        if (!(step_names[i].traces & t.which))
                                continue;
                        table_format(&table, "%d", ++number);
                        table_time(&table, t.steps[i].at_ms, cli->now_ms);
                        table_text(&table, party(step_names[i].from, t.which));
                        table_text(&table, party(step_names[i].to, t.which));
                        table_text(&table, str_of(step_names[i].what));
                        table_text(&table, buf_view(&t.steps[i].text));
                }
                cli_print_table(cli, &table);
        }
        trace_deinit(&t);
        return code;
}

int cmd_log(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct table t TABLE_CLEANUP;
        struct view events, event;
        size_t at = 0;
        int code;

        code = cli_table(cli, &t, columns, 3);
        if (code == 0)
                code = jobs_get(cli, o->words[0], "log", &answer);
        if (code != 0)
                return code;
        if (options_flag(o, "trace"))
                return print_trace(cli, answer.root);
        if (api_print_json(cli, &answer))
                return CLI_OK;
        events = view_get(answer.root, "events");
        while (view_next(events, &at, &event)) {
                struct buf text BUF_CLEANUP = {0};

                table_time(&t, view_integer(view_get(event, "at_ms"), 0), cli->now_ms);
                table_view(&t, view_get(event, "event"));
                add_details(&text, event);
                table_text(&t, buf_view(&text));
        }
        cli_print_table(cli, &t);
        return CLI_OK;
}
