/* What the agent's tests stand on: a folder of their own, the real agent and shepherd ($AGENT and $SHEPHERD),
 * and a small server of ours that the agent joins. The server answers joins, hellos and renewals by itself
 * and keeps the rest until a test hears it. Everything here fails the test (cmocka) where it can't do what it
 * is asked. There is one rig at a time. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "wire/session.h"

#define PATIENCE_MS 20000 /* how long a test waits for what must come */

struct rig {
        char owner[128]; /* whose jobs rig_assign gives; a test sets it from the first offer */
        char top[64];    /* the folder of all */
        char state[96];  /* the agent's --dir */
        char work[96];   /* where jobs have their files if struct job does not say */
        char address[128], token[256];
        struct session *session; /* with the agent; NULL when there is none */
        pid_t agent;             /* 0 before rig_start_agent */
        uint64_t renew_ms, lease_ms;
        uint64_t file_max; /* bytes of a file that the next agent may write, as if its disk were full; 0: no
                              limit */
        bool answer_renewals, answer_inventory; /* false: the server keeps silent */
};
extern struct rig rig;

/* What rig_assign gives, under fence 3. What is NULL, 0 or false is left out. */
struct job {
        const char *iwd; /* NULL: rig.work */
        uint64_t request;
        const char *script; /* for sh -c */
        const char *second; /* another step */
        bool ignore_failure, wait_for_go, all_outputs, missing_program, elsewhere, stranger;
        const char *input, *output, *stdout_file, *spooled_name, *spooled_text;
        uint32_t count, cpus;
};

int rig_setup(void **s);    /* cmocka's group setup: all but the agent */
int rig_teardown(void **s); /* and its end: the agent must exit with 0 */

/* Starts the agent; its log goes to rig.top/log. Also once more, after the test has killed and waited for the
 * first. */
void rig_start_agent(void);
void rig_kill_agent(void); /* with SIGKILL; what it told before is dropped */

/* ---- the server's side */
void rig_send(Drover__ToAgent *m);
void rig_reply_inventory(Drover__Attempts **kill_list, size_t n);
/* The next message of that kind; those before it are dropped. Valid until the next call. */
Drover__ToServer *rig_hear(Drover__ToServer__KindCase kind);
/* Drops all that came. */
void rig_forget(void);
/* Lets the server and the agent's messages run for that long. */
void rig_run_for(int64_t ms);

/* ---- work */
void rig_assign(const struct job *j);
/* The only member of a request, for a message. Valid until the next call. */
Drover__Attempts *rig_attempt(uint64_t request);
void rig_control(uint64_t request, Drover__Command command);
/* The result of a request of one job; acknowledged. Valid until something is heard. */
Drover__JobResult *rig_result(uint64_t request);

/* ---- files in rig.work */
void rig_place(const char *file, const char *text);
void rig_content(const char *file, const char *want);
bool rig_exists(const char *file);
void rig_wait_for(const char *file);
void rig_sha256(const char *text, unsigned char ret[32]);
