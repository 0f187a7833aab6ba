/* drover-galaxy: the reader of Galaxy's tools as a program of its own, so that `drover` links none of it.
 *
 * One line of JSON on standard input says which job, one on standard output what it is; drover-galaxy(1) has
 * their members. Files are read with the rights, and from the folder, of whoever runs it. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/format/json.h"
#include "cli/client/world.h"
#include "cli/terminal/view.h"
#include "jdl/galaxy/galaxy.h"

#define REQUEST_MAX 65536u

static void write_rendered(struct json *j, const struct galaxy_rendered *r)
{
        json_kstr(j, "description", buf_view(&r->description));
        json_kstr(j, "script", buf_view(&r->script));
        json_kstr(j, "command", buf_view(&r->command));
}

static void write_warnings(struct json *j, const struct form *f)
{
        json_key(j, "warnings");
        json_open(j, '[');
        for (size_t i = 0; i < f->warning_count; i++) {
                json_open(j, '{');
                json_kint(j, "line", f->warnings[i].line);
                json_kstrz(j, "text", f->warnings[i].text);
                json_close(j, '}');
        }
        json_close(j, ']');
}

static int read_request(struct view v, struct buf *tool, struct buf *params, struct buf *tables,
                        struct galaxy_job *ret, struct err *err)
{
        static const char *const ways[] = {"any", "container", "conda", "none"};
        struct view resolve = view_get(v, "resolve");
        size_t i = 0;

        view_text(view_get(v, "tool"), tool);
        view_text(view_get(v, "params"), params);
        view_text(view_get(v, "tables"), tables);
        while (i < 4 && !view_is(resolve, ways[i]))
                i++;
        if (!tool->n || (i == 4 && view_there(resolve)))
                return err_set(err, -EINVAL,
                               "standard input is not {\"tool\": \"FILE\", \"params\": \"FILE\", \"tables\": "
                               "\"FILE\", "
                               "\"resolve\": \"any|container|conda|none\"}");
        *ret = (struct galaxy_job){.tool = buf_z(tool),
                                   .params = params->n ? buf_z(params) : NULL,
                                   .tables = tables->n ? buf_z(tables) : NULL,
                                   .resolve = i == 4 ? GALAXY_ANY : (enum galaxy_resolve)i};
        return 0;
}

int main(void)
{
        BUF_CLEANUP struct buf in = {0}, tool = {0}, params = {0}, tables = {0}, out = {0};
        struct galaxy_rendered made = {{0}};
        struct json j = {.out = &out};
        struct galaxy_job job;
        struct world w;
        struct err err = {""};
        int rc = world_init(&w, &err);

        if (rc == 0)
                rc = world_read_stdin(REQUEST_MAX, &in, &err);
        if (rc == 0)
                rc = read_request(view_of(buf_view(&in)), &tool, &params, &tables, &job, &err);
        if (rc == 0)
                rc = galaxy_render(&w.form, &job, &made, &err);
        json_open(&j, '{');
        if (rc == 0)
                write_rendered(&j, &made);
        else
                json_kstrz(&j, "error", err.text);
        write_warnings(&j, &made.warnings);
        json_close(&j, '}');
        puts(buf_z(&out));
        galaxy_rendered_deinit(&made);
        return fflush(stdout) != 0 ? 1 : 0;
}
