/* Keeping notices in the store, and sending them when they are due. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/pack.h"
#include "core/query.h"
#include "server/loop/turn.h"
#include "server/notices/private.h"

#define VERSION      1
#define BURST        10 /* notices to one user at once */
#define RETRY_MAX_MS 3600000
#define WARN_MS      60000

/* ---- open ones */

static void open_key(struct buf *key, enum notify_kind kind, struct str owner, const char *to)
{
        buf_char(key, (char)('0' + kind));
        buf_str(key, owner);
        buf_char(key, 0);
        buf_addz(key, to);
}

static struct notice_owner *owner_of(struct notices *n, struct str owner)
{
        struct notice_owner *o = map_get(n->owners, owner);

        if (!o) {
                o = mem_new(struct notice_owner);
                map_put(n->owners, owner, o);
        }
        return o;
}

static void add(struct notices *n, struct notice *x)
{
        *n->last = x;
        n->last = &x->next;
        map_put(n->by_id, str_of(x->id), x);
        owner_of(n, str_of(x->owner))->waiting++;
}

struct notice *notice_get(struct server *s, enum notify_kind kind, struct str owner, const char *to)
{
        struct notices *n = s->notices;
        BUF_CLEANUP struct buf key = {0};
        struct notice *x;

        open_key(&key, kind, owner, to);
        x = map_get(n->open, buf_view(&key));
        if (x)
                return x;
        if (owner_of(n, owner)->waiting >= NOTICES_MAX) {
                int64_t now = clock_boot_ms();

                if (n->warned_ms == 0 || now - n->warned_ms >= WARN_MS)
                        log_warn("msg=\"too many notices to one user wait: more are dropped\" owner=\"%s\"",
                                 LOG_TEXT(owner));
                n->warned_ms = now;
                return NULL;
        }
        x = mem_new(struct notice);
        uuid_new(x->id);
        x->kind = kind;
        x->owner = str_dupz(owner);
        x->to = mem_dupz(to);
        x->text.max = NOTIFY_BODY_MAX;
        x->created_ms = clock_wall_ms();
        x->due_ms = clock_boot_ms() + s->config.notify.gather_ms;
        x->open = true;
        map_put(n->open, buf_view(&key), x);
        add(n, x);
        return x;
}

void notice_changed(struct notices *n, struct notice *x)
{
        if (x->changed)
                return;
        x->changed = true;
        x->next_changed = n->changed;
        n->changed = x;
}

/* Nothing is added to it from now on. */
static void shut(struct notices *n, struct notice *x)
{
        BUF_CLEANUP struct buf key = {0};

        if (!x->open)
                return;
        open_key(&key, x->kind, str_of(x->owner), x->to);
        map_take(n->open, buf_view(&key));
        x->open = false;
}

/* ---- in the store */

static struct str blob_name(struct buf *b, const struct notice *x)
{
        buf_reset(b);
        buf_printf(b, "notice/%s", x->id);
        return buf_view(b);
}

void notices_flush(struct server *s)
{
        struct notices *n = s->notices;
        BUF_CLEANUP struct buf name = {0}, data = {0};

        while (n->changed) {
                struct notice *x = n->changed;

                n->changed = x->next_changed;
                x->changed = false;
                buf_reset(&data);
                pack_u64(&data, VERSION);
                pack_u64(&data, x->kind);
                pack_str(&data, str_of(x->owner));
                pack_str(&data, str_of(x->to));
                pack_str(&data, str_of(x->subject));
                pack_i64(&data, x->created_ms);
                pack_u64(&data, NOTICE_WHATS);
                for (int i = 0; i < NOTICE_WHATS; i++)
                        pack_u64(&data, x->counts[i]);
                pack_u64(&data, x->rows);
                pack_str(&data, buf_view(&x->text));
                store_batch_blob_put(turn_batch(s->turn), blob_name(&name, x), buf_view(&data));
        }
}

static struct notice *read_notice(struct str id, struct str data)
{
        struct unpack u = unpack_from(data);
        struct notice *x = mem_new(struct notice);
        struct str subject, text;

        if (unpack_u64(&u) != VERSION)
                u.bad = true;
        x->kind = (enum notify_kind)unpack_max(&u, NOTIFY_HOOK);
        x->owner = str_dupz(unpack_str(&u));
        x->to = str_dupz(unpack_str(&u));
        subject = unpack_str(&u);
        x->subject = subject.n ? str_dupz(subject) : NULL;
        x->created_ms = unpack_i64(&u);
        for (uint64_t i = 0, count = unpack_max(&u, NOTICE_WHATS); i < count; i++)
                x->counts[i] = unpack_u64(&u);
        x->rows = (uint32_t)unpack_max(&u, UINT32_MAX);
        text = unpack_str(&u);
        snprintf(x->id, sizeof(x->id), STR_FMT, STR_ARG(str_head(id, UUID_TEXT - 1)));
        if (unpack_done(&u)) {
                buf_str(&x->text, text);
                return x;
        }
        notice_free(x);
        return NULL;
}

static int on_kept(void *arg, struct str name)
{
        struct server *s = arg;
        BUF_CLEANUP struct buf data = {0};
        struct notice *x = NULL;

        if (store_blob_get(s->store, name, &data, NULL) == 0)
                x = read_notice(str_skip(name, sizeof("notice/") - 1), buf_view(&data));
        if (x)
                add(s->notices, x);
        else
                log_warn("msg=\"a notice in the store cannot be read, it is not sent\" name=\"%s\"",
                         LOG_TEXT(name));
        return 0;
}

/* ---- what is sent */

static uint64_t count_of(const struct notice *x)
{
        uint64_t all = 0;

        for (int i = 0; i < NOTICE_WHATS; i++)
                all += x->counts[i];
        return all;
}

static void write_mail(const struct notice *x, struct notify_message *m)
{
        BUF_CLEANUP struct buf subject = {0};
        uint64_t all = count_of(x);

        buf_addz(&subject, "[Drover] ");
        if (all == 1 && x->subject)
                buf_addz(&subject, x->subject);
        else
                notice_counts(&subject, x->counts);
        m->subject = buf_take(&subject);
        if (all > 1) {
                notice_counts(&m->body, x->counts);
                buf_addz(&m->body, ".\n\n");
        }
        buf_str(&m->body, buf_view(&x->text));
        if (all > x->rows)
                buf_printf(&m->body, "And %" PRIu64 " more, of which only the number is told here.\n\n",
                           all - x->rows);
        buf_printf(&m->body,
                   "-- \nDrover tells you this because the jobs were submitted with \"notification\".\n"
                   "More of a job: drover show, drover log. This is notice %s.\n",
                   x->id);
}

static void write_hook(const struct server *s, const struct notice *x, struct notify_message *m)
{
        struct json j = {.out = &m->body};
        uint64_t all = count_of(x);

        json_open(&j, '{');
        json_kstrz(&j, "id", x->id);
        json_kstrz(&j, "server", s->uuid);
        json_kstrz(&j, "owner", x->owner);
        json_kint(&j, "at_ms", x->created_ms);
        json_key(&j, "counts");
        json_open(&j, '{');
        for (int i = 0; i < NOTICE_WHATS; i++)
                json_kint(&j, notice_names[i], (int64_t)x->counts[i]);
        json_close(&j, '}');
        json_key(&j, "jobs");
        json_open(&j, '[');
        if (x->text.n)
                json_raw(&j, buf_view(&x->text));
        json_close(&j, ']');
        json_kint(&j, "more", (int64_t)(all - x->rows));
        json_close(&j, '}');
}

struct sending {
        struct task task;
        struct notify *notify;
        struct notify_message *message;
};

static void sending_drop(struct task *t)
{
        notify_message_free(((struct sending *)t)->message);
        free(t);
}

static void sending_run(struct server *s, struct task *t)
{
        struct sending *x = (struct sending *)t;

        (void)s;
        notify_send(x->notify, x->message);
        free(x);
}

static void send_notice(struct server *s, struct notice *x)
{
        struct sending *t = mem_new(struct sending);

        t->task.run = sending_run;
        t->task.drop = sending_drop;
        t->notify = s->notices->notify;
        t->message = notify_message_new();
        snprintf(t->message->id, sizeof(t->message->id), "%s", x->id);
        t->message->kind = x->kind;
        t->message->to = mem_dupz(x->to);
        t->message->at_ms = x->created_ms;
        if (x->kind == NOTIFY_MAIL)
                write_mail(x, t->message);
        else
                write_hook(s, x, t->message);
        x->under_way = true;
        owner_of(s->notices, str_of(x->owner))->under_way = true;
        turn_send(s->turn, &t->task, TURN_DURABLE);
}

/* ---- what became of it */

static void forget(struct server *s, struct notice *x)
{
        struct notices *n = s->notices;
        BUF_CLEANUP struct buf name = {0};
        struct notice **at = &n->first;

        shut(n, x);
        store_batch_blob_delete(turn_inform(s->turn), blob_name(&name, x));
        while (*at != x)
                at = &(*at)->next;
        *at = x->next;
        if (!x->next)
                n->last = at;
        map_take(n->by_id, str_of(x->id));
        owner_of(n, str_of(x->owner))->waiting--;
        notice_free(x);
}

static int64_t pause_ms(const struct server *s, unsigned tries)
{
        int64_t ms = s->config.notify.retry_ms;

        while (tries-- > 1 && ms < RETRY_MAX_MS)
                ms *= 2;
        return ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
}

struct outcome {
        struct task task;
        char id[UUID_TEXT];
        enum notify_result result;
        char why[256];
};

static void outcome_run(struct server *s, struct task *t)
{
        struct outcome *o = (struct outcome *)t;
        struct notice *x = map_get(s->notices->by_id, str_of(o->id));
        bool late;

        if (x) {
                x->under_way = false;
                owner_of(s->notices, str_of(x->owner))->under_way = false;
                x->tries++;
                late = clock_wall_ms() - x->created_ms > s->config.notify.give_up_ms;
                if (o->result == NOTIFY_SENT)
                        log_info("msg=\"a notice was sent\" id=%s owner=\"%s\" to=\"%s\" jobs=%" PRIu64,
                                 x->id, LOG_TEXT(str_of(x->owner)), LOG_TEXT(str_of(x->to)), count_of(x));
                else
                        log_warn("msg=\"a notice was not sent%s\" id=%s owner=\"%s\" to=\"%s\" why=\"%s\"",
                                 o->result == NOTIFY_REFUSED || late ? ", and is dropped" : "", x->id,
                                 LOG_TEXT(str_of(x->owner)), LOG_TEXT(str_of(x->to)),
                                 LOG_TEXT(str_of(o->why)));
                if (o->result != NOTIFY_AGAIN || late)
                        forget(s, x);
                else
                        x->due_ms = clock_boot_ms() + pause_ms(s, x->tries);
        }
        free(o);
}

static void on_done(void *arg, const char *id, enum notify_result result, const char *why)
{
        struct outcome *o = mem_new(struct outcome);

        o->task.run = outcome_run;
        o->result = result;
        snprintf(o->id, sizeof(o->id), "%s", id);
        snprintf(o->why, sizeof(o->why), "%s", why);
        server_to_core(arg, &o->task);
}

/* ---- time */

/* A bucket of at most BURST, filled evenly. */
static bool may_send(const struct server *s, struct notice_owner *o, int64_t now)
{
        double most = s->config.notify.per_hour < BURST ? s->config.notify.per_hour : BURST;

        if (o->at_ms == 0)
                o->allowed = most;
        else
                o->allowed += (double)(now - o->at_ms) * s->config.notify.per_hour / 3600000;
        o->allowed = o->allowed > most ? most : o->allowed;
        o->at_ms = now;
        return !o->under_way && o->allowed >= 1;
}

void notices_tick(struct server *s)
{
        struct notices *n = s->notices;
        int64_t now = clock_boot_ms();

        if (!n->notify)
                return;
        for (struct notice *x = n->first; x; x = x->next) {
                struct notice_owner *o;

                if (x->under_way || now < x->due_ms)
                        continue;
                o = owner_of(n, str_of(x->owner));
                if (x->tries == 0 ? !may_send(s, o, now) : o->under_way)
                        continue;
                if (x->tries == 0)
                        o->allowed -= 1;
                shut(n, x);
                send_notice(s, x);
        }
}

int notices_open(struct server *s, struct err *err)
{
        int r = store_blob_list(s->store, STR("notice/"), on_kept, s, err);

        for (uint64_t id = 0; r == 0 && (id = core_request_next(s->core, id));)
                notices_add_request(s, id);
        return r ? r : notify_new(&s->config.notify.out, on_done, s, &s->notices->notify, err);
}

void notices_stop(struct notices *n)
{
        if (!n)
                return;
        notify_free(n->notify);
        n->notify = NULL;
}
