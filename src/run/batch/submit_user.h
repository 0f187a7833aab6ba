/* submit_user: for whom a batch queue submits.
 *
 * With a map of users each local user has one; without, there is one, and its jobs are the agent's own
 * user's. What is borrowed lives as long as the queue.
 */
#pragma once
#include "run/batch/batch.h"

struct batch;

struct submit_user { /* for whom tasks are; without a map of users the only one, and the names are NULL */
        char *owner, *user;
        char *folder, *dir; /* where the system puts what it catches of scripts: its name, and its path */
        bool made;          /* the folder is there; a user command makes it */
        struct args env;    /* of commands */
        struct buf acts[BATCH_VERBS_COUNT]; /* natives for each verb, parted by spaces */
        unsigned submissions;
        int64_t left_ms; /* boot clock, when it had the last one; 0: it never had any */
        struct submit_user *next;
};

struct submit_user *batch_submit_user(struct batch *b, const char *owner,
                                      const char *user); /* made if there is none */
/* One of those that we have had, by the system's word for its user; NULL: there is none. Without a map it is
 * always ours. */
struct submit_user *batch_submit_user_of(struct batch *b, struct str user);
void batch_submit_users_free(struct batch *b);
void batch_users(const struct batch *b,
                 struct buf *out); /* whose jobs a status query is about, with commas */
