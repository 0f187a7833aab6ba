/* One loop: lines of the program are read as they come; offers are submitted in their order; once in SEE_MS
 * the server is asked for the counts of all open requests, and if these have changed, for those of each. */
#include "cli/client/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format/json.h"
#include "base/format/sha256.h"
#include "base/mem.h"
#include "base/system/backoff.h"
#include "base/system/clock.h"
#include "cli/client/submit.h"

#define SEE_MS     1000
#define END_MS     5000 /* time that the program has to end after SIGTERM */
#define FAILED_MAX 100  /* jobs that a result names */

enum offer_state {
        OFFER_WAITING,  /* to be submitted */
        OFFER_ACCEPTED, /* the server has the request */
        OFFER_TOLD,     /* the program was told the result, or that the offer is refused */
};
struct offer {
        char *id;
        enum offer_state state;
        struct buf line;    /* the program's offer; empty after it was submitted */
        struct buf request; /* the server's number of it */
        struct buf seen;    /* counts that the program was told */
};
struct source {
        struct cli *cli;
        const struct source_options *o;
        int home; /* folder in which `drover source` was started */
        pid_t pid;
        int in, out; /* the program's standard input (-1: it has closed it) and output */
        struct buf unsent, unread;
        struct offer *offers; /* in the order in which they came */
        size_t count;
        size_t room;               /* offers that the program may make */
        struct buf seen;           /* of all accepted requests */
        int64_t see_ms, submit_ms; /* boot clock: when the server is asked and when the next offer is tried */
        struct backoff backoff;
        bool away; /* the server has not answered the last call */
        int code;  /* exit code; -1: go on */
};

static volatile sig_atomic_t stopped;

static void on_stop(int sig)
{
        (void)sig;
        stopped = 1;
}

/* ---- lines for the program */

static void say_begin(struct json *j, const char *what)
{
        json_open(j, '{');
        json_key(j, what);
}

static void say_end(struct source *s, struct json *j)
{
        json_close(j, '}');
        buf_char(&s->unsent, '\n');
}

static void say_number(struct source *s, const char *what, size_t n)
{
        struct json j = {.out = &s->unsent};

        say_begin(&j, what);
        json_int(&j, (int64_t)n);
        say_end(s, &j);
}

static void say_hello(struct source *s)
{
        struct json j = {.out = &s->unsent};

        say_begin(&j, "begin");
        json_open(&j, '{');
        json_kstrz(&j, "source", s->o->name);
        json_kint(&j, "version", 1);
        json_kbool(&j, "files", s->o->files);
        json_close(&j, '}');
        say_end(s, &j);
        say_number(s, "next", s->room);
}

static void say_refused(struct source *s, struct str id, struct str why)
{
        struct json j = {.out = &s->unsent};

        say_begin(&j, "refused");
        json_open(&j, '{');
        json_kstr(&j, "id", id);
        json_kstr(&j, "why", str_trim(why));
        json_close(&j, '}');
        say_end(s, &j);
}

static void say_counts(struct json *j, struct view counts)
{
        static const char *const keys[] = {"jobs",      "idle",   "running", "held",
                                           "succeeded", "failed", "removed"};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
                json_kint(j, keys[i], view_integer(view_get(counts, keys[i]), 0));
}

/* The latest jobs that did not succeed, with what is known of their ends. */
static void say_failed_jobs(struct source *s, const struct offer *f, struct json *j)
{
        static const char *const keys[] = {"id", "state", "exit_code", "exit_signal", "hold_reason"};
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0};
        struct view job;
        size_t at = 0;

        buf_printf(&path, "/v1/history?id=" STR_FMT "&limit=%d", STR_ARG(buf_view(&f->request)), FAILED_MAX);
        api_query(&path, "constraint", STR("JobStatus =!= 4 || ExitCode =!= 0"));
        if (api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        json_key(j, "failed_jobs");
        json_open(j, '[');
        while (view_next(view_get(answer.root, "jobs"), &at, &job)) {
                json_open(j, '{');
                for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
                        struct view v = view_get(job, keys[i]);

                        if (view_there(v)) {
                                json_key(j, keys[i]);
                                json_raw(j, v.text);
                        }
                }
                json_close(j, '}');
        }
        json_close(j, ']');
}

/* Tells a state, or the result if all of its jobs have ended. counts is none if the server does not know any
 * more how the request ended. */
static void say_news(struct source *s, struct offer *f, struct view counts)
{
        bool known = view_there(counts), done = !known || view_true(view_get(counts, "done"));
        struct json j = {.out = &s->unsent};

        say_begin(&j, done ? "result" : "state");
        json_open(&j, '{');
        json_kstrz(&j, "id", f->id);
        json_key(&j, "request");
        json_raw(&j, buf_view(&f->request));
        if (known)
                say_counts(&j, counts);
        else
                json_kbool(&j, "unknown", true);
        if (known && done &&
            view_integer(view_get(counts, "succeeded"), 0) != view_integer(view_get(counts, "jobs"), 0))
                say_failed_jobs(s, f, &j);
        json_close(&j, '}');
        say_end(s, &j);
        if (done)
                f->state = OFFER_TOLD;
}

/* ---- offers */

static struct offer *find_offer(struct source *s, struct str id)
{
        for (size_t i = 0; i < s->count; i++)
                if (str_eqz(id, s->offers[i].id))
                        return &s->offers[i];
        return NULL;
}

static void offer_deinit(struct offer *f)
{
        free(f->id);
        buf_deinit(&f->line);
        buf_deinit(&f->request);
        buf_deinit(&f->seen);
}

/* Forgets an offer, and asks for another. */
static void end_offer(struct source *s, struct offer *f)
{
        size_t at = (size_t)(f - s->offers);

        offer_deinit(f);
        memmove(f, f + 1, (s->count - at - 1) * sizeof(*f));
        s->count--;
        s->room++;
        buf_reset(&s->seen);
        say_number(s, "next", 1);
}

/* Answers an offer with a refusal. It stays open until the program says that it has stored that. */
static void refuse(struct source *s, struct offer *f, struct str why)
{
        say_refused(s, str_of(f->id), why);
        f->state = OFFER_TOLD;
        buf_deinit(&f->line);
}

static bool id_valid(struct str id)
{
        for (size_t i = 0; i < id.n; i++)
                if ((unsigned char)id.p[i] < ' ' || id.p[i] == 0x7f)
                        return false;
        return id.n > 0 && id.n <= SOURCE_ID_MAX;
}

/* The same source and id make the same uuid at each start (RFC 9562, version 8). */
static int make_uuid(const struct source *s, const struct offer *f, char ret[UUID_TEXT], struct err *err)
{
        struct buf text BUF_CLEANUP = {0};
        char hex[SHA256_HEX];
        int rc;

        buf_printf(&text, "drover source\n%s\n%s", s->o->name, f->id);
        rc = sha256_hex(buf_view(&text), hex, err);
        if (rc == 0)
                snprintf(ret, UUID_TEXT, "%.8s-%.4s-8%.3s-a%.3s-%.12s", hex, hex + 8, hex + 12, hex + 15,
                         hex + 18);
        return rc;
}

static bool is_temporary(int status)
{
        return status == 0 || status == 429 || status >= 500;
}

static int enter_folder(const struct source *s, const char *dir, struct err *err)
{
        if (fchdir(s->home) == 0 && (!*dir || chdir(dir) == 0))
                return 0;
        return err_set(err, -errno, "%s: %s", dir, strerror(errno));
}

/* Sends a text. The server reads no files for it, so it reaches nothing of this machine. */
static int submit_text(struct source *s, struct str text, const char *uuid, struct api_answer *answer)
{
        struct buf path BUF_CLEANUP = {0};
        struct err err = {""};

        buf_printf(&path, "/v1/requests?uuid=%s", uuid);
        return api_call(s->cli,
                        &(struct api_request){
                                .method = "POST", .path = buf_z(&path), .body = text, .type = "text/plain"},
                        answer, &err)
                       ? cli_error(CLI_FAILED, "%s", err.text)
                       : 0;
}

/* Submits a file of this machine, and the files that it names. */
static int submit_file(struct source *s, const char *dir, const char *file, const char *uuid,
                       struct api_answer *answer)
{
        struct err err = {""};
        struct submit submit;
        int code;

        if (!s->o->files)
                return cli_error(CLI_FAILED, "it names a file, which `drover source --files` allows");
        if (enter_folder(s, dir, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        submit_init(&submit, s->cli, file);
        submit.quiet = true;
        snprintf(submit.uuid, sizeof(submit.uuid), "%s", uuid);
        code = submit_read(&submit);
        if (code == 0)
                code = submit_send(&submit, answer);
        submit_deinit(&submit);
        return code;
}

/* Returns an exit code, with messages in the thread's buffer. */
static int submit_offer(struct source *s, const struct offer *f, struct api_answer *answer)
{
        struct buf text BUF_CLEANUP = {0}, file BUF_CLEANUP = {0}, dir BUF_CLEANUP = {0};
        struct view offer = view_get(view_open(buf_view(&f->line)), "request");
        struct err err = {""};
        char uuid[UUID_TEXT];

        view_text(view_get(offer, "submit"), &text);
        view_text(view_get(offer, "file"), &file);
        view_text(view_get(offer, "dir"), &dir);
        if (make_uuid(s, f, uuid, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (file.n)
                return submit_file(s, buf_z(&dir), buf_z(&file), uuid, answer);
        if (text.n > SOURCE_TEXT_MAX)
                return cli_error(CLI_FAILED, "its text has more than %d bytes", SOURCE_TEXT_MAX);
        return submit_text(s, buf_view(&text), uuid, answer);
}

static void say_accepted(struct source *s, struct offer *f, const struct api_answer *answer)
{
        struct json j = {.out = &s->unsent};

        view_text(view_get(answer->root, "id"), &f->request);
        f->state = OFFER_ACCEPTED;
        buf_deinit(&f->line);
        say_begin(&j, "accepted");
        json_open(&j, '{');
        json_kstrz(&j, "id", f->id);
        json_key(&j, "request");
        json_raw(&j, buf_view(&f->request));
        json_kint(&j, "jobs", view_integer(view_get(answer->root, "jobs"), 0));
        json_kbool(&j, "existing", view_true(view_get(answer->root, "existing")));
        json_close(&j, '}');
        say_end(s, &j);
        buf_reset(&s->seen);
}

/* Does not call for a while. */
static void server_away(struct source *s, const char *why)
{
        int64_t wait_ms = backoff_wait(&s->backoff);

        if (!s->away)
                cli_note("%s; trying again", why);
        s->away = true;
        s->submit_ms = s->see_ms = clock_boot_ms() + wait_ms;
        api_close(s->cli); /* a server that comes back may be somewhere else */
}

static void server_there(struct source *s)
{
        s->away = false;
        backoff_reset(&s->backoff);
}

/* Submits the first offer that waits. Returns false if there is none, or the server does not answer. */
static bool submit_next(struct source *s)
{
        struct api_answer about API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct buf said BUF_CLEANUP = {0};
        struct err err = {""};
        struct offer *f = s->offers;
        int code, status;

        while (f < s->offers + s->count && f->state != OFFER_WAITING)
                f++;
        if (f == s->offers + s->count || clock_boot_ms() < s->submit_ms)
                return false;
        if (api_call(s->cli, &(struct api_request){.path = "/v1/server"}, &about, &err) != 0) {
                server_away(s, err.text);
                return false;
        }
        cli_say_into(&said);
        code = submit_offer(s, f, &answer);
        cli_say_into(NULL);
        status = api_status(s->cli);
        if (code != 0 && is_temporary(status)) {
                server_away(s, buf_z(&said));
                return false;
        }
        server_there(s);
        if (code == 0)
                say_accepted(s, f, &answer);
        else
                refuse(s, f, buf_view(&said));
        return true;
}

/* ---- lines of the program */

static void broken(struct source *s, const char *what)
{
        s->code = cli_error(CLI_FAILED, "the source's program %s: see drover-source(7)", what);
}

static void take_request(struct source *s, struct str line, struct view offer)
{
        struct buf id BUF_CLEANUP = {0};
        struct offer *f;

        view_text(view_get(offer, "id"), &id);
        if (view_type(view_get(offer, "id")) != VIEW_STRING || !id_valid(buf_view(&id))) {
                broken(s, "offers a request whose id is not a text of 1 to 128 bytes without control "
                          "characters");
                return;
        }
        if (find_offer(s, buf_view(&id))) {
                broken(s, "offers a request again that is open");
                return;
        }
        if (s->room == 0) {
                broken(s, "offers more requests than it was asked for");
                return;
        }
        s->room--;
        f = &s->offers[s->count++];
        *f = (struct offer){.id = str_dupz(buf_view(&id))};
        buf_str(&f->line, line);
        if ((view_type(view_get(offer, "submit")) == VIEW_STRING) ==
            (view_type(view_get(offer, "file")) == VIEW_STRING))
                refuse(s, f, STR("it must have one of \"submit\" and \"file\""));
}

static void take_gone(struct source *s, struct str id)
{
        struct offer *f = find_offer(s, id);

        if (f)
                end_offer(s, f);
}

static void take_remove(struct source *s, struct str id)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf body BUF_CLEANUP = {0};
        struct offer *f = find_offer(s, id);
        struct err err = {""};
        struct json j = {.out = &body};

        if (f && f->state == OFFER_WAITING)
                refuse(s, f, STR("it was removed before it was submitted"));
        if (!f || f->state != OFFER_ACCEPTED)
                return;
        json_open(&j, '{');
        json_kstrz(&j, "action", "remove");
        json_key(&j, "ids");
        json_open(&j, '[');
        json_str(&j, buf_view(&f->request));
        json_close(&j, ']');
        json_kstrz(&j, "reason", "its source removed it");
        json_close(&j, '}');
        if (api_call(s->cli,
                     &(struct api_request){.method = "POST", .path = "/v1/actions", .body = buf_view(&body)},
                     &answer, &err) != 0)
                cli_note("%s was not removed: %s", f->id, err.text);
}

static void source_take_line(struct source *s, struct str text)
{
        struct view line = view_of(text), v;
        struct buf word BUF_CLEANUP = {0};

        if (str_trim(text).n == 0)
                return;
        if (view_type(line) != VIEW_OBJECT || line.text.n != str_trim(text).n) {
                broken(s, "prints a line that is not a JSON object");
        } else if (view_there(v = view_get(line, "request"))) {
                take_request(s, text, v);
        } else if (view_there(v = view_get(line, "gone"))) {
                view_text(v, &word);
                take_gone(s, buf_view(&word));
        } else if (view_there(v = view_get(line, "remove"))) {
                view_text(v, &word);
                take_remove(s, buf_view(&word));
        } else if (view_there(v = view_get(line, "error"))) {
                view_safe(v, &word);
                cli_note("%s: %.1000s", s->o->name, buf_z(&word));
        } else {
                broken(s, "prints a line that is none of request, gone, remove and error");
        }
}

static void take_lines(struct source *s)
{
        struct str rest = buf_view(&s->unread), line;

        while (s->code < 0 && str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line))
                source_take_line(s, line);
        if (s->code < 0 && rest.n > SOURCE_LINE_MAX)
                broken(s, "prints a line of more than a MiB");
        memmove(s->unread.p, rest.p, rest.n);
        buf_truncate(&s->unread, rest.n);
}

/* ---- the program */

static int source_start(struct source *s)
{
        int in[2], out[2], r;
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attributes;

        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
                return cli_error(CLI_FAILED, "no pipe: %s", strerror(errno));
        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
        posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
        r = posix_spawnp(&s->pid, s->o->argv[0], &files, &attributes, s->o->argv, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&files);
        close(in[0]);
        close(out[1]);
        s->in = in[1];
        s->out = out[0];
        fcntl(s->in, F_SETFL, O_NONBLOCK);
        fcntl(s->out, F_SETFL, O_NONBLOCK);
        return r ? cli_error(CLI_USAGE, "%s cannot be started: %s", s->o->argv[0], strerror(r)) : 0;
}

/* Ends the program, and all that it has started. Returns the status of its own end. */
static int source_end(struct source *s)
{
        int64_t until_ms = clock_boot_ms() + END_MS;
        int status = 0;
        pid_t got;

        if (s->in >= 0)
                close(s->in);
        close(s->out);
        if (s->pid <= 0)
                return 0;
        if (s->code >= 0 || stopped)
                kill(-s->pid, SIGTERM);
        while ((got = waitpid(s->pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
                if (clock_boot_ms() >= until_ms)
                        kill(-s->pid, SIGKILL);
                poll(NULL, 0, 10);
        }
        return status;
}

/* Returns false at the end of the program's output. */
static bool read_program(struct source *s)
{
        char bytes[65536];
        ssize_t n = read(s->out, bytes, sizeof(bytes));

        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
                return false;
        if (n > 0) {
                buf_add(&s->unread, bytes, (size_t)n);
                take_lines(s);
        }
        return true;
}

static void source_write_program(struct source *s)
{
        ssize_t n = s->unsent.n && s->in >= 0 ? write(s->in, s->unsent.p, s->unsent.n) : 0;

        if (n < 0 && errno == EPIPE) {
                close(s->in); /* its output tells when it ends */
                s->in = -1;
        }
        if (s->in < 0)
                buf_reset(&s->unsent);
        if (n > 0) {
                memmove(s->unsent.p, s->unsent.p + n, s->unsent.n - (size_t)n);
                buf_truncate(&s->unsent, s->unsent.n - (size_t)n);
        }
        if (s->unsent.n > SOURCE_UNREAD_MAX)
                broken(s, "does not read what it is told");
}

/* Waits for lines of the program, or until something else is due. Returns false if its output has ended. */
static bool wait_program(struct source *s)
{
        struct pollfd fds[] = {{.fd = s->out, .events = POLLIN},
                               {.fd = s->unsent.n ? s->in : -1, .events = POLLOUT}};
        int64_t now_ms = clock_boot_ms(), due_ms = s->see_ms;

        for (size_t i = 0; i < s->count; i++)
                if (s->offers[i].state == OFFER_WAITING && s->submit_ms < due_ms)
                        due_ms = s->submit_ms;
        poll(fds, 2, due_ms > now_ms ? (int)(due_ms - now_ms) : 0);
        return !(fds[0].revents & (POLLIN | POLLHUP | POLLERR)) || read_program(s);
}

/* ---- the server */

/* Asks for the counts of some requests. *ret is the caller's. Returns an api_error. */
static int ask_counts(struct source *s, struct str ids, struct api_answer *ret, struct err *err)
{
        struct buf path BUF_CLEANUP = {0};

        buf_printf(&path, "/v1/wait?ids=" STR_FMT "&timeout_ms=0", STR_ARG(ids));
        return api_call(s->cli, &(struct api_request){.path = buf_z(&path)}, ret, err);
}

/* Tells what is new of one request. Returns false if the server does not answer. */
static bool see_one(struct source *s, struct offer *f)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf seen BUF_CLEANUP = {0};
        struct err err = {""};
        int rc = ask_counts(s, buf_view(&f->request), &answer, &err);

        if (rc == API_REFUSED && answer.status == 404) {
                say_news(s, f, (struct view){0}); /* it ended long ago */
                return true;
        }
        if (rc != 0) {
                server_away(s, err.text);
                return false;
        }
        view_text(view_get(answer.root, "seen"), &seen);
        if (!str_eq(buf_view(&seen), buf_view(&f->seen)))
                say_news(s, f, answer.root);
        buf_reset(&f->seen);
        buf_str(&f->seen, buf_view(&seen));
        return true;
}

/* Tells the program what is new. The counts of all are asked for first, since mostly nothing is. */
static void see(struct source *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf ids BUF_CLEANUP = {0}, seen BUF_CLEANUP = {0};
        struct err err = {""};
        int rc;

        if (clock_boot_ms() < s->see_ms)
                return;
        s->see_ms = clock_boot_ms() + SEE_MS;
        for (size_t i = 0; i < s->count; i++)
                if (s->offers[i].state == OFFER_ACCEPTED)
                        buf_printf(&ids, "%s" STR_FMT, ids.n ? "," : "",
                                   STR_ARG(buf_view(&s->offers[i].request)));
        if (ids.n == 0)
                return;
        rc = ask_counts(s, buf_view(&ids), &answer, &err);
        if (rc != 0 && !(rc == API_REFUSED && answer.status == 404)) {
                server_away(s, err.text);
                return;
        }
        server_there(s);
        view_text(view_get(answer.root, "seen"), &seen);
        if (rc == 0 && str_eq(buf_view(&seen), buf_view(&s->seen)))
                return;
        for (size_t i = 0; i < s->count; i++)
                if (s->offers[i].state == OFFER_ACCEPTED && !see_one(s, &s->offers[i]))
                        return;
        buf_reset(&s->seen);
        buf_str(&s->seen, buf_view(&seen));
}

/* ---- all */

static void catch_signals(void)
{
        struct sigaction stop = {.sa_handler = on_stop}, ignore = {.sa_handler = SIG_IGN};

        sigaction(SIGTERM, &stop, NULL);
        sigaction(SIGINT, &stop, NULL);
        sigaction(SIGPIPE, &ignore, NULL);
}

static void describe_end(const struct source *s, int status)
{
        if (WIFSIGNALED(status))
                cli_error(0, "%s was killed by signal %d", s->o->argv[0], WTERMSIG(status));
        else if (WEXITSTATUS(status))
                cli_error(0, "%s ended with status %d", s->o->argv[0], WEXITSTATUS(status));
}

int source_run(struct cli *cli, const struct source_options *o)
{
        struct source s = {.cli = cli, .o = o, .in = -1, .out = -1, .code = -1, .room = o->most};
        int status;

        s.backoff = BACKOFF(200, 10000);
        s.home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        s.offers = mem_zalloc(o->most * sizeof(*s.offers));
        catch_signals();
        s.code = s.home < 0 ? cli_error(CLI_FAILED, "the current folder: %s", strerror(errno))
                            : source_start(&s);
        if (s.code == 0) {
                s.code = -1;
                say_hello(&s);
        }
        while (s.code < 0 && !stopped) {
                bool more;

                source_write_program(&s);
                more = wait_program(&s);
                if (!more)
                        break;
                if (s.code < 0)
                        submit_next(&s);
                if (s.code < 0)
                        see(&s);
        }
        status = source_end(&s);
        if (s.code < 0 && !stopped)
                describe_end(&s, status);
        for (size_t i = 0; i < s.count; i++)
                offer_deinit(&s.offers[i]);
        free(s.offers);
        buf_deinit(&s.unsent);
        buf_deinit(&s.unread);
        buf_deinit(&s.seen);
        if (s.home >= 0)
                close(s.home);
        return s.code >= 0 ? s.code : stopped || status == 0 ? CLI_OK : CLI_FAILED;
}
