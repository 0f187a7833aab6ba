/* acts: sends actions, signals and the arrival of results to the other server. Each is kept until
 * remote_acts_send() and repeated until it is answered. */
#pragma once
#include <stdint.h>

struct remote;
struct remote_acts;
struct remote_task;

#define REMOTE_REASON "by the server that it came from" /* reason given with every action */

/* GIVE_BACK: remove, if it is idle. */
enum remote_act {
        REMOTE_REMOVE,
        REMOTE_SUSPEND,
        REMOTE_RESUME,
        REMOTE_HOLD,
        REMOTE_RELEASE,
        REMOTE_GIVE_BACK,
        REMOTE_ACTS
};

struct remote_acts *remote_acts_new(void);
void remote_acts_free(struct remote_acts *a);

void remote_act(struct remote_task *t, enum remote_act what); /* IN */
void remote_act_on(struct remote *f, uint64_t request, uint32_t member, enum remote_act what);
void remote_signal(struct remote_task *t, int signal); /* IN; kept until the job runs, if it does not now */
void remote_signals_due(struct remote_task *t);        /* the job runs: queues the signals that were kept */
/* The job's result is here and in the journal: tells the other server that it may remove the job's files. */
void remote_taken(struct remote *f, uint64_t request, uint32_t member);
/* Sends what is pending, one call of each kind at a time. */
void remote_acts_send(struct remote *f);
