#include "cli/client/session_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/xml.h"
#include "base/mem.h"
#include "base/system/fs.h"
#include "cli/client/instance.h"

void session_file_deinit(struct session_file *s)
{
        buf_deinit(&s->server_uuid);
        buf_deinit(&s->dir);
        buf_deinit(&s->address);
        buf_deinit(&s->file);
        buf_deinit(&s->folder);
        buf_deinit(&s->report);
        free(s->requests);
        free(s->jobs);
        for (size_t i = 0; i < s->script_count; i++)
                free(s->scripts[i].text);
        free(s->scripts);
}

/* ---- reading */

static void take_member(const struct xml *x, const char *name, struct buf *to)
{
        const char *value = xml_get(x, name);

        if (!value)
                return;
        buf_addz(to, value);
        buf_z(to); /* terminated, since the server's address and folder are used as such */
}

static int read_request(const struct xml *x, struct session_file *s)
{
        const char *id = xml_get(x, "id"), *uuid = xml_get(x, "uuid"), *jobs = xml_get(x, "jobs");
        struct session_request r = {0};

        if (s->count == SESSION_REQUESTS_MAX)
                return cli_error(CLI_USAGE, "%s:%u: there are more than %u requests", x->file, x->line,
                                 SESSION_REQUESTS_MAX);
        if (!id || str_to_u64(str_of(id), &r.id) != 0 || r.id == 0)
                return cli_error(CLI_USAGE, "%s:%u: <request> has no id, which is a number", x->file,
                                 x->line);
        if (!uuid || strlen(uuid) != UUID_TEXT - 1)
                return cli_error(CLI_USAGE, "%s:%u: <request> has no uuid", x->file, x->line);
        memcpy(r.uuid, uuid, UUID_TEXT);
        if (jobs)
                str_to_u64(str_of(jobs), &r.jobs);
        MEM_GROW(s->requests, s->cap, s->count + 1);
        s->requests[s->count++] = r;
        return 0;
}

/* Returns whether it is a name that may stand in a command line of a batch system. */
static bool session_file_is_name(struct str s, size_t max)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && !strchr("._[]@", s.p[i]))
                        return false;
        return s.n > 0 && s.n < max && isalnum((unsigned char)s.p[0]);
}

void session_file_add_job(struct session_file *s, struct str id, struct str runner, struct str native)
{
        struct session_job *j;

        if (s->job_count == SESSION_JOBS_MAX || !session_file_is_name(id, sizeof(j->id)) ||
            !session_file_is_name(runner, sizeof(j->runner)) ||
            !session_file_is_name(native, sizeof(j->native)))
                return;
        MEM_GROW(s->jobs, s->job_cap, s->job_count + 1);
        j = &s->jobs[s->job_count++];
        *j = (struct session_job){{0}};
        memcpy(j->id, id.p, id.n);
        memcpy(j->runner, runner.p, runner.n);
        memcpy(j->native, native.p, native.n);
}

void session_file_native_base(struct str native, struct buf *out)
{
        size_t n = 0;

        while (n < native.n && !strchr("._[", native.p[n]))
                n++;
        buf_str(out, str_head(native, n));
}

bool session_file_has_script(const struct session_file *s, struct str runner, struct str native)
{
        BUF_CLEANUP struct buf base = {0};

        session_file_native_base(native, &base);
        for (size_t i = 0; i < s->script_count; i++)
                if (str_eqz(runner, s->scripts[i].runner) && str_eqz(buf_view(&base), s->scripts[i].native))
                        return true;
        return s->script_bytes >= SESSION_SCRIPTS_MAX;
}

void session_file_add_script(struct session_file *s, struct str runner, struct str native, struct str text)
{
        BUF_CLEANUP struct buf base = {0};
        struct session_script *x;

        session_file_native_base(native, &base);
        if (!session_file_is_name(runner, sizeof(x->runner)) ||
            !session_file_is_name(buf_view(&base), sizeof(x->native)) || text.n == 0 ||
            text.n > SESSION_SCRIPTS_MAX - s->script_bytes || session_file_has_script(s, runner, native))
                return;
        for (size_t i = 0; i < text.n; i++) /* XML has no other control characters */
                if ((unsigned char)text.p[i] < ' ' && !strchr("\t\n", text.p[i]))
                        return;
        MEM_GROW(s->scripts, s->script_cap, s->script_count + 1);
        x = &s->scripts[s->script_count++];
        *x = (struct session_script){.text = str_dupz(text)};
        memcpy(x->runner, runner.p, runner.n);
        memcpy(x->native, base.p, base.n);
        s->script_bytes += text.n;
}

int session_file_read(const char *path, struct session_file *ret)
{
        BUF_CLEANUP struct buf text = {0};
        struct err err = {""};
        struct xml *root = NULL;
        uid_t owner = 0;
        int code = 0;

        if (fs_read_regular_of(AT_FDCWD, path, SESSION_FILE_MAX, &text, &owner, &err) != 0 ||
            xml_parse(path, buf_view(&text), &root, &err) != 0)
                return cli_error(CLI_USAGE, "%s", err.text);
        ret->own = owner == 0 || owner == geteuid();
        if (!xml_is(root, "session"))
                code = cli_error(CLI_USAGE, "%s is not a session file: its outermost element is <%s>", path,
                                 root->name);
        take_member(xml_child(root, "server"), "uuid", &ret->server_uuid);
        take_member(xml_child(root, "server"), "dir", &ret->dir);
        take_member(xml_child(root, "server"), "address", &ret->address);
        take_member(xml_child(root, "submit"), "file", &ret->file);
        take_member(xml_child(root, "submit"), "folder", &ret->folder);
        take_member(xml_child(root, "submit"), "report", &ret->report);
        for (const struct xml *x = xml_child(root, "request"); x && code == 0; x = xml_next(x, "request"))
                code = read_request(x, ret);
        for (const struct xml *x = xml_child(root, "job"); x && code == 0; x = xml_next(x, "job"))
                session_file_add_job(ret, str_of(xml_get(x, "id")), str_of(xml_get(x, "runner")),
                                     str_of(xml_get(x, "native")));
        for (const struct xml *x = xml_child(root, "script"); x && code == 0; x = xml_next(x, "script"))
                session_file_add_script(ret, str_of(xml_get(x, "runner")), str_of(xml_get(x, "native")),
                                        xml_text(x));
        if (code == 0 && ret->count == 0)
                code = cli_error(CLI_USAGE, "%s is not a session file: it has no <request>", path);
        xml_free(root);
        return code;
}

/* ---- writing */

static void put_member(struct buf *out, const char *name, struct str value)
{
        if (value.n == 0)
                return;
        buf_printf(out, " %s=\"", name);
        for (size_t i = 0; i < value.n; i++)
                switch (value.p[i]) {
                case '&': buf_addz(out, "&amp;"); break;
                case '<': buf_addz(out, "&lt;"); break;
                case '"': buf_addz(out, "&quot;"); break;
                case '\n': buf_addz(out, "&#10;"); break;
                default: buf_char(out, value.p[i]); break;
                }
        buf_char(out, '"');
}

int session_file_write(const char *path, const struct session_file *s)
{
        BUF_CLEANUP struct buf text = {0};
        struct err err = {""};

        buf_addz(&text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                        "<!-- drover queue, wait, get, rm and resubmit take this file as their session "
                        "-->\n<session>\n  <server");
        put_member(&text, "uuid", buf_view(&s->server_uuid));
        put_member(&text, "dir", buf_view(&s->dir));
        put_member(&text, "address", buf_view(&s->address));
        buf_addz(&text, "/>\n  <submit");
        put_member(&text, "file", buf_view(&s->file));
        put_member(&text, "folder", buf_view(&s->folder));
        put_member(&text, "report", buf_view(&s->report));
        buf_addz(&text, "/>\n");
        for (size_t i = 0; i < s->count; i++)
                buf_printf(&text, "  <request id=\"%llu\" uuid=\"%s\" jobs=\"%llu\"/>\n",
                           (unsigned long long)s->requests[i].id, s->requests[i].uuid,
                           (unsigned long long)s->requests[i].jobs);
        for (size_t i = 0; i < s->job_count; i++)
                buf_printf(&text, "  <job id=\"%s\" runner=\"%s\" native=\"%s\"/>\n", s->jobs[i].id,
                           s->jobs[i].runner, s->jobs[i].native);
        for (size_t i = 0; i < s->script_count; i++) {
                buf_printf(&text, "  <script runner=\"%s\" native=\"%s\">\n", s->scripts[i].runner,
                           s->scripts[i].native);
                xml_escape(&text, str_of(s->scripts[i].text));
                buf_addz(&text, "\n</script>\n");
        }
        buf_addz(&text, "</session>\n");
        if (fs_write(AT_FDCWD, path, buf_view(&text), 0666, true, &err) != 0)
                return cli_error(CLI_FAILED, "%s", err.text);
        return 0;
}

void session_file_add(struct session_file *s, const struct api_answer *submitted)
{
        struct session_request r = {.id = (uint64_t)view_integer(view_get(submitted->root, "id"), 0),
                                    .jobs = (uint64_t)view_integer(view_get(submitted->root, "jobs"), 0)};
        BUF_CLEANUP struct buf uuid = {0};

        view_text(view_get(submitted->root, "uuid"), &uuid);
        for (size_t i = 0; i < uuid.n && i < UUID_TEXT - 1; i++)
                r.uuid[i] = uuid.p[i];
        MEM_GROW(s->requests, s->cap, s->count + 1);
        s->requests[s->count++] = r;
}

int session_file_begin(struct cli *cli, const struct api_answer *submitted, struct session_file *ret)
{
        struct api_answer server API_ANSWER_CLEANUP = {0};
        const char *address = cli->server ? cli->server : getenv("DROVER_SERVER");
        MEM_CLEANUP char *folder = getcwd(NULL, 0);
        int code = api_get(cli, "/v1/server", &server);

        if (code != 0)
                return code;
        view_text(view_get(server.root, "uuid"), &ret->server_uuid);
        if (address && *address)
                buf_addz(&ret->address, address);
        else
                instance_dir(cli->dir, &ret->dir, NULL);
        buf_addz(&ret->folder, folder ? folder : "");
        session_file_add(ret, submitted);
        return 0;
}

void session_file_leave(struct cli *cli, const char *path, const struct api_answer *submitted,
                        const char *file, const char *report)
{
        struct session_file s SESSION_FILE_CLEANUP = {0};

        if (session_file_begin(cli, submitted, &s) != 0)
                return;
        buf_addz(&s.file, file);
        buf_addz(&s.report, report ? report : "");
        session_file_write(path, &s);
}

/* ---- using */

static int check_request(struct cli *cli, const struct session_request *r, bool *ret_gone)
{
        struct api_answer answer API_ANSWER_CLEANUP = {0};
        struct buf path BUF_CLEANUP = {0}, uuid BUF_CLEANUP = {0};
        struct err err = {""};
        int rc;

        buf_printf(&path, "/v1/requests/%llu", (unsigned long long)r->id);
        rc = api_call(cli, &(struct api_request){.path = buf_z(&path)}, &answer, &err);
        *ret_gone = rc == API_NO_SERVER;
        if (rc == API_REFUSED && answer.status == 404)
                return cli_error(CLI_USAGE,
                                 "the server does not know request %llu of the session, or no longer",
                                 (unsigned long long)r->id);
        if (rc != 0)
                return cli_error(api_exit(rc, &answer), "%s", err.text);
        view_text(view_get(answer.root, "uuid"), &uuid);
        if (!str_ieqz(buf_view(&uuid), r->uuid))
                return cli_error(
                        CLI_USAGE,
                        "request %llu of this server is not the session's: it is %s, and the session's is %s",
                        (unsigned long long)r->id, buf_z(&uuid), r->uuid);
        return 0;
}

static bool is_set(const char *variable)
{
        const char *value = getenv(variable);

        return value && *value;
}

int session_file_use(struct cli *cli, const struct session_file *s, bool last, struct buf *ret,
                     bool *ret_gone)
{
        bool named = cli->dir || is_set("DROVER_DIR") || is_set("DROVER_SERVER") || !s->own;

        /* The session lives as long as the call. */
        if (!named && s->address.n)
                cli->server = s->address.p;
        else if (!named && s->dir.n && access(s->dir.p, F_OK) == 0)
                cli->dir = s->dir.p;
        for (size_t i = last ? s->count - 1 : 0; i < s->count; i++) {
                int code = check_request(cli, &s->requests[i], ret_gone);

                if (code != 0)
                        return code;
                buf_printf(ret, "%s%llu", ret->n ? "," : "", (unsigned long long)s->requests[i].id);
        }
        return 0;
}
