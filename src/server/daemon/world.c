#include "server/daemon/world.h"

#include "base/format/hex.h"
#include "base/system/log.h"
#include "classad/eval.h"
#include "core/query.h"
#include "server/access/origin.h"
#include "server/agents/agents.h"
#include "server/agents/attempt_location.h"
#include "server/agents/grants.h"
#include "server/agents/reserved.h"
#include "server/calls/waits.h"
#include "server/history/ledger.h"
#include "server/history/prune.h"
#include "server/history/request_record.h"
#include "server/history/usage.h"
#include "server/loop/expressions.h"
#include "server/loop/settled.h"
#include "server/loop/turn.h"
#include "server/metrics/metrics.h"
#include "server/notices/notices.h"
#include "server/userlog/userlog.h"

/* Returns whether an admin should look at the node: it has failed, or drains itself, and nobody ordered that.
 */
static bool is_trouble(const struct event *e)
{
        bool own = str_eqz(e->who, NODE_BY_SERVER) || str_eqz(e->who, NODE_BY_NODE);

        return e->code == NODE_REPORT || (own && (e->next == NODE_FAILED || e->next == NODE_DRAINING));
}

/* Logs a change of a node, and sends it to admins if they should look at it. */
static void tell_admin(struct server *s, const struct event *e)
{
        if (is_trouble(e))
                notices_node(s, e);
        log_line(is_trouble(e) ? LOG_WARN : LOG_INFO,
                 "msg=\"a node is %s\" name=\"%s\" by=\"%s\" reason=\"%s\"", sm_state(&node_states, e->next),
                 LOG_TEXT(e->agent), LOG_TEXT(e->who), LOG_TEXT(e->reason));
}

/* Writes what logs call the event's jobs by: see Origin in wire/drover.proto. Of jobs from another server it
 * is that of the first one. */
static void print_trace(struct server *s, const struct event *e, struct buf *out)
{
        symbol name = symbols_intern(core_symbols(s->core), STR(ORIGIN_TRACE));
        struct core_delegation hop = {0};
        struct core_request r;
        struct str trace = STR_NONE;
        struct ad *ad = NULL;
        char uuid[HEX_UUID];

        if (core_request_get(s->core, e->request, &r) != 0)
                return;
        core_request_delegation(s->core, e->request, &hop);
        if (hop.origin)
                ad = core_job_ad_some(s->core, e->request,
                                      set_count(&e->members) ? (uint32_t)set_first(&e->members) : 0, &name,
                                      1);
        if (ad) {
                struct eval eval;

                expressions_read_init(&eval, e->at_ms / 1000);
                if (eval_string(&eval, ad, NULL, name, &trace) && trace.n <= ORIGIN_TRACE_MAX)
                        buf_str(out, trace);
                eval_deinit(&eval);
                ad_free(ad);
        }
        hex_print_uuid(uuid, r.uuid);
        if (out->n == 0)
                buf_addz(out, uuid);
}

static void log_event(struct server *s, const struct event *e)
{
        BUF_CLEANUP struct buf members = {.max = 256}, trace = {0};

        set_print(&members, &e->members);
        print_trace(s, e, &trace);
        log_debug("msg=\"an event of jobs\" event=%s job=%llu members=\"%s\" fence=%u agent=\"%s\" "
                  "trace=\"%s\"",
                  event_name(e->type), (unsigned long long)e->request, buf_z(&members), e->fence,
                  LOG_TEXT(e->agent), LOG_TEXT(buf_view(&trace)));
}

static void on_event(void *arg, const struct event *e)
{
        struct server *s = arg;
        BUF_CLEANUP struct buf record = {0};
        bool informs = e->type == EVENT_ACCEPTED || e->type == EVENT_STARTED;

        event_pack(&record, e);
        store_batch_event(informs ? turn_inform(s->turn) : turn_batch(s->turn), buf_view(&record));
        settled_event(s->settled, e, turn_commit(s->turn), informs);
        waits_changed(s, e->request);
        attempt_locations_event(s, e);
        userlog_event(s, e);
        notices_event(s, e);
        metrics_event(s->metrics, s->core, e);
        if (e->type == EVENT_ADVANCE)
                reserved_changed(s);
        if (e->type == EVENT_NODE)
                tell_admin(s, e);
        else if (e->request && log_on(LOG_DEBUG))
                log_event(s, e);
}

static void on_replayed(void *arg, const struct event *e)
{
        userlog_event(arg, e);
}

static void on_history(void *arg, const struct past_job *f)
{
        struct server *s = arg;

        store_batch_history(turn_batch(s->turn), f);
        prune_row_added(s);
        notices_ended(s, f);
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        struct server *s = arg;
        char room[REQUEST_RECORD_NAME_MAX];

        store_batch_blob_put(turn_batch(s->turn), request_record_name(room, request), record);
}

static void on_forget(void *arg, uint64_t request)
{
        agents_forget(arg, request);
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        agents_assign(arg, a);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        agents_control(arg, agent, what, request, fence, members);
}

static void on_go(void *arg, const char *agent, uint64_t request, uint32_t fence, const struct set *members)
{
        agents_go(arg, agent, request, fence, members);
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        return request_record_get(arg, request, ret, err);
}

static void on_credential(void *arg, uint64_t request, struct str owner, bool handed_on,
                          struct file_credential *ret)
{
        grants_credential(arg, request, owner, handed_on, ret);
}

static int64_t on_heard(void *arg, const char *agent, int64_t known_ms)
{
        return agents_heard(arg, agent, known_ms);
}

static void on_movement(void *arg, const struct bank_entry *e)
{
        ledger_movement(arg, e);
}

static void on_usage(void *arg, const struct core_usage *u)
{
        usage_add(arg, u);
}

void world_init(struct core_world *w, struct server *s)
{
        *w = (struct core_world){
                .arg = s,
                .event = on_event,
                .history = on_history,
                .keep = on_keep,
                .forget = on_forget,
                .assign = on_assign,
                .control = on_control,
                .load = on_load,
                .replayed = on_replayed,
                .go = on_go,
                .credential = on_credential,
                .heard = on_heard,
                .movement = on_movement,
                .usage = on_usage,
        };
}
