/* private: what the files of the drover runner share.
 *
 * A remote request holds the tasks that were there at the same time and are alike: one, or an array of many,
 * each a member. It is submitted under a uuid made from the origin's servers and its tasks' jobs and fences,
 * so that whatever is submitted twice is one request. A task's life:
 *
 *   FRESH --inputs are there--> READY --its request's file is written--> SAVED --submitted--> IN
 *                                          IN --it has ended--> FETCHING --its outputs are here--> OVER
 *
 * and from every state, when it fails or is killed, to OVER.
 *
 * The file (DIR/hop.QUEUE/UUID) holds the submission as it is sent, and what is needed to bring the results
 * home: after a restart it is submitted once more, which gives the number of the request that is there.
 * Until it is written the agent's restart finds nothing, and nothing was submitted. UUID.gone beside it has
 * the indexes of tasks that were forgotten.
 *
 * Below are answers.h, credentials.h and user.h. Each file uses those above it only:
 *
 *   tasks.c          the table of tasks, and what is told of them
 *   link.c           in touch, or not
 *   names.c          where an output belongs, and what it is called there
 *   describe.c       what a step is there: attributes, and files that it needs
 *   user_files.c     with a map of users: files to send and outputs, by their user
 *   acts.c           what it is told: actions, signals, results that are here
 *   lease.c          leases of requests
 *   feed.c           what happens there; its room, paths of jobs, and why they wait
 *   hello.c          the first call: who is there, and does it know us?
 *   credential_sync.c credentials, which follow the submission
 *   send.c           files up
 *   submit.c         the submission: its file, the call
 *   group.c          those that are alike become one request: its document
 *   fetch.c          files down
 *   checkpoint.c     checkpoints that are kept there, brought here while it goes on
 *   job.c            what became of a job
 *   quote.c          when would it begin there
 *   output.c         what a job prints there
 *   work.c           what is due
 *   open.c           open and close: settings, the client, the folder
 *   drover.c         the verbs; users.c: with a map of users, a struct remote for each
 */
#pragma once
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "ev/http_client.h"
#include "run/drover/answers.h"
#include "run/drover/credentials.h"
#include "run/drover/user.h"
#include "run/runner.h"
#include "run/task/event_queue.h"

#define REMOTE_UUID        37
#define REMOTE_RETRY_MS    250   /* the first time */
#define REMOTE_FILES_MAX   20000 /* of a job, that go up or come as its checkpoint */
#define REMOTE_CREDENTIALS "DroverCredentials"
#define REMOTE_OWNER       "owner"                           /* file: the user's, name@domain */
#define REMOTE_NO_DOMAIN   "drover-hop"                      /* no place sees the files of a sandbox */
#define REMOTE_REASON      "by the server that it came from" /* of what is done to jobs there */

enum remote_state { REMOTE_FRESH, REMOTE_READY, REMOTE_SAVED, REMOTE_IN, REMOTE_FETCHING, REMOTE_OVER };
enum remote_act { REMOTE_REMOVE, REMOTE_SUSPEND, REMOTE_RESUME, REMOTE_HOLD, REMOTE_RELEASE, REMOTE_ACTS };

struct remote_file { /* up: from a path here; down: to one */
        char *path, *name;
        char sha256[65];
        uint64_t size, offset;
        unsigned mode;
        bool outside; /* of the sandbox: by a path of the job's */
};
struct remote_files {
        struct remote_file *v;
        size_t n, cap, at;
};

struct remote_word { /* an attribute */
        char *name, *value;
        bool text; /* else an expression */
};

struct remote_request {
        struct remote *remote;
        struct remote_request *next, **link;
        struct remote_task **tasks; /* by member; NULL: forgotten */
        size_t count, left;
        char uuid[REMOTE_UUID];
        char *submission; /* until it is in */
        uint64_t number;  /* at the remote server; 0: not known */
        struct http_call *call;
        char *said; /* why it is not taken yet, or waits there, in the remote server's words; or NULL */
        int64_t asked_why_ms;              /* boot clock: why it waits there; 0: never */
        int64_t renewed_ms, not_before_ms; /* boot clock; the last: nothing is tried before */
        uint64_t cursor;                   /* of the feed when it was submitted */
        uint64_t lease_serial;             /* of the agent's lease, when it was renewed there */
        bool lease_over;
        struct remote_credential *credentials, *syncing; /* syncing: its call is under way */
};

struct remote_checkpoint { /* a checkpoint on its way here */
        json_t *list;
        char *id; /* the list as a text */
        size_t at;
};

struct remote_task {
        struct remote *remote;
        struct remote_task *next, **link;
        struct run_id id;
        enum remote_state state;
        struct remote_request *in; /* from SAVED on */
        uint32_t member;           /* of it */
        char *sandbox, *out, *err; /* streams' files, beneath the sandbox; NULL: none */
        bool out_append, err_append;
        struct remote_word *words; /* what it is, until it is IN: for if it must be sent again */
        size_t word_count, word_cap;
        char *origin; /* members of the JSON object, but for the job */
        char *servers, *job;
        struct remote_credential *credentials; /* until it is in a request */
        struct http_call *call;
        struct remote_files files;    /* on their way up, or down */
        char *upload;                 /* under way, its id */
        int fd;                       /* of the file under way; -1 */
        char *program, *stdin;        /* with a map of users: files from outside that may go along */
        struct command *user_command; /* what its user does with its files */
        bool exposed;                 /* they can be read */
        bool again;                   /* files were sent twice: the remote server had lost them */
        bool given;                   /* since the last flush: the agent has not written it down yet */
        bool forgotten;               /* likewise */
        bool unsettled;               /* since we are in touch its state was not looked at */
        bool dirty;                   /* something happened: look */
        bool begun, killing, lease_ended, suspended;
        bool held;        /* suspended before it began: held there */
        bool waits;       /* held by the agent: likewise */
        bool restored;    /* of an earlier life: what it was told then is learned from its state there */
        uint64_t signals; /* for when it runs: 1 << (number - 1) */
        int64_t ready_ms; /* boot clock */
        uint64_t started_ms;
        int64_t not_before_ms; /* boot clock: nothing is tried before */
        struct run_event result;
        char *text;
        char *said;   /* why its files are not taken yet, in the remote server's words; or NULL */
        char *hops;   /* JSON, or NULL */
        char *global; /* the remote job's GlobalJobId, once it was seen: no other has it */
        struct remote_checkpoint *checkpoint; /* a checkpoint on its way here; or NULL */
        char *checkpoint_id;                  /* the last that is here; or NULL */
        unsigned checkpoint_turn;
        size_t checkpoint_most[2]; /* files of it, by turn */
        json_t *failed; /* the job there, held by what happened to it, while its path is asked for; or NULL */
};

struct remote_table {      /* written by tasks.c, submit.c and send.c */
        struct map *tasks; /* by id */
        struct remote_task *all, **last;
        struct idmap *requests;                   /* those that are in, by the remote number */
        struct remote_request *sent, **sent_last; /* all requests */
        struct map *known;                        /* checksums of objects that the remote server has of us */
        size_t unsettled, keeping;
};

struct remote_link {  /* written by link.c and hello.c */
        bool up;      /* we are in touch */
        bool listed;  /* that we are ready was told */
        bool refused; /* it does not take this user for anybody */
        char *why;    /* that was told of its being away; NULL: it is not, or nothing was told */
        int64_t retry_ms;
        struct timer *hello;
        char server[REMOTE_UUID], you[256];
};

enum remote_poll { REMOTE_FEED, REMOTE_ROOM, REMOTE_PATHS, REMOTE_WHY, REMOTE_POLLS };

struct remote {
        struct runner base;
        /* as it was opened */
        struct remote_user *user; /* with a map of users: in whose name; NULL: in our own */
        struct loop *loop;
        char *queue, *dir, *address, *token_file, *domain;
        const struct hidden *closed; /* where no path of a job's may lead */
        bool shared;                 /* its places see our files */
        int fd;                      /* of dir */
        struct http_client *client;
        struct tls_context *tls;
        /* its parts, each in the file of that name */
        struct event_queue *events;
        struct remote_table table;
        struct remote_link link;
        struct remote_login *login; /* hello.c */
        struct remote_feed *feed;
        struct http_call *polls[REMOTE_POLLS]; /* of the feed: they end when we are out of touch */
        struct remote_lease *lease;
        struct remote_acts *acts;
        struct {
                struct remote_quote *first;
                unsigned count;
        } quotes; /* that are open */
        struct {
                struct remote_output *first;
                unsigned count;
        } outputs;                           /* calls of output.c that are under way */
        struct timer *later, *tick, *gather; /* work.c */
        bool gathering;                      /* tasks were given or forgotten since the last flush */
};

static inline uint64_t remote_number(const struct remote_task *t) /* of its request; 0: not known */
{
        return t->in ? t->in->number : 0;
}

/* tasks.c */
void remote_tasks_open(struct remote *f);
void remote_tasks_close(struct remote *f); /* frees them */
struct remote_task *remote_task_new(struct remote *f, struct run_id id);
void remote_task_free(struct remote_task *t);    /* its request does not know */
void remote_words_deinit(struct remote_task *t); /* with its files */
void remote_files_deinit(struct remote_files *files);
void remote_checkpoint_drop(struct remote_task *t); /* what is on its way */
/* Sets the task's hops from an array; none, if that is longer than a path can be. */
void remote_set_hops(struct remote_task *t, const json_t *hops);
void remote_gather(struct remote *f,
                   const struct run_event *e); /* told in the next turn; its text is copied */
void remote_tell(struct remote *f, const struct remote_task *t, bool known);
void remote_settled(struct remote_task *t); /* its state was looked at, or does not matter */
void remote_list(struct remote *f);         /* tells all tasks and that we are ready, once all are settled */
/* The result is final: its files are here, or never come. Once: later ones are dropped. Text: or NULL;
 * copied. */
void remote_over(struct remote_task *t, const struct run_event *result, const char *text);
void remote_fail(struct remote_task *t, const char *what, int error, const char *text);
void remote_fail_files(struct remote_task *t); /* it has more than REMOTE_FILES_MAX */

/* link.c */
void remote_unreachable(struct remote *f, const char *why); /* a call had no answer */
void remote_tell_unreachable(struct remote *f, const char *what, const char *why);
void remote_retry(struct remote *f, bool answered, const char *why); /* the first call is made again, later */
/* A call of our own, with a deadline: it borrows path and body until it returns. */
struct http_call *remote_ask(struct remote *f, const char *method, struct buf *path, struct str body,
                             http_call_fn *fn);
struct http_call *remote_get(struct remote *f, const char *path, http_call_fn *fn);

/* names.c */
/* Where an output belongs, appended: beneath `dir`, or for a stream wherever its job wants it. 0, or -EINVAL:
 * its name would leave the folder. */
int remote_destination(const struct remote_task *t, const char *dir, const char *name, struct buf *out,
                       bool *ret_append);
int remote_path_in(struct buf *out, const char *dir,
                   const char *name); /* dir/name; -EINVAL: it would not be in it */
void remote_file_path(const struct remote_task *t, const char *name, struct buf *out); /* of the API */
void remote_cannot_keep(struct remote_task *t, const char *name, const char *why, int error);

/* describe.c */
void remote_describe(struct remote_task *t,
                     const struct run_spec *spec); /* FRESH: what it is, and its files */
void remote_exposed(struct remote_task *t, bool program,
                    bool input); /* with a map of users: what is sent is known */
/* The attributes of a job that wants as much, and does nothing. */
void remote_words_like(struct remote_task *t, const struct run_spec *spec);
void remote_quoted(struct buf *out, struct str s); /* a text of ClassAds */

/* user_files.c */
void remote_expose(struct remote_task *t); /* FRESH: lets us read its files; they are in t->files then */
int remote_input(struct remote_task *t, const struct remote_file *file); /* a descriptor or -errno */
int remote_user_output(const struct remote_task *t,
                       size_t index); /* a new file for what is fetched; or -errno */
void remote_place(
        struct remote_task *t); /* FETCHING: all is here; puts it where it belongs, then it is OVER */

/* acts.c: they go out with the next remote_acts_send() */
void remote_act(struct remote_task *t, enum remote_act what);
void remote_signal(struct remote_task *t, int signal); /* IN; kept for when it runs, if it does not now */
void remote_signals_due(struct remote_task *t);        /* it runs: those that were kept */
void remote_act_on(struct remote *f, uint64_t request, uint32_t member, enum remote_act what);
void remote_taken(struct remote *f, uint64_t request, uint32_t member);
void remote_acts_send(struct remote *f);
struct remote_acts *remote_acts_new(void);
void remote_acts_free(struct remote_acts *a);

/* lease.c */
int64_t remote_lease_ms(const struct remote *f); /* what a request is given */
void remote_lease_send(struct remote *f);
void remote_lease_set(struct remote *f, int64_t until_boot_ms); /* the agent's */
uint64_t remote_lease_serial(const struct remote *f);           /* how often it was set */
bool remote_lease_is_over(const struct remote *f, int64_t now);
int64_t remote_lease_given_ms(const struct remote *f); /* what a request was given last */
struct remote_lease *remote_lease_new(void);

/* feed.c */
void remote_feed_start(struct remote *f, uint64_t cursor);
void remote_feed_look(struct remote *f, int64_t now); /* asks for what it is time for */
uint64_t remote_feed_cursor(const struct remote *f);
struct run_capacity remote_capacity(const struct remote *f); /* borrows the server's uuid of f */
struct remote_feed *remote_feed_new(void);
void remote_feed_free(struct remote_feed *feed); /* NULL is fine */

/* hello.c */
void remote_link_open(struct remote *f);
void remote_login_free(struct remote_login *l);

/* credential_sync.c */
void remote_credential_sync(
        struct remote_request *r); /* IN: sends what the remote server does not have yet */

/* send.c */
void remote_send_files(struct remote_task *t); /* then it is READY */

/* submit.c */
struct remote_request *remote_request_new(struct remote *f, const char *uuid, size_t count);
void remote_request_free(struct remote_request *r); /* its tasks are in none */
void remote_request_save(struct remote_request *r); /* writes its file, and sends it; its tasks are READY */
void remote_submit(struct remote_request *r);       /* SAVED: once, or once more */
bool remote_restore(struct remote *f, struct str document, const char *uuid); /* from its file */
void remote_request_left(struct remote_request *r, uint32_t member); /* its task is forgotten; may free it */

/* group.c */
void remote_group(struct remote *f); /* READY tasks become requests */
/* "parts" of these tasks, which are alike, in an open object. */
struct json;
void remote_parts(struct json *j, struct remote_task *const *tasks, size_t count);
/* The document of a request of these tasks, which are alike, open at the end. */
void remote_document(struct buf *out, const char *uuid, struct remote_task *const *tasks, size_t count);

/* fetch.c */
void remote_fetch(struct remote_task *t);
void remote_forget_marks(const struct remote_task *t); /* that kept its streams from being appended twice */

/* checkpoint.c */
/* IN, as the job was seen just now. True: a checkpoint is on its way here, or looked for. */
bool remote_checkpoint_bring(struct remote_task *t, const json_t *job);

/* job.c */
void remote_look(struct remote_task *t);

/* quote.c */
void remote_quote(struct remote *f, const struct run_spec *spec);
void remote_quotes_drop(struct remote *f);

/* output.c */
/* The function `output` of struct runner_kind. */
int remote_output(struct remote *f, const struct remote_task *t, const struct run_output_question *q,
                  uint64_t number, run_output_fn *fn, void *arg);
void remote_outputs_drop(struct remote *f);

/* work.c */
void remote_work_open(struct remote *f);
void remote_work_start(struct remote *f);
void remote_work_close(struct remote *f);
void remote_work(struct remote *f);  /* lets tasks that wait for a turn go on */
void remote_flush(struct remote *f); /* sends what there is to send, if we are in touch */
void remote_kill(struct remote_task *t, enum run_why why);

/* open.c */
/* As open() of struct runner_kind, which is not set. user: NULL, or taken, also with an error. */
int remote_open(const struct runner_config *c, struct remote_user *user, struct remote **ret,
                struct err *err);
const char *remote_setting(const struct runner_config *c, const char *name); /* NULL: it is not set */
void remote_close(struct remote *f); /* and frees; also one that is half open */

/* users.c */
int remote_users_open(const struct runner_config *c, struct runner **ret, struct err *err);
