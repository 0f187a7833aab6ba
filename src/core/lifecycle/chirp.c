/* Attributes and log lines that the program of an attempt sets, attributes of its job that it reads, and the
 * other nodes of its job that it may start programs on.
 *
 * The program is the least trusted party, and the agent in between may not be better. Therefore the agent
 * must have the attempt, and the author of the job must have allowed such requests; attributes that decisions
 * depend on cannot be set; a value is a literal, which costs nothing to evaluate; and the data kept for one
 * job is bounded.
 */
#include "base/pack.h"
#include "classad/lex.h"
#include "classad/print.h"
#include "core/classes/member_ad.h"
#include "core/events/apply.h"
#include "core/lifecycle/edit.h"
#include "core/model/changes.h"
#include "core/model/core_parts.h"
#include "core/model/gang_rule.h"
#include "core/model/submission.h"

#define NAME_MAX_BYTES 128u
#define TEXT_MAX_BYTES 4096u
#define OWN_MAX_BYTES  (16u << 10) /* total of one job's attributes, packed */
#define REMARKS_MAX    10000u      /* for one job: each is an event */
#define LINE_MAX_BYTES 1024u

static bool is_true(const struct part *p, symbol name)
{
        struct value v;

        return p && p->job_template && ad_literal(p->job_template->ad, name, &v) && v.type == VALUE_BOOLEAN &&
               v.boolean;
}

bool core_chirp_allowed(struct core *c, uint64_t request, uint32_t part, bool ret_streams[2])
{
        const struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        ret_streams[0] = is_true(p, c->attr.StreamOut);
        ret_streams[1] = is_true(p, c->attr.StreamErr);
        return is_true(p, c->attr.WantIOProxy);
}

/* Returns whether the agent may make requests for the program, or send its output while it runs. */
static bool is_allowed(struct core *c, const struct part *p)
{
        return is_true(p, c->attr.WantIOProxy) || is_true(p, c->attr.StreamOut) ||
               is_true(p, c->attr.StreamErr);
}

/* NULL, with err: this agent does not have the attempt. */
static struct job *job_of_attempt(struct core *c, const char *agent, const struct core_attempt *at,
                                  struct err *err)
{
        struct request *r = request_find(c, at->request);
        struct job *j = r && at->member < r->count ? request_job(r, at->member) : NULL;

        if (j && j->queue && j->fence == at->fence && strcmp(j->queue->agent->name, agent) == 0)
                return j;
        err_set(err, CORE_UNKNOWN, "the job has another attempt, or has ended");
        return NULL;
}

static int job_of_chirp(struct core *c, const char *agent, const struct core_attempt *at, struct job **ret,
                        struct err *err)
{
        struct job *j = job_of_attempt(c, agent, at, err);

        if (!j)
                return CORE_UNKNOWN;
        if (!is_allowed(c, request_part(j->request, at->member, NULL)))
                return err_set(err, CORE_FORBIDDEN, "the job was not submitted with want_io_proxy = true");
        *ret = j;
        return 0;
}

int core_chirp_check(struct core *c, const char *agent, const struct core_attempt *at, struct err *err)
{
        struct job *j;

        return job_of_chirp(c, agent, at, &j, err);
}

static int check_count(const struct job *j, struct err *err)
{
        return j->remarks < REMARKS_MAX
                       ? 0
                       : err_set(err, CORE_TOO_MANY,
                                 "the job has set attributes and written lines %u times, which is the most",
                                 REMARKS_MAX);
}

/* Returns whether the core knows the attribute, so that some decision may depend on it. */
static bool is_known(const struct core *c, struct str name)
{
        const symbol *all = (const symbol *)(const void *)&c->attr, s = symbols_find(c->symbols, name);

        for (size_t i = 0; s && i < sizeof(c->attr) / sizeof(symbol); i++)
                if (all[i] == s)
                        return true;
        return false;
}

static int check_name(const struct core *c, struct str name, struct err *err)
{
        const char *why;

        if (name.n == 0 || name.n > NAME_MAX_BYTES || !lex_is_name(name))
                return err_set(err, CORE_INVALID,
                               "an attribute's name has letters, digits and _ only, %u at most",
                               NAME_MAX_BYTES);
        why = is_known(c, name) ? "the server decides by it" : edit_refused(name, &name);
        return why ? err_set(err, CORE_INVALID, STR_FMT " cannot be set by the job: %s", STR_ARG(name), why)
                   : 0;
}

/* Parses a text into symbols that are freed with it, so that a refused text leaves no names behind. */
static int check_text(struct core *c, struct str text, struct err *err)
{
        struct symbols_use *names, *before;
        struct ad *ad;
        struct value v;
        symbol name = c->attr.ExitReason;
        bool ok;

        if (text.n == 0)
                return 0;
        if (text.n > TEXT_MAX_BYTES)
                return err_set(err, CORE_INVALID, "a value has at most %u bytes", TEXT_MAX_BYTES);
        names = symbols_use_new(c->symbols, STR_NONE);
        before = symbols_use_set(c->symbols, names);
        ad = ad_new(c->symbols);
        ok = ad_set_text(ad, name, text, NULL) == 0 && ad_literal(ad, name, &v);
        ad_free(ad);
        symbols_use_set(c->symbols, before);
        symbols_use_free(names);
        return ok ? 0
                  : err_set(err, CORE_INVALID,
                            "a value is a number, true, false, undefined or a text in double quotes");
}

static void emit(struct core *c, struct event *e, const struct core_attempt *at)
{
        e->request = at->request;
        e->fence = at->fence;
        set_add(&e->members, at->member);
        core_emit(c, e, NULL);
        event_deinit(e);
}

int core_chirp_set(struct core *c, const char *agent, const struct core_attempt *at, struct str name,
                   struct str text, struct err *err)
{
        BUF_CLEANUP struct buf change = {0}, all = {0};
        struct job *j;
        int r = job_of_chirp(c, agent, at, &j, err);

        text = str_trim(text);
        if (!r)
                r = check_name(c, name, err);
        if (!r)
                r = check_text(c, text, err);
        if (!r)
                r = check_count(j, err);
        if (r)
                return r;
        changes_add(&change, name, false, text);
        changes_merge(&all, str_make(j->own, j->own_n), buf_view(&change));
        if (!symbols_known(c->symbols, name) &&
            symbols_use_full(request_part(j->request, at->member, NULL)->job_template->names))
                return err_set(err, CORE_TOO_MANY,
                               "its owner's jobs have as many names of attributes as they may");
        if (all.n > OWN_MAX_BYTES)
                return err_set(err, CORE_TOO_MANY, "the attributes that a job sets have at most %u KiB",
                               OWN_MAX_BYTES >> 10);
        emit(c, &(struct event){.type = EVENT_ATTRIBUTES, .values = buf_view(&change)}, at);
        return 0;
}

int core_chirp_get(struct core *c, const char *agent, const struct core_attempt *at, struct str name,
                   struct buf *to, struct err *err)
{
        const struct expr *x = NULL;
        struct job *j;
        struct ad *ad;
        symbol s;
        int r = job_of_chirp(c, agent, at, &j, err);

        if (r)
                return r;
        s = symbols_find(c->symbols, name);
        ad = member_ad_some(c, j->request, at->member, j, &s, 1);
        s = symbols_find(c->symbols, name); /* the ad may be the first to have it */
        x = s ? ad_find(ad, s) : NULL;
        if (x)
                expr_print(to, x, c->symbols);
        ad_free(ad);
        return x ? 0
                 : err_set(err, CORE_INVALID, "the job has no attribute " STR_FMT,
                           STR_ARG(str_head(name, NAME_MAX_BYTES)));
}

int core_chirp_remark(struct core *c, const char *agent, const struct core_attempt *at, struct str line,
                      struct err *err)
{
        BUF_CLEANUP struct buf clean = {0};
        struct job *j;
        int r = job_of_chirp(c, agent, at, &j, err);

        if (!r)
                r = check_count(j, err);
        if (r)
                return r;
        line = str_head(str_trim(line), LINE_MAX_BYTES);
        for (size_t i = 0; i < line.n; i++)
                buf_char(&clean, (unsigned char)line.p[i] < ' ' || line.p[i] == 0x7f ? ' ' : line.p[i]);
        emit(c, &(struct event){.type = EVENT_REMARK, .reason = buf_view(&clean)}, at);
        return 0;
}

/* ---- programs on other nodes */

bool core_launch_allowed(struct core *c, uint64_t request, uint32_t part)
{
        const struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p && p->job_template && p->job_template->gang.launches;
}

int core_launch_node(struct core *c, const char *agent, const struct core_attempt *at, uint32_t node,
                     struct core_attempt *ret, const char **ret_agent, struct err *err)
{
        struct job *j = job_of_attempt(c, agent, at, err), *other;
        const struct part *p = j ? request_part(j->request, at->member, NULL) : NULL;
        uint32_t first, size;

        if (!j)
                return CORE_UNKNOWN;
        if (!p->job_template || !p->job_template->gang.launches ||
            !gang_of(j->request, at->member, &first, &size))
                return err_set(err, CORE_FORBIDDEN, "the job was not submitted with universe = parallel");
        if (node >= size)
                return err_set(err, CORE_INVALID, "the job has no node %u: its nodes are 0 to %u", node,
                               size - 1);
        other = request_job(j->request, first + node);
        if (!other || !other->queue || other->fence != at->fence || other->state != JOB_RUNNING)
                return err_set(err, CORE_UNKNOWN, "node %u of the job does not run", node);
        *ret = (struct core_attempt){at->request, first + node, at->fence};
        *ret_agent = other->queue->agent->name;
        return 0;
}
