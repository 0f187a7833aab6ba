/* Requests that ask for notices are known by number, each with what its parts ask for; events of all others
 * cost one look into a table. */
#include "server/notices/notices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "core/query.h"
#include "server/notices/private.h"

/* JobNotification, as HTCondor numbers it. */
enum asked { ASKED_NEVER, ASKED_ALWAYS, ASKED_COMPLETE, ASKED_ERROR, ASKED_START };

struct told_part {
        uint64_t first, end;
        enum asked asked;
        char *to[2]; /* by enum notify_kind; NULL: not that way */
};
struct told { /* a request that asks for notices */
        struct told_part *parts;
        size_t count;
        struct set started; /* ASKED_START: members that have started */
};

static void told_free(struct told *t)
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
        n->last = &n->first;
        return n;
}

void notice_free(struct notice *x)
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
                told_free(v);
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
        free(n);
}

/* ---- what requests ask for */

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

/* name@domain of the owner, less a domain that no mail has. */
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
                      struct told_part *p)
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
        /* who names a hook and no address wants no mail */
        if (s->config.notify.out.mailer[0] && (user.n || !p->to[NOTIFY_HOOK]) &&
            address_mail_check(buf_view(&mail), NULL) == 0)
                p->to[NOTIFY_MAIL] = buf_take(&mail);
        if (!p->to[NOTIFY_MAIL] && !p->to[NOTIFY_HOOK])
                p->asked = ASKED_NEVER;
}

void notices_add_request(struct server *s, uint64_t request)
{
        struct core_request r;
        struct told *t;
        bool any = false;

        intern(s);
        if (core_request_get(s->core, request, &r) != 0)
                return;
        for (uint32_t i = 0; i < r.part_count && !any; i++)
                any = asked_of(core_request_ad(s->core, request, i), s->notices->notification) != ASKED_NEVER;
        if (!any)
                return;
        t = mem_new(struct told);
        t->count = r.part_count;
        t->parts = mem_zalloc((t->count + 1) * sizeof(*t->parts));
        for (unsigned state = 0; state < JOB_STATES; state++) {
                struct set members = {0};

                if (job_state_runs((enum job_state)state))
                        core_members(s->core, request, (enum job_state)state, &members);
                SET_FOREACH (&members, m)
                        set_add(&t->started, (uint32_t)m);
                set_deinit(&members);
        }
        for (uint32_t i = 0; i < t->count; i++)
                part_init(s, request, r.owner, i, &t->parts[i]);
        told_free(idmap_put(s->notices->requests, request, t));
}

/* ---- telling */

static bool wanted(const struct told_part *p, enum notice_what what, int32_t hold_code)
{
        switch (p->asked) {
        case ASKED_ALWAYS: return what != NOTICE_STARTED;
        case ASKED_COMPLETE: return what == NOTICE_COMPLETED || what == NOTICE_FAILED;
        case ASKED_ERROR: /* not what the user did, or asked for */
                return what == NOTICE_FAILED ||
                       (what == NOTICE_HELD && hold_code != CORE_HOLD_USER && hold_code != CORE_HOLD_POLICY &&
                        hold_code != CORE_HOLD_SUBMIT);
        case ASKED_START: return what == NOTICE_STARTED;
        case ASKED_NEVER: break;
        }
        return false;
}

/* One job in full (ad), or, once there is no room for that, `count` of them by number. */
static void tell(struct server *s, const struct told_part *p, struct str owner, const struct notice_job *j,
                 uint64_t count)
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

static bool room_for_rows(struct server *s, const struct told_part *p, struct str owner)
{
        for (int kind = NOTIFY_MAIL; kind <= NOTIFY_HOOK; kind++) {
                struct notice *x =
                        p->to[kind] ? notice_get(s, (enum notify_kind)kind, owner, p->to[kind]) : NULL;

                if (x && x->rows < NOTICE_ROWS_MAX)
                        return true;
        }
        return false;
}

/* Is this the first that is heard of the member's first start? Of one that is over soon, its end may be. */
static bool first_start(struct server *s, struct told *t, uint64_t request, uint32_t member)
{
        struct core_job job;

        if (set_has(&t->started, member))
                return false;
        set_add(&t->started, member);
        return core_job_get(s->core, request, member, &job) != 0 || job.starts <= 1;
}

/* Members of a request, alike in what happened to them. */
static void tell_members(struct server *s, struct told *t, const struct event *e, enum notice_what what)
{
        struct core_request r;

        if (core_request_get(s->core, e->request, &r) != 0)
                return;
        for (size_t i = 0; i < t->count; i++) {
                const struct told_part *p = &t->parts[i];
                struct notice_job j = {
                        .what = what, .request = e->request, .at_ms = e->at_ms, .reason = e->reason};
                uint64_t m = p->first;

                if (!wanted(p, what, e->code))
                        continue;
                for (m = set_next(&e->members, m); m < p->end && room_for_rows(s, p, r.owner);
                     m = set_next(&e->members, m + 1)) {
                        struct ad *ad;

                        if (what == NOTICE_STARTED && !first_start(s, t, e->request, (uint32_t)m))
                                continue;
                        ad = core_job_ad(s->core, e->request, (uint32_t)m);
                        j.member = (uint32_t)m;
                        j.ad = ad;
                        tell(s, p, r.owner, &j, 1);
                        ad_free(ad);
                }
                j.ad = NULL;
                if (m < p->end && what != NOTICE_STARTED)
                        tell(s, p, r.owner, &j, set_count_range(&e->members, m, p->end));
        }
}

void notices_event(struct server *s, const struct event *e)
{
        struct notices *n = s->notices;
        struct told *t;

        if (e->type == EVENT_SUBMITTED)
                notices_add_request(s, e->request);
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
        case EVENT_PURGED: told_free(idmap_take(n->requests, e->request)); break;
        default: break;
        }
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
        const struct told *t = idmap_get(s->notices->requests, f->request);
        struct notice_job j = {.request = f->request, .member = f->member, .at_ms = f->ended_ms};
        const struct told_part *p;
        struct symbols *symbols = core_symbols(s->core);
        struct symbols_use *names, *before;
        struct ad *ad;
        size_t i = 0;

        while (t && i < t->count && f->member >= t->parts[i].end)
                i++;
        if (!t || i == t->count || t->parts[i].asked == ASKED_NEVER)
                return;
        p = &t->parts[i];
        names = symbols_use_new(symbols, STR_NONE);
        before = symbols_use_set(symbols, names);
        if (ad_parse(symbols, f->data, CLASSAD_NEW, &ad, NULL) != 0)
                ad = ad_new(symbols);
        symbols_use_set(symbols, before);
        ad_set_parent(ad, core_request_ad(s->core, f->request, (uint32_t)i));
        j.what = ending(s->notices, f, ad);
        j.ad = ad;
        if (wanted(p, j.what, 0))
                tell(s, p, f->owner, &j, 1);
        ad_free(ad);
        symbols_use_free(names);
}

/* ---- at the submit */

/* The value of a string that an attribute is bound to. */
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
                                r = err_set(err, -EINVAL, "it must be a string, the same for all jobs");
                        else
                                r = check_hook(s, buf_view(&text), err);
                        if (r != 0)
                                err_prefix(err, r, "DroverWebhook");
                }
                if (str_ieqz(a->name, "NotifyUser")) {
                        user = true;
                        if (a->late || !string_of(a->text, symbols, &text))
                                r = err_set(err, -EINVAL, "it must be a string, the same for all jobs");
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
