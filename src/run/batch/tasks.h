/* tasks: a batch queue's records of tasks and submissions.
 *
 * A submission is one job of the system, or one array. A task is fresh until its submission's name is in the
 * journal, named until the system's id is known, and in the system until it is over. tasks.c writes the
 * records; other files change the fields that name them.
 */
#pragma once
#include "base/map.h"
#include "run/batch/batch.h"

struct batch;
struct submit_user;
struct throttle;

enum task_state { TASK_FRESH, TASK_NAMED, TASK_IN, TASK_OVER };

struct submission {
        struct submit_user *submit_user;
        char *name, *native;  /* native: the system's id of the whole array; NULL: not known */
        char *head;           /* NULL after a restart, when the script is there already */
        bool sending, unsure; /* unsure: it is not known whether the system has it */
        int64_t unsure_ms;    /* boot clock, since when unsure; answers to earlier queries are not evidence */
        uint64_t others;      /* generation of the status query that referred to its remaining members */
        unsigned count, left; /* members; those not forgotten, plus one while it is being sent */
        uint64_t seen;        /* generation of the last status query that named a member */
        struct throttle *throttle; /* the throttle that it is sent under; NULL: none */
        bool queued;               /* in the list of submissions to send */
        bool there, pushing;     /* its files are where it runs (`there`), or being copied there (remote.h) */
        struct submission *next; /* next submission to send */
};

struct task {
        struct run_id id;
        struct submit_user *submit_user;
        enum task_state state;
        char *box, *head; /* head: only while it is fresh */
        struct submission *s;
        unsigned index; /* index in s, from 0 */
        enum batch_phase phase;
        uint64_t seen; /* generation of the last status query that named it */
        /* How often its files were looked at for its end since that generation of the status query. */
        uint64_t settled;
        unsigned settles;
        int64_t gone_ms;  /* boot clock; since when it is missing or has no report of its end; 0: neither */
        int64_t in_ms;    /* boot clock; when its native id became known */
        int64_t begun_ms; /* boot clock; when its begin was seen */
        int64_t term_ms;  /* boot clock; when a program ended by SIGTERM was seen; 0: none */
        int64_t acted_ms; /* boot clock; when the system was told to end it; 0: never */
        bool begun, killing, held, stopped;
        bool suspended;     /* suspended while it waited: it is stopped if it begins nevertheless */
        bool strange;       /* its id was listed as another job's */
        bool strange_told;  /* that has been logged */
        bool stopped_there; /* the system lists it as stopped, by anyone */
        bool told_to_end;   /* its script was told to end, but not by this queue */
        bool vanished;    /* it was waiting and is no longer listed by name, while others of its array are */
        bool owed;        /* it is missing, and accounting, which may be late, lists it as not over */
        unsigned wanted;  /* verbs (1 << verb) that wait for an answer that lists it under its name */
        unsigned unheard; /* verbs (1 << verb) whose commands failed and are repeated */
        unsigned tries;   /* consecutive failed commands */
        /* With files elsewhere, written by login_node.c or sessions.c: it has reported its end there; its
         * files are wanted without such a report, are being copied, or are here; number of failed copies. */
        bool ended_there, fetch_wanted, fetching, fetched;
        unsigned fetches, costly_fetches; /* costly_fetches: with sessions, after many bytes */
        /* With sessions: its files may have to be sent; when it is looked at next, by the boot clock. */
        bool wants_files;
        int64_t retry_ms;
        uint64_t started_ms;
        struct run_event result;   /* OVER */
        char *text;                /* text of the result */
        char *said;                /* why it waits, in the system's words; NULL: it does not wait */
        struct task *next, **link; /* all tasks, in the order of submit */
};

struct table {                                     /* written by tasks.c, except the cursor */
        struct map *tasks, *natives, *submissions; /* natives: tasks whose id is known */
        struct task *all, **last, *cursor;         /* cursor: next task whose files are looked at */
        unsigned fresh;
};

struct task *batch_task_new(struct batch *b, struct submit_user *p, struct run_id id, const char *box);
void batch_task_free(struct batch *b, struct task *t);
struct submission *batch_submission_new(struct batch *b, struct submit_user *p, const char *name);
void batch_submission_unref(struct batch *b, struct submission *s); /* decrements `left`; frees it at 0 */
void batch_native_key(const struct batch *b, const struct task *t,
                      struct buf *out); /* appends the task's id; t->s->native must be known */
void batch_path(const struct batch *b, struct buf *out, const char *name, const char *end);
void batch_log_path(const struct batch *b, const struct task *t,
                    struct buf *out); /* appends the path of the output that the system collected */
void batch_step_path(const struct task *t, const char *end, struct buf *out);
/* Returns when a file of the step was last written, by the file system's clock; 0: there is none. A folder
 * in its place was written by an earlier version's script. */
uint64_t batch_written_ms(const struct task *t, const char *end);
void batch_tasks_free(struct batch *b); /* frees all tasks, and the maps */

void batch_tell(struct batch *b, const struct task *t, bool known); /* queues a state event */
/* Ends the task: its result is reported, and kept until the task is forgotten. text is copied and may be
 * NULL. */
void batch_over(struct batch *b, struct task *t, const struct run_event *result, const char *text);
/* Ends a task of which a file could not be written, with this errno. On a full disk the task is lost instead
 * of failed, since the job is not at fault. */
void batch_unwritten(struct batch *b, struct task *t, int error, const char *text);
