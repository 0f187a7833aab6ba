/* A listing shows the command and arguments of each job. If they are the same for all jobs of a part they
 * are evaluated once. If they have macros, the text with the macros is evaluated once and expanded for
 * each job. */
#include "server/history/row.h"
#include "server/loop/expressions.h"

#include <stdio.h>

#include "base/job/macro.h"
#include "classad/eval.h"
#include "classad/print.h"
#include "core/model/attributes.h"
#include "core/query.h"
#include "server/loop/words.h"

void row_maker_init(struct row_maker *m, struct server *s, struct arena *a)
{
        *m = (struct row_maker){.server = s,
                                .arena = a,
                                .attr = mem_new(struct attributes),
                                .names = symbols_use_new(core_symbols(s->core), STR_NONE)};
        symbols_use_limit(m->names, ROW_NAMES_MAX);
        attributes_intern(m->attr, core_symbols(s->core));
}

void row_maker_deinit(struct row_maker *m)
{
        free(m->attr);
        symbols_use_free(m->names);
}

static struct str row_text_of(struct row_maker *m, struct eval *ev, const struct ad *ad, symbol name,
                              bool *ret_late)
{
        struct str late = core_part_late(m->server->core, m->request, m->part, name), v = STR_NONE;
        struct symbols_use *before;
        struct ad *own;

        *ret_late = late.p != NULL;
        if (!late.p) {
                eval_string(ev, ad, NULL, name, &v);
                return arena_str(m->arena, v);
        }
        before = symbols_use_set(core_symbols(m->server->core), m->names);
        own = ad_new(core_symbols(m->server->core));
        ad_set_parent(own, ad);
        if (ad_set_text(own, name, late, NULL) == 0)
                eval_string(ev, own, NULL, name, &v);
        v = arena_str(m->arena, v);
        ad_free(own);
        symbols_use_set(core_symbols(m->server->core), before);
        return v;
}

static void load_part(struct row_maker *m, uint64_t request, uint32_t part)
{
        const struct ad *ad = core_request_ad(m->server->core, request, part);
        struct core_request r;
        struct eval ev;

        m->request = request;
        m->part = part;
        m->cmd = m->args = STR_NONE;
        m->owner =
                core_request_get(m->server->core, request, &r) == 0 ? arena_str(m->arena, r.owner) : STR_NONE;
        if (!ad)
                return;
        expressions_read_init(&ev, r.submitted_ms / 1000);
        m->cmd = row_text_of(m, &ev, ad, m->attr->DroverCommand, &m->cmd_late);
        m->args_late = false;
        if (m->cmd.n == 0) {
                m->cmd = row_text_of(m, &ev, ad, m->attr->Cmd, &m->cmd_late);
                m->args = row_text_of(m, &ev, ad, m->attr->Arguments, &m->args_late);
        }
        if (m->args.n == 0 && !ad_find(ad, m->attr->DroverCommand))
                m->args = row_text_of(m, &ev, ad, m->attr->Args, &m->args_late);
        eval_deinit(&ev);
}

static struct str expand(struct row_maker *m, uint32_t member, struct str text)
{
        BUF_CLEANUP struct buf out = {.max = 65536};

        if (core_member_expand(m->server->core, m->request, member, text, &out) != 0)
                return text;
        return arena_str(m->arena, buf_view(&out));
}

bool row_make(struct row_maker *m, uint64_t request, uint32_t member, struct row *ret)
{
        struct core_job j;

        if (core_job_get(m->server->core, request, member, &j) != 0)
                return false;
        if (m->request != request || m->part != j.part)
                load_part(m, request, j.part);
        *ret = (struct row){
                .request = request,
                .member = member,
                .state = j.state,
                .status = job_state_status(j.state),
                .owner = m->owner,
                .agent = j.agent ? arena_str(m->arena, str_of(j.agent)) : STR_NONE,
                .queue = j.queue ? arena_str(m->arena, str_of(j.queue)) : STR_NONE,
                .starts = j.starts,
                .removing = j.removing,
                .ended = j.ended,
                .signaled = j.signaled,
                .exit_code = j.exit_code,
                .hold_code = j.hold_code,
                .hold_subcode = j.hold_subcode,
                .submitted_ms = j.submitted_ms,
                .entered_ms = j.entered_ms,
                .started_ms = j.started_ms,
                /* an earlier time belongs to the attempt before */
                .ended_ms = j.ended_ms >= j.started_ms ? j.ended_ms : 0,
                .priority = j.priority,
                .past = j.state == JOB_COMPLETED || j.state == JOB_REMOVED,
        };
        if (j.away && !m->server->following) /* agents are connected to the leader */
                ret->unreachable = STR("its agent is away");
        else if (j.unreachable)
                ret->unreachable = arena_str(m->arena, str_of(j.unreachable));
        if (j.waits) {
                BUF_CLEANUP struct buf text = {0};

                words_dependencies(&text, m->server->core, request, member);
                ret->waits_for = arena_str(m->arena, buf_view(&text));
        }
        if (j.hold_reason.n)
                ret->hold_reason = arena_str(m->arena, j.hold_reason);
        ret->cmd = m->cmd_late ? expand(m, member, m->cmd) : m->cmd;
        ret->args = m->args_late ? expand(m, member, m->args) : m->args;
        return true;
}

struct str row_print_ad(const struct ad *ad, struct str names, struct arena *a)
{
        BUF_CLEANUP struct buf out = {0};
        struct symbols *symbols = ad_symbols(ad);
        struct ad *some;
        struct str name;

        if (str_eqz(names, "*")) {
                ad_print_json(&out, ad, true);
                return arena_str(a, buf_view(&out));
        }
        some = ad_new(symbols);
        while (str_cut(&names, ',', &name)) {
                symbol sym = symbols_find(symbols, str_trim(name));
                const struct expr *e = sym ? ad_find(ad, sym) : NULL;
                BUF_CLEANUP struct buf text = {0};

                if (!e)
                        continue;
                expr_print(&text, e, symbols);
                ad_set_text(some, sym, buf_view(&text), NULL);
                ad_set_spelling(some, sym, ad_spelling(ad, sym));
        }
        ad_print_json(&out, some, false);
        ad_free(some);
        return arena_str(a, buf_view(&out));
}

static void write_time(struct json *j, const char *key, int64_t ms)
{
        json_key(j, key);
        if (ms > 0)
                json_int(j, ms);
        else
                json_null(j);
}

static void write_text(struct json *j, const char *key, struct str s)
{
        json_key(j, key);
        if (s.n)
                json_str(j, s);
        else
                json_null(j);
}

void row_write_exit(struct json *j, const struct row *r)
{
        json_key(j, "exit_code");
        if (r->ended && !r->signaled)
                json_int(j, r->exit_code);
        else
                json_null(j);
        json_key(j, "exit_signal");
        if (r->ended && r->signaled)
                json_int(j, r->exit_code);
        else
                json_null(j);
}

void row_write(struct json *j, const struct row *r)
{
        char id[48];

        snprintf(id, sizeof(id), "%llu.%u", (unsigned long long)r->request, r->member);
        json_open(j, '{');
        json_kstrz(j, "id", id);
        json_kint(j, "request", (int64_t)r->request);
        json_kint(j, "member", r->member);
        json_kstr(j, "owner", r->owner);
        json_kstrz(j, "state", job_state_name(r->state));
        json_kint(j, "status", r->status);
        write_text(j, "agent", r->agent);
        write_text(j, "queue", r->queue);
        write_text(j, "unreachable", r->unreachable);
        json_kint(j, "starts", r->starts);
        row_write_exit(j, r);
        if (r->state == JOB_HELD) {
                json_kint(j, "hold_code", r->hold_code);
                json_kint(j, "hold_subcode", r->hold_subcode);
                json_kstr(j, "hold_reason", r->hold_reason);
        }
        if (r->waits_for.n)
                json_kstr(j, "waits_for", r->waits_for);
        if (r->priority)
                json_kint(j, "priority", r->priority);
        json_kint(j, "submitted_ms", r->submitted_ms);
        write_time(j, "entered_ms", r->entered_ms);
        write_time(j, "started_ms", r->started_ms);
        write_time(j, "ended_ms", r->ended_ms);
        write_text(j, "cmd", r->cmd);
        write_text(j, "args", r->args);
        if (r->ad.p) {
                json_key(j, "ad");
                json_raw(j, r->ad);
        }
        json_close(j, '}');
}
