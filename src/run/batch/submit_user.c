/* The users for whom jobs are submitted: with a map of users each local user, who must be the one that the
 * system sees submitting and acting; otherwise one, the agent's own user. */
#include "run/batch/submit_user.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "run/batch/calls.h"
#include "run/batch/state.h"

/* Time after a user's last submission in which unknown submissions of the user may still appear. */
#define LATE_MS 600000

/* Makes the environment: the agent's own, without the variables that name its user. */
static void user_environment(const struct batch *b, struct submit_user *p)
{
        const struct args *env = batch_calls_environment(b->calls);

        for (size_t i = 0; i < env->n; i++) {
                struct str e = str_of(env->v[i]);

                if (!str_starts(e, STR("HOME=")) && !str_starts(e, STR("USER=")) &&
                    !str_starts(e, STR("LOGNAME=")))
                        args_add(&p->env, e);
        }
        user_command_environment(&p->env, p->user);
}

struct submit_user *batch_submit_user(struct batch *b, const char *owner, const char *user)
{
        struct submit_user **last = &b->submit_users;
        BUF_CLEANUP struct buf folder = {0}, dir = {0};

        if (!b->user_commands)
                owner = user = NULL;
        for (; *last; last = &(*last)->next)
                if (!user || (!strcmp((*last)->user, user) && !strcmp((*last)->owner, owner)))
                        return *last;
        struct submit_user *p = *last = mem_new(struct submit_user);
        if (!user) {
                p->dir = mem_dupz(b->dir);
                return p;
        }
        p->owner = mem_dupz(owner);
        p->user = mem_dupz(user);
        buf_printf(&folder, "batch.%s.%s", b->queue, user);
        user_command_folder(b->user_commands, buf_z(&folder), &dir);
        p->folder = buf_take(&folder);
        p->dir = buf_take(&dir);
        user_environment(b, p);
        return p;
}

struct submit_user *batch_submit_user_of(struct batch *b, struct str user)
{
        struct submit_user *p = b->submit_users;

        if (!b->user_commands)
                return batch_submit_user(b, NULL, NULL);
        while (p && !str_eqz(user, p->user))
                p = p->next;
        return p;
}

void batch_submit_users_free(struct batch *b)
{
        for (struct submit_user *p = b->submit_users, *next; p; p = next) {
                next = p->next;
                for (size_t i = 0; i < BATCH_VERBS_COUNT; i++)
                        buf_deinit(&p->acts[i]);
                args_deinit(&p->env);
                free(p->owner);
                free(p->user);
                free(p->folder);
                free(p->dir);
                free(p);
        }
        b->submit_users = NULL;
}

void batch_users(const struct batch *b, struct buf *out)
{
        int64_t now = clock_boot_ms();

        for (const struct submit_user *p = b->submit_users; b->user_commands && p; p = p->next)
                if (p->submissions || (p->left_ms && now - p->left_ms < LATE_MS))
                        buf_printf(out, "%s%s", out->n ? "," : "", p->user);
        if (out->n == 0)
                buf_addz(out, b->user);
}
