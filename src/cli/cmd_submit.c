/* submit: description -> form -> (files uploaded) -> one POST.
 *
 * The request's uuid is made here, before the first try. When no answer comes, the same body is sent again:
 * the server knows the uuid if the first one arrived, and answers with the same request.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "cli/api.h"
#include "cli/human.h"
#include "cli/ship.h"
#include "cli/upload.h"
#include "cli/wait.h"
#include "cli/world.h"
#include "jdl/condor/condor.h"

#define ITEMS_INLINE    (256u << 10) /* bytes of items in the body; more go ahead as an upload */
#define BODY_MAX        (8u << 20)   /* what the server takes */
#define REPEAT_MS       30000        /* a submit without an answer is repeated for so long */
#define REPEAT_PAUSE_MS 200
#define SHOWN_ROWS      3 /* of the items, by --dry-run */

struct submit {
        struct cli *cli;
        const struct options *o;
        const char *file;
        struct form form;
        struct ship ship;
        char **uploads; /* of the items, by part; NULL entries */
        char uuid[UUID_TEXT];
        struct buf body;
};

/* ---- reading */

static int read_description(const char *file, struct buf *ret, struct err *err)
{
        ret->max = CONDOR_TEXT_MAX;
        if (strcmp(file, "-") != 0)
                return fs_read(AT_FDCWD, file, CONDOR_TEXT_MAX, ret, err);
        for (;;) {
                char *room = buf_room(ret, 16384);
                ssize_t n;

                if (!room)
                        return err_set(err, -EFBIG, "standard input is over %u MiB", CONDOR_TEXT_MAX >> 20);
                n = read(STDIN_FILENO, room, 16384);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return err_set(err, -errno, "standard input: %s", strerror(errno));
                if (n == 0)
                        return 0;
                ret->n += (size_t)n;
        }
}

static int read_form(struct submit *s)
{
        struct buf text BUF_CLEANUP = {0};
        char domain[256], host[256] = "";
        const char *extra[256];
        struct condor_options options = {.extra = extra, .filesystem_domain = domain, .submit_host = host};
        const char *line;
        struct world w;
        struct err err = {""};
        size_t at = 0;
        int rc = read_description(s->file, &text, &err);

        if (rc == 0)
                rc = world_init(&w, &err);
        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        while ((line = options_list(s->o, "append", &at))) {
                if (options.extra_count == sizeof(extra) / sizeof(extra[0]))
                        return cli_error(CLI_USAGE, "too many lines are appended");
                extra[options.extra_count++] = line;
        }
        fs_domain(domain, sizeof(domain));
        gethostname(host, sizeof(host) - 1);
        rc = condor_parse(&w.form, s->file, buf_view(&text), &options, &s->form, &err);
        for (size_t i = 0; i < s->form.warning_count; i++)
                cli_note("%s:%u: %s", s->file, s->form.warnings[i].line, s->form.warnings[i].text);
        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        if (options_flag(s->o, "hold"))
                s->form.hold = true;
        return 0;
}

/* ---- what goes ahead of it */

/* Does the server take agents of other machines? Asked only when a part leaves the choice to it. */
static int ask_server(struct submit *s, bool *ret_remote)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        int code;

        *ret_remote = false;
        if (!ship_asks_server(&s->form))
                return 0;
        code = api_get(s->cli, "/v1/server", &answer);
        *ret_remote = view_true(view_get(answer.root, "remote_agents"));
        return code;
}

static int send_files(struct submit *s)
{
        struct err err = {""};
        bool remote;
        int code = ask_server(s, &remote);

        if (code != 0)
                return code;
        if (ship_collect(&s->ship, &s->form, remote, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        return ship_send(s->cli, &s->ship);
}

static int send_items(struct submit *s)
{
        s->uploads = mem_zalloc((s->form.part_count + 1) * sizeof(*s->uploads));
        for (size_t i = 0; i < s->form.part_count; i++) {
                struct form_part *p = &s->form.parts[i];
                struct upload upload;
                int code;

                if (p->variable_count == 0 || p->items.n <= ITEMS_INLINE)
                        continue;
                code = upload_bytes(s->cli, buf_view(&p->items), "items", &upload);
                if (code != 0)
                        return code;
                s->uploads[i] = mem_dupz(upload.id);
        }
        return 0;
}

static void write_body(struct submit *s)
{
        buf_reset(&s->body);
        form_write_json(&s->body, &s->form,
                        &(struct form_body){.uuid = s->uuid,
                                            .spooled = s->ship.refs,
                                            .spooled_count = s->ship.refs ? s->ship.count : 0,
                                            .items_uploads = (const char *const *)s->uploads});
}

/* ---- submitting */

static int post(struct submit *s, const char *path, struct api_answer *answer)
{
        struct api_request r = {.method = "POST", .path = path, .body = buf_view(&s->body)};
        int64_t until_ms = 0;
        struct err err = {""};
        int rc;

        for (;;) {
                rc = api_call(s->cli, &r, answer, &err);
                if (rc == 0)
                        return 0;
                /* Once one has been lost, a server that isn't there may be one that is being started again.
                 */
                if (rc == API_LOST && until_ms == 0) {
                        cli_note("%s; trying again", err.text);
                        until_ms = clock_boot_ms() + REPEAT_MS;
                } else if (rc == API_REFUSED || rc == API_BROKEN || until_ms == 0) {
                        return cli_error(CLI_FAILED, "%s", err.text);
                }
                if (clock_boot_ms() >= until_ms)
                        return cli_error(CLI_FAILED, "%s; it is not known whether request %s was accepted",
                                         err.text, s->uuid);
                api_close(s->cli);
                api_answer_deinit(answer);
                poll(NULL, 0, REPEAT_PAUSE_MS);
        }
}

static int submit(struct submit *s)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0}, id BUF_CLEANUP = {0};
        int code = send_files(s);

        if (code == 0)
                code = send_items(s);
        if (code != 0)
                return code;
        write_body(s);
        if (s->body.n > BODY_MAX)
                return cli_error(CLI_FAILED, "%s: the request is %zu MiB, and the server takes %u", s->file,
                                 s->body.n >> 20, BODY_MAX >> 20);
        code = post(s, "/v1/requests", &answer);
        if (code != 0)
                return code;
        view_text(view_get(answer.root, "id"), &id);
        if (s->cli->json) {
                buf_str(&out, answer.root.text);
        } else {
                buf_printf(&out, "request %s: ", buf_z(&id));
                human_count(&out, view_integer(view_get(answer.root, "jobs"), 0), "job", "jobs");
        }
        buf_char(&out, '\n');
        cli_print(&out);
        if (!options_flag(s->o, "wait"))
                return CLI_OK;
        return wait_for_jobs(s->cli, &(struct wait){.ids = buf_z(&id),
                                                    .timeout_s = options_number(s->o, "timeout", -1),
                                                    .quiet = s->cli->json});
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
        for (size_t i = 0; i < s->ship.count; i++)
                buf_printf(out, "%s  %s as %s\n", i ? "" : "\nfiles that would be sent:\n",
                           s->ship.files[i].path, s->ship.files[i].name);
}

/* Without a server the file is checked all the same; with one it has its say too. */
static int dry_run(struct submit *s)
{
        struct api_answer about API_ANSWER_CLEANUP = {0}, answer API_ANSWER_CLEANUP = {0};
        struct buf out BUF_CLEANUP = {0};
        struct err err = {""};
        int server = api_call(s->cli, &(struct api_request){.path = "/v1/server"}, &about, NULL), rc = 0;

        if (ship_collect(&s->ship, &s->form, view_true(view_get(about.root, "remote_agents")), &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        write_body(s);
        if (server == 0 && s->body.n <= BODY_MAX)
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
        }
        cli_print(&out);
        if (server != 0 && !s->cli->json)
                cli_note("no server has looked at it, for none answers");
        return CLI_OK;
}

int cmd_submit(struct cli *cli, const struct options *o)
{
        struct submit s = {.cli = cli, .o = o, .file = o->words[0]};
        int code;

        if (options_text(o, "timeout") && !options_flag(o, "wait"))
                return cli_error(CLI_USAGE, "--timeout goes with --wait");
        uuid_new(s.uuid);
        form_init(&s.form);
        code = read_form(&s);
        if (code == 0)
                code = options_flag(o, "dry-run") ? dry_run(&s) : submit(&s);
        for (size_t i = 0; s.uploads && i < s.form.part_count; i++)
                free(s.uploads[i]);
        free(s.uploads);
        ship_deinit(&s.ship);
        form_deinit(&s.form);
        buf_deinit(&s.body);
        return code;
}
