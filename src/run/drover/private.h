/* private: what the files of the drover runner share.
 *
 * A far request holds the tasks that were there at the same time and are alike: one, or an array of many,
 * each a member. It is submitted under a uuid made from the origin's servers and its tasks' jobs and fences,
 * so that whatever is submitted twice is one request. A task's life:
 *
 *   FRESH --inputs are there--> READY --its request's file is written--> KEPT --submitted--> IN
 *                                          IN --it has ended--> FETCHING --its outputs are here--> OVER
 *
 * and from every state, when it fails or is killed, to OVER.
 *
 * The file (DIR/hop.QUEUE/UUID) holds the submission as it is sent, and what is needed to bring the results
 * home: after a restart it is submitted once more, which gives the number of the request that is there.
 * Until it is written the agent's restart finds nothing, and nothing was submitted. UUID.gone beside it has
 * the indexes of tasks that were forgotten.
 *
 * Each file uses those above it only:
 *
 *   answers.c        what the far server answers, read
 *   credentials.c    a list of credentials
 *   tasks.c          the table of tasks, and what is told of them
 *   link.c           in touch, or not
 *   user.c           with a map of users: in whose name, and what is run here by him
 *   names.c          where an output belongs, and what it is called there
 *   describe.c       what a step is there: attributes, and files that it needs
 *   party.c          with a map of users: files to send and outputs, by their user
 *   acts.c           what it is told: actions, signals, results that are here
 *   lease.c          leases of requests
 *   feed.c           what happens there; its room, and paths of jobs
 *   hello.c          the first call: who is there, and does it know us?
 *   carry.c          credentials, which follow the submission
 *   send.c           files up
 *   submit.c         the submission: its file, the call
 *   group.c          those that are alike become one request: its document
 *   fetch.c          files down
 *   kept.c           checkpoints that are kept there, brought here while it goes on
 *   job.c            what became of a job
 *   quote.c          when would it begin there
 *   work.c           what is due
 *   open.c           open and close: settings, the client, the folder
 *   drover.c         the verbs; users.c: with a map of users, a struct far for each
 */
#pragma once
#include "base/json_read.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/set.h"
#include "ev/http_client.h"
#include "run/process/errand.h"
#include "run/runner.h"
#include "run/task/event_queue.h"

#define FAR_UUID        37
#define FAR_RETRY_MS    250   /* the first time */
#define FAR_FILES_MAX   20000 /* of a job, that go up or come as its checkpoint */
#define FAR_CREDENTIALS "DroverCredentials"
#define FAR_OWNER       "owner"                           /* file: the user's, name@domain */
#define FAR_NO_DOMAIN   "drover-hop"                      /* no place sees the files of a sandbox */
#define FAR_REASON      "by the server that it came from" /* of what is done to jobs there */

enum far_state { FAR_FRESH, FAR_READY, FAR_KEPT, FAR_IN, FAR_FETCHING, FAR_OVER };
enum far_act { FAR_REMOVE, FAR_SUSPEND, FAR_RESUME, FAR_HOLD, FAR_RELEASE, FAR_ACTS };

struct far_file { /* up: from a path here; down: to one */
        char *path, *name;
        char sha256[65];
        uint64_t size, offset;
        unsigned mode;
        bool outside; /* of the sandbox: by a path of the job's */
};
struct far_files {
        struct far_file *v;
        size_t n, cap, at;
};

struct far_word { /* an attribute */
        char *name, *value;
        bool text; /* else an expression */
};

struct far_credential { /* kept in memory only */
        struct far_credential *next;
        char *name, *type;
        struct buf data;
        bool fresh; /* the far server does not have it so */
};

struct far_request {
        struct far *far;
        struct far_request *next, **link;
        struct far_task **tasks; /* by member; NULL: forgotten */
        size_t count, left;
        char uuid[FAR_UUID];
        char *submission; /* until it is in */
        uint64_t number;  /* at the far server; 0: not known */
        struct http_call *call;
        char *said;                        /* why it is not taken yet, in the far server's words; or NULL */
        int64_t renewed_ms, not_before_ms; /* boot clock; the last: nothing is tried before */
        uint64_t cursor;                   /* of the feed when it was submitted */
        uint64_t lease_serial;             /* of the agent's lease, when it was renewed there */
        bool lease_over;
        struct far_credential *credentials, *carrying; /* carrying: its call is under way */
};

struct far_kept { /* a checkpoint on its way here */
        json_t *list;
        char *id; /* the list as a text */
        size_t at;
};

struct far_task {
        struct far *far;
        struct far_task *next, **link;
        struct run_id id;
        enum far_state state;
        struct far_request *in;    /* from KEPT on */
        uint32_t member;           /* of it */
        char *sandbox, *out, *err; /* streams' files, beneath the sandbox; NULL: none */
        bool out_append, err_append;
        struct far_word *words; /* what it is, until it is IN: for if it must be sent again */
        size_t word_count, word_cap;
        char *origin; /* members of the JSON object, but for the job */
        char *servers, *job;
        struct far_credential *credentials; /* until it is in a request */
        struct http_call *call;
        struct far_files files; /* on their way up, or down */
        char *upload;           /* under way, its id */
        int fd;                 /* of the file under way; -1 */
        char *program, *stdin;  /* with a map of users: files from outside that may go along */
        struct command *errand; /* what its user does with its files */
        bool exposed;           /* they can be read */
        bool again;             /* files were sent twice: the far server had lost them */
        bool given;             /* since the last flush: the agent has not written it down yet */
        bool forgotten;         /* likewise */
        bool unsettled;         /* since we are in touch its state was not looked at */
        bool dirty;             /* something happened: look */
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
        char *said;            /* why its files are not taken yet, in the far server's words; or NULL */
        char *hops;            /* JSON, or NULL */
        char *global;          /* the far job's GlobalJobId, once it was seen: no other has it */
        struct far_kept *kept; /* a checkpoint on its way here; or NULL */
        char *kept_id;         /* the last that is here; or NULL */
        unsigned kept_turn;
        size_t kept_most[2]; /* files of it, by turn */
        json_t *failed; /* the job there, held by what happened to it, while its path is asked for; or NULL */
};

struct far_user {
        char *owner, *name, *home; /* name@domain, who is mapped to the local user; the user, his home */
        unsigned uid;
        char *token;  /* the file's path */
        char *folder; /* of errands: its name */
        struct args env;
        struct errands *errands;
};

struct far_table {         /* written by tasks.c, submit.c and send.c */
        struct map *tasks; /* by id */
        struct far_task *all, **last;
        struct idmap *requests;                /* those that are in, by the far number */
        struct far_request *sent, **sent_last; /* all requests */
        struct map *known;                     /* checksums of objects that the far server has of us */
        size_t unsettled, keeping;
};

struct far_link {     /* written by link.c and hello.c */
        bool up;      /* we are in touch */
        bool listed;  /* that we are ready was told */
        bool refused; /* it does not take this user for anybody */
        char *why;    /* that was told of its being away; NULL: it is not, or nothing was told */
        int64_t retry_ms;
        struct timer *hello;
        char server[FAR_UUID], you[256];
};

enum far_poll { FAR_FEED, FAR_ROOM, FAR_PATHS, FAR_POLLS };

struct far {
        struct runner base;
        /* as it was opened */
        struct far_user *user; /* with a map of users: in whose name; NULL: in our own */
        struct loop *loop;
        char *queue, *dir, *address, *token_file, *domain;
        const struct hidden *closed; /* where no path of a job's may lead */
        bool shared;                 /* its places see our files */
        int fd;                      /* of dir */
        struct http_client *client;
        struct tls_context *tls;
        /* its parts, each in the file of that name */
        struct event_queue *events;
        struct far_table table;
        struct far_link link;
        struct far_login *login; /* hello.c */
        struct far_feed *feed;
        struct http_call *polls[FAR_POLLS]; /* of the feed: they end when we are out of touch */
        struct far_lease *lease;
        struct far_acts *acts;
        struct {
                struct far_quote *first;
                unsigned count;
        } quotes;                            /* that are open */
        struct timer *later, *tick, *gather; /* work.c */
        bool gathering;                      /* tasks were given or forgotten since the last flush */
};

static inline uint64_t far_number(const struct far_task *t) /* of its request; 0: not known */
{
        return t->in ? t->in->number : 0;
}

/* answers.c */
/* A body as JSON; NULL: it is none, or has more values than an answer can need. */
json_t *far_json(struct str body);
/* Appends a text of another server as one line of UTF-8 without control characters, and not too long. */
void far_words(struct buf *out, struct str words);
/* The sentence of an answer that is a refusal. */
void far_error(struct buf *out, int status, struct str body);
/* A refusal that is none for good: its disk is full, it is stopping or restarted, our token is a new one by
 * then. */
static inline bool far_later(int status)
{
        return status == 401 || status == 429 || (status >= 502 && status <= 504);
}

/* credentials.c */
void far_credential_set(struct far_credential **list, const struct run_credential *c); /* replaces */
void far_credentials_free(struct far_credential **list);

/* tasks.c */
void far_tasks_open(struct far *f);
void far_tasks_close(struct far *f); /* frees them */
struct far_task *far_task_new(struct far *f, struct run_id id);
void far_task_free(struct far_task *t);    /* its request does not know */
void far_words_deinit(struct far_task *t); /* with its files */
void far_files_deinit(struct far_files *files);
void far_kept_drop(struct far_task *t); /* what is on its way */
/* Sets the task's hops from an array; none, if that is longer than a path can be. */
void far_set_hops(struct far_task *t, const json_t *hops);
void far_gather(struct far *f, const struct run_event *e); /* told in the next turn; its text is copied */
void far_tell(struct far *f, const struct far_task *t, bool known);
void far_settled(struct far_task *t); /* its state was looked at, or does not matter */
void far_list(struct far *f);         /* tells all tasks and that we are ready, once all are settled */
/* The result is final: its files are here, or never come. Once: later ones are dropped. Text: or NULL;
 * copied. */
void far_over(struct far_task *t, const struct run_event *result, const char *text);
void far_fail(struct far_task *t, const char *what, int error, const char *text);
void far_fail_files(struct far_task *t); /* it has more than FAR_FILES_MAX */

/* link.c */
void far_away(struct far *f, const char *why); /* a call had no answer */
void far_tell_away(struct far *f, const char *what, const char *why);
void far_retry(struct far *f, bool answered, const char *why); /* the first call is made again, later */
/* A call of our own, with a deadline: it borrows path and body until it returns. */
struct http_call *far_ask(struct far *f, const char *method, struct buf *path, struct str body,
                          http_call_fn *fn);
struct http_call *far_get(struct far *f, const char *path, http_call_fn *fn);

/* user.c: with a map of users. Nothing that a user names is opened with our own rights, and what he has in
 * his sandbox only through far_input */
int far_user_new(const char *owner, const char *name, const char *token, struct errands *errands,
                 struct far_user **ret, struct err *err);
void far_user_free(struct far_user *u);
/* Runs a script of the shell with these words; `as`: what is particular to it. */
struct command *far_user_run(const struct far_user *u, const char *script, const char *const *words,
                             const struct errand_spec *as, command_done_fn *done, void *arg);
void far_user_said(struct buf *out, struct str errors); /* what a script said when it failed, on one line */

/* names.c */
/* Where an output belongs, appended: beneath `dir`, or for a stream wherever its job wants it. 0, or -EINVAL:
 * its name would leave the folder. */
int far_destination(const struct far_task *t, const char *dir, const char *name, struct buf *out,
                    bool *ret_append);
int far_path_in(struct buf *out, const char *dir,
                const char *name); /* dir/name; -EINVAL: it would not be in it */
void far_file_path(const struct far_task *t, const char *name, struct buf *out); /* of the API */
void far_cannot_keep(struct far_task *t, const char *name, const char *why, int error);

/* describe.c */
void far_describe(struct far_task *t, const struct run_spec *spec); /* FRESH: what it is, and its files */
void far_exposed(struct far_task *t, bool program,
                 bool input); /* with a map of users: what is sent is known */
/* The attributes of a job that wants as much, and does nothing. */
void far_words_like(struct far_task *t, const struct run_spec *spec);
void far_quoted(struct buf *out, struct str s); /* a text of ClassAds */

/* party.c */
void far_expose(struct far_task *t); /* FRESH: lets us read its files; they are in t->files then */
int far_input(struct far_task *t, const struct far_file *file); /* a descriptor or -errno */
int far_user_output(const struct far_task *t, size_t index); /* a new file for what is fetched; or -errno */
void far_place(struct far_task *t); /* FETCHING: all is here; puts it where it belongs, then it is OVER */

/* acts.c: they go out with the next far_acts_send() */
void far_act(struct far_task *t, enum far_act what);
void far_signal(struct far_task *t, int signal); /* IN; kept for when it runs, if it does not now */
void far_signals_due(struct far_task *t);        /* it runs: those that were kept */
void far_act_on(struct far *f, uint64_t request, uint32_t member, enum far_act what);
void far_taken(struct far *f, uint64_t request, uint32_t member);
void far_acts_send(struct far *f);
struct far_acts *far_acts_new(void);
void far_acts_free(struct far_acts *a);

/* lease.c */
int64_t far_lease_ms(const struct far *f); /* what a request is given */
void far_lease_send(struct far *f);
void far_lease_set(struct far *f, int64_t until_boot_ms); /* the agent's */
uint64_t far_lease_serial(const struct far *f);           /* how often it was set */
bool far_lease_is_over(const struct far *f, int64_t now);
int64_t far_lease_given_ms(const struct far *f); /* what a request was given last */
struct far_lease *far_lease_new(void);

/* feed.c */
void far_feed_start(struct far *f, uint64_t cursor);
void far_feed_look(struct far *f, int64_t now); /* asks for what it is time for */
uint64_t far_feed_cursor(const struct far *f);
struct run_capacity far_capacity(const struct far *f); /* borrows the server's uuid of f */
struct far_feed *far_feed_new(void);

/* hello.c */
void far_link_open(struct far *f);
void far_login_free(struct far_login *l);

/* carry.c */
void far_carry(struct far_request *r); /* IN: sends what the far server does not have yet */

/* send.c */
void far_send_files(struct far_task *t); /* then it is READY */

/* submit.c */
struct far_request *far_request_new(struct far *f, const char *uuid, size_t count);
void far_request_free(struct far_request *r); /* its tasks are in none */
void far_keep(struct far_request *r);         /* writes its file, and sends it; its tasks are READY */
void far_submit(struct far_request *r);       /* KEPT: once, or once more */
bool far_restore(struct far *f, struct str document, const char *uuid); /* from its file */
void far_request_left(struct far_request *r, uint32_t member); /* its task is forgotten; may free it */

/* group.c */
void far_group(struct far *f); /* READY tasks become requests */
/* "parts" of these tasks, which are alike, in an open object. */
struct json;
void far_parts(struct json *j, struct far_task *const *tasks, size_t count);
/* The document of a request of these tasks, which are alike, open at the end. */
void far_document(struct buf *out, const char *uuid, struct far_task *const *tasks, size_t count);

/* fetch.c */
void far_fetch(struct far_task *t);
void far_forget_marks(const struct far_task *t); /* that kept its streams from being appended twice */

/* kept.c */
/* IN, as the job was seen just now. True: a checkpoint is on its way here, or looked for. */
bool far_keep_here(struct far_task *t, const json_t *job);

/* job.c */
void far_look(struct far_task *t);

/* quote.c */
void far_quote(struct far *f, const struct run_spec *spec);
void far_quotes_drop(struct far *f);

/* work.c */
void far_work_open(struct far *f);
void far_work_start(struct far *f);
void far_work_close(struct far *f);
void far_work(struct far *f);  /* lets tasks that wait for a turn go on */
void far_flush(struct far *f); /* sends what there is to send, if we are in touch */
void far_kill(struct far_task *t, enum run_why why);

/* open.c */
/* As open() of struct runner_kind, which is not set. user: NULL, or taken, also with an error. */
int far_open(const struct runner_config *c, struct far_user *user, struct far **ret, struct err *err);
const char *far_setting(const struct runner_config *c, const char *name); /* NULL: it is not set */
void far_close(struct far *f); /* and frees; also one that is half open */

/* users.c */
int far_users_open(const struct runner_config *c, struct runner **ret, struct err *err);
