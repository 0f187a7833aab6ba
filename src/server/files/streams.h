/* streams: what running attempts print, asked of their agents for callers of the API.
 *
 * A question names one attempt at one agent; the answer of another agent, or with more than was asked for, is
 * not taken. It is kept until the caller takes it. Core thread.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

#define STREAMS_CHUNK COMMAND_STREAM_MAX /* bytes of one stream in an answer, at most */
/* The id that a caller which waits for question N watches, in place of a request (waits.h). */
#define STREAMS_WATCH(number) ((1ull << 63) | (number))

struct streams;
struct streams *streams_new(void);
void streams_free(struct streams *x); /* NULL is fine */

struct streams_question {
        const char *agent;
        uint64_t request;
        uint32_t member, fence;
        uint64_t offset[2]; /* of stdout and stderr */
        bool wanted[2];
        uint64_t last;   /* the offsets count from so many bytes before the end; 0: as they are */
        int64_t wait_ms; /* until there is something */
        uint64_t exec;   /* of this command beside the attempt's program; 0: of the attempt */
};
/* Asks for `who`. Returns the question's number, or 0: the agent is not connected, or too many questions are
 * open, of his or of all. */
uint64_t streams_ask(struct server *s, const char *who, const struct streams_question *q);
/* Has such a command run at the agent of the attempt, with these words. The answer says only whether it was
 * started; *ret_exec is its number then. */
uint64_t streams_exec(struct server *s, const char *who, const struct streams_question *q,
                      const struct str *words, size_t count, uint64_t *ret_exec);
void streams_answer(struct server *s, struct command *c, struct agent *a);
/* The session is over: callers that have asked it are woken, and find the attempt unknown. */
void streams_agent_gone(struct server *s, const char *agent);

struct streams_chunk {
        uint64_t offset[2];
        struct buf bytes[2]; /* added to */
        bool over;           /* nothing follows */
        bool unknown;        /* the agent has no such attempt, or is away */
        struct buf error;    /* of a command: why it was not started */
        bool signaled;       /* of a command that is over */
        int32_t exit_code;   /* or the signal's number */
};
void streams_chunk_deinit(struct streams_chunk *c);
/* If the answer has come: fills the chunk, forgets the question, and is true. */
bool streams_take(struct server *s, uint64_t number, struct streams_chunk *ret);
void streams_drop(struct server *s, uint64_t number);
