#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client/agent.h"
#include "cli/client/one_line.h"
#include "cli/client/queue_choice.h"
#include "cli/client/session_report.h"
#include "cli/client/submit.h"
#include "cli/client/sums_files.h"
#include "cli/command/commands.h"
#include "cli/command/jobs/wait.h"
#include "cli/command/submit/policies.h"
#include "cli/terminal/human.h"

#define SHOWN_ROWS 3 /* rows of the items shown by --dry-run */

/* Tries a description of SUMS without submitting. */
static int simulate(struct submit *s)
{
        struct buf out BUF_CLEANUP = {0};
        int code = sums_files_write(s, 0);

        if (code != 0)
                return code;
        if (s->cli->json) {
                submit_write_body(s);
                buf_str(&out, buf_view(&s->body));
        } else {
                human_count(&out, (int64_t)form_members(&s->form), "job", "jobs");
                buf_addz(&out, " simulated, none submitted; see ");
                sums_files_report(s, &out);
        }
        buf_char(&out, '\n');
        cli_print(&out);
        return CLI_OK;
}

/* Returns whether the submit leaves a report and a session file. */
static bool leaves_files(const struct submit *s, const struct options *o)
{
        return s->language == SUBMIT_SUMS || s->language == SUBMIT_RDL || options_text(o, "session");
}

/* Writes the report and the session file. The request exists even if they cannot be written. */
static void leave_files(struct submit *s, const struct options *o, const struct api_answer *answer,
                        struct buf *ret_session)
{
        const char *session = options_text(o, "session");
        struct buf report BUF_CLEANUP = {0};

        sums_files_write(s, view_integer(view_get(answer->root, "id"), 0));
        sums_files_report(s, &report);
        if (session)
                buf_addz(ret_session, session);
        else
                sums_files_session(s, ret_session);
        session_file_leave(s->cli, buf_z(ret_session), answer, s->file, buf_z(&report));
}

static int submit_checked(struct submit *s, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0}, id BUF_CLEANUP = {0}, session BUF_CLEANUP = {0};
        struct wait_session noted;
        int code;

        if (leaves_files(s, o))
                queue_choice_ask(s, &s->queues);
        code = s->sums.simulate ? simulate(s) : submit_send(s, &answer);
        if (code != 0 || s->sums.simulate)
                return code;
        if (leaves_files(s, o))
                leave_files(s, o, &answer, &session);
        view_text(view_get(answer.root, "id"), &id);
        if (s->cli->json) {
                buf_str(&out, answer.root.text);
        } else {
                buf_printf(&out, "request %s: ", buf_z(&id));
                human_count(&out, view_integer(view_get(answer.root, "jobs"), 0), "job", "jobs");
        }
        buf_char(&out, '\n');
        cli_print(&out);
        if (!options_flag(o, "wait"))
                return CLI_OK;
        noted = (struct wait_session){s->cli, session.n ? buf_z(&session) : NULL, 0};
        code = wait_for_jobs(s->cli, &(struct wait){.ids = buf_z(&id),
                                                    .timeout_s = options_number(o, "timeout", -1),
                                                    .changed = wait_note_session,
                                                    .arg = &noted,
                                                    .quiet = s->cli->json});
        if (session.n)
                session_report_keep(s->cli, buf_z(&session));
        return code;
}

/* ---- --dry-run */

static void show_items(const struct form_part *p, struct buf *out)
{
        struct str items = buf_view(&p->items), row, value;

        buf_addz(out, "  items");
        for (size_t i = 0; i < p->variable_count; i++)
                buf_printf(out, "%s %s", i ? "," : "", p->variables[i]);
        buf_char(out, '\n');
        for (uint64_t r = 0; r < p->rows && r < SHOWN_ROWS && str_cut(&items, '\n', &row); r++) {
                bool first = true;

                buf_addz(out, "    ");
                while (str_cut(&row, '\x1f', &value)) {
                        buf_addz(out, first ? "" : ", ");
                        human_safe(out, value);
                        first = false;
                }
                buf_char(out, '\n');
        }
        if (p->rows > SHOWN_ROWS)
                buf_printf(out, "    and %llu more\n", (unsigned long long)(p->rows - SHOWN_ROWS));
}

static void show_form(const struct submit *s, struct buf *out)
{
        const struct form *f = &s->form;

        human_count(out, (int64_t)form_members(f), "job", "jobs");
        buf_printf(out, " would be submitted%s\n", f->hold ? ", held" : "");
        if (f->notes.n)
                buf_printf(out, "\n" STR_FMT, STR_ARG(buf_view(&f->notes)));
        for (size_t i = 0; i < f->part_count; i++) {
                const struct form_part *p = &f->parts[i];

                buf_printf(out, "\nqueue at line %u: ", p->line);
                human_count(out, (int64_t)(p->rows * p->steps), "job", "jobs");
                buf_char(out, '\n');
                for (size_t a = 0; a < p->attribute_count; a++) {
                        buf_printf(out, "  %s = ", p->attributes[a].name);
                        human_safe(out, str_of(p->attributes[a].text));
                        buf_char(out, '\n');
                }
                if (p->variable_count)
                        show_items(p, out);
        }
        if (s->command.n)
                buf_printf(out, "\ncommand (@box@ is the job's folder):\n" STR_FMT "\n",
                           STR_ARG(str_trim(buf_view(&s->command))));
        for (size_t i = 0, n = 0; i < s->ship.count; i++)
                if (!s->ship.files[i].text.p)
                        buf_printf(out, "%s  %s as %s\n", n++ ? "" : "\nfiles that would be sent:\n",
                                   s->ship.files[i].path, s->ship.files[i].name);
}

/* Prints where each placement policy would send the first job; nothing if the server makes no quote for it.
 */
static void show_policies(struct submit *s, struct buf *out)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct err err = {""};

        if (s->body.n <= SUBMIT_BODY_MAX &&
            api_call(s->cli,
                     &(struct api_request){.method = "POST", .path = "/v1/quote", .body = buf_view(&s->body)},
                     &answer, &err) == 0)
                policies_show(answer.root, out);
}

/* Checks the file without a server, and has the server check it too if there is one. */
static int dry_run(struct submit *s)
{
        struct api_answer about API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};
        int server = api_call(s->cli, &(struct api_request){.path = "/v1/server"}, &about, NULL), rc = 0;

        if (ship_collect(&s->ship, &s->form, view_true(view_get(about.root, "remote_agents")), &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        submit_write_body(s);
        if (server == 0 && s->body.n <= SUBMIT_BODY_MAX)
                rc = api_call(s->cli,
                              &(struct api_request){.method = "POST",
                                                    .path = "/v1/requests?dry_run=1",
                                                    .body = buf_view(&s->body)},
                              &answer, &err);
        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (s->cli->json) {
                buf_str(&out, buf_view(&s->body));
                buf_char(&out, '\n');
        } else {
                show_form(s, &out);
                if (server == 0)
                        show_policies(s, &out);
        }
        cli_print(&out);
        if (server != 0 && !s->cli->json)
                cli_note("no server has checked it, because none answers");
        return CLI_OK;
}

/* Chooses the language of FILE, and what else is sent with it. */
static int choose_language(struct submit *s, const struct options *o)
{
        static const char *const ways[] = {"any", "container", "conda", "none"};
        const char *resolve = options_text(o, "resolve");
        bool galaxy = options_flag(o, "galaxy"), cwl = options_flag(o, "cwl");
        size_t i = 0;

        s->params = options_text(o, "params");
        if (galaxy && cwl)
                return cli_error(CLI_USAGE, "FILE is one of --galaxy and --cwl");
        s->tables = options_text(o, "tables");
        if (!galaxy && (resolve || s->tables || (s->params && !cwl)))
                return cli_error(
                        CLI_USAGE,
                        "--params goes with --galaxy or --cwl, --tables and --resolve with --galaxy");
        s->language = galaxy ? SUBMIT_GALAXY : cwl ? SUBMIT_CWL : SUBMIT_CONDOR;
        while (resolve && i < 4 && strcmp(ways[i], resolve) != 0)
                i++;
        if (i == 4)
                return cli_error(CLI_USAGE, "--resolve is container, conda or none");
        s->resolve = ways[i];
        return 0;
}

/* Reads the beginning of a regular file as text; "" if it is not one. Returns its mode. */
static mode_t read_head(const char *file, char head[static 4096])
{
        struct stat st = {0};
        ssize_t n = 0;
        int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

        if (fd >= 0) {
                if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
                        n = read(fd, head, 4095);
                close(fd);
        }
        head[n > 0 ? n : 0] = '\0';
        return st.st_mode;
}

/* Refuses a program or a script in place of a submit file. A script whose interpreter is condor_submit or
 * similar is a submit file. */
static int check_file(const char *file)
{
        static const struct {
                const char *ending, *program;
        } languages[] = {
                {".py", "python3"}, {".sh", "sh"}, {".R", "Rscript"}, {".pl", "perl"}, {".jl", "julia"}};
        char head[4096];
        mode_t mode = read_head(file, head);
        const char *slash = strchr(file, '/') ? "" : "./",
                   *sbatch = strstr(head, "\n#SBATCH")
                                     ? "; its #SBATCH lines are for sbatch, see drover-slurm(7)"
                                     : "";
        struct str rest = str_of(head), line;
        bool described = strcasestr(head, "\nqueue") != NULL; /* a submit file, whatever its name */

        if (!described && str_ends(str_of(file), STR(".dag")))
                return cli_error(CLI_USAGE, "%s is a graph of jobs: drover dag submit %s", file, file);
        if (strncmp(head, "\177ELF", 4) == 0 || (strncmp(head, "#!", 2) == 0 && (mode & 0111)))
                return cli_error(CLI_USAGE, "%s is not a submit file; use `drover submit -- %s%s`%s", file,
                                 slash, file, sbatch);
        described |= strncmp(head, "#!", 2) == 0;
        for (size_t i = 0; i < sizeof(languages) / sizeof(languages[0]) && !described; i++)
                if (str_ends(str_of(file), str_of(languages[i].ending)))
                        return cli_error(CLI_USAGE, "%s is not a submit file; use `drover submit -- %s %s`",
                                         file, languages[i].program, file);
        if (!str_cut(&rest, '\n', &line) || !str_starts(line, STR("#!")))
                return 0;
        line = str_trim(str_skip(line, 2));
        if (!*sbatch && !str_ends(line, STR("sh")) && str_search(line, STR("python")) < 0 &&
            str_search(line, STR("perl")) < 0)
                return 0;
        return cli_error(CLI_USAGE,
                         "%s is a script, not a submit file; use `drover submit -- " STR_FMT " %s`%s", file,
                         STR_ARG(line), file, sbatch);
}

/* Finds out whether a submit file or a command was given. */
static int check_words(const struct options *o)
{
        const char *option = one_line_option(o);

        if (o->ended && (options_flag(o, "galaxy") || options_flag(o, "cwl")))
                return cli_error(CLI_USAGE, "--galaxy and --cwl take a FILE, not -- COMMAND");
        if (!o->ended && o->word_count > 1 && options_text(o, "each"))
                return cli_error(CLI_USAGE,
                                 "unexpected argument \"%s\": quote the pattern, as in --each '*.csv' -- "
                                 "COMMAND",
                                 o->words[0]);
        if (!o->ended && o->word_count > 1 && access(o->words[0], F_OK) != 0)
                return cli_error(CLI_USAGE,
                                 "%s is not a submit file; to run a command, use `drover submit [OPTIONS] "
                                 "-- COMMAND ARG...`",
                                 o->words[0]);
        if (!o->ended && o->word_count > 1)
                return cli_error(CLI_USAGE, "unexpected argument \"%s\": give one FILE, or -- COMMAND ARG...",
                                 o->words[1]);
        if (!o->ended && o->word_count && access(o->words[0], F_OK) != 0 && one_line_is_command(o->words[0]))
                return cli_error(CLI_USAGE, "%s is not a submit file; use `drover submit -- %s`", o->words[0],
                                 o->words[0]);
        if (!o->ended && o->word_count && !options_flag(o, "cwl") && !options_flag(o, "galaxy") &&
            check_file(o->words[0]) != 0)
                return CLI_USAGE;
        if (!o->ended && (option || options_flag(o, "print")))
                return cli_error(CLI_USAGE, "--%s goes with -- COMMAND; with a FILE use -a 'ATTR = VALUE'",
                                 option ? option : "print");
        return 0;
}

int cmd_submit(struct cli *cli, const struct options *o)
{
        struct buf text BUF_CLEANUP = {0};
        struct err err = {""};
        struct submit s;
        int code;

        if (options_text(o, "timeout") && !options_flag(o, "wait"))
                return cli_error(CLI_USAGE, "--timeout goes with --wait");
        code = check_words(o);
        if (code != 0)
                return code;
        if (o->ended && one_line_write(o, NULL, &text, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        submit_init(&s, cli, o->ended ? "--" : o->words[0]);
        if (o->ended)
                s.text = buf_view(&text);
        code = submit_append(&s, o);
        submit_choose_policy(&s, options_text(o, "policy"));
        if (code == 0 && options_text(o, "queue") && !options_flag(o, "print"))
                agent_check_queue(cli, options_text(o, "queue"));
        if (code == 0)
                code = choose_language(&s, o);
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
                code = options_flag(o, "dry-run") ? dry_run(&s) : submit_checked(&s, o);
        submit_deinit(&s);
        return code;
}
