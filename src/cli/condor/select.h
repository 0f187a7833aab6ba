/* select: chooses the jobs that a call means, and gets them from the server.
 *
 * The words of a call are ids (7, 7.3) and owners (alice, alice@domain). A job is chosen if it is one of the
 * ids (if there are any), belongs to one of the owners (if there are any) and meets every -constraint.
 */
#pragma once
#include "cli/client/api.h"
#include "cli/condor/flags.h"

struct select {
        const char **ids;
        size_t id_count, id_cap;
        struct buf constraint; /* combination of owners and -constraint; empty: none */
        bool named;            /* ids or owners were given */
        bool jobs;             /* one of the ids is a job's, not a request's */
};
void select_deinit(struct select *s);
#define SELECT_CLEANUP __attribute__((cleanup(select_deinit)))
/* Reads the words of the call. `flag`: name of the flag whose values are constraints; NULL: none. Returns 0,
 * or -EINVAL with err. */
int select_words(struct select *s, const struct flags *f, const char *flag, struct err *err);
void select_and(struct buf *constraint, struct str expression); /* joins with &&: (a) && (b) */
/* Like select_and, with an expression from the command line, which is in the old syntax. */
void select_and_given(struct buf *constraint, const char *expression);
/* Appends an expression: Owner == "alice", or User == "alice@domain". */
void select_owner(struct buf *out, struct str name);
bool select_is_id(const char *word);

struct select_fetch {
        const char *address; /* "/v1/jobs" */
        const char *array, *cursor;
        struct str constraint, states, attributes; /* each may be empty */
        int64_t limit;                             /* 0: none */
        int (*each)(void *arg, struct view item);  /* a result other than 0 ends the listing */
        void *arg;
};
/* Calls each for all chosen jobs. Requests that do not exist have no jobs. Returns 0, or an exit code after
 * an error was printed. */
int select_fetch(struct cli *cli, const struct select *s, const struct select_fetch *f);
