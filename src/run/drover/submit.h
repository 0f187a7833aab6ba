/* submit: submits requests to the other server.
 *
 * A request contains similar tasks that were READY at the same time: one, or an array of many, each a member.
 * Its uuid is derived from the origin's servers and the tasks' jobs and fences, so that a repeated submit is
 * the same request. Its file (DIR/hop.QUEUE/UUID) contains the submission as it is sent, and the data for
 * returning the results. The file is written before the request is submitted; after a restart it is submitted
 * again, which returns the number of the existing request. UUID.gone beside it has the indexes of forgotten
 * tasks.
 */
#pragma once
#include "run/drover/link.h"
#include "run/drover/tasks.h"

struct remote_request {
        struct remote *remote;
        struct remote_request *next, **link;
        struct remote_task **tasks; /* by member; NULL: the task is forgotten */
        size_t count, left;
        char uuid[UUID_TEXT];
        char *submission; /* the document; NULL once it is submitted */
        uint64_t number;  /* request number at the other server; 0: not known */
        struct http_call *call;
        char *said; /* reason why it is not accepted yet or waits, in the other server's words; or NULL */
        int64_t no_place_ms;  /* boot clock; since when no place there would take it; 0: one would */
        int64_t asked_why_ms; /* boot clock; when the reason for waiting was asked for; 0: never */
        int64_t renewed_ms, not_before_ms; /* boot clock; not_before_ms: next try at the earliest */
        uint64_t cursor;                   /* the feed's cursor when it was submitted */
        uint64_t lease_serial;             /* serial of the agent's lease at the last renewal there */
        bool lease_over;
        struct remote_credential *credentials, *syncing; /* syncing: the one that is being sent */
};

/* Adds a request; the table owns it. */
struct remote_request *remote_request_new(struct remote *f, const char *uuid, size_t count);
void remote_request_free(struct remote_request *r); /* its tasks then belong to no request */
/* Writes the file of a request of READY tasks, which become SAVED, and submits it. */
void remote_request_save(struct remote_request *r);
/* Submits a request of SAVED tasks, for the first time or again. */
void remote_submit(struct remote_request *r);
/* Restores a request and its tasks from the document in its file. False: the document is invalid. */
bool remote_restore(struct remote *f, struct str document, const char *uuid);
/* Forgets the task of this member; frees the request after the last one. */
void remote_request_left(struct remote_request *r, uint32_t member);

/* Returns the number of a task's request at the other server; 0: not known. */
static inline uint64_t remote_number(const struct remote_task *t)
{
        return t->in ? t->in->number : 0;
}
