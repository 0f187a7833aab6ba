/* losses: counts of lost attempts, for the job and for the node.
 *
 * An attempt that the agent had not accepted returns to the queue uncounted. The loss of an accepted attempt
 * counts for its job, which waits longer before each further attempt, is held after max_lost of them (policy
 * of lifecycle/losses.h), and is *suspected* once it was lost with LOSSES_SUSPECT different nodes. It also
 * counts for the node, which gets no jobs for a pause that grows with each failure in a row. The result of a
 * program that ran to its end resets both counts. All of this follows from events alone, so a replay counts
 * the same.
 *
 * A node is an agent whose queue runs processes of its own machine. An attempt lost by a batch system, which
 * may have preempted it, only makes its job wait.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/names.h"

/* Flags of a lost attempt: the subcode of EVENT_LOST. 0, also in older records: the loss is not counted. */
enum loss {
        LOSS_COUNTS = 1,  /* the agent had accepted the attempt */
        LOSS_RAN = 2,     /* the attempt may have run; otherwise the agent could not start it */
        LOSS_AT_NODE = 4, /* the attempt was at a node */
};

#define LOSSES_NODES        8u   /* different nodes that a job's record remembers */
#define LOSSES_SUSPECT      3u   /* different nodes after which a job is suspected */
#define LOSSES_DRAIN        3u   /* unrelated jobs lost in a row after which a node is to be drained */
#define LOSSES_PAUSE_MS     5000 /* after the second loss; doubled after each further one */
#define LOSSES_PAUSE_MAX_MS INT64_C(600000)

struct job_losses {
        uint32_t lost;    /* attempts that may have run, since the last result or release */
        uint32_t failed;  /* `lost`, and attempts that could not be started */
        int64_t until_ms; /* Unix milliseconds: no attempt before this time */
        /* Different nodes of the lost attempts; a release keeps them. */
        struct core_agent *nodes[LOSSES_NODES];
        uint32_t node_count;
};

/* Losses of a node, in struct core_agent. */
struct node_losses {
        uint32_t row;       /* failures in a row; attempts lost at one time are one failure */
        uint32_t unrelated; /* failures whose jobs are unrelated to those of the others */
        int64_t at_ms;      /* time of the last failure; 0: none */
        struct {
                uint64_t request;
                uint32_t member;
        } jobs[LOSSES_DRAIN]; /* jobs of the unrelated failures */
        int64_t until_ms;     /* steady clock: no jobs before this time; not in snapshots */
};

/* The node that is kept empty for a suspected job, which found no empty node for a while. At most one at a
 * time; a plan, without an event. */
struct clearing {
        struct core_agent *agent;    /* NULL: none */
        uint64_t request, job_class; /* job_class: serial of the job's class */
        uint32_t member;
};
/* Plans for the next looks at nodes, made without events. Times are of the steady clock. */
struct node_watch {
        struct clearing clearing;
        bool draining;   /* some nodes were draining when nodes_tick last ran */
        int64_t look_ms; /* when nodes_tick next looks at nodes (lifecycle/nodes.h) */
        int64_t due_ms;  /* no node's pause ends before this time */
};
/* Number of first pauses (a minute in all) that a suspected job waits before a node is kept empty for it. */
#define LOSSES_CLEAR_PAUSES 12

/* Returns the pause after this number of losses in a row: 0 after the first. */
int64_t losses_pause_ms(const struct core *c, uint32_t in_a_row);
/* Counts the loss of j's attempt, before the attempt leaves its queue. */
void losses_count(struct core *c, struct request *r, struct job *j, const struct event *e);
/* Resets the counts of a job whose program ran to its end, and of its node. */
void losses_clear(struct job *j);
bool job_is_suspected(const struct job *j); /* NULL is fine */
/* Returns whether the queue runs processes of the agent's own machine; false also before its first offer. */
bool queue_is_node(struct core *c, const struct queue *q);
/* Returns whether the member waits for the end of its pause, idle and in no bucket. */
bool request_is_delayed(const struct request *r, uint32_t member);
/* Takes the members out of request_cold.delayed; they stay idle in no bucket. */
void request_delay_over(struct core *c, struct request *r, const struct set *members);
