/* condor_status: a queue of an agent is a slot. Attributes of HTCondor's machine ads that the queue's ad
 * does not have (State, Activity) are derived from the server's answer about the queue. */
#include "base/format/json.h"
#include "classad/eval.h"
#include "cli/condor/ads.h"
#include "cli/condor/condor.h"
#include "cli/condor/output.h"
#include "cli/condor/select.h"
#include "cli/terminal/human.h"

enum slot_table { SLOTS, SLOTS_COMPACT, SLOTS_TOTAL };
struct slots {
        struct cli *cli;
        struct output output;
        struct expr *constraint;
        const char **names; /* if set, only these machines are shown */
        size_t name_count;
        enum slot_table table;
        int64_t limit, shown, claimed, unclaimed;
        bool avail, busy; /* only those that take jobs; that run some */
        struct buf text;
};

static void slots_deinit(struct slots *s)
{
        expr_free(s->constraint);
        output_deinit(&s->output);
        buf_deinit(&s->text);
}

/* Adds the attributes of a partitionable slot, whose Cpus and Memory are the free amounts. */
static void add_shape(struct view ad, struct json *j)
{
        json_kstrz(j, "SlotType", "Partitionable");
        json_kbool(j, "PartitionableSlot", true);
        json_kint(j, "TotalSlotCpus", view_integer(view_get(ad, "TotalCpus"), 0));
        json_kint(j, "TotalSlotMemory", view_integer(view_get(ad, "TotalMemory"), 0));
        if (view_integer(view_get(ad, "TotalGPUs"), 0))
                json_kint(j, "TotalSlotGPUs", view_integer(view_get(ad, "TotalGPUs"), 0));
}

/* The queue's ad with State, Activity and the slot's kind. */
static void complete(struct view agent, struct view queue, struct buf *out)
{
        struct json j = {.out = out};
        struct view value;
        struct str key;
        size_t at = 0;
        bool busy = view_integer(view_get(queue, "running"), 0) > 0;
        bool here = view_is(view_get(agent, "state"), "connected");

        json_open(&j, '{');
        while (view_member(view_get(queue, "ad"), &at, &key, &value)) {
                struct buf name BUF_CLEANUP = {0};

                if (str_ieqz(key, "State") || str_ieqz(key, "Activity"))
                        continue;
                json_keys(&j, key);
                if (str_ieqz(key, "Name") && view_is(view_get(queue, "name"), "default") == false) {
                        view_text(view_get(queue, "name"), &name);
                        buf_char(&name, '@');
                        view_text(view_get(agent, "name"), &name);
                        json_str(&j, buf_view(&name));
                } else {
                        json_raw(&j, value.text);
                        j.comma = true;
                }
        }
        add_shape(view_get(queue, "ad"), &j);
        json_kstrz(&j, "State", !here ? "Owner" : busy ? "Claimed" : "Unclaimed");
        json_kstrz(&j, "Activity", busy ? "Busy" : "Idle");
        json_kint(&j, "NumDynamicSlots", view_integer(view_get(queue, "running"), 0));
        json_kint(&j, "LastHeardFrom", view_integer(view_get(agent, "seen_ms"), 0) / 1000);
        json_close(&j, '}');
}

static struct str status_text_of(struct slots *s, const struct ad *ad, const char *name)
{
        struct str v = STR("");

        eval_string(&s->output.columns.eval, ad, NULL, symbols_intern(s->output.symbols, str_of(name)), &v);
        return v;
}

static double number_of(struct slots *s, const struct ad *ad, const char *name)
{
        double v = 0;

        eval_real(&s->output.columns.eval, ad, NULL, symbols_intern(s->output.symbols, str_of(name)), &v);
        return v;
}

static void status_add_row(struct slots *s, const struct ad *ad)
{
        struct str name = status_text_of(s, ad, s->table == SLOTS_COMPACT ? "Machine" : "Name");

        if (s->table == SLOTS_COMPACT)
                buf_printf(&s->text, "%-25.*s %-16s %5.0f %5.0f %8.2f %6.0f %7.2f %8.2f %s\n", (int)name.n,
                           name.p, "x64/Linux", number_of(s, ad, "NumDynamicSlots"),
                           number_of(s, ad, "TotalCpus"), number_of(s, ad, "TotalMemory") / 1024,
                           number_of(s, ad, "FreeCpus"), number_of(s, ad, "FreeMemory") / 1024,
                           number_of(s, ad, "LoadAvg"),
                           status_text_of(s, ad, "State").p[0] == 'C' ? "Cb" : "Ui");
        else
                buf_printf(&s->text, "%-25.*s %-10.*s %-6.*s %-9.*s %-8.*s %6.3f %6.0f\n", (int)name.n,
                           name.p, STR_ARG(status_text_of(s, ad, "OpSys")),
                           STR_ARG(status_text_of(s, ad, "Arch")), STR_ARG(status_text_of(s, ad, "State")),
                           STR_ARG(status_text_of(s, ad, "Activity")), number_of(s, ad, "LoadAvg"),
                           number_of(s, ad, "TotalMemory"));
}

/* Returns whether the machine is named, with or without its domain, or by its slot. */
static bool status_is_named(struct slots *s, const struct ad *ad)
{
        struct str machine = status_text_of(s, ad, "Machine"), name = status_text_of(s, ad, "Name");

        for (size_t i = 0; i < s->name_count; i++) {
                struct str wanted = str_of(s->names[i]), head = machine;
                ptrdiff_t dot = str_find(machine, '.');

                if (dot > 0)
                        head = str_head(machine, (size_t)dot);
                if (str_ieq(wanted, machine) || str_ieq(wanted, head) || str_ieq(wanted, name))
                        return true;
        }
        return s->name_count == 0;
}

static bool status_is_meant(struct slots *s, const struct ad *ad)
{
        struct value v;

        /* A queue for transfers is no slot: programs that count slots would send it jobs. */
        if (str_eqz(status_text_of(s, ad, "Runner"), "mover") || !status_is_named(s, ad))
                return false;
        if (s->avail && str_eqz(status_text_of(s, ad, "State"), "Unclaimed") == false)
                return false;
        if (s->busy && str_eqz(status_text_of(s, ad, "State"), "Claimed") == false)
                return false;
        if (!s->constraint)
                return true;
        eval_expr(&s->output.columns.eval, s->constraint, ad, NULL, &v);
        return value_is_true(&v);
}

static void add_slot(struct slots *s, struct view agent, struct view queue)
{
        struct buf json BUF_CLEANUP = {0};
        struct ad *ad;

        if (!view_there(view_get(queue, "ad")) || (s->limit > 0 && s->shown >= s->limit))
                return;
        complete(agent, queue, &json);
        ad = ads_read(s->output.symbols, view_of(buf_view(&json)));
        if (status_is_meant(s, ad)) {
                s->shown++;
                *(str_eqz(status_text_of(s, ad, "State"), "Claimed") ? &s->claimed : &s->unclaimed) += 1;
                if (s->output.form != OUTPUT_TABLE)
                        output_ad(&s->output, view_of(buf_view(&json)), ad);
                else if (s->table != SLOTS_TOTAL)
                        status_add_row(s, ad);
        }
        eval_reset(&s->output.columns.eval);
        ad_free(ad);
}

static void print_table(struct slots *s)
{
        struct buf out BUF_CLEANUP = {0};

        if (s->table == SLOTS)
                buf_printf(&out, "%-25s %-10s %-6s %-9s %-8s %6s %6s\n\n", "Name", "OpSys", "Arch", "State",
                           "Activity", "LoadAv", "Mem");
        else if (s->table == SLOTS_COMPACT)
                buf_printf(&out, "%-25s %-16s %5s %5s %8s %6s %7s %8s %s\n\n", "Machine", "Platform", "Slots",
                           "Cpus", "TotalGb", "FreCpu", "FreeGb", "CpuLoad", "ST");
        cli_print(&out);
        cli_print(&s->text);
        buf_printf(&out, "\n%20s %5s %5s %7s %9s\n\n%20s %5lld %5d %7lld %9lld\n", "", "Total", "Owner",
                   "Claimed", "Unclaimed", "Total", (long long)s->shown, 0, (long long)s->claimed,
                   (long long)s->unclaimed);
        cli_print(&out);
}

static int list_slots(struct slots *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct view agent, queue, agents, queues;
        size_t at = 0;
        int code = api_get(s->cli, "/v1/agents", &answer);

        if (code != 0)
                return code;
        agents = view_get(answer.root, "agents");
        while (view_next(agents, &at, &agent)) {
                size_t q = 0;

                /* an agent that disconnected is no longer in the pool */
                if (!view_is(view_get(agent, "state"), "connected"))
                        continue;
                queues = view_get(agent, "queues");
                while (view_next(queues, &q,
                                 &queue)) /* one for placement jobs is no slot: it runs no programs */
                        if (!view_is(view_get(view_get(queue, "ad"), "Runner"), "mover"))
                                add_slot(s, agent, queue);
        }
        if (s->output.form == OUTPUT_TABLE)
                print_table(s);
        else
                output_end(&s->output);
        return 0;
}

static int status_read_flags(struct slots *s, const struct flags *f, struct err *err)
{
        struct buf constraint BUF_CLEANUP = {0};
        const struct flag_given *g;
        size_t at = 0;
        int rc = output_init(&s->output, f, s->cli->now_ms / 1000, err);

        s->names = f->words;
        s->name_count = f->word_count;
        s->avail = flags_has(f, "avail");
        s->busy = flags_has(f, "claimed") || flags_has(f, "run");
        s->table = flags_has(f, "total") ? SLOTS_TOTAL : flags_has(f, "compact") ? SLOTS_COMPACT : SLOTS;
        if (rc == 0)
                rc = flags_number(f, "limit", 0, &s->limit, err);
        while ((g = flags_next(f, "constraint", &at)))
                select_and_given(&constraint, g->words[0]);
        if (rc == 0 && constraint.n &&
            expr_parse(s->output.symbols, buf_view(&constraint), &s->constraint, err) != 0)
                rc = err_prefix(err, -22, "-constraint");
        return rc;
}

static int status(struct cli *cli, const struct flags *f)
{
        struct slots s = {.cli = cli};
        struct err err = {""};
        int code = status_read_flags(&s, f, &err) == 0 ? list_slots(&s) : cli_error(1, "%s", err.text);

        slots_deinit(&s);
        return code;
}

static const struct flag_row rows[] = {
        {"constraint", 3, FLAG_VALUE, FLAG_ACTS, "EXPR", "Only slots for which this expression is true."},
        {"total", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "Only the totals."},
        {"totals", 6, FLAG_PLAIN, FLAG_SO, NULL, "As -total; the last lines are the totals anyway."},
        {"compact", 3, FLAG_PLAIN, FLAG_ACTS, NULL, "Totals and what is free of each slot."},
        {"avail", 2, FLAG_PLAIN, FLAG_ACTS, NULL, "Only slots on which nothing runs."},
        {"claimed", 2, FLAG_PLAIN, FLAG_ACTS, NULL, "Only slots on which jobs run."},
        {"run", 1, FLAG_PLAIN, FLAG_ACTS, NULL, "The same."},
        {"limit", 3, FLAG_VALUE, FLAG_ACTS, "N", "At most so many slots."},
        OUTPUT_ROWS,
        {"startd", 5, FLAG_PLAIN, FLAG_SO, NULL, "Slots are what is listed."},
        {"slots", 2, FLAG_PLAIN, FLAG_SO, NULL, "Slots are what is listed."},
        {"state", 4, FLAG_PLAIN, FLAG_SO, NULL, "State and activity are shown anyway."},
        {"wide", 1, FLAG_PLAIN, FLAG_SO, NULL, "Lines are never cut."},
        {"schedd", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover queue."},
        {"submitters", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover queue."},
        {"master", 1, FLAG_PLAIN, FLAG_REFUSED, NULL, "use drover agents."},
        {"collector", 3, FLAG_PLAIN, FLAG_REFUSED, NULL, "there is none."},
        {"negotiator", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "there is none."},
        {"any", 2, FLAG_PLAIN, FLAG_REFUSED, NULL, "slots are the only ads."},
        {"direct", 2, FLAG_VALUE, FLAG_REFUSED, "HOST", "name the machine."},
        {"sort", 3, FLAG_VALUE, FLAG_REFUSED, "EXPR", "use sort(1)."},
        {"ads", 2, FLAG_VALUE, FLAG_REFUSED, "FILE", "use drover classad."},
        {0},
};
const struct condor_tool condor_status = {
        .name = "condor_status",
        .usage = "[FLAGS] [MACHINE...]",
        .line = "Lists the queues of the agents that are connected, as slots.",
        .rows = rows,
        .words_max = 10000,
        .run = status,
};
