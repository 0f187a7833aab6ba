/* A record of the core becomes an entry of a channel at once, with all that is then known of the attempt.
 * The entry can therefore become lines much later, when the job is gone. Facts that an attempt's start
 * record lacks (the place, the resources) are kept in `attempts` from its match on; after a snapshot they
 * are taken from the core. */
#include "server/userlog/userlog.h"

#include "base/pack.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/userlog/private.h"

#define LATE_COST 8  /* cost of a member whose path must be expanded, in members */
#define AD_COST   4  /* cost of a member whose events are XML or JSON */
#define STEPS     20 /* steps of the core that cost as much as a member */

struct userlog *userlog_new(void)
{
        struct userlog *u = mem_new(struct userlog);

        u->requests = idmap_new();
        u->channels = map_new();
        u->places = map_new();
        u->sent = idmap_new();
        u->event_names = symbols_new();
        u->next_seq = 1;
        return u;
}

void entry_free(struct userlog *u, struct entry *e)
{
        u->bytes -= e->bytes;
        set_deinit(&e->members);
        free(e->reason);
        logged_unref(u, e->log);
        free(e);
}

void userlog_free(struct userlog *u)
{
        size_t at = 0;
        void *v;

        if (!u)
                return;
        while (map_next(u->channels, &at, NULL, &v))
                channel_clear(u, v);
        for (at = 0; idmap_next(u->requests, &at, NULL, &v);)
                logged_unref(u, v);
        while (at = 0, map_next(u->channels, &at, NULL, &v))
                channel_free(u, v);
        for (at = 0; map_next(u->places, &at, NULL, &v);) {
                struct place *p = v;

                free(p->agent);
                free(p->queue);
                free(p);
        }
        idmap_free(u->requests);
        idmap_free(u->sent);
        map_free(u->channels);
        map_free(u->places);
        symbols_free(u->event_names);
        free(u);
}

/* ---- attempts
 * ------------------------------------------------------------------------------------------------- */

static struct place *place_get(struct userlog *u, struct str agent, struct str queue)
{
        BUF_CLEANUP struct buf key = {0};
        struct place *p;

        buf_str(&key, agent);
        buf_char(&key, 0);
        buf_str(&key, queue);
        p = map_get(u->places, buf_view(&key));
        if (p)
                return p;
        p = mem_new(struct place);
        p->agent = str_dupz(agent);
        p->queue = str_dupz(queue);
        map_put(u->places, buf_view(&key), p);
        return p;
}

static void see(struct server *s, struct logged *l, uint32_t member, struct place *place, bool started)
{
        struct core_job j;
        struct seen *a;

        if (core_job_get(s->core, l->request, member, &j) != 0)
                return;
        a = idmap_get(l->attempts, member);
        if (!a) {
                a = mem_new(struct seen);
                idmap_put(l->attempts, member, a);
        }
        *a = (struct seen){.place = place,
                           .fence = j.fence,
                           .started = started,
                           .cpus = j.cpus,
                           .memory_mib = j.memory_mib,
                           .disk_kib = j.disk_kib,
                           .user_ms = j.cpu_user_ms,
                           .system_ms = j.cpu_system_ms};
}

/* Fills `attempts` from the core after a snapshot. */
static void see_all(struct server *s, struct logged *l)
{
        logged_attempts_clear(l);
        for (unsigned state = 0; state < JOB_STATES; state++) {
                struct set members = {0};

                if (!job_state_has_attempt((enum job_state)state))
                        continue;
                core_members(s->core, l->request, 1u << state, &members);
                SET_FOREACH (&members, m) {
                        struct core_job j;

                        if (core_job_get(s->core, l->request, (uint32_t)m, &j) != 0 || !j.agent)
                                continue;
                        see(s, l, (uint32_t)m, place_get(s->userlog, str_of(j.agent), str_of(j.queue)),
                            j.state == JOB_RUNNING || j.state == JOB_SUSPENDED ||
                                    (j.state == JOB_VACATING && j.started_ms > j.ended_ms));
                }
                set_deinit(&members);
        }
}

/* ---- entries
 * ------------------------------------------------------------------------------------------------- */

static struct entry *entry_new(struct userlog *u, struct logged *l, const struct event *e)
{
        struct entry *n = mem_new(struct entry);

        n->log = l;
        l->refs++;
        n->at = (struct position){.seq = u->next_seq - 1, .sub = u->sub++};
        n->again = u->recovering;
        n->record = (struct userlog_record){.type = e->type,
                                            .next = e->next,
                                            .outcome = e->outcome,
                                            .code = e->code,
                                            .has_memory = e->memory_peak_bytes > 0};
        n->line = (struct userlog_line){.request = l->request,
                                        .at_ms = e->at_ms,
                                        .code = e->code,
                                        .subcode = e->subcode,
                                        .signaled = e->signaled,
                                        .exit_code = e->exit_code,
                                        .requeued = e->type == EVENT_EXITED && e->outcome == CORE_EXITED,
                                        .cpu_user_ms = e->cpu_user_ms,
                                        .cpu_system_ms = e->cpu_system_ms,
                                        .bytes_in = e->bytes_in,
                                        .bytes_out = e->bytes_out,
                                        .memory_peak_bytes = e->memory_peak_bytes};
        n->reason = e->reason.n ? str_dupz(e->reason) : NULL;
        return n;
}

/* Appends the entry to the channel, without members that have no log and members that are in the files
 * already. */
static void entry_add(struct server *s, struct entry *e)
{
        struct userlog *u = s->userlog;
        struct logged *l = e->log;
        const struct position *done = &l->channel->done;
        enum userlog_number numbers[USERLOG_NUMBERS_MAX];

        for (size_t i = 0; i < l->part_count; i++)
                if (!l->parts[i].has && l->parts[i].end > l->parts[i].first)
                        set_remove_range(&e->members, l->parts[i].first, l->parts[i].end);
        if (u->recovering && e->at.seq == done->seq && e->at.sub == done->sub)
                e->at.member = done->member;
        if (set_next(&e->members, e->at.member) == SET_END || userlog_numbers(&e->record, numbers) == 0 ||
            (u->recovering && (e->at.seq < done->seq || (e->at.seq == done->seq && e->at.sub < done->sub)))) {
                entry_free(u, e);
                return;
        }
        e->bytes = sizeof(*e) + set_bytes(&e->members) + (e->reason ? strlen(e->reason) + 1 : 0);
        u->bytes += e->bytes;
        u->changed = true;
        channel_add(s, l->channel, e);
}

static void on_started(struct server *s, struct logged *l, const struct event *e)
{
        struct entry *n = NULL;

        SET_FOREACH (&e->members, m) {
                struct seen *a = idmap_get(l->attempts, m);
                struct place *place = a ? a->place : NULL;

                if (n && n->place != place) {
                        entry_add(s, n);
                        n = NULL;
                }
                if (!n) {
                        n = entry_new(s->userlog, l, e);
                        n->place = place;
                }
                set_add(&n->members, (uint32_t)m);
                if (a)
                        a->started = true;
        }
        if (n)
                entry_add(s, n);
}

static void on_over(struct server *s, struct logged *l, const struct event *e)
{
        SET_FOREACH (&e->members, m) {
                struct seen *a = idmap_take(l->attempts, m);
                struct entry *n = entry_new(s->userlog, l, e);

                set_add(&n->members, (uint32_t)m);
                n->line.total_user_ms = e->cpu_user_ms;
                n->line.total_system_ms = e->cpu_system_ms;
                if (a) {
                        n->place = a->place;
                        n->record.started = a->started;
                        n->line.total_user_ms += a->user_ms;
                        n->line.total_system_ms += a->system_ms;
                        n->line.cpus = a->cpus;
                        n->line.memory_mib = a->memory_mib;
                        n->line.disk_kib = a->disk_kib;
                        free(a);
                } else { /* the match is older than the log, so the start probably is too */
                        n->record.started = n->line.requeued;
                }
                entry_add(s, n);
        }
}

/* Returns the total size of a checkpoint's files, which are packed like a result's outputs. */
static uint64_t bytes_of(struct str files)
{
        struct unpack u = unpack_from(files);
        uint64_t bytes = 0;

        for (uint64_t n = unpack_u64(&u); n > 0 && !u.bad; n--) {
                unpack_str(&u);
                if (u.bad || u.end - u.p < 32)
                        break;
                u.p += 32;
                bytes += unpack_u64(&u);
                unpack_u64(&u);
        }
        return bytes;
}

static void on_members(struct server *s, struct logged *l, const struct event *e)
{
        struct entry *n = entry_new(s->userlog, l, e);

        if (e->type == EVENT_SUBMITTED)
                set_add_range(&n->members, 0, (uint64_t)e->value);
        else
                set_copy(&n->members, &e->members);
        if (e->type == EVENT_CHECKPOINTED)
                n->line.bytes_out = bytes_of(e->values);
        entry_add(s, n);
}

uint64_t userlog_last_seq(const struct server *s)
{
        return s->userlog->next_seq - 1;
}

void userlog_event(struct server *s, const struct event *e)
{
        struct userlog *u = s->userlog;
        struct logged *l = idmap_get(u->requests, e->request);
        struct place *place;

        u->next_seq++;
        u->sub = 0;
        if (!l && e->type == EVENT_SUBMITTED)
                l = logged_new(s, e->request);
        if (!l)
                return;
        switch (e->type) {
        case EVENT_MATCHED:
                place = place_get(u, e->agent, e->queue);
                SET_FOREACH (&e->members, m)
                        see(s, l, (uint32_t)m, place, false);
                break;
        case EVENT_STARTED: on_started(s, l, e); break;
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_REFUSED: on_over(s, l, e); break;
        case EVENT_SUBMITTED:
        case EVENT_HELD:
        case EVENT_RELEASED:
        case EVENT_REMOVED:
        case EVENT_SUSPENDED:
        case EVENT_RESUMED:
        case EVENT_REMARK:
        case EVENT_CHECKPOINTED: on_members(s, l, e); break;
        case EVENT_PURGED:
                idmap_take(u->requests, e->request);
                logged_unref(u, l);
                break;
        default: break;
        }
}

/* ---- lines
 * ------------------------------------------------------------------------------------------------- */

static void add_lines(struct server *s, struct entry *e, uint32_t member, const struct logged_part *p,
                      struct buf *out)
{
        struct userlog *u = s->userlog;
        BUF_CLEANUP struct buf notes = {.max = USERLOG_TEXT_MAX}, user_notes = {.max = USERLOG_TEXT_MAX};
        enum userlog_number numbers[USERLOG_NUMBERS_MAX];
        unsigned count = userlog_numbers(&e->record, numbers);
        struct userlog_line l = e->line;

        l.member = member;
        l.options = p->options;
        l.symbols = u->event_names;
        l.reason = str_of(e->reason);
        l.host = e->place ? e->place->agent : "unknown";
        l.queue = e->place ? e->place->queue : NULL;
        if (e->record.type == EVENT_SUBMITTED)
                l.host = p->host;
        if (e->record.type == EVENT_SUBMITTED && p->notes) {
                core_member_text(s->core, e->log->request, member, u->notes, &notes);
                core_member_text(s->core, e->log->request, member, u->user_notes, &user_notes);
                l.notes = buf_z(&notes);
                l.user_notes = buf_z(&user_notes);
        }
        for (unsigned i = 0; i < count; i++)
                userlog_format(out, numbers[i], &l);
}

bool entry_step(struct server *s, struct channel *c, struct entry *e, size_t *budget)
{
        uint64_t m = set_next(&e->members, e->at.member), steps = core_steps_taken(s->core);
        BUF_CLEANUP struct buf path = {0};
        const struct logged_part *p;
        struct buf *text;
        size_t before, cost = 1;

        if (m == SET_END)
                return false;
        e->at.member = m;
        p = logged_part_of(e->log, m);
        if (p->options & (USERLOG_XML | USERLOG_JSON))
                cost = AD_COST;
        if (p->late) {
                cost += LATE_COST;
                if (!logged_path(s, e->log->request, (uint32_t)m, &path))
                        goto next; /* the member has no log; or the request and its file names are gone */
        }
        text = channel_text(s->userlog, c, p->late ? buf_z(&path) : p->path, e->at, e->again);
        before = text->n;
        add_lines(s, e, (uint32_t)m, p, text);
        channel_added(c, text->n - before);
next:
        e->at.member = m + 1;
        cost += (size_t)(core_steps_taken(s->core) - steps) / STEPS;
        *budget -= *budget < cost ? *budget : cost;
        return true;
}

/* ---- recovery
 * ------------------------------------------------------------------------------------------------- */

struct again {
        struct server *server;
        uint64_t until;
};

static int on_old_record(void *arg, uint64_t seq, struct str record, struct err *err)
{
        struct again *x = arg;
        struct event e;
        int r;

        if (seq > x->until)
                return -1000;
        r = event_unpack(&e, record, err);
        if (r != 0)
                return r;
        userlog_record(x->server, seq);
        userlog_event(x->server, &e);
        event_deinit(&e);
        return 0;
}

int userlog_restore(struct server *s, uint64_t snapshot_seq, struct err *err)
{
        struct userlog *u = s->userlog;
        struct again x = {s, snapshot_seq};
        uint64_t from = 0;
        size_t at = 0;
        void *v;
        int r;

        u->recovering = true;
        r = done_load(s, snapshot_seq, &from, err);
        for (uint64_t id = 0; r == 0 && (id = core_request_next(s->core, id));)
                logged_new(s, id);
        if (r == 0 && idmap_count(u->requests) && from <= snapshot_seq)
                r = store_scan(s->store, from, on_old_record, &x, err);
        if (r == -1000)
                r = 0;
        while (r == 0 && idmap_next(u->requests, &at, NULL, &v))
                see_all(s, v);
        return r;
}

void userlog_record(struct server *s, uint64_t seq)
{
        s->userlog->next_seq = seq;
}

void userlog_recovered(struct server *s, uint64_t next_seq)
{
        s->userlog->next_seq = next_seq;
        s->userlog->recovering = false;
}
