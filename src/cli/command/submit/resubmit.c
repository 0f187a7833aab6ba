/* resubmit: POST /v1/requests/ID/resubmit, for each request named. */
#include "base/format/json.h"
#include "base/system/uuid.h"
#include "cli/client/api.h"
#include "cli/client/edit.h"
#include "cli/client/ids.h"
#include "cli/client/session_file.h"
#include "cli/client/submit.h"
#include "cli/command/commands.h"
#include "cli/terminal/human.h"

static int read_appended(const struct options *o, struct edit *e)
{
        const char *assignments[128], *text;
        struct err err = {""};
        size_t at = 0, n = 0;

        while ((text = options_list(o, "append", &at)) && n < sizeof(assignments) / sizeof(assignments[0])) {
                if (!strchr(text, '='))
                        return cli_error(CLI_USAGE, "\"%s\" is no NAME=VALUE", text);
                assignments[n++] = text;
        }
        if (text)
                return cli_error(CLI_USAGE, "too many lines are appended");
        if (n && edit_read(assignments, n, EDIT_SUBMIT, e, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        return 0;
}

static void write_body(const struct options *o, const struct id *id, const struct edit *e, struct buf *body)
{
        struct json j = {.out = body};
        char uuid[UUID_TEXT];

        uuid_new(uuid);
        json_open(&j, '{');
        json_kstrz(&j, "uuid", uuid);
        json_kbool(&j, "failed", options_flag(o, "failed"));
        json_kbool(&j, "hold", options_flag(o, "hold"));
        if (!id->whole) {
                struct buf members BUF_CLEANUP = {0};

                buf_printf(&members, "%llu-%llu", (unsigned long long)id->first,
                           (unsigned long long)id->last);
                json_kstr(&j, "members", buf_view(&members));
        }
        if (e->count) {
                buf_char(body, ',');
                buf_str(body, buf_view(&e->members));
        }
        json_close(&j, '}');
}

/* Adds the new request to the session. */
static int add_to_session(const char *path, const struct api_answer *answer)
{
        struct session_file s SESSION_FILE_CLEANUP = {0};
        int code = session_file_read(path, &s);

        if (code != 0)
                return code;
        session_file_add(&s, answer);
        return session_file_write(path, &s);
}

/* Held jobs have not failed: somebody who asks for the failed ones may not know of them. */
static void tell_of_held(struct cli *cli, uint64_t request)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, count BUF_CLEANUP = {0};
        int64_t held;

        buf_printf(&path, "/v1/requests/%llu", (unsigned long long)request);
        if (api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, NULL) != 0)
                return;
        held = view_integer(view_get(answer.root, "held"), 0);
        if (held == 0)
                return;
        human_count(&count, held, "job", "jobs");
        cli_note("%s of request %llu %s held, and not submitted again: `drover why %llu` says why, `drover "
                 "release %llu` lets %s run",
                 buf_z(&count), (unsigned long long)request, held == 1 ? "is" : "are",
                 (unsigned long long)request, (unsigned long long)request, held == 1 ? "it" : "them");
}

int cmd_resubmit(struct cli *cli, const struct options *o)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, body BUF_CLEANUP = {0}, out BUF_CLEANUP = {0};
        struct edit e = {0};
        struct err err = {""};
        struct id id;
        int code;

        if (id_parse(str_of(o->words[0]), &id, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        code = read_appended(o, &e);
        if (code == 0) {
                write_body(o, &id, &e, &body);
                buf_printf(&path, "/v1/requests/%llu/resubmit", (unsigned long long)id.request);
                code = api_post(cli, buf_z(&path), buf_view(&body), &answer);
                if (options_flag(o, "failed") && id.whole)
                        tell_of_held(cli, id.request);
        }
        edit_deinit(&e);
        if (code == 0 && options_text(o, "session"))
                code = add_to_session(options_text(o, "session"), &answer);
        if (code != 0 || api_print_json(cli, &answer))
                return code;
        submit_print_warnings(&answer);
        buf_addz(&out, "request ");
        view_text(view_get(answer.root, "id"), &out);
        buf_addz(&out, ": ");
        view_text(view_get(answer.root, "jobs"), &out);
        buf_addz(&out, view_integer(view_get(answer.root, "jobs"), 0) == 1 ? " job\n" : " jobs\n");
        cli_print(&out);
        return CLI_OK;
}
