/* A dataset is a map with the attributes that templates use (ext, name, file_name, metadata), and is
 * written as the path that its file has where the job runs. A folder of extra files and the files of its
 * metadata are next to it. */
#include "base/mem.h"
#include "jdl/galaxy/sanitizer.h"
#include "jdl/galaxy/tool.h"

static const char *const paths_of_files[] = {"path", "location", "url", "file", NULL};

/* Converts a value of a dataset's metadata, which may be any JSON. */
static struct datum *from_json(struct arena *a, json_t *v, unsigned depth)
{
        BUF_CLEANUP struct buf b = {.max = EXPRESSION_TEXT_MAX};
        struct datum *d;
        const char *key;
        json_t *one;
        size_t i;

        if (json_is_integer(v))
                return datum_int(a, json_integer_value(v));
        if (json_is_boolean(v))
                return datum_bool(a, json_is_true(v));
        if (tool_word(v, &b))
                return datum_text(a, buf_view(&b));
        d = datum_new(a, json_is_array(v)                               ? DATUM_LIST
                         : json_is_object(v) && depth < DATUM_DEPTH_MAX ? DATUM_MAP
                                                                        : DATUM_NONE);
        json_array_foreach (depth < DATUM_DEPTH_MAX ? v : NULL, i, one) {
                datum_add(a, d, from_json(a, one, depth + 1));
        }
        json_object_foreach (d->kind == DATUM_MAP ? v : NULL, key, one) {
                datum_put(a, d, str_of(key), from_json(a, one, depth + 1));
        }
        return d;
}

static struct str base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

int tool_add_file(struct tool *t, const struct xml *x, struct str path, struct str *ret_name, struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct str name;

        if (str_starts(path, STR("file://")))
                path = str_skip(path, 7);
        if (str_search(path, STR("://")) < 0 && !str_starts(path, STR("/")))
                buf_printf(&b, STR_FMT "/", STR_ARG(t->params_dir));
        buf_str(&b, path);
        name = base_name(path);
        if (!name.n || str_find(path, ',') >= 0 || str_find(path, '\n') >= 0 || str_find(name, '\'') >= 0)
                return tool_fail(x, err, "'" STR_FMT "' cannot be the path of an input", STR_ARG(path));
        for (size_t i = 0; i < t->file_count; i++) {
                if (str_eq(t->files[i], buf_view(&b))) {
                        *ret_name = base_name(t->files[i]);
                        return 0;
                }
                if (str_eq(base_name(t->files[i]), name))
                        return tool_fail(x, err,
                                         "two inputs have the name " STR_FMT
                                         " in the job's folder: rename one",
                                         STR_ARG(name));
        }
        if (t->file_count == TOOL_DATA_MAX)
                return tool_fail(x, err, "there are more than %u input files", TOOL_DATA_MAX);
        MEM_GROW(t->files, t->file_cap, t->file_count + 1);
        t->files[t->file_count] = arena_str(&t->arena, buf_view(&b));
        *ret_name = base_name(t->files[t->file_count++]);
        return 0;
}

static void put_text(struct tool *t, struct datum *map, const char *key, struct str text)
{
        datum_put(&t->arena, map, str_of(key), datum_text(&t->arena, text));
}

/* Returns the first of the members with these names that is a text; NULL: there is none. */
static const char *string_of(json_t *object, const char *const *keys)
{
        for (; *keys; keys++)
                if (json_is_string(json_object_get(object, *keys)))
                        return json_string_value(json_object_get(object, *keys));
        return NULL;
}

/* A metadata value is any JSON, except {"path": "FILE"}, which is a file that is sent with the job. */
static int read_metadata(struct tool *t, const struct xml *x, json_t *given, struct datum *to,
                         struct err *err)
{
        static const char *const paths[] = {"path", "location", NULL};
        const char *key;
        json_t *one;

        json_object_foreach (given, key, one) {
                const char *path = string_of(one, paths);
                BUF_CLEANUP struct buf written = {0};
                struct str file;
                int rc = path ? tool_add_file(t, x, str_of(path), &file, err) : 0;

                if (rc != 0)
                        return rc;
                if (path)
                        buf_printf(&written, TOOL_BOX "/" STR_FMT, STR_ARG(file));
                datum_put(&t->arena, to, str_of(key),
                          path ? datum_text(&t->arena, buf_view(&written)) : from_json(&t->arena, one, 0));
        }
        return 0;
}

/* Adds the folder of a dataset of several files. Returns 0 also if there is none. */
static int read_extra_files(struct tool *t, const struct xml *x, json_t *given, struct datum *to,
                            struct err *err)
{
        static const char *const keys[] = {"extra_files", NULL};
        const char *path = string_of(given, keys);
        BUF_CLEANUP struct buf written = {0};
        struct str folder = str_of(path), name;
        int rc;

        if (!path)
                return 0;
        while (folder.n > 1 && folder.p[folder.n - 1] == '/')
                folder.n--;
        rc = tool_add_file(t, x, folder, &name, err);
        if (rc != 0)
                return rc;
        buf_printf(&written, TOOL_BOX "/" STR_FMT, STR_ARG(name));
        put_text(t, to, "extra_files_path", buf_view(&written));
        put_text(t, to, "files_path", buf_view(&written));
        return 0;
}

/* Sets the names. The name is sanitized as in Galaxy; the identifier from a collection is not. */
static int put_names(struct tool *t, json_t *given, struct str file, struct datum *to, struct err *err)
{
        static const char *const names[] = {"name", "element_identifier", "identifier", NULL},
                                 *const identifiers[] = {"element_identifier", "identifier", NULL};
        static const struct xml plain = {.name = (char *)"param"};
        const char *label = string_of(given, names), *identifier = string_of(given, identifiers);
        BUF_CLEANUP struct buf name = {.max = EXPRESSION_TEXT_MAX};
        int rc = sanitizer_apply(&plain, label ? str_of(label) : file, &name, err);

        put_text(t, to, "name", buf_view(&name));
        put_text(t, to, "element_identifier", identifier ? str_of(identifier) : buf_view(&name));
        return rc;
}

static struct str extension(const struct xml *x, json_t *given, struct str file)
{
        static const char *const keys[] = {"ext", "format", "extension", "ftype", NULL};
        const char *ext = string_of(given, keys);
        struct str formats = tool_attribute(x, "format", "data"), first;

        if (!ext && str_rfind(file, '.') > 0)
                return str_skip(file, (size_t)str_rfind(file, '.') + 1);
        str_cut(&formats, ',', &first);
        return ext ? str_of(ext) : first;
}

bool tool_is_file(json_t *given)
{
        return json_is_string(given) || string_of(given, paths_of_files);
}

int tool_dataset(struct tool *t, const struct xml *x, json_t *given, struct datum **ret, struct err *err)
{
        const char *path =
                json_is_string(given) ? json_string_value(given) : string_of(given, paths_of_files);
        struct datum *d = datum_new(&t->arena, DATUM_MAP), *metadata = datum_new(&t->arena, DATUM_MAP);
        BUF_CLEANUP struct buf written = {0};
        struct str file;
        int rc;

        if (!path)
                return tool_fail(x, err,
                                 "the value of " STR_FMT " is a file: \"PATH\", or {\"path\": \"PATH\"}",
                                 STR_ARG(tool_name(x)));
        rc = tool_add_file(t, x, str_of(path), &file, err);
        if (rc == 0)
                rc = read_metadata(t, x, json_object_get(given, "metadata"), metadata, err);
        if (rc == 0)
                rc = read_extra_files(t, x, given, d, err);
        if (rc == 0)
                rc = put_names(t, given, file, d, err);
        if (rc != 0)
                return rc;
        put_text(t, d, "ext", extension(x, given, file));
        datum_put(&t->arena, d, STR("extension"), datum_get(d, STR("ext")));
        datum_put(&t->arena, d, STR("file_ext"), datum_get(d, STR("ext")));
        datum_put(&t->arena, d, STR("is_collection"), datum_bool(&t->arena, false));
        buf_printf(&written, TOOL_BOX "/" STR_FMT, STR_ARG(file));
        put_text(t, d, "file_name", buf_view(&written));
        datum_put(&t->arena, d, STR("metadata"), metadata);
        if (datum_get(metadata, STR("dbkey")))
                datum_put(&t->arena, d, STR("dbkey"), datum_get(metadata, STR("dbkey")));
        else
                put_text(t, d, "dbkey", STR("?"));
        d->written = true;
        d->text = arena_str(&t->arena, buf_view(&written));
        *ret = d;
        return 0;
}
