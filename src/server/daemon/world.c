#include "server/daemon/world.h"

#include "base/system/log.h"
#include "server/agents/agents.h"
#include "server/agents/attempt_location.h"
#include "server/agents/grants.h"
#include "server/calls/waits.h"
#include "server/history/ledger.h"
#include "server/history/prune.h"
#include "server/history/request_record.h"
#include "server/history/usage.h"
#include "server/loop/turn.h"
#include "server/metrics/metrics.h"
#include "server/notices/notices.h"
#include "server/userlog/userlog.h"

/* Logs a change of a node that no admin ordered, because an admin should look at it. */
static void tell_admin(const struct event *e)
{
        bool trouble = str_eqz(e->who, NODE_BY_SERVER) || e->next == NODE_FAILED;

        log_line(trouble && e->next != NODE_UP && e->next != NODE_DRAINED ? LOG_WARN : LOG_INFO,
                 "msg=\"a node is %s\" name=\"%s\" by=\"%s\" reason=\"%s\"", sm_state(&node_states, e->next),
                 LOG_TEXT(e->agent), LOG_TEXT(e->who), LOG_TEXT(e->reason));
}

static void on_event(void *arg, const struct event *e)
{
        struct server *s = arg;
        BUF_CLEANUP struct buf record = {0};

        event_pack(&record, e);
        store_batch_event(e->type == EVENT_ACCEPTED || e->type == EVENT_STARTED ? turn_inform(s->turn)
                                                                                : turn_batch(s->turn),
                          buf_view(&record));
        waits_changed(s, e->request);
        attempt_locations_event(s, e);
        userlog_event(s, e);
        notices_event(s, e);
        metrics_event(s->metrics, s->core, e);
        if (e->type == EVENT_NODE)
                tell_admin(e);
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
