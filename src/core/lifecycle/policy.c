/* Users' policies: the decision after an exit, and the periodic policies.
 *
 * Source: HTCondor manual, condor_submit: on_exit_hold is evaluated before on_exit_remove; a policy that is
 * undefined where it has to decide puts the job on hold with code 5.
 */
#include "core/lifecycle/policy.h"

#include <errno.h>
#include <stdio.h>

#include "classad/print.h"
#include "core/accounts/share.h"
#include "core/classes/job_class.h"
#include "core/classes/member_ad.h"
#include "core/data/label.h"
#include "core/events/apply.h"
#include "core/model/core_parts.h"
#include "core/model/edit.h"

static void decision_set(struct exit_decision *d, enum job_state next, int32_t code, int32_t subcode,
                         struct str reason)
{
        d->next = next;
        d->code = code;
        d->subcode = subcode;
        snprintf(d->reason, sizeof(d->reason), STR_FMT, STR_ARG(reason));
}

/* Limits of the steps of a request's periodic policies in one round; and the number of steps that count as
 * one more evaluation. */
#define POLICY_STEPS_MAX     200000u
#define POLICY_STEPS_PER_JOB 100u
#define POLICY_STEPS         100u
/* The same limit for all requests of one user, beside POLICY_STEPS_PER_JOB for each evaluation. Jobs that
 * come later in the round have only POLICY_STEPS_SPENT. */
#define POLICY_STEPS_OF_ONE 4000000u
#define POLICY_STEPS_SPENT  200u

/* Sets the reason: "the job attribute OnExitHold (ExitCode > 3) is true". */
static void say_policy(struct core *c, struct exit_decision *d, const struct ad *ad, symbol policy,
                       symbol reason, symbol subcode, const char *is, int32_t code)
{
        struct buf text = {.max = 200};
        struct str given;
        int64_t sub = 0;

        if (reason && eval_string(&c->eval, ad, NULL, reason, &given) && given.n) {
                snprintf(d->reason, sizeof(d->reason), STR_FMT, STR_ARG(given));
        } else {
                const struct expr *e = ad_find(ad, policy);

                buf_printf(&text, "the job attribute " STR_FMT " (",
                           STR_ARG(symbols_name(c->symbols, policy)));
                if (e)
                        expr_print(&text, e, c->symbols);
                buf_printf(&text, ") is %s", is);
                snprintf(d->reason, sizeof(d->reason), "%s", buf_z(&text));
        }
        if (subcode)
                eval_integer(&c->eval, ad, NULL, subcode, &sub);
        d->code = code;
        d->subcode = (int32_t)sub;
        buf_deinit(&text);
}

/* Limits of the steps of one job's on_exit_* policies together; and once its account has used up its share of
 * the core's time (account_evaluated), since jobs may end by the thousand and cannot wait for an answer. */
#define EXIT_STEPS       5000u
#define EXIT_STEPS_SPENT 200u

/* Evaluates the policies of an ended job in its ad. */
static void ask_exit(struct core *c, const struct ad *ad, struct exit_decision *d)
{
        const struct attributes *a = &c->attr;
        uint64_t overruns = c->eval.overruns;
        struct value v;

        eval_attr(&c->eval, ad, NULL, a->OnExitHold, &v);
        if (value_is_true(&v)) {
                d->next = JOB_HELD;
                say_policy(c, d, ad, a->OnExitHold, a->OnExitHoldReason, a->OnExitHoldSubCode, "true",
                           CORE_HOLD_POLICY);
                return;
        }
        if (c->eval.overruns == overruns && !ad_find(ad, a->OnExitRemove))
                return;
        if (c->eval.overruns == overruns)
                eval_attr(&c->eval, ad, NULL, a->OnExitRemove, &v);
        if (c->eval.overruns != overruns) {
                decision_set(d, JOB_HELD, CORE_HOLD_POLICY_UNDEFINED, 0,
                             STR("its on_exit_* policies take too long to evaluate: submit it with simpler "
                                 "ones"));
        } else if (v.type == VALUE_UNDEFINED || v.type == VALUE_ERROR || v.type == VALUE_STRING) {
                d->next = JOB_HELD;
                say_policy(c, d, ad, a->OnExitRemove, 0, 0,
                           v.type == VALUE_UNDEFINED ? "undefined" : "an error", CORE_HOLD_POLICY_UNDEFINED);
        } else if (!value_is_true(&v)) {
                d->next = JOB_IDLE;
                say_policy(c, d, ad, a->OnExitRemove, 0, 0, "false: it runs again", 0);
        }
}

static void decide_exit(struct core *c, const struct request *r, const struct job *j,
                        const struct core_result *res, struct exit_decision *d)
{
        const struct attributes *a = &c->attr;
        struct ad *ad = member_ad(c, r, j->member, j);
        uint32_t steps_max = c->eval.steps_max;
        int64_t started = res->started_ms ? res->started_ms : j->started_ms, wall = j->wall_ms;

        if (res->ended_ms > started && started)
                wall += res->ended_ms - started;
        ad_set_boolean(ad, a->ExitBySignal, res->signaled);
        ad_set_integer(ad, res->signaled ? a->ExitSignal : a->ExitCode, res->exit_code);
        ad_remove(ad, res->signaled ? a->ExitCode : a->ExitSignal);
        ad_set_integer(ad, a->NumJobCompletions, (int64_t)j->completions + 1);
        if (j->state == JOB_MATCHED || j->state == JOB_STAGING)
                member_ad_starts(c, ad, (int64_t)j->starts + 1);
        ad_set_real(ad, a->RemoteWallClockTime, (double)wall / 1000);
        ad_set_integer(ad, a->JobStatus, 2);
        decision_set(d, JOB_COMPLETED, 0, 0, STR(""));
        c->eval.steps_max = account_may_evaluate(j->account, c->steady_ms) ? EXIT_STEPS : EXIT_STEPS_SPENT;
        eval_share(&c->eval);
        ask_exit(c, ad, d);
        eval_share_end(&c->eval);
        c->eval.steps_max = steps_max;
        eval_reset(&c->eval);
        ad_free(ad);
}

void policy_exit(struct core *c, struct request *r, struct job *j, const struct core_result *res,
                 struct exit_decision *d)
{
        const struct part *p = request_part(r, j->member, NULL);
        struct str told = str_of(j->hold_reason);

        if (j->state == JOB_VACATING &&
            (res->outcome != CORE_EXITED || j->goal == JOB_REMOVED || j->goal == JOB_COMPLETED)) {
                decision_set(d, j->goal, j->hold_code, j->hold_subcode, told);
                return;
        }
        switch (res->outcome) {
        case CORE_NOT_STARTED:
                decision_set(d, JOB_HELD, res->hold_code ? res->hold_code : CORE_HOLD_NOT_STARTED,
                             res->hold_subcode, res->reason);
                return;
        case CORE_STAGING_FAILED:
                decision_set(d, JOB_HELD, res->hold_code ? res->hold_code : CORE_HOLD_INPUT,
                             res->hold_subcode, res->reason);
                return;
        case CORE_LIMIT_EXCEEDED:
                decision_set(d, JOB_HELD, res->hold_code ? res->hold_code : CORE_HOLD_LIMIT,
                             res->hold_subcode, res->reason);
                return;
        case CORE_KILLED:
        case CORE_OUTCOME_LOST: decision_set(d, JOB_IDLE, 0, 0, res->reason); return;
        case CORE_EXITED: break;
        }
        if (p->job_template && p->job_template->exit_policy)
                decide_exit(c, r, j, res, d);
        else
                decision_set(d, JOB_COMPLETED, 0, 0, STR(""));
}

/* ---- periodic policies */

/* The agent watches AllowedExecuteDuration, unless it differs from job to job. Both durations are wall-clock
 * time, as in HTCondor (condor_utils/user_job_policy.cpp): time in suspension counts. */
static bool duration_exceeded(struct core *c, const struct job *j, const struct ad *ad,
                              struct exit_decision *d)
{
        const struct attributes *a = &c->attr;
        int64_t ran_ms, most;

        if (!j || !j->queue || !job_state_runs(j->state) || j->state == JOB_VACATING)
                return false;
        ran_ms = c->now_ms - j->started_ms;
        if (eval_integer(&c->eval, ad, NULL, a->AllowedJobDuration, &most) && most >= 0 &&
            ran_ms / 1000 >= most) {
                d->code = CORE_HOLD_JOB_DURATION;
                snprintf(d->reason, sizeof(d->reason), "The job exceeded allowed job duration of %lld s",
                         (long long)most);
                return true;
        }
        if (ad_find_own(ad, a->AllowedExecuteDuration) &&
            eval_integer(&c->eval, ad, NULL, a->AllowedExecuteDuration, &most) && most > 0 &&
            ran_ms / 1000 >= most) {
                d->code = CORE_HOLD_EXECUTE_DURATION;
                snprintf(d->reason, sizeof(d->reason), "The job exceeded allowed execute duration of %lld s",
                         (long long)most);
                return true;
        }
        return false;
}

static bool says(struct core *c, const struct ad *ad, symbol policy)
{
        struct value v;

        eval_attr(&c->eval, ad, NULL, policy, &v);
        return value_is_true(&v);
}

/* Sets d->next to the state that the policies of one member ask for, if any; it comes in as the present
 * state. */
static void periodic_decide(struct core *c, const struct job *j, const struct ad *ad, struct exit_decision *d)
{
        const struct attributes *a = &c->attr;
        enum job_state state = d->next;

        if (duration_exceeded(c, j, ad, d)) {
                d->next = JOB_HELD;
        } else if (says(c, ad, a->PeriodicRemove)) {
                d->next = JOB_REMOVED;
                say_policy(c, d, ad, a->PeriodicRemove, a->PeriodicRemoveReason, 0, "true", 0);
        } else if (state == JOB_HELD) {
                if (!says(c, ad, a->PeriodicRelease))
                        return;
                d->next = JOB_IDLE;
                say_policy(c, d, ad, a->PeriodicRelease, 0, 0, "true", 0);
        } else if (says(c, ad, a->PeriodicHold)) {
                d->next = JOB_HELD;
                say_policy(c, d, ad, a->PeriodicHold, a->PeriodicHoldReason, a->PeriodicHoldSubCode, "true",
                           CORE_HOLD_POLICY);
        } else if (job_state_runs(state) && state != JOB_VACATING && says(c, ad, a->PeriodicVacate)) {
                d->next = JOB_IDLE;
                say_policy(c, d, ad, a->PeriodicVacate, 0, 0, "true: it runs again", 0);
        }
}

/* Counts steps that periodic policies of the owner's jobs took. Returns whether they are too many for one
 * round. */
static bool owner_spent(const struct core *c, struct owner *o, uint64_t took)
{
        if (o->policy_round != c->policies->round)
                o->policy_steps = 0;
        o->policy_round = c->policies->round;
        o->policy_steps += took > POLICY_STEPS_PER_JOB ? took - POLICY_STEPS_PER_JOB : 0;
        return o->policy_steps > POLICY_STEPS_OF_ONE;
}

/* Emits what the policies of one member decide, for all of `members`. */
static void periodic_act(struct core *c, struct request *r, uint32_t member, const struct set *members)
{
        uint64_t began = core_steps(c);
        struct job *j = request_job(r, member);
        enum job_state state = request_state(r, member);
        struct ad *ad = member_ad(c, r, member, j);
        struct part *p = request_part(r, member, NULL);
        struct exit_decision d = {.next = state};
        struct event e = {.request = r->id};
        uint64_t overruns = c->eval.overruns, steps = c->eval.steps_all;
        uint32_t steps_max = c->eval.steps_max;
        bool spent = owner_spent(c, r->owner, 0), over;

        if (spent)
                c->eval.steps_max = POLICY_STEPS_SPENT;
        eval_share(&c->eval); /* one limit for all policies of a job */
        if (!p->periodic_over)
                periodic_decide(c, j, ad, &d);
        eval_share_end(&c->eval);
        c->eval.steps_max = steps_max;
        owner_spent(c, r->owner, core_steps(c) - began);
        c->policies->steps += c->eval.steps_all - steps;
        over = c->eval.overruns != overruns || c->policies->steps > c->policies->steps_max;
        p->periodic_over |= over && !spent;
        if ((p->periodic_over || over) && d.next == state && state != JOB_HELD)
                decision_set(&d, JOB_HELD, CORE_HOLD_POLICY_UNDEFINED, 0,
                             STR("its periodic_* policies take too long to evaluate: submit it with simpler "
                                 "ones"));
        eval_reset(&c->eval);
        ad_free(ad);
        if (d.next == state)
                return;
        e.code = d.code;
        e.subcode = d.subcode;
        e.reason = str_of(d.reason);
        set_copy(&e.members, members);
        if (!j || !j->queue) {
                e.type = d.next == JOB_REMOVED ? EVENT_REMOVED
                         : d.next == JOB_HELD  ? EVENT_HELD
                                               : EVENT_RELEASED;
                core_emit(c, &e, NULL);
        } else if (state != JOB_VACATING) {
                e.type = EVENT_VACATING;
                e.next = d.next;
                core_emit(c, &e, NULL);
                c->world.control(c->world.arg, j->queue->agent->name, core_control_of_goal(d.next), r->id,
                                 j->fence, members);
        }
        event_deinit(&e);
}

struct differs {
        const struct core *core;
        const struct job_template *job_template;
        bool found;
};

static void on_name(void *arg, symbol name, bool target)
{
        struct differs *d = arg;

        if (target)
                return;
        d->found |= name == d->core->attr.ProcId;
        for (size_t i = 0; i < d->job_template->late_count; i++)
                d->found |= d->job_template->late[i].name == name;
}

/* Returns whether these policies may differ between members that wait in the same way. */
static bool differs_by_member(const struct core *c, const struct job_template *t)
{
        const symbol policies[] = {c->attr.PeriodicHold, c->attr.PeriodicRelease, c->attr.PeriodicRemove};
        struct differs d = {c, t, false};
        struct expr_uses uses;

        for (size_t i = 0; i < 3; i++) {
                const struct expr *e = ad_find(t->ad, policies[i]);

                on_name(&d, policies[i], false);
                if (e)
                        expr_references(e, t->ad, on_name, &d, &uses);
        }
        return d.found;
}

/* Decides once for all members that wait in the same way, or has each looked at later if they may differ. */
static void periodic_bare(struct core *c, struct request *r, const struct piece *p, bool held)
{
        struct set bare = {0};
        void *value;

        if (held)
                set_copy(&bare, &request_cold(r)->held);
        else
                request_idle_all(r, &bare);
        piece_keep(r, p, &bare);
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);)
                set_remove(&bare, ((struct job *)value)->member);
        if (set_count(&bare) && !differs_by_member(c, p->part->job_template))
                periodic_act(c, r, (uint32_t)set_first(&bare), &bare);
        else
                set_add_all(&c->policies->each, &bare);
        set_deinit(&bare);
}

static void periodic_end(struct core *c)
{
        set_deinit(&c->policies->each);
        c->policies->begun = c->policies->member = 0;
}

static void periodic_begin(struct core *c, struct request *r)
{
        void *value;

        periodic_end(c);
        c->policies->begun = r->id;
        c->policies->steps = 0;
        c->policies->steps_max = POLICY_STEPS_MAX + POLICY_STEPS_PER_JOB * (uint64_t)r->count;
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);)
                set_add(&c->policies->each, ((struct job *)value)->member);
        for (uint32_t i = 0; i < request_piece_count(r); i++) {
                struct piece p = request_piece(r, i);

                if (p.part->job_template->periodic_policy) {
                        periodic_bare(c, r, &p, false);
                        periodic_bare(c, r, &p, true);
                }
        }
}

static void spend(unsigned *budget, uint64_t work)
{
        *budget -= work < *budget ? (unsigned)work : *budget;
}

/* Looks at some of the members that need a decision each, in their present state. Returns whether there are
 * more. */
static bool periodic_some(struct core *c, struct request *r, unsigned *budget)
{
        uint64_t m = set_next(&c->policies->each, c->policies->member);

        for (; m != SET_END && *budget > 0; m = set_next(&c->policies->each, m + 1)) {
                enum job_state state = request_state(r, (uint32_t)m);
                uint64_t steps = core_steps(c);
                struct set one = {0};

                if (request_part(r, (uint32_t)m, NULL)->job_template->periodic_policy &&
                    !set_has(&request_cold(r)->left, (uint32_t)m) && state != JOB_COMPLETED &&
                    state != JOB_REMOVED) {
                        set_add(&one, (uint32_t)m);
                        periodic_act(c, r, (uint32_t)m, &one);
                        set_deinit(&one);
                }
                spend(budget, 1 + (core_steps(c) - steps) / POLICY_STEPS);
                c->policies->member = m + 1;
        }
        return m != SET_END;
}

bool policy_periodic_step(struct core *c, unsigned budget)
{
        struct request *r = c->requests->first;

        while (r && r->id < c->policies->request)
                r = r->next;
        for (; r; r = r->next) {
                uint64_t steps = core_steps(c);

                if (!r->periodic || request_ended(r))
                        continue;
                c->policies->request = r->id;
                if (budget == 0)
                        return true;
                if (c->policies->begun != r->id)
                        periodic_begin(c, r);
                spend(&budget, 1 + (core_steps(c) - steps) / POLICY_STEPS);
                if (periodic_some(c, r, &budget))
                        return true;
                periodic_end(c);
        }
        periodic_end(c);
        c->policies->request = 0;
        c->policies->round++;
        return false;
}

void policy_hold_class(struct core *c, struct job_class *k, int code, const char *reason)
{
        while (k->idle > 0) {
                struct bucket *b = job_class_first_bucket(k);
                struct event e = {.type = EVENT_HELD,
                                  .request = b->request->id,
                                  .code = code,
                                  .reason = str_of(reason)};

                set_copy(&e.members, &b->idle);
                core_emit(c, &e, NULL);
                event_deinit(&e);
        }
}

void policy_hold_leaks(struct core *c)
{
        for (struct request *r = c->requests->first; r; r = r->next)
                for (size_t i = 0; i < r->bucket_count; i++) {
                        struct bucket *b = r->buckets[i];
                        struct event e = {.type = EVENT_HELD, .request = r->id, .code = CORE_HOLD_OUTPUT};
                        struct err why = {""};
                        uint64_t labels;

                        if (!b->job_class || !b->job_class->leaks || set_count(&b->idle) == 0)
                                continue;
                        label_of(c, r, request_part_at(r, b->part), (uint32_t)set_first(&b->idle), &labels,
                                 &why);
                        e.reason = str_of(why.text);
                        set_copy(&e.members, &b->idle);
                        core_emit(c, &e, NULL);
                        event_deinit(&e);
                }
}
