/* srun. Outside of a job it is `drover run`: one job, whose output is ours and whose exit code is passed on;
 * of several tasks that job is srun again. Within a job it starts the tasks there, beside each other, as
 * Slurm starts a step. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "base/system/program.h"
#include "cli/slurm/batch.h"
#include "cli/slurm/run.h"
#include "cli/slurm/slurm.h"

#define TASKS_MAX  10000
#define LABEL_LINE 65536 /* bytes of a line that has a label of its own */

/* ---- within a job */

struct task {
        pid_t pid;
        pid_t printer; /* process that labels lines; 0: none */
        int code;
        bool over;
};
struct step {
        const struct words *w;
        struct task *tasks;
        int64_t count;
        int code;
};

static int64_t number_of(const char *variable)
{
        int64_t n;

        return str_to_i64(str_of(getenv(variable)), &n) == 0 && n > 0 ? n : 1;
}

static void export_number(const char *name, int64_t value)
{
        char text[32];

        snprintf(text, sizeof(text), "%lld", (long long)value);
        setenv(name, text, 1);
}

/* %t, %j, %J, %u and %% in the name of a task's file. */
static void file_of(const char *pattern, int64_t task, struct buf *out)
{
        for (const char *p = pattern; *p; p++) {
                if (*p != '%' || !p[1]) {
                        buf_char(out, *p);
                        continue;
                }
                switch (*++p) {
                case 't': buf_printf(out, "%lld", (long long)task); break;
                case 'n': buf_char(out, '0'); break;
                case 'j':
                case 'J': buf_addz(out, getenv("SLURM_JOB_ID") ? getenv("SLURM_JOB_ID") : "0"); break;
                case 'A':
                        buf_addz(out, getenv("SLURM_ARRAY_JOB_ID") ? getenv("SLURM_ARRAY_JOB_ID") : "0");
                        break;
                case 'a':
                        buf_addz(out, getenv("SLURM_ARRAY_TASK_ID") ? getenv("SLURM_ARRAY_TASK_ID") : "0");
                        break;
                case 'N':
                        buf_addz(out, getenv("SLURMD_NODENAME") ? getenv("SLURMD_NODENAME") : "node");
                        break;
                case 'x': buf_addz(out, getenv("SLURM_JOB_NAME") ? getenv("SLURM_JOB_NAME") : "job"); break;
                case 'u': buf_addz(out, getenv("SLURM_JOB_USER") ? getenv("SLURM_JOB_USER") : "user"); break;
                default: buf_char(out, *p); break;
                }
        }
}

static void redirect(const struct words *w, const char *option, int64_t task, int to)
{
        const char *pattern = words_text(w, option), *mode = words_text(w, "open-mode");
        BUF_CLEANUP struct buf path = {0};
        int fd;

        if (!pattern || !*pattern || strcmp(pattern, "all") == 0)
                return;
        if (strcmp(pattern, "none") == 0)
                buf_addz(&path, "/dev/null");
        else
                file_of(pattern, task, &path);
        fd = to == STDIN_FILENO
                     ? open(buf_z(&path), O_RDONLY | O_CLOEXEC)
                     : open(buf_z(&path),
                            O_WRONLY | O_CREAT | O_CLOEXEC |
                                    (!strstr(pattern, "%t") || (mode && mode[0] == 'a') ? O_APPEND : O_TRUNC),
                            0666);
        if (fd < 0 || dup2(fd, to) < 0) {
                slurm_error(0, "%s: %s", buf_z(&path), strerror(errno));
                _exit(1);
        }
}

/* A file that all tasks write to is emptied once, before the first one begins. */
static void empty_files(const struct words *w)
{
        static const char *const options[] = {"output", "error"};
        const char *mode = words_text(w, "open-mode");

        for (size_t i = 0; i < 2 && !(mode && mode[0] == 'a'); i++) {
                const char *pattern = words_text(w, options[i]);
                BUF_CLEANUP struct buf path = {0};
                int fd;

                if (!pattern || !*pattern || strstr(pattern, "%t") || strcmp(pattern, "none") == 0 ||
                    strcmp(pattern, "all") == 0)
                        continue;
                file_of(pattern, 0, &path);
                fd = open(buf_z(&path), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
                if (fd >= 0)
                        close(fd);
        }
}

static void run_task(const struct step *s, int64_t task)
{
        const char *folder = words_text(s->w, "chdir");

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        export_number("SLURM_PROCID", task);
        export_number("SLURM_LOCALID", task);
        export_number("SLURM_NTASKS", s->count);
        export_number("SLURM_NPROCS", s->count);
        export_number("SLURM_STEP_NUM_TASKS", s->count);
        export_number("SLURM_TASK_PID", getpid());
        setenv("SLURM_STEP_NUM_NODES", "1", 1);
        setenv("SLURM_STEP_ID", "0", 1);
        setenv("SLURM_STEPID", "0", 1);
        if (words_has(s->w, "cpus-per-task"))
                setenv("SLURM_CPUS_PER_TASK", words_text(s->w, "cpus-per-task"), 1);
        if (folder && chdir(folder) != 0) {
                slurm_error(0, "%s: %s", folder, strerror(errno));
                _exit(1);
        }
        if (task > 0 && !words_has(s->w, "input")) {
                int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

                if (fd >= 0)
                        dup2(fd, STDIN_FILENO);
        }
        redirect(s->w, "input", task, STDIN_FILENO);
        redirect(s->w, "output", task, STDOUT_FILENO);
        if (words_has(s->w, "output") && !words_has(s->w, "error"))
                dup2(STDOUT_FILENO, STDERR_FILENO);
        redirect(s->w, "error", task, STDERR_FILENO);
        execvp(s->w->words[0], s->w->words);
        slurm_error(0, "%s: %s", s->w->words[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
}

/* Copies lines with the task's number in front of each. */
static void label(int fd, int64_t task)
{
        FILE *in = fdopen(fd, "r");
        MEM_CLEANUP char *line = mem_alloc(LABEL_LINE);

        while (in && fgets(line, LABEL_LINE, in)) {
                BUF_CLEANUP struct buf out = {0};

                buf_printf(&out, "%lld: %s", (long long)task, line);
                if (out.p[out.n - 1] != '\n')
                        buf_char(&out, '\n');
                if (write(STDOUT_FILENO, out.p, out.n) < 0)
                        break;
        }
        _exit(0);
}

static int begin_task(struct step *s, int64_t task)
{
        struct task *t = &s->tasks[task];
        int pipes[2] = {-1, -1};
        bool labels = words_has(s->w, "label");

        if (labels && pipe2(pipes, O_CLOEXEC) != 0)
                return -1;
        t->pid = fork();
        if (t->pid == 0) {
                sigset_t none;

                sigemptyset(&none);
                sigprocmask(SIG_SETMASK, &none, NULL);
                if (labels) {
                        dup2(pipes[1], STDOUT_FILENO);
                        dup2(pipes[1], STDERR_FILENO);
                }
                run_task(s, task);
        }
        if (labels && t->pid > 0) {
                t->printer = fork();
                if (t->printer == 0) {
                        close(pipes[1]);
                        label(pipes[0], task);
                }
        }
        if (labels) {
                close(pipes[0]);
                close(pipes[1]);
        }
        return t->pid < 0 ? -1 : 0;
}

static void signal_all(const struct step *s, int number)
{
        for (int64_t i = 0; i < s->count; i++)
                if (s->tasks[i].pid > 0 && !s->tasks[i].over)
                        kill(s->tasks[i].pid, number);
}

/* The highest exit code is the step's; a task that a signal has ended counts 128 more than it. */
static void take_end(struct step *s, pid_t pid, int status)
{
        for (int64_t i = 0; i < s->count; i++) {
                struct task *t = &s->tasks[i];

                if (t->pid != pid)
                        continue;
                t->over = true;
                t->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                if (t->code > s->code)
                        s->code = t->code;
                if (t->code == 0)
                        continue;
                if (WIFEXITED(status))
                        slurm_error(0, "task %lld: Exited with exit code %d", (long long)i, t->code);
                else
                        slurm_error(0, "task %lld: %s", (long long)i, strsignal(WTERMSIG(status)));
                if (words_has(s->w, "kill-on-bad-exit"))
                        signal_all(s, SIGTERM);
        }
}

static int run_step(const struct words *w)
{
        static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
        struct step s = {.w = w};
        struct err err = {""};
        sigset_t set;
        pid_t pid;
        int status;

        if (batch_tasks(w, &s.count, &err) != 0)
                return slurm_error(1, "%s", err.text);
        if (s.count == 0)
                s.count = number_of("SLURM_NTASKS");
        if (s.count > TASKS_MAX)
                return slurm_error(1, "more than %d tasks", TASKS_MAX);
        if (words_has(w, "nodes") && str_to_i64(str_of(words_text(w, "nodes")), &(int64_t){0}) == 0 &&
            strcmp(words_text(w, "nodes"), "1") != 0)
                return slurm_error(1, "--nodes=%s: the job has one node", words_text(w, "nodes"));
        sigemptyset(&set);
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
                sigaddset(&set, passed[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        empty_files(w);
        s.tasks = mem_zalloc((size_t)s.count * sizeof(*s.tasks));
        fflush(NULL);
        for (int64_t i = 0; i < s.count; i++)
                if (begin_task(&s, i) != 0) {
                        s.code = slurm_error(1, "task %lld could not be started: %s", (long long)i,
                                             strerror(errno));
                        signal_all(&s, SIGTERM);
                        break;
                }
        for (bool left = true; left;) {
                int number;

                while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
                        take_end(&s, pid, status);
                left = pid == 0;
                if (left && (number = sigwaitinfo(&set, NULL)) > 0 && number != SIGCHLD)
                        signal_all(&s, number);
        }
        free(s.tasks);
        return s.code;
}

/* ---- outside of one */

static void add_option(struct args *words, const char *option, const char *value)
{
        args_add(words, str_of(option));
        if (value)
                args_add(words, str_of(value));
}

/* The job is this program again, which starts the tasks there. */
static void add_step(struct args *words, const struct words *w, int64_t tasks)
{
        static const char *const passed[] = {"output", "error", "open-mode"};
        char count[32];

        snprintf(count, sizeof(count), "%lld", (long long)tasks);
        add_option(words, program_self(), NULL);
        add_option(words, "srun", "--ntasks");
        add_option(words, count, NULL);
        if (words_has(w, "label"))
                add_option(words, "--label", NULL);
        if (words_has(w, "kill-on-bad-exit"))
                add_option(words, "--kill-on-bad-exit=1", NULL);
        for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
                if (words_has(w, passed[i])) {
                        BUF_CLEANUP struct buf option = {0};

                        buf_printf(&option, "--%s=%s", passed[i], words_text(w, passed[i]));
                        add_option(words, buf_z(&option), NULL);
                }
        add_option(words, "--", NULL);
}

static int run_job(struct cli *cli, const struct words *w)
{
        const char *slash = strrchr(w->words[0], '/');
        ARGS_CLEANUP struct args command = {0};
        struct err err = {""};
        int64_t tasks = 0;

        if (batch_tasks(w, &tasks, &err) != 0)
                return slurm_error(1, "%s", err.text);
        if (tasks > 1 || words_has(w, "label") || words_has(w, "output") || words_has(w, "error"))
                add_step(&command, w, tasks);
        for (size_t i = 0; i < w->word_count; i++)
                args_add(&command, str_of(w->words[i]));
        return run_become(cli, w, slash ? slash + 1 : w->words[0], words_has(w, "pty"), &command);
}

static int srun(struct cli *cli, const struct words *w)
{
        const char *mpi = words_text(w, "mpi");

        if (w->word_count == 0)
                return slurm_error(1, "No command given to execute.");
        if (mpi && strcmp(mpi, "list") != 0 && strcmp(mpi, "none") != 0)
                return slurm_error(
                        1, "--mpi=%s is not supported: tasks are not told of each other; use mpirun", mpi);
        run_warn(w);
        if (getenv("SLURM_JOB_ID") && getenv("DROVER_SCRATCH"))
                return run_step(w);
        return run_job(cli, w);
}

static const struct words_row rows[] = {
        BATCH_ROWS,
        {"kill-on-bad-exit", 'K', WORDS_MAYBE, WORDS_ACTS, "1", NULL,
         "When a task fails the others are ended."},
        {"label", 'l', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Each line begins with the number of its task."},
        {"mpi", 0, WORDS_VALUE, WORDS_ACTS, "none", NULL, "Others than `none` are refused: use mpirun."},
        {"pty", 0, WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "The command has a terminal."},
        {"quiet", 'Q', WORDS_PLAIN, WORDS_ACTS, NULL, NULL, "Nothing is told of options that are left out."},
        {"unbuffered", 'u', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Output is not held back."},
        {"wait", 'W', WORDS_VALUE, WORDS_SO, "SECONDS", NULL, "All tasks are waited for."},
        {"exact", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Steps share the job's processors."},
        {"overlap", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Steps share the job's processors."},
        {"preserve-env", 'E', WORDS_PLAIN, WORDS_SO, NULL, NULL, "The environment is that of the call."},
        {"disable-status", 'X', WORDS_PLAIN, WORDS_SO, NULL, NULL, "Signals go on to the tasks."},
        {"quit-on-interrupt", 0, WORDS_PLAIN, WORDS_SO, NULL, NULL, "Signals go on to the tasks."},
        {"cpu-bind", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "tasks are not bound to processors."},
        {"cpu_bind", 0, WORDS_VALUE, WORDS_NAMED, "TEXT", NULL, "tasks are not bound to processors."},
        {"threads", 'T', WORDS_VALUE, WORDS_NAMED, "N", NULL, "there is one node."},
        {"resv-ports", 0, WORDS_MAYBE, WORDS_NAMED, "N", NULL, "no ports are reserved."},
        {"bcast", 0, WORDS_MAYBE, WORDS_REFUSED, "FILE", NULL,
         "use transfer_input_files of drover-submit-file(5)."},
        {"immediate", 'I', WORDS_MAYBE, WORDS_REFUSED, "SECONDS", NULL, "use `drover run` and `timeout`."},
        {"jobid", 0, WORDS_VALUE, WORDS_REFUSED, "ID", NULL, "use `drover exec`."},
        {"multi-prog", 0, WORDS_PLAIN, WORDS_REFUSED, NULL, NULL,
         "start the programs by a script that looks at SLURM_PROCID."},
        {"no-allocate", 'Z', WORDS_PLAIN, WORDS_REFUSED, NULL, NULL, "a job needs a place."},
        {"prolog", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "call it in the command."},
        {"epilog", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "call it in the command."},
        {"task-prolog", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "call it in the command."},
        {"task-epilog", 0, WORDS_VALUE, WORDS_REFUSED, "FILE", NULL, "call it in the command."},
        {"relative", 'r', WORDS_VALUE, WORDS_REFUSED, "N", NULL, "there is one node."},
        {"het-group", 0, WORDS_VALUE, WORDS_REFUSED, "TEXT", NULL, "a job has one component."},
        {0},
};
const struct words_tool slurm_srun = {
        .name = "srun",
        .usage = "[OPTIONS] COMMAND [ARGUMENTS...]",
        .line = "Runs a command as a job, with its output here and its exit code passed on; within a job, as "
                "tasks of it.",
        .rows = rows,
        .stops = true,
        .no_variables = true,
        .run = srun,
};
