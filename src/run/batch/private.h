/* Shared by the files of the batch base (src/run/batch). */
#pragma once
#include "base/buf.h"
#include "base/mem.h"
#include "run/batch/archive.h"
#include "run/batch/batch.h"
#include "run/process/user_command.h"
#include "run/task/event_queue.h"

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

enum task_state { TASK_FRESH, TASK_NAMED, TASK_IN, TASK_OVER };

struct submission {
        struct submit_user *submit_user;
        char *name, *native;       /* native: of the whole array; NULL: not known */
        char *head;                /* NULL after a restart: its script is there */
        bool sending, unsure;      /* unsure: nobody knows whether the system has it */
        int64_t unsure_ms;         /* boot clock, since when: answers to earlier questions do not tell */
        uint64_t others;           /* the status query that meant its other members */
        unsigned count, left;      /* members; of them not forgotten, and one while it is sent */
        uint64_t seen;             /* the status query that named one of them last */
        struct throttle *throttle; /* it is sent again, or for the first time, in a throttle */
        bool queued;               /* it is to be sent */
        struct submission *next;   /* those to be sent */
};

struct task {
        struct run_id id;
        struct submit_user *submit_user;
        enum task_state state;
        char *box, *head; /* head: while it is fresh */
        struct submission *s;
        unsigned index; /* from 0, in s */
        enum batch_phase phase;
        uint64_t seen;    /* the status query that named it last */
        int64_t gone_ms;  /* boot clock, since it is missing or without a word; 0: it is not */
        int64_t in_ms;    /* when its native number became known */
        int64_t begun_ms; /* when we saw that it had begun */
        int64_t term_ms;  /* when we saw that a SIGTERM had ended its program; 0: none has */
        int64_t acted_ms; /* boot clock, when the system was told to end it; 0: it was not */
        bool begun, killing, held, stopped;
        bool suspended;     /* while it waited: it is stopped if it begins all the same */
        bool strange;       /* its number was named as another job's */
        bool strange_told;  /* and the log says so */
        bool stopped_there; /* says the system; by whomever */
        bool told_to_end;   /* its script was, and not by us */
        bool vanished;      /* it waited, and is missing or bare since: others of its array are there */
        bool owed;          /* it is missing, and `past` has it as one that is not over: that comes late */
        unsigned wanted;    /* verbs (1 << verb) that wait until an answer names it with its name */
        unsigned unheard;   /* verbs (1 << verb) of commands about it that failed: it is told again */
        unsigned tries;     /* such commands in a row */
        uint64_t started_ms;
        struct run_event result;   /* OVER */
        char *text;                /* the result's */
        char *said;                /* why it waits there, as the system says; NULL: it does not */
        struct task *next, **link; /* all tasks, in the order of submit */
};

struct journal { /* written by journal.c only */
        int fd;
        struct buf out, gone; /* gone: waits for batch_journal_may_go */
        uint64_t bytes, live; /* of the file; after it was written anew */
        int64_t again_ms;     /* boot clock; when it is tried again */
        bool failed;          /* an append; nothing is told to it before it is written anew */
};

struct table {                                     /* written by tasks.c, but for the cursor */
        struct map *tasks, *natives, *submissions; /* natives: those whose number is known */
        struct task *all, **last, *cursor;         /* cursor: whose files are looked at next */
        unsigned fresh;
};

struct query { /* the last status query; written by poll.c only */
        uint64_t generation;
        int64_t asked_ms, asked_before_ms; /* boot clock; before: of the one before */
        int64_t past_away_ms; /* boot clock, when what is over could not be asked about; 0: it always could */
};

enum batch_slot { SLOT_SEND, SLOT_SEND_2, SLOT_STATUS, SLOT_PAST, SLOT_ACT, SLOT_CAPACITY, SLOT_WHEN, SLOTS };

struct batch {
        struct runner base;
        /* as it was opened */
        const struct batch_system *system;
        struct batch_settings settings;
        struct loop *loop;
        char *queue, *dir, *prefix, *user;   /* prefix: of our submissions' names */
        bool named;                          /* our user has a name, which is `user` */
        int fd;                              /* of dir */
        struct user_commands *user_commands; /* NULL: all is ours */
        unsigned array_max, watch_s, poll_ms, verbs;
        /* its parts, each in the file of that name */
        struct event_queue *events;
        struct calls *calls;
        struct submit_user *submit_users;
        struct archive *archive;
        struct throttle *throttles;
        struct table table;
        struct acts *acts;
        struct journal journal;
        struct submitter *submitter;
        struct quotes *quotes;
        struct nodes *nodes; /* capacity.c */
        struct poll *poll;
        struct query query;
        struct timer *tick;
        bool listed;      /* all tasks were told */
        int64_t ended_ms; /* boot clock, when a task ended last */
        uint64_t lease_serial, order_serial;
};

#define BATCH_LEASE_END "lease.end"

/* tasks.c */
struct task *batch_task_new(struct batch *b, struct submit_user *p, struct run_id id, const char *box);
void batch_task_free(struct batch *b, struct task *t);
struct submission *batch_submission_new(struct batch *b, struct submit_user *p, const char *name);
void batch_submission_unref(struct batch *b, struct submission *s); /* one of `left` less */
void batch_native_key(const struct batch *b, const struct task *t,
                      struct buf *out); /* t->s->native is known */
void batch_path(const struct batch *b, struct buf *out, const char *name, const char *end);
void batch_log_path(const struct batch *b, const struct task *t,
                    struct buf *out); /* what the system caught of it */
void batch_step_path(const struct task *t, const char *end, struct buf *out);
/* When a file of the step was written last, by the file system's clock; 0: it is not there. A folder is of
 * the days when scripts made one. */
uint64_t batch_written_ms(const struct task *t, const char *end);
void batch_tasks_free(struct batch *b); /* and the maps */

void batch_tell(struct batch *b, const struct task *t, bool known); /* an event, on the loop's next turn */
/* It is over: the result is told and kept until it is forgotten. text is copied, may be NULL. */
void batch_over(struct batch *b, struct task *t, const struct run_event *result, const char *text);
/* It is over, for a file of it cannot be written, with this errno: if the disk is full, it is lost, for that
 * is no fault of its own. */
void batch_unwritten(struct batch *b, struct task *t, int error, const char *text);

/* submit_user.c */
struct submit_user *batch_submit_user(struct batch *b, const char *owner,
                                      const char *user); /* made if there is none */
/* One of those that we have had, by the system's word for its user; NULL: there is none. Without a map it is
 * always ours. */
struct submit_user *batch_submit_user_of(struct batch *b, struct str user);
void batch_submit_users_free(struct batch *b);
void batch_users(const struct batch *b,
                 struct buf *out); /* whose jobs a status query is about, with commas */

/* calls.c */
struct calls *batch_calls_new(const struct batch *b);
void batch_calls_cancel(struct calls *c);                          /* what is under way */
void batch_calls_free(struct calls *c);                            /* nothing is under way */
const struct args *batch_calls_environment(const struct calls *c); /* of our own commands */
bool batch_busy(const struct batch *b, enum batch_slot slot);
/* What it has written to standard error until now. */
void batch_complaints(const struct batch *b, enum batch_slot slot, struct buf *out);
bool batch_makes_requests(const struct batch *b); /* in place of commands */
const char *batch_version(const struct batch *b); /* of the service's API; NULL: none, or not known yet */
/* What depends on the service's version can be asked for: it is known, or there is none. */
bool batch_speaks(const struct batch *b);
/* Runs the command or makes the requests that `call` says, and frees it; the slot is not busy. */
void batch_run(struct batch *b, enum batch_slot slot, struct batch_call *call, command_done_fn *done,
               void *arg);
/* The same by the submit user's user. */
void batch_run_as(struct batch *b, struct submit_user *p, enum batch_slot slot, struct batch_call *call,
                  command_done_fn *done, void *arg);
/* At once, for we end: waits for it, and frees it. */
void batch_run_now(struct batch *b, struct batch_call *call);

/* acts.c */
struct acts *batch_acts_new(void);
void batch_acts_free(struct acts *acts);
bool batch_acts_ask_soon(const struct batch *b); /* something waits for an answer that names it */
bool batch_has(const struct batch *b, enum batch_verb verb);
/* The number of the whole submission is known: its tasks are in, and what waited for that is told. */
void batch_native_known(struct batch *b, struct submission *s, struct str native);
/* It shall be told so. A number may be another job's since the last answer that named it, for a system that
 * has lost its memory gives its numbers again: so the verb waits for the next answer that names it, which is
 * asked for soon. A nudge harms nobody, and goes with the next batch_acts_run. */
void batch_act(struct batch *b, struct task *t, enum batch_verb verb);
/* The same by the last answer, for one that is forgotten or that nothing will be asked about any more. */
void batch_act_unasked(struct batch *b, struct task *t, enum batch_verb verb);
void batch_acts_named(struct batch *b); /* an answer was read: what waits goes out for those that it named */
void batch_acts_run(struct batch *b);
void batch_acts_again(struct batch *b);                    /* what was not heard: the system answers */
void batch_act_now(struct batch *b, enum batch_verb verb); /* all of the verb that are ours, and waits */

/* settings.c */
int batch_settings_check(const struct batch_system *s, const struct runner_config *c, struct err *err);
/* A small environment for the system's commands: what is submitted shall not depend on who started the agent.
 */
void batch_environment(const struct batch_system *system, const struct batch_settings *settings,
                       struct args *env);
unsigned batch_setting_number(const struct batch *b, const char *name, unsigned otherwise); /* checked */

/* submit.c */
void batch_submitter_open(struct batch *b);
void batch_submitter_free(struct submitter *s);
bool batch_submit_waits(const struct batch *b); /* there is something to submit */
void batch_submit_later(struct batch *b);       /* there are fresh tasks, or submissions to send */
void batch_send_again(struct batch *b, struct submission *s);
/* So many digits of names that may not be long, the lowest first. */
void batch_digits(struct buf *out, uint64_t n, unsigned count);

/* orders.c */
void batch_see_begin(struct batch *b, struct task *t);         /* looks whether it has begun */
void batch_stop(struct batch *b, struct task *t, bool on);     /* it has begun */
void batch_order(struct batch *b, struct task *t, int signal); /* to its program, if it runs */

/* quote.c */
struct quotes *batch_quotes_new(void);
void batch_quotes_free(struct batch *b); /* those that are open have no answer */

/* throttle.c: limits of the system */
struct throttle *batch_throttle_find(const struct batch *b, const struct submit_user *p,
                                     const char *head); /* NULL: none was met */
bool batch_throttle_waits(const struct throttle *j);    /* nothing is sent now. NULL: no */
const char *batch_throttle_words(
        const struct throttle *j); /* the system's; NULL: there is none any more. NULL is fine */
unsigned batch_throttle_room(const struct throttle *j,
                             unsigned array_max);       /* of the next submission; 0: none now */
unsigned batch_throttle_size(const struct throttle *j); /* the system may take arrays of so many. NULL: any */
void batch_throttle_open(struct submission *s, struct throttle *j); /* it will be sent. NULL is fine */
void batch_throttle_close(struct submission *s); /* it will not, or its answer is not known */
/* The system has not taken it. It is open again. */
void batch_throttle_full(struct batch *b, struct submission *s, struct str errors);
void batch_throttle_taken(struct batch *b, struct submission *s);
bool batch_throttled(const struct batch *b); /* something waits */
void batch_throttles_free(struct batch *b);

/* outcome.c */
/* Looks at its files. True: how it ended is known, and told. reason: the system's, if it was asked. */
bool batch_see_end(struct batch *b, struct task *t, struct str reason);
/* It is no longer in the system, or the system says that it has ended. Its own word counts, if it comes. */
void batch_settle(struct batch *b, struct task *t, enum batch_phase phase, struct str reason);
void batch_missing(struct batch *b, struct task *t); /* from the system's answer to a status query */
/* It is back in the system's queue, after it had begun. */
void batch_put_back(struct batch *b, struct task *t, struct str reason);

/* capacity.c */
struct nodes *batch_nodes_new(void);
void batch_nodes_free(struct nodes *r);
void batch_capacity_look(struct batch *b, int64_t now); /* asks, if it is time */

/* poll.c */
struct poll *batch_poll_new(void);
void batch_poll_free(struct poll *p);
void batch_poll(void *batch); /* the tick */

/* journal.c */
int batch_journal_open(struct batch *b, struct err *err);
void batch_journal_close(struct batch *b);
void batch_journal_submission(struct batch *b, const struct submission *s);
void batch_journal_task(struct batch *b, const struct task *t);
void batch_journal_native(struct batch *b, const struct submission *s);
void batch_journal_kill(struct batch *b, const struct task *t);
void batch_journal_held(struct batch *b, const struct task *t); /* or not: as it is now */
void batch_journal_gone(struct batch *b, const struct task *t);
/* The agent has written down what became of those that are gone. */
void batch_journal_may_go(struct batch *b);
/* What was told is in the file, and with sync on disk. 0 or -errno: then nothing may be submitted. */
int batch_journal_flush(struct batch *b, bool sync);
