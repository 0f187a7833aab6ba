/* The request's uuid is made before the first try. When no answer comes, the same body is sent again: the
 * server knows the uuid if the first one arrived, and answers with the same request. */
#include "cli/client/submit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "cli/client/catalog_files.h"
#include "cli/client/credential.h"
#include "cli/client/galaxy.h"
#include "cli/client/local.h"
#include "cli/client/preset_limits.h"
#include "cli/client/sizes.h"
#include "cli/client/upload.h"
#include "cli/client/world.h"
#include "jdl/condor/condor.h"
#include "jdl/cwl/cwl.h"
#include "jdl/dag/plan.h"
#include "jdl/rdl/rdl.h"
#include "jdl/stork/stork.h"

#define ITEMS_INLINE    (256u << 10) /* bytes of items in the body; more go ahead as an upload */
#define REPEAT_MS       30000        /* time during which a submit without an answer is repeated */
#define REPEAT_PAUSE_MS 200

void submit_init(struct submit *s, struct cli *cli, const char *file)
{
        *s = (struct submit){.cli = cli, .file = file};
        uuid_new(s->uuid);
        form_init(&s->form);
}

void submit_deinit(struct submit *s)
{
        for (size_t i = 0; s->uploads && i < s->form.part_count; i++)
                free(s->uploads[i]);
        free(s->uploads);
        ship_deinit(&s->ship);
        form_deinit(&s->form);
        dag_files_deinit(&s->dag.files);
        buf_deinit(&s->dag.names);
        sums_told_deinit(&s->sums);
        buf_deinit(&s->body);
        buf_deinit(&s->command);
        buf_deinit(&s->after);
        buf_deinit(&s->policy);
        buf_deinit(&s->plan);
        buf_deinit(&s->queues);
}

int submit_append(struct submit *s, const struct options *o)
{
        const char *line;

        s->lines = s->own_lines;
        for (size_t at = 0; (line = options_list(o, "after", &at));)
                buf_printf(&s->after, "%s%s", s->after.n ? ", " : "depends_on = ", line);
        if (s->after.n)
                s->own_lines[s->line_count++] = buf_z(&s->after);
        for (size_t at = 0; (line = options_list(o, "append", &at));) {
                if (s->line_count >= SUBMIT_LINES_MAX - 1)
                        return cli_error(CLI_USAGE, "--append can be given %d times at most",
                                         SUBMIT_LINES_MAX);
                s->own_lines[s->line_count++] = line;
        }
        return 0;
}

void submit_choose_policy(struct submit *s, const char *name)
{
        if (!name)
                return;
        s->lines = s->own_lines;
        buf_printf(&s->policy, "job_policy = %s", name);
        s->own_lines[s->line_count++] = buf_z(&s->policy);
}

void submit_print(const struct submit *s)
{
        struct buf out BUF_CLEANUP = {0};
        ptrdiff_t queue = str_search(s->text, STR("\nqueue ")) + 1;

        buf_str(&out, str_head(s->text, (size_t)queue));
        for (size_t i = 0; i < s->line_count; i++)
                buf_printf(&out, "%s\n", s->lines[i]);
        buf_str(&out, str_skip(s->text, (size_t)queue));
        cli_print(&out);
}

/* ---- reading */

static int read_description(const char *file, struct buf *ret, struct err *err)
{
        ret->max = CONDOR_TEXT_MAX;
        if (strcmp(file, "-") != 0)
                return fs_read(AT_FDCWD, file, CONDOR_TEXT_MAX, ret, err);
        return world_read_stdin(CONDOR_TEXT_MAX, ret, err);
}

/* The newest of FILE.rescue001 to FILE.rescue999; empty when there is none. */
static int read_rescue(struct submit *s, struct buf *name, struct buf *text, struct err *err)
{
        if (s->rescue) {
                buf_addz(name, s->rescue);
                return fs_read(AT_FDCWD, s->rescue, CONDOR_TEXT_MAX, text, err);
        }
        for (int i = DAG_RESCUE_MAX; i > 0 && !s->no_rescue; i--) {
                buf_reset(name);
                buf_printf(name, DAG_RESCUE_NAME, s->file, i);
                if (access(buf_z(name), F_OK) == 0)
                        return fs_read(AT_FDCWD, buf_z(name), CONDOR_TEXT_MAX, text, err);
        }
        buf_reset(name);
        return 0;
}

/* The files of this request have a folder of their own in the store. */
static int make_plan(struct submit *s, const struct form_world *w, const struct condor_options *o,
                     struct err *err)
{
        const struct dag_plan_options options = {.stage = s->stage,
                                                 .tag = s->uuid,
                                                 .space = s->stage_space,
                                                 .file_size = s->stage_file_size,
                                                 .reserve_s = s->stage_reserve_s,
                                                 .registers = s->stage_registers,
                                                 .condor = o};

        return dag_plan(w, &options, &s->form, &s->plan, err);
}

static int parse_dag(struct submit *s, const struct form_world *w, const struct condor_options *o,
                     struct err *err)
{
        struct buf text BUF_CLEANUP = {0}, name BUF_CLEANUP = {0}, rescue BUF_CLEANUP = {0};
        struct dag_options options = {
                .condor = o, .max_pre = s->max_pre, .max_post = s->max_post, .names = s->names};
        const char *names[1];
        struct str rescues[1];
        int rc = s->text.p ? 0 : fs_read(AT_FDCWD, s->file, FORM_TEXT_MAX, &text, err);

        if (rc == 0)
                rc = read_rescue(s, &name, &rescue, err);
        if (rc == 0 && name.n) {
                names[0] = buf_z(&name);
                rescues[0] = buf_view(&rescue);
                options.rescue_names = names;
                options.rescues = rescues;
                options.rescue_count = 1;
                if (!s->quiet)
                        cli_note("%s says which nodes are done; --no-rescue begins anew", names[0]);
        }
        if (rc == 0)
                rc = dag_parse(w, s->file, s->text.p ? s->text : buf_view(&text), &options, &s->form, &s->dag,
                               err);
        return rc == 0 && s->stage ? make_plan(s, w, options.condor, err) : rc;
}

/* Reads a description of SUMS, or a composite request in RDL. */
static int parse_sums(struct submit *s, struct str text, bool rdl, const struct form_world *w,
                      const struct condor_options *o, struct err *err)
{
        struct buf id BUF_CLEANUP = {0};
        struct sums_job job = {
                .file = s->file, .text = text, .entities = s->entities, .entity_count = s->entity_count};

        s->language = rdl ? SUBMIT_RDL : SUBMIT_SUMS;
        form_request_id(s->uuid, &id);
        job.request_id = buf_z(&id);
        return rdl ? rdl_parse(w, &job, o, &s->form, &s->sums.name, err)
                   : sums_parse(w, &job, o, &s->form, &s->sums, err);
}

static int description_parse(struct submit *s, const struct form_world *w, const struct condor_options *o,
                             struct err *err)
{
        struct buf text BUF_CLEANUP = {0};
        int rc;

        if (s->language == SUBMIT_GALAXY)
                return galaxy_read(w,
                                   &(struct galaxy_submit){.tool = s->file,
                                                           .params = s->params,
                                                           .tables = s->tables,
                                                           .resolve = s->resolve},
                                   o, &s->form, &s->command, err);
        if (s->language == SUBMIT_DAG)
                return parse_dag(s, w, o, err);
        if (s->language == SUBMIT_CWL)
                return cwl_parse(w, &(struct cwl_job){.tool = s->file, .params = s->params}, o, &s->form,
                                 &s->command, err);
        if (s->text.p)
                return condor_parse(w, s->file, s->text, o, &s->form, err);
        rc = read_description(s->file, &text, err);
        if (rc == 0 && (rdl_is(buf_view(&text)) || sums_is(buf_view(&text))))
                return parse_sums(s, buf_view(&text), rdl_is(buf_view(&text)), w, o, err);
        if (rc == 0 && stork_is(buf_view(&text))) {
                struct buf ads BUF_CLEANUP = {0};

                buf_str(&ads, buf_view(&text));
                buf_reset(&text);
                text.max = FORM_TEXT_MAX;
                rc = stork_submit(buf_view(&ads), &text, err);
                if (rc < 0)
                        err_prefix(err, rc, "%s", s->file);
        }
        return rc == 0 ? condor_parse(w, s->file, buf_view(&text), o, &s->form, err) : rc;
}

/* Prints the warnings that were not printed yet. */
static void print_form_warnings(struct submit *s)
{
        for (; s->warned < s->form.warning_count; s->warned++) {
                const struct form_warning *w = &s->form.warnings[s->warned];

                if (s->quiet)
                        continue;
                if (s->text.p)
                        cli_note("%s", w->text);
                else if (w->line)
                        cli_note("%s:%u: %s", s->file, w->line, w->text);
                else
                        cli_note("%s: %s", s->file, w->text);
        }
}

int submit_read(struct submit *s)
{
        char domain[256], host[256] = "";
        struct condor_options options = {.extra = s->lines,
                                         .extra_count = s->line_count,
                                         .first = s->first,
                                         .first_count = s->first_count,
                                         .filesystem_domain = domain,
                                         .submit_host = host};
        struct world w;
        struct err err = {""};
        int rc = world_init(&w, &err);

        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        w.form.arg = s->cli;
        w.form.catalog = catalog_files;
        w.form.time_limit = preset_time_limit;
        fs_domain(domain, sizeof(domain));
        gethostname(host, sizeof(host) - 1);
        rc = description_parse(s, &w.form, &options, &err);
        if (rc == 0)
                local_warn(&s->form, s->language != SUBMIT_CONDOR || s->text.p);
        print_form_warnings(s);
        if (rc != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        form_name_datasets(&s->form, s->uuid, host);
        sizes_fill(&s->form);
        return 0;
}

/* ---- what goes ahead of it */

/* Asks the server whether it takes agents of other machines, if a part leaves the choice to it. */
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
        if (s->language == SUBMIT_CONDOR)
                local_warn_arguments(&s->form, s->text.p, remote);
        print_form_warnings(s);
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

void submit_write_body(struct submit *s)
{
        buf_reset(&s->body);
        form_write_json(&s->body, &s->form,
                        &(struct form_body){.uuid = s->uuid,
                                            .spooled = s->ship.refs,
                                            .spooled_count = s->ship.ref_count,
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

void submit_print_warnings(const struct api_answer *answer)
{
        struct view all = view_get(answer->root, "warnings"), one;

        for (size_t at = 0; view_next(all, &at, &one);) {
                BUF_CLEANUP struct buf text = {0};

                view_text(one, &text);
                cli_note("%s", buf_z(&text));
        }
}

int submit_send(struct submit *s, struct api_answer *ret)
{
        int code = credential_of_form(s->cli, &s->form);

        if (code == 0)
                code = send_files(s);
        if (code == 0)
                code = send_items(s);
        if (code != 0)
                return code;
        submit_write_body(s);
        if (s->body.n > SUBMIT_BODY_MAX)
                return cli_error(CLI_FAILED, "%s: the request is %zu MiB, and the server takes %u", s->file,
                                 s->body.n >> 20, SUBMIT_BODY_MAX >> 20);
        code = post(s, "/v1/requests", ret);
        if (code == 0 && !s->quiet)
                submit_print_warnings(ret);
        return code;
}
