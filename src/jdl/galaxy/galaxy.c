#include "jdl/galaxy/galaxy.h"

#include <errno.h>

#include "base/format/sha256.h"
#include "base/mem.h"
#include "jdl/galaxy/tool.h"
#include "jdl/script/script.h"

#define BOM STR("\xef\xbb\xbf") /* byte order mark, which some editors write */

static int read_params(const struct form_world *w, const char *file, json_t **ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TOOL_TEXT_MAX};
        json_error_t why;
        size_t skip = 0;
        int rc;

        if (!file) {
                *ret = json_object();
                return 0;
        }
        rc = w->read_file(w->arg, file, &text);
        if (rc != 0)
                return err_set(err, rc, "%s: %s", file, strerror(-rc));
        if (str_starts(buf_view(&text), BOM))
                skip = BOM.n;
        *ret = json_loadb(text.p ? text.p + skip : "", text.n - skip, JSON_REJECT_DUPLICATES, &why);
        if (!*ret)
                return err_set(err, -EINVAL, "%s:%d: %s", file, why.line, why.text);
        if (json_is_object(*ret))
                return 0;
        json_decref(*ret);
        return err_set(err, -EINVAL, "%s:1: a job's parameters are an object: {\"NAME\": value, ...}", file);
}

static struct str absolute(struct tool *t, const char *file)
{
        BUF_CLEANUP struct buf b = {0};

        script_absolute(t->w, str_of(file), STR("."), &b);
        return arena_str(&t->arena, buf_view(&b));
}

/* ---- requirements */

static bool is_package(const struct xml *x)
{
        return xml_is(x, "requirement") &&
               (!xml_get(x, "type") || strcmp(xml_get(x, "type"), "package") == 0);
}

static void environment_name(const struct xml *x, struct buf *out)
{
        const char *version = xml_get(x, "version");

        buf_printf(out, "__" STR_FMT "@%s", STR_ARG(xml_text(x)), version && *version ? version : "_uv_");
}

/* Returns Galaxy's name for the environment of these packages: for one package its name, for several the
 * checksum of their names. */
static int conda_name(const struct xml *requirements, struct buf *out, struct err *err)
{
        BUF_CLEANUP struct buf all = {0};
        char sum[SHA256_HEX];
        unsigned n = 0;
        int r;

        for (const struct xml *x = requirements->first; x; x = x->next)
                if (is_package(x)) {
                        environment_name(x, &all);
                        n++;
                }
        if (n == 1) {
                buf_str(out, buf_view(&all));
                return 0;
        }
        r = sha256_hex(buf_view(&all), sum, err);
        if (!r)
                buf_printf(out, "mulled-v1-%s", sum);
        return r;
}

static void container_line(const struct xml *container, struct buf *out)
{
        struct str image = xml_text(container);
        bool docker = !xml_get(container, "type") || strcmp(xml_get(container, "type"), "docker") == 0;

        buf_printf(out, "container_image = %s" STR_FMT "\n",
                   docker && str_search(image, STR("://")) < 0 ? "docker://" : "", STR_ARG(image));
}

static int resolve(struct tool *t, enum galaxy_resolve how, struct buf *out, struct err *err)
{
        const struct xml *all = xml_child(t->root, "requirements"), *container = xml_child(all, "container"),
                         *package = NULL;

        for (const struct xml *x = all ? all->first : NULL; x; x = x->next) {
                if (is_package(x))
                        package = x;
                else if (!xml_is(x, "container"))
                        tool_warn(t, x, "<%s> among the requirements (%s) is left out", x->name,
                                  xml_get(x, "type") ? xml_get(x, "type") : "");
        }
        if (how == GALAXY_NONE)
                return 0;
        if (how == GALAXY_CONTAINER && !container)
                return tool_fail(all ? all : t->root, err, "the tool names no container");
        if (container && how != GALAXY_CONDA) {
                container_line(container, out);
        } else if (package) {
                buf_addz(out, "conda_env = ");
                int r = conda_name(all, out, err);

                buf_char(out, '\n');
                return r;
        } else if (how == GALAXY_CONDA) {
                return tool_fail(all ? all : t->root, err, "the tool names no packages");
        }
        return 0;
}

/* ---- the request */

static int galaxy_describe(struct tool *t, enum galaxy_resolve how, struct buf *out, struct err *err)
{
        const char *id = xml_get(t->root, "id"), **paths;
        int rc;

        for (const char *z = id; *z; z++)
                if ((unsigned char)*z < ' ' || strchr("$\"\\", *z))
                        return tool_fail(t->root, err, "the tool's id is not a plain name");
        buf_printf(out, "batch_name = %s\noutput = tool_stdout\nerror = tool_stderr\n+GalaxyTool = \"%s\"\n",
                   id, id);
        rc = resolve(t, how, out, err);
        paths = arena_alloc(&t->arena, (t->file_count + 1) * sizeof(*paths));
        for (size_t i = 0; i < t->file_count; i++)
                paths[i] = t->files[i].p; /* a copy in the arena ends with a NUL */
        paths[t->file_count] = t->folder.p;
        script_inputs(out, paths, t->file_count + t->uses_folder);
        return rc;
}

static int galaxy_expand(struct tool *t, const struct galaxy_job *job, json_t *given,
                         struct galaxy_rendered *ret, struct err *err)
{
        int rc = tool_read(t, err);

        if (rc == 0)
                rc = tool_parameters(t, given, err);
        if (rc == 0)
                rc = tool_outputs(t, err);
        if (rc == 0)
                rc = tool_script(t, &ret->script, &ret->command, err);
        return rc == 0 ? galaxy_describe(t, job->resolve, &ret->description, err) : rc;
}

int galaxy_render(const struct form_world *w, const struct galaxy_job *job, struct galaxy_rendered *ret,
                  struct err *err)
{
        struct tool t;
        json_t *given = NULL;
        int rc = read_params(w, job->params, &given, err);

        if (rc != 0)
                return rc;
        tool_init(&t, w, job->tool, &ret->warnings);
        t.tables_file = job->tables;
        t.params_dir = absolute(&t, job->params ? job->params : "");
        t.folder = absolute(&t, job->tool);
        rc = galaxy_expand(&t, job, given, ret, err);
        tool_deinit(&t);
        json_decref(given);
        return rc;
}

void galaxy_rendered_deinit(struct galaxy_rendered *r)
{
        form_deinit(&r->warnings);
        buf_deinit(&r->description);
        buf_deinit(&r->script);
        buf_deinit(&r->command);
}
