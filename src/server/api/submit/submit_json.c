/* Attributes that the server decides (the owner, the numbers, the time) are removed. submission_check
 * checks structure and limits, and the core parses the expressions. */
#include "server/api/submit/submit_json.h"

#include <errno.h>

#include "base/format/hex.h"
#include "base/map.h"
#include "base/system/uuid.h"
#include "classad/print.h"
#include "core/model/changes.h"
#include "server/access/origin.h"
#include "server/config/presets.h"

#define CHANGES_MAX 100u /* number of attributes */

/* The core sets these for each job, whatever a submitter says. DroverOutputs names objects of the spool,
 * which the owner of an ended job may read. */
static const char *const ours[] = {"ClusterId",   "ProcId",    "Owner",     "User",         "QDate",
                                   "GlobalJobId", "JobStatus", "DroverLog", "DroverOutputs"};

static struct str text_of(const json_t *v)
{
        return str_make(json_string_value(v), json_string_length(v));
}

static bool is_ours(struct str name)
{
        for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
                if (str_ieqz(name, ours[i]))
                        return true;
        return false;
}

/* Reads n bytes from hexadecimal digits; skips dashes. */
static bool read_hex(struct str text, unsigned char *to, size_t n)
{
        size_t have = 0;

        for (size_t i = 0; i < text.n; i++) {
                int d = hex_digit(text.p[i]);

                if (text.p[i] == '-')
                        continue;
                if (d < 0 || have == n * 2)
                        return false;
                to[have / 2] = (unsigned char)(have % 2 ? to[have / 2] << 4 | d : d);
                have++;
        }
        return have == n * 2;
}

/* Returns a map of the names in the list, for map_free; NULL: there are none. */
static struct map *late_names(json_t *late)
{
        struct map *names = json_array_size(late) ? map_new_nocase() : NULL;
        json_t *v;
        size_t i;

        json_array_foreach (late, i, v)
                if (json_is_string(v))
                        map_put(names, text_of(v), v);
        return names;
}

static int read_attributes(const json_t *part, struct submission_part *p, size_t number, struct err *err)
{
        json_t *attributes = json_object_get(part, "attributes"), *late = json_object_get(part, "late"), *v;
        struct map *names;
        const char *key;
        int r = 0;

        if (!json_is_object(attributes))
                return err_set(err, -EINVAL, "part %zu has no \"attributes\"", number);
        if (late && !json_is_array(late))
                return err_set(err, -EINVAL, "part %zu: \"late\" must be a list of names", number);
        if (json_object_size(attributes) > SUBMISSION_ATTRIBUTES_MAX)
                return err_set(err, -E2BIG, "part %zu has more than %u attributes", number,
                               SUBMISSION_ATTRIBUTES_MAX);
        if (json_array_size(late) > SUBMISSION_ATTRIBUTES_MAX)
                return err_set(err, -E2BIG, "part %zu: \"late\" has more than %u names", number,
                               SUBMISSION_ATTRIBUTES_MAX);
        names = late_names(late);
        json_object_foreach (attributes, key, v) {
                struct str name = str_of(key);

                if (!json_is_string(v))
                        r = err_set(err, -EINVAL, "part %zu: %s must be a string that holds an expression",
                                    number, key);
                else if (!is_ours(name))
                        submission_add_attribute(p, name, text_of(v), names && map_get(names, name));
                if (r != 0)
                        break;
        }
        map_free(names);
        return r;
}

static bool variable_ok(struct str name)
{
        if (name.n == 0 || name.n > 128)
                return false;
        for (size_t i = 0; i < name.n; i++)
                if (name.p[i] <= ' ' || name.p[i] == 0x7f)
                        return false;
        return true;
}

static int read_variables(const json_t *part, struct submission_part *p, size_t number, struct err *err)
{
        json_t *list = json_object_get(part, "variables"), *v;
        size_t i;

        if (list && !json_is_array(list))
                return err_set(err, -EINVAL, "part %zu: \"variables\" must be a list of names", number);
        if (json_array_size(list) > SUBMISSION_VARIABLES_MAX)
                return err_set(err, -E2BIG, "part %zu has more than %u item variables", number,
                               SUBMISSION_VARIABLES_MAX);
        json_array_foreach (list, i, v) {
                if (!json_is_string(v) || !variable_ok(text_of(v)))
                        return err_set(err, -EINVAL, "part %zu: a variable's name must be a word", number);
                submission_add_variable(p, text_of(v));
        }
        return 0;
}

static int read_count(const json_t *part, const char *key, uint64_t *ret, size_t number, struct err *err)
{
        const json_t *v = json_object_get(part, key);

        if (!v)
                return 0;
        if (!json_is_integer(v) || json_integer_value(v) < 0)
                return err_set(err, -EINVAL, "part %zu: \"%s\" must be a number", number, key);
        *ret = (uint64_t)json_integer_value(v);
        return 0;
}

uint64_t submit_json_rows(struct str items)
{
        uint64_t n = 0;

        for (size_t i = 0; i < items.n; i++)
                n += items.p[i] == '\n';
        return n;
}

static int read_part(const json_t *part, struct submission *s, const char **upload, size_t number,
                     struct err *err)
{
        struct submission_part *p = submission_add_part(s);
        const json_t *items = json_object_get(part, "items"), *from = json_object_get(part, "items_upload");
        int r;

        if (!json_is_object(part))
                return err_set(err, -EINVAL, "part %zu is not an object", number);
        r = read_attributes(part, p, number, err);
        if (r == 0)
                r = read_variables(part, p, number, err);
        if (r != 0)
                return r;
        if (items && !json_is_string(items))
                return err_set(err, -EINVAL, "part %zu: \"items\" must be a string", number);
        if (items)
                p->items = text_of(items);
        if (json_is_string(from))
                *upload = json_string_value(from);
        p->rows = p->variable_count ? submit_json_rows(p->items) : 1;
        r = read_count(part, "rows", &p->rows, number, err);
        return r ? r : read_count(part, "steps", &p->steps, number, err);
}

static bool file_name_ok(struct str name)
{
        return name.n > 0 && name.n < 4096 && name.p[0] != '/' && !str_eqz(name, ".") &&
               !str_eqz(name, "..") && str_search(name, STR("../")) < 0 && !memchr(name.p, '\0', name.n);
}

static int read_spooled(const json_t *doc, struct submission *s, struct err *err)
{
        json_t *list = json_object_get(doc, "spooled"), *v;
        size_t i;

        if (list && !json_is_array(list))
                return err_set(err, -EINVAL, "\"spooled\" must be a list of files");
        if (json_array_size(list) > 100000)
                return err_set(err, -E2BIG, "more than 100000 input files in one request");
        json_array_foreach (list, i, v) {
                struct submission_file *f = submission_add_file(s);
                const json_t *name = json_object_get(v, "name"), *hash = json_object_get(v, "sha256");
                const json_t *size = json_object_get(v, "size");

                if (!json_is_string(name) || !file_name_ok(text_of(name)))
                        return err_set(err, -EINVAL, "input file %zu has no usable name", i);
                if (!json_is_string(hash) || !read_hex(text_of(hash), f->sha256, 32))
                        return err_set(err, -EINVAL, "input file %zu has no \"sha256\" of 64 digits", i);
                f->name = text_of(name);
                f->size = json_is_integer(size) && json_integer_value(size) > 0
                                  ? (uint64_t)json_integer_value(size)
                                  : 0;
                f->executable = json_is_true(json_object_get(v, "executable"));
        }
        return 0;
}

int submit_json_uuid(const json_t *doc, struct submission *s, struct err *err)
{
        const json_t *uuid = json_object_get(doc, "uuid");

        if (!json_is_string(uuid) || !uuid_valid(text_of(uuid)) || !read_hex(text_of(uuid), s->uuid, 16))
                return err_set(err, -EINVAL, "\"uuid\" must be a UUID that the submitter has made up");
        return 0;
}

int submit_json_changes(const json_t *doc, struct buf *out, struct err *err)
{
        json_t *attributes = json_object_get(doc, "attributes"), *late = json_object_get(doc, "late"), *text;
        struct map *names;
        const char *key;
        int r = 0;

        if (!json_is_object(attributes) || json_object_size(attributes) == 0 ||
            json_object_size(attributes) > CHANGES_MAX)
                return err_set(err, -EINVAL, "\"attributes\" must have 1 to %u attributes that are changed",
                               CHANGES_MAX);
        names = late_names(late);
        json_object_foreach (attributes, key, text) {
                if (!json_is_string(text) || json_string_length(text) > CHANGES_BYTES_MAX) {
                        r = err_set(err, -EINVAL, "%.64s must be an expression of at most %u KiB", key,
                                    CHANGES_BYTES_MAX >> 10);
                        break;
                }
                if (is_ours(str_of(key))) {
                        r = err_set(err, -EINVAL, "%s cannot be changed: the server says what it is", key);
                        break;
                }
                if (preset_is_attribute(str_of(key))) {
                        r = err_set(
                                err, -EINVAL,
                                "%s cannot be changed: what it stands for was put into the job at the submit",
                                key);
                        break;
                }
                changes_add(out, str_of(key), names && map_get(names, str_of(key)), text_of(text));
        }
        map_free(names);
        return r;
}

static int read_all(const json_t *doc, struct submission *s, const char ***uploads, struct err *err)
{
        json_t *parts = json_object_get(doc, "parts"), *part;
        const json_t *edges = json_object_get(doc, "edges");
        size_t i;
        int r = submit_json_uuid(doc, s, err);

        if (r != 0)
                return r;
        if (!json_is_array(parts))
                return err_set(err, -EINVAL, "\"parts\" must be a list");
        if (json_array_size(parts) > SUBMISSION_PARTS_MAX)
                return err_set(err, -E2BIG, "more than %u parts in one request", SUBMISSION_PARTS_MAX);
        *uploads = mem_zalloc((json_array_size(parts) + 1) * sizeof(**uploads));
        json_array_foreach (parts, i, part) {
                r = read_part(part, s, &(*uploads)[i], i, err);
                if (r != 0)
                        return r;
        }
        s->hold = json_is_true(json_object_get(doc, "hold"));
        if (edges && !json_is_string(edges))
                return err_set(err, -EINVAL, "\"edges\" must be a string, like \"0-9>10;10>11\"");
        if (edges)
                s->edges = text_of(edges);
        r = origin_read(doc, s, err);
        return r ? r : read_spooled(doc, s, err);
}

int submit_json_read(const json_t *doc, struct submission *s, const char ***ret_items_upload, struct err *err)
{
        const char **uploads = NULL;
        int r;

        *s = (struct submission){0};
        r = read_all(doc, s, &uploads, err);
        if (r == 0) {
                *ret_items_upload = uploads;
                return 0;
        }
        submission_deinit(s);
        free(uploads);
        return r;
}

/* ---- parts that the server completes */

#define VALUE_DEPTH_MAX 16

/* Writes a plain value as an expression. Returns false if that is not possible. */
static bool value_text(const json_t *v, unsigned depth, struct buf *out)
{
        json_t *one;
        size_t i;

        switch (json_typeof(v)) {
        case JSON_STRING: print_string(out, text_of(v)); return !memchr(text_of(v).p, '\0', text_of(v).n);
        case JSON_INTEGER: buf_printf(out, "%lld", (long long)json_integer_value(v)); return true;
        case JSON_REAL: buf_printf(out, "%.17g", json_real_value(v)); return true;
        case JSON_TRUE: buf_addz(out, "true"); return true;
        case JSON_FALSE: buf_addz(out, "false"); return true;
        case JSON_NULL: buf_addz(out, "undefined"); return true;
        case JSON_ARRAY: break;
        default: return false;
        }
        if (depth == VALUE_DEPTH_MAX)
                return false;
        buf_char(out, '{');
        json_array_foreach (v, i, one) {
                buf_addz(out, i ? ", " : "");
                if (!value_text(one, depth + 1, out))
                        return false;
        }
        buf_char(out, '}');
        return true;
}

static int complete_part(json_t *part, size_t number, struct err *err)
{
        json_t *values = json_object_get(part, "values"), *attributes = json_object_get(part, "attributes"),
               *v;
        const char *key;

        if (!values)
                return 0;
        if (!json_is_object(values) || (attributes && !json_is_object(attributes)))
                return err_set(err, -EINVAL, "part %zu: \"values\" and \"attributes\" must be objects",
                               number);
        if (!attributes) {
                json_object_set_new(part, "attributes", json_object());
                attributes = json_object_get(part, "attributes");
        }
        json_object_foreach (values, key, v) {
                BUF_CLEANUP struct buf text = {0};

                if (json_object_get(attributes, key))
                        return err_set(err, -EINVAL, "part %zu: %s is in \"values\" and in \"attributes\"",
                                       number, key);
                if (!value_text(v, 0, &text))
                        return err_set(
                                err, -EINVAL,
                                "part %zu: %s must be text, a number, true, false, null or a list of these",
                                number, key);
                json_object_set_new(attributes, key, json_stringn(buf_z(&text), text.n));
        }
        return 0;
}

int submit_json_complete(json_t *doc, struct err *err)
{
        json_t *part;
        size_t i;
        int r = 0;

        if (!json_object_get(doc, "uuid")) {
                char uuid[UUID_TEXT];

                uuid_new(uuid);
                json_object_set_new(doc, "uuid", json_string(uuid));
        }
        json_array_foreach (json_object_get(doc, "parts"), i, part)
                if (r == 0)
                        r = complete_part(part, i, err);
        return r;
}
