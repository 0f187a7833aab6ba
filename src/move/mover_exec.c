/* The back end for all other schemes: a program, started for each attempt, gets its request as one line of
 * JSON on its standard input and answers in lines of JSON on its standard output. The file is its descriptor
 * 3. Its result is verified afterwards, so it is trusted with the copying only. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "move/mover.h"

#define FILE_FD        3
#define CREDENTIAL_FD  4
#define LINE_MAX_BYTES 65536
#define STALL_MS       60000
#define STEP_MS        500

struct helper {
        struct transfer *t;
        const char *op;
        bool echoed; /* the answer names the operation, so the program knows it */
        const struct mover_pull
                *pull; /* `copy`: from where, and who is told of progress; NULL: another operation */
        pid_t pid;
        int out; /* standard output of the program */
        struct buf line;
        int64_t heard_ms;
        bool answered;
        uint64_t free_bytes; /* of an answer to `space`; MOVE_SIZE_ANY: not told */
        int outcome;
        struct err *err;
};

const char *mover_program_of(const struct mover_config *c, struct str scheme)
{
        for (size_t i = 0; i < c->exec_count; i++)
                if (str_ieqz(scheme, c->execs[i].scheme))
                        return c->execs[i].program;
        return NULL;
}

static bool exec_handles(const struct mover_config *c, struct str scheme)
{
        return scheme.n && mover_program_of(c, scheme);
}

static void set_number(json_t *o, const char *key, uint64_t v)
{
        json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void write_request(const struct transfer *t, const char *op, const struct mover_pull *pull,
                          struct buf *out)
{
        const struct move_task *task = t->task;
        json_t *o = json_pack("{s:i, s:s, s:s}", "version", 1, "op", op, "url", task->url);

        if (task->op == MOVE_PUT) {
                set_number(o, "offset", task->at);
                set_number(o, "size", task->size);
                json_object_set_new(o, "tag", json_string(task->tag));
        }
        if (pull) {
                json_object_set_new(o, "source", json_string(pull->source));
                set_number(o, "size", pull->size);
                json_object_set_new(o, "tag", json_string(task->tag));
        }
        if (task->op == MOVE_GET && task->known) {
                json_t *known = json_pack("{s:I, s:s}", "modified", (json_int_t)task->facts.modified_s,
                                          "etag", task->facts.etag);

                if (task->facts.size != MOVE_SIZE_ANY)
                        set_number(known, "size", task->facts.size);
                json_object_set_new(o, "known", known);
        }
        if (task->credential.type)
                json_object_set_new(o, "credential",
                                    json_pack("{s:s, s:s}", "type", task->credential.type, "name",
                                              task->credential.name));
        char *text = json_dumps(o, JSON_COMPACT);
        buf_addz(out, text ? text : "{}"); /* a URL that is not UTF-8: the program reports the error */
        buf_char(out, '\n');
        free(text);
        json_decref(o);
}

/* ---- the program */

struct files { /* -1: none */
        int in, out, file, credential;
        const char *type; /* type of the credential */
};

/* The environment names its file, as the tools of its kind look for it; what the agent has of the kind for
 * itself is not mixed with it. */
static void name_credential(const char *type)
{
        static const char *const variables[][2] = {{"proxy", "X509_USER_PROXY"},
                                                   {"token", "BEARER_TOKEN_FILE"},
                                                   {"s3", "AWS_SHARED_CREDENTIALS_FILE"}};
        static const char *const others[] = {"X509_USER_CERT",    "X509_USER_KEY",
                                             "BEARER_TOKEN",      "AWS_ACCESS_KEY_ID",
                                             "AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY"};
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), CREDENTIAL_FD);
        for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
                unsetenv(others[i]);
        for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
                if (!strcmp(variables[i][0], type))
                        setenv(variables[i][1], path, 1);
                else
                        unsetenv(variables[i][1]);
}

__attribute__((noreturn)) static void become(const char *program, const char *op, const struct files *f,
                                             pid_t parent)
{
        char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)op, NULL};

        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(127);
        int high[4] = {fcntl(f->in, F_DUPFD_CLOEXEC, 10), fcntl(f->out, F_DUPFD_CLOEXEC, 10),
                       f->file < 0 ? -1 : fcntl(f->file, F_DUPFD_CLOEXEC, 10),
                       f->credential < 0 ? -1 : fcntl(f->credential, F_DUPFD_CLOEXEC, 10)};
        if (dup2(high[0], 0) < 0 || dup2(high[1], 1) < 0 || (f->file >= 0 && dup2(high[2], FILE_FD) < 0) ||
            (f->credential >= 0 && dup2(high[3], CREDENTIAL_FD) < 0))
                _exit(127);
        if (f->credential >= 0)
                name_credential(f->type);
        signal(SIGPIPE, SIG_DFL);
        execv(program, argv);
        _exit(errno == ENOENT ? 127 : 126);
}

static int start_helper(struct helper *x, const char *program, struct err *err)
{
        int in[2], out[2];
        BUF_CLEANUP struct buf request = {0};
        struct transfer *t = x->t;
        const struct move_credential *shown = &t->task->credential;

        write_request(t, x->op, x->pull, &request);
        if (pipe2(in, O_CLOEXEC) < 0)
                return -errno;
        if (pipe2(out, O_CLOEXEC) < 0) {
                int r = -errno;

                close(in[0]);
                close(in[1]);
                return r;
        }
        struct files files = {in[0], out[1], t->fd, -1, shown->type};
        if (shown->type)
                files.credential = move_credential_file(shown);
        pid_t parent = getpid();
        x->pid = shown->type && files.credential < 0 ? -1 : fork();
        if (x->pid == 0)
                become(program, x->op, &files, parent);
        close(in[0]);
        close(out[1]);
        if (files.credential >= 0)
                close(files.credential);
        x->out = out[0];
        fcntl(x->out, F_SETFL, O_NONBLOCK);
        x->heard_ms = clock_mono_ns() / 1000000;
        if (x->pid < 0) {
                close(in[1]);
                return err_set(err, -EAGAIN, "cannot start %s", program);
        }
        fs_write_all(in[1], request.p,
                     request.n); /* fits into a pipe; a program that has died is noticed later */
        close(in[1]);
        return 0;
}

/* ---- its answers */

static void read_facts(const json_t *o, struct move_facts *f)
{
        const json_t *size = json_object_get(o, "size"), *modified = json_object_get(o, "modified");
        const char *etag = json_string_value(json_object_get(o, "etag"));

        if (json_is_integer(size) && json_integer_value(size) >= 0)
                f->size = (uint64_t)json_integer_value(size);
        if (json_is_integer(modified))
                f->modified_s = json_integer_value(modified);
        if (etag && strlen(etag) < sizeof(f->etag))
                snprintf(f->etag, sizeof(f->etag), "%s", etag);
}

static void exec_read_sum(const json_t *o, struct sum *named)
{
        BUF_CLEANUP struct buf text = {0};
        const char *hex = json_string_value(json_object_get(o, "adler32"));

        buf_printf(&text, "adler32:%s", hex ? hex : "");
        sum_parse(buf_view(&text), named);
}

static void take_answer(struct helper *x, int outcome)
{
        x->answered = true;
        x->outcome = outcome;
}

static void take_line(struct helper *x, struct str line)
{
        struct transfer *t = x->t;
        json_t *o = json_loadb(line.p, line.n, 0, NULL);
        const char *event = json_string_value(json_object_get(o, "event"));

        if (!t->latency_us)
                t->latency_us = (uint64_t)(clock_mono_ns() / 1000000 - x->heard_ms) * 1000 + 1;
        x->heard_ms = clock_mono_ns() / 1000000;
        if (!event || x->answered) {
                if (!x->answered)
                        take_answer(x, err_set(x->err, MOVER_REFUSED, "its program said '" STR_FMT "'",
                                               STR_ARG(str_head(line, 200))));
        } else if (!strcmp(event, "done")) {
                const char *op = json_string_value(json_object_get(o, "op"));

                x->echoed = op && !strcmp(op, x->op);
                read_facts(o, &t->found);
                exec_read_sum(o, &t->named);
                const json_t *left = json_object_get(o, "free");
                if (json_is_integer(left) && json_integer_value(left) >= 0)
                        x->free_bytes = (uint64_t)json_integer_value(left);
                take_answer(x, 0);
        } else if (!strcmp(event, "unchanged") && t->task->known) {
                take_answer(x, MOVER_UNCHANGED);
        } else if (!strcmp(event, "failed")) {
                const char *text = json_string_value(json_object_get(o, "text"));
                int outcome = json_is_true(json_object_get(o, "denied"))  ? MOVER_DENIED
                              : json_is_true(json_object_get(o, "again")) ? MOVER_AGAIN
                                                                          : MOVER_REFUSED;

                take_answer(x, err_set(x->err, outcome, "%s",
                                       text && *text ? text : "its program did not say why"));
        } else if (x->pull && x->pull->told && json_is_integer(json_object_get(o, "bytes"))) {
                json_int_t bytes = json_integer_value(json_object_get(o, "bytes"));

                x->pull->told(x->pull->arg, bytes > 0 ? (uint64_t)bytes : 0);
        } /* "progress", and lines of later versions, count as signs of life */
        json_decref(o);
}

/* Reads the program's output. Returns false if it has closed its output. */
static bool take_output(struct helper *x)
{
        char room[4096];
        ssize_t n;

        while ((n = read(x->out, room, sizeof(room))) > 0) {
                buf_add(&x->line, room, (size_t)n);
                for (ptrdiff_t end; (end = str_find(buf_view(&x->line), '\n')) >= 0;) {
                        take_line(x, str_trim(str_head(buf_view(&x->line), (size_t)end)));
                        buf_consume(&x->line, (size_t)end + 1);
                }
                if (x->line.n > LINE_MAX_BYTES) {
                        take_answer(x, err_set(x->err, MOVER_REFUSED, "its program's line has no end"));
                        return false;
                }
        }
        return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static uint64_t stall_ms(const struct helper *x)
{
        return x->t->config->stall_ms ? x->t->config->stall_ms : STALL_MS;
}

/* Handles the program's output until it ends, or has to be ended. Returns 0 or -errno. */
static int listen_to(struct helper *x)
{
        uint64_t stall = stall_ms(x);
        struct pollfd p = {.fd = x->out, .events = POLLIN};

        for (;;) {
                int r = transfer_alive(x->t);

                if (r < 0)
                        return r;
                if (clock_mono_ns() / 1000000 - x->heard_ms > (int64_t)stall)
                        return err_set(x->err, -ETIMEDOUT, "its program has said nothing for %llu s",
                                       (unsigned long long)(stall / 1000));
                if (poll(&p, 1, STEP_MS) > 0 && !take_output(x))
                        return 0;
        }
}

/* Waits for the exit of a program that has closed its output, for a limited time. Returns 0 or -errno. */
static int wait_for_end(struct helper *x)
{
        siginfo_t ended = {0};

        x->heard_ms = clock_mono_ns() / 1000000;
        for (int step_ms = 1;; step_ms = step_ms < STEP_MS ? step_ms * 2 : STEP_MS) {
                if (waitid(P_PID, (id_t)x->pid, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 || ended.si_pid)
                        return 0;
                int r = transfer_alive(x->t);
                if (r < 0)
                        return r;
                if (clock_mono_ns() / 1000000 - x->heard_ms > (int64_t)stall_ms(x))
                        return x->answered ? 0
                                           : err_set(x->err, -ETIMEDOUT,
                                                     "its program has closed its output and does not end");
                poll(NULL, 0, step_ms);
        }
}

static int end_helper(struct helper *x, const char *program, int r)
{
        int status = 0;

        if (r == 0 && x->line.n <= LINE_MAX_BYTES)
                r = wait_for_end(x);
        kill(-x->pid, SIGKILL);
        while (waitpid(x->pid, &status, 0) < 0 && errno == EINTR)
                ;
        close(x->out);
        if (r < 0)
                return r;
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127) && !x->answered)
                return err_set(x->err, MOVER_REFUSED, "%s cannot be run", program);
        if (!x->answered)
                return err_set(x->err, MOVER_AGAIN, "%s ended without an answer (%s %d)", program,
                               WIFSIGNALED(status) ? "signal" : "status",
                               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        return x->outcome;
}

static int run_op(struct transfer *t, const char *op, const struct mover_pull *pull, bool *ret_echoed,
                  uint64_t *ret_free, struct err *err)
{
        struct helper x = {.t = t,
                           .op = op,
                           .pull = pull,
                           .out = -1,
                           .err = err,
                           .free_bytes = MOVE_SIZE_ANY,
                           .line = {.max = LINE_MAX_BYTES * 2}};
        const char *program = mover_program_of(t->config, mover_scheme(str_of(t->task->url)));
        struct err none;

        if (!err)
                x.err = &none;
        int64_t began = clock_mono_ns();
        int r = start_helper(&x, program, x.err);
        if (r == 0)
                r = end_helper(&x, program, listen_to(&x));
        else if (x.out >= 0)
                close(x.out);
        if (r >= 0)
                t->latency_us = (uint64_t)(clock_mono_ns() - began) / 1000;
        buf_deinit(&x.line);
        if (ret_echoed)
                *ret_echoed = x.echoed;
        if (ret_free)
                *ret_free = x.free_bytes;
        return r == -ETIMEDOUT ? MOVER_AGAIN : r;
}

static int run_transfer(struct transfer *t, struct err *err)
{
        return run_op(t, move_op_names[t->task->op], NULL, NULL, NULL, err);
}

/* Programs that do not know an operation may have taken it for a probe: who has done it names it. */
static int run_known(struct transfer *t, const char *op, struct err *err)
{
        bool echoed = false;
        int r = run_op(t, op, NULL, &echoed, NULL, err);

        return r == 0 && !echoed ? err_set(err, MOVER_REFUSED, "its program does not know how to %s", op) : r;
}

static int exec_stat_url(struct transfer *t, struct err *err)
{
        t->named = (struct sum){SUM_NONE, ""};
        return run_known(t, "look", err);
}

static int exec_remove(struct transfer *t, struct err *err)
{
        return run_known(t, "rm", err);
}

static int exec_make_folder(struct transfer *t, struct err *err)
{
        return run_known(t, "mkdir", err);
}

static int exec_space(struct transfer *t, uint64_t *ret_free, struct err *err)
{
        bool echoed = false;
        uint64_t bytes = MOVE_SIZE_ANY;
        int r = run_op(t, "space", NULL, &echoed, &bytes, err);

        if (r == 0 && (!echoed || bytes == MOVE_SIZE_ANY))
                return err_set(err, MOVER_REFUSED, "its program does not say how much is free");
        if (r == 0)
                *ret_free = bytes;
        return r;
}

/* One store copies from the other, as the program's protocol has it. */
static int exec_pull(struct transfer *t, const struct mover_pull *p, struct err *err)
{
        bool echoed = false;
        int r = run_op(t, "copy", p, &echoed, NULL, err);

        if (r == 0 && !echoed)
                return err_set(err, MOVER_REFUSED, "its program does not know how to copy between stores");
        if (r == 0)
                r = exec_stat_url(t, err);
        if (r == 0)
                r = transfer_compare_copy(t, p, err);
        if (r == MOVER_AGAIN && echoed)
                exec_remove(t, NULL); /* it may be the wrong one */
        return r;
}

static int exec_get_file(struct transfer *t, struct err *err)
{
        int r = transfer_restart(t);

        if (r == 0)
                r = run_transfer(t, err);
        if (r == 0)
                r = transfer_look(t);
        if (r == 0)
                t->moved += t->done;
        return r;
}

static int exec_put_file(struct transfer *t, struct err *err)
{
        int r = lseek(t->fd, (off_t)t->task->at, SEEK_SET) < 0 ? -errno : run_transfer(t, err);

        if (r == 0 && t->found.size != MOVE_SIZE_ANY && t->found.size != t->task->size)
                return err_set(err, MOVER_AGAIN, "the store has %llu bytes of %llu",
                               (unsigned long long)t->found.size, (unsigned long long)t->task->size);
        if (r == 0)
                t->moved += t->task->size;
        return r;
}

const struct mover_kind mover_exec = {.name = "exec",
                                      .handles = exec_handles,
                                      .get = exec_get_file,
                                      .put = exec_put_file,
                                      .probe = run_transfer,
                                      .look = exec_stat_url,
                                      .remove = exec_remove,
                                      .make_folder = exec_make_folder,
                                      .pull = exec_pull,
                                      .space = exec_space};
