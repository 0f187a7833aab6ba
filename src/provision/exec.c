/* Runs a site's program for each call: PROGRAM list, start, stop or describe. The request is one line of
 * JSON on its standard input, and the answer is lines on its standard output, each a JSON object;
 * drover-provisioner(7) is the contract. */
#include <errno.h>
#include <sys/wait.h>

#include "base/format/json.h"
#include "base/mem.h"
#include "base/system/program.h"
#include "provision/answer.h"
#include "run/call/command.h"

struct exec {
        struct provisioner base;
        struct loop *loop;
        const struct provisioner_settings *settings;
        struct buf program;
        struct call *calls;
};
static const char *const verbs[] = {"list", "start", "stop", "describe"};

struct call {
        struct exec *x;
        struct call *next, **at;
        enum verb verb;
        struct command *command;
        provisioner_done_fn *done;
        void *arg;
};

static void call_free(struct call *c)
{
        *c->at = c->next;
        if (c->next)
                c->next->at = c->at;
        free(c);
}

static void program_done(void *arg, int status, struct str out, struct str errors)
{
        struct call *c = arg;
        struct reading r = {0};
        provisioner_done_fn *fn = c->done;
        void *to = c->arg;

        answer_read(&r, c->verb, status, out, errors);
        call_free(c);
        fn(to, &r.a);
        reading_deinit(&r);
}

static void program_call(struct provisioner *p, enum verb verb, const struct buf *question,
                         provisioner_done_fn *fn, void *arg)
{
        struct exec *x = (struct exec *)(void *)p;
        struct call *c = mem_new(struct call);
        ARGS_CLEANUP struct args argv = {0};

        args_add(&argv, buf_view(&x->program));
        for (size_t i = 1; i < x->settings->command.n; i++)
                args_add(&argv, str_of(x->settings->command.v[i]));
        args_add(&argv, str_of(verbs[verb]));
        *c = (struct call){.x = x, .next = x->calls, .at = &x->calls, .verb = verb, .done = fn, .arg = arg};
        if (c->next)
                c->next->at = &c->next;
        x->calls = c;
        c->command = command_run(x->loop, &argv, NULL, buf_view(question), x->settings->timeout_ms,
                                 program_done, c);
}

static void begin_order(struct json *j, const struct provisioner *p, enum verb verb)
{
        const struct exec *x = (const struct exec *)(const void *)p;

        json_open(j, '{');
        json_kstrz(j, "call", verbs[verb]);
        json_kstrz(j, "provisioner", x->settings->name);
}

static void end_order(struct json *j)
{
        json_close(j, '}');
        buf_char(j->out, '\n');
}

static void exec_list(struct provisioner *p, struct str prefix, provisioner_done_fn *fn, void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin_order(&j, p, LIST);
        json_kstr(&j, "prefix", prefix);
        end_order(&j);
        program_call(p, LIST, &text, fn, arg);
}

static void write_size(struct json *j, int64_t cpus, int64_t memory_mib, int64_t disk_kib,
                       int64_t price_micro)
{
        json_kint(j, "cpus", cpus);
        json_kint(j, "memory_mib", memory_mib);
        json_kint(j, "disk_kib", disk_kib);
        json_key(j, "price");
        json_double(j, (double)price_micro / 1e6);
}

static void write_with(struct json *j, struct str with)
{
        json_key(j, "with");
        json_raw(j, with.n ? with : STR("{}"));
}

static void exec_start(struct provisioner *p, const struct provisioner_launch *l, provisioner_done_fn *fn,
                       void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin_order(&j, p, START);
        json_kstr(&j, "tag", l->tag);
        json_kstr(&j, "name", l->name);
        json_kstr(&j, "shape", l->shape);
        write_size(&j, l->cpus, l->memory_mib, l->disk_kib, l->price_micro);
        json_kstr(&j, "server", l->addresses);
        json_kstr(&j, "token", l->token);
        json_kstr(&j, "attributes", l->attributes);
        write_with(&j, l->with);
        end_order(&j);
        program_call(p, START, &text, fn, arg);
        explicit_bzero(text.p, text.n);
}

static void exec_stop(struct provisioner *p, struct str id, struct str tag, provisioner_done_fn *fn,
                      void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin_order(&j, p, STOP);
        json_kstr(&j, "instance", id);
        json_kstr(&j, "tag", tag);
        end_order(&j);
        program_call(p, STOP, &text, fn, arg);
}

static void exec_describe(struct provisioner *p, const struct provisioner_shape *shapes, size_t count,
                          provisioner_done_fn *fn, void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin_order(&j, p, DESCRIBE);
        json_key(&j, "shapes");
        json_open(&j, '[');
        for (size_t i = 0; i < count; i++) {
                json_open(&j, '{');
                json_kstr(&j, "shape", shapes[i].name);
                write_size(&j, shapes[i].cpus, shapes[i].memory_mib, shapes[i].disk_kib,
                           shapes[i].price_micro);
                json_kint(&j, "machines", shapes[i].machines);
                write_with(&j, shapes[i].with);
                json_close(&j, '}');
        }
        json_close(&j, ']');
        end_order(&j);
        program_call(p, DESCRIBE, &text, fn, arg);
}

static void exec_close(struct provisioner *p)
{
        struct exec *x = (struct exec *)(void *)p;

        while (x->calls) {
                struct call *c = x->calls;

                command_cancel(c->command);
                c->done(c->arg, &(struct provisioner_answer){PROVISIONER_FAILED, STR("given up")});
                call_free(c);
        }
        buf_deinit(&x->program);
        free(x);
}

static int exec_open(struct loop *l, const struct provisioner_settings *s, struct provisioner **ret,
                     struct err *err)
{
        struct exec *x = mem_new(struct exec);
        int r = s->command.n ? program_shipped("provisioners", s->command.v[0], &x->program, err)
                             : err_set(err, -EINVAL, "provisioner %s has no command", s->name);

        *x = (struct exec){{&provisioner_exec}, l, s, x->program, NULL};
        if (r == 0)
                *ret = &x->base;
        else
                exec_close(&x->base);
        return r;
}

const struct provisioner_kind provisioner_exec = {"exec",     exec_open, exec_close,   exec_list,
                                                  exec_start, exec_stop, exec_describe};
