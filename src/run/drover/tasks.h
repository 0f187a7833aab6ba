/* tasks: the tasks of a queue that is another Drover server: their table and the events about them.
 *
 *   FRESH --inputs are there--> READY --its request's file is written--> SAVED --submitted--> IN
 *                                          IN --it has ended--> FETCHING --its outputs are here--> OVER
 *
 * From every state a task becomes OVER when it fails or is killed. Events are queued: the agent receives
 * them in the loop's next turn, never within a call of the runner. All calls are made on the loop's thread.
 */
#pragma once
#include "base/format/json_read.h"
#include "base/map.h"
#include "run/runner.h"

struct http_call;
struct remote;
struct remote_credential;
struct remote_request;
struct command;

#define REMOTE_FILES_MAX 20000 /* most files of a job that are sent, or that a checkpoint has */

enum remote_state { REMOTE_FRESH, REMOTE_READY, REMOTE_SAVED, REMOTE_IN, REMOTE_FETCHING, REMOTE_OVER };

struct remote_file { /* `path` is a path here, to send from or to write to */
        char *path, *name;
        char sha256[65];
        uint64_t size, offset;
        unsigned mode;
        bool outside; /* outside of the sandbox, named by a path of the job's */
};
struct remote_files {
        struct remote_file *v;
        size_t n, cap, at;
};

struct remote_word { /* an attribute of the job */
        char *name, *value;
        bool text; /* the value is a string, not an expression */
};

struct remote_checkpoint { /* a checkpoint on its way here */
        json_t *list;
        char *id; /* the list as text */
        size_t at;
};

struct remote_task {
        struct remote *remote;
        struct remote_task *next, **link;
        struct run_id id;
        enum remote_state state;
        struct remote_request *in; /* the request that it belongs to, from SAVED on */
        uint32_t member;           /* index in the request */
        char *sandbox, *out, *err; /* files of the streams, beneath the sandbox; NULL: none */
        bool out_append, err_append;
        struct remote_word *words; /* attributes, kept until it is IN in case it must be sent again */
        size_t word_count, word_cap;
        char *origin; /* members of the JSON object "origin", except the job */
        char *servers, *job;
        struct remote_credential *credentials; /* moved to the request when it gets one */
        struct http_call *call;
        struct remote_files files;    /* files to send, or outputs to fetch */
        char *upload;                 /* id of the upload in progress */
        int fd;                       /* descriptor of the file being transferred; -1: none */
        char *program, *stdin;        /* with a map of users: files outside of the sandbox that may be sent */
        struct command *user_command; /* user command in progress on its files */
        bool exposed;                 /* the files can be read by the agent */
        bool again;                   /* files were sent again, since the other server had lost them */
        bool given;                   /* submitted since the last flush: not yet in the agent's journal */
        bool forgotten;               /* forgotten since the last flush */
        bool unsettled;               /* its state has not been looked at since the server became reachable */
        bool dirty;                   /* its job must be looked at */
        bool begun, killing, lease_ended, suspended;
        bool idle;        /* it was idle there when its job was looked at last */
        bool held;        /* suspended before it began: held at the other server */
        bool waits;       /* held by the agent: held at the other server */
        bool restored;    /* restored after a restart: its orders are derived from the job's state there */
        uint64_t signals; /* signals to send when it runs: 1 << (number - 1) */
        int64_t ready_ms; /* boot clock; when it became READY */
        int64_t idle_ms;  /* boot clock; with `idle`: since when */
        int64_t given_back_ms; /* boot clock; when it was given back; 0: it was not */
        uint64_t started_ms;
        int64_t not_before_ms; /* boot clock; next try at the earliest */
        struct run_event result;
        char *text;
        char *said;   /* reason why its files are not accepted yet, in the other server's words; or NULL */
        char *hops;   /* JSON, or NULL */
        char *global; /* GlobalJobId of the job there, which is unique; NULL: not known yet */
        struct remote_checkpoint *checkpoint; /* the checkpoint being brought here; or NULL */
        char *checkpoint_id;                  /* id of the last complete checkpoint; or NULL */
        unsigned checkpoint_turn;
        size_t checkpoint_most[2]; /* number of files, by turn */
        json_t *failed; /* the job there, held after a failure, while its path is asked for; or NULL */
};

struct remote_table {      /* written by tasks.c, submit.c and send.c */
        struct map *tasks; /* tasks by id */
        struct remote_task *all, **last;
        struct idmap *requests; /* submitted requests, by their number at the other server */
        struct remote_request *sent, **sent_last; /* all requests */
        struct map *known; /* checksums of this queue's objects that the other server has */
        size_t unsettled, keeping;
};

void remote_tasks_open(struct remote *f);
void remote_tasks_close(struct remote *f); /* frees all tasks */

/* Adds a FRESH task; the table owns it. */
struct remote_task *remote_task_new(struct remote *f, struct run_id id);
/* Frees a task without telling its request. */
void remote_task_free(struct remote_task *t);
/* Frees the attributes, origin and file list, which are needed only until the task is IN. */
void remote_words_deinit(struct remote_task *t);
void remote_files_deinit(struct remote_files *files);
/* Gives up the checkpoint that is being brought here, if any. */
void remote_checkpoint_drop(struct remote_task *t);
/* Sets the task's hops from an array; to none if it is longer than a path can be. */
void remote_set_hops(struct remote_task *t, const json_t *hops);

/* Queues an event for the agent; the event's text is copied. */
void remote_gather(struct remote *f, const struct run_event *e);
/* Queues an event with the task's state. `known`: reported as a task known from before the agent's start. */
void remote_tell(struct remote *f, const struct remote_task *t, bool known);
/* Marks the task's state as looked at since the server became reachable, or as irrelevant. */
void remote_settled(struct remote_task *t);
/* Reports all tasks and that the queue is ready, once every task is settled; before that no effect. */
void remote_list(struct remote *f);

/* Ends a task with its final result: its outputs are here, or will never come. Later results are dropped.
 * `text` may be NULL; it is copied. */
void remote_over(struct remote_task *t, const struct run_event *result, const char *text);
/* Ends a task as failed by `what` (as in struct run_event) with an errno. */
void remote_fail(struct remote_task *t, const char *what, int error, const char *text);
/* Ends a task that has more than REMOTE_FILES_MAX files. */
void remote_fail_files(struct remote_task *t);
