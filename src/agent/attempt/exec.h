/* exec: commands that run beside an attempt's program: in the same sandbox or container, as the same user,
 * with its environment and limits.
 *
 * Their output is asked for with streams_ask. A command ends with the attempt, and when nobody has asked for
 * its output for half a minute, unless it is one that stays.
 */
#pragma once
#include "agent/attempt/followed.h"

struct exec_request {
        uint64_t serial; /* of the answer that says whether it was started */
        uint64_t request;
        uint32_t member, fence;
        uint64_t number; /* by which its output is asked for */
        char *const *argv;
        size_t argc;
        bool input;             /* its standard input comes from exec_input; else it is /dev/null */
        bool terminal;          /* its streams are a terminal, whose output is sent as stdout */
        unsigned rows, columns; /* of the terminal; 0: unknown */
        const char *term;       /* $TERM; "": none */
        bool stays;             /* it does not end when nobody asks, nor with the agent */
};
struct exec_input {
        uint64_t serial; /* of the answer that says how much was taken */
        uint64_t request;
        uint32_t member, fence;
        uint64_t number;
        uint64_t offset; /* position of the first byte in the whole input */
        struct str data;
        bool end;               /* the input ends after the data */
        unsigned rows, columns; /* new size of the terminal; 0: unchanged */
};

void exec_start(struct agent *a, const struct exec_request *m);
void exec_take_input(struct agent *a, const struct exec_input *m);
bool exec_event(struct agent *a, const struct run_event *e); /* returns true if the task is such a command */
void exec_kill_all(struct attempt *at);                      /* kills the commands beside the attempt */
/* Answers input that waits for room when there is some, or when its time is up. */
void exec_answer_input(struct followed *f, int64_t now_ms);
