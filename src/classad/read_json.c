/* jansson reads one object at a time, told not to look behind it; the array around them is ours. Objects that
 * name an attribute twice are taken as the language does: the last one counts. */
#include <jansson.h>

#include "classad/build.h"
#include "classad/lex.h"
#include "classad/read.h"

static int at_position(const struct json_reader *j, size_t at, int code, struct err *err)
{
        const struct lex lx = {.start = j->text.p};
        unsigned line, column;

        lex_position(&lx, j->text.p + (at < j->text.n ? at : j->text.n), &line, &column);
        return err_prefix(err, code, "line %u, column %u", line, column);
}

static int fail_json(const struct json_reader *j, struct err *err, const char *what)
{
        err_set(err, CLASSAD_SYNTAX, "%s", what);
        return at_position(j, j->at, CLASSAD_SYNTAX, err);
}

static int json_thing(struct build *b, const json_t *v, unsigned depth, uint32_t *ret, struct err *err);

static int json_read_list(struct build *b, const json_t *v, unsigned depth, uint32_t *ret, struct err *err)
{
        size_t mark = build_list_begin(b);
        uint32_t at;
        int r;

        for (size_t i = 0; i < json_array_size(v); i++) {
                r = json_thing(b, json_array_get(v, i), depth, &at, err);
                if (r == 0)
                        r = build_member(b, at, err);
                if (r)
                        return r;
        }
        return build_list_end(b, mark, ret, err);
}

/* The attributes of an object, onto the stack. */
static int json_attributes(struct build *b, const json_t *v, size_t mark, unsigned depth, struct err *err)
{
        const json_t *object = v;
        const char *key;
        json_t *value;
        struct entry name;
        uint32_t at;
        int r;

        json_object_foreach ((json_t *)object, key, value) {
                r = build_name(b, str_of(key), &name, err);
                if (r == 0)
                        r = json_thing(b, value, depth, &at, err);
                if (r && depth == 1 && *key)
                        return err_prefix(err, r, "attribute %s", key);
                if (r == 0)
                        r = build_attribute(b, mark, &name, at, err);
                if (r)
                        return r;
        }
        return 0;
}

static int text(struct build *b, struct str s, uint32_t *ret, struct err *err)
{
        if (str_istarts(s, STR("/Expr(")) && str_ends(s, STR(")/"))) {
                int r = build_expr(b, str_make(s.p + 6, s.n - 8), ret, err);

                return r ? err_prefix(err, r, "in its expression") : 0;
        }
        return build_value(b, &(struct value){.type = VALUE_STRING, .string = s}, ret, err);
}

static int json_thing(struct build *b, const json_t *v, unsigned depth, uint32_t *ret, struct err *err)
{
        struct value value = value_undefined();
        size_t mark = build_ad_begin(b);
        int r;

        if (depth >= CLASSAD_DEPTH_MAX)
                return err_set(err, CLASSAD_TOO_DEEP, "nested too deep (the limit is %d)", CLASSAD_DEPTH_MAX);
        switch (json_typeof(v)) {
        case JSON_OBJECT:
                r = json_attributes(b, v, mark, depth + 1, err);
                return r ? r : build_ad_end(b, mark, ret, err);
        case JSON_ARRAY: return json_read_list(b, v, depth + 1, ret, err);
        case JSON_STRING: return text(b, str_make(json_string_value(v), json_string_length(v)), ret, err);
        case JSON_INTEGER: value = value_integer(json_integer_value(v)); break;
        case JSON_REAL: value = value_real(json_real_value(v)); break;
        case JSON_TRUE: value = value_boolean(true); break;
        case JSON_FALSE: value = value_boolean(false); break;
        default: break; /* null */
        }
        return build_value(b, &value, ret, err);
}

static int object(struct json_reader *j, struct ad **ret_ad, struct err *err)
{
        struct str rest = str_skip(j->text, j->at);
        bool cut = rest.n > CLASSAD_TEXT_MAX;
        struct build b;
        json_error_t error;
        json_t *doc;
        int r;

        if (cut)
                rest.n = CLASSAD_TEXT_MAX;
        doc = json_loadb(rest.p, rest.n, JSON_DISABLE_EOF_CHECK, &error);
        if (!doc && cut && (size_t)error.position >= rest.n) {
                r = err_set(err, CLASSAD_TOO_BIG, "the text is longer than %u bytes", CLASSAD_TEXT_MAX);
                return at_position(j, j->at, r, err);
        }
        if (!doc) {
                err_set(err, CLASSAD_SYNTAX, "%s", error.text);
                return at_position(j, j->at + (size_t)error.position, CLASSAD_SYNTAX, err);
        }
        build_init(&b, j->symbols);
        r = json_attributes(&b, doc, 0, 1, err);
        if (r) {
                r = at_position(j, j->at, r, err);
        } else {
                *ret_ad = build_finish(&b);
                j->at += (size_t)error.position;
        }
        build_deinit(&b);
        json_decref(doc);
        return r;
}

static char json_peek(struct json_reader *j)
{
        while (j->at < j->text.n && strchr(" \t\r\n", j->text.p[j->at]) && j->text.p[j->at])
                j->at++;
        return j->at < j->text.n ? j->text.p[j->at] : '\0';
}

int json_reader_next(struct json_reader *j, struct ad **ret_ad, struct err *err)
{
        char c;

        while ((c = json_peek(j)) == (j->in_array ? ']' : '[')) {
                j->in_array = !j->in_array;
                j->behind_ad = false;
                j->at++;
        }
        if (j->in_array && j->behind_ad) {
                if (c != ',')
                        return fail_json(j, err,
                                         j->at < j->text.n ? "',' or ']' should stand behind an ad"
                                                           : "the text ends within an array");
                j->at++;
                c = json_peek(j);
        }
        j->behind_ad = true;
        if (c == '{')
                return object(j, ret_ad, err);
        if (j->at < j->text.n || j->in_array)
                return fail_json(j, err, "an object { ... } should stand here");
        *ret_ad = NULL;
        return 0;
}
