/* test_help: a core in a world that writes down what is assigned, and submissions in a line; for tests. */
#pragma once
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/accounts/limit.h"
#include "core/accounts/share.h"
#include "core/classes/admission.h"
#include "core/classes/bucket.h"
#include "core/classes/fill.h"
#include "core/classes/job_class.h"
#include "core/classes/member_ad.h"
#include "core/classes/split.h"
#include "core/core.h"
#include "core/data/cost.h"
#include "core/data/cost_class.h"
#include "core/data/data.h"
#include "core/data/data_state.h"
#include "core/data/file_identity.h"
#include "core/data/inflight_transfers.h"
#include "core/data/inputs.h"
#include "core/data/label.h"
#include "core/data/locality.h"
#include "core/estimate/busy.h"
#include "core/estimate/estimate.h"
#include "core/events/apply.h"
#include "core/events/history.h"
#include "core/explain/why.h"
#include "core/fairness/charge.h"
#include "core/fairness/order.h"
#include "core/fairness/qos.h"
#include "core/forecast/capacity_timeline.h"
#include "core/forecast/eta.h"
#include "core/forecast/eta_limit.h"
#include "core/forecast/eta_share.h"
#include "core/forecast/eta_turn.h"
#include "core/forecast/forecast.h"
#include "core/forecast/quote.h"
#include "core/gang/gang.h"
#include "core/gang/reserve.h"
#include "core/index/index.h"
#include "core/index/side.h"
#include "core/learned.h"
#include "core/lifecycle/deferral.h"
#include "core/lifecycle/delegation.h"
#include "core/lifecycle/draft.h"
#include "core/lifecycle/leases.h"
#include "core/lifecycle/policy.h"
#include "core/lifecycle/retention.h"
#include "core/match/choose.h"
#include "core/match/delay_scheduling.h"
#include "core/match/dispatch.h"
#include "core/match/gang_place.h"
#include "core/match/matching.h"
#include "core/match/overrun.h"
#include "core/match/places.h"
#include "core/model/agent.h"
#include "core/model/amounts.h"
#include "core/model/attributes.h"
#include "core/model/core_parts.h"
#include "core/model/cost_class.h"
#include "core/model/delegation.h"
#include "core/model/event.h"
#include "core/model/forgotten.h"
#include "core/model/gang_rule.h"
#include "core/model/index_node.h"
#include "core/model/item.h"
#include "core/model/job.h"
#include "core/model/job_class.h"
#include "core/model/job_record.h"
#include "core/model/job_template.h"
#include "core/model/listeners.h"
#include "core/model/need.h"
#include "core/model/pending_match.h"
#include "core/model/place_wait.h"
#include "core/model/precedence.h"
#include "core/model/request.h"
#include "core/model/submission.h"
#include "core/model/suits.h"
#include "core/model/walk.h"
#include "core/query.h"

static struct buf bare_assigned; /* "n1/default 1 0-3\n" */

static inline void bare_event(void *arg, const struct event *e)
{
        (void)arg, (void)e;
}
static inline void bare_history(void *arg, const struct past_job *f)
{
        (void)arg, (void)f;
}
static inline void bare_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg, (void)request, (void)record;
}
static inline void bare_forget(void *arg, uint64_t request)
{
        (void)arg, (void)request;
}
static inline void bare_assign(void *arg, const struct core_assignment *a)
{
        struct fill one;

        (void)arg;
        buf_printf(&bare_assigned, "%s/%s %llu ", a->agent, a->queue, (unsigned long long)a->request);
        set_print(&bare_assigned, a->members);
        for (struct str rest = a->values; fill_next(&rest, &one);)
                buf_printf(&bare_assigned, " " STR_FMT "=" STR_FMT, STR_ARG(one.inside), STR_ARG(one.value));
        buf_char(&bare_assigned, '\n');
}
static inline void bare_control(void *arg, const char *agent, enum core_control what, uint64_t request,
                                uint32_t fence, const struct set *members)
{
        (void)arg, (void)agent, (void)what, (void)request, (void)fence, (void)members;
}
static struct buf bare_went; /* "go n1 1 0-1 fence 3\n" */
static inline void bare_go(void *arg, const char *agent, uint64_t request, uint32_t fence,
                           const struct set *members)
{
        (void)arg;
        buf_printf(&bare_went, "go %s %llu ", agent, (unsigned long long)request);
        set_print(&bare_went, members);
        buf_printf(&bare_went, " fence %u\n", fence);
}
static inline int bare_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg, (void)request, (void)ret;
        return err_set(err, -ENOENT, "there is no log");
}

static inline int bare_core(void **state)
{
        static const struct core_world world = {NULL,        bare_event,  bare_history, bare_keep,
                                                bare_forget, bare_assign, bare_control, bare_load,
                                                NULL,        bare_go};
        static const struct core_config config = {.lease_ms = 86400000};

        *state = core_new(&config, &world);
        core_clock(*state, 1700000000000, 1000);
        return 0;
}
static inline int bare_core_free(void **state)
{
        core_free(*state);
        buf_deinit(&bare_assigned);
        buf_deinit(&bare_went);
        return 0;
}

/* One part of so many jobs, one for each row of items if there are some; attributes end with NULL; the text
 * of one with '~' before its name is late. Request numbers go up from 1. */
static inline int try_submit(struct core *c, const char *items, uint64_t rows, const char *const *attributes,
                             struct err *err)
{
        static unsigned char serial;
        struct submission s = {.owner = STR("ann@lab"), .at_ms = 1700000000000};
        struct submission_part *p = submission_add_part(&s);
        bool existing;
        uint64_t id;
        int r;

        s.uuid[0] = ++serial;
        for (; *attributes; attributes += 2) {
                bool late = attributes[0][0] == '~';

                submission_add_attribute(p, str_of(attributes[0] + late), str_of(attributes[1]), late);
        }
        if (items)
                submission_add_variable(p, STR("f"));
        p->items = str_of(items);
        p->rows = items ? rows : 1;
        p->steps = items ? 1 : rows;
        r = core_submit(c, &s, false, &id, &existing, err);
        submission_deinit(&s);
        return r;
}

static inline struct request *submit(struct core *c, const char *items, uint64_t rows,
                                     const char *const *attributes)
{
        struct err err = {""};

        if (try_submit(c, items, rows, attributes, &err) != 0)
                fail_msg("%s", err.text);
        return request_find(c, core_request_last(c));
}

/* The number of a file that is everybody's; of one at a URL that no store has, and so ann's alone. */
static inline uint64_t id_of(const char *url)
{
        return file_id(str_of(url));
}
static inline uint64_t own_id_of(const char *url)
{
        BUF_CLEANUP struct buf key = {0};

        buf_printf(&key, "ann%%40lab\n%s", url);
        return file_id(buf_view(&key));
}

static inline struct queue *offer(struct core *c, const char *agent, const char *ad)
{
        const struct core_offer o = {
                .agent = agent, .queue = "default", .serial = 1, .ad = str_of(ad), .jobs_max = 100};

        core_agent_connected(c, agent);
        assert_int_equal(core_offer(c, &o, NULL), 0);
        return agent_find(c, agent)->queues;
}

/* Attributes of a job that reads http://a/big, 1 GB, and runs for 100 s. */
static const char *const big_file_100_s[] = {"TransferInput",
                                             "\"http://a/big\"",
                                             "TransferInputSizes",
                                             "\"1000000000\"",
                                             "ExpectedRunTime",
                                             "100",
                                             NULL};

/* What the agent has measured to every store. */
static inline void link_to(struct core *c, const char *agent, uint32_t latency_us, uint64_t bytes_per_s)
{
        const struct core_link link = {STR(""), latency_us, bytes_per_s, 0};

        core_links(c, agent, &link, 1);
}

/* The place of the attempt is `agent`; it starts now. */
static inline void started(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        struct set one = {0};
        struct core_attempts a = {request, request_job(request_find(c, request), member)->fence, &one};

        set_add(&one, member);
        core_started(c, agent, &a, c->now_ms);
        set_deinit(&one);
}

static inline void ended(struct core *c, const char *agent, uint64_t request, uint32_t member)
{
        const struct job *j = request_job(request_find(c, request), member);
        const struct core_result r = {.request = request,
                                      .member = member,
                                      .fence = j->fence,
                                      .started_ms = j->started_ms,
                                      .ended_ms = c->now_ms};

        assert_true(core_result(c, agent, &r));
}

/* What has been assigned since the last call. */
static inline void expect_assigned(struct core *c, const char *text)
{
        core_match(c);
        assert_string_equal(buf_z(&bare_assigned), text);
        buf_reset(&bare_assigned);
}

static inline void pass_time(struct core *c, int64_t ms)
{
        core_clock(c, c->now_ms + ms, c->steady_ms + ms);
        while (core_tick(c) == 0)
                ;
}

static inline void eta_renew(struct core *c)
{
        uint32_t look = 0;

        while (core_eta_some(c, &look))
                ;
}

/* Attributes as name, text pairs up to NULL, without macros. The request's number; 0: it was refused. */
static inline uint64_t test_submit(struct core *c, const char *owner, uint64_t steps,
                                   const char *const *pairs)
{
        struct submission s = {.owner = str_of(owner), .at_ms = 1700000000000};
        struct submission_part *p = submission_add_part(&s);
        static uint64_t number;
        uint64_t id = 0;
        bool existing;

        number++;
        memcpy(s.uuid, &number, sizeof(number));
        s.uuid[15] = 1; /* try_submit counts too */
        p->steps = steps;
        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]), false);
        if (core_submit(c, &s, false, &id, &existing, NULL))
                id = 0;
        submission_deinit(&s);
        return id;
}
