/* POST /v1/actions: hold, release, remove, vacate, suspend, resume, priority, signal, edit. */
#include <inttypes.h>
#include <signal.h>

#include "base/system/clock.h"
#include "classad/eval.h"
#include "core/model/changes.h"
#include "core/model/submission.h"
#include "core/query.h"
#include "server/api/routes.h"
#include "server/api/submit/submit_json.h"
#include "server/loop/expressions.h"
#include "server/loop/ids.h"

#define REASON_MAX      4096
#define SLICE_NS        4000000

#define NOT_RUNNING_MAX (1u << 20) /* bytes of that list */
#define EDIT_SLICE      20000u     /* members edited in one slice */
#define RECORDS_FEW     8u         /* jobs that were matched before, removed in one go */

static const struct {
        const char *name;
        enum core_action action;
} actions[] = {
        {"hold", CORE_ACT_HOLD},     {"release", CORE_ACT_RELEASE},       {"remove", CORE_ACT_REMOVE},
        {"vacate", CORE_ACT_VACATE}, {"checkpoint", CORE_ACT_CHECKPOINT}, {"suspend", CORE_ACT_SUSPEND},
        {"resume", CORE_ACT_RESUME}, {"priority", CORE_ACT_PRIORITY},     {"signal", CORE_ACT_SIGNAL},
        {"edit", CORE_ACT_EDIT},
};

struct failure {
        struct str id, message;
};
struct act {
        json_t *doc;
        struct ids ids;
        enum core_action action;
        struct str reason, constraint;
        int64_t value;
        uint64_t affected;
        struct failure *failures;
        size_t failure_count;
        /* ids of jobs that the action did not reach, quoted and separated by commas: for a signal or a
         * checkpoint the jobs that do not run, for an edit those that are not idle or held */
        struct buf passed_over;
        struct buf changes; /* for an edit */
        int refused;        /* HTTP status of an edit that was refused: why */
        struct err why;
        size_t found;
        /* where the next slice continues */
        size_t at;        /* index into ids */
        uint64_t request; /* without ids */
        uint64_t member;
        struct constraint filter;
        int64_t end_ns;
        struct set records; /* jobs that are still to be removed, one by one; and whether these are all */
        bool last_records;
};

static bool to_running(const struct act *x)
{
        return x->action == CORE_ACT_SIGNAL || x->action == CORE_ACT_CHECKPOINT;
}

static void actions_state_free(void *arg)
{
        struct act *x = arg;

        ids_deinit(&x->ids);
        set_deinit(&x->records);
        buf_deinit(&x->passed_over);
        buf_deinit(&x->changes);
        constraint_deinit(&x->filter);
        free(x->failures);
        json_decref(x->doc);
        free(x);
}

static void actions_write_reply(struct server *s, struct call *c)
{
        struct act *x = c->state;
        struct json j = {.out = &c->out};

        (void)s;
        json_open(&j, '{');
        json_kint(&j, "affected", (int64_t)x->affected);
        json_key(&j, "errors");
        json_open(&j, '[');
        for (size_t i = 0; i < x->failure_count; i++) {
                json_open(&j, '{');
                json_kstr(&j, "id", x->failures[i].id);
                json_kstr(&j, "message", x->failures[i].message);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        if (to_running(x) || x->action == CORE_ACT_EDIT) {
                BUF_CLEANUP struct buf list = {0};

                buf_printf(&list, "[%s]", buf_z(&x->passed_over));
                json_key(&j, to_running(x) ? "not_running" : "not_waiting");
                json_raw(&j, buf_view(&list));
        }
        json_close(&j, '}');
        call_reply(c);
}

/* Notes the named jobs that the action did not reach. No state has changed since the action. */
static void note_passed_over(struct server *s, struct act *x, const struct id *id, const struct set *named)
{
        const uint32_t wait = 1u << JOB_IDLE | 1u << JOB_RESERVED | 1u << JOB_AUTHORISED | 1u << JOB_HELD,
                       ended = 1u << JOB_COMPLETED | 1u << JOB_REMOVED;
        uint32_t states = to_running(x) ? 1u << JOB_RUNNING
                          : id->some    ? wait
                                        : wait | ended; /* in a whole request, ended jobs are not meant */
        BUF_CLEANUP struct buf ranges = {0};
        struct str rest, range;
        struct set left = {0}, done = {0};

        set_copy(&left, named);
        core_members(s->core, id->request, states, &done);
        set_remove_all(&left, &done);
        set_deinit(&done);
        set_print(&ranges, &left);
        for (rest = buf_view(&ranges); rest.n && str_cut(&rest, ',', &range);)
                if (x->passed_over.n < NOT_RUNNING_MAX)
                        buf_printf(&x->passed_over, "%s\"%" PRIu64 "." STR_FMT "\"",
                                   x->passed_over.n ? "," : "", id->request, STR_ARG(range));
        set_deinit(&left);
}

static void fail_one(struct call *c, const struct id *id, const char *message)
{
        struct act *x = c->state;
        BUF_CLEANUP struct buf b = {0};

        if (!x->failures)
                x->failures = mem_array(NULL, x->ids.count, sizeof(*x->failures));
        buf_printf(&b, "%" PRIu64, id->request);
        if (id->some) {
                buf_char(&b, '.');
                set_print(&b, &id->members);
        }
        x->failures[x->failure_count++] =
                (struct failure){arena_str(&c->arena, buf_view(&b)), arena_str(&c->arena, str_of(message))};
}

/* Finds the members from x->member on that meet the constraint, until the slice ends or the constraint
 * reaches a limit. Returns whether all were checked. */
static bool choose(struct server *s, struct act *x, const struct id *id, uint64_t count, struct set *to)
{
        bool looked = false;
        uint64_t m;

        for (m = x->member; m < count && !x->filter.error; m++) {
                struct ad *ad = NULL;

                if (id->some && (m = set_next(&id->members, m)) == SET_END)
                        break;
                if (looked && clock_mono_ns() > x->end_ns) /* making an ad may take long */
                        break;
                looked = true;
                if (constraint_holds_job(&x->filter, s->core, id->request, (uint32_t)m, &ad))
                        set_add(to, (uint32_t)m);
                ad_free(ad);
        }
        x->member = m;
        return m >= count;
}

static void print_changes(struct buf *b, struct str changes)
{
        struct submission_attribute a;
        const char *before = ": ";

        for (; changes_next(&changes, &a); before = ", ")
                if (b->n < REASON_MAX)
                        buf_printf(b, "%s" STR_FMT " = " STR_FMT, before, STR_ARG(a.name),
                                   STR_ARG(str_head(a.text.n ? a.text : STR("undefined"), REASON_MAX / 4)));
}

/* Returns the reason of a hold or removal. Without a reason from the caller it names the caller, so that
 * everybody can see who did it. */
static struct str reason_of(const struct act *x, struct call *c)
{
        BUF_CLEANUP struct buf b = {0};

        if (x->action != CORE_ACT_EDIT &&
            (x->reason.n || (x->action != CORE_ACT_HOLD && x->action != CORE_ACT_REMOVE)))
                return x->reason;
        buf_printf(&b, "by user %s", c->who);
        if (x->action == CORE_ACT_EDIT)
                print_changes(&b, buf_view(&x->changes));
        return arena_str(&c->arena, buf_view(&b));
}

/* Finds the members to edit in the next slice. Returns whether there are no more. */
static bool choose_slice(struct act *x, const struct id *id, uint64_t count, struct set *to)
{
        uint64_t end = x->member + EDIT_SLICE;

        if (end > count)
                end = count;
        set_add_range(to, x->member, end);
        if (id->some)
                set_keep_all(to, &id->members);
        x->member = end;
        return end == count;
}

/* A job that was matched before has its row of history written with its removal, which takes long if it has
 * long texts. Sets those apart from the members to remove (*members, NULL: all), if there are more than a
 * few. *ret_others: the others, which *members is then. */
static void set_records_apart(struct server *s, struct act *x, uint64_t request, uint64_t count,
                              const struct set **members, struct set *ret_others)
{
        core_members_recorded(s->core, request, &x->records);
        if (*members)
                set_keep_all(&x->records, *members);
        if (set_count(&x->records) <= RECORDS_FEW) {
                set_deinit(&x->records);
                return;
        }
        if (*members)
                set_copy(ret_others, *members);
        else
                set_add_range(ret_others, 0, count);
        set_remove_all(ret_others, &x->records);
        *members = ret_others;
}

/* Removes jobs that were set apart, until the slice ends: each time twice as many, since it is not known how
 * long one takes. */
static void remove_records(struct server *s, struct act *x, const struct core_command *cmd)
{
        struct core_command one = *cmd;
        uint64_t most = 1;

        do {
                struct set some = {0};
                uint64_t affected = 0;

                SET_FOREACH (&x->records, m) {
                        if (set_count(&some) == most)
                                break;
                        set_add(&some, (uint32_t)m);
                }
                one.members = &some;
                core_act(s->core, &one, &affected, NULL);
                x->affected += affected;
                set_remove_all(&x->records, &some);
                set_deinit(&some);
                most *= 2;
        } while (set_count(&x->records) && clock_mono_ns() < x->end_ns);
}

/* Returns whether the caller may act on the owner's jobs. An edited command runs as its owner, so an edit
 * needs more rights than other actions. */
static bool may(const struct call *c, struct str owner)
{
        const struct act *x = c->state;

        return x->action == CORE_ACT_EDIT ? call_may_run_as(c, owner) : call_may(c, owner);
}

/* The next slice begins with another request. Jobs that were set apart may have been removed by others. */
static void begin_request(struct act *x)
{
        x->member = 0;
        set_deinit(&x->records);
}

/* Returns whether this id is done. */
static bool act_on(struct server *s, struct call *c, const struct id *id)
{
        struct act *x = c->state;
        struct core_command cmd = {
                .action = x->action,
                .request = id->request,
                .members = id->some ? &id->members : NULL,
                .reason = reason_of(x, c),
                .value = x->value,
                .changes = buf_view(&x->changes),
                .owner = c->role == ROLE_USER ? str_of(c->who) : STR_NONE,
        };
        struct core_request r;
        struct set chosen = {0}, others = {0};
        struct err err = {0};
        uint64_t affected = 0;
        bool all = true;

        if (core_request_get(s->core, id->request, &r) != 0 || !may(c, r.owner)) {
                fail_one(c, id, "there is no such request");
                return true;
        }
        if (id->some && set_next(&id->members, r.counts.jobs) != SET_END) {
                fail_one(c, id, "there are not so many jobs in this request");
                return true;
        }
        if (set_count(&x->records)) {
                remove_records(s, x, &cmd);
                return x->last_records && set_count(&x->records) == 0;
        }
        x->found += x->member == 0;
        if (x->filter.expr) {
                all = choose(s, x, id, r.counts.jobs, &chosen);
                cmd.members = &chosen;
        } else if (x->action == CORE_ACT_EDIT) {
                all = choose_slice(x, id, r.counts.jobs, &chosen);
                cmd.members = &chosen;
        }
        if (x->action == CORE_ACT_REMOVE)
                set_records_apart(s, x, id->request, r.counts.jobs, &cmd.members, &others);
        x->last_records = all;
        if ((cmd.members != &chosen && cmd.members != &others) || set_count(cmd.members)) {
                int rc = core_act(s->core, &cmd, &affected, &err);

                if (rc != 0 && x->action == CORE_ACT_EDIT) {
                        x->refused = rc == CORE_TOO_MANY ? 429 : 400;
                        x->why = err;
                } else if (rc != 0) {
                        fail_one(c, id, err.text);
                }
                x->affected += affected;
                if ((to_running(x) || x->action == CORE_ACT_EDIT) && cmd.members &&
                    affected < set_count(cmd.members))
                        note_passed_over(s, x, id, cmd.members);
        }
        set_deinit(&chosen);
        set_deinit(&others);
        return all && set_count(&x->records) == 0;
}

static void finish(struct call *c)
{
        struct act *x = c->state;

        if (x->ids.count && x->found == 0)
                call_fail(c, 404, "not_found", STR_FMT ": " STR_FMT, STR_ARG(x->failures[0].id),
                          STR_ARG(x->failures[0].message));
        else
                call_io(c, actions_write_reply);
}

/* Runs one slice: the named ids, or with only a constraint every request with jobs in the queue. */
static void act_on_jobs(struct server *s, struct call *c)
{
        struct act *x = c->state;
        struct err err = {0};
        bool done = false;

        c->when = TURN_DURABLE;
        x->end_ns = clock_mono_ns() + SLICE_NS;
        if (constraint_begin(&x->filter, core_symbols(s->core), x->constraint, &err) != 0) {
                call_fail(c, 400, "bad_constraint", "constraint: %s", err.text);
                return;
        }
        while (!done && !x->filter.error && !x->refused && clock_mono_ns() < x->end_ns) {
                struct id any = {.request = x->request};
                struct core_request r;

                if (x->ids.count) {
                        if (act_on(s, c, &x->ids.items[x->at])) {
                                x->at++;
                                begin_request(x);
                        }
                        done = x->at == x->ids.count;
                        continue;
                }
                if (x->request == 0 || core_request_get(s->core, x->request, &r) != 0 ||
                    (r.finished_ms && !r.counts.left) || !may(c, r.owner) || act_on(s, c, &any)) {
                        x->request = core_request_next(s->core, x->request);
                        begin_request(x);
                }
                done = x->request == 0;
        }
        constraint_end(&x->filter);
        if (x->refused)
                call_fail(c, x->refused, "bad_edit", "%s%s", x->why.text,
                          x->affected ? "; some of the jobs were changed before" : "");
        else if (x->filter.error)
                call_fail(c, 400, "constraint_limit", "%s; %" PRIu64 " jobs were acted on before",
                          x->filter.error, x->affected);
        else if (done)
                finish(c);
        else
                call_yield(c, act_on_jobs);
}

static int read_ids(struct act *x, struct err *err)
{
        json_t *list = json_object_get(x->doc, "ids"), *v;
        size_t i;
        int r = 0;

        json_array_foreach (list, i, v)
                if (r == 0)
                        r = json_is_string(v) ? ids_parse(&x->ids, str_of(json_string_value(v)), err)
                                              : err_set(err, -1, "\"ids\" must be a list of strings");
        ids_merge(&x->ids);
        return r;
}

void api_action(struct server *s, struct call *c)
{
        json_t *doc = call_json(c); /* after a failure the call and its state are freed */
        struct act *x;
        struct str name;
        struct err err = {0};
        size_t i;

        (void)s;
        if (!doc)
                return;
        x = call_state(c, sizeof(*x), actions_state_free);
        x->doc = doc;
        name = call_json_text(x->doc, "action");
        for (i = 0; i < sizeof(actions) / sizeof(actions[0]) && !str_eqz(name, actions[i].name); i++)
                ;
        if (i == sizeof(actions) / sizeof(actions[0])) {
                call_fail(c, 400, "bad_action", "'" STR_FMT "' is not something that can be done to a job",
                          STR_ARG(name));
                return;
        }
        x->action = actions[i].action;
        x->reason = str_head(call_json_text(x->doc, "reason"), REASON_MAX);
        x->constraint = call_json_text(x->doc, "constraint");
        x->value = json_integer_value(json_object_get(x->doc, "value"));
        if (x->action == CORE_ACT_SIGNAL &&
            (x->value < 1 || x->value > CORE_SIGNAL_MAX || x->value == SIGSTOP || x->value == SIGCONT))
                call_fail(c, 400, "bad_request",
                          "\"value\" must be a signal's number, 1 to %d, and neither SIGSTOP nor SIGCONT: "
                          "suspend and resume are their actions",
                          CORE_SIGNAL_MAX);
        else if (x->action == CORE_ACT_EDIT && submit_json_changes(x->doc, &x->changes, &err) != 0)
                call_fail_err(c, 400, "bad_edit", &err);
        else if (read_ids(x, &err) != 0)
                call_fail_err(c, 400, "bad_id", &err);
        else if (x->ids.count == 0 && x->constraint.n == 0)
                call_fail(c, 400, "bad_request", "name jobs by \"ids\" or by a \"constraint\"");
        else if (x->constraint.n)
                call_yield(c, act_on_jobs);
        else
                call_core(c, act_on_jobs);
}
