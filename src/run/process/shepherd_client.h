/* shepherd_client: the agent's end of the shepherd's socket.
 *
 * Connects to the shepherd of a state folder, and starts one when none answers; again, after a growing
 * delay, when it dies. Records are collected until they are flushed, and sent in as few messages as
 * possible. A shepherd that is alive but does not answer is not replaced, since only it knows its children.
 * Callbacks come on the loop's thread.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "run/process/shepherd_protocol.h"

struct shepherd_client;
struct shepherd_client_config {
        const char *dir, *instance;  /* copied */
        const char *program;         /* NULL: drover-shepherd beside the agent's program, then in PATH */
        const char *users_path;      /* may be NULL */
        unsigned min_uid, agent_uid; /* with users_path */
        const char *cgroups[2];      /* with users_path: cgroup folders, see runner.h */
        const char *const *hidden;   /* folders hidden from jobs, NULL behind the last; copied; or NULL */
        int64_t silence_ms;          /* see `silent`; 0: silence is not detected */
};
struct shepherd_client_ops {
        /* WELCOME, each CHILD, LISTED */
        void (*record)(void *arg, const struct shepherd_record *r);
        void (*batch)(void *arg); /* after the records of one message */
        void (*gone)(void *arg);  /* the shepherd has died and its children with it; another is started */
        /* true: the shepherd has not answered for silence_ms though it was asked. false: it answers again,
         * told only after a silence, and not after `gone`. */
        void (*silent)(void *arg, bool silent);
        void (*failed)(void *arg, const char *why); /* no shepherd could be started, which is tried again; not
                                                       repeated for the same reason */
};
struct shepherd_client *shepherd_client_new(struct loop *l, const struct shepherd_client_config *c,
                                            const struct shepherd_client_ops *ops, void *arg);
/* Tries once more to send what is left; NULL is fine. */
void shepherd_client_free(struct shepherd_client *c);
/* Returns the buffer for a batch: append whole records to it, and flush at the end of the turn. Its content
 * is dropped while there is no shepherd. */
struct buf *shepherd_client_out(struct shepherd_client *c);
void shepherd_client_flush(struct shepherd_client *c);
/* Passes the descriptor (borrowed) of the START with SHEPHERD_STDIN_FD that was appended last. */
void shepherd_client_pass(struct shepherd_client *c, int fd);
/* Appends the ids (struct shepherd_id) of all children that were begun and are not forgotten, from the file
 * SHEPHERD_BEGUN; the shepherd need not answer. Returns 0, or -errno: the file or the shepherd is missing.
 */
int shepherd_client_begun(const struct shepherd_client *c, struct buf *ret);
bool shepherd_client_up(const struct shepherd_client *c); /* connected and listed */
