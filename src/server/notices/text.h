/* text: the text of a notice about a job or a node, for a mail or as JSON for a web hook.
 *
 * All values come from the job's ad at the time of the call. Pure, except for the time zone. */
#pragma once
#include "base/buf.h"
#include "classad/ad.h"

enum notice_what {
        NOTICE_COMPLETED,
        NOTICE_FAILED,
        NOTICE_HELD,
        NOTICE_REMOVED,
        NOTICE_STARTED,
        NOTICE_NODE, /* not about a job; alone in its notice */
        NOTICE_WHATS
};
extern const char *const notice_names[NOTICE_WHATS]; /* "completed" … */

struct notice_job {
        enum notice_what what;
        uint64_t request;
        uint32_t member;
        int64_t at_ms;
        const struct ad *ad; /* its parent ad has the attributes that all jobs share */
        struct str reason;   /* of the hold or the removal */
};
/* "Job 7.42 failed with exit code 3": one line of ASCII. */
void notice_subject(struct buf *out, const struct notice_job *j);
/* A paragraph, with one line for each attribute in EmailAttributes that the job has. */
void notice_words(struct buf *out, const struct notice_job *j);
/* An object with the members id, what, at_ms, exit_code or signal, reason, command, batch, place, attributes.
 */
void notice_json(struct buf *out, const struct notice_job *j);
struct notice_node {
        struct str name, state, by, reason;
        int64_t at_ms;
};
/* "Node n7 is draining": one line of ASCII. */
void notice_node_subject(struct buf *out, const struct notice_node *n);
void notice_node_words(struct buf *out, const struct notice_node *n); /* a paragraph */
/* An object with the members node, state, by, reason, at_ms. */
void notice_node_json(struct buf *out, const struct notice_node *n);
/* "57 jobs: 50 completed, 7 failed"; "3 changes of nodes". */
void notice_counts(struct buf *out, const uint64_t counts[NOTICE_WHATS]);
