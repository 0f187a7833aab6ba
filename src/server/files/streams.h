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
struct streams_command {
        const struct str *words;
        size_t count;
        bool input;             /* streams_input brings what it reads; else it reads nothing */
        bool terminal;          /* it has one, and no other streams */
        uint32_t rows, columns; /* of it; 0: unknown */
        struct str term;        /* its $TERM; empty: none */
};
/* Has such a command run at the agent of the attempt. The answer says only whether it was started; *ret_exec
 * is its number then. */
uint64_t streams_exec(struct server *s, const char *who, const struct streams_question *q,
                      const struct streams_command *x, uint64_t *ret_exec);
struct streams_input {
        uint64_t offset; /* of the first byte within all of the input */
        struct str bytes;
        bool end;               /* nothing follows */
        uint32_t rows, columns; /* of its terminal, from now on; 0: as they were */
};
/* Brings input to the command q->exec. The answer says how much of it was taken, when anything was, or in a
 * while: chunk.input_next, and `over` when the command reads nothing more. */
uint64_t streams_input(struct server *s, const char *who, const struct streams_question *q,
                       const struct streams_input *x);
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
        uint64_t input_next; /* of the input of a command: the offset of the first byte that was not taken */
};
void streams_chunk_deinit(struct streams_chunk *c);
/* If the answer has come: fills the chunk, forgets the question, and is true. */
bool streams_take(struct server *s, uint64_t number, struct streams_chunk *ret);
void streams_drop(struct server *s, uint64_t number);
