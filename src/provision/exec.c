/* A program of the admin's is run for each call: PROGRAM list, start, stop or describe. What it is asked
 * stands on its standard input as one line of JSON, and what it answers on its standard output, a JSON object
 * a line; drover-provisioner(7) is the contract. */
#include "base/json_read.h"
#include <errno.h>
#include <sys/wait.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/program.h"
#include "provision/provisioner.h"
#include "run/call/command.h"

#define MICRO 1e6

struct exec {
        struct provisioner base;
        struct loop *loop;
        const struct provisioner_settings *settings;
        struct buf program;
        struct call *calls;
};
enum verb { LIST, START, STOP, DESCRIBE };
static const char *const verbs[] = {"list", "start", "stop", "describe"};

struct call {
        struct exec *x;
        struct call *next, **at;
        enum verb verb;
        struct command *command;
        provisioner_done_fn *done;
        void *arg;
};
/* An answer as it is read. */
struct reading {
        struct provisioner_answer a;
        struct provisioner_instance *instances;
        struct provisioner_offer *offers;
        size_t instance_cap, offer_cap, line_count, line_cap;
        json_t **lines; /* what the answer borrows from */
        bool ended;
};

static struct str text_of(const json_t *o, const char *key)
{
        const json_t *v = json_object_get(o, key);

        return json_is_string(v)
                       ? str_head(str_make(json_string_value(v), json_string_length(v)), PROVISIONER_TEXT_MAX)
                       : STR_NONE;
}

static void fail(struct reading *r, enum provisioner_result result, struct str why)
{
        if (r->a.result != PROVISIONER_DONE)
                return;
        r->a.result = result;
        r->a.why = why;
}

static void read_error(struct reading *r, const json_t *line)
{
        struct str reason = text_of(line, "reason");

        fail(r,
             str_eqz(reason, "capacity")    ? PROVISIONER_NO_CAPACITY
             : str_eqz(reason, "throttled") ? PROVISIONER_THROTTLED
                                            : PROVISIONER_FAILED,
             text_of(line, "error"));
}

static void read_offer(struct reading *r, const json_t *line)
{
        const json_t *price = json_object_get(line, "price"), *most = json_object_get(line, "most");
        double p = json_is_number(price) ? json_number_value(price) : -1;

        MEM_GROW(r->offers, r->offer_cap, r->a.offer_count + 1);
        r->offers[r->a.offer_count++] = (struct provisioner_offer){
                .shape = text_of(line, "shape"),
                .price_micro = p >= 0 && p < 1e6 ? (int64_t)(p * MICRO + 0.5) : -1,
                .most = json_is_integer(most) && json_integer_value(most) >= 0 ? json_integer_value(most)
                                                                               : -1,
                .closed = text_of(line, "closed")};
}

static void read_line(struct reading *r, enum verb verb, const json_t *line)
{
        if (json_object_get(line, "error")) {
                read_error(r, line);
                return;
        }
        if (json_is_true(json_object_get(line, "end")))
                r->ended = true;
        if (verb == START && text_of(line, "instance").n)
                r->a.id = text_of(line, "instance");
        if (verb == LIST && text_of(line, "instance").n && r->a.instance_count < PROVISIONER_INSTANCES_MAX) {
                MEM_GROW(r->instances, r->instance_cap, r->a.instance_count + 1);
                r->instances[r->a.instance_count++] =
                        (struct provisioner_instance){text_of(line, "instance"), text_of(line, "tag")};
        }
        if (verb == DESCRIBE && text_of(line, "shape").n && r->a.offer_count < PROVISIONER_INSTANCES_MAX)
                read_offer(r, line);
}

static void read_answer(struct reading *r, enum verb verb, int status, struct str out, struct str errors)
{
        struct str line, first = errors, rest = errors;

        while (out.n && r->a.result == PROVISIONER_DONE && str_cut(&out, '\n', &line)) {
                json_t *o = str_trim(line).n ? json_loadb(line.p, line.n, 0, NULL) : NULL;

                if (o) {
                        MEM_GROW(r->lines, r->line_cap, r->line_count + 1);
                        r->lines[r->line_count++] = o;
                }
                if (json_is_object(o))
                        read_line(r, verb, o);
                else if (str_trim(line).n)
                        fail(r, PROVISIONER_FAILED, STR("it printed a line that is no JSON object"));
        }
        if (rest.n)
                str_cut(&rest, '\n', &first);
        if (status != 0)
                fail(r, PROVISIONER_FAILED,
                     first.n ? str_head(first, PROVISIONER_TEXT_MAX)
                             : STR("its exit code was not 0, and it printed no reason"));
        if (verb == LIST && !r->ended)
                fail(r, PROVISIONER_FAILED, STR("its list did not end with {\"end\": true}"));
        if (verb == START && r->a.id.n == 0)
                fail(r, PROVISIONER_FAILED, STR("it did not say which instance it has started"));
}

static void call_free(struct call *c)
{
        *c->at = c->next;
        if (c->next)
                c->next->at = c->at;
        free(c);
}

static void done(void *arg, int status, struct str out, struct str errors)
{
        struct call *c = arg;
        struct reading r = {0};
        provisioner_done_fn *fn = c->done;
        void *to = c->arg;

        read_answer(&r, c->verb, status, out, errors);
        r.a.instances = r.instances;
        r.a.offers = r.offers;
        call_free(c);
        fn(to, &r.a);
        for (size_t i = 0; i < r.line_count; i++)
                json_decref(r.lines[i]);
        free(r.lines);
        free(r.instances);
        free(r.offers);
}

static void call(struct provisioner *p, enum verb verb, const struct buf *question, provisioner_done_fn *fn,
                 void *arg)
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
        c->command = command_run(x->loop, &argv, NULL, buf_view(question), x->settings->timeout_ms, done, c);
}

static void begin(struct json *j, const struct provisioner *p, enum verb verb)
{
        const struct exec *x = (const struct exec *)(const void *)p;

        json_open(j, '{');
        json_kstrz(j, "call", verbs[verb]);
        json_kstrz(j, "provisioner", x->settings->name);
}

static void end(struct json *j)
{
        json_close(j, '}');
        buf_char(j->out, '\n');
}

static void exec_list(struct provisioner *p, struct str prefix, provisioner_done_fn *fn, void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin(&j, p, LIST);
        json_kstr(&j, "prefix", prefix);
        end(&j);
        call(p, LIST, &text, fn, arg);
}

static void exec_start(struct provisioner *p, const struct provisioner_launch *l, provisioner_done_fn *fn,
                       void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin(&j, p, START);
        json_kstr(&j, "tag", l->tag);
        json_kstr(&j, "name", l->name);
        json_kstr(&j, "shape", l->shape);
        json_kint(&j, "cpus", l->cpus);
        json_kint(&j, "memory_mib", l->memory_mib);
        json_kint(&j, "disk_kib", l->disk_kib);
        json_kstr(&j, "server", l->addresses);
        json_kstr(&j, "token", l->token);
        json_kstr(&j, "attributes", l->attributes);
        json_key(&j, "with");
        json_raw(&j, l->with.n ? l->with : STR("{}"));
        end(&j);
        call(p, START, &text, fn, arg);
        explicit_bzero(text.p, text.n);
}

static void exec_stop(struct provisioner *p, struct str id, struct str tag, provisioner_done_fn *fn,
                      void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin(&j, p, STOP);
        json_kstr(&j, "instance", id);
        json_kstr(&j, "tag", tag);
        end(&j);
        call(p, STOP, &text, fn, arg);
}

static void exec_describe(struct provisioner *p, provisioner_done_fn *fn, void *arg)
{
        BUF_CLEANUP struct buf text = {0};
        struct json j = {.out = &text};

        begin(&j, p, DESCRIBE);
        end(&j);
        call(p, DESCRIBE, &text, fn, arg);
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
