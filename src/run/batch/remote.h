/* remote: the files of a batch queue whose tasks run where they do not see the agent's folder.
 *
 * There are two ways: over SSH to a login node (login_node.h), and by HTTP to the folder that a computing
 * element gives each job (sessions.h). A queue without either has a shared file system, and the calls here do
 * nothing. With both, a task's files are copied there before it runs. When it has ended they are copied back,
 * and only then is the file of its end created locally, so that all other modules see the same as on a
 * shared file system, only later.
 */
#pragma once
#include "run/batch/batch.h"

struct batch;
struct submission;
struct task;

#define BATCH_REMOTE_LATE_MS 30000   /* how long telling of a lease may take, at most a quarter of it */
#define BATCH_REMOTE_ORDERS  1048576 /* most bytes of paths of order files that wait to be copied there */

struct remote_files;
struct remote_kind {
        void (*free)(struct remote_files *r);
        /* NULL: the system is not asked by commands. */
        void (*wrap)(const struct remote_files *r, const struct args *env, struct batch_call *call);
        void (*look)(struct batch *b);
        bool (*has)(struct batch *b, struct submission *s); /* NULL: files follow the submission */
        void (*order)(struct batch *b, const char *path);
        void (*lease)(struct batch *b, struct str text, int64_t timeout_ms);
        void (*forget_task)(struct batch *b, const struct task *t);
        void (*forget_submission)(struct batch *b, const struct submission *s); /* NULL: nothing is left */
        bool (*may_tell)(const struct batch *b, struct task *t);
        void (*stray)(struct batch *b, struct str native); /* NULL: nothing is left of it */
};
struct remote_files { /* the first member of each way's own struct */
        const struct remote_kind *kind;
};

/* Returns 0 and *ret, which is NULL for a queue with a shared file system; or -EINVAL with err. */
int batch_remote_open(struct batch *b, const struct runner_config *c, struct remote_files **ret,
                      struct err *err);
/* Cancels transfers in progress and closes the connection. NULL is fine. */
void batch_remote_free(struct remote_files *r);
/* Rewrites the call's command to run at the login node. */
void batch_remote_wrap(const struct remote_files *r, const struct args *env, struct batch_call *call);
/* Looks for files there and starts due transfers. Called on every tick. */
void batch_remote_look(struct batch *b);
/* Returns whether the submission may be submitted as far as its files are concerned. If not, they are copied,
 * and batch_submit_later is called when they have arrived. */
bool batch_remote_has(struct batch *b, struct submission *s);
/* Copies an order file of a sandbox, or the lease file. An order is dropped while BATCH_REMOTE_ORDERS of
 * earlier ones wait. */
void batch_remote_order(struct batch *b, const char *path);
void batch_remote_lease(struct batch *b, struct str text, int64_t timeout_ms);
/* Removes there what is left of a task, or of a submission, that is forgotten. */
void batch_remote_forget_task(struct batch *b, const struct task *t);
void batch_remote_forget_submission(struct batch *b, const struct submission *s);
/* Removes there what is left of a job that is over and belongs to no task. */
void batch_remote_stray(struct batch *b, struct str native);
/* Returns whether the task's end may still be found there: its files have not been brought here since it went
 * missing. */
bool batch_remote_may_tell(const struct batch *b, struct task *t);

/* ---- for the ways themselves */

/* Adds the path of an order file to those that wait, each ended by a newline. Returns false if too many wait
 * already: the file is then removed here. */
bool batch_remote_add_order(struct buf *waiting, const char *path);

/* Returns the path relative to the agent's folder `here`; empty: it is elsewhere. */
struct str batch_remote_name(const char *here, const char *path);
/* Returns whether a path is a folder whose name is safe to put into scripts. */
bool batch_remote_is_folder(const char *path);
/* Makes a script's file here, with its modification time there. */
void batch_remote_mark(const struct task *t, const char *end, int64_t mtime_s);
/* Appends a script of the shell with the agent's folder as $0, that unpacks the tar archive which `source`
 * prints. Only paths beneath `names`, each quoted and with a blank before it, are unpacked, by way of the
 * folder `in` of the queue; owners and permissions beyond the umask are dropped. A missing name is no
 * failure. */
void batch_remote_unpack(const struct batch *b, const char *source, const char *in, struct str names,
                         struct buf *out);
/* Returns how many bytes may be written here; the rest of the disk is kept for others. */
uint64_t batch_remote_room(const struct batch *b);
/* Completes a task whose files have been unpacked: the file of its end gets its name, last. */
void batch_remote_arrived(struct task *t);
