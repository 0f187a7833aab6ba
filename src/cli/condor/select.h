/* select: which jobs a call means, and getting them from the server.
 *
 * The words of a call are ids (7, 7.3) and owners (alice, alice@domain). A job is meant when it is one of the
 * ids (if there are any), belongs to one of the owners (if there are any) and meets every -constraint.
 */
#pragma once
#include "cli/client/api.h"
#include "cli/condor/flags.h"

struct select {
        const char **ids;
        size_t id_count, id_cap;
        struct buf constraint; /* of owners and -constraint; empty: none */
        bool named;            /* ids or owners were given */
        bool jobs;             /* one of the ids is that of a job, not of a request */
};
void select_deinit(struct select *s);
#define SELECT_CLEANUP __attribute__((cleanup(select_deinit)))
/* `flag`: the name of the flag whose values are constraints; NULL: none. 0, or -EINVAL with err. */
int select_words(struct select *s, const struct flags *f, const char *flag, struct err *err);
void select_and(struct buf *constraint, struct str expression); /* (a) && (b) */
/* The same with an expression of the command line, which is in the old syntax. */
void select_and_given(struct buf *constraint, const char *expression);
/* Owner == "alice", or User == "alice@domain", as an expression. */
void select_owner(struct buf *out, struct str name);
bool select_is_id(const char *word);

struct select_fetch {
        const char *address; /* "/v1/jobs" */
        const char *array, *cursor;
        struct str constraint, states, attributes; /* each may be empty */
        int64_t limit;                             /* 0: none */
        int (*each)(void *arg, struct view item);  /* not 0: that is enough */
        void *arg;
};
/* Calls each for all jobs meant. Requests that don't exist have no jobs. 0, or an exit code after an error
 * was printed. */
int select_fetch(struct cli *cli, const struct select *s, const struct select_fetch *f);
