/* A runner's calls from standard input, its events on standard output: what the conformance suite says to
 * every runner where no agent stands between.
 *
 *   drive_runner KIND DIR [NAME=VALUE...]      settings of a batch queue; PROGRAM=… is the shepherd
 *
 *   submit N COMMAND      task N runs /bin/sh -c COMMAND in DIR/box.N
 *   kill N | hold N | release N | suspend N | resume N | forget N | status N
 *   signal N NUMBER
 *   quote N CPUS
 *   capacity
 *   quit [all]
 *
 * Answers: `ready`, `away`, `STATE N …`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "run/runner.h"

static struct loop *loop;
static struct runner *runner;
static const char *dir;
static bool kill_all;

static void on_tasks(void *arg, const struct run_event *events, size_t count)
{
        static const char *const states[] = {"waiting", "running", "ended", "failed", "lost"};

        (void)arg;
        for (size_t i = 0; i < count; i++) {
                const struct run_event *e = &events[i];

                printf("%s %u", states[e->state], e->id.member);
                if (e->known)
                        printf(" known");
                if (e->state == RUN_ENDED)
                        printf(" %s=%d why=%d", e->signaled ? "signal" : "code", e->exit_code, e->why);
                if (e->what)
                        printf(" what=%s", e->what);
                if (e->text)
                        printf(" text=%s", e->text);
                putchar('\n');
        }
        fflush(stdout);
}

static void on_signal_waits(void *arg, struct run_id id)
{
        (void)arg;
        printf("waiting %u what=signal\n", id.member);
        fflush(stdout);
}

static void on_checkpointed(void *arg, struct run_id id, const char *files)
{
        (void)arg;
        printf("checkpointed %u text=%s\n", id.member, files);
        fflush(stdout);
}

static void on_quoted(void *arg, const struct run_quote *q)
{
        int64_t in = q->begins_ms ? (int64_t)q->begins_ms - clock_wall_ms() : -99999999;

        (void)arg;
        printf("quoted %u in=%lld error=%d", q->id.member, (long long)in, q->error);
        printf(q->why ? " text=%s\n" : "\n", q->why);
        fflush(stdout);
}

static void on_ready(void *arg, uint32_t containment, int hide_error)
{
        (void)arg;
        (void)containment;
        (void)hide_error;
        printf("ready 0\n");
        fflush(stdout);
}

static void on_unreachable(void *arg, const char *why)
{
        (void)arg;
        printf(why ? "away 0 text=%s\n" : "away 0\n", why);
        fflush(stdout);
}

static void on_silent(void *arg, const char *why)
{
        (void)arg;
        printf(why ? "silent 0 text=%s\n" : "silent 0\n", why);
        fflush(stdout);
}

static const struct run_observer observer = {.tasks = on_tasks,
                                             .signal_waits = on_signal_waits,
                                             .checkpointed = on_checkpointed,
                                             .quoted = on_quoted,
                                             .ready = on_ready,
                                             .unreachable = on_unreachable,
                                             .silent = on_silent};

static struct run_spec spec_of(unsigned n, const char *box, char **argv)
{
        static char *envp[] = {(char *)"PATH=/usr/bin:/bin", NULL};

        return (struct run_spec){.id = {7, n, 1, 0, 0},
                                 .job = "7",
                                 .delegation = {.owner = "ann@here",
                                                .servers = "00000000-0000-4000-8000-00000000d71e",
                                                .hops_left = 4},
                                 .sandbox = box,
                                 .path = argv[0],
                                 .argv = argv,
                                 .envp = envp,
                                 .stdout_path = "out",
                                 .stderr_path = "err",
                                 .slot = UINT32_MAX,
                                 .cpus_milli = 1000,
                                 .memory_bytes = 16 << 20};
}

static void submit(unsigned n, struct str command, uint64_t cpus, bool only_ask)
{
        BUF_CLEANUP struct buf box = {0};
        MEM_CLEANUP char *z = str_dupz(command);
        char *argv[] = {(char *)"/bin/sh", (char *)"-c", z, NULL};

        buf_printf(&box, "%s/box.%u", dir, n);
        struct run_spec s = spec_of(n, buf_z(&box), argv);
        if (only_ask) {
                s.cpus_milli = cpus * 1000;
                runner->kind->quote(runner, &s);
                return;
        }
        mkdir(s.sandbox, 0755);
        runner_submit(runner, &s);
}

static void about_task(struct str verb, struct run_id id, struct str rest)
{
        uint64_t number = 0;

        if (str_eqz(verb, "submit")) {
                submit(id.member, rest, 1, false);
        } else if (str_eqz(verb, "quote") && str_to_u64(rest, &number) == 0) {
                submit(id.member, STR("exit"), number, true);
        } else if (str_eqz(verb, "signal") && str_to_u64(rest, &number) == 0) {
                runner_signal(runner, id, (int)number);
        } else if (str_eqz(verb, "kill")) {
                runner_kill(runner, id, 1000);
        } else if (str_eqz(verb, "hold")) {
                runner->kind->hold(runner, id);
        } else if (str_eqz(verb, "release")) {
                runner->kind->release(runner, id);
        } else if (str_eqz(verb, "suspend")) {
                runner->kind->suspend(runner, id);
        } else if (str_eqz(verb, "resume")) {
                runner->kind->resume(runner, id);
        } else if (str_eqz(verb, "forget")) {
                runner_forget(runner, id);
        } else if (str_eqz(verb, "status")) {
                runner->kind->status(runner, &id, 1);
        } else {
                printf("what is '" STR_FMT "'?\n", STR_ARG(verb));
        }
}

static void on_line(struct str line)
{
        struct str verb, word;
        uint64_t n;

        if (!str_cut(&line, ' ', &verb))
                return;
        if (str_eqz(verb, "quit")) {
                kill_all = str_eqz(line, "all");
                loop_stop(loop);
        } else if (str_eqz(verb, "capacity")) {
                struct run_capacity c = {0};

                runner->kind->capacity(runner, &c);
                printf("capacity %d cpus=%llu idle=%llu nodes=%llu node_cpus=%llu memory=%llu\n", c.known,
                       (unsigned long long)c.cpus_milli / 1000, (unsigned long long)c.idle_cpus_milli / 1000,
                       (unsigned long long)c.nodes, (unsigned long long)c.node_cpus_milli / 1000,
                       (unsigned long long)c.memory_bytes >> 20);
        } else if (str_cut(&line, ' ', &word) && str_to_u64(word, &n) == 0) {
                about_task(verb, (struct run_id){7, (uint32_t)n, 1, 0, 0}, line);
        }
        fflush(stdout);
}

static void on_input(void *arg, int what)
{
        static struct buf in;
        ssize_t n = read(STDIN_FILENO, buf_room(&in, 65536), 65536);
        struct str line, rest;

        (void)arg;
        (void)what;
        if (n <= 0) {
                loop_stop(loop);
                return;
        }
        in.n += (size_t)n;
        rest = buf_view(&in);
        while (str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line))
                on_line(line);
        buf_consume(&in, in.n - rest.n);
        runner->kind->flush(runner);
}

int main(int argc, char **argv)
{
        struct run_word words[32];
        struct err err = {""};
        struct runner_config c = {.instance = "00000000-0000-0000-0000-00000000d71e",
                                  .queue = "q",
                                  .settings = words,
                                  .observer = &observer};
        const struct runner_kind *kind = argc > 2 ? runner_find(argv[1]) : NULL;

        if (!kind || argc > 34) {
                fprintf(stderr, "drive_runner KIND DIR [NAME=VALUE...]\n");
                return 2;
        }
        c.dir = dir = argv[2];
        for (int i = 3; i < argc; i++) {
                char *eq = strchr(argv[i], '=');

                if (!eq)
                        return 2;
                *eq = 0;
                if (!strcmp(argv[i], "PROGRAM"))
                        c.program = eq + 1;
                else
                        words[c.setting_count++] = (struct run_word){argv[i], eq + 1};
        }
        c.loop = loop = loop_new();
        if (kind->open(&c, &runner, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        struct watch *in = watch_new(loop, STDIN_FILENO, WATCH_READ, on_input, NULL);
        loop_run(loop);
        watch_free(in);
        runner->kind->close(runner, kill_all);
        loop_free(loop);
        return 0;
}
