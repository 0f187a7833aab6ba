/* select: which jobs a call of squeue, sacct or scancel means, and getting them from the server.
 */
#pragma once
#include "cli/slurm/record.h"
#include "cli/slurm/words.h"

struct select {
        struct buf ids, constraint; /* for the server */
        size_t id_count;
        bool states[RECORD_STATES];
        bool any_state;                                          /* none was chosen */
        const char *names, *partitions, *accounts, *nodes, *qos; /* lists; NULL: any */
};
void select_deinit(struct select *s);
#define SELECT_CLEANUP __attribute__((cleanup(select_deinit)))

/* Adds ids, parted by commas: 123,124_5. 0, or -EINVAL with err. */
int select_ids(struct select *s, struct str list, struct err *err);
int select_users(struct select *s, struct str list);
/* Only the caller's jobs. 0, or an exit code after an error was printed. */
int select_me(struct cli *cli, struct select *s);
/* "PD,RUNNING", "all". 0, or -EINVAL with err. */
int select_states(struct select *s, struct str list, struct err *err);
void select_and(struct select *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool select_takes(const struct select *s, const struct record *r);

enum { SELECT_NO_SUCH_ID = -1 };
/* Calls each for all jobs of an address ("/v1/jobs", with its page's cursor) that the server finds; the
 * caller asks select_takes. `more`: what else belongs into the query, as "&all=1". 0; an exit code after an
 * error was printed; or SELECT_NO_SUCH_ID, when one id was asked for and there is none. */
int select_fetch(struct cli *cli, const struct select *s, const char *address, const char *cursor,
                 const char *more, void (*each)(void *arg, const struct record *r), void *arg);
bool select_in_list(const char *list, struct str word);
