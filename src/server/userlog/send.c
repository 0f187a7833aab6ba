/* A channel is a queue of entries, and a short queue of texts before it. A text has the lines of one file
 * that were made from the first entries and were sent to the agent, or are about to be. Lines are made
 * only while the texts have less than WINDOW_BYTES, so that a slow or absent agent costs only the memory
 * of the entries. When a session ends, or an agent asks for it (`again`), all texts are sent once more, in
 * order, marked as possibly written. */
#include <stdio.h>

#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "core/query.h"
#include "server/agents/message.h"
#include "server/userlog/private.h"

#define SLICE_MEMBERS 1000 /* members made into lines in one turn */
#define TEXT_BYTES    65536
#define WINDOW_BYTES  262144
#define CHANNEL_BYTES (32u << 20)
#define MISSING_MAX   1000
#define LOOK_MS       250
#define AGAIN_MS      5000
#define WARN_MS       10000
#define NO_AGENT_MS   10000 /* without an agent, before a warning is logged */
#define SAVE_MS       200   /* positions are saved when other records are written, or after this time */
#define SAVE_ALONE_MS 2000
#define SAVE_RECORDS  20000
/* less than the part of a file in which an agent looks for lines that it has written */
#define SAVE_BYTES   (2u << 20)
#define DONE_VERSION 1

/* ---- channels
 * ------------------------------------------------------------------------------------------------- */

struct channel *channel_get(struct userlog *u, struct str domain, struct str owner)
{
        BUF_CLEANUP struct buf key = {0};
        struct channel *c;

        buf_str(&key, domain);
        buf_char(&key, 0);
        buf_str(&key, owner);
        c = map_get(u->channels, buf_view(&key));
        if (c)
                return c;
        c = mem_new(struct channel);
        c->domain = str_dupz(domain);
        c->owner = str_dupz(owner);
        c->done = u->done;
        c->last = &c->first;
        c->outs_last = &c->outs;
        map_put(u->channels, buf_view(&key), c);
        return c;
}

static void out_free(struct userlog *u, struct out *o)
{
        idmap_take(u->sent, o->serial);
        buf_deinit(&o->text);
        free(o->path);
        free(o);
}

void channel_clear(struct userlog *u, struct channel *c)
{
        while (c->first) {
                struct entry *e = c->first;

                c->first = e->next;
                entry_free(u, e);
        }
        c->last = &c->first;
        while (c->outs) {
                struct out *o = c->outs;

                c->outs = o->next;
                out_free(u, o);
        }
        c->outs_last = &c->outs;
        for (size_t i = 0; i < c->missing_count; i++)
                free(c->missing[i].path);
        c->missing_count = 0;
}

void channel_free(struct userlog *u, struct channel *c)
{
        BUF_CLEANUP struct buf key = {0};

        channel_clear(u, c);
        buf_addz(&key, c->domain);
        buf_char(&key, 0);
        buf_addz(&key, c->owner);
        map_take(u->channels, buf_view(&key));
        free(c->missing);
        free(c->domain);
        free(c->owner);
        free(c->agent);
        free(c);
}

void channel_unuse(struct userlog *u, struct channel *c)
{
        if (--c->users == 0 && !c->active && !c->first)
                channel_free(u, c);
}

/* ---- overflow
 * ------------------------------------------------------------------------------------------------- */

static void say_missing(struct channel *c, const struct logged_part *p, const struct entry *e,
                        uint64_t members)
{
        struct missing *m;

        for (size_t i = c->missing_count; i > 0; i--)
                if (strcmp(c->missing[i - 1].path, p->path) == 0) {
                        c->missing[i - 1].count += members;
                        return;
                }
        if (c->missing_count >= MISSING_MAX)
                return;
        MEM_GROW(c->missing, c->missing_cap, c->missing_count + 1);
        m = &c->missing[c->missing_count++];
        *m = (struct missing){.path = mem_dupz(p->path),
                              .options = p->options,
                              .request = e->line.request,
                              .member = (uint32_t)set_next(&e->members, e->at.member),
                              .count = members,
                              .at_ms = e->line.at_ms};
}

static void drop_oldest(struct userlog *u, struct channel *c)
{
        struct entry *e = c->first;
        uint64_t left = set_count_range(&e->members, e->at.member, (uint64_t)UINT32_MAX + 1);
        int64_t now = clock_boot_ms();

        if (now - c->warned_ms >= WARN_MS || c->warned_ms == 0) {
                c->warned_ms = now;
                log_warn("msg=\"too many lines of user logs wait for an agent: the oldest are dropped\" "
                         "owner=\"%s\" "
                         "domain=\"%s\"",
                         LOG_TEXT(str_of(c->owner)), LOG_TEXT(str_of(c->domain)));
        }
        for (size_t i = 0; i < e->log->part_count && left; i++) {
                const struct logged_part *p = &e->log->parts[i];
                uint64_t count = p->path ? set_count_range(&e->members,
                                                           e->at.member > p->first ? e->at.member : p->first,
                                                           e->at.member > p->end ? e->at.member : p->end)
                                         : 0;

                if (count)
                        say_missing(c, p, e, count);
        }
        c->first = e->next;
        if (!c->first)
                c->last = &c->first;
        c->entry_bytes -= e->bytes;
        entry_free(u, e);
}

void channel_add(struct server *s, struct channel *c, struct entry *e)
{
        struct userlog *u = s->userlog;

        *c->last = e;
        c->last = &e->next;
        c->entry_bytes += e->bytes;
        if (!c->active) {
                c->active = true;
                c->next = u->active;
                u->active = c;
        }
        while ((u->bytes > USERLOG_BYTES_MAX || c->entry_bytes > CHANNEL_BYTES) && c->first != e)
                drop_oldest(u, c);
}

/* ---- texts
 * ------------------------------------------------------------------------------------------------- */

struct buf *channel_text(struct userlog *u, struct channel *c, const char *path, struct position at,
                         bool again)
{
        struct out *o = c->outs_tail;

        again = again && !c->fresh;
        if (o && !o->sent && o->text.n < TEXT_BYTES && o->again == again && strcmp(o->path, path) == 0)
                return &o->text;
        o = mem_new(struct out);
        o->channel = c;
        o->at = at;
        o->again = again;
        o->serial = ++u->last_serial;
        o->path = mem_dupz(path);
        idmap_put(u->sent, o->serial, o);
        *c->outs_last = o;
        c->outs_last = &o->next;
        c->outs_tail = o;
        return &o->text;
}

void channel_added(struct channel *c, size_t bytes)
{
        c->out_bytes += bytes;
}

static void out_done(struct userlog *u, struct out *o)
{
        struct channel *c = o->channel;
        struct out **at = &c->outs, *before = NULL;

        while (*at != o) {
                before = *at;
                at = &before->next;
        }
        *at = o->next;
        if (!o->next) {
                c->outs_last = at;
                c->outs_tail = before;
        }
        c->out_bytes -= o->text.n;
        u->unsaved_bytes += o->text.n;
        out_free(u, o);
        u->changed = true;
}

static void send_out(struct server *s, struct channel *c, struct out *o)
{
        struct message *m = message_new(c->session, DROVER__TO_AGENT__KIND_USER_LOG_WRITE);
        Drover__UserLogWrite *w = message_alloc(m, sizeof(*w));

        drover__user_log_write__init(w);
        w->serial = o->serial;
        w->owner = message_text(m, str_of(c->owner));
        w->path = message_text(m, str_of(o->path));
        w->text.data = (uint8_t *)arena_dup(&m->arena, o->text.p, o->text.n);
        w->text.len = o->text.n;
        w->maybe_there = o->again;
        m->to_agent.user_log_write = w;
        o->sent = true;
        message_send(s, m, TURN_NOW);
}

static void unsend(struct channel *c)
{
        for (struct out *o = c->outs; o; o = o->next)
                if (o->sent) {
                        o->sent = false;
                        o->again = true;
                }
}

void userlog_written(struct server *s, struct agent *a, const struct command_log_written *answer)
{
        struct userlog *u = s->userlog;
        struct out *o = idmap_get(u->sent, answer->serial);
        struct channel *c = o ? o->channel : NULL;
        int64_t now;

        if (!o || !o->sent || c->session != a->session)
                return;
        if (answer->error.n == 0) {
                /* lines are written in order, so no later line is in the file either */
                c->fresh |= answer->added;
                out_done(u, o);
                return;
        }
        now = clock_boot_ms();
        if (!answer->again || now - c->warned_ms >= WARN_MS || c->warned_ms == 0) {
                c->warned_ms = now;
                log_warn("msg=\"lines of a user log could not be written\" owner=\"%s\" path=\"%s\" "
                         "agent=\"%s\" again=%d "
                         "why=\"%s\"",
                         LOG_TEXT(str_of(c->owner)), LOG_TEXT(str_of(o->path)), LOG_TEXT(str_of(a->name)),
                         answer->again, LOG_TEXT(answer->error));
        }
        if (!answer->again) {
                out_done(u, o);
                return;
        }
        c->not_before_ms = now + AGAIN_MS;
        unsend(c);
}

/* ---- the turn
 * ------------------------------------------------------------------------------------------------- */

/* Chooses the agent that writes this channel's files: the last one if it is connected. */
static bool choose(struct server *s, struct channel *c, int64_t now)
{
        struct agent *a = c->agent ? agents_find(s, str_of(c->agent)) : NULL, *found = NULL;
        size_t at = 0;

        if (a && a->session && a->session == c->session)
                return true;
        if (c->session) {
                c->session = 0;
                c->looked_ms = 0;
                unsend(c);
        }
        if (c->looked_ms && now - c->looked_ms < LOOK_MS)
                return false;
        c->looked_ms = now;
        while (agents_next(s, &at, &a)) {
                if (!a->session || strcmp(a->filesystem_domain, c->domain) != 0 ||
                    !core_agent_serves(s->core, a->name, str_of(c->owner)))
                        continue;
                if (!found || (c->agent && strcmp(a->name, c->agent) == 0))
                        found = a;
        }
        if (!found) {
                if (!c->no_agent_since_ms) {
                        c->no_agent_since_ms = now;
                } else if (!c->no_agent_told && now - c->no_agent_since_ms >= NO_AGENT_MS) {
                        c->no_agent_told = true;
                        log_warn("msg=\"a user log waits: no connected agent sees its folder and runs its "
                                 "owner's jobs\" owner=\"%s\" domain=\"%s\"",
                                 LOG_TEXT(str_of(c->owner)), LOG_TEXT(str_of(c->domain)));
                }
                return false;
        }
        c->no_agent_since_ms = 0;
        c->no_agent_told = false;
        free(c->agent);
        c->agent = mem_dupz(found->name);
        c->session = found->session;
        return true;
}

static void tell_missing(struct userlog *u, struct channel *c)
{
        struct position at = c->first ? c->first->at : (struct position){.seq = u->next_seq};
        char text[128];

        for (size_t i = 0; i < c->missing_count; i++) {
                struct missing *m = &c->missing[i];
                struct userlog_line l = {.request = m->request,
                                         .member = m->member,
                                         .at_ms = m->at_ms,
                                         .options = m->options,
                                         .symbols = u->event_names};
                struct buf *out = channel_text(u, c, m->path, at, false);
                size_t before = out->n;

                snprintf(text, sizeof(text), "Drover: %llu events are missing here, too many were waiting",
                         (unsigned long long)m->count);
                l.reason = str_of(text);
                userlog_format(out, USERLOG_GENERIC, &l);
                channel_added(c, out->n - before);
                free(m->path);
        }
        c->missing_count = 0;
}

static void pump(struct server *s, struct channel *c, size_t *budget, int64_t now)
{
        struct userlog *u = s->userlog;
        uint64_t durable = atomic_load(&s->durable_seq);

        if (!choose(s, c, now) || now < c->not_before_ms)
                return;
        if (c->missing_count)
                tell_missing(u, c);
        while (*budget && c->out_bytes < WINDOW_BYTES && c->first && c->first->at.seq <= durable) {
                struct entry *e = c->first;

                if (entry_step(s, c, e, budget))
                        continue;
                c->first = e->next;
                if (!c->first)
                        c->last = &c->first;
                c->entry_bytes -= e->bytes;
                entry_free(u, e);
        }
        for (struct out *o = c->outs; o; o = o->next)
                if (!o->sent)
                        send_out(s, c, o);
}

/* ---- saved positions
 * --------------------------------------------------------------------------------------------- */

static void pack_done(struct server *s, struct buf *out)
{
        const struct userlog *u = s->userlog;
        uint64_t count = 0;

        for (const struct channel *c = u->active; c; c = c->next)
                count++;
        pack_u64(out, DONE_VERSION);
        pack_u64(out, atomic_load(&s->durable_seq));
        pack_u64(out, count);
        for (const struct channel *c = u->active; c; c = c->next) {
                const struct position at = c->outs    ? c->outs->at
                                           : c->first ? c->first->at
                                                      : (struct position){.seq = u->next_seq};

                pack_str(out, str_of(c->domain));
                pack_str(out, str_of(c->owner));
                pack_u64(out, at.seq);
                pack_u64(out, at.sub);
                pack_u64(out, at.member);
        }
}

static void userlog_state_save(struct server *s)
{
        struct userlog *u = s->userlog;
        BUF_CLEANUP struct buf data = {0};
        uint64_t durable = atomic_load(&s->durable_seq);
        int64_t now;

        if (!u->changed && (idmap_count(u->requests) == 0 || durable < u->saved_seq + SAVE_RECORDS))
                return;
        now = clock_boot_ms();
        if (turn_full(s->turn))
                return;
        if (u->unsaved_bytes < SAVE_BYTES &&
            ((u->saved_ms && now - u->saved_ms < SAVE_MS) ||
             (now - u->saved_ms < SAVE_ALONE_MS && store_batch_empty(turn_inform(s->turn)))))
                return;
        pack_done(s, &data);
        store_batch_blob_put(u->unsaved_bytes < SAVE_BYTES ? turn_inform(s->turn) : turn_batch(s->turn),
                             STR("userlog/done"), buf_view(&data));
        u->changed = false;
        u->saved_ms = now;
        u->saved_seq = durable;
        u->unsaved_bytes = 0;
}

int done_load(struct server *s, uint64_t snapshot_seq, uint64_t *ret_from, struct err *err)
{
        struct userlog *u = s->userlog;
        BUF_CLEANUP struct buf data = {0};
        int r = store_blob_get(s->store, STR("userlog/done"), &data, err);
        struct unpack p = unpack_from(buf_view(&data));
        uint64_t from, count;

        u->done = (struct position){.seq = snapshot_seq + 1};
        *ret_from = snapshot_seq + 1;
        if (r == STORE_NOT_FOUND)
                return 0;
        if (r != 0)
                return r;
        if (unpack_u64(&p) != DONE_VERSION)
                p.bad = true;
        from = unpack_u64(&p) + 1;
        count = unpack_u64(&p);
        if (!p.bad)
                u->done.seq = from;
        for (; count > 0 && !p.bad; count--) {
                struct str domain = unpack_str(&p), owner = unpack_str(&p);
                struct position at = {.seq = unpack_u64(&p), .sub = unpack_u64(&p), .member = unpack_u64(&p)};

                if (p.bad)
                        break;
                channel_get(u, domain, owner)->done = at;
                if (at.seq < from)
                        from = at.seq;
        }
        if (p.bad) {
                log_warn("msg=\"how far user logs were written is not known: lines may be missing or be "
                         "there twice\"");
                return 0;
        }
        *ret_from = from;
        return 0;
}

/* Continues in another turn, because this one has reached its limit. */
static void run_again(struct server *s, struct task *t)
{
        (void)s;
        free(t);
}

bool userlog_waits(const struct server *s)
{
        return s->userlog->active != NULL;
}

void userlog_flush(struct server *s)
{
        struct userlog *u = s->userlog;
        size_t budget = SLICE_MEMBERS;
        int64_t now = u->active ? clock_boot_ms() : 0;

        for (struct channel **at = &u->active; *at;) {
                struct channel *c = *at;

                pump(s, c, &budget, now);
                if (c->first || c->outs || c->missing_count) {
                        at = &c->next;
                        continue;
                }
                *at = c->next;
                c->active = false;
                u->changed = true;
                if (c->users == 0)
                        channel_free(u, c);
        }
        userlog_state_save(s);
        if (budget == 0 && !atomic_load(&s->stopping)) {
                struct task *t = mem_new(struct task);

                t->run = run_again;
                server_to_core(s, t);
        }
}
