/* The server answers GET /v1/wait when the counts differ from those in `seen`, at a limited rate. The bar
 * therefore follows the jobs without needless requests, and their end is known at once. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/client/session_batch.h"
#include "cli/command/commands.h"
#include "cli/command/jobs/wait.h"
#include "cli/terminal/human.h"

#define POLL_MS       30000
#define NOTE_MS       3000 /* between two looks for ids of batch jobs */
#define PAUSE_MS      100  /* after an answer without a change */
#define LINE_MS       5000 /* between two lines, if stderr is not a terminal */
#define AWAY_FIRST_MS 100
#define AWAY_MAX_MS   2000

struct counts {
        int64_t jobs, finished, succeeded, failed, removed, handled, held, running, idle;
        bool done;
};

#define HELD_LOOKED_AT 1000
#define HELD_TEXT_MAX  200
#define HOLD_LIMIT     34 /* a value of hold_code: the job exceeded a limit (HTCondor's number) */

struct waiting {
        struct cli *cli;
        const struct wait *w;
        struct buf seen;
        struct counts now;
        struct buf stuck_on; /* a held job, if nothing of what is left goes on before a release; else empty */
        int64_t began_ms, line_ms; /* boot clock; line_ms: time of the last line */
        int64_t finished_before;   /* jobs that had finished when the first answer came; -1: no answer yet */
        int64_t deadline_ms;       /* -1: no deadline */
        int64_t told_held;         /* held jobs that were reported */
        bool for_memory;           /* the last one that was named had exceeded its memory */
        int64_t away_ms;           /* pause before the next try; 0: the server is reachable */
        bool reached, live, drawn;
        bool news; /* the last answer differs from the one before */
};

static void read_counts(struct view root, struct counts *ret)
{
        *ret = (struct counts){
                .jobs = view_integer(view_get(root, "jobs"), 0),
                .finished = view_integer(view_get(root, "finished"), 0),
                .succeeded = view_integer(view_get(root, "succeeded"), 0),
                .failed = view_integer(view_get(root, "failed"), 0),
                .removed = view_integer(view_get(root, "removed"), 0),
                .handled = view_integer(view_get(root, "handled"), 0),
                .held = view_integer(view_get(root, "held"), 0),
                .running = view_integer(view_get(root, "running"), 0),
                .idle = view_integer(view_get(root, "idle"), 0),
                .done = view_true(view_get(root, "done")),
        };
}

static void wait_add_counts(struct buf *out, const struct counts *c)
{
        static const struct {
                const char *name;
                size_t offset;
        } rows[] = {{"failed", offsetof(struct counts, failed)},
                    {"removed", offsetof(struct counts, removed)},
                    {"held", offsetof(struct counts, held)},
                    {"running", offsetof(struct counts, running)},
                    {"idle", offsetof(struct counts, idle)}};

        buf_printf(out, "%lld of %lld done", (long long)c->finished, (long long)c->jobs);
        for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                int64_t n = *(const int64_t *)(const void *)((const char *)c + rows[i].offset);

                if (n > 0)
                        buf_printf(out, ", %lld %s", (long long)n, rows[i].name);
        }
}

/* Appends how fast jobs finish, and how long the others will take at that rate; nothing while none has
 * finished. */
static void add_pace(const struct waiting *s, struct buf *out)
{
        int64_t done = s->now.finished - s->finished_before, took_ms = clock_boot_ms() - s->began_ms;

        if (s->finished_before < 0 || done <= 0 || took_ms < 1000)
                return;
        buf_printf(out, ", %.3g/s", (double)done * 1000 / (double)took_ms);
        if (s->now.held == 0 && s->now.finished < s->now.jobs) {
                buf_addz(out, ", ");
                human_duration(out, (s->now.jobs - s->now.finished) * took_ms / done);
                buf_addz(out, " left");
        }
}

static unsigned terminal_width(void)
{
        struct winsize w;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col >= 20 ? w.ws_col : 80;
}

static void add_bar(struct buf *out, const struct counts *c, unsigned width)
{
        int64_t jobs = c->jobs > 0 ? c->jobs : 1;
        unsigned good = (unsigned)((c->finished - c->failed - c->removed) * width / jobs);
        unsigned bad = (unsigned)(c->finished * width / jobs) - good;
        unsigned now = (unsigned)((c->finished + c->running) * width / jobs) - good - bad;

        buf_char(out, '[');
        for (unsigned i = 0; i < width; i++)
                buf_char(out, i < good ? '#' : i < good + bad ? 'x' : i < good + bad + now ? '=' : '.');
        buf_char(out, ']');
}

static void draw(struct waiting *s)
{
        struct buf text BUF_CLEANUP = {0}, line BUF_CLEANUP = {0};
        unsigned width = terminal_width(), room;

        wait_add_counts(&text, &s->now);
        add_pace(s, &text);
        buf_addz(&text, "  ");
        human_duration(&text, clock_boot_ms() - s->began_ms);
        if (s->away_ms)
                buf_addz(&text, "  (no server)");
        room = text.n + 14 < width ? width - (unsigned)text.n - 4 : 10;
        buf_char(&line, '\r');
        add_bar(&line, &s->now, room > 40 ? 40 : room);
        buf_char(&line, ' ');
        buf_str(&line, str_head(buf_view(&text), width > 16 ? width - 14 : 4));
        buf_addz(&line, "\033[K");
        fwrite(line.p, 1, line.n, stderr);
        fflush(stderr);
        s->drawn = true;
}

static void clear_line(struct waiting *s)
{
        if (s->drawn)
                fputs("\r\033[K", stderr);
        s->drawn = false;
}

/* Appends one held job and its reason as an example: "7.3: no such file". Appends nothing when it is not
 * available. */
static void add_held(struct waiting *s, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, reason BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/jobs?id=%s&state=held&limit=1", s->w->ids);
        if (api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0 ||
            !view_next(view_get(answer.root, "jobs"), &at, &job))
                return;
        buf_addz(out, " (");
        view_text(view_get(job, "id"), out);
        view_text(view_get(job, "hold_reason"), &reason);
        s->for_memory = str_search(buf_view(&reason), STR("memory")) >= 0 &&
                        view_integer(view_get(job, "hold_code"), 0) == HOLD_LIMIT;
        if (reason.n) {
                buf_addz(out, ": ");
                human_safe(out, buf_view(&reason));
        }
        buf_char(out, ')');
}

static void show_progress(struct waiting *s)
{
        struct buf text BUF_CLEANUP = {0};
        int64_t now_ms = clock_boot_ms();

        if (s->w->quiet)
                return;
        if (s->now.held > s->told_held) {
                clear_line(s);
                add_held(s, &text);
                cli_note("%lld held%s%s", (long long)s->now.held, buf_z(&text),
                         s->w->ignore_held ? ": see drover release and drover rm" : "");
                buf_reset(&text);
        }
        s->told_held = s->now.held;
        if (s->live) {
                draw(s);
        } else if (!s->now.done && now_ms - s->line_ms >= LINE_MS) {
                wait_add_counts(&text, &s->now);
                add_pace(s, &text);
                fprintf(stderr, "%s\n", buf_z(&text));
                s->line_ms = now_ms;
        }
}

/* Waits, at most until the deadline. */
static void pause_ms(const struct waiting *s, int64_t ms)
{
        int64_t left = s->deadline_ms < 0 ? ms : s->deadline_ms - clock_boot_ms();

        if (left > 0)
                poll(NULL, 0, (int)(left < ms ? left : ms));
}

/* The connection was lost. Returns -1 to try again after a pause, or an exit code. */
static int server_away(struct waiting *s, const struct err *err)
{
        if (!s->reached)
                return cli_error(CLI_FAILED, "%s", err->text);
        if (s->away_ms == 0 && !s->w->quiet) {
                clear_line(s);
                cli_note("the server went away; waiting for it to come back");
        }
        s->away_ms = s->away_ms == 0                ? AWAY_FIRST_MS
                     : s->away_ms * 2 > AWAY_MAX_MS ? AWAY_MAX_MS
                                                    : s->away_ms * 2;
        if (s->live)
                draw(s);
        pause_ms(s, s->away_ms);
        return -1;
}

/* Makes one long poll. Returns -1 to continue, or the exit code. */
static int ask_counts(struct waiting *s, struct buf *last)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, seen BUF_CLEANUP = {0};
        struct err err = {""};
        int64_t poll_ms = POLL_MS, failures;
        int rc;

        if (s->deadline_ms >= 0 && s->deadline_ms - clock_boot_ms() < poll_ms)
                poll_ms = s->deadline_ms > clock_boot_ms() ? s->deadline_ms - clock_boot_ms() : 0;
        /* The bar's clock must advance even without news. */
        if (s->live && poll_ms > 1000)
                poll_ms = 1000;
        buf_printf(&path, "/v1/wait?ids=%s&timeout_ms=%lld", s->w->ids, (long long)poll_ms);
        api_query(&path, "seen", buf_view(&s->seen));
        rc = api_call(s->cli, &(struct api_request){.path = buf_z(&path), .timeout_ms = (int)poll_ms + 20000},
                      &answer, &err);
        if (rc == API_NO_SERVER || rc == API_LOST || (rc == API_REFUSED && answer.status == 503)) {
                api_close(s->cli); /* the server may return at another address */
                return server_away(s, &err);
        }
        if (rc != 0) {
                clear_line(s);
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        }
        s->reached = true;
        s->away_ms = 0;
        read_counts(answer.root, &s->now);
        buf_reset(&s->stuck_on);
        view_text(view_get(answer.root, "stuck_on"), &s->stuck_on);
        view_text(view_get(answer.root, "seen"), &seen);
        s->news = !str_eq(buf_view(&seen), buf_view(&s->seen));
        buf_reset(&s->seen);
        buf_str(&s->seen, buf_view(&seen));
        buf_reset(last);
        buf_str(last, answer.root.text);
        if (s->finished_before < 0)
                s->finished_before = s->now.finished;
        if (s->news && s->w->changed)
                s->w->changed(s->w->arg);
        show_progress(s);
        failures = s->now.failed + s->now.removed - s->now.handled;
        if (s->now.done || (s->w->fail_fast && failures > 0))
                return failures > 0 ? CLI_FAILED : CLI_OK;
        if (!s->w->ignore_held &&
            (s->stuck_on.n || (s->now.held > 0 && s->now.finished + s->now.held == s->now.jobs)))
                return CLI_HELD;
        return -1;
}

/* Tells where the outputs of a request are if the server keeps them. */
static void tell_of_outputs(struct waiting *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view file;
        size_t at = 0;

        if (strpbrk(s->w->ids, ",."))
                return;
        buf_printf(&path, "/v1/requests/%s/files?limit=1", s->w->ids);
        if (api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) == 0 &&
            view_next(view_get(answer.root, "files"), &at, &file))
                cli_note("the server keeps its outputs: drover get %s", s->w->ids);
}

#define FAILED_SHOWN 3
#define FAILED_LINES 5

/* Prints the last jobs that failed, each with the end of its errors or of its output. */
static void show_failed(struct waiting *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/history?id=%s&limit=%d", s->w->ids, FAILED_SHOWN);
        api_query(&path, "constraint", STR("JobStatus =?= 4 && ExitCode =!= 0"));
        if (api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                struct buf id BUF_CLEANUP = {0};
                struct job_row row;

                job_read(job, &row);
                view_text(row.id, &id);
                buf_str(&out, buf_view(&id));
                buf_char(&out, ' ');
                job_outcome(&row, &out);
                buf_char(&out, '\n');
                if (!output_show_last(s->cli, buf_z(&id), "stderr", FAILED_LINES, "    ", &out))
                        output_show_last(s->cli, buf_z(&id), "stdout", FAILED_LINES, "    ", &out);
        }
        if (s->now.failed > FAILED_SHOWN)
                buf_printf(&out, "and %lld more: drover queue --state failed %s\n",
                           (long long)s->now.failed - FAILED_SHOWN, s->w->ids);
        fwrite(out.p ? out.p : "", 1, out.n, stderr);
}

/* Appends the held jobs among those that were waited for, as ids for a command line: the request if all
 * jobs belong to one; otherwise the requests or jobs that are held; all ids if the server does not say
 * which are held. */
static void add_held_ids(struct waiting *s, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, last BUF_CLEANUP = {0};
        bool jobs = strchr(s->w->ids, '.') != NULL;
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/jobs?id=%s&state=held&limit=%d", s->w->ids, HELD_LOOKED_AT);
        if (strpbrk(s->w->ids, ",-") && s->now.held <= HELD_LOOKED_AT &&
            api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) == 0) {
                while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                        struct buf id BUF_CLEANUP = {0};
                        struct str name, rest;

                        view_text(view_get(job, "id"), &id);
                        name = rest = buf_view(&id);
                        if (!jobs)
                                str_cut(&rest, '.', &name);
                        if (str_eq(name, buf_view(&last)))
                                continue;
                        buf_addz(out, out->n ? "," : "");
                        buf_str(out, name);
                        buf_reset(&last);
                        buf_str(&last, name);
                }
        }
        if (out->n == 0 || out->n > HELD_TEXT_MAX) {
                buf_reset(out);
                buf_addz(out, s->w->ids);
        }
}

static void print_end(struct waiting *s, int code, struct buf *last)
{
        struct buf out BUF_CLEANUP = {0}, held BUF_CLEANUP = {0};

        clear_line(s);
        if (s->w->quiet)
                return;
        if (s->cli->json && last->n) {
                buf_str(&out, buf_view(last));
        } else if (code == CLI_TIMEOUT) {
                cli_note("timed out after %lld s", (long long)s->w->timeout_s);
                wait_add_counts(&out, &s->now);
        } else if (code == CLI_HELD) {
                if (s->now.held > 0)
                        add_held_ids(s, &held);
                else
                        buf_str(&held, buf_view(&s->stuck_on));
                cli_note("all that is left %s: drover release %s lets it run, drover rm %s removes it",
                         s->now.held == 0  ? "waits for a job that is held"
                         : s->now.idle > 0 ? "is held, or waits for jobs that are held"
                                           : "is held",
                         buf_z(&held), buf_z(&held));
                if (s->for_memory)
                        cli_note("with more memory: drover edit %s memory=SIZE, then drover release %s",
                                 buf_z(&held), buf_z(&held));
                wait_add_counts(&out, &s->now);
        } else if (code == CLI_FAILED && !s->now.done) {
                wait_add_counts(&out, &s->now);
        } else if (code == CLI_OK && s->now.handled) {
                human_count(&out, s->now.jobs, "job", "jobs");
                buf_printf(&out, ": %lld failed, and others decided that the graph succeeded",
                           (long long)s->now.handled);
        } else if (code == CLI_OK) {
                human_count(&out, s->now.jobs, "job, it succeeded", "jobs, all succeeded");
        } else {
                human_count(&out, s->now.jobs, "job", "jobs");
                buf_printf(&out, ": %lld succeeded, %lld failed, %lld removed", (long long)s->now.succeeded,
                           (long long)s->now.failed, (long long)s->now.removed);
        }
        buf_char(&out, '\n');
        if (!s->cli->json && code == CLI_FAILED && s->now.failed)
                show_failed(s);
        cli_print(&out);
        if (!s->cli->json && (code == CLI_OK || code == CLI_FAILED))
                tell_of_outputs(s);
}

/* The text that Ctrl-C prints; made in advance, because a signal handler may not format. */
static char interrupted_text[200];

static void on_interrupt(int sig)
{
        ssize_t ignored = write(STDERR_FILENO, interrupted_text, strlen(interrupted_text));

        (void)ignored;
        raise(sig); /* SA_RESETHAND has restored the default action, which a shell recognises */
}

static void say_when_interrupted(const struct wait *w)
{
        struct sigaction before,
                action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

        snprintf(interrupted_text, sizeof(interrupted_text),
                 "\n%s: the jobs go on; drover wait %.100s waits for them again\n", cli_name, w->ids);
        if (!w->quiet && sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
                sigaction(SIGINT, &action, NULL);
}

int wait_for_jobs(struct cli *cli, const struct wait *w)
{
        struct buf last BUF_CLEANUP = {0};
        struct waiting s = {.cli = cli,
                            .w = w,
                            .began_ms = clock_boot_ms(),
                            .line_ms = clock_boot_ms(),
                            .finished_before = -1,
                            .deadline_ms = w->timeout_s < 0 ? -1 : clock_boot_ms() + w->timeout_s * 1000,
                            .live = !w->quiet && isatty(STDERR_FILENO) == 1};
        int code;

        fflush(stdout);
        say_when_interrupted(w);
        for (;;) {
                code = ask_counts(&s, &last);
                if (code >= 0)
                        break;
                if (s.deadline_ms >= 0 && clock_boot_ms() >= s.deadline_ms) {
                        code = CLI_TIMEOUT;
                        break;
                }
                if (!s.news)
                        pause_ms(&s, PAUSE_MS);
        }
        if (s.reached && code != CLI_USAGE)
                print_end(&s, code, &last);
        buf_deinit(&s.seen);
        buf_deinit(&s.stuck_on);
        return code;
}

/* Appends the ids of the caller's own requests that have not ended, as "7,8". Returns 0 or, after an error
 * was printed, an exit code. */
static int own_requests(struct cli *cli, struct buf *out)
{
        struct api_answer server API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, owner BUF_CLEANUP = {0};
        struct view request;
        size_t at = 0;
        int code = api_get(cli, "/v1/server", &server);

        if (code != 0)
                return code;
        view_text(view_get(server.root, "you"), &owner);
        buf_addz(&path, "/v1/requests");
        api_query(&path, "owner", buf_view(&owner));
        code = api_get(cli, buf_z(&path), &answer);
        if (code != 0)
                return code;
        while (view_next(view_get(answer.root, "requests"), &at, &request)) {
                if (out->n)
                        buf_char(out, ',');
                view_text(view_get(request, "id"), out);
        }
        return 0;
}

void wait_note_session(void *arg)
{
        struct session_file s SESSION_FILE_CLEANUP = {0};
        struct wait_session *w = arg;

        if (!w->path || clock_boot_ms() < w->next_ms || session_file_read(w->path, &s) != 0)
                return;
        session_batch_note(w->cli, w->path, &s);
        w->next_ms = clock_boot_ms() + NOTE_MS;
}

int cmd_wait(struct cli *cli, const struct options *o)
{
        struct wait_session session = {cli, options_text(o, "session"), 0};
        struct buf ids BUF_CLEANUP = {0};
        int code = o->word_count ? jobs_ids(o->words, o->word_count, &ids) : own_requests(cli, &ids);

        if (code == 0 && ids.n == 0) {
                cli_note("none of your requests is left to wait for");
                return CLI_OK;
        }
        if (code == 0)
                code = api_path_check(&ids);
        if (code != 0)
                return code;
        return wait_for_jobs(cli, &(struct wait){.ids = buf_z(&ids),
                                                 .timeout_s = options_number(o, "timeout", -1),
                                                 .quiet = options_flag(o, "quiet"),
                                                 .changed = wait_note_session,
                                                 .arg = &session,
                                                 .ignore_held = options_flag(o, "ignore-held"),
                                                 .fail_fast = options_flag(o, "fail-fast")});
}
