/* The fixture of the agent's tests: a folder of its own, the real agent and shepherd ($AGENT and $SHEPHERD),
 * and a small test server that the agent joins. The server answers joins, hellos and renewals by itself and
 * keeps other messages until a test hears them. Every function fails the test (cmocka) if it cannot do its
 * work. There is one rig at a time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "wire/session.h"

#define PATIENCE_MS 20000 /* how long a test waits for an expected message or file */

struct rig {
        char owner[128]; /* owner of the jobs that rig_assign assigns; a test sets it from the first offer */
        char top[64];    /* top folder */
        char state[96];  /* the agent's --dir */
        char work[96];   /* folder of the jobs' files unless struct job names one */
        char address[128], token[256];
        struct session *session; /* session with the agent; NULL: none */
        pid_t agent;             /* 0 before rig_start_agent */
        uint64_t renew_ms, lease_ms;
        uint64_t file_max; /* largest file in bytes that the next agent may write, which simulates a full
                              disk; 0: no limit */
        bool answer_renewals, answer_inventory; /* false: the server keeps silent */
};
extern struct rig rig;

/* A job for rig_assign, with fence 3. Members that are NULL, 0 or false are left out. */
struct job {
        const char *iwd; /* NULL: rig.work */
        uint64_t request;
        const char *script; /* for sh -c */
        const char *second; /* another step */
        bool ignore_failure, wait_for_go, all_outputs, missing_program, elsewhere, stranger;
        const char *input, *output, *stdout_file, *spooled_name, *spooled_text;
        uint32_t count, cpus;
};

int rig_setup(void **s);    /* cmocka's group setup: starts all but the agent */
int rig_teardown(void **s); /* cmocka's group teardown: the agent must exit with 0 */

/* Starts the agent; its log goes to rig.top/log. May be called again after the test has killed and waited
 * for the first one. */
void rig_start_agent(void);
void rig_kill_agent(void); /* kills with SIGKILL; earlier messages are dropped */

/* ---- the server's side */
void rig_send(Drover__ToAgent *m);
void rig_reply_inventory(Drover__Attempts **kill_list, size_t n);
/* Returns the next message of that kind; earlier messages are dropped. Valid until the next call. */
Drover__ToServer *rig_hear(Drover__ToServer__KindCase kind);
/* Drops all received messages. */
void rig_forget(void);
/* Runs the server and handles messages for that long. */
void rig_run_for(int64_t ms);

/* ---- work */
void rig_assign(const struct job *j);
/* Returns the name of the only member of a request, for a message. */
Drover__Attempts *rig_attempt(uint64_t request);
void rig_control(uint64_t request, Drover__Command command);
/* Waits for the result of a request of one job, and acknowledges it. */
Drover__JobResult *rig_result(uint64_t request);

/* ---- files in rig.work */
void rig_place(const char *file, const char *text);
void rig_content(const char *file, const char *want);
bool rig_exists(const char *file);
void rig_wait_for(const char *file);
void rig_sha256(const char *text, unsigned char ret[32]);
