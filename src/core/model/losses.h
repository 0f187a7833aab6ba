/* losses: attempts that were lost, counted for the job and for the node.
 *
 * An attempt that was only handed out goes back without a trace. One that the agent had accepted counts: for
 * its job, which waits longer before each further attempt, is held after max_lost of them (policy of
 * lifecycle/losses.h), and is *suspected* once it was lost with LOSSES_SUSPECT different nodes; and for the
 * node, which is given nothing for longer after each failure in a row. A result of a program that ran to its
 * end clears both. All of it follows from events alone, so a replay counts the same.
 *
 * A node is an agent whose queue runs processes of its own machine. An attempt that a batch system lost,
 * which may have made room for others, only makes its job wait.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/model/names.h"

/* How an attempt was lost: the subcode of EVENT_LOST. 0, as in records of before: it counts for nobody. */
enum loss {
        LOSS_COUNTS = 1,  /* the agent had it */
        LOSS_RAN = 2,     /* it may have run; else the agent could not start it */
        LOSS_AT_NODE = 4, /* at a node */
};

#define LOSSES_NODES        8u   /* different nodes that are remembered of a job */
#define LOSSES_SUSPECT      3u   /* a job that was lost with so many is suspected */
#define LOSSES_DRAIN        3u   /* a node that lost so many unrelated jobs in a row is to be drained */
#define LOSSES_PAUSE_MS     5000 /* after the second loss, twice that after the third, ... */
#define LOSSES_PAUSE_MAX_MS INT64_C(600000)

struct job_losses {
        uint32_t lost;    /* attempts that may have run, since the last result or release */
        uint32_t failed;  /* with those that could not be started */
        int64_t until_ms; /* it is given to nobody before, Unix milliseconds */
        struct core_agent *nodes[LOSSES_NODES]; /* different ones; a release leaves them */
        uint32_t node_count;
};

/* Of a node, in struct core_agent. */
struct node_losses {
        uint32_t row;       /* failures in a row: attempts that went at one time are one failure */
        uint32_t unrelated; /* of these, those whose jobs have nothing to do with each other */
        int64_t at_ms;      /* the last one; 0: none */
        struct {
                uint64_t request;
                uint32_t member;
        } jobs[LOSSES_DRAIN]; /* the unrelated ones */
        int64_t until_ms;     /* nothing is given to it before, by the steady clock; not in snapshots */
};

/* A node that is kept empty for a suspected job, which found none with nothing else for a while. One at a
 * time; a plan, and no event. */
struct clearing {
        struct core_agent *agent;    /* NULL: none */
        uint64_t request, job_class; /* the job, and the serial of its class */
        uint32_t member;
};
#define LOSSES_CLEAR_PAUSES 12 /* a suspected job waits so many of the first pauses before: a minute */

/* The pause after so many losses in a row: none after the first. */
int64_t losses_pause_ms(const struct core *c, uint32_t in_a_row);
/* An attempt of j is lost, and has not left its queue yet. */
void losses_count(struct core *c, struct request *r, struct job *j, const struct event *e);
/* A program of j ran to its end. */
void losses_clear(struct job *j);
bool job_is_suspected(const struct job *j); /* NULL is fine */
/* The queue runs processes of the agent's own machine; false as well when it has made no offer yet. */
bool queue_is_node(struct core *c, const struct queue *q);
/* The member waits for the end of its pause: it is idle and in no bucket. */
bool request_is_delayed(const struct request *r, uint32_t member);
void request_delay_over(struct core *c, struct request *r, const struct set *members);
