/* streams: lets callers of the API read the output of running attempts, and run commands beside them.
 *
 * A request concerns one attempt at one agent. An answer from another agent, or with more bytes than
 * requested, is ignored. An answer is kept until the caller takes it or drops the request. Core thread.
 */
#pragma once
#include "server/agents/command.h"
#include "server/loop/server.h"

#define STREAMS_CHUNK COMMAND_STREAM_MAX /* maximum bytes of one stream in an answer */
/* The id that a caller which waits for question N watches, in place of a request (waits.h). */
#define STREAMS_WATCH(number) ((1ull << 63) | (number))

struct streams;
struct streams *streams_new(void);
void streams_free(struct streams *x); /* accepts NULL */

struct streams_question {
        const char *agent;
        uint64_t request;
        uint32_t member, fence;
        uint64_t offset[2]; /* of stdout and stderr */
        bool wanted[2];
        uint64_t last;   /* offsets are relative to this many bytes before the end; 0: to the beginning */
        int64_t wait_ms; /* time that the agent waits for output before it answers */
        uint64_t exec;   /* number of a command of streams_exec; 0: the attempt's own program */
        /* Called with the question's number when it is answered; NULL: who watches STREAMS_WATCH is woken. */
        void (*answered)(struct server *s, uint64_t number);
};
/* Asks on behalf of the user `who`. Returns the question's number, or 0 if the agent is not connected or too
 * many questions are open (the user's or altogether). */
uint64_t streams_ask(struct server *s, const char *who, const struct streams_question *q);
struct streams_command {
        const struct str *words;
        size_t count;
        bool input;             /* streams_input supplies standard input; otherwise it is empty */
        bool terminal;          /* all its streams are a terminal */
        uint32_t rows, columns; /* size of the terminal; 0: unknown */
        struct str term;        /* $TERM; empty: not set */
        bool stays;             /* it does not end when nobody asks for its output; streams_exec_stays */
};
/* Starts a command beside the attempt. *ret_exec is the command's number, for streams_question.exec. The
 * answer says only whether the command was started. Returns as streams_ask. */
uint64_t streams_exec(struct server *s, const char *who, const struct streams_question *q,
                      const struct streams_command *x, uint64_t *ret_exec);
bool streams_exec_stays(uint64_t exec); /* whether a command of this number was started with `stays` */
struct streams_input {
        uint64_t offset; /* of the first byte within all of the input */
        struct str bytes;
        bool end;               /* end of the input */
        uint32_t rows, columns; /* new size of the terminal; 0: unchanged */
};
/* Sends input to the command q->exec. The answer comes when some of the input was accepted, or after a while:
 * chunk.input_next, and `over` if the command reads no more input. Returns as streams_ask. */
uint64_t streams_input(struct server *s, const char *who, const struct streams_question *q,
                       const struct streams_input *x);
void streams_answer(struct server *s, struct command *c, struct agent *a);
/* Ends the questions to an agent whose session has ended: their callers are woken and find `unknown` set. */
void streams_agent_gone(struct server *s, const char *agent);

struct streams_chunk {
        uint64_t offset[2];
        struct buf bytes[2]; /* appended to */
        bool over;           /* end of the streams */
        bool away;           /* with `unknown`: the agent's session ended before it answered */
        bool unknown;        /* the agent has no such attempt, or is not connected */
        struct buf error;    /* why a command was not started */
        bool signaled;       /* a signal ended the command */
        int32_t exit_code;   /* exit code or, if signaled, the signal's number */
        uint64_t input_next; /* offset of the first byte of a command's input that was not accepted */
        int64_t cpu_ms, memory_bytes; /* used by the attempt so far, and now; 0: not known */
};
void streams_chunk_deinit(struct streams_chunk *c);
/* Returns whether the question was answered; if so, fills the chunk and forgets the question. */
bool streams_take(struct server *s, uint64_t number, struct streams_chunk *ret);
void streams_drop(struct server *s, uint64_t number);
