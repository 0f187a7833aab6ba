/* plan: decides how many nodes of each shape to start, and which to drain.
 *
 * Pure arithmetic: the caller gives the shapes, their nodes, the waiting jobs and the budget; the plan says
 * what to start, what to drain, and for each shape and each group of jobs why not more. No state is kept
 * between plans.
 *
 * Rules. Jobs are first placed on nodes that run or boot. For the rest nodes are added one at a time, in
 * turns of the groups of jobs, so that no group waits for another. Each node has the shape with the lowest
 * cost for each job that it would run, for as long as it would fetch the job's files and run it, among those
 * that may be started now; a shape that is closed (no
 * capacity) or full is passed over for the next best. A node that was idle for a while is drained at the end
 * of its paid period, unless jobs want it or its shape has a minimum; a node whose next period cannot be
 * paid is drained even if it is busy, or is drained by another's order. A period of each node is kept back
 * from the month's budget, for the time that draining takes.
 *
 * Money is in millionths of the unit of the prices, time in milliseconds, memory in MiB, disk in KiB. Texts
 * are borrowed, also by the plan.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

#define PLAN_NONE       SIZE_MAX
#define PLAN_STARTS_MAX 200u /* nodes wished in one plan */

struct plan_room {
        int64_t cpus, memory_mib, disk_kib;
};
struct plan_shape {
        struct str name;
        size_t provisioner; /* number below plan_input.provisioner_count */
        struct plan_room room;
        int64_t price_micro; /* price of an hour */
        uint32_t min, max;
        int64_t boot_ms;    /* learned boot time; 0: not known */
        const char *closed; /* reason why none may be started now; NULL: they may be */
};
struct plan_provisioner {
        uint32_t max;      /* most nodes */
        int64_t period_ms; /* length of a paid period */
        int64_t stop_ms;   /* lead time of draining before the end of the paid period */
        int64_t idle_ms;   /* idle time after which a node is drained */
};
#define PLAN_RUN_MS 3600000 /* assumed run time, where it has to be compared with transfers */
enum plan_node_state {
        PLAN_NODE_BOOTS,
        PLAN_NODE_RUNS,
        PLAN_NODE_LEAVES, /* the wishlist drains it, or it has failed: it is stopped soon */
        PLAN_NODE_CLOSED  /* it gets no jobs by another's order, and costs until that is withdrawn */
};
struct plan_node {
        size_t shape; /* PLAN_NONE: a shape that is no longer configured; the node counts as cost, and is
                         drained when idle */
        size_t provisioner;
        enum plan_node_state state;
        struct plan_room free; /* of a running node */
        struct str account;    /* account for whose jobs it was started; empty: none */
        int64_t price_micro;
        int64_t idle_ms;      /* time without jobs; -1: it has jobs */
        int64_t paid_left_ms; /* rest of the paid period */
};
/* A group of jobs that are alike for the plan. */
struct plan_demand {
        uint64_t jobs;
        uint64_t slots; /* number of jobs to run at a time; 1 to `jobs` */
        struct plan_room need;
        struct str account;
        const bool *suits;       /* for each shape */
        int64_t run_ms;          /* run time of a job; 0: not known, and taken to be the same everywhere */
        const int64_t *fetch_ms; /* for each shape: time in which a new node fetches a job's files; NULL: 0 */
};
struct plan_account {
        struct str name;
        uint32_t max; /* most nodes started for it */
};
struct plan_rules {
        uint32_t max;        /* most nodes of all provisioners; 0: no bound */
        int64_t hour_micro;  /* most for the prices of all nodes; -1: no bound */
        int64_t month_micro; /* budget of the month; -1: no bound */
        int64_t spent_micro; /* spent this month */
};
struct plan_input {
        const struct plan_provisioner *provisioners;
        size_t provisioner_count;
        const struct plan_shape *shapes;
        size_t shape_count;
        const struct plan_node *nodes;
        size_t node_count;
        const struct plan_demand *demands; /* in the order of their priority */
        size_t demand_count;
        const struct plan_account *accounts;
        size_t account_count;
        struct plan_rules rules;
};

enum plan_reason {
        PLAN_WISHED,
        PLAN_NO_JOBS, /* no waiting job wants more of it */
        PLAN_UNSUITED,
        PLAN_DEARER, /* another shape costs less for the waiting jobs */
        PLAN_CLOSED,
        PLAN_SHAPE_MAX,
        PLAN_PROVISIONER_MAX,
        PLAN_ACCOUNT_MAX,
        PLAN_MAX,
        PLAN_HOUR,
        PLAN_MONTH,
        PLAN_LATER, /* the plan has the maximum of wishes */
        PLAN_REASONS
};
const char *plan_reason_text(enum plan_reason r); /* "another shape costs less for the jobs that wait" */

struct plan_wish {
        size_t shape, demand; /* PLAN_NONE: the shape's minimum */
        uint32_t nodes;
        int64_t lasts_ms; /* the group's jobs will have ended in this time; 0: not known */
};
enum plan_leave { PLAN_STAYS, PLAN_LEAVES_IDLE, PLAN_LEAVES_MONTH };
struct plan {
        struct plan_wish *wishes; /* in the order of starting */
        size_t wish_count, wish_cap;
        struct {
                uint32_t nodes, wished;
                enum plan_reason why; /* reason why it is not wished, or not more often */
        } * shapes;
        struct {
                uint64_t placed;      /* slots on nodes that run or boot */
                uint64_t wished;      /* slots on wished nodes */
                enum plan_reason why; /* reason for the rest */
        } * demands;
        enum plan_leave *leaves; /* for each node */
};
/* Makes a plan; free its content with plan_deinit. */
void plan_make(const struct plan_input *in, struct plan *ret);
void plan_deinit(struct plan *p);
/* Returns the cost of a period of a node, rounded up. */
int64_t plan_period_micro(int64_t price_micro, int64_t period_ms);
/* Returns the number of slots that fit into the room. */
uint64_t plan_fits(const struct plan_room *room, const struct plan_room *need);
