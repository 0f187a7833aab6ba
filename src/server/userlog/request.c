/* Decides which requests have a log. A part of a request has one if its jobs name a file. The request's
 * channel is that of the filesystem domain and the owner of the first such part. */
#include <unistd.h>

#include "base/system/log.h"
#include "core/query.h"
#include "server/userlog/private.h"

bool logged_path(struct server *s, uint64_t request, uint32_t member, struct buf *out)
{
        BUF_CLEANUP struct buf name = {.max = 4096};
        int r = core_member_text(s->core, request, member, s->userlog->user_log, &name);

        out->max = 8192;
        if (r != 0 || name.n == 0 || memchr(name.p, 0, name.n))
                return false;
        if (name.p[0] != '/') {
                if (core_member_text(s->core, request, member, s->userlog->iwd, out) != 0 || out->n == 0)
                        return false;
                buf_char(out, '/');
        }
        buf_str(out, buf_view(&name));
        return buf_z(out)[0] == '/' && buf_check(out) == 0 && !str_eqz(buf_view(out), "/dev/null");
}

/* Returns the format of the part's lines. UserLogUseXML is a boolean, or 1 or 2 as HTCondor's writer reads
 * it. */
static unsigned part_options(struct server *s, uint64_t request, const struct ad *ad, uint32_t first)
{
        struct userlog *u = s->userlog;
        BUF_CLEANUP struct buf words = {.max = 1024};
        struct value v = {.type = VALUE_UNDEFINED};
        unsigned options = USERLOG_OPTIONS;

        if (core_member_text(s->core, request, first, u->format, &words) == 0)
                options = userlog_options(buf_view(&words), options, NULL);
        if (ad && ad_literal(ad, u->use_xml, &v) && (options & (USERLOG_XML | USERLOG_JSON)) == 0) {
                if (v.type == VALUE_BOOLEAN && v.boolean)
                        options |= USERLOG_XML;
                else if (v.type == VALUE_INTEGER)
                        options |= (unsigned)v.integer & (USERLOG_XML | USERLOG_JSON);
        }
        return options;
}

static bool part_init(struct server *s, uint64_t request, uint32_t part, struct logged_part *p)
{
        struct userlog *u = s->userlog;
        const struct ad *ad = core_request_ad(s->core, request, part);
        BUF_CLEANUP struct buf path = {0}, host = {.max = 256};
        bool late_name = core_part_late(s->core, request, part, u->user_log).p != NULL;

        if (core_part_members(s->core, request, part, &p->first, &p->end) != 0 || p->first >= p->end)
                return false;
        if (!late_name && (!ad || !ad_find(ad, u->user_log)))
                return false;
        p->notes = (ad && (ad_find(ad, u->notes) || ad_find(ad, u->user_notes))) ||
                   core_part_late(s->core, request, part, u->notes).p ||
                   core_part_late(s->core, request, part, u->user_notes).p;
        p->late = late_name || core_part_late(s->core, request, part, u->iwd).p;
        if (!p->late && !logged_path(s, request, (uint32_t)p->first, &path))
                return false;
        if (!p->late)
                p->path = buf_take(&path);
        p->options = part_options(s, request, ad, (uint32_t)p->first);
        if (core_member_text(s->core, request, (uint32_t)p->first, u->submit_host, &host) != 0 ||
            host.n == 0) {
                char name[256] = "localhost";

                gethostname(name, sizeof(name) - 1);
                buf_reset(&host);
                buf_addz(&host, name);
        }
        p->host = buf_take(&host);
        return true;
}

static void intern(struct server *s)
{
        struct userlog *u = s->userlog;
        struct symbols *symbols = core_symbols(s->core);

        if (u->user_log)
                return;
        u->user_log = symbols_intern(symbols, STR("UserLog"));
        u->format = symbols_intern(symbols, STR("UserLogFormat"));
        u->use_xml = symbols_intern(symbols, STR("UserLogUseXML"));
        u->iwd = symbols_intern(symbols, STR("Iwd"));
        u->log_domain = symbols_intern(symbols, STR("UserLogDomain"));
        u->domain = symbols_intern(symbols, STR("FileSystemDomain"));
        u->submit_host = symbols_intern(symbols, STR("SubmitHost"));
        u->notes = symbols_intern(symbols, STR("SubmitEventNotes"));
        u->user_notes = symbols_intern(symbols, STR("SubmitEventUserNotes"));
}

void userlog_set_format(struct server *s, struct submission *sub)
{
        if (!s->config.user_log)
                return;
        for (size_t i = 0; i < sub->part_count; i++) {
                struct submission_part *p = &sub->parts[i];
                bool has = false, says = false;

                for (size_t k = 0; k < p->attribute_count; k++) {
                        has |= str_ieqz(p->attributes[k].name, "UserLog");
                        says |= str_ieqz(p->attributes[k].name, "UserLogFormat") ||
                                str_ieqz(p->attributes[k].name, "UserLogUseXML");
                }
                if (has && !says)
                        submission_add_attribute(p, STR("UserLogFormat"), str_of(s->config.user_log), false);
        }
}

void userlog_check(const struct submission *sub, struct buf *warning)
{
        bool lost = false;

        for (size_t i = 0; i < sub->part_count; i++) {
                const struct submission_part *p = &sub->parts[i];
                bool has = false, domain = false;

                for (size_t k = 0; k < p->attribute_count; k++) {
                        has |= str_ieqz(p->attributes[k].name, "UserLog");
                        domain |= str_ieqz(p->attributes[k].name, "UserLogDomain") ||
                                  str_ieqz(p->attributes[k].name, "FileSystemDomain");
                }
                lost |= has && !domain;
        }
        if (lost)
                buf_printf(
                        warning,
                        "%slog: it is not written, for the job has no UserLogDomain or FileSystemDomain that "
                        "says which agents see its folder",
                        warning->n ? "; " : "");
}

static void parts_free(struct logged_part *parts, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                free(parts[i].path);
                free(parts[i].host);
        }
        free(parts);
}

/* Appends the filesystem domain of the member's log, or nothing. A job whose files are always transferred
 * has no FileSystemDomain, so that no agent uses the folder directly; its log has an attribute of its own
 * for the domain. */
static void domain_of(struct server *s, uint64_t request, uint32_t member, struct buf *out)
{
        const struct userlog *u = s->userlog;

        if (core_member_text(s->core, request, member, u->log_domain, out) == 0 && out->n > 0)
                return;
        buf_reset(out);
        if (core_member_text(s->core, request, member, u->domain, out) != 0)
                buf_reset(out);
}

struct logged *logged_new(struct server *s, uint64_t request)
{
        struct userlog *u = s->userlog;
        BUF_CLEANUP struct buf domain = {.max = 1024};
        struct logged_part *parts;
        struct core_request r;
        struct logged *l;
        bool any = false;

        intern(s);
        if (core_request_get(s->core, request, &r) != 0)
                return NULL;
        parts = mem_zalloc((r.part_count + 1) * sizeof(*parts));
        for (uint32_t i = 0; i < r.part_count; i++) {
                parts[i].has = part_init(s, request, i, &parts[i]);
                any |= parts[i].has;
                if (parts[i].has && domain.n == 0)
                        domain_of(s, request, (uint32_t)parts[i].first, &domain);
        }
        if (domain.n == 0) {
                if (any)
                        log_warn("msg=\"a user log is not written: the request has no UserLogDomain or "
                                 "FileSystemDomain\" "
                                 "request=%llu owner=\"%s\"",
                                 (unsigned long long)request, LOG_TEXT(r.owner));
                parts_free(parts, r.part_count);
                return NULL;
        }
        l = mem_new(struct logged);
        l->request = request;
        l->refs = 1;
        l->parts = parts;
        l->part_count = r.part_count;
        l->attempts = idmap_new();
        l->channel = channel_get(u, buf_view(&domain), r.owner);
        l->channel->users++;
        idmap_put(u->requests, request, l);
        u->changed = true;
        return l;
}

void logged_attempts_clear(struct logged *l)
{
        size_t at = 0;
        void *v;

        while (idmap_next(l->attempts, &at, NULL, &v))
                free(v);
        idmap_free(l->attempts);
        l->attempts = idmap_new();
}

void logged_unref(struct userlog *u, struct logged *l)
{
        if (--l->refs)
                return;
        logged_attempts_clear(l);
        idmap_free(l->attempts);
        parts_free(l->parts, l->part_count);
        channel_unuse(u, l->channel);
        free(l);
}

const struct logged_part *logged_part_of(const struct logged *l, uint64_t member)
{
        size_t low = 0, high = l->part_count;

        while (low + 1 < high) {
                size_t middle = (low + high) / 2;

                if (l->parts[middle].first <= member)
                        low = middle;
                else
                        high = middle;
        }
        return &l->parts[low];
}
