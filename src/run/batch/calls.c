/* Commands and requests in progress, one for each purpose, as the agent's user or as a user of the map. */
#include "run/batch/calls.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "run/batch/remote.h"
#include "run/batch/settings.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/call/ssh.h"

#define COMMAND_MS 60000
#define NOW_MS     10000 /* time for each command while the agent shuts down */

struct slot {
        struct calls *calls;
        struct command *command; /* NULL: the slot is free */
        struct submit_user *submit_user;
        struct batch_call call; /* a request that waits for its user's folder */
        command_done_fn *done;
        void *arg;
};

struct calls {
        struct loop *loop;
        struct user_commands *user_commands; /* NULL: all commands run as the agent's user */
        struct request_server server;        /* for a system with a service */
        struct requests *requests;           /* NULL: the system has commands */
        bool remote;                         /* commands run at a login node */
        struct args env;
        struct slot slots[SLOTS];
};

struct calls *batch_calls_new(const struct batch *b)
{
        struct calls *c = mem_new(struct calls);

        c->loop = b->loop;
        c->user_commands = b->user_commands;
        batch_environment(b->system, &b->settings, &c->env);
        for (size_t i = 0; i < SLOTS; i++)
                c->slots[i].calls = c;
        if (!b->system->service)
                return c;
        c->server =
                (struct request_server){.service = b->system->service,
                                        .address = batch_setting(&b->settings, "rest"),
                                        .ca_file = batch_setting(&b->settings, "ca_file"),
                                        .token_file = batch_setting(&b->settings, "token_file"),
                                        .certificate_file = batch_setting(&b->settings, "certificate_file"),
                                        .key_file = batch_setting(&b->settings, "key_file"),
                                        .user = b->user,
                                        .arg = b->user_commands ? NULL : b->user};
        c->requests = requests_new(c->loop, &c->server);
        return c;
}

void batch_calls_cancel(struct calls *c)
{
        for (size_t i = 0; i < SLOTS; i++) {
                command_cancel(c->slots[i].command);
                batch_call_deinit(&c->slots[i].call);
                c->slots[i].command = NULL;
        }
}

void batch_calls_free(struct calls *c)
{
        if (!c)
                return;
        requests_free(c->requests);
        args_deinit(&c->env);
        free(c);
}

bool batch_busy(const struct batch *b, enum batch_slot slot)
{
        return b->calls->slots[slot].command;
}

void batch_complaints(const struct batch *b, enum batch_slot slot, struct buf *out)
{
        command_complaints(b->calls->slots[slot].command, out);
}

const struct args *batch_calls_environment(const struct calls *c)
{
        return &c->env;
}

const struct request_server *batch_calls_server(const struct batch *b)
{
        return &b->calls->server;
}

bool batch_makes_requests(const struct batch *b)
{
        return b->calls->requests;
}

const char *batch_version(const struct batch *b)
{
        return b->calls->requests ? requests_version(b->calls->requests) : NULL;
}

bool batch_speaks(const struct batch *b)
{
        return !b->calls->requests || !b->system->service->versions || requests_version(b->calls->requests);
}

/* Ends a call. A call without a connection counts as unanswered. */
static void on_done(void *arg, int status, struct str out, struct str errors)
{
        struct slot *s = arg;

        s->command = NULL;
        if (s->calls->remote && status > 0 && WIFEXITED(status) && WEXITSTATUS(status) == SSH_AWAY)
                status = -1;
        s->done(s->arg, status, out, errors);
}

static struct request_spec request_of(const struct batch_call *call, const char *user)
{
        return (struct request_spec){.method = call->method,
                                     .paths = &call->paths,
                                     .body = buf_view(&call->input),
                                     .type = call->type,
                                     .user = user,
                                     .once = call->once,
                                     .first = call->first,
                                     .version = call->version,
                                     .next = call->next,
                                     .next_arg = call->next_arg,
                                     .kind = call->text ? REQUEST_TEXT : REQUEST_ROWS,
                                     .timeout_ms = COMMAND_MS};
}

static void request(struct slot *s, struct batch_call *call)
{
        const struct request_spec spec = request_of(call, s->submit_user ? s->submit_user->user : NULL);

        s->command = request_run(s->calls->requests, &spec, on_done, s);
}

static struct command *user_command(struct slot *s, const struct args *argv, struct str input,
                                    command_done_fn *done)
{
        const struct user_command_spec spec = {.owner = s->submit_user->owner,
                                               .user = s->submit_user->user,
                                               .folder = s->submit_user->folder,
                                               .argv = argv,
                                               .envp = s->submit_user->env.v,
                                               .input = input,
                                               .timeout_ms = COMMAND_MS};

        return user_command_run(s->calls->user_commands, &spec, done, s);
}

static void on_folder(void *arg, int status, struct str out, struct str errors)
{
        struct slot *s = arg;
        struct batch_call call = s->call;

        s->call = (struct batch_call){0};
        s->command = NULL;
        if (status == 0) {
                s->submit_user->made = true;
                request(s, &call);
        } else {
                s->done(s->arg, -1, out, errors);
        }
        batch_call_deinit(&call);
}

void batch_run_as(struct batch *b, struct submit_user *p, enum batch_slot slot, struct batch_call *call,
                  command_done_fn *done, void *arg)
{
        struct slot *s = &b->calls->slots[slot];
        ARGS_CLEANUP struct args nothing = {0};

        b->calls->remote = b->remote != NULL;
        if (b->remote)
                batch_remote_wrap(b->remote, &b->calls->env, call);
        s->done = done;
        s->arg = arg;
        s->submit_user = p && p->user ? p : NULL;
        if (call->method && s->submit_user && !p->made) { /* an empty user command makes the user's folder */
                args_add(&nothing, STR("true"));
                s->call = *call;
                *call = (struct batch_call){0};
                s->command = user_command(s, &nothing, STR(""), on_folder);
        } else if (call->method) {
                request(s, call);
        } else if (s->submit_user) {
                s->command = user_command(s, &call->argv, buf_view(&call->input), on_done);
        } else {
                s->command = command_run(b->loop, &call->argv, b->remote ? NULL : b->calls->env.v,
                                         buf_view(&call->input), COMMAND_MS, on_done, s);
        }
        batch_call_deinit(call);
}

void batch_run(struct batch *b, enum batch_slot slot, struct batch_call *call, command_done_fn *done,
               void *arg)
{
        batch_run_as(b, NULL, slot, call, done, arg);
}

void batch_run_now(struct batch *b, struct batch_call *call)
{
        if (call->method) {
                struct request_spec spec = request_of(call, NULL);

                spec.timeout_ms = NOW_MS;
                request_now(&b->calls->server, &spec);
        } else {
                if (b->remote)
                        batch_remote_wrap(b->remote, &b->calls->env, call);
                command_now(&call->argv, b->remote ? NULL : b->calls->env.v, buf_view(&call->input), NOW_MS);
        }
        batch_call_deinit(call);
}
