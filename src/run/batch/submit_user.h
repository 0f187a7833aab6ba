/* submit_user: the user for whom a batch queue submits.
 *
 * With a map of users each local user has one. Without a map there is one, and its jobs are those of the
 * agent's own user. Borrowed pointers are valid as long as the queue.
 */
#pragma once
#include "run/batch/batch.h"

struct batch;

struct submit_user { /* without a map of users there is one, whose names are NULL */
        char *owner, *user;
        char *folder,
                *dir;    /* name and path of the folder for the output that the system collects of scripts */
        bool made;       /* the folder exists; a user command makes it */
        struct args env; /* environment of its commands */
        struct buf acts[BATCH_VERBS_COUNT]; /* ids that each pending verb is for, separated by spaces */
        unsigned submissions;
        int64_t left_ms; /* boot clock; when its last submission was gone; 0: it never had one */
        struct submit_user *next;
};

struct submit_user *batch_submit_user(struct batch *b, const char *owner,
                                      const char *user); /* made if there is none */
/* Returns the submit user whose name the system gives; NULL: none is known. Without a map always the only
 * one. */
struct submit_user *batch_submit_user_of(struct batch *b, struct str user);
void batch_submit_users_free(struct batch *b);
/* Appends the users to ask about in a status query, separated by commas. */
void batch_users(const struct batch *b, struct buf *out);
