/* A dataset is a map with the attributes that templates ask of it (ext, name, file_name, metadata) and is
 * written as the path that its file has where the job runs. */
#include "base/mem.h"
#include "jdl/galaxy/tool.h"

/* A value of a dataset's metadata, which is any JSON. */
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

/* A file that the job gets; its name beneath the job's folder in *ret_name. */
static int add_file(struct tool *t, const struct xml *x, struct str path, struct str *ret_name,
                    struct err *err)
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

/* The text under the first of these names that has one; NULL: none has. */
static const char *string_of(json_t *object, const char *const *keys)
{
        for (; *keys; keys++)
                if (json_is_string(json_object_get(object, *keys)))
                        return json_string_value(json_object_get(object, *keys));
        return NULL;
}

int tool_dataset(struct tool *t, const struct xml *x, json_t *given, struct datum **ret, struct err *err)
{
        static const char *const paths[] = {"path", "location", "url", "file", NULL},
                                 *const exts[] = {"ext", "format", "extension", "ftype", NULL},
                                 *const names[] = {"name", "element_identifier", NULL};
        const char *path = json_is_string(given) ? json_string_value(given) : string_of(given, paths), *ext,
                   *label;
        struct datum *d = datum_new(&t->arena, DATUM_MAP);
        BUF_CLEANUP struct buf written = {0};
        struct str file, format = tool_attribute(x, "format", "data"), first;
        int rc;

        if (!path)
                return tool_fail(x, err,
                                 "the value of " STR_FMT " is a file: \"PATH\", or {\"path\": \"PATH\"}",
                                 STR_ARG(tool_name(x)));
        rc = add_file(t, x, str_of(path), &file, err);
        if (rc != 0)
                return rc;
        str_cut(&format, ',', &first);
        ext = string_of(given, exts);
        if (!ext && str_rfind(file, '.') > 0)
                put_text(t, d, "ext", str_skip(file, (size_t)str_rfind(file, '.') + 1));
        else
                put_text(t, d, "ext", ext ? str_of(ext) : first);
        datum_put(&t->arena, d, STR("extension"), datum_get(d, STR("ext")));
        label = string_of(given, names);
        put_text(t, d, "name", label ? str_of(label) : file);
        put_text(t, d, "element_identifier", label ? str_of(label) : file);
        buf_printf(&written, TOOL_BOX "/" STR_FMT, STR_ARG(file));
        put_text(t, d, "file_name", buf_view(&written));
        datum_put(&t->arena, d, STR("metadata"),
                  json_object_get(given, "metadata")
                          ? from_json(&t->arena, json_object_get(given, "metadata"), 0)
                          : datum_new(&t->arena, DATUM_MAP));
        if (datum_get(datum_get(d, STR("metadata")), STR("dbkey")))
                datum_put(&t->arena, d, STR("dbkey"), datum_get(datum_get(d, STR("metadata")), STR("dbkey")));
        else
                put_text(t, d, "dbkey", STR("?"));
        d->written = true;
        d->text = arena_str(&t->arena, buf_view(&written));
        *ret = d;
        return 0;
}
