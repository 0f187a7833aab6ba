/* GET /v1/jobs/7.42/why: in words, what keeps a job where it is. Its expected times are looked at, and queues
 * asked, some at a time, and other work goes in between, so the answer to a job that starts meanwhile is that
 * it started. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "server/agents/whereabouts.h"
#include "server/api/limits.h"
#include "server/api/order.h"
#include "server/api/place.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"
#include "server/loop/words.h"

#define SLICE_QUEUES 100u

struct why {
        struct core_walk *walk;       /* over those that are asked */
        struct core_changes *changes; /* NULL: they are not looked at yet */
        uint32_t times;               /* core_eta_some's */
        struct buf agents;
        struct json j; /* into it */
        unsigned count[CORE_STORE_DOWN + 1], all;
};

static void state_free(void *arg)
{
        struct why *w = arg;

        core_walk_free(w->walk);
        core_changes_free(w->changes);
        buf_deinit(&w->agents);
        free(w);
}

static void on_queue(void *arg, const struct core_why *w)
{
        struct why *x = arg;

        x->all++;
        x->count[w->verdict]++;
        json_open(&x->j, '{');
        place_write(&x->j, w, NULL);
        json_close(&x->j, '}');
}

static void say(struct json *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct json *j, const char *fmt, ...)
{
        BUF_CLEANUP struct buf b = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        json_str(j, buf_view(&b));
}

static const char *queues(unsigned n)
{
        return n == 1 ? "queue" : "queues";
}

/* What stops it everywhere, before any queue is asked. True: there is something. */
static bool explain_limit(struct json *j, struct core *core, const struct core_job *job)
{
        BUF_CLEANUP struct buf text = {0};
        struct core_limit l;
        int64_t units, lost_ms = core_lost_wait_ms(core, job->request);

        if (lost_ms) {
                say(j,
                    "The server began with an older copy of the database, and the job may run at an agent "
                    "that was given it in "
                    "the lost time: it waits until that agent's lease has ended, in at most %lld s.",
                    (long long)(lost_ms + 999) / 1000);
                return true;
        }
        if (core_job_limit(core, job->request, job->member, &l, &units) != 0)
                return false;
        limit_say(&text, core, &l, units);
        json_str(j, buf_view(&text));
        return true;
}

/* Its place in the order, and what is kept for it. */
static void explain_turn(struct json *j, struct core *core, const struct core_job *job)
{
        struct core_reservation r;
        struct core_priority p;

        if (core_job_reservation(core, job->request, job->member, &r) == 0) {
                BUF_CLEANUP struct buf when = {0}, others = {0}, idle = {0};
                int64_t in_s = (r.start_ms - clock_wall_ms() + 999) / 1000;

                buf_printf(&when,
                           in_s <= 0    ? "now"
                           : in_s < 120 ? "in %lld s"
                                        : "in about %lld min",
                           (long long)(in_s < 120 ? in_s : (in_s + 30) / 60));
                if (r.queues > 1)
                        buf_printf(&others, " and %zu other%s", r.queues - 1, r.queues > 2 ? "s" : "");
                if (r.idle_ms >= 60000)
                        buf_printf(&idle, " It has kept %lld processor minutes idle so far.",
                                   (long long)(r.idle_ms / 60000));
                say(j, "%s has a reservation at queue %s of agent %s%s, where there should be room %s.%s",
                    r.first ? "It" : "Another job of its kind", r.queue, r.agent, buf_z(&others),
                    buf_z(&when), buf_z(&idle));
        }
        if (core_job_priority(core, job->request, job->member, &p) == 0 && p.ahead)
                say(j, "%s%llu idle job%s before it in the order: `drover priority` shows why.",
                    p.ahead_more ? "More than " : "", (unsigned long long)p.ahead,
                    p.ahead == 1 ? " goes" : "s go");
}

static void write_turn(struct json *j, struct core *core, uint64_t request, uint32_t member)
{
        struct core_reservation r;
        struct core_priority p;

        json_key(j, "reservation");
        if (core_job_reservation(core, request, member, &r) == 0) {
                json_open(j, '{');
                json_kstrz(j, "agent", r.agent);
                json_kstrz(j, "queue", r.queue);
                json_kint(j, "queues", (int64_t)r.queues);
                json_kint(j, "start_ms", r.start_ms);
                json_kint(j, "idle_ms", r.idle_ms);
                json_kbool(j, "first", r.first);
                json_close(j, '}');
        } else {
                json_null(j);
        }
        json_key(j, "priority");
        if (core_job_priority(core, request, member, &p) == 0) {
                json_open(j, '{');
                priority_write(j, &p);
                json_close(j, '}');
        } else {
                json_null(j);
        }
}

static void explain_idle(struct json *j, struct core *core, const struct core_job *job, const struct why *w,
                         bool full, bool limited)
{
        BUF_CLEANUP struct buf down = {0};
        const unsigned *n = w->count;

        words_stores_down(&down, core, job->request, job->member);
        if (full)
                say(j, "The server's disk is full: no job is started until there is space.");
        if (limited && (n[CORE_FITS] || n[CORE_BUSY]))
                say(j, "But for that %u %s would take it.", n[CORE_FITS] + n[CORE_BUSY],
                    queues(n[CORE_FITS] + n[CORE_BUSY]));
        else if (w->all == 0)
                say(j, "There is no agent yet: start one with `drover up`, or give another machine a token.");
        else if (n[CORE_FITS])
                say(j, "It fits %u %s and will be started at once.", n[CORE_FITS], queues(n[CORE_FITS]));
        else if (n[CORE_BUSY])
                say(j, "It waits for room: %u %s would take it when other jobs there have ended.",
                    n[CORE_BUSY], queues(n[CORE_BUSY]));
        else if (n[CORE_STORE_DOWN])
                say(j, "It waits for a store that does not answer: %u %s would take it then.",
                    n[CORE_STORE_DOWN], queues(n[CORE_STORE_DOWN]));
        else
                say(j, "None of %u %s can take it.", w->all, queues(w->all));
        if (down.n)
                say(j, "S" STR_FMT ".", STR_ARG(str_skip(buf_view(&down), 1)));
        if (n[CORE_JOB_REFUSES])
                say(j, "The job's own requirements exclude %u %s.", n[CORE_JOB_REFUSES],
                    queues(n[CORE_JOB_REFUSES]));
        if (n[CORE_QUEUE_REFUSES])
                say(j, "%u %s not want this job.", n[CORE_QUEUE_REFUSES],
                    n[CORE_QUEUE_REFUSES] == 1 ? "queue does" : "queues do");
        if (n[CORE_OWNER_REFUSED])
                say(j, "%u %s not run jobs of this owner.", n[CORE_OWNER_REFUSED],
                    n[CORE_OWNER_REFUSED] == 1 ? "queue does" : "queues do");
        if (n[CORE_NOT_CLEARED])
                say(j, "%u %s not cleared for the data that the job touches.", n[CORE_NOT_CLEARED],
                    n[CORE_NOT_CLEARED] == 1 ? "queue is" : "queues are");
        if (n[CORE_AWAY])
                say(j, "%u %s away.", n[CORE_AWAY], n[CORE_AWAY] == 1 ? "queue is" : "queues are");
        if (n[CORE_UNREACHABLE])
                say(j, "%u %s not be reached now, and %s given no jobs.", n[CORE_UNREACHABLE],
                    n[CORE_UNREACHABLE] == 1 ? "queue can" : "queues can",
                    n[CORE_UNREACHABLE] == 1 ? "is" : "are");
        if (n[CORE_NOT_OFFERING])
                say(j, "%u %s no jobs now.", n[CORE_NOT_OFFERING],
                    n[CORE_NOT_OFFERING] == 1 ? "queue takes" : "queues take");
}

/* "Ask for at most 4 instead of 64: RequestCpus" is worth a sentence; the list has all. */
struct hints {
        struct json j;
        struct json *text;
        unsigned said;
};

static void on_change(void *arg, const struct core_change *x)
{
        static const char *const kinds[] = {"job", "agent", "request"};
        struct hints *h = arg;
        struct json *j = &h->j;

        json_open(j, '{');
        json_kstrz(j, "kind", kinds[x->kind]);
        json_kstr(j, "text", x->text);
        json_kint(j, "refused", x->refused);
        json_kint(j, "alone", x->alone);
        if (x->kind == CORE_CHANGE_REQUEST) {
                json_kint(j, "asked", x->asked);
                json_kint(j, "most", x->most);
        }
        json_close(j, '}');
        if (x->alone == 0 || h->said++ >= 3)
                return;
        if (x->kind == CORE_CHANGE_REQUEST)
                say(h->text, STR_FMT " = %lld instead of %lld would do at %u %s.", STR_ARG(x->text),
                    (long long)x->most, (long long)x->asked, x->alone, queues(x->alone));
        else
                say(h->text, "Without the %s's clause " STR_FMT " %u %s would take it.",
                    x->kind == CORE_CHANGE_JOB_CLAUSE ? "job" : "queue", STR_ARG(x->text), x->alone,
                    queues(x->alone));
}

/* Jobs that start together wait for places for all of them. True: this one waits for that. */
static bool explain_set(struct json *j, struct core *core, const struct core_job *job)
{
        static const char *const within[] = {"", " within one group", " at one queue"};
        BUF_CLEANUP struct buf most = {0}, by = {0};
        struct core_set s;

        if (core_job_set(core, job->request, job->member, &s) != 0)
                return false;
        say(j, "It is node %u of the %u jobs from %llu.%u to %llu.%u, which start together.",
            job->member - s.first, s.size, (unsigned long long)job->request, s.first,
            (unsigned long long)job->request, s.first + s.size - 1);
        if (s.state == CORE_SET_MATCHED)
                say(j, "They have places, and start when all are accepted there.");
        else if (s.state == CORE_SET_BLOCKED)
                say(j, "They wait for %llu.%u, which is %s.", (unsigned long long)job->request, s.member,
                    job_state_name(s.blocked));
        if (s.state != CORE_SET_WAITS)
                return false;
        if (s.places)
                buf_printf(&most, "%llu%s%s", (unsigned long long)s.places, *s.where ? " at " : "", s.where);
        else
                buf_addz(&most, "none");
        if (s.within == CORE_SET_GROUP)
                buf_printf(&by, " (queues with the same " STR_FMT ")", STR_ARG(s.group_by));
        say(j, "It needs %u places at once%s%s; the most there is now is %s.", s.left, within[s.within],
            buf_z(&by), buf_z(&most));
        if (s.places_ever < s.left)
                say(j, "Even if nothing else ran there would be %llu: ask for less, or for more agents.",
                    (unsigned long long)s.places_ever);
        return true;
}

static void write_set(struct json *j, struct core *core, uint64_t request, uint32_t member)
{
        static const char *const within[] = {"anywhere", "group", "node"};
        static const char *const states[] = {"waits", "blocked", "matched", "started"};
        struct core_set s;

        json_key(j, "set");
        if (core_job_set(core, request, member, &s) != 0) {
                json_null(j);
                return;
        }
        json_open(j, '{');
        json_kint(j, "first", s.first);
        json_kint(j, "size", s.size);
        json_kint(j, "node", member - s.first);
        json_kstrz(j, "within", within[s.within]);
        if (s.within == CORE_SET_GROUP)
                json_kstr(j, "group_by", s.group_by);
        json_kstrz(j, "state", states[s.state]);
        if (s.state == CORE_SET_WAITS) {
                json_kint(j, "needs", s.left);
                json_kint(j, "places", (int64_t)s.places);
                json_kint(j, "places_ever", (int64_t)s.places_ever);
                json_kstrz(j, "where", s.where);
        }
        json_close(j, '}');
}

/* It has an attempt; is anything heard of it? */
static void explain_reach(struct json *j, const struct core_job *job)
{
        if (job->away)
                say(j, "Nothing is heard of that agent. The job is run again when its lease has ended, "
                       "unless the "
                       "agent comes back before.");
        else if (job->unreachable)
                say(j,
                    "That queue cannot be reached now (%s). The job stays there, and is accounted for when "
                    "it "
                    "can.",
                    job->unreachable);
}

static void explain(struct json *j, struct core *core, const struct core_job *job, const struct why *w,
                    bool full)
{
        bool waits = explain_set(j, core, job);

        if (job->state == JOB_IDLE) {
                explain_idle(j, core, job, w, full, explain_limit(j, core, job) || waits);
                explain_turn(j, core, job);
        } else if (job->state == JOB_HELD)
                say(j, "It is held: " STR_FMT " (code %d, subcode %d). `drover release` lets it run again.",
                    STR_ARG(job->hold_reason), job->hold_code, job->hold_subcode);
        else if (job->state == JOB_COMPLETED || job->state == JOB_REMOVED)
                say(j, "It has ended: it is %s.", job_state_name(job->state));
        else if (job_state_has_attempt(job->state)) {
                say(j, "It is %s at queue %s of agent %s; `drover path` tells more.",
                    job_state_name(job->state), job->queue ? job->queue : "?", job->agent ? job->agent : "?");
                explain_reach(j, job);
        } else
                say(j, "It is %s.", job_state_name(job->state));
}

/* What waits in a batch system that gives no time does not start at once, whatever the core hopes. */
static void write_eta(struct json *j, struct core *c, const struct core_job *job, bool waits_there)
{
        struct core_eta e;

        if (core_eta(c, job->request, job->member, &e) == 0 && e.start_ms &&
            !(waits_there && e.start_ms <= clock_wall_ms())) {
                json_kint(j, "eta_start_ms", e.start_ms);
                if (e.end_ms)
                        json_kint(j, "eta_end_ms", e.end_ms);
        }
        place_write_error(j, c);
}

/* True: there is more to ask. */
static bool ask_some(struct server *s, struct why *w, const struct core_job *job)
{
        if (job->state != JOB_IDLE)
                return false;
        if (core_eta_some(s->core, &w->times))
                return true;
        if (!w->walk)
                w->walk = core_walk_new(s->core);
        if (!w->changes) {
                core_why_some(s->core, w->walk, SLICE_QUEUES, job->request, job->member, on_queue, w);
                if (!core_walk_is_over(w->walk))
                        return true;
                if (w->count[CORE_FITS] || w->count[CORE_BUSY])
                        return false;
                core_walk_free(w->walk);
                w->walk = core_walk_new(s->core);
                w->changes = core_changes_new();
                return w->all > 0;
        }
        core_changes_look(s->core, w->changes, w->walk, SLICE_QUEUES, job->request, job->member);
        return !core_walk_is_over(w->walk);
}

static void reply(struct server *s, struct call *c, struct why *w, const struct core_job *job)
{
        BUF_CLEANUP struct buf changes = {0};
        struct json j = {.out = &c->out};
        struct hints hints = {.j = {.out = &changes}, .text = &j};
        const char *said =
                job_state_has_attempt(job->state) ? whereabouts_said(s, job->request, job->member) : NULL;
        char id[48];

        snprintf(id, sizeof(id), "%" PRIu64 ".%u", job->request, job->member);
        json_open(&j, '{');
        json_kstrz(&j, "id", id);
        json_kstrz(&j, "state", job_state_name(job->state));
        json_key(&j, "text");
        json_open(&j, '[');
        explain(&j, s->core, job, w, turn_full(s->turn));
        if (said)
                say(&j, "It waits there: %s.", said);
        if (job->state == JOB_IDLE && whereabouts_back(s, job->request, job->member))
                say(&j, "It was given back: %s.", whereabouts_back(s, job->request, job->member));
        if (job_state_has_attempt(job->state) && whereabouts_doing(s, job->request, job->member))
                say(&j, "At its agent: %s.", whereabouts_doing(s, job->request, job->member));
        json_open(&hints.j, '[');
        if (w->changes && job->state == JOB_IDLE)
                core_changes_tell(w->changes, on_change, &hints);
        json_close(&hints.j, ']');
        json_close(&j, ']');
        write_eta(&j, s->core, job, said && !job_state_runs(job->state));
        write_turn(&j, s->core, job->request, job->member);
        write_set(&j, s->core, job->request, job->member);
        json_key(&j, "agents");
        json_open(&j, '[');
        if (job->state == JOB_IDLE && w->agents.n)
                json_raw(&j, buf_view(&w->agents));
        json_close(&j, ']');
        json_key(&j, "changes");
        json_raw(&j, buf_view(&changes));
        json_close(&j, '}');
        call_reply(c);
}

static void look(struct server *s, struct call *c)
{
        struct why *w = c->state;
        struct core_request r;
        struct core_job job;
        uint64_t request;
        uint32_t member;

        if (ids_parse_job(c->param[0], &request, &member) != 0 ||
            core_request_get(s->core, request, &r) != 0 || !call_may(c, r.owner) ||
            core_job_get(s->core, request, member, &job) != 0)
                call_fail(c, 404, "not_found", "there is no job " STR_FMT " in the queue",
                          STR_ARG(c->param[0]));
        else if (ask_some(s, w, &job))
                call_yield_to_client(c, look);
        else
                reply(s, c, w, &job);
}

void api_job_why(struct server *s, struct call *c)
{
        struct why *w = call_state(c, sizeof(*w), state_free);

        (void)s;
        w->j.out = &w->agents;
        call_core(c, look);
}
