/* GET /v1/jobs/7.42/why: explains in sentences why a job is where it is. Expected times are computed and
 * queues are asked in slices, with other work in between, so the job may start meanwhile; the answer then
 * says that it started. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "core/lifecycle/lots.h"
#include "core/lifecycle/reservations.h"
#include "core/meta/meta.h"
#include "core/query.h"
#include "server/agents/attempt_location.h"
#include "server/api/explain/dataset_wait.h"
#include "server/api/explain/limits.h"
#include "server/api/explain/order.h"
#include "server/api/explain/place.h"
#include "server/api/routes.h"
#include "server/loop/ids.h"
#include "server/loop/words.h"

#define SLICE_QUEUES 100u

struct why {
        struct core_walk *walk;       /* over the queues that are asked */
        struct core_what_if *changes; /* NULL: not computed yet */
        uint32_t times;               /* state of core_eta_some */
        struct buf agents;
        struct json j; /* the answer, written into it */
        unsigned count[CORE_VERDICTS], all;
        bool asked; /* all queues have answered */
        struct dataset_wait files;
        bool on_hosts;   /* the job's files are on hosts' own disks; */
        unsigned beside; /* queues elsewhere, by the condition that names these hosts */
};

static void state_free(void *arg)
{
        struct why *w = arg;

        core_walk_free(w->walk);
        core_what_if_free(w->changes);
        buf_deinit(&w->agents);
        dataset_wait_deinit(&w->files);
        free(w);
}

static void on_queue(void *arg, const struct core_why *w)
{
        BUF_CLEANUP struct buf hosts = {0};
        struct why *x = arg;

        x->all++;
        x->count[w->verdict]++;
        x->beside += w->verdict == CORE_AWAY ||
                     (w->verdict == CORE_JOB_REFUSES && dataset_wait_hosts(w->clause, &hosts));
        json_open(&x->j, '{');
        place_write(&x->j, w, NULL);
        json_close(&x->j, '}');
}

static void why_line_add(struct json *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void why_line_add(struct json *j, const char *fmt, ...)
{
        BUF_CLEANUP struct buf b = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        json_str(j, buf_view(&b));
}

/* Appends words about n things: `one` for one, otherwise `many`, in which # stands for the number. */
static void add_count(struct buf *out, uint64_t n, const char *one, const char *many)
{
        struct str rest = str_of(many), before;

        if (n == 1) {
                buf_addz(out, one);
                return;
        }
        str_cut(&rest, '#', &before);
        buf_printf(out, STR_FMT "%llu" STR_FMT, STR_ARG(before), (unsigned long long)n, STR_ARG(rest));
}

/* Writes a sentence about n things as add_count does; none about nothing. */
static void say_count(struct json *j, unsigned n, const char *one, const char *many)
{
        BUF_CLEANUP struct buf b = {0};

        if (n == 0)
                return;
        add_count(&b, n, one, many);
        json_str(j, buf_view(&b));
}

/* Explains where a meta job is reserved, and why there. Returns whether the job is one. */
static bool explain_meta(struct json *j, struct core *core, const struct core_job *job)
{
        BUF_CLEANUP struct buf parts = {0}, moves = {0};
        struct core_meta m;
        int64_t in_s;

        if (core_job_meta(core, job->request, job->member, &m) != 0)
                return false;
        if (m.parts > 1)
                buf_printf(&parts, ", for all %u parts of the job from one time on", m.parts);
        if (!m.reserved) {
                why_line_add(j, "It is a meta job, and starts where it is reserved for only: %s.", m.waits);
                return true;
        }
        in_s = (m.start_ms - clock_wall_ms() + 999) / 1000;
        if (m.moves)
                add_count(&moves, m.moves, " It has moved 1 time.", " It has moved # times.");
        why_line_add(j,
                     "It is %s: room at queue %s of agent %s is kept for it, %s%lld s%s%s (reservation "
                     "%llu).%s",
                     job_state_name(job->state), m.queue, m.agent, in_s > 0 ? "starting in " : "since ",
                     (long long)(in_s > 0 ? in_s : -in_s), in_s > 0 ? "" : " ago", buf_z(&parts),
                     (unsigned long long)m.id, buf_z(&moves));
        why_line_add(j, "When that was made: %s.", m.why);
        return true;
}

static void write_meta(struct json *j, struct core *core, uint64_t request, uint32_t member)
{
        struct core_meta m;

        json_key(j, "meta");
        if (core_job_meta(core, request, member, &m) != 0) {
                json_null(j);
                return;
        }
        json_open(j, '{');
        json_key(j, "prefer_time");
        json_double(j, m.time);
        json_kint(j, "parts", m.parts);
        if (m.reserved) {
                json_kint(j, "reservation", (int64_t)m.id);
                json_kstrz(j, "agent", m.agent);
                json_kstrz(j, "queue", m.queue);
                json_kint(j, "start_ms", m.start_ms);
                json_kint(j, "end_ms", m.end_ms);
                json_kint(j, "moves", m.moves);
                json_kstrz(j, "why", m.why);
        } else {
                json_kstrz(j, "waits", m.waits);
        }
        json_close(j, '}');
}

/* Explains what stops the job everywhere, before any queue is asked. Returns whether there is such a
 * thing. */
static bool explain_limit(struct json *j, struct core *core, const struct core_job *job)
{
        BUF_CLEANUP struct buf text = {0};
        struct err says = {""};
        uint64_t under_way, most;
        struct core_limit l;
        int64_t units, lost_ms = core_lost_wait_ms(core, job->request);

        if (lost_ms) {
                why_line_add(j,
                             "The server began with an older copy of the database, and the job may run at an "
                             "agent "
                             "that was given it in "
                             "the lost time: it waits until that agent's lease has ended, in at most %lld s.",
                             (long long)(lost_ms + 999) / 1000);
                return true;
        }
        if (core_job_money(core, job->request, job->member, &says) == 0) {
                json_strz(j, says.text);
                return true;
        }
        if (core_job_reserved(core, job->request, job->member, &says) == 0) {
                json_strz(j, says.text);
                return true;
        }
        if (explain_meta(j, core, job))
                return true;
        if (core_job_space(core, job->request, job->member, &says) == 0) {
                json_strz(j, says.text);
                return true;
        }
        if (core_job_throttle(core, job->request, job->member, &under_way, &most) == 0) {
                buf_printf(&text, "Of request %llu ", (unsigned long long)job->request);
                add_count(&text, most, "1 job may run at once, and ", "# jobs may run at once, and ");
                add_count(&text, under_way, "1 does", "# do");
                buf_addz(&text, ": it waits for one to end.");
                json_str(j, buf_view(&text));
                return true;
        }
        if (core_job_limit(core, job->request, job->member, &l, &units) != 0)
                return false;
        limit_say(&text, core, &l, units);
        json_str(j, buf_view(&text));
        return true;
}

/* Says that the job is not paid by the quote that it names. */
static void explain_quote(struct json *j, struct core *core, const struct core_job *job)
{
        struct err says = {""};

        if (core_job_quote(core, job->request, job->member, &says) == 0)
                why_line_add(j, "It will be paid by the rates: %s.", says.text);
}

/* Explains the job's place in the order, and what is reserved for it. `would`: some queues could run it. */
static void explain_turn(struct json *j, struct core *core, const struct core_job *job, bool would)
{
        BUF_CLEANUP struct buf ahead = {0};
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
                        add_count(&others, r.queues - 1, " and 1 other", " and # others");
                if (r.idle_ms >= 60000)
                        buf_printf(&idle, " It has kept %lld processor minutes idle so far.",
                                   (long long)(r.idle_ms / 60000));
                why_line_add(
                        j, "%s has a reservation at queue %s of agent %s%s, where there should be room %s.%s",
                        r.first ? "It" : "Another job of its kind", r.queue, r.agent, buf_z(&others),
                        buf_z(&when), buf_z(&idle));
        }
        if (would && core_job_priority(core, job->request, job->member, &p) == 0 && p.ahead) {
                add_count(&ahead, p.ahead, "1 idle job goes", "# idle jobs go");
                why_line_add(j, "%s%s before it in the order: `drover priority %llu.%u` shows why.",
                             p.ahead_more ? "More than " : "", buf_z(&ahead),
                             (unsigned long long)job->request, job->member);
        }
}

static void write_turn(struct json *j, struct core *core, uint64_t request, uint32_t member)
{
        struct core_better_place b;
        struct core_reservation r;
        struct core_priority p;

        json_key(j, "better_place");
        if (core_job_better_place(core, request, member, &b) == 0) {
                json_open(j, '{');
                json_kstrz(j, "agent", b.agent);
                json_kstrz(j, "queue", b.queue);
                json_kint(j, "waited_ms", b.waited_ms);
                json_kint(j, "longest_ms", b.longest_ms);
                json_close(j, '}');
        } else {
                json_null(j);
        }
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

/* Answers of queues that do not run the job now. */
static const struct {
        enum core_verdict verdict;
        const char *one, *many;
} refusals[] = {
        {CORE_JOB_REFUSES, "The job's requirements exclude 1 queue.",
         "The job's requirements exclude # queues."},
        {CORE_QUEUE_REFUSES, "The requirements of 1 queue exclude the job.",
         "The requirements of # queues exclude the job."},
        {CORE_OWNER_REFUSED, "1 queue does not run jobs of this owner.",
         "# queues do not run jobs of this owner."},
        {CORE_NOT_CLEARED, "1 queue is not cleared for the job's data.",
         "# queues are not cleared for the job's data."},
        {CORE_AWAY, "1 queue is not connected.", "# queues are not connected."},
        {CORE_UNREACHABLE, "1 queue is unreachable and is given no jobs.",
         "# queues are unreachable and are given no jobs."},
        {CORE_NOT_OFFERING, "1 queue takes no jobs now.", "# queues take no jobs now."},
};

/* Explains a job that could start, but waits for a better place. */
static void explain_fits(struct json *j, struct core *core, const struct core_job *job, unsigned fits)
{
        BUF_CLEANUP struct buf text = {0};
        struct core_better_place b;

        if (core_job_better_place(core, job->request, job->member, &b) != 0) {
                say_count(j, fits, "1 queue can run it now, and it is about to start.",
                          "# queues can run it now, and it is about to start.");
                return;
        }
        add_count(&text, fits, "1 queue", "# queues");
        why_line_add(j,
                     "%s can run it now, but it waits for queue %s of agent %s, where its result should be "
                     "available sooner: for %lld s so far, and for at most %lld s (BetterPlaceWait).",
                     buf_z(&text), b.queue, b.agent, (long long)(b.waited_ms / 1000),
                     (long long)(b.longest_ms / 1000));
}

static void explain_idle(struct json *j, struct core *core, const struct core_job *job, const struct why *w,
                         bool full, bool limited)
{
        BUF_CLEANUP struct buf down = {0};
        const unsigned *n = w->count;
        unsigned would = n[CORE_FITS] + n[CORE_BUSY];

        words_stores_down(&down, core, job->request, job->member);
        if (full)
                json_strz(j, "The server's disk is full: no job is started until there is space.");
        if (limited && would)
                say_count(j, would, "Otherwise 1 queue could run it.", "Otherwise # queues could run it.");
        else if (w->all == 0)
                json_strz(j,
                          "No agent is connected yet: start one with `drover up`, or see drover-token(1).");
        else if (n[CORE_FITS])
                explain_fits(j, core, job, n[CORE_FITS]);
        else if (n[CORE_BUSY])
                say_count(j, n[CORE_BUSY],
                          "It waits for resources: 1 queue can run it when other jobs there have ended.",
                          "It waits for resources: # queues can run it when other jobs there have ended.");
        else if (n[CORE_STORE_DOWN])
                say_count(j, n[CORE_STORE_DOWN],
                          "It waits for a store that does not answer: 1 queue could run it then.",
                          "It waits for a store that does not answer: # queues could run it then.");
        else
                why_line_add(j, "No queue can run this job (%u checked).", w->all);
        if (down.n)
                why_line_add(j, "S" STR_FMT ".", STR_ARG(str_skip(buf_view(&down), 1)));
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
                say_count(j, n[refusals[i].verdict], refusals[i].one, refusals[i].many);
}

#define HINTS_MAX 3u

/* Changes that would help are listed, and the best are also written as sentences. */
struct hints {
        struct json j;
        struct json *text;
        uint64_t request;
        struct buf needed; /* where no single change is enough: what must change together */
        unsigned said, in_the_way;
};

/* Appends an amount in the unit that people write, rounded down: it is also asked for. RequestMemory is in
 * MiB, RequestDisk in KiB. */
static void add_amount(struct buf *out, struct str attribute, int64_t amount)
{
        static const char units[] = "KMGTPE";
        double v = (double)amount;
        unsigned u = str_eqz(attribute, "RequestMemory") ? 1 : 0;

        if (!str_eqz(attribute, "RequestMemory") && !str_eqz(attribute, "RequestDisk")) {
                buf_printf(out, "%lld", (long long)amount);
                return;
        }
        for (; v >= 1023.95 && units[u + 1]; u++)
                v /= 1024;
        v = v < 100 ? floor(v * 10) / 10 : floor(v);
        buf_printf(out, v != floor(v) ? "%.1f%c" : "%.0f%c", v, units[u]);
}

/* Appends "request_memory" for "RequestMemory", as a submit file has it. */
static void add_keyword(struct buf *out, struct str attribute)
{
        for (size_t i = 0; i < attribute.n; i++) {
                char c = attribute.p[i];

                if (c >= 'A' && c <= 'Z' && i > 0 && attribute.p[i - 1] >= 'a')
                        buf_char(out, '_');
                buf_char(out, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
        }
}

static void add_change(struct buf *out, const struct core_change *x)
{
        BUF_CLEANUP struct buf hosts = {0};

        if (x->kind == CORE_CHANGE_JOB_CLAUSE && dataset_wait_hosts(x->text, &hosts)) {
                buf_printf(out, "that its files are on the disk of host " STR_FMT, STR_ARG(buf_view(&hosts)));
                return;
        }
        if (x->kind != CORE_CHANGE_REQUEST) {
                buf_str(out, x->text);
                return;
        }
        add_keyword(out, x->text);
        if (x->alone == 0) {
                buf_addz(out, " = ");
                add_amount(out, x->text, x->asked);
                return;
        }
        buf_addz(out, " <= ");
        add_amount(out, x->text, x->most);
        buf_addz(out, " (asked ");
        add_amount(out, x->text, x->asked);
        buf_char(out, ')');
}

/* Returns whether the clause only limits a request, as TARGET.Cpus >= RequestCpus does. The list then also
 * has the change of the request itself, with the amount available. */
static bool is_of_request(const struct core_change *x)
{
        return (x->kind == CORE_CHANGE_JOB_CLAUSE && str_search(x->text, STR(">= Request")) >= 0) ||
               (x->kind == CORE_CHANGE_QUEUE_CLAUSE && str_search(x->text, STR("TARGET.Request")) >= 0);
}

/* Says how much would fit, and the command that asks for it. */
static void say_request(struct hints *h, const struct core_change *x, const char *change)
{
        BUF_CLEANUP struct buf edit = {0}, queues = {0};

        add_keyword(&edit, x->text);
        buf_char(&edit, '=');
        add_amount(&edit, x->text, x->most);
        add_count(&queues, x->alone, "1 queue", "# queues");
        why_line_add(h->text, "Would fit %s with %s: `drover edit %llu %s`.", buf_z(&queues), change,
                     (unsigned long long)h->request, buf_z(&edit));
}

static void on_change(void *arg, const struct core_change *x)
{
        static const char *const kinds[] = {"job", "agent", "request"};
        BUF_CLEANUP struct buf change = {0}, queues = {0};
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
        add_change(&change, x);
        if (x->alone == 0 && !is_of_request(x) && h->in_the_way++ < HINTS_MAX)
                buf_printf(&h->needed, "%s%s", h->needed.n ? "; " : "", buf_z(&change));
        if (x->alone == 0 || h->said++ >= HINTS_MAX)
                return;
        if (x->kind == CORE_CHANGE_REQUEST)
                say_request(h, x, buf_z(&change));
        else {
                add_count(&queues, x->alone, "1 queue", "# queues");
                why_line_add(h->text, "%s could run it without the %s's condition %s.", buf_z(&queues),
                             x->kind == CORE_CHANGE_JOB_CLAUSE ? "job" : "queue", buf_z(&change));
        }
}

/* Where no single change is enough, says what must change together. */
static void say_needed(struct hints *h)
{
        if (h->said == 0 && h->in_the_way > 0)
                why_line_add(h->text, "%s %s%s.",
                             h->in_the_way == 1 ? "In the way is"
                                                : "No single change is enough. In the way are",
                             buf_z(&h->needed), h->in_the_way > HINTS_MAX ? "; and more, see --json" : "");
}

/* Explains a job whose set starts together and waits for places for all members. Returns whether this job
 * does. */
static bool explain_set(struct json *j, struct core *core, const struct core_job *job)
{
        static const char *const within[] = {"", " within one group", " at one queue"};
        BUF_CLEANUP struct buf most = {0}, by = {0};
        struct core_gang s;

        if (core_job_gang(core, job->request, job->member, &s) != 0)
                return false;
        why_line_add(j, "It is node %u of the %u jobs from %llu.%u to %llu.%u, which start together.",
                     job->member - s.first, s.size, (unsigned long long)job->request, s.first,
                     (unsigned long long)job->request, s.first + s.size - 1);
        if (s.state == CORE_GANG_MATCHED)
                why_line_add(j, "They have places, and start when all are accepted there.");
        else if (s.state == CORE_GANG_BLOCKED)
                why_line_add(j, "They wait for %llu.%u, which is %s.", (unsigned long long)job->request,
                             s.member, job_state_name(s.blocked));
        if (s.state != CORE_GANG_WAITS || s.reserved)
                return false;
        if (s.places)
                buf_printf(&most, "%llu%s%s", (unsigned long long)s.places, *s.where ? " at " : "", s.where);
        else
                buf_addz(&most, "none");
        if (s.within == CORE_GANG_GROUP)
                buf_printf(&by, " (queues with the same " STR_FMT ")", STR_ARG(s.group_by));
        why_line_add(j, "It needs %u places at once%s%s; the most there is now is %s.", s.left,
                     within[s.within], buf_z(&by), buf_z(&most));
        if (s.places_ever < s.left)
                why_line_add(
                        j, "Even if nothing else ran there would be %llu: ask for less, or for more agents.",
                        (unsigned long long)s.places_ever);
        return true;
}

static void write_set(struct json *j, struct core *core, uint64_t request, uint32_t member)
{
        static const char *const within[] = {"anywhere", "group", "node"};
        static const char *const states[] = {"waits", "blocked", "matched", "started"};
        struct core_gang s;

        json_key(j, "gang");
        if (core_job_gang(core, request, member, &s) != 0) {
                json_null(j);
                return;
        }
        json_open(j, '{');
        json_kint(j, "first", s.first);
        json_kint(j, "size", s.size);
        json_kint(j, "node", member - s.first);
        json_kstrz(j, "within", within[s.within]);
        if (s.within == CORE_GANG_GROUP)
                json_kstr(j, "group_by", s.group_by);
        json_kstrz(j, "state", states[s.state]);
        if (s.state == CORE_GANG_WAITS && !s.reserved) {
                json_kint(j, "needs", s.left);
                json_kint(j, "places", (int64_t)s.places);
                json_kint(j, "places_ever", (int64_t)s.places_ever);
                json_kstrz(j, "where", s.where);
        }
        json_close(j, '}');
}

/* Explains an attempt whose place does not answer. */
static void explain_reach(struct json *j, const struct core_job *job)
{
        if (job->away)
                why_line_add(j, "That agent does not answer. The job runs again when its lease has ended, "
                                "unless the agent connects again before that.");
        else if (job->unreachable)
                why_line_add(j,
                             "That queue cannot be reached now (%s). The job stays there, and is accounted "
                             "for when "
                             "it "
                             "can.",
                             job->unreachable);
}

static void say_dependency(void *arg, const struct core_dependency *d)
{
        BUF_CLEANUP struct buf text = {0};

        if (d->satisfied)
                return;
        words_dependency(&text, d);
        why_line_add(arg, "It waits for " STR_FMT ".", STR_ARG(buf_view(&text)));
}

static void write_dependency(void *arg, const struct core_dependency *d)
{
        BUF_CLEANUP struct buf members = {0};
        struct json *j = arg;

        set_print(&members, &d->members);
        json_open(j, '{');
        json_kint(j, "request", (int64_t)d->request);
        json_kstr(j, "jobs", buf_view(&members));
        json_kstrz(j, "when", dependency_when_name(d->when));
        json_kint(j, "total", (int64_t)d->total);
        json_kint(j, "succeeded", (int64_t)d->succeeded);
        json_kint(j, "failed", (int64_t)d->failed);
        json_kbool(j, "satisfied", d->satisfied);
        json_close(j, '}');
}

static void write_losses(struct json *j, struct core *core, const struct core_job *job)
{
        struct core_job_losses l;

        json_key(j, "losses");
        if (core_job_losses(core, job->request, job->member, &l) != 0) {
                json_null(j);
                return;
        }
        json_open(j, '{');
        json_kint(j, "lost", l.lost);
        json_kint(j, "most", l.most);
        json_kbool(j, "suspected", l.suspected);
        json_key(j, "nodes");
        json_open(j, '[');
        for (size_t i = 0; i < l.node_count; i++)
                json_strz(j, l.nodes[i]);
        json_close(j, ']');
        if (l.until_ms)
                json_kint(j, "until_ms", l.until_ms);
        json_close(j, '}');
}

/* Explains recent losses of the job's attempts. Returns whether the job waits for the end of a pause. */
static bool explain_losses(struct json *j, struct core *core, const struct core_job *job)
{
        BUF_CLEANUP struct buf nodes = {0}, lost = {0};
        struct core_job_losses l;
        int64_t left_ms;

        if (job->state == JOB_HELD || core_job_losses(core, job->request, job->member, &l) != 0)
                return false;
        for (size_t i = 0; i < l.node_count; i++)
                buf_printf(&nodes, "%s%s", i ? ", " : " ", l.nodes[i]);
        if (l.lost) {
                add_count(&lost, l.lost, "1 of its attempts in a row was", "# of its attempts in a row were");
                why_line_add(j, "%s lost with their nodes (%s); after %u it is held.", buf_z(&lost),
                             nodes.n ? buf_z(&nodes) + 1 : "", l.most);
        }
        if (l.suspected)
                why_line_add(
                        j,
                        "It is suspected, because it was lost with %zu different nodes (%s): it runs alone "
                        "on one.",
                        l.node_count, buf_z(&nodes) + 1);
        left_ms = l.until_ms - clock_wall_ms();
        if (l.until_ms)
                why_line_add(j, "It waits for another %lld s before it is tried again.",
                             (long long)(left_ms > 0 ? left_ms / 1000 + 1 : 0));
        return l.until_ms != 0;
}

/* Returns whether a queue of a host that has the job's files has answered. */
static bool has_host(const struct why *w)
{
        return w->all > w->beside;
}

static void explain(struct json *j, struct core *core, const struct core_job *job, const struct why *w,
                    bool full)
{
        bool waits = explain_set(j, core, job);

        waits |= explain_losses(j, core, job);
        if (job->waits)
                core_job_dependencies(core, job->request, job->member, say_dependency, j);
        if (job->state == JOB_IDLE && job->waits) {
                explain_idle(j, core, job, w, full, true);
        } else if (job_state_is_idle(job->state)) {
                waits |= explain_limit(j, core, job);
                explain_quote(j, core, job);
                if (job->state == JOB_IDLE)
                        explain_idle(j, core, job, w, full, waits);
                if (w->on_hosts)
                        dataset_wait_say(j, &w->files, has_host(w));
                explain_turn(j, core, job,
                             w->count[CORE_FITS] || w->count[CORE_BUSY] || w->count[CORE_STORE_DOWN]);
        } else if (job->state == JOB_HELD)
                why_line_add(j, "It is held: " STR_FMT " (code %d). `drover release %llu.%u` lets it run%s.",
                             STR_ARG(job->hold_reason), job->hold_code, (unsigned long long)job->request,
                             job->member, job->starts ? " again" : "");
        else if (job->state == JOB_COMPLETED || job->state == JOB_REMOVED)
                why_line_add(j, "It has ended: it is %s. `drover show %llu.%u` tells how.",
                             job_state_name(job->state), (unsigned long long)job->request, job->member);
        else if (job_state_has_attempt(job->state)) {
                why_line_add(j, "It is %s at queue %s of agent %s; `drover path` tells more.",
                             job_state_name(job->state), job->queue ? job->queue : "?",
                             job->agent ? job->agent : "?");
                explain_reach(j, job);
        } else
                why_line_add(j, "It is %s.", job_state_name(job->state));
}

/* Writes the expected times. A job that waits in a batch system without an estimate is not expected to
 * start at once, whatever the core computed. */
static void write_eta(struct json *j, struct core *c, const struct core_job *job, bool waits_there)
{
        struct core_eta e;

        if (core_eta(c, job->request, job->member, &e) == 0 && e.start_ms &&
            !(waits_there && e.start_ms <= clock_wall_ms())) {
                json_kint(j, "eta_start_ms", e.start_ms);
                if (e.end_ms)
                        json_kint(j, "eta_end_ms", e.end_ms);
                if (e.end_most_ms)
                        json_kint(j, "eta_end_most_ms", e.end_most_ms);
        }
        place_write_error(j, c);
}

/* Asks some queues. Returns whether there are more. */
static bool ask_some(struct server *s, struct why *w, const struct core_job *job)
{
        if (!job_state_is_idle(job->state))
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
                w->changes = core_what_if_new();
                return w->all > 0;
        }
        core_what_if_look(s->core, w->changes, w->walk, SLICE_QUEUES, job->request, job->member);
        return !core_walk_is_over(w->walk);
}

static void reply_why(struct server *s, struct call *c, struct why *w, const struct core_job *job)
{
        BUF_CLEANUP struct buf changes = {0};
        struct json j = {.out = &c->out};
        struct hints hints = {.j = {.out = &changes}, .text = &j, .request = job->request};
        BUF_CLEANUP struct buf waits = {0};
        bool waits_there = job_state_has_attempt(job->state) &&
                           attempt_location_print_wait(s, job->request, job->member, &waits);
        char id[48];

        snprintf(id, sizeof(id), "%" PRIu64 ".%u", job->request, job->member);
        json_open(&j, '{');
        json_kstrz(&j, "id", id);
        json_kstrz(&j, "state", job_state_name(job->state));
        json_key(&j, "text");
        json_open(&j, '[');
        explain(&j, s->core, job, w, turn_full(s->turn));
        if (waits_there)
                why_line_add(&j, "%s", buf_z(&waits));
        if (job_state_is_idle(job->state) && attempt_location_back(s, job->request, job->member))
                why_line_add(&j, "It was given back: %s.",
                             attempt_location_back(s, job->request, job->member));
        if (job_state_has_attempt(job->state) && attempt_location_doing(s, job->request, job->member))
                why_line_add(&j, "At its agent: %s.", attempt_location_doing(s, job->request, job->member));
        json_open(&hints.j, '[');
        if (w->changes && job->state == JOB_IDLE)
                core_what_if_tell(w->changes, on_change, &hints);
        say_needed(&hints);
        buf_deinit(&hints.needed);
        json_close(&hints.j, ']');
        json_close(&j, ']');
        write_eta(&j, s->core, job, waits_there && !job_state_runs(job->state));
        write_turn(&j, s->core, job->request, job->member);
        write_set(&j, s->core, job->request, job->member);
        write_meta(&j, s->core, job->request, job->member);
        write_losses(&j, s->core, job);
        json_key(&j, "depends_on");
        json_open(&j, '[');
        core_job_dependencies(s->core, job->request, job->member, write_dependency, &j);
        json_close(&j, ']');
        json_key(&j, "dataset");
        if (w->on_hosts && job_state_is_idle(job->state))
                dataset_wait_write(&j, &w->files, has_host(w));
        else
                json_null(&j);
        json_key(&j, "agents");
        json_open(&j, '[');
        if (job_state_is_idle(job->state) && w->agents.n)
                json_raw(&j, buf_view(&w->agents));
        json_close(&j, ']');
        json_key(&j, "changes");
        json_raw(&j, buf_view(&changes));
        json_close(&j, '}');
        call_reply(c);
}

static void read_why(struct server *s, struct call *c);

static void read_files(struct server *s, struct call *c)
{
        struct why *w = c->state;

        dataset_wait_read(s, &w->files);
        call_core(c, read_why);
}

/* Looks for the files that the job waits for. Returns whether their names are still to be read. */
static bool find_dataset(struct server *s, struct why *w, const struct core_job *job)
{
        if (w->asked)
                return false;
        w->asked = true;
        w->on_hosts = job_state_is_idle(job->state) && !w->count[CORE_FITS] && !w->count[CORE_BUSY] &&
                      dataset_wait_find(s, job->request, job->member, &w->files);
        return w->on_hosts;
}

static void read_why(struct server *s, struct call *c)
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
        else if (!w->asked && ask_some(s, w, &job))
                call_yield_to_client(c, read_why);
        else if (find_dataset(s, w, &job))
                call_reader(c, read_files);
        else
                reply_why(s, c, w, &job);
}

void api_job_why(struct server *s, struct call *c)
{
        struct why *w = call_state(c, sizeof(*w), state_free);

        (void)s;
        w->j.out = &w->agents;
        call_yield(c, read_why);
}
