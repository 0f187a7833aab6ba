#include "server/agents/attempt_location.h"

#include <stdio.h>

#include "base/format/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/meta/meta.h"
#include "core/query.h"
#include "server/agents/agents.h"
#include "server/loop/words.h"

#define UNREACHABLE "unreachable" /* shown as a state, and the agents' own word for it */
#define BACK_WORDS  700           /* bytes of a reason for giving a job back */
#define FAILED_MAX  10000u        /* held jobs whose path is kept */
#define BACK_MAX    10000u        /* idle jobs whose reason for being given back is kept */
#define EACH_MAX    10000u        /* members of one event that are handled one by one */
/* above this size no idle job gets an entry, because all entries are walked through */
#define ENTRIES_MAX 200000u

struct entry {
        struct entry *next, *prev; /* by version, oldest first */
        uint64_t request, version;
        uint32_t member, fence;
        char *runner, *native, *word, *said, *doing;
        char *back; /* idle: why the agent gave back the attempt with this fence; otherwise NULL */
        int64_t doing_since_ms;
        uint64_t doing_bytes, doing_bytes_all;
        char *hops;      /* a JSON list without its brackets; NULL: none */
        char *last;      /* the state at the last hop; set if `hops` is */
        unsigned errors; /* number of the last hop with an error, from 1; 0: none */
        bool failed;     /* the attempt has ended and failed at one of the hops; kept while the job is held */
};
struct attempt_locations {
        struct map *entries;
        struct entry *first, *last;
        uint64_t version;
        size_t failed, backs; /* entries of these two kinds */
};

struct key {
        char room[12];
};

static struct key key_of(uint64_t request, uint32_t member)
{
        struct key k;

        memcpy(k.room, &request, 8);
        memcpy(k.room + 8, &member, 4);
        return k;
}

struct attempt_locations *attempt_locations_new(void)
{
        struct attempt_locations *w = mem_new(struct attempt_locations);

        w->entries = map_new();
        return w;
}

static void unlink_entry(struct attempt_locations *w, struct entry *e)
{
        if (e->next)
                e->next->prev = e->prev;
        else
                w->last = e->prev;
        if (e->prev)
                e->prev->next = e->next;
        else
                w->first = e->next;
}

static void location_clear(struct attempt_locations *w, struct entry *e)
{
        w->failed -= e->failed;
        w->backs -= e->back != NULL;
        e->failed = false;
        e->errors = 0;
        free(e->runner);
        free(e->native);
        free(e->word);
        free(e->said);
        free(e->doing);
        free(e->hops);
        free(e->last);
        free(e->back);
        e->runner = e->native = e->word = e->said = e->doing = e->hops = e->last = e->back = NULL;
}

static void drop_entry(struct attempt_locations *w, struct entry *e)
{
        struct key k = key_of(e->request, e->member);

        map_take(w->entries, str_make(k.room, sizeof(k.room)));
        unlink_entry(w, e);
        location_clear(w, e);
        free(e);
}

void attempt_locations_free(struct attempt_locations *w)
{
        if (!w)
                return;
        while (w->first)
                drop_entry(w, w->first);
        map_free(w->entries);
        free(w);
}

static struct entry *find_entry(struct attempt_locations *w, uint64_t request, uint32_t member)
{
        struct key k = key_of(request, member);

        return map_get(w->entries, str_make(k.room, sizeof(k.room)));
}

/* Returns the entry, made if missing, and moves it to the end of the list by version. */
static struct entry *touch(struct attempt_locations *w, uint64_t request, uint32_t member)
{
        struct entry *e = find_entry(w, request, member);

        if (e) {
                unlink_entry(w, e);
        } else {
                struct key k = key_of(request, member);

                e = mem_new(struct entry);
                e->request = request;
                e->member = member;
                map_put(w->entries, str_make(k.room, sizeof(k.room)), e);
        }
        e->version = ++w->version;
        e->next = NULL;
        e->prev = w->last;
        if (w->last)
                w->last->next = e;
        else
                w->first = e;
        w->last = e;
        return e;
}

/* ---- from agents */

static bool is_unreachable(const char *word)
{
        return word && !strcmp(word, UNREACHABLE);
}

/* Stores a list of hops as this server formats it, not as the agent sent it. */
static void take_hops(struct entry *e, struct str text)
{
        json_t *list =
                text.n && text.n <= ATTEMPT_LOCATION_HOPS_MAX ? json_loadb(text.p, text.n, 0, NULL) : NULL;
        const json_t *last = json_array_get(list, json_array_size(list) - 1);
        const char *state = json_string_value(json_object_get(last, "state"));

        if (json_is_array(list) && json_array_size(list) && state) {
                char *dump = json_dumps(list, JSON_COMPACT);
                size_t n = strlen(dump);

                dump[n - 1] = 0;
                e->hops = mem_dupz(dump + 1);
                free(dump);
                for (size_t i = 0; i < json_array_size(list); i++) {
                        const json_t *hop = json_array_get(list, i);

                        if (json_is_string(json_object_get(hop, "error")))
                                e->errors = (unsigned)i + 1;
                        if (is_unreachable(json_string_value(json_object_get(hop, "word"))))
                                state = UNREACHABLE;
                }
                e->last = mem_dupz(state);
        }
        json_decref(list);
}

void attempt_location_take(struct server *s, struct str agent, const struct attempt_location *what)
{
        if (!core_has_attempt(s->core, agent.p, what->request, what->member, what->fence))
                return;
        struct entry *e = touch(s->attempt_locations, what->request, what->member);
        location_clear(s->attempt_locations, e);
        e->fence = what->fence;
        e->runner = str_dupz(str_head(what->runner, 64));
        e->native = str_dupz(str_head(what->native, 64));
        e->word = str_dupz(str_head(what->word, 64));
        e->said = str_dupz(str_head(what->said, 256));
        e->doing = str_dupz(str_head(what->doing, 256));
        e->doing_since_ms = what->doing_since_ms > 0 ? what->doing_since_ms : 0;
        e->doing_bytes = what->doing_bytes;
        e->doing_bytes_all = what->doing_bytes_all;
        take_hops(e, what->hops);
}

/* ---- from the core */

static bool ends(const struct event *e)
{
        return e->type == EVENT_REMOVED ||
               (e->type == EVENT_EXITED && (e->next == JOB_COMPLETED || e->next == JOB_REMOVED));
}

static bool frees(const struct event *e)
{
        return e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_REFUSED;
}

static bool moves(const struct event *e)
{
        return e->type == EVENT_MATCHED || e->type == EVENT_ACCEPTED || e->type == EVENT_STARTED ||
               e->type == EVENT_HELD || e->type == EVENT_RELEASED || e->type == EVENT_VACATING ||
               e->type == EVENT_SUSPENDED || e->type == EVENT_RESUMED || frees(e);
}

static void drop_request(struct attempt_locations *w, uint64_t request, const struct set *members)
{
        for (struct entry *e = w->first, *next; e; e = next) {
                next = e->next;
                if (e->request == request && (!members || set_has(members, e->member)))
                        drop_entry(w, e);
        }
}

/* Keeps the path of an attempt that failed at another server, so that the held job shows which hop failed. */
static bool keep_failed(struct attempt_locations *w, struct entry *x, const struct event *e)
{
        if (!frees(e) || e->next != JOB_HELD || !x->hops || !x->errors)
                return false;
        if (!x->failed && w->failed >= FAILED_MAX)
                return false;
        w->failed += !x->failed;
        x->failed = true;
        return true;
}

/* Keeps the reason of an agent that could not run the attempt, so that the idle job shows it. */
static bool gives_back(const struct event *e)
{
        return (e->type == EVENT_REFUSED || e->type == EVENT_LOST) && e->next == JOB_IDLE && e->reason.n;
}

static void keep_back(struct attempt_locations *w, const struct event *e, uint32_t member)
{
        struct entry *x = find_entry(w, e->request, member);

        if (!(x && x->back) && w->backs >= BACK_MAX)
                return;
        x = touch(w, e->request, member);
        location_clear(w, x);
        x->fence = e->fence;
        x->back = str_dupz(str_head(e->reason, BACK_WORDS));
        w->backs++;
}

static bool has_room(const struct attempt_locations *w)
{
        return map_count(w->entries) < ENTRIES_MAX;
}

void attempt_locations_event(struct server *s, const struct event *e)
{
        struct attempt_locations *w = s->attempt_locations;
        struct core_delegation hop = {0};
        bool from_elsewhere = core_request_delegation(s->core, e->request, &hop) == 0 && hop.origin &&
                              e->type != EVENT_FILED;

        if (!from_elsewhere && !w->first && !gives_back(e))
                return;
        if (e->type == EVENT_PURGED || (ends(e) && set_count(&e->members) > EACH_MAX)) {
                drop_request(w, e->request, e->type == EVENT_PURGED ? NULL : &e->members);
                return;
        }
        if (set_count(&e->members) > EACH_MAX || (!from_elsewhere && !ends(e) && !frees(e)))
                return;
        /* the job waits at this server: its location has changed */
        for (uint32_t m = 0; e->type == EVENT_SUBMITTED && m < e->value && m < EACH_MAX && has_room(w); m++)
                touch(w, e->request, m);
        SET_FOREACH (&e->members, m) {
                struct entry *x = find_entry(w, e->request, (uint32_t)m);

                if (x && (ends(e) || (frees(e) && !from_elsewhere && !keep_failed(w, x, e)))) {
                        drop_entry(w, x);
                } else if (from_elsewhere && moves(e) && !ends(e) && (x || has_room(w))) {
                        x = touch(w, e->request, (uint32_t)m);
                        if (frees(e) && !keep_failed(w, x, e))
                                location_clear(w, x);
                }
                if (gives_back(e))
                        keep_back(w, e, (uint32_t)m);
        }
}

/* ---- queries */

static bool is_away(struct server *s, const struct core_job *job)
{
        const struct agent *a = job->agent ? agents_find(s, str_of(job->agent)) : NULL;

        return job->agent && (!a || a->session == 0);
}

/* Returns one state for the whole path: that of the last server which has the job, or the state here. */
static const char *summary(struct server *s, const struct core_job *job, const struct entry *e)
{
        if (job->state == JOB_VACATING || !job->agent)
                return job_state_name(job->state);
        if (is_away(s, job) || (e && is_unreachable(e->word)))
                return UNREACHABLE;
        return e && e->last && job->state != JOB_SUSPENDED ? e->last : job_state_name(job->state);
}

static void write_doing(struct json *j, const struct entry *e)
{
        json_kstrz(j, "doing", e->doing);
        json_kint(j, "doing_since_ms", e->doing_since_ms);
        if (e->doing_bytes || e->doing_bytes_all)
                json_kint(j, "doing_bytes", (int64_t)(e->doing_bytes & INT64_MAX));
        if (e->doing_bytes_all)
                json_kint(j, "doing_bytes_all", (int64_t)(e->doing_bytes_all & INT64_MAX));
}

static void write_hop(struct server *s, struct json *j, const struct core_job *job, struct str owner,
                      const struct entry *e)
{
        struct core_meta meta;
        char id[48];

        snprintf(id, sizeof(id), "%llu.%u", (unsigned long long)job->request, job->member);
        json_open(j, '{');
        json_kstrz(j, "server", s->uuid);
        json_kstrz(j, "domain", s->config.domain);
        json_kstrz(j, "job", id);
        json_kstr(j, "owner", owner);
        json_kstrz(j, "state", is_away(s, job) ? UNREACHABLE : job_state_name(job->state));
        json_kint(j, "since_ms", job->entered_ms ? job->entered_ms : job->submitted_ms);
        if (job->agent) {
                json_kstrz(j, "agent", job->agent);
                json_kstrz(j, "queue", job->queue);
        }
        if (e && e->runner) {
                json_kstrz(j, "runner", e->runner);
                if (*e->native)
                        json_kstrz(j, "native", e->native);
                if (*e->word)
                        json_kstrz(j, "word", e->word);
                if (*e->said)
                        json_kstrz(j, "said", e->said);
                if (*e->doing)
                        write_doing(j, e);
        }
        if (job->state == JOB_IDLE) {
                BUF_CLEANUP struct buf down = {0};

                words_stores_down(&down, s->core, job->request, job->member);
                if (!down.n && e && e->back)
                        buf_printf(&down, "it was given back: %s", e->back);
                if (down.n)
                        json_kstr(j, "said", buf_view(&down));
        }
        if (core_job_meta(s->core, job->request, job->member, &meta) == 0 && meta.reserved) {
                BUF_CLEANUP struct buf said = {0};

                buf_printf(&said, "%s of %s is reserved for it; when that was made: %s", meta.queue,
                           meta.agent, meta.why);
                json_kstr(j, "said", buf_view(&said));
        }
        if (job->state == JOB_HELD && job->hold_reason.n)
                json_kstr(j, "error", job->hold_reason);
        json_close(j, '}');
}

/* Returns what was reported of the current attempt; NULL: nothing. */
static const struct entry *current_report(struct server *s, uint64_t request, uint32_t member)
{
        const struct entry *e = find_entry(s->attempt_locations, request, member);
        struct core_job job;
        bool there = e && e->runner && core_job_get(s->core, request, member, &job) == 0 && job.agent &&
                     job.fence == e->fence;

        return there ? e : NULL;
}

/* Returns the name that people know the runner's system by; NULL: there is none. */
static const char *batch_system_name(const char *runner)
{
        static const char *const names[][2] = {
                {"slurm", "Slurm"},       {"gridengine", "Grid Engine"}, {"pbs", "PBS"},
                {"htcondor", "HTCondor"}, {"kubernetes", "Kubernetes"},  {"arc", "ARC"}};

        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                if (!strcmp(runner, names[i][0]))
                        return names[i][1];
        return NULL;
}

bool attempt_location_print_wait(struct server *s, uint64_t request, uint32_t member, struct buf *out)
{
        const struct entry *e = current_report(s, request, member);
        const char *system = e ? batch_system_name(e->runner) : NULL;

        if (!e || !*e->said)
                return false;
        if (system && *e->native)
                buf_printf(out, "Pending in %s as %s: %s.", system, e->native, e->said);
        else
                buf_printf(out, "It waits there: %s.", e->said);
        return true;
}

const char *attempt_location_back(struct server *s, uint64_t request, uint32_t member)
{
        const struct entry *e = find_entry(s->attempt_locations, request, member);
        struct core_job job;
        bool there = e && e->back && core_job_get(s->core, request, member, &job) == 0 &&
                     job_state_is_idle(job.state) && job.fence == e->fence;

        return there ? e->back : NULL;
}

const char *attempt_location_doing(struct server *s, uint64_t request, uint32_t member)
{
        const struct entry *e = current_report(s, request, member);

        return e && *e->doing ? e->doing : NULL;
}

bool attempt_location_write(struct server *s, struct json *j, uint64_t request, uint32_t member)
{
        const struct entry *e = find_entry(s->attempt_locations, request, member);
        struct core_request r;
        struct core_job job;

        if (core_request_get(s->core, request, &r) != 0 || core_job_get(s->core, request, member, &job) != 0)
                return false;
        if (e && (e->fence != job.fence || !(e->failed ? job.state == JOB_HELD
                                             : e->back ? job_state_is_idle(job.state)
                                                       : job.agent != NULL)))
                e = NULL;
        json_kint(j, "request", (int64_t)request);
        json_kint(j, "member", member);
        json_kstrz(j, "summary", summary(s, &job, e));
        if (job.state == JOB_HELD && job.hold_code != CORE_HOLD_USER &&
            job.hold_code != CORE_HOLD_SUBMIT) /* any other hold is not a failure */
                json_kint(j, "failed_hop", e && e->failed ? e->errors + 1 : 1);
        json_key(j, "hops");
        json_open(j, '[');
        write_hop(s, j, &job, r.owner, e);
        if (e && e->hops)
                json_raw(j, str_of(e->hops));
        json_close(j, ']');
        return true;
}

uint64_t attempt_locations_changed(struct server *s, uint64_t after,
                                   bool (*fn)(void *arg, uint64_t request, uint32_t member), void *arg)
{
        struct attempt_locations *w = s->attempt_locations;
        const struct entry *e = w->last;
        uint64_t upto = after < w->version ? after : w->version;

        while (e && e->prev && e->prev->version > after)
                e = e->prev;
        for (; e; e = e->next) {
                struct core_delegation hop;

                if (e->version <= after)
                        continue;
                if (core_request_delegation(s->core, e->request, &hop) == 0 && hop.origin &&
                    !fn(arg, e->request, e->member))
                        return upto;
                upto = e->version;
        }
        return w->version;
}
