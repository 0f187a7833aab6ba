/* test_story: a core whose world writes down what it is told, for tests that are stories: what a user, an
 * agent and a clock do to it, and what follows.
 *
 * The stories' request is the first, their agents have one queue, `q`, and jobs are ann@local's.
 */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "core/query.h"

struct story {
        const char *owner; /* of what is submitted; NULL: ann@local */
        struct core *core;
        struct buf events;  /* "submitted 1\nmatched 1 0-3 f1\n..." */
        struct buf actions; /* "assign n1 default 1 0-3 f1\ncontrol n1 2 1 0 f1\n" */
        struct buf history; /* "1.0 completed 0\n" */
        struct buf record;  /* of request 1 */
        struct buf log[64];
        size_t log_count;
        int64_t now;
};

int story_setup(void **state);
int story_teardown(void **state); /* the core's invariants hold */
#define STORY(f) cmocka_unit_test_setup_teardown(f, story_setup, story_teardown)

/* Another core with the story's world; the caller's. */
struct core *story_core(struct story *s, bool shadow);
void story_wait(struct story *s, int64_t ms); /* the clock only; core_tick() is the test's */
/* Attributes as name, text pairs up to NULL; a text with a macro is late. The request's number, or the
 * error's, negative. */
int story_submit(struct story *s, uint64_t steps, const char *const *pairs, struct err *err);
#define SUBMIT(steps, ...)                                                                                   \
        story_submit(s, steps, (const char *const[]){"Requirements", "true", __VA_ARGS__, NULL}, NULL)
/* The agent is there, makes this offer, and the core matches. */
void story_offer(struct story *s, const char *agent, const char *ad, unsigned jobs);
bool story_result(struct story *s, const char *agent, uint32_t member, uint32_t fence, int exit_code);
/* How many jobs it was done to; members: NULL for all. */
uint64_t story_act(struct story *s, enum core_action action, const char *members, int64_t value);

/* The log, replayed, gives the state that there is; so does a snapshot. */
void story_replays(struct story *s);

/* What was written down since the last time is this. */
#define SAID(what, text)                                                                                     \
        do {                                                                                                 \
                assert_string_equal(buf_z(&s->what), text);                                                  \
                buf_reset(&s->what);                                                                         \
        } while (0)
#define FORGET(what) buf_reset(&s->what)
