/* Members of a task that have a keyword in submit files are written as lines of one, which jdl/condor reads,
 * so that requirements and defaults are those of all other jobs. Texts of the task, which may have any
 * content, are set as attributes afterwards. */
#include "jdl/tes/tes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/job/args.h"
#include "base/mem.h"
#include "classad/print.h"
#include "jdl/condor/condor.h"
#include "jdl/tes/paths.h"

#define WORK_MAX (1u << 20)

static const char *const backend_keys[] = {
        "accounting_group",
        "accounting_group_user",
        "allowed_execute_duration",
        "docker_network_type",
        "docker_pull_policy",
        "drover_credentials",
        "max_retries",
        "priority",
        "rank",
        "request_gpus",
        "requirements",
};
#define BACKEND_KEYS (sizeof(backend_keys) / sizeof(*backend_keys))

const char *tes_backend_key(size_t n)
{
        return n < BACKEND_KEYS ? backend_keys[n] : NULL;
}

struct reader {
        struct tes_task *ret;
        json_t *task;     /* the stored form; owned */
        json_t *warnings; /* owned */
        struct err *err;
        struct tes_paths paths;
        struct buf lines;   /* lines of the submit file */
        struct buf inputs;  /* TransferInput */
        struct buf outputs; /* TransferOutput */
        struct buf taken;   /* names of inputs that are in use */
        struct buf remaps;
        struct form_part *part;
};

static void reader_deinit(struct reader *r)
{
        json_decref(r->task);
        json_decref(r->warnings);
        tes_paths_deinit(&r->paths);
        buf_deinit(&r->lines);
        buf_deinit(&r->inputs);
        buf_deinit(&r->outputs);
        buf_deinit(&r->taken);
        buf_deinit(&r->remaps);
}

/* ---- members */

static const char *type_name(int type)
{
        switch (type) {
        case JSON_STRING: return "a string";
        case JSON_OBJECT: return "an object";
        case JSON_ARRAY: return "a list";
        case JSON_TRUE:
        case JSON_FALSE: return "true or false";
        case JSON_INTEGER: return "an integer";
        default: return "a number";
        }
}

/* Returns a member of a type, or NULL when it is absent or null. Returns -EINVAL for another type. */
static int member(struct reader *r, const json_t *of, const char *at, const char *name, int type,
                  json_t **ret)
{
        json_t *v = json_object_get(of, name);
        bool good = !v || json_is_null(v) || (int)json_typeof(v) == type ||
                    (type == JSON_TRUE && json_is_boolean(v)) || (type == JSON_REAL && json_is_number(v));

        *ret = v && !json_is_null(v) ? v : NULL;
        return good ? 0 : err_set(r->err, -EINVAL, "%s/%s: %s is expected", at, name, type_name(type));
}

static int text_member(struct reader *r, const json_t *of, const char *at, const char *name, struct str *ret)
{
        json_t *v;
        int e = member(r, of, at, name, JSON_STRING, &v);

        *ret = v ? str_make(json_string_value(v), json_string_length(v)) : STR_NONE;
        return e;
}

static int path_member(struct reader *r, const json_t *of, const char *at, const char *name, struct str *ret)
{
        int e = text_member(r, of, at, name, ret);

        if (e == 0 && ret->p && tes_path_check(*ret, ret, r->err) < 0)
                e = err_prefix(r->err, -EINVAL, "%s/%s", at, name);
        return e;
}

/* Reads an object whose values are strings. */
static int map_member(struct reader *r, const json_t *of, const char *at, const char *name, json_t **ret)
{
        int e = member(r, of, at, name, JSON_OBJECT, ret);
        const char *key;
        json_t *v;

        if (e == 0 && *ret)
                json_object_foreach (*ret, key, v)
                        if (!json_is_string(v))
                                return err_set(r->err, -EINVAL, "%s/%s/%.100s: a string is expected", at,
                                               name, key);
        return e;
}

static int mount(struct reader *r, struct str path, bool folder, const char *at, const char *name)
{
        return tes_paths_add(&r->paths, path, folder, r->err) == 0
                       ? 0
                       : err_prefix(r->err, -EINVAL, "%s/%s", at, name);
}

static void set_text(struct form_part *p, const char *name, struct str text)
{
        BUF_CLEANUP struct buf quoted = {0};

        print_string(&quoted, text);
        form_set(p, str_of(name), buf_view(&quoted), 0);
}

static void set_words(struct form_part *p, const char *name, const struct args *words)
{
        BUF_CLEANUP struct buf joined = {0};

        args_join_v2(&joined, words);
        set_text(p, name, buf_view(&joined));
}

/* ---- inputs and outputs */

/* Reads the type, which is FILE if it is missing; the stored task then has it. */
static int file_type(struct reader *r, json_t *file, const char *at, bool *ret_folder)
{
        struct str type;
        int e = text_member(r, file, at, "type", &type);

        if (e < 0)
                return e;
        *ret_folder = type.p && str_eqz(type, "DIRECTORY");
        if (type.p && !*ret_folder && !str_eqz(type, "FILE"))
                return err_set(r->err, -EINVAL, "%s/type: FILE or DIRECTORY is expected", at);
        if (!type.p)
                json_object_set_new(file, "type", json_string("FILE"));
        return 0;
}

#define TAKEN 1

/* Adds the path to the list. Each path may belong to one input and one output. Returns TAKEN if it is in
 * the list. */
static int add_name(struct buf *list, struct str path)
{
        BUF_CLEANUP struct buf name = {0};
        struct str rest = buf_view(list), one;

        buf_printf(&name, TES_FOLDER STR_FMT, STR_ARG(path));
        while (rest.n && str_cut(&rest, ',', &one))
                if (str_eq(one, buf_view(&name)))
                        return TAKEN;
        buf_printf(list, "%s%s", list->n ? "," : "", buf_z(&name));
        return 0;
}

/* Checks a URL for use in a list of files. */
static int check_url(struct reader *r, struct str url, const char *at)
{
        if (str_search(url, STR("://")) <= 0)
                return err_set(r->err, -EINVAL, "%s/url: a URL is expected, such as s3://bucket/file", at);
        for (size_t i = 0; i < url.n; i++)
                if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f || strchr(";\"\\", url.p[i]))
                        return err_set(r->err, -EINVAL,
                                       "%s/url: a blank, ; \" \\ or a control character in a URL "
                                       "is written with %%",
                                       at);
        if (str_search(url, STR("#name=")) >= 0)
                return err_set(r->err, -EINVAL, "%s/url: a URL cannot have #name= in it", at);
        return 0;
}

static int add_input_url(struct reader *r, struct str url, struct str path, bool folder, const char *at)
{
        BUF_CLEANUP struct buf whole = {0};
        int e;

        if (str_starts(url, STR("/")))
                buf_addz(&whole, "file://");
        buf_str(&whole, url);
        e = check_url(r, buf_view(&whole), at);
        if (e < 0)
                return e;
        bool file = str_istarts(buf_view(&whole), STR("file://"));
        if (folder && !file)
                return err_set(r->err, -EINVAL, "%s/type: a DIRECTORY can be read from a file:// URL only",
                               at);
        if (file && str_find(buf_view(&whole), ',') >= 0)
                return err_set(r->err, -EINVAL, "%s/url: a path cannot have a comma in it", at);
        if (r->inputs.n)
                buf_char(&r->inputs, ',');
        for (size_t i = 0; i < whole.n; i++)
                if (whole.p[i] == ',')
                        buf_addz(&r->inputs, "%2C"); /* a comma would separate elements of the list */
                else
                        buf_char(&r->inputs, whole.p[i]);
        while (folder && str_ends(buf_view(&r->inputs), STR("/")))
                buf_truncate(&r->inputs, r->inputs.n - 1);
        buf_printf(&r->inputs, "#name=" TES_FOLDER STR_FMT, STR_ARG(path));
        return 0;
}

static void add_content(struct reader *r, struct str path, struct str text)
{
        BUF_CLEANUP struct buf name = {0};
        struct tes_task *t = r->ret;

        buf_printf(&name, TES_FOLDER STR_FMT, STR_ARG(path));
        t->contents[t->content_count++] = (struct tes_content){buf_take(&name), text};
}

static int read_input(struct reader *r, json_t *in, const char *at)
{
        struct str path, url, content;
        bool folder;
        int e = path_member(r, in, at, "path", &path);

        if (e == 0)
                e = text_member(r, in, at, "url", &url);
        if (e == 0)
                e = text_member(r, in, at, "content", &content);
        if (e == 0)
                e = file_type(r, in, at, &folder);
        if (e < 0)
                return e;
        if (!path.p)
                return err_set(r->err, -EINVAL, "%s/path: it is missing", at);
        if (url.n == 0 && !content.p)
                return err_set(r->err, -EINVAL, "%s/url: it is missing, and so is content", at);
        e = add_name(&r->taken, path);
        if (e != 0)
                return e;
        if (content.p && (content.n || url.n == 0)) {
                if (folder)
                        return err_set(r->err, -EINVAL, "%s/type: a content is a FILE's", at);
                add_content(r, path, content);
        } else {
                e = add_input_url(r, url, path, folder, at);
        }
        return e < 0 ? e : mount(r, path, folder, at, "path");
}

static bool is_pattern(struct str path)
{
        return str_find(path, '*') >= 0 || str_find(path, '?') >= 0 || str_find(path, '[') >= 0;
}

/* Returns the folder that has everything the pattern can match. */
static struct str pattern_folder(struct str path)
{
        while (is_pattern(path))
                path = tes_path_folder(path);
        return path;
}

static void add_remap(struct reader *r, struct str name, struct str kept_from, struct str url, bool folder)
{
        buf_printf(&r->remaps, "%s" TES_FOLDER STR_FMT, r->remaps.n ? ";" : "", STR_ARG(name));
        if (kept_from.n)
                buf_printf(&r->remaps, "/." STR_FMT, STR_ARG(kept_from));
        buf_printf(&r->remaps, "=" STR_FMT "%s", STR_ARG(url), folder && !str_ends(url, STR("/")) ? "/" : "");
}

static int read_pattern(struct reader *r, struct str path, struct str url, const json_t *out, const char *at)
{
        struct str prefix;
        int e = path_member(r, out, at, "path_prefix", &prefix);

        if (e < 0)
                return e;
        if (!prefix.p)
                return err_set(r->err, -EINVAL,
                               "%s/path_prefix: it is missing, which a path with wildcards needs", at);
        if (is_pattern(prefix) || !str_starts(path, prefix) || path.n == prefix.n || path.p[prefix.n] != '/')
                return err_set(
                        r->err, -EINVAL,
                        "%s/path_prefix: a folder at the beginning of path is expected, without wildcards",
                        at);
        add_remap(r, prefix, str_skip(path, prefix.n), url, true);
        return mount(r, pattern_folder(path), true, at, "path");
}

static int read_output(struct reader *r, json_t *out, const char *at)
{
        struct str path, url;
        bool folder;
        int e = path_member(r, out, at, "path", &path);

        if (e == 0)
                e = text_member(r, out, at, "url", &url);
        if (e == 0)
                e = file_type(r, out, at, &folder);
        if (e < 0)
                return e;
        if (!path.p || !url.p)
                return err_set(r->err, -EINVAL, "%s/%s: it is missing", at, path.p ? "url" : "path");
        e = check_url(r, url, at);
        if (e < 0)
                return e;
        e = add_name(&r->outputs, path);
        if (e != 0)
                return e;
        if (is_pattern(path))
                return read_pattern(r, path, url, out, at);
        while (folder && str_ends(url, STR("/")))
                url.n--;
        add_remap(r, path, STR_NONE, url, false);
        return folder ? mount(r, path, true, at, "path") : mount(r, tes_path_folder(path), true, at, "path");
}

/* Returns whether an earlier file in the list equals the i-th. A client may list the same file twice. */
static bool said_before(const json_t *all, size_t i)
{
        static const char *const words[] = {"path", "url", "content"};
        const json_t *one = json_array_get(all, i);

        for (size_t k = 0; k < i; k++) {
                const json_t *other = json_array_get(all, k);
                bool same = true;

                for (size_t w = 0; w < sizeof(words) / sizeof(*words) && same; w++) {
                        const json_t *a = json_object_get(one, words[w]),
                                     *b = json_object_get(other, words[w]);

                        same = a == b || json_equal(a, b);
                }
                if (same)
                        return true;
        }
        return false;
}

static int read_files(struct reader *r, const char *list,
                      int (*read)(struct reader *r, json_t *one, const char *at))
{
        json_t *all, *one;
        size_t i;
        int e = member(r, r->task, "", list, JSON_ARRAY, &all);

        if (e == 0 && json_array_size(all) > TES_FILES_MAX)
                return err_set(r->err, -E2BIG, "/%s: there may be %u of them", list, TES_FILES_MAX);
        json_array_foreach (all, i, one) {
                char at[64];

                snprintf(at, sizeof(at), "/%s/%zu", list, i);
                if (e == 0 && !json_is_object(one))
                        e = err_set(r->err, -EINVAL, "%s: an object is expected", at);
                if (e == 0)
                        e = read(r, one, at);
                if (e == TAKEN)
                        e = said_before(all, i)
                                    ? 0
                                    : err_set(r->err, -EINVAL, "%s/path: another one has this path", at);
        }
        return e;
}

static int read_volumes(struct reader *r)
{
        json_t *all, *one;
        size_t i;
        int e = member(r, r->task, "", "volumes", JSON_ARRAY, &all);

        if (e == 0 && json_array_size(all) > TES_FILES_MAX)
                return err_set(r->err, -E2BIG, "/volumes: there may be %u of them", TES_FILES_MAX);
        json_array_foreach (all, i, one) {
                struct str path = str_of(json_string_value(one));
                char name[32];

                snprintf(name, sizeof(name), "%zu", i);
                if (e == 0 && tes_path_check(path, &path, r->err) < 0)
                        e = err_prefix(r->err, -EINVAL, "/volumes/%zu", i);
                if (e == 0)
                        e = mount(r, path, true, "/volumes", name);
        }
        return e;
}

/* ---- resources */

/* Adds the value of a keyword on one line, with macros escaped. */
static int add_line(struct reader *r, const char *keyword, struct str value, const char *at)
{
        for (size_t i = 0; i < value.n; i++)
                if ((unsigned char)value.p[i] < ' ' || value.p[i] == '$' || value.p[i] == '\\')
                        return err_set(r->err, -EINVAL, "%s: a line without $ and \\ is expected", at);
        buf_printf(&r->lines, "%s = " STR_FMT "\n", keyword, STR_ARG(value));
        return 0;
}

static int amount(struct reader *r, const json_t *of, const char *name, double unit, const char *keyword)
{
        json_t *v;
        int e = member(r, of, "/resources", name, JSON_REAL, &v);
        double n = v ? json_number_value(v) : 0;

        if (e == 0 && v && !(n >= 0 && n <= 1e6))
                return err_set(r->err, -EINVAL, "/resources/%s: a number from 0 to 1000000 is expected",
                               name);
        if (e == 0 && n > 0)
                buf_printf(&r->lines, "%s = %.0f\n", keyword, ceil(n * 1e9 / unit));
        return e;
}

static int read_zones(struct reader *r, const json_t *resources, struct buf *requirements)
{
        json_t *zones, *zone;
        size_t i;
        int e = member(r, resources, "/resources", "zones", JSON_ARRAY, &zones);
        bool any = false;

        json_array_foreach (zones, i, zone) {
                BUF_CLEANUP struct buf text = {0};

                if (e < 0)
                        break;
                if (!json_is_string(zone))
                        return err_set(r->err, -EINVAL, "/resources/zones/%zu: a string is expected", i);
                print_string(&text, str_of(json_string_value(zone)));
                buf_printf(requirements,
                           "%s(TARGET.Zone =?= %s || TARGET.AgentName =?= %s || TARGET.QueueName =?= %s)",
                           any ? " || " : " && (", buf_z(&text), buf_z(&text), buf_z(&text));
                any = true;
        }
        if (any)
                buf_char(requirements, ')');
        return e;
}

static const char *key_of(const char *said)
{
        for (size_t i = 0; i < BACKEND_KEYS; i++)
                if (str_ieqz(str_of(said), backend_keys[i]))
                        return backend_keys[i];
        return NULL;
}

/* Unknown keys are neither stored nor acted on. */
static int read_backend(struct reader *r, json_t *resources, struct buf *requirements)
{
        json_t *all, *strict, *v;
        const char *key;
        void *next;
        int e = map_member(r, resources, "/resources", "backend_parameters", &all);

        if (e == 0)
                e = member(r, resources, "/resources", "backend_parameters_strict", JSON_TRUE, &strict);
        if (e < 0 || !all)
                return e;
        json_object_foreach_safe(all, next, key, v)
        {
                const char *known = key_of(key);
                char at[128];

                snprintf(at, sizeof(at), "/resources/backend_parameters/%.60s", key);
                if (!known && json_is_true(strict))
                        return err_set(r->err, -EINVAL, "%s: no such parameter is supported here", at);
                if (!known) {
                        json_array_append_new(
                                r->warnings,
                                json_sprintf("backend_parameters: %.100s is not supported, and has no effect",
                                             key));
                        json_object_del(all, key);
                } else if (str_eqz(STR("requirements"), known)) {
                        buf_printf(requirements, " && (%s)", json_string_value(v));
                } else if ((e = add_line(r, known, str_of(json_string_value(v)), at)) < 0) {
                        return e;
                }
        }
        return 0;
}

static int read_resources(struct reader *r)
{
        BUF_CLEANUP struct buf requirements = {0};
        json_t *res, *cores, *flag;
        int e = member(r, r->task, "", "resources", JSON_OBJECT, &res);

        if (e < 0)
                return e;
        buf_addz(&requirements, "TARGET.Runner =!= \"drover\""); /* another server receives only one step */
        e = member(r, res, "/resources", "cpu_cores", JSON_INTEGER, &cores);
        if (e == 0 && cores && (json_integer_value(cores) < 0 || json_integer_value(cores) > 1000000))
                e = err_set(r->err, -EINVAL, "/resources/cpu_cores: a number from 0 to 1000000 is expected");
        if (e == 0 && json_integer_value(cores) > 0)
                buf_printf(&r->lines, "request_cpus = %lld\n", (long long)json_integer_value(cores));
        if (e == 0)
                e = amount(r, res, "ram_gb", 1 << 20, "request_memory");
        if (e == 0)
                e = amount(r, res, "disk_gb", 1 << 10, "request_disk");
        if (e == 0)
                e = member(r, res, "/resources", "preemptible", JSON_TRUE, &flag);
        if (e == 0)
                e = read_backend(r, res, &requirements);
        if (e == 0)
                e = read_zones(r, res, &requirements);
        if (e == 0)
                e = add_line(r, "requirements", buf_view(&requirements), "/resources/zones or requirements");
        return e;
}

/* ---- executors */

static int stream(struct reader *r, const json_t *x, const char *at, const char *name, const char *attribute)
{
        BUF_CLEANUP struct buf file = {0};
        struct str path;
        int e = path_member(r, x, at, name, &path);

        if (e < 0 || !path.p)
                return e;
        buf_printf(&file, TES_FOLDER STR_FMT, STR_ARG(path));
        set_text(r->part, attribute, buf_view(&file));
        return str_eqz(STR("stdin"), name) ? 0 : mount(r, tes_path_folder(path), true, at, name);
}

static int read_command(struct reader *r, const json_t *x, const char *at, const char *head)
{
        ARGS_CLEANUP struct args words = {0};
        char name[64];
        json_t *all, *one;
        size_t i;
        int e = member(r, x, at, "command", JSON_ARRAY, &all);

        if (e == 0 && json_array_size(all) == 0)
                e = err_set(r->err, -EINVAL, "%s/command: %s", at,
                            all ? "the program is missing" : "it is missing");
        json_array_foreach (all, i, one) {
                if (e == 0 && !json_is_string(one))
                        e = err_set(r->err, -EINVAL, "%s/command/%zu: a string is expected", at, i);
                if (e == 0 && i > 0)
                        args_add(&words, str_of(json_string_value(one)));
        }
        if (e < 0)
                return e;
        struct str program = str_of(json_string_value(json_array_get(all, 0)));
        if (str_trim(program).n == 0 || str_trim(program).n != program.n || program.p[0] == '-')
                return err_set(r->err, -EINVAL, "%s/command/0: the name of a program is expected", at);
        snprintf(name, sizeof(name), "%sCmd", head);
        set_text(r->part, name, program);
        snprintf(name, sizeof(name), "%sArguments", head);
        set_words(r->part, name, &words);
        return 0;
}

static int read_env(struct reader *r, const json_t *x, const char *at, const char *head)
{
        ARGS_CLEANUP struct args words = {0};
        char name[64];
        const char *key;
        json_t *all, *v;
        int e = map_member(r, x, at, "env", &all);

        if (e < 0 || json_object_size(all) == 0)
                return e;
        json_object_foreach (all, key, v) {
                BUF_CLEANUP struct buf word = {0};

                if (!*key || strchr(key, '='))
                        return err_set(r->err, -EINVAL, "%s/env: '%.100s' is not the name of a variable", at,
                                       key);
                buf_printf(&word, "%s=%s", key, json_string_value(v));
                args_add(&words, buf_view(&word));
        }
        snprintf(name, sizeof(name), "%sEnvironment", head);
        set_words(r->part, name, &words);
        return 0;
}

/* Reads an image in the form that container runners accept: a registry's image, a file, or a URL with a
 * scheme of the engine. */
static int read_image(struct reader *r, const json_t *x, const char *at, const char *head)
{
        BUF_CLEANUP struct buf image = {0};
        struct str text;
        char name[64];
        int e = text_member(r, x, at, "image", &text);

        if (e < 0)
                return e;
        if (str_trim(text).n == 0)
                return err_set(r->err, -EINVAL, "%s/image: the name of an image is expected", at);
        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] <= ' ' || strchr("\"'$\\", text.p[i]))
                        return err_set(r->err, -EINVAL,
                                       "%s/image: a name has no blanks, quotes, $ or \\ in it", at);
        if (text.p[0] != '/' && str_search(text, STR("://")) < 0)
                buf_addz(&image, "docker://");
        buf_str(&image, text);
        snprintf(name, sizeof(name), "%sContainerImage", head);
        set_text(r->part, name, buf_view(&image));
        return 0;
}

static int read_executor(struct reader *r, const json_t *x, const char *at, const char *head)
{
        static const char *const streams[][2] = {{"stdin", "In"}, {"stdout", "Out"}, {"stderr", "Err"}};
        char name[64];
        struct str dir;
        json_t *ignore;
        int e = read_image(r, x, at, head);

        if (e == 0)
                e = read_command(r, x, at, head);
        if (e == 0)
                e = read_env(r, x, at, head);
        if (e == 0)
                e = path_member(r, x, at, "workdir", &dir);
        for (size_t i = 0; i < 3 && e == 0; i++) {
                snprintf(name, sizeof(name), "%s%s", head, streams[i][1]);
                e = stream(r, x, at, streams[i][0], name);
        }
        if (e == 0)
                e = member(r, x, at, "ignore_error", JSON_TRUE, &ignore);
        if (e < 0)
                return e;
        snprintf(name, sizeof(name), "%sContainerWorkDir", head);
        set_text(r->part, name, dir);
        snprintf(name, sizeof(name), "%sIgnoreFailure", head);
        if (json_is_true(ignore))
                form_set(r->part, str_of(name), STR("true"), 0);
        return 0;
}

static int read_executors(struct reader *r)
{
        json_t *all = json_object_get(r->task, "executors"), *one;
        size_t i;
        int e = 0;

        json_array_foreach (all, i, one) {
                char at[32], head[16] = "";

                snprintf(at, sizeof(at), "/executors/%zu", i);
                if (i > 0)
                        snprintf(head, sizeof(head), "Step%zu", i);
                if (e == 0 && !json_is_object(one))
                        e = err_set(r->err, -EINVAL, "%s: an object is expected", at);
                if (e == 0)
                        e = read_executor(r, one, at, head);
        }
        if (json_array_size(all) > 1) {
                char count[24];

                snprintf(count, sizeof(count), "%zu", json_array_size(all));
                form_set(r->part, STR("StepCount"), str_of(count), 0);
        }
        return e;
}

/* ---- the whole task */

static int no_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg, (void)path, (void)ret;
        return -EACCES;
}

static int no_glob(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                   void *to)
{
        (void)arg, (void)pattern, (void)want, (void)each, (void)to;
        return -EACCES;
}

static const char *no_variable(void *arg, const char *name)
{
        (void)arg, (void)name;
        return NULL;
}

/* Reads the lines as a submit file; its one part is r->part. */
static int read_lines(struct reader *r, int64_t now_s)
{
        const struct form_world world = {.read_file = no_file,
                                         .glob = no_glob,
                                         .getenv = no_variable,
                                         .run = no_file,
                                         .cwd = "/",
                                         .now_s = now_s};
        size_t work = WORK_MAX;
        const struct condor_options options = {.work = &work};
        struct err why = {""};
        int e;

        buf_addz(&r->lines, "universe = container\ncontainer_image = docker://image\nexecutable = program\n"
                            "transfer_executable = false\ndocker_override_entrypoint = true\n"
                            "should_transfer_files = yes\nwhen_to_transfer_output = ON_SUCCESS\nqueue\n");
        e = condor_parse(&world, "task", buf_view(&r->lines), &options, &r->ret->form, &why);
        if (e < 0)
                return err_set(r->err, e, "/resources: %s", why.text);
        for (size_t i = 0; i < r->ret->form.warning_count; i++)
                json_array_append_new(r->warnings, json_string(r->ret->form.warnings[i].text));
        if (r->ret->form.part_count != 1)
                return err_set(r->err, -EINVAL, "/resources: they make no job");
        r->part = &r->ret->form.parts[0];
        return 0;
}

static void set_mounts(struct reader *r)
{
        BUF_CLEANUP struct buf mounts = {0};

        tes_paths_reduce(&r->paths);
        for (size_t i = 0; i < r->paths.count; i++) {
                const struct tes_path *p = &r->paths.v[i];

                buf_printf(&mounts, "%s" TES_FOLDER "%s%s=%s", mounts.n ? ";" : "", p->path,
                           p->folder ? "/" : "", p->path);
        }
        set_text(r->part, "ContainerMounts", buf_view(&mounts));
}

/* Checks that its length as compact JSON is within the limit of a task. */
static int check_length(const json_t *v, struct err *err)
{
        size_t n = json_dumpb(v, NULL, 0, JSON_COMPACT);

        return n > 0 && n <= TES_TEXT_MAX
                       ? 0
                       : err_set(err, -E2BIG, "a task may have %u KiB, its contents among them",
                                 TES_TEXT_MAX >> 10);
}

static int set_document(struct reader *r)
{
        json_t *kept = json_pack("{s:O, s:O}", "task", r->task, "warnings", r->warnings);
        int e = check_length(kept, r->err);
        char *text = e == 0 ? json_dumps(kept, JSON_COMPACT) : NULL;

        if (text)
                set_text(r->part, TES_ATTRIBUTE, str_of(text));
        free(text);
        json_decref(kept);
        return e;
}

static int set_files(struct reader *r)
{
        int e = read_files(r, "inputs", read_input);

        if (e == 0)
                e = read_files(r, "outputs", read_output);
        if (e == 0)
                e = read_volumes(r);
        if (e < 0)
                return e;
        if (r->ret->content_count) /* the folder of the uploaded contents */
                buf_printf(&r->inputs, "%s" TES_FOLDER, r->inputs.n ? "," : "");
        set_text(r->part, "TransferInput", buf_view(&r->inputs));
        set_text(r->part, "TransferOutput", buf_view(&r->outputs));
        if (r->remaps.n)
                set_text(r->part, "TransferOutputRemaps", buf_view(&r->remaps));
        return 0;
}

static int read_head(struct reader *r)
{
        struct str text;
        json_t *tags, *executors;
        int e = text_member(r, r->task, "", "name", &text);

        if (e == 0 && text.n)
                set_text(r->part, "JobBatchName", str_head(text, 200));
        if (e == 0)
                e = text_member(r, r->task, "", "description", &text);
        if (e == 0)
                e = map_member(r, r->task, "", "tags", &tags);
        if (e == 0)
                e = member(r, r->task, "", "executors", JSON_ARRAY, &executors);
        if (e == 0 && json_array_size(executors) == 0)
                e = err_set(r->err, -EINVAL, "/executors: at least one is expected");
        if (e == 0 && json_array_size(executors) > TES_EXECUTORS_MAX)
                e = err_set(r->err, -E2BIG, "/executors: there may be %u of them", TES_EXECUTORS_MAX);
        return e;
}

int tes_read(const json_t *task, int64_t now_s, struct tes_task *ret, struct err *err)
{
        static const char *const servers[] = {"id", "state", "logs", "creation_time"};
        struct reader r = {.ret = ret, .err = err, .warnings = json_array()};
        int e;

        *ret = (struct tes_task){0};
        form_init(&ret->form);
        if (!json_is_object(task)) {
                reader_deinit(&r);
                return err_set(err, -EINVAL, "a task is an object");
        }
        e = check_length(task, err); /* before anything is allocated for its content */
        if (e < 0) {
                reader_deinit(&r);
                return e;
        }
        r.task = json_deep_copy(task);
        for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++)
                json_object_del(r.task, servers[i]);
        ret->task = json_incref(r.task);
        ret->contents =
                mem_array(NULL, json_array_size(json_object_get(task, "inputs")) + 1, sizeof(*ret->contents));
        e = read_resources(&r);
        if (e == 0)
                e = read_lines(&r, now_s);
        if (e == 0)
                e = read_head(&r);
        if (e == 0)
                e = read_executors(&r);
        if (e == 0)
                e = set_files(&r);
        if (e == 0) {
                set_mounts(&r);
                form_set(r.part, STR("StreamsInSandbox"), STR("true"), 0);
                /* nobody would release it, so a held task is removed and thus fails */
                form_set(r.part, STR("PeriodicRemove"), STR("JobStatus == 5 && HoldReasonCode =!= 1"), 0);
                form_set(r.part, STR("PeriodicRemoveReason"), STR("strcat(\"" TES_HELD "\", HoldReason)"), 0);
                e = set_document(&r);
        }
        reader_deinit(&r);
        return e;
}

void tes_task_deinit(struct tes_task *t)
{
        for (size_t i = 0; i < t->content_count; i++)
                free(t->contents[i].name);
        free(t->contents);
        json_decref(t->task);
        form_deinit(&t->form);
}
