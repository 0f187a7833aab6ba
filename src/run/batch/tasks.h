/* tasks: what a batch queue knows of each task, of the submission that it is in, and of all of them.
 *
 * A submission is one job of the system, or one array. A task is fresh until its submission's name is in the
 * journal, named until the system's number is known, and in the system until it is over. Written by
 * tasks.c; the parts named at the fields change these.
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

struct table {                                     /* written by tasks.c, but for the cursor */
        struct map *tasks, *natives, *submissions; /* natives: those whose number is known */
        struct task *all, **last, *cursor;         /* cursor: whose files are looked at next */
        unsigned fresh;
};

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
/* The task is over: the result is told and kept until it is forgotten. text is copied, may be NULL. */
void batch_over(struct batch *b, struct task *t, const struct run_event *result, const char *text);
/* The task is over, for a file of it cannot be written, with this errno: if the disk is full, it is lost, for
 * that is no fault of its own. */
void batch_unwritten(struct batch *b, struct task *t, int error, const char *text);
