/* drover run: submits and stays. It prints the job's output, passes signals to the job, and ends with the
 * job's exit code.
 *
 * There are two processes. The child asks for the job's output (client/output.h), and so waits for the
 * server most of the time. The parent waits for signals, and passes them to the server over a connection
 * of its own.
 *
 * An agent keeps a job's output while somebody follows it. Output from before the first question, or from
 * while the agent was unreachable, is in the files of the streams, which have all of it: hidden files of
 * this folder, or in the server's spool if the job's place does not see the folder. The jobs of an array
 * are printed one after the other, in the order of their numbers.
 *
 * On a terminal the job itself only reserves the place. The command runs beside it, as with `drover exec
 * -t`, and passes its exit code to the job through a pipe in the job's folder. The job ends without an
 * exit code of the command, with the code of a hangup, when the pipe is closed, or when nothing was
 * written a minute after its start. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/format/url.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "base/system/uuid.h"
#include "cli/client/agent.h"
#include "cli/client/api.h"
#include "cli/client/attach.h"
#include "cli/client/one_line.h"
#include "cli/client/output.h"
#include "cli/client/submit.h"
#include "cli/client/world.h"
#include "cli/command/commands.h"
#include "cli/command/jobs/wait.h"
#include "cli/terminal/human.h"

#define CODE_FAILED   125 /* the job has no exit code; docker and timeout use the same code */
#define CODE_SIGNAL   128 /* plus the signal's number, as in shells */
#define FIRST_MS      1000
#define WAIT_MS       5000 /* of one question; between questions a hold of the job is noticed */
#define AWAY_FIRST_MS 100
#define AWAY_MAX_MS   2000
#define REFUSED_MAX   8 /* consecutive refused questions: some ten seconds */
#define INPUT_MAX     (1u << 30)
#define GONE_S        10 /* for removed jobs to end without leaving files */
#define CHUNK         65536

static const char *const streams[2] = {"stdout", "stderr"};
static const char *const ends[2] = {".out", ".err"};

/* Results of the child for the parent, in shared memory. */
struct verdict {
        int code;
        bool ended;  /* all jobs have ended; otherwise their files may still be needed */
        bool unread; /* nobody reads our standard output */
};

struct run {
        struct cli *cli;
        struct buf before;  /* path of the streams' files, without the job's number */
        struct buf input;   /* the file with the standard input; empty: none */
        bool shown[2];      /* streams to print; the others have files of their own */
        struct buf request; /* number of the request */
        uint64_t jobs;
        struct verdict *verdict;
};

/* A job whose output `drover run` prints as it comes. */
struct following {
        struct run *r;
        struct buf job;
        struct output output;
        int64_t printed[2];          /* printed bytes of the attempt's streams */
        struct buf behind[2];        /* output received after a gap */
        unsigned questions, refused; /* refused: consecutive */
        int64_t away_ms;             /* pause before the next try; 0: the server is reachable */
        bool told;                   /* a message about waiting was printed */
};

/* ---- printing */

static void print_bytes(struct run *r, int k, struct str bytes)
{
        while (bytes.n && !r->verdict->unread) {
                ssize_t n = write(k ? STDERR_FILENO : STDOUT_FILENO, bytes.p, bytes.n);

                if (n > 0)
                        bytes = str_skip(bytes, (size_t)n);
                else if (n < 0 && errno == EAGAIN)
                        poll(&(struct pollfd){.fd = k ? STDERR_FILENO : STDOUT_FILENO, .events = POLLOUT}, 1,
                             -1);
                else if (n < 0 && errno != EINTR)
                        r->verdict->unread = true;
        }
}

static void print_file(struct following *f, int k, int fd)
{
        MEM_CLEANUP char *bytes = mem_alloc(CHUNK);
        ssize_t n;

        while (!f->r->verdict->unread && (n = pread(fd, bytes, CHUNK, f->printed[k])) > 0) {
                print_bytes(f->r, k, str_make(bytes, (size_t)n));
                f->printed[k] += n;
        }
}

/* ---- output that the agent did not send */

static void hidden_path(const struct following *f, int k, struct buf *out)
{
        struct str job = buf_view(&f->job);

        buf_printf(out, "%s" STR_FMT "%s", buf_z(&f->r->before),
                   STR_ARG(str_skip(job, (size_t)str_find(job, '.') + 1)), ends[k]);
}

/* Prints from the spool, where the stream's file is found by the end of its path. Returns false if it is
 * not there. */
static bool print_spooled(struct following *f, int k, struct str file)
{
        struct api_answer list API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, name BUF_CLEANUP = {0};
        struct view one;
        int fd;

        buf_printf(&path, "/v1/jobs/%s/files", buf_z(&f->job));
        if (api_call(f->r->cli, &(struct api_request){.path = buf_z(&path)}, &list, NULL) != 0)
                return false;
        file = str_skip(file, (size_t)(str_rfind(file, '/') + 1));
        for (size_t at = 0; view_next(view_get(list.root, "files"), &at, &one); buf_reset(&name)) {
                view_text(view_get(one, "name"), &name);
                if (str_ends(buf_view(&name), file))
                        break;
        }
        if (name.n == 0)
                return false;
        fd = memfd_create("drover-run", MFD_CLOEXEC);
        buf_char(&path, '/');
        url_escape(&path, buf_view(&name));
        if (fd >= 0 &&
            api_call(f->r->cli,
                     &(struct api_request){
                             .path = buf_z(&path), .timeout_ms = 3600000, .to_file = true, .fd = fd},
                     &answer, NULL) == 0)
                print_file(f, k, fd);
        else
                cli_error(0, "%s: its %s cannot be fetched: drover get %s", buf_z(&f->job), streams[k],
                          buf_z(&f->job));
        if (fd >= 0)
                close(fd);
        return true;
}

static void print_rest(struct following *f)
{
        for (int k = 0; k < 2; k++) {
                struct buf path BUF_CLEANUP = {0};
                int fd;

                if (!f->r->shown[k])
                        continue;
                hidden_path(f, k, &path);
                fd = open(buf_z(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
                if (fd < 0) {
                        if (!print_spooled(f, k, buf_view(&path)))
                                print_bytes(f->r, k, buf_view(&f->behind[k]));
                        continue;
                }
                print_file(f, k, fd);
                close(fd);
                unlink(buf_z(&path));
        }
}

/* ---- following */

/* Prints new output. Output after a gap is kept until the file has filled the gap. */
static void print_new(struct following *f)
{
        for (int k = 0; k < 2; k++) {
                struct output *o = &f->output;

                if (o->again) {
                        f->printed[k] = 0;
                        buf_reset(&f->behind[k]);
                }
                if (!f->r->shown[k] || o->bytes[k].n == 0)
                        continue;
                if (o->next[k] - (int64_t)o->bytes[k].n == f->printed[k]) {
                        print_bytes(f->r, k, buf_view(&o->bytes[k]));
                        f->printed[k] = o->next[k];
                } else {
                        buf_reset(&f->behind[k]);
                        buf_str(&f->behind[k], buf_view(&o->bytes[k]));
                }
        }
}

static int code_of(struct following *f)
{
        const struct output *o = &f->output;

        if (strcmp(o->state, "removed") == 0)
                return cli_error(CODE_FAILED, "job %s was removed", buf_z(&f->job));
        return o->exit_signal > 0 ? CODE_SIGNAL + o->exit_signal
               : o->exit_code < 0 ? CODE_FAILED
                                  : o->exit_code & 0xff;
}

static int say_held(struct following *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, reason BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/jobs?id=%s&state=held&limit=1", buf_z(&f->job));
        if (api_call(f->r->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) == 0 &&
            view_next(view_get(answer.root, "jobs"), &at, &job))
                view_text(view_get(job, "hold_reason"), &reason);
        human_safe(&text, buf_view(&reason));
        return cli_error(CODE_FAILED,
                         "job %s is held%s%s; drover release %s lets it run, drover rm %s removes it",
                         buf_z(&f->job), text.n ? ": " : "", buf_z(&text), buf_z(&f->job), buf_z(&f->job));
}

/* Waits because the server is unreachable or refuses; it may be restarting. */
static void pause_away(struct following *f)
{
        api_close(f->r->cli);
        if (f->away_ms == 0 && f->refused == 0)
                cli_note("the server went away; waiting for it to come back");
        f->away_ms = f->away_ms == 0                ? AWAY_FIRST_MS
                     : f->away_ms * 2 > AWAY_MAX_MS ? AWAY_MAX_MS
                                                    : f->away_ms * 2;
        poll(NULL, 0, (int)f->away_ms);
}

/* Asks once. Returns -1 to continue, or the exit code. */
static int ask_job(struct following *f)
{
        struct err err = {""};
        int wait_ms = f->questions++ ? WAIT_MS : FIRST_MS, code = 0;
        int rc = output_next(f->r->cli, &f->output, wait_ms, &err, &code);

        f->refused = rc == API_REFUSED ? f->refused + 1 : 0;
        if (rc == API_NO_SERVER || rc == API_LOST ||
            (rc == API_REFUSED && code != CLI_USAGE && f->refused < REFUSED_MAX)) {
                pause_away(f);
                return -1;
        }
        if (rc != 0)
                return cli_error(CODE_FAILED, "job %s is not followed any more: %s", buf_z(&f->job),
                                 err.text);
        f->away_ms = 0;
        print_new(f);
        if (f->output.ended) {
                print_rest(f);
                return code_of(f);
        }
        if (strcmp(f->output.state, "held") == 0) {
                print_rest(f);
                return say_held(f);
        }
        if (strcmp(f->output.state, "idle") == 0 && !f->told && isatty(STDERR_FILENO) == 1) {
                cli_note("job %s waits for a place; drover why %s tells why", buf_z(&f->job), buf_z(&f->job));
                f->told = true;
        }
        return -1;
}

/* Follows all jobs, one after the other. The result is the first exit code that is not 0. */
static void follow(struct run *r)
{
        int code = 0;

        r->verdict->ended = true;
        for (uint64_t i = 0; i < r->jobs && !r->verdict->unread; i++) {
                struct following f = {.r = r};
                int one;

                buf_printf(&f.job, "%s.%llu", buf_z(&r->request), (unsigned long long)i);
                f.output.job = buf_z(&f.job);
                if (r->shown[0] != r->shown[1])
                        f.output.only = streams[r->shown[1]];
                while ((one = ask_job(&f)) < 0 && !r->verdict->unread)
                        continue;
                if (one == CODE_FAILED)
                        r->verdict->ended = false;
                if (code == 0 && one > 0)
                        code = one;
                output_deinit(&f.output);
                buf_deinit(&f.job);
                buf_deinit(&f.behind[0]);
                buf_deinit(&f.behind[1]);
        }
        r->verdict->code = code;
}

/* ---- signals */

/* Sends an action. Returns how many jobs it reached; -1: the server did not answer. */
static int64_t act_on_jobs(struct run *r, const char *action, int value)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0};
        struct json j = {.out = &body};

        json_open(&j, '{');
        json_kstrz(&j, "action", action);
        json_key(&j, "ids");
        json_open(&j, '[');
        json_str(&j, buf_view(&r->request));
        json_close(&j, ']');
        if (value)
                json_kint(&j, "value", value);
        json_close(&j, '}');
        if (api_post(r->cli, "/v1/actions", buf_view(&body), &answer) != 0)
                return -1;
        return view_integer(view_get(answer.root, "affected"), 0);
}

/* Passes a signal on. A signal that ends programs removes the jobs if none runs yet, or if it is the
 * second one. */
static void pass_on(struct run *r, int signal, bool *ends_it)
{
        bool kills = signal != SIGUSR1 && signal != SIGUSR2;

        if ((kills && *ends_it) || (act_on_jobs(r, "signal", signal) == 0 && kills))
                act_on_jobs(r, "remove", 0);
        else if (kills && isatty(STDERR_FILENO) == 1)
                cli_note("%s was sent to the job; once more removes it", strsignal(signal));
        *ends_it |= kills;
}

static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD};

/* Passes on signals until the child has ended. Returns the exit code. */
static int guard(struct run *r, pid_t child, const sigset_t *set)
{
        bool ends_it = false;
        int status, signal, first = 0;

        for (;;) {
                signal = sigwaitinfo(set, NULL);
                if (signal == SIGCHLD && waitpid(child, &status, WNOHANG) == child)
                        break;
                if (signal > 0 && signal != SIGCHLD) {
                        first = first ? first : signal;
                        pass_on(r, signal, &ends_it);
                }
        }
        if (!WIFEXITED(status) || r->verdict->unread) { /* ends as any program in a pipe without a reader */
                act_on_jobs(r, "remove", 0);
                wait_for_jobs(r->cli,
                              &(struct wait){.ids = buf_z(&r->request), .timeout_s = GONE_S, .quiet = true});
                return r->verdict->unread ? CODE_SIGNAL + SIGPIPE : CODE_FAILED;
        }
        return r->verdict->code == CODE_FAILED && ends_it ? CODE_SIGNAL + first : r->verdict->code;
}

static int stay(struct run *r)
{
        sigset_t set;
        pid_t child, parent = getpid();
        int code;

        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
                sigaddset(&set, passed[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        r->verdict =
                mmap(NULL, sizeof(*r->verdict), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (r->verdict == MAP_FAILED)
                return cli_error(CODE_FAILED, "no memory");
        api_close(r->cli); /* the processes need separate connections */
        fflush(stdout);
        child = fork();
        if (child < 0)
                return cli_error(CODE_FAILED, "no process can be started: %s", strerror(errno));
        if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                signal(SIGPIPE, SIG_IGN);
                if (getppid() == parent)
                        follow(r);
                _exit(0);
        }
        code = guard(r, child, &set);
        return code;
}

/* ---- preparation and cleanup */

/* Chooses the folder of the hidden files: this one if it is writable, else the home folder. */
static void choose_before(struct run *r)
{
        const char *home = getenv("HOME");
        char cwd[4096], uuid[UUID_TEXT];

        uuid_new(uuid);
        if (!getcwd(cwd, sizeof(cwd)) || access(cwd, W_OK) != 0)
                snprintf(cwd, sizeof(cwd), "%s", home && *home == '/' ? home : "/tmp");
        buf_printf(&r->before, "%s/.drover-run-%.8s.", cwd, uuid);
}

/* Standard input becomes the job's if it is a file; `--input -` reads any standard input. */
static int take_input(struct run *r, const struct options *o)
{
        const char *given = options_text(o, "input");
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct stat st;
        char path[4096];
        ssize_t n;
        int fd, rc;

        if (!given && fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode)) {
                n = readlink("/proc/self/fd/0", path, sizeof(path) - 1);
                path[n > 0 ? n : 0] = 0;
                if (n > 0 && access(path, R_OK) == 0 && lseek(STDIN_FILENO, 0, SEEK_CUR) == 0) {
                        buf_addz(&r->input, path);
                        return 0;
                }
                given = "-";
        }
        if (!given || strcmp(given, "-") != 0)
                return 0;
        if (world_read_stdin(INPUT_MAX, &text, &err) != 0)
                return cli_error(CODE_FAILED, "%s", err.text);
        buf_printf(&r->input, "%sin", buf_z(&r->before));
        fd = open(buf_z(&r->input), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        rc = fd < 0 ? -errno : fs_write_all(fd, text.p, text.n);
        if (fd >= 0)
                close(fd);
        return rc < 0 ? cli_error(CODE_FAILED, "%s: %s", buf_z(&r->input), strerror(-rc)) : 0;
}

static void remove_hidden(struct run *r)
{
        struct buf pattern BUF_CLEANUP = {0};
        glob_t g;

        for (const char *p = buf_z(&r->before); *p; p++) {
                if (strchr("*?[\\", *p))
                        buf_char(&pattern, '\\');
                buf_char(&pattern, *p);
        }
        buf_char(&pattern, '*');
        if (glob(buf_z(&pattern), GLOB_NOSORT, NULL, &g) != 0)
                return;
        for (size_t i = 0; i < g.gl_pathc; i++)
                unlink(g.gl_pathv[i]);
        globfree(&g);
}

/* Warns if standard input is a pipe, because the job does not read it without `--input -`. */
static void say_unread(const struct options *o)
{
        struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
        struct stat st;

        if (!options_text(o, "input") && fstat(STDIN_FILENO, &st) == 0 && S_ISFIFO(st.st_mode) &&
            poll(&p, 1, 0) == 1 && (p.revents & POLLIN))
                cli_note("standard input is a pipe, and is passed on with --input - only");
}

static int run_submit(struct run *r, struct submit *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code = submit_read(s);

        if (code == 0)
                code = submit_send(s, &answer);
        if (code != 0)
                return CODE_FAILED;
        view_text(view_get(answer.root, "id"), &r->request);
        r->jobs = (uint64_t)view_integer(view_get(answer.root, "jobs"), 1);
        return 0;
}

/* ---- on a terminal */

/* The pipe is closed when the command's shell ends. This shell must outlive the command, because its end
 * would end it; and it waits until drover run has received the exit code, because commands beside an ended
 * job are forgotten. $0 and the following arguments are the command, so that listings show it and its
 * files are sent. */
static const char keep_place[] = "f=$DROVER_SCRATCH/.drover_run; mkfifo -m 600 $f $f.begin || exit 125; "
                                 "echo ready; timeout 60 cat $f.begin || exit 129; code=$(cat $f); "
                                 "timeout 10 cat $f.begin; rm -f $f $f.begin; exit ${code:-129}";
static const char *const heard[] = {"sh", "-c", ": >$DROVER_SCRATCH/.drover_run.begin"};
/* Ctrl-C is for the command; this shell continues, to report the exit code. */
static const char in_place[] = "f=$DROVER_SCRATCH/.drover_run; : >$f.begin; exec 9>$f; trap : INT QUIT; "
                               "\"$@\" 9>&-; code=$?; echo $code >&9; exit $code";

/* Returns 0: the job has started and reserves the place. */
static int wait_for_place(struct following *f)
{
        struct output *o = &f->output;
        struct err err = {""};

        while (output_next(f->r->cli, o, f->questions++ ? WAIT_MS : FIRST_MS, &err, NULL) == 0) {
                if (o->bytes[OUTPUT_STDOUT].n)
                        return 0;
                if (o->ended) {
                        print_bytes(f->r, OUTPUT_STDERR, buf_view(&o->bytes[OUTPUT_STDERR]));
                        code_of(f);
                        return cli_error(CODE_FAILED, "job %s has ended before the command began",
                                         buf_z(&f->job));
                }
                if (strcmp(o->state, "held") == 0)
                        return say_held(f);
                if (!f->told && strcmp(o->state, "idle") == 0)
                        cli_note("job %s waits for a place; drover why %s tells why", buf_z(&f->job),
                                 buf_z(&f->job));
                f->told = true;
        }
        return cli_error(CODE_FAILED, "%s", err.text);
}

/* A signal during this time removes the job. */
static int take_place(struct run *r)
{
        static const int caught[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGCHLD};
        struct following f = {.r = r};
        sigset_t set, before;
        pid_t child, parent = getpid();
        int status = 0, signal;

        buf_printf(&f.job, "%s.0", buf_z(&r->request));
        f.output.job = buf_z(&f.job);
        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
                sigaddset(&set, caught[i]);
        sigprocmask(SIG_BLOCK, &set, &before);
        api_close(r->cli);
        child = fork();
        if (child == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                _exit(getppid() == parent ? wait_for_place(&f) : CODE_FAILED);
        }
        while ((signal = sigwaitinfo(&set, NULL)) < 0 && child > 0)
                continue;
        if (child > 0 && signal != SIGCHLD)
                kill(child, SIGKILL);
        if (child < 0 || waitpid(child, &status, 0) != child)
                status = -1;
        sigprocmask(SIG_SETMASK, &before, NULL);
        buf_deinit(&f.job);
        return signal != SIGCHLD   ? CODE_SIGNAL + signal
               : WIFEXITED(status) ? WEXITSTATUS(status)
                                   : CODE_FAILED;
}

static int stay_on_terminal(struct run *r, const struct options *o)
{
        MEM_CLEANUP const char **words = mem_array(NULL, o->word_count + 4, sizeof(*words));
        struct buf job BUF_CLEANUP = {0};
        struct attach a = {.words = words, .count = o->word_count + 4, .input = true, .terminal = true};
        enum attach_way way = ATTACH_NOT_BEGUN;
        int code = take_place(r);

        words[0] = words[3] = "sh";
        words[1] = "-c";
        words[2] = in_place;
        memcpy(words + 4, o->words, o->word_count * sizeof(*words));
        buf_printf(&job, "%s.0", buf_z(&r->request));
        a.job = buf_z(&job);
        if (code == 0)
                code = attach_run(r->cli, &a, &way);
        if (way == ATTACH_NOT_BEGUN)
                act_on_jobs(r, "remove", 0);
        else if (way == ATTACH_ENDED)
                attach_run(r->cli, &(struct attach){.job = a.job, .words = heard, .count = 3}, NULL);
        wait_for_jobs(r->cli, &(struct wait){.ids = buf_z(&r->request), .timeout_s = GONE_S, .quiet = true});
        remove_hidden(r);
        return code;
}

/* Sets the options with which one_line_write makes the job that reserves the place. */
static void keeping(const struct options *o, struct options *ret)
{
        *ret = *o;
        ret->ended = true;
        ret->words = mem_array(NULL, o->word_count + 3, sizeof(*ret->words));
        ret->words[0] = "/bin/sh";
        ret->words[1] = "-c";
        ret->words[2] = keep_place;
        memcpy(ret->words + 3, o->words, o->word_count * sizeof(*ret->words));
        ret->word_count = o->word_count + 3;
}

static int run_on_terminal(struct cli *cli, const struct options *o)
{
        static const char *const others[] = {"array", "each", "input", "output", "error"};
        struct run r = {.cli = cli, .jobs = 1};
        struct one_line_streams where = {0};
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct options job;
        struct verdict verdict = {0};
        struct submit s;
        int code;

        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
                if (options_text(o, others[i]))
                        return cli_error(CLI_USAGE,
                                         "--terminal and --%s cannot be together: one job has the "
                                         "terminal, and all its streams",
                                         others[i]);
        if (!attach_has_terminal())
                return CLI_USAGE;
        r.verdict = &verdict;
        choose_before(&r);
        where.output = buf_z(&r.before);
        keeping(o, &job);
        submit_init(&s, cli, "--");
        code = one_line_write(&job, &where, &text, &err) == 0 ? 0 : cli_error(CLI_USAGE, "%s", err.text);
        s.text = buf_view(&text);
        if (code == 0)
                code = submit_append(&s, o);
        if (code == 0 && options_text(o, "queue") && !options_flag(o, "print"))
                agent_check_queue(cli, options_text(o, "queue"));
        if (code == 0 && options_flag(o, "print"))
                submit_print(&s);
        else if (code == 0 && (code = run_submit(&r, &s)) == 0)
                code = stay_on_terminal(&r, o);
        submit_deinit(&s);
        free(job.words);
        buf_deinit(&r.before);
        buf_deinit(&r.request);
        return code;
}

int cmd_run(struct cli *cli, const struct options *o)
{
        struct run r = {.cli = cli, .shown = {!options_text(o, "output"), !options_text(o, "error")}};
        struct one_line_streams where = {0};
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct submit s;
        int code;

        if (options_flag(o, "terminal"))
                return run_on_terminal(cli, o);
        for (size_t i = 0; i < o->word_count && !o->ended && options_text(o, "each"); i++)
                if (strcmp(o->words[i], "--") == 0)
                        return cli_error(
                                CLI_USAGE,
                                "unexpected argument \"%s\": quote the pattern, as in --each '*.csv' "
                                "-- COMMAND",
                                o->words[0]);
        choose_before(&r);
        where.output = buf_z(&r.before);
        code = take_input(&r, o);
        where.input = r.input.n ? buf_z(&r.input) : NULL;
        submit_init(&s, cli, "--");
        if (code == 0 && one_line_write(o, &where, &text, &err) != 0)
                code = cli_error(CLI_USAGE, "%s", err.text);
        s.text = buf_view(&text);
        if (code == 0)
                code = submit_append(&s, o);
        if (code == 0 && options_text(o, "queue") && !options_flag(o, "print"))
                agent_check_queue(cli, options_text(o, "queue"));
        if (code == 0 && options_flag(o, "print"))
                submit_print(&s);
        else if (code == 0 && (code = run_submit(&r, &s)) == 0)
                code = stay(&r);
        submit_deinit(&s);
        if (!r.verdict || r.verdict->ended || r.verdict->unread)
                remove_hidden(&r);
        say_unread(o);
        buf_deinit(&r.before);
        buf_deinit(&r.input);
        buf_deinit(&r.request);
        return code;
}
