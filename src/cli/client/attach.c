/* With input there are two processes: the child asks for the command's output, and so waits for the server
 * most of the time; the parent reads standard input and waits for signals, and passes both to the server
 * over a connection of its own. */
#include "cli/client/attach.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/format/base64.h"
#include "base/format/json.h"
#include "cli/client/api.h"
#include "cli/client/output.h"

#define POLL_MS     20000
#define SIGNAL_CODE 128 /* exit code of a shell for a signal: the number is added */
#define CHUNK       16384

/* The child's words to the parent, in memory that both have. */
struct verdict {
        bool set;
        int code;
        struct err err; /* of CLI_FAILED; empty: none */
};
struct attached {
        struct cli *cli;
        const struct attach *a;
        struct output output;
        struct verdict *verdict;
        char bytes[CHUNK]; /* bytes of standard input that were not taken yet */
        size_t count;
        int64_t offset; /* offset of the first of them */
        bool at_end;    /* nothing follows them */
        bool resized;   /* the command's terminal has not been told */
        bool deaf;      /* the command reads nothing more */
        struct termios before;
};

bool attach_has_terminal(void)
{
        if (isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1)
                return true;
        cli_error(CLI_USAGE, "standard input or output is not a terminal; drover exec -i passes what is read "
                             "from a file or a pipe");
        return false;
}

static void write_size(struct json *j)
{
        struct winsize size = {0};

        ioctl(STDIN_FILENO, TIOCGWINSZ, &size);
        json_kint(j, "rows", size.ws_row < 10000 ? size.ws_row : 0);
        json_kint(j, "columns", size.ws_col < 10000 ? size.ws_col : 0);
}

/* A type that the server takes; others are unknown to most programs anyway. */
static bool is_term(const char *term)
{
        return term && *term && strlen(term) <= 64 &&
               strspn(term, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-+._") ==
                       strlen(term);
}

static int start_output(struct cli *cli, const struct attach *a, struct output *ret)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        int code;

        buf_printf(&path, "/v1/jobs/%s/exec", a->job);
        json_open(&j, '{');
        json_key(&j, "argv");
        json_open(&j, '[');
        for (size_t i = 0; i < a->count; i++)
                json_strz(&j, a->words[i]);
        json_close(&j, ']');
        if (a->input)
                json_kbool(&j, "input", true);
        if (a->terminal) {
                json_key(&j, "terminal");
                json_open(&j, '{');
                write_size(&j);
                if (is_term(getenv("TERM")))
                        json_kstrz(&j, "type", getenv("TERM"));
                json_close(&j, '}');
        }
        json_close(&j, '}');
        code = api_post(cli, buf_z(&path), buf_view(&body), &answer);
        if (code != 0)
                return code;
        ret->job = a->job;
        ret->exec = view_integer(view_get(answer.root, "exec"), 0);
        ret->attempt = view_integer(view_get(answer.root, "attempt"), 0);
        return 0;
}

/* ---- what it prints */

static bool print_new(const struct output *o)
{
        FILE *const files[2] = {stdout, stderr};

        for (int k = 0; k < 2; k++)
                if (o->bytes[k].n && (fwrite(o->bytes[k].p, 1, o->bytes[k].n, files[k]) != o->bytes[k].n ||
                                      fflush(files[k]) != 0))
                        return false;
        return true;
}

static int follow(struct cli *cli, struct output *o, struct err *err)
{
        do {
                if (output_next(cli, o, POLL_MS, err, NULL) != 0)
                        return CLI_FAILED;
                if (!print_new(o))
                        return err_set(err, CLI_FAILED, "cannot write what the command prints");
        } while (!o->over);
        if (o->error.n)
                return err_set(err, CLI_FAILED, "%s", buf_z(&o->error));
        return o->exit_signal > 0 ? SIGNAL_CODE + o->exit_signal : o->exit_code;
}

/* ---- what it reads */

static void send_input(struct attached *x)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0}, data BUF_CLEANUP = {0};
        struct json j = {.out = &body};
        int64_t taken;

        buf_printf(&path, "/v1/jobs/%s/exec/input", x->a->job);
        base64_encode(&data, str_make(x->bytes, x->count));
        json_open(&j, '{');
        json_kint(&j, "exec", x->output.exec);
        json_kint(&j, "attempt", x->output.attempt);
        json_kint(&j, "offset", x->offset);
        json_kstr(&j, "data", buf_view(&data));
        json_kbool(&j, "end", x->at_end);
        if (x->resized)
                write_size(&j);
        json_close(&j, '}');
        x->resized = false;
        if (api_call(x->cli,
                     &(struct api_request){.method = "POST", .path = buf_z(&path), .body = buf_view(&body)},
                     &answer, NULL) != 0) {
                x->deaf = true; /* the child finds out why */
                return;
        }
        taken = view_integer(view_get(answer.root, "next"), 0) - x->offset;
        if (taken > 0 && (size_t)taken <= x->count) {
                memmove(x->bytes, x->bytes + taken, x->count - (size_t)taken);
                x->count -= (size_t)taken;
                x->offset += taken;
        }
        x->deaf = view_true(view_get(answer.root, "closed"));
}

static void read_input(struct attached *x)
{
        ssize_t n = read(STDIN_FILENO, x->bytes, sizeof(x->bytes));

        if (n > 0)
                x->count = (size_t)n;
        else if (n == 0 || (errno != EINTR && errno != EAGAIN))
                x->at_end = true;
}

/* Waits until the child has ended, or a signal ends this process. Returns that signal; 0: none. */
static int guard(struct attached *x, int signals)
{
        bool told_end = false;

        for (;;) {
                struct signalfd_siginfo info;
                bool reads = !x->deaf && !x->at_end && x->count == 0,
                     sends = !x->deaf && (x->count || x->resized || (x->at_end && !told_end));
                struct pollfd fds[2] = {{.fd = signals, .events = POLLIN},
                                        {.fd = reads ? STDIN_FILENO : -1, .events = POLLIN}};

                if (poll(fds, 2, sends ? 0 : -1) < 0 && errno != EINTR)
                        return SIGTERM;
                if ((fds[0].revents & POLLIN) && read(signals, &info, sizeof(info)) == sizeof(info)) {
                        if (info.ssi_signo == SIGCHLD)
                                return 0;
                        if (info.ssi_signo != SIGWINCH)
                                return (int)info.ssi_signo;
                        x->resized = x->a->terminal;
                        continue;
                }
                if (sends) {
                        bool end = x->at_end;

                        send_input(x);
                        told_end = end && x->count == 0;
                } else if (fds[1].revents) {
                        read_input(x);
                }
        }
}

static void set_raw(struct attached *x)
{
        struct termios raw;

        tcgetattr(STDIN_FILENO, &x->before);
        raw = x->before;
        cfmakeraw(&raw);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void __attribute__((noreturn)) in_child(struct attached *x, pid_t parent, const sigset_t *before)
{
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGINT, SIG_IGN); /* the parent has it */
        signal(SIGQUIT, SIG_IGN);
        sigprocmask(SIG_SETMASK, before, NULL);
        if (getppid() == parent) {
                x->verdict->code = follow(x->cli, &x->output, &x->verdict->err);
                x->verdict->set = true;
        }
        _exit(0);
}

static int attached(struct attached *x, enum attach_way *ret_way)
{
        static const int caught[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH, SIGCHLD};
        sigset_t set, before;
        pid_t child, parent = getpid();
        int signals, by;

        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
                sigaddset(&set, caught[i]);
        sigprocmask(SIG_BLOCK, &set, &before);
        signals = signalfd(-1, &set, SFD_CLOEXEC);
        x->verdict =
                mmap(NULL, sizeof(*x->verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (signals < 0 || x->verdict == MAP_FAILED)
                return cli_error(CLI_FAILED, "%s", strerror(errno));
        api_close(x->cli); /* each process has a connection of its own */
        fflush(stdout);
        if (x->a->terminal)
                set_raw(x);
        child = fork();
        if (child == 0)
                in_child(x, parent, &before);
        by = child < 0 ? SIGTERM : guard(x, signals);
        if (child > 0) {
                if (by)
                        kill(child, SIGKILL);
                waitpid(child, NULL, 0);
        }
        if (x->a->terminal)
                tcsetattr(STDIN_FILENO, TCSADRAIN, &x->before);
        close(signals);
        sigprocmask(SIG_SETMASK, &before, NULL);
        if (by)
                return SIGNAL_CODE + by;
        if (x->verdict->err.text[0])
                return cli_error(x->verdict->code, "%s", x->verdict->err.text);
        if (!x->verdict->set)
                return CLI_FAILED;
        *ret_way = ATTACH_ENDED;
        return x->verdict->code;
}

int attach_run(struct cli *cli, const struct attach *a, enum attach_way *ret_way)
{
        struct attached x = {.cli = cli, .a = a};
        enum attach_way way = ATTACH_LOST;
        struct err err = {""};
        int code = start_output(cli, a, &x.output);

        if (code != 0) {
                way = ATTACH_NOT_BEGUN;
        } else if (a->input || a->terminal) {
                code = attached(&x, &way);
        } else {
                code = follow(cli, &x.output, &err);
                if (err.text[0])
                        cli_error(code, "%s", err.text);
                else
                        way = ATTACH_ENDED;
        }
        if (ret_way)
                *ret_way = way;
        output_deinit(&x.output);
        return code;
}
