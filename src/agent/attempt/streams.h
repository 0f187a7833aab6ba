/* streams: answers questions about the output of attempts, and of commands beside them, while they run.
 *
 * A question names how much of each stream the asker has. It is answered when there is more, when the steps
 * are over, or when its time is up.
 */
#pragma once
#include "agent/attempt/followed.h"

struct streams_question {
        uint64_t serial; /* repeated in the answer */
        uint64_t request;
        uint32_t member, fence;
        uint64_t exec;      /* number of a command beside the attempt; 0: the attempt's own output */
        bool wanted[2];     /* stdout, stderr */
        uint64_t offset[2]; /* of the first wanted byte */
        uint64_t last;      /* not 0: offsets are this many bytes before the present end of each stream */
        uint64_t most;      /* bytes of each stream in the answer; 0: as many as an answer may have */
        uint64_t wait_ms;   /* longest time until the answer */
};

void streams_open(struct agent *a);
void streams_close(struct agent *a); /* called after all attempts are freed */

void streams_ask(struct agent *a, const struct streams_question *m);
void streams_session_lost(struct agent *a); /* drops the questions of the lost session */
/* Called when the attempt's steps are over and its files are about to be delivered or removed: answers with
 * the rest, and keeps the last bytes for the result (output_tail_keep). A second call does nothing. */
void streams_end(struct attempt *at);
void streams_forget(struct attempt *at); /* called when the attempt is freed */
/* Returns whether somebody has asked for the attempt's output a moment ago. */
bool streams_are_followed(const struct attempt *at);

/* ---- for exec.c */
struct followed_set *streams_followed(struct agent *a);
/* Answers what can be answered about f, whose output or input has changed. */
void streams_changed(struct followed *f);
