/* The schema of each route's body is looked up once, when the server starts. The path of a member is
 * written out only for an error. */
#include "server/calls/body.h"

#include <assert.h>
#include <errno.h>

#include "base/buf.h"
#include "base/mem.h"
#include "server/calls/openapi.h"
#include "server/calls/route.h"

#define DEPTH_MAX 16u /* more levels of "$ref" mean a circle in the schemas */

struct bodies {
        json_t *document;
        const struct route *routes;
        const json_t **schemas; /* of each route; NULL: the route has no JSON body */
};

static const char *method_key(enum http_method m)
{
        switch (m) {
        case HTTP_POST: return "post";
        case HTTP_PUT: return "put";
        case HTTP_DELETE: return "delete";
        default: return "get";
        }
}

/* Returns the member of a member of `o` that the keys name, outermost first; NULL ends the keys. NULL:
 * there is none. */
static const json_t *within(const json_t *o, const char *const *keys)
{
        for (; o && *keys; keys++)
                o = json_object_get(o, *keys);
        return o;
}

/* Follows "$ref": "#/components/schemas/NAME". */
static const json_t *resolved(const struct bodies *b, const json_t *schema)
{
        static const char prefix[] = "#/components/schemas/";
        const char *ref = json_string_value(json_object_get(schema, "$ref"));

        if (!ref)
                return schema;
        assert(strncmp(ref, prefix, sizeof(prefix) - 1) == 0);
        return within(b->document,
                      (const char *const[]){"components", "schemas", ref + sizeof(prefix) - 1, NULL});
}

struct bodies *bodies_new(const struct route *routes, size_t count)
{
        struct bodies *b = mem_new(struct bodies);

        b->document = json_loadb(openapi_text, openapi_size, 0, NULL);
        assert(b->document);
        b->routes = routes;
        b->schemas = mem_zalloc(count * sizeof(*b->schemas));
        for (size_t i = 0; i < count; i++) {
                const struct route *r = &routes[i];
                BUF_CLEANUP struct buf path = {0};

                for (const char *p = r->path; *p; p++)
                        if (*p != '+')
                                buf_char(&path, *p);
                b->schemas[i] = within(b->document,
                                       (const char *const[]){"paths", buf_z(&path), method_key(r->method),
                                                             "requestBody", "content", "application/json",
                                                             "schema", NULL});
        }
        return b;
}

void bodies_free(struct bodies *b)
{
        if (!b)
                return;
        json_decref(b->document);
        free(b->schemas);
        free(b);
}

/* ---- checks */

struct place {                  /* where a value is within the body */
        const struct place *in; /* NULL: the value is the body itself */
        const char *key;        /* NULL: the value is a member of a list */
        size_t index;
};

static void print_place(struct buf *out, const struct place *p)
{
        if (!p->in)
                return;
        print_place(out, p->in);
        if (p->key)
                buf_printf(out, "%s%s", p->in->in ? "." : "", p->key);
        else
                buf_printf(out, "[%zu]", p->index);
}

static int wrong(const struct place *p, struct err *err, const char *what)
{
        BUF_CLEANUP struct buf where = {.max = 256};

        print_place(&where, p);
        return err_set(err, -EINVAL, "\"%s\" must %s", buf_z(&where), what);
}

static const struct {
        const char *name, *words;
} types[] = {
        [JSON_OBJECT] = {"object", "an object"},     [JSON_ARRAY] = {"array", "a list"},
        [JSON_STRING] = {"string", "a string"},      [JSON_INTEGER] = {"integer", "an integer"},
        [JSON_REAL] = {"number", "a number"},        [JSON_TRUE] = {"boolean", "true or false"},
        [JSON_FALSE] = {"boolean", "true or false"}, [JSON_NULL] = {"null", "null"},
};

static int check_type(const struct place *p, const char *want, const json_t *v, struct err *err)
{
        json_type is = json_typeof(v);
        BUF_CLEANUP struct buf what = {0};

        if (strcmp(types[is].name, want) == 0 || (is == JSON_INTEGER && strcmp(want, "number") == 0))
                return 0;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                if (strcmp(types[i].name, want) == 0) {
                        buf_printf(&what, "be %s, and is %s", types[i].words, types[is].words);
                        return wrong(p, err, buf_z(&what));
                }
        abort(); /* the document names a type that JSON does not have */
}

static int check_range(const struct place *p, const json_t *schema, const json_t *v, struct err *err)
{
        const json_t *least = json_object_get(schema, "minimum"), *most = json_object_get(schema, "maximum");
        BUF_CLEANUP struct buf what = {0};

        if (least && json_number_value(v) < json_number_value(least))
                buf_printf(&what, "be at least %.0f", json_number_value(least));
        else if (most && json_number_value(v) > json_number_value(most))
                buf_printf(&what, "be at most %.0f", json_number_value(most));
        return what.n ? wrong(p, err, buf_z(&what)) : 0;
}

static int check_value(const struct bodies *b, const json_t *schema, const struct place *p, const json_t *v,
                       unsigned depth, struct err *err);

static int check_list(const struct bodies *b, const json_t *schema, const struct place *p, const json_t *v,
                      unsigned depth, struct err *err)
{
        const json_t *items = json_object_get(schema, "items"), *most = json_object_get(schema, "maxItems");
        BUF_CLEANUP struct buf what = {0};
        int r = 0;

        if (most && json_array_size(v) > (size_t)json_integer_value(most)) {
                buf_printf(&what, "have at most %lld members", (long long)json_integer_value(most));
                return wrong(p, err, buf_z(&what));
        }
        for (size_t i = 0; r == 0 && items && i < json_array_size(v); i++)
                r = check_value(b, items, &(struct place){p, NULL, i}, json_array_get(v, i), depth, err);
        return r;
}

/* A member without a schema of its own has that of "additionalProperties", as the attributes of a part do. */
static int check_object(const struct bodies *b, const json_t *schema, const struct place *p, const json_t *v,
                        unsigned depth, struct err *err)
{
        const json_t *properties = json_object_get(schema, "properties");
        const json_t *others = json_object_get(schema, "additionalProperties");
        json_t *object = (json_t *)v, *member;
        const char *key;
        int r = 0;

        json_object_foreach (object, key, member) {
                const json_t *one = json_object_get(properties, key);

                if (!one && json_is_object(others))
                        one = others;
                if (one && r == 0)
                        r = check_value(b, one, &(struct place){p, key, 0}, member, depth, err);
        }
        return r;
}

static int check_value(const struct bodies *b, const json_t *schema, const struct place *p, const json_t *v,
                       unsigned depth, struct err *err)
{
        const char *type;
        int r;

        assert(depth < DEPTH_MAX);
        schema = resolved(b, schema);
        type = json_string_value(json_object_get(schema, "type"));
        r = type ? check_type(p, type, v, err) : 0;
        if (r != 0)
                return r;
        switch (json_typeof(v)) {
        case JSON_OBJECT: return check_object(b, schema, p, v, depth + 1, err);
        case JSON_ARRAY: return check_list(b, schema, p, v, depth + 1, err);
        case JSON_INTEGER:
        case JSON_REAL: return check_range(p, schema, v, err);
        default: return 0;
        }
}

int body_check(const struct bodies *b, const struct route *r, const json_t *body, struct err *err)
{
        const json_t *schema = b->schemas[r - b->routes];

        return schema ? check_value(b, schema, &(struct place){0}, body, 0, err) : 0;
}
