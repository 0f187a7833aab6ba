/* test_help: a core in a world that writes down what is assigned, and submissions in a line; for tests. */
#pragma once
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/core.h"

static struct buf bare_assigned; /* "n1/default 1 0-3\n" */

static inline void bare_event(void *arg, const struct event *e)
{
        (void)arg, (void)e;
}
static inline void bare_history(void *arg, const struct core_finished *f)
{
        (void)arg, (void)f;
}
static inline void bare_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg, (void)request, (void)record;
}
static inline void bare_forget(void *arg, uint64_t request)
{
        (void)arg, (void)request;
}
static inline void bare_assign(void *arg, const struct core_assignment *a)
{
        (void)arg;
        buf_printf(&bare_assigned, "%s/%s %llu ", a->agent, a->queue, (unsigned long long)a->request);
        set_print(&bare_assigned, a->members);
        buf_char(&bare_assigned, '\n');
}
static inline void bare_control(void *arg, const char *agent, enum core_control what, uint64_t request,
                                uint32_t fence, const struct set *members)
{
        (void)arg, (void)agent, (void)what, (void)request, (void)fence, (void)members;
}
static inline int bare_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg, (void)request, (void)ret;
        return err_set(err, -ENOENT, "there is no log");
}

static inline int bare_core(void **state)
{
        static const struct core_world world = {NULL,         bare_event,  bare_history,
                                                bare_keep,    bare_forget, bare_assign,
                                                bare_control, bare_load,   NULL};
        static const struct core_config config = {.lease_ms = 60000};

        *state = core_new(&config, &world);
        core_clock(*state, 1700000000000, 1000);
        return 0;
}
static inline int bare_core_free(void **state)
{
        core_free(*state);
        buf_deinit(&bare_assigned);
        return 0;
}
