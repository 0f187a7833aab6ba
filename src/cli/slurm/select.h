/* select: chooses the jobs that a call of squeue, sacct or scancel means, and gets them from the server. */
#pragma once
#include "cli/slurm/record.h"
#include "cli/terminal/words.h"

struct select {
        struct buf ids, constraint; /* ids and expression sent to the server */
        size_t id_count;
        bool states[RECORD_STATES];
        bool any_state;                                          /* no state was chosen */
        const char *names, *partitions, *accounts, *nodes, *qos; /* lists; NULL: any */
};
void select_deinit(struct select *s);
#define SELECT_CLEANUP __attribute__((cleanup(select_deinit)))

/* Adds ids, separated by commas: 123,124_5. Returns 0, or -EINVAL with err. */
int select_ids(struct select *s, struct str list, struct err *err);
int select_users(struct select *s, struct str list);
/* Chooses the caller's jobs only. Returns 0, or an exit code after an error was printed. */
int select_me(struct cli *cli, struct select *s);
/* Adds states: "PD,RUNNING", "all". Returns 0, or -EINVAL with err. */
int select_states(struct select *s, struct str list, struct err *err);
void select_and(struct select *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool select_takes(const struct select *s, const struct record *r);

enum { SELECT_NO_SUCH_ID = -1 };
/* Calls each for all jobs that the server finds at an address ("/v1/jobs", with its page's cursor); the
 * caller applies select_takes. `more`: text added to the query, like "&all=1". Returns 0; an exit code after
 * an error was printed; or SELECT_NO_SUCH_ID if one id was asked for and does not exist. */
int select_fetch(struct cli *cli, const struct select *s, const char *address, const char *cursor,
                 const char *more, void (*each)(void *arg, const struct record *r), void *arg);
bool select_in_list(const char *list, struct str word);
