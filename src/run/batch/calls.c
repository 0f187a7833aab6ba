/* Runs the commands of a batch system and makes its requests: as ourselves, or as a user of the map. */
#include <stdlib.h>

#include "run/batch/private.h"

#define NOW_MS 10000 /* that the system has when we end */

const char *batch_version(const struct batch *b)
{
        return b->requests ? requests_version(b->requests) : NULL;
}

bool batch_speaks(const struct batch *b)
{
        return !b->requests || !b->system->service->versions || requests_version(b->requests);
}

static struct request_spec request_of(const struct batch_call *call, const char *user)
{
        return (struct request_spec){.method = call->method,
                                     .paths = &call->paths,
                                     .body = buf_view(&call->input),
                                     .user = user,
                                     .once = call->once,
                                     .version = call->version,
                                     .timeout_ms = COMMAND_MS};
}

void batch_request(struct batch *b, const char *user, int slot, struct batch_call *call,
                   command_done_fn *done, void *arg)
{
        const struct request_spec spec = request_of(call, user);
        b->commands[slot] = request_run(b->requests, &spec, done, arg);
        batch_call_deinit(call);
}

void batch_run(struct batch *b, int slot, struct batch_call *call, command_done_fn *done, void *arg)
{
        if (call->method) {
                batch_request(b, NULL, slot, call, done, arg);
                return;
        }
        b->commands[slot] =
                command_run(b->loop, &call->argv, b->env.v, buf_view(&call->input), COMMAND_MS, done, arg);
        batch_call_deinit(call);
}

static struct command *errand(struct batch *b, struct party *p, const struct args *argv, struct str input,
                              command_done_fn *done, void *arg)
{
        const struct errand_spec spec = {.owner = p->owner,
                                         .user = p->user,
                                         .folder = p->folder,
                                         .argv = argv,
                                         .envp = p->env.v,
                                         .input = input,
                                         .timeout_ms = COMMAND_MS};
        return errand_run(b->errands, &spec, done, arg);
}

/* A request for a user whose folder is not there yet: an errand of his that does nothing makes it first. */
struct first {
        struct command base;
        struct batch *b;
        struct party *p;
        int slot;
        struct batch_call call;
        command_done_fn *done;
        void *arg;
        struct command *errand;
};

static void first_free(struct first *f)
{
        batch_call_deinit(&f->call);
        free(f);
}

static void first_cancel(struct command *c)
{
        struct first *f = (struct first *)(void *)c;
        command_cancel(f->errand);
        first_free(f);
}

static void first_done(void *arg, int status, struct str out, struct str errors)
{
        struct first *f = arg;
        if (status == 0) {
                f->p->made = true;
                batch_request(f->b, f->p->user, f->slot, &f->call, f->done, f->arg);
        } else {
                f->done(f->arg, -1, out, errors);
        }
        first_free(f);
}

static void request_as(struct batch *b, struct party *p, int slot, struct batch_call *call,
                       command_done_fn *done, void *arg)
{
        if (p->made) {
                batch_request(b, p->user, slot, call, done, arg);
                return;
        }
        ARGS_CLEANUP struct args nothing = {0};
        struct first *f = mem_new(struct first);
        *f = (struct first){{first_cancel}, b, p, slot, *call, done, arg, NULL};
        *call = (struct batch_call){0};
        args_add(&nothing, STR("true"));
        f->errand = errand(b, p, &nothing, STR(""), first_done, f);
        b->commands[slot] = &f->base;
}

void batch_run_as(struct batch *b, struct party *p, int slot, struct batch_call *call, command_done_fn *done,
                  void *arg)
{
        if (!p->user) {
                batch_run(b, slot, call, done, arg);
                return;
        }
        if (call->method) {
                request_as(b, p, slot, call, done, arg);
                return;
        }
        b->commands[slot] = errand(b, p, &call->argv, buf_view(&call->input), done, arg);
        batch_call_deinit(call);
}

/* At once, for we end: waits for it. */
void batch_run_now(struct batch *b, struct batch_call *call)
{
        if (call->method) {
                struct request_spec spec = request_of(call, NULL);
                spec.timeout_ms = NOW_MS;
                request_now(&b->server, &spec);
        } else {
                command_now(&call->argv, b->env.v, buf_view(&call->input), NOW_MS);
        }
        batch_call_deinit(call);
}
