/* shepherd_client: the agent's end of the shepherd's socket.
 *
 * Connects to the shepherd of a state folder, and starts one when none answers; when it dies, again, after a
 * short wait that grows. Records gather until they are flushed, and leave as few messages. One that is there
 * and does not answer is not replaced: its children live, and nobody else knows them. Callbacks on the loop's
 * thread.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "ev/loop.h"
#include "run/process/shepherd_protocol.h"

struct shepherd_client;
struct shepherd_client_config {
        const char *dir, *instance;  /* copied */
        const char *program;         /* NULL: drover-shepherd beside our own program, then in PATH */
        const char *users_path;      /* may be NULL */
        unsigned min_uid, agent_uid; /* with users_path */
        const char *cgroups[2];      /* with users_path: see runner.h */
        const char *const
                *hidden;    /* folders that jobs shall not see, NULL behind the last; copied; or NULL */
        int64_t silence_ms; /* see silent; 0: it is not looked for */
};
struct shepherd_client_ops {
        /* WELCOME, each CHILD, LISTED */
        void (*record)(void *arg, const struct shepherd_record *r);
        void (*batch)(void *arg); /* after the records of one message */
        void (*gone)(void *arg);  /* the shepherd has gone away, and its children died with it; another is
                                     started */
        /* For silence_ms nothing has come from it, though it was asked; false: it answers again. Told after
         * a silence only, and not when it has gone. */
        void (*silent)(void *arg, bool silent);
        void (*failed)(void *arg, const char *why); /* none could be started, and it is tried again; not told
                                                       twice in the same words */
};
struct shepherd_client *shepherd_client_new(struct loop *l, const struct shepherd_client_config *c,
                                            const struct shepherd_client_ops *ops, void *arg);
void shepherd_client_free(struct shepherd_client *c); /* what was not sent is tried once more; NULL is fine */
/* Room for a batch: append whole records, and flush when the turn is over. Nothing is kept while there is no
 * shepherd. */
struct buf *shepherd_client_out(struct shepherd_client *c);
void shepherd_client_flush(struct shepherd_client *c);
/* The descriptor (borrowed) of the START with SHEPHERD_STDIN_FD that was appended last. */
void shepherd_client_pass(struct shepherd_client *c, int fd);
/* Appends to `ret` the ids, as struct shepherd_id, of all that was begun and is not forgotten, as the
 * shepherd has written it down (SHEPHERD_BEGUN); no answer of it is needed. 0; or -errno: it has not, or
 * there is none. */
int shepherd_client_begun(const struct shepherd_client *c, struct buf *ret);
bool shepherd_client_up(const struct shepherd_client *c); /* connected and listed */
