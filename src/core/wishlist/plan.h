/* plan: how many nodes of which shape the queue wants, and which may go.
 *
 * Arithmetic only: the caller says what shapes there are, which nodes of theirs exist, what waits, and what
 * may be spent; the plan says what to start, what to drain, and for each shape and each group of jobs why not
 * more. Nothing is remembered between two plans.
 *
 * Rules. Jobs are first put on what is there or boots. For the rest nodes are wished one at a time, in turns
 * of the groups of jobs, so that no group waits for another one; each takes the shape that costs least for
 * each job that it would run there, of those that may be started now. A shape that is closed (no capacity) or
 * full is passed over, and the next best is taken. A node that had nothing to do for a while goes at the end
 * of the time that is paid for, unless jobs want it or its shape has a minimum; a node whose next time cannot
 * be paid goes whatever it does. Of the month's budget a period of each node is kept back, for the time that
 * its going takes.
 *
 * Money is counted in millionths of whatever the prices are in, time in milliseconds, memory in MiB, disk in
 * KiB. Texts are borrowed, and what a plan says borrows them.
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
        int64_t price_micro; /* of an hour */
        uint32_t min, max;
        int64_t boot_ms;    /* as learned; 0: not known */
        const char *closed; /* none may be started now: why; NULL: they may */
};
struct plan_provisioner {
        uint32_t max;      /* of its nodes */
        int64_t period_ms; /* the time that is paid for at once */
        int64_t stop_ms;   /* a node that is to be gone by the end of that is drained so long before */
        int64_t idle_ms;   /* a node goes that had nothing to do for so long */
};
enum plan_node_state { PLAN_NODE_BOOTS, PLAN_NODE_RUNS, PLAN_NODE_LEAVES };
struct plan_node {
        size_t shape; /* PLAN_NONE: one that the settings have no more; it only costs, and goes when idle */
        size_t provisioner;
        enum plan_node_state state;
        struct plan_room free; /* of one that runs */
        struct str account;    /* for whose jobs it was started; empty: nobody's */
        int64_t price_micro;
        int64_t idle_ms;      /* so long without jobs; -1: it has some */
        int64_t paid_left_ms; /* until the time that is paid for ends */
};
/* Jobs that are alike for the plan. */
struct plan_demand {
        uint64_t jobs;
        uint64_t slots; /* of them, to be run at a time; 1 to jobs */
        struct plan_room need;
        struct str account;
        const bool *suits; /* for each shape */
};
struct plan_account {
        struct str name;
        uint32_t max; /* nodes that are started for it */
};
struct plan_rules {
        uint32_t max;        /* nodes of all provisioners; 0: no bound */
        int64_t hour_micro;  /* sum of the prices of all nodes; -1: no bound */
        int64_t month_micro; /* -1: no bound */
        int64_t spent_micro; /* of the month */
};
struct plan_input {
        const struct plan_provisioner *provisioners;
        size_t provisioner_count;
        const struct plan_shape *shapes;
        size_t shape_count;
        const struct plan_node *nodes;
        size_t node_count;
        const struct plan_demand *demands; /* the first in the order come first */
        size_t demand_count;
        const struct plan_account *accounts;
        size_t account_count;
        struct plan_rules rules;
};

enum plan_reason {
        PLAN_WISHED,
        PLAN_NO_JOBS, /* none of those that wait wants more of it */
        PLAN_UNSUITED,
        PLAN_DEARER, /* another shape costs less for those that wait */
        PLAN_CLOSED,
        PLAN_SHAPE_MAX,
        PLAN_PROVISIONER_MAX,
        PLAN_ACCOUNT_MAX,
        PLAN_MAX,
        PLAN_HOUR,
        PLAN_MONTH,
        PLAN_LATER, /* the plan has as many wishes as one may have */
        PLAN_REASONS
};
const char *plan_reason_text(enum plan_reason r); /* "another shape costs less for the jobs that wait" */

struct plan_wish {
        size_t shape, demand; /* PLAN_NONE: the shape's minimum */
        uint32_t nodes;
};
enum plan_leave { PLAN_STAYS, PLAN_LEAVES_IDLE, PLAN_LEAVES_MONTH };
struct plan {
        struct plan_wish *wishes; /* in the order in which they are to be started */
        size_t wish_count, wish_cap;
        struct {
                uint32_t nodes, wished;
                enum plan_reason why; /* it is not wished, or not more often */
        } * shapes;
        struct {
                uint64_t placed;      /* slots on nodes that are there or boot */
                uint64_t wished;      /* on those that are wished */
                enum plan_reason why; /* of what is left */
        } * demands;
        enum plan_leave *leaves; /* for each node */
};
/* The plan owns what is in it; plan_deinit. */
void plan_make(const struct plan_input *in, struct plan *ret);
void plan_deinit(struct plan *p);
/* The cost of a period of a node, rounded up. */
int64_t plan_period_micro(int64_t price_micro, int64_t period_ms);
/* The number of slots that fit in. */
uint64_t plan_fits(const struct plan_room *room, const struct plan_room *need);
