#include "run/drover/user.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>

#define SAID_MAX 300

/* Appends the token's path: relative to the user's home unless it is absolute; %u is the user's name. */
static void token_path(const struct remote_user *u, const char *setting, struct buf *out)
{
        struct str rest = str_of(setting);

        if (*setting != '/')
                buf_printf(out, "%s/", u->home);
        for (ptrdiff_t at; (at = str_search(rest, STR("%u"))) >= 0; rest = str_skip(rest, (size_t)at + 2))
                buf_printf(out, STR_FMT "%s", STR_ARG(str_head(rest, (size_t)at)), u->name);
        buf_str(out, rest);
}

int remote_user_new(const char *owner, const char *name, const char *token,
                    struct user_commands *user_commands, struct remote_user **ret, struct err *err)
{
        const struct passwd *pw = getpwnam(name);
        struct buf path = {0}, folder = {0};

        if (!pw)
                return err_set(err, -ENOENT, "there is no user %s here", name);
        struct remote_user *u = mem_new(struct remote_user);
        u->owner = mem_dupz(owner);
        u->name = mem_dupz(name);
        u->home = mem_dupz(pw->pw_dir);
        u->uid = pw->pw_uid;
        u->user_commands = user_commands;
        token_path(u, token, &path);
        u->token = buf_take(&path);
        buf_printf(&folder, "hop.%s", name);
        u->folder = buf_take(&folder);
        args_add(&u->env, STR("PATH=/usr/local/bin:/usr/bin:/bin"));
        user_command_environment(&u->env, name);
        *ret = u;
        return 0;
}

void remote_user_free(struct remote_user *u)
{
        if (!u)
                return;
        args_deinit(&u->env);
        free(u->owner);
        free(u->name);
        free(u->home);
        free(u->token);
        free(u->folder);
        free(u);
}

struct command *remote_user_run(const struct remote_user *u, const char *script, const char *const *words,
                                const struct user_command_spec *as, command_done_fn *done, void *arg)
{
        ARGS_CLEANUP struct args argv = {0};

        args_add(&argv, STR("/bin/sh"));
        args_add(&argv, STR("-c"));
        args_add(&argv, str_of(script));
        args_add(&argv, STR("drover"));
        for (; *words; words++)
                args_add(&argv, str_of(*words));
        const struct user_command_spec spec = {.owner = u->owner,
                                               .user = u->name,
                                               .folder = u->folder,
                                               .argv = &argv,
                                               .envp = u->env.v,
                                               .input = as->input,
                                               .input_fd = as->input_fd,
                                               .timeout_ms = as->timeout_ms};
        return user_command_run(u->user_commands, &spec, done, arg);
}

void remote_user_said(struct buf *out, struct str errors)
{
        errors = str_trim(errors);
        for (size_t i = 0; i < errors.n && i < SAID_MAX; i++)
                buf_char(out, (unsigned char)errors.p[i] < ' ' ? ' ' : errors.p[i]);
}
