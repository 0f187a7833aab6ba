/* Requests that ask for notices are in a table by number, with the notices that their parts ask for; an
 * event of any other request costs one lookup. Notices are kept in the store, and sent when they are due. */
#include "server/notices/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/format/json.h"
#include "base/map.h"
#include "base/pack.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "base/system/uuid.h"
#include "core/query.h"
#include "notify/notify.h"
#include "server/loop/allowance.h"
#include "server/loop/turn.h"
#include "server/notices/text.h"

#define VERSION      1
#define BURST        10 /* notices to one user in a row */
#define RETRY_MAX_MS 3600000
#define WARN_MS      60000
/* Time of the core's thread that is taken for telling one user's jobs in full, at once and in each second.
 * Most take some 50 µs; what a user's expressions take is up to the user. */
#define BURST_NS    50000000
#define PER_S_NS    20000000

#define NODES_OWNER "nodes" /* of notices about nodes; an owner of jobs has a domain */

struct notice {
        struct notice *next, *next_changed;
        char id[UUID_TEXT];
        enum notify_kind kind;
        char *owner, *to;
        char *subject; /* about the first job */
        uint64_t counts[NOTICE_WHATS];
        uint32_t rows;
        struct buf text;    /* the body: paragraphs, or objects separated by commas */
        int64_t created_ms; /* Unix milliseconds */
        int64_t due_ms;     /* boot clock */
        unsigned tries;
        bool changed; /* since it was stored */
        bool open;    /* more jobs may be added */
        bool under_way;
};
struct notice_owner {   /* kept until the server ends; there are as many as users with notices */
        double allowed; /* notices that may be sent now */
        int64_t at_ms;  /* boot clock: when `allowed` was computed; 0: never */
        unsigned waiting;
        bool under_way;
};
struct notices {
        struct notify *notify;
        struct idmap *requests; /* request → struct subscription */
        struct map *open;       /* kind, owner and address → open notice */
        struct map *by_id, *owners;
        struct allowances *time;
        struct notice *first, **last, *changed;
        int64_t warned_ms;
        symbol notification, notify_user, webhook, success;
        bool interned;
};

/* JobNotification, as HTCondor numbers it. */
enum asked { ASKED_NEVER, ASKED_ALWAYS, ASKED_COMPLETE, ASKED_ERROR, ASKED_START };

struct subscription_part {
        uint64_t first, end;
        enum asked asked;
        char *to[2]; /* addresses by enum notify_kind; NULL: none of that kind */
};
struct subscription { /* a request that asks for notices */
        struct subscription_part *parts;
        size_t count;
        struct set started; /* ASKED_START: members that have started before */
};

static void subscription_free(struct subscription *t)
{
        if (!t)
                return;
        for (size_t i = 0; i < t->count; i++) {
                free(t->parts[i].to[NOTIFY_MAIL]);
                free(t->parts[i].to[NOTIFY_HOOK]);
        }
        free(t->parts);
        set_deinit(&t->started);
        free(t);
}

struct notices *notices_new(void)
{
        struct notices *n = mem_new(struct notices);

        n->requests = idmap_new();
        n->open = map_new();
        n->by_id = map_new();
        n->owners = map_new();
        n->time = allowances_new(BURST_NS, PER_S_NS);
        n->last = &n->first;
        return n;
}

static void notice_free(struct notice *x)
{
        free(x->owner);
        free(x->to);
        free(x->subject);
        buf_deinit(&x->text);
        free(x);
}

void notices_free(struct notices *n)
{
        size_t at = 0;
        void *v;

        if (!n)
                return;
        while (idmap_next(n->requests, &at, NULL, &v))
                subscription_free(v);
        for (at = 0; map_next(n->owners, &at, NULL, &v);)
                free(v);
        while (n->first) {
                struct notice *x = n->first;

                n->first = x->next;
                notice_free(x);
        }
        idmap_free(n->requests);
        map_free(n->open);
        map_free(n->by_id);
        map_free(n->owners);
        allowances_free(n->time);
        free(n);
}

/* ---- open notices */

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

static void add_notice(struct notices *n, struct notice *x)
{
        *n->last = x;
        n->last = &x->next;
        map_put(n->by_id, str_of(x->id), x);
        owner_of(n, str_of(x->owner))->waiting++;
}

/* Returns the open notice to this address, made if there is none; NULL when too many are pending. */
static struct notice *notice_get(struct server *s, enum notify_kind kind, struct str owner, const char *to)
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
        add_notice(n, x);
        return x;
}

/* Marks the notice as changed; the caller has added to it, or will in this turn. */
static void notice_changed(struct notices *n, struct notice *x)
{
        if (x->changed)
                return;
        x->changed = true;
        x->next_changed = n->changed;
        n->changed = x;
}

/* ---- notices that requests ask for */

static void intern(struct server *s)
{
        struct notices *n = s->notices;
        struct symbols *symbols = core_symbols(s->core);

        if (n->interned)
                return;
        n->notification = symbols_intern(symbols, STR("JobNotification"));
        n->notify_user = symbols_intern(symbols, STR("NotifyUser"));
        n->webhook = symbols_intern(symbols, STR("DroverWebhook"));
        n->success = symbols_intern(symbols, STR("JobSuccessExitCode"));
        n->interned = true;
}

static enum asked asked_of(const struct ad *ad, symbol name)
{
        struct value v;

        if (!ad || !ad_literal(ad, name, &v) || v.type != VALUE_INTEGER || v.integer < 0 ||
            v.integer > ASKED_START)
                return ASKED_NEVER;
        return (enum asked)v.integer;
}

/* Writes the owner as name@domain, without a domain that is no mail domain. */
static void mail_address(struct server *s, struct str owner, struct str user, struct buf *out)
{
        const char *domain = s->config.notify.domain;
        struct str name = user.n ? user : owner;
        ptrdiff_t at = str_find(name, '@');

        if (user.n && at >= 0) {
                buf_str(out, user);
                return;
        }
        buf_str(out, at < 0 ? name : str_head(name, (size_t)at));
        if (domain)
                buf_printf(out, "@%s", domain);
}

static void part_init(struct server *s, uint64_t request, struct str owner, uint32_t part,
                      struct subscription_part *p)
{
        struct notices *n = s->notices;
        BUF_CLEANUP struct buf user = {.max = 1024}, mail = {.max = 2048}, hook = {.max = 4096};

        if (core_part_members(s->core, request, part, &p->first, &p->end) != 0 || p->first >= p->end)
                return;
        p->asked = asked_of(core_request_ad(s->core, request, part), n->notification);
        if (p->asked == ASKED_NEVER)
                return;
        core_member_text(s->core, request, (uint32_t)p->first, n->webhook, &hook);
        if (hook.n)
                p->to[NOTIFY_HOOK] = buf_take(&hook);
        core_member_text(s->core, request, (uint32_t)p->first, n->notify_user, &user);
        mail_address(s, owner, buf_view(&user), &mail);
        /* a job with a web hook and no mail address gets no mail */
        if (s->config.notify.out.mailer[0] && (user.n || !p->to[NOTIFY_HOOK]) &&
            address_mail_check(buf_view(&mail), NULL) == 0)
                p->to[NOTIFY_MAIL] = buf_take(&mail);
        if (!p->to[NOTIFY_MAIL] && !p->to[NOTIFY_HOOK])
                p->asked = ASKED_NEVER;
}

/* Reads which notices a request asks for: a new request, or one from before the start. */
static void request_add(struct server *s, uint64_t request)
{
        struct core_request r;
        struct subscription *t;
        bool any = false;

        intern(s);
        if (core_request_get(s->core, request, &r) != 0)
                return;
        for (uint32_t i = 0; i < r.part_count && !any; i++)
                any = asked_of(core_request_ad(s->core, request, i), s->notices->notification) != ASKED_NEVER;
        if (!any)
                return;
        t = mem_new(struct subscription);
        t->count = r.part_count;
        t->parts = mem_zalloc((t->count + 1) * sizeof(*t->parts));
        for (unsigned state = 0; state < JOB_STATES; state++) {
                struct set members = {0};

                if (job_state_runs((enum job_state)state))
                        core_members(s->core, request, 1u << state, &members);
                SET_FOREACH (&members, m)
                        set_add(&t->started, (uint32_t)m);
                set_deinit(&members);
        }
        for (uint32_t i = 0; i < t->count; i++)
                part_init(s, request, r.owner, i, &t->parts[i]);
        subscription_free(idmap_put(s->notices->requests, request, t));
}

/* ---- adding to notices */

static bool wanted(const struct subscription_part *p, enum notice_what what, int32_t hold_code)
{
        switch (p->asked) {
        case ASKED_ALWAYS: return what != NOTICE_STARTED;
        case ASKED_COMPLETE: return what == NOTICE_COMPLETED || what == NOTICE_FAILED;
        case ASKED_ERROR: /* not an action that the user did or asked for */
                return what == NOTICE_FAILED ||
                       (what == NOTICE_HELD && hold_code != CORE_HOLD_USER && hold_code != CORE_HOLD_POLICY &&
                        hold_code != CORE_HOLD_SUBMIT);
        case ASKED_START: return what == NOTICE_STARTED;
        case ASKED_NEVER: break;
        }
        return false;
}

/* Adds one job in full (ad); when the notice is long, adds `count` jobs by number only. */
static void tell_part(struct server *s, const struct subscription_part *p, struct str owner,
                      const struct notice_job *j, uint64_t count)
{
        for (int kind = NOTIFY_MAIL; kind <= NOTIFY_HOOK; kind++) {
                BUF_CLEANUP struct buf subject = {.max = 500};
                struct notice *x =
                        p->to[kind] ? notice_get(s, (enum notify_kind)kind, owner, p->to[kind]) : NULL;

                if (!x)
                        continue;
                x->counts[j->what] += count;
                notice_changed(s->notices, x);
                if (!j->ad || x->rows >= NOTICE_ROWS_MAX || x->text.n > NOTIFY_BODY_MAX / 2)
                        continue;
                if (!x->subject) {
                        notice_subject(&subject, j);
                        x->subject = buf_take(&subject);
                }
                if (kind == NOTIFY_HOOK && x->rows)
                        buf_char(&x->text, ',');
                if (kind == NOTIFY_HOOK)
                        notice_json(&x->text, j);
                else
                        notice_words(&x->text, j);
                x->rows++;
        }
}

/* Returns whether another job is told in full: it has the room, and its owner the time. */
static bool room_for_rows(struct server *s, const struct subscription_part *p, struct str owner)
{
        if (!allowance_left(s->notices->time, owner, clock_boot_ms()))
                return false;
        for (int kind = NOTIFY_MAIL; kind <= NOTIFY_HOOK; kind++) {
                struct notice *x =
                        p->to[kind] ? notice_get(s, (enum notify_kind)kind, owner, p->to[kind]) : NULL;

                if (x && x->rows < NOTICE_ROWS_MAX)
                        return true;
        }
        return false;
}

/* Returns whether this is the member's first start. For a short job that may only be seen at its end. */
static bool first_start(struct server *s, struct subscription *t, uint64_t request, uint32_t member)
{
        struct core_job job;

        if (set_has(&t->started, member))
                return false;
        set_add(&t->started, member);
        return core_job_get(s->core, request, member, &job) != 0 || job.starts <= 1;
}

/* Handles members of one request that had the same event. */
static void tell_members(struct server *s, struct subscription *t, const struct event *e,
                         enum notice_what what)
{
        struct core_request r;

        if (core_request_get(s->core, e->request, &r) != 0)
                return;
        for (size_t i = 0; i < t->count; i++) {
                const struct subscription_part *p = &t->parts[i];
                struct notice_job j = {
                        .what = what, .request = e->request, .at_ms = e->at_ms, .reason = e->reason};
                uint64_t m = p->first;

                if (!wanted(p, what, e->code))
                        continue;
                for (m = set_next(&e->members, m); m < p->end && room_for_rows(s, p, r.owner);
                     m = set_next(&e->members, m + 1)) {
                        int64_t began_ns = clock_thread_ns();
                        struct ad *ad;

                        if (what == NOTICE_STARTED && !first_start(s, t, e->request, (uint32_t)m))
                                continue;
                        ad = core_job_ad(s->core, e->request, (uint32_t)m);
                        j.member = (uint32_t)m;
                        j.ad = ad;
                        tell_part(s, p, r.owner, &j, 1);
                        ad_free(ad);
                        allowance_spend(s->notices->time, r.owner, clock_thread_ns() - began_ns);
                }
                j.ad = NULL;
                if (m < p->end && what != NOTICE_STARTED)
                        tell_part(s, p, r.owner, &j, set_count_range(&e->members, m, p->end));
        }
}

void notices_event(struct server *s, const struct event *e)
{
        struct notices *n = s->notices;
        struct subscription *t;

        if (e->type == EVENT_SUBMITTED)
                request_add(s, e->request);
        t = idmap_get(n->requests, e->request);
        if (!t)
                return;
        switch (e->type) {
        case EVENT_STARTED: tell_members(s, t, e, NOTICE_STARTED); break;
        case EVENT_EXITED:
                if (e->outcome == CORE_EXITED)
                        tell_members(s, t, e, NOTICE_STARTED);
                if (e->next == JOB_HELD)
                        tell_members(s, t, e, NOTICE_HELD);
                break;
        case EVENT_LOST:
        case EVENT_REFUSED:
                if (e->next == JOB_HELD)
                        tell_members(s, t, e, NOTICE_HELD);
                break;
        case EVENT_HELD: tell_members(s, t, e, NOTICE_HELD); break;
        case EVENT_PURGED: subscription_free(idmap_take(n->requests, e->request)); break;
        default: break;
        }
}

/* Adds the node's change to the notice for one of the addresses. */
static void tell_address(struct server *s, const char *to, const struct notice_node *n)
{
        enum notify_kind kind = strstr(to, "://") ? NOTIFY_HOOK : NOTIFY_MAIL;
        struct notice *x = notice_get(s, kind, STR(NODES_OWNER), to);
        BUF_CLEANUP struct buf subject = {.max = 500};

        if (!x)
                return;
        x->counts[NOTICE_NODE]++;
        notice_changed(s->notices, x);
        if (x->rows >= NOTICE_ROWS_MAX || x->text.n > NOTIFY_BODY_MAX / 2)
                return;
        if (!x->subject) {
                notice_node_subject(&subject, n);
                x->subject = buf_take(&subject);
        }
        if (kind == NOTIFY_HOOK && x->rows)
                buf_char(&x->text, ',');
        if (kind == NOTIFY_HOOK)
                notice_node_json(&x->text, n);
        else
                notice_node_words(&x->text, n);
        x->rows++;
}

void notices_node(struct server *s, const struct event *e)
{
        const struct notice_node n = {
                .name = e->agent,
                .state = e->code == NODE_REPORT ? STR("in trouble") : str_of(sm_state(&node_states, e->next)),
                .by = e->who,
                .reason = e->reason,
                .at_ms = e->at_ms};

        for (size_t i = 0; s->config.notify.nodes[i]; i++)
                tell_address(s, s->config.notify.nodes[i], &n);
}

static enum notice_what ending(const struct notices *n, const struct past_job *f, const struct ad *ad)
{
        struct value v;
        int64_t success = 0;

        if (f->state == JOB_REMOVED)
                return NOTICE_REMOVED;
        if (ad_literal(ad, n->success, &v) && v.type == VALUE_INTEGER)
                success = v.integer;
        return f->exit_code == success ? NOTICE_COMPLETED : NOTICE_FAILED;
}

void notices_ended(struct server *s, const struct past_job *f)
{
        const struct subscription *t = idmap_get(s->notices->requests, f->request);
        struct notice_job j = {.request = f->request, .member = f->member, .at_ms = f->ended_ms};
        const struct subscription_part *p;
        struct symbols *symbols = core_symbols(s->core);
        struct symbols_use *names, *before;
        int64_t began_ns = clock_thread_ns();
        const struct ad *all;
        struct ad *ad;
        size_t i = 0;

        while (t && i < t->count && f->member >= t->parts[i].end)
                i++;
        if (!t || i == t->count || t->parts[i].asked == ASKED_NEVER)
                return;
        p = &t->parts[i];
        all = core_request_ad(s->core, f->request, (uint32_t)i);
        if (!allowance_left(s->notices->time, f->owner, clock_boot_ms())) {
                j.what = ending(s->notices, f, all);
                if (wanted(p, j.what, 0))
                        tell_part(s, p, f->owner, &j, 1);
                return;
        }
        names = symbols_use_new(symbols, STR_NONE);
        before = symbols_use_set(symbols, names);
        if (ad_parse(symbols, f->data, CLASSAD_NEW, &ad, NULL) != 0)
                ad = ad_new(symbols);
        symbols_use_set(symbols, before);
        ad_set_parent(ad, all);
        j.what = ending(s->notices, f, ad);
        j.ad = ad;
        if (wanted(p, j.what, 0))
                tell_part(s, p, f->owner, &j, 1);
        ad_free(ad);
        symbols_use_free(names);
        allowance_spend(s->notices->time, f->owner, clock_thread_ns() - began_ns);
}

/* ---- checks at the submit */

/* Writes the value of an attribute that is bound to a string. */
static bool string_of(struct str expression, struct symbols *symbols, struct buf *out)
{
        struct symbols_use *names = symbols_use_new(symbols, STR_NONE);
        struct symbols_use *before = symbols_use_set(symbols, names);
        struct ad *ad = ad_new(symbols);
        symbol name = symbols_intern(symbols, STR("v"));
        struct value v;
        bool is = ad_set_text(ad, name, expression, NULL) == 0 && ad_literal(ad, name, &v) &&
                  v.type == VALUE_STRING;

        if (is)
                buf_str(out, v.string);
        ad_free(ad);
        symbols_use_set(symbols, before);
        symbols_use_free(names);
        return is;
}

static int check_hook(struct server *s, struct str url, struct err *err)
{
        struct address_url parsed;
        int r = address_url_parse(url, &parsed, err);

        return r ? r : notify_hook_allowed(&s->config.notify.out, &parsed, err);
}

static int check_part(struct server *s, const struct submission_part *part, bool *ret_mail, struct err *err)
{
        struct symbols *symbols = core_symbols(s->core);
        bool hook = false, user = false, asked = false;
        int r = 0;

        for (size_t i = 0; i < part->attribute_count && r == 0; i++) {
                const struct submission_attribute *a = &part->attributes[i];
                BUF_CLEANUP struct buf text = {.max = 4096};

                if (str_ieqz(a->name, "JobNotification"))
                        asked = !str_eqz(str_trim(a->text), "0");
                if (str_ieqz(a->name, "DroverWebhook")) {
                        hook = true;
                        if (a->late || !string_of(a->text, symbols, &text))
                                r = err_set(err, -EINVAL,
                                            "it must be a string that is the same for all jobs");
                        else
                                r = check_hook(s, buf_view(&text), err);
                        if (r != 0)
                                err_prefix(err, r, "DroverWebhook");
                }
                if (str_ieqz(a->name, "NotifyUser")) {
                        user = true;
                        if (a->late || !string_of(a->text, symbols, &text))
                                r = err_set(err, -EINVAL,
                                            "it must be a string that is the same for all jobs");
                        else
                                r = address_mail_check(buf_view(&text), err);
                        if (r != 0)
                                err_prefix(err, r, "NotifyUser");
                }
        }
        *ret_mail |= asked && (user || !hook);
        return r;
}

int notices_check(struct server *s, const struct submission *sub, struct buf *warning, struct err *err)
{
        bool mail = false;
        int r = 0;

        for (size_t i = 0; i < sub->part_count && r == 0; i++)
                r = check_part(s, &sub->parts[i], &mail, err);
        if (r == 0 && mail && !s->config.notify.out.mailer[0])
                buf_addz(warning,
                         "notification: this server sends no mail; its admin sets a mailer under notify:");
        return r;
}

/* Closes the notice: nothing is added from now on. */
static void shut(struct notices *n, struct notice *x)
{
        BUF_CLEANUP struct buf key = {0};

        if (!x->open)
                return;
        open_key(&key, x->kind, str_of(x->owner), x->to);
        map_take(n->open, buf_view(&key));
        x->open = false;
}

/* ---- blobs in the store */

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
                add_notice(s->notices, x);
        else
                log_warn("msg=\"a notice in the store cannot be read, it is not sent\" name=\"%s\"",
                         LOG_TEXT(name));
        return 0;
}

/* ---- sending */

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
        buf_printf(&m->body, "-- \nDrover tells you this because %s. This is notice %s.\n",
                   x->counts[NOTICE_NODE] ? "you are one of the server's settings under notify, nodes.\n"
                                            "More of a node: drover node show"
                                          : "the jobs were submitted with \"notification\".\n"
                                            "More of a job: drover show, drover log",
                   x->id);
}

static void write_hook(const struct server *s, const struct notice *x, struct notify_message *m)
{
        struct json j = {.out = &m->body};
        uint64_t all = count_of(x);

        json_open(&j, '{');
        json_kstrz(&j, "id", x->id);
        json_kstrz(&j, "server", s->uuid);
        if (!x->counts[NOTICE_NODE])
                json_kstrz(&j, "owner", x->owner);
        json_kint(&j, "at_ms", x->created_ms);
        if (!x->counts[NOTICE_NODE]) {
                json_key(&j, "counts");
                json_open(&j, '{');
                for (int i = 0; i < NOTICE_NODE; i++)
                        json_kint(&j, notice_names[i], (int64_t)x->counts[i]);
                json_close(&j, '}');
        }
        json_key(&j, x->counts[NOTICE_NODE] ? "nodes" : "jobs");
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

/* ---- results of sending */

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

/* Takes one token from the owner's bucket, which holds at most BURST and fills at an even rate. Returns
 * false if it is empty. */
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
                request_add(s, id);
        return r ? r : notify_new(&s->config.notify.out, on_done, s, &s->notices->notify, err);
}

void notices_stop(struct notices *n)
{
        if (!n)
                return;
        notify_free(n->notify);
        n->notify = NULL;
}
