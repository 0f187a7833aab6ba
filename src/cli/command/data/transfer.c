/* drover transfer: placement jobs without a submit file. The arguments become a submit description
 * (universe = data). For a single job that is waited for, the progress that its mover prints on standard
 * output is shown. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/jobs.h"
#include "cli/client/output.h"
#include "cli/client/submit.h"
#include "cli/client/world.h"
#include "cli/command/commands.h"
#include "cli/command/jobs/wait.h"
#include "cli/terminal/human.h"
#include "jdl/condor/condor.h"
#include "jdl/form/placement_words.h"
#include "jdl/script/script.h"

#define ASK_MS   1000
#define AWAY_MS  500
#define LINE_MS  10000 /* between two lines of progress, if stderr is not a terminal */
#define RATE_MIN 500   /* milliseconds, at least, over which a rate is computed */

/* ---- the description */

static bool is_url(struct str s)
{
        return str_search(s, STR("://")) > 0;
}

/* Escapes characters that would end a word of a list or begin a macro, as in URLs. */
static void escape(struct buf *out, struct str text, const char *these)
{
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] <= ' ' || strchr(these, text.p[i]))
                        buf_printf(out, "%%%02X", (unsigned char)text.p[i]);
                else
                        buf_char(out, text.p[i]);
}

static int add_url(struct buf *out, struct str word)
{
        char cwd[4096];

        if (is_url(word)) {
                escape(out, word, ",$()");
                return 0;
        }
        buf_addz(out, "file://");
        if (!str_starts(word, STR("/"))) {
                if (!getcwd(cwd, sizeof(cwd)))
                        return cli_error(CLI_FAILED, "the current folder has no path: %s", strerror(errno));
                escape(out, str_of(cwd), ",$()%#?");
                buf_char(out, '/');
        }
        escape(out, word, ",$()%#?");
        return 0;
}

struct rows {
        struct buf text; /* "SRC DEST" lines */
        size_t count;
};

static int add_row(struct rows *r, struct str src, struct str dest)
{
        int code = add_url(&r->text, src);

        if (code == 0 && dest.n) {
                buf_char(&r->text, ' ');
                code = add_url(&r->text, dest);
        }
        buf_char(&r->text, '\n');
        r->count++;
        return code;
}

/* Reads lines of a file: SRC DEST, or SRC for the given folder. */
static int add_list(struct rows *r, const char *file, const char *folder, bool copies)
{
        struct buf text BUF_CLEANUP = {.max = CONDOR_TEXT_MAX};
        struct err err = {""};
        struct str rest, line;
        size_t number = 0;
        int rc = strcmp(file, "-") != 0 ? fs_read(AT_FDCWD, file, CONDOR_TEXT_MAX, &text, &err)
                                        : world_read_stdin(CONDOR_TEXT_MAX, &text, &err);

        if (rc < 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        for (rest = buf_view(&text); str_cut(&rest, '\n', &line);) {
                struct str src, dest = STR_NONE;

                number++;
                line = str_trim(line);
                if (line.n == 0 || line.p[0] == '#')
                        continue;
                str_word(&line, &src);
                str_word(&line, &dest);
                if (str_trim(line).n || (copies && !dest.n && !folder) || (!copies && dest.n))
                        return cli_error(CLI_USAGE, "%s:%zu: a line is %s", file, number,
                                         copies ? "SRC DEST, or SRC when DEST is given" : "a URL");
                rc = add_row(r, src, dest.n ? dest : str_of(copies && folder ? folder : ""));
                if (rc != 0)
                        return rc;
        }
        return r->count ? 0 : cli_error(CLI_USAGE, "%s names no files", file);
}

static int read_words(const struct options *o, bool copies, struct rows *r)
{
        const char *list = options_text(o, "list");
        size_t last = o->word_count;
        const char *dest = copies && last > 0 ? o->words[--last] : NULL;
        int code = 0;

        if (list)
                return o->word_count > (copies ? 1 : 0)
                               ? cli_error(CLI_USAGE, "with --list give %s", copies ? "DEST only" : "no URL")
                               : add_list(r, list, dest, copies);
        if (last == 0)
                return cli_error(CLI_USAGE, copies ? "give SRC and DEST" : "give a URL");
        if (last > 1 && copies && !str_ends(str_of(dest), STR("/")))
                return cli_error(
                        CLI_USAGE,
                        "several files go into a folder: write a slash at the end of %s, if it is one", dest);
        for (size_t i = 0; i < last && code == 0; i++)
                code = add_row(r, str_of(o->words[i]), str_of(dest ? dest : ""));
        return code;
}

static void line(struct buf *out, const char *keyword, const char *value)
{
        if (!value)
                return;
        buf_printf(out, "%s = ", keyword);
        script_value(out, str_of(value));
        buf_char(out, '\n');
}

static int describe(const struct options *o, struct buf *out)
{
        static const char *const same[][2] = {
                {"type", "dap_type"},           {"checksum", "checksum"},
                {"alt", "alt_protocols"},       {"max-retry", "max_retry"},
                {"restart-in", "restart_in"},   {"give-up-after", "give_up_after"},
                {"third-party", "third_party"}, {"credential", "credentials"},
                {"lot", "reserve_id"},          {"duration", "duration"}};
        const char *type =
                placement_type(str_of(options_text(o, "type") ? options_text(o, "type") : "transfer"));
        bool copies = type && !strcmp(type, "transfer");
        struct rows rows = {.text = {.max = FORM_TEXT_MAX}};
        int code;

        if (!type)
                return cli_error(CLI_USAGE,
                                 "--type is transfer, rm, mkdir, stage, verify, reserve or release");
        code = read_words(o, copies, &rows);
        if (code == 0) {
                buf_addz(out, "universe = data\n");
                for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
                        line(out, same[i][1], options_text(o, same[i][0]));
                line(out, type && !strcmp(type, "reserve") ? "reserve_size" : "transfer_output_size",
                     options_text(o, "size"));
                if (options_flag(o, "verify"))
                        line(out, "verify_copy", "read");
                line(out, "batch_name", options_text(o, "name"));
                buf_printf(out, "src_url = $(src)\n%s\nqueue src%s from (\n" STR_FMT ")\n",
                           copies ? "dest_url = $(dest)" : "", copies ? ", dest" : "",
                           STR_ARG(buf_view(&rows.text)));
        }
        buf_deinit(&rows.text);
        return code;
}

/* ---- waiting for one job */

struct watching {
        struct cli *cli;
        struct output o;
        struct buf line;      /* the last complete line of its standard output */
        struct buf part;      /* the incomplete line after it */
        struct buf complaint; /* its standard error */
        int64_t began_ms, began_bytes, told_ms;
        bool live, drawn;
};

static void watching_deinit(struct watching *w)
{
        output_deinit(&w->o);
        buf_deinit(&w->line);
        buf_deinit(&w->part);
        buf_deinit(&w->complaint);
}

static void take_lines(struct watching *w)
{
        struct str rest, one;

        buf_str(&w->part, buf_view(&w->o.bytes[OUTPUT_STDOUT]));
        for (rest = buf_view(&w->part); str_find(rest, '\n') >= 0;) {
                str_cut(&rest, '\n', &one);
                buf_reset(&w->line);
                buf_str(&w->line, one);
        }
        struct buf left = {0};
        buf_str(&left, rest);
        buf_deinit(&w->part);
        w->part = left;
        if (w->o.again)
                buf_reset(&w->complaint);
        if (w->complaint.n < OUTPUT_LAST_MAX)
                buf_str(&w->complaint, buf_view(&w->o.bytes[OUTPUT_STDERR]));
}

/* "120M of 2.0G, 85M/s, 22s left" */
static void progress_text(struct watching *w, struct buf *out)
{
        struct view v = view_of(buf_view(&w->line));
        int64_t bytes = view_integer(view_get(v, "bytes"), -1), size = view_integer(view_get(v, "size"), -1);
        int64_t files = view_integer(view_get(v, "files_all"), 0), now = clock_boot_ms();

        if (bytes < 0) {
                buf_printf(out, "%s", strcmp(w->o.state, "idle") == 0 ? "waits for a mover" : w->o.state);
                return;
        }
        if (!w->began_ms || bytes < w->began_bytes) {
                w->began_ms = now;
                w->began_bytes = bytes;
        }
        human_bytes(out, bytes);
        if (size >= 0 && files <= 1) {
                buf_addz(out, " of ");
                human_bytes(out, size);
        } else if (files > 1) {
                buf_printf(out, ", %lld of %lld files", (long long)view_integer(view_get(v, "files"), 0),
                           (long long)files);
        }
        if (now - w->began_ms < RATE_MIN || bytes <= w->began_bytes)
                return;
        int64_t rate = (bytes - w->began_bytes) * 1000 / (now - w->began_ms);
        buf_addz(out, ", ");
        human_bytes(out, rate);
        buf_addz(out, "/s");
        if (size > bytes && files <= 1 && rate > 0) {
                buf_addz(out, ", ");
                human_duration(out, (size - bytes) * 1000 / rate);
                buf_addz(out, " left");
        }
}

static void show_progress(struct watching *w)
{
        struct buf text BUF_CLEANUP = {0};
        int64_t now = clock_boot_ms();

        if (w->cli->json || (!w->live && now - w->told_ms < LINE_MS))
                return;
        progress_text(w, &text);
        w->told_ms = now;
        if (w->live)
                fprintf(stderr, "\r%s\033[K", buf_z(&text));
        else
                fprintf(stderr, "%s\n", buf_z(&text));
        fflush(stderr);
        w->drawn = w->live;
}

static int tell_end(struct watching *w)
{
        struct buf text BUF_CLEANUP = {0};
        struct view v = view_of(buf_view(&w->line));
        bool ok = w->o.exit_code == 0;
        int64_t bytes = view_integer(view_get(v, "bytes"), 0), took = view_integer(view_get(v, "took_ms"), 0);

        if (w->drawn)
                fputs("\r\033[K", stderr);
        if (w->cli->json) {
                buf_printf(&text, "{\"job\":\"%s\",\"ok\":%s,\"exit_code\":%d,\"report\":" STR_FMT "}\n",
                           w->o.job, ok ? "true" : "false", w->o.exit_code,
                           STR_ARG(view_true(view_get(v, "ok")) || view_there(view_get(v, "tries"))
                                           ? buf_view(&w->line)
                                           : STR("null")));
        } else if (ok) {
                human_bytes(&text, bytes);
                buf_addz(&text, " in ");
                human_duration(&text, took);
                if (took > 0) {
                        buf_addz(&text, ", ");
                        human_bytes(&text, bytes * 1000 / took);
                        buf_addz(&text, "/s");
                }
                if (view_true(view_get(v, "third_party")))
                        buf_addz(&text, ", from server to server");
                buf_char(&text, '\n');
        }
        cli_print(&text);
        if (ok)
                return CLI_OK;
        struct str why = str_trim(output_last_lines(buf_view(&w->complaint), 1));
        if (str_starts(why, STR("drover-mover: ")))
                why = str_skip(why, sizeof("drover-mover: ") - 1);
        buf_reset(&text);
        human_safe(&text, why);
        return cli_error(CLI_FAILED, "job %s %s%s%s", w->o.job,
                         !strcmp(w->o.state, "removed") ? "was removed" : "failed", text.n ? ": " : "",
                         buf_z(&text));
}

static int watch(struct cli *cli, const char *job, int64_t timeout_s)
{
        __attribute__((cleanup(watching_deinit))) struct watching w = {.cli = cli,
                                                                       .o = {.job = job},
                                                                       .live = isatty(STDERR_FILENO) == 1,
                                                                       .told_ms = clock_boot_ms()};
        int64_t until = timeout_s < 0 ? INT64_MAX : clock_boot_ms() + timeout_s * 1000;
        bool away = false;

        for (;;) {
                struct err err = {""};
                int code = CLI_FAILED, rc = output_next(cli, &w.o, ASK_MS, &err, &code);

                if (rc == API_NO_SERVER || rc == API_LOST || (rc == API_REFUSED && code != CLI_USAGE)) {
                        if (!away)
                                cli_note("the server went away; waiting for it to come back");
                        away = true;
                        api_close(cli);
                        poll(NULL, 0, AWAY_MS);
                } else if (rc != 0) {
                        return cli_error(code, "%s", err.text);
                } else {
                        away = false;
                        take_lines(&w);
                        if (w.o.ended)
                                return tell_end(&w);
                        if (strcmp(w.o.state, "held") == 0) /* the message gives the reason */
                                return wait_for_jobs(cli, &(struct wait){.ids = job, .timeout_s = 0});
                        show_progress(&w);
                }
                if (clock_boot_ms() > until) {
                        if (w.drawn)
                                fputc('\n', stderr);
                        return cli_error(CLI_TIMEOUT, "job %s goes on; drover wait %s waits for it", job,
                                         job);
                }
        }
}

/* ---- the command */

int cmd_transfer(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf text BUF_CLEANUP = {.max = FORM_TEXT_MAX}, id BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct submit s;
        int code;

        if (options_text(o, "timeout") && !options_flag(o, "wait"))
                return cli_error(CLI_USAGE, "--timeout goes with --wait");
        code = describe(o, &text);
        if (code != 0)
                return code;
        submit_init(&s, cli, "transfer");
        s.text = buf_view(&text);
        code = submit_append(&s, o);
        if (code == 0 && options_flag(o, "print")) {
                submit_print(&s);
                submit_deinit(&s);
                return CLI_OK;
        }
        if (code == 0)
                code = submit_read(&s);
        if (code == 0 && options_flag(o, "hold"))
                s.form.hold = true;
        if (code == 0)
                code = submit_send(&s, &answer);
        submit_deinit(&s);
        if (code != 0)
                return code;
        int64_t jobs = view_integer(view_get(answer.root, "jobs"), 0);
        bool waits = options_flag(o, "wait");
        view_text(view_get(answer.root, "id"), &id);
        if (cli->json && !(waits && jobs == 1)) {
                buf_str(&out, answer.root.text);
                buf_char(&out, '\n');
        } else if (!cli->json) {
                buf_printf(&out, "request %s: ", buf_z(&id));
                human_count(&out, jobs, "placement job", "placement jobs");
                buf_char(&out, '\n');
        }
        cli_print(&out);
        fflush(stdout);
        if (!waits)
                return CLI_OK;
        if (jobs == 1) {
                buf_addz(&id, ".0");
                return watch(cli, buf_z(&id), options_number(o, "timeout", -1));
        }
        return wait_for_jobs(cli, &(struct wait){.ids = buf_z(&id),
                                                 .timeout_s = options_number(o, "timeout", -1),
                                                 .quiet = cli->json});
}
