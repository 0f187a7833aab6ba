#include "base/format/doc.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/format/quantity.h"
#include "base/mem.h"

#define COMPARED_MAX 50000000u /* some tenths of a second; 10,000 settings side by side are as many */

struct reader {
        yaml_document_t *yaml;
        const char *name;
        char *file; /* the name, as all nodes refer to it */
        unsigned nodes;
        size_t bytes;    /* of words; one that aliases name counts each time */
        size_t compared; /* names of settings, each with those before it */
        struct err *err;
};

static struct str scalar(const yaml_node_t *n)
{
        return str_make((const char *)n->data.scalar.value, n->data.scalar.length);
}

static bool is_empty(const yaml_node_t *n)
{
        struct str s = scalar(n);

        return n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
               (s.n == 0 || str_eqz(s, "~") || str_eqz(s, "null"));
}

static int fail_node(struct reader *r, const yaml_node_t *n, const char *what)
{
        return err_set(r->err, -EINVAL, "%s:%zu: %s", r->name, n->start_mark.line + 1, what);
}

static void node_free(struct doc *d)
{
        const struct doc *next;

        if (!d)
                return;
        for (const struct doc *i = d->first; i; i = next) {
                next = i->next;
                node_free((struct doc *)i);
        }
        free((char *)d->key.p);
        free((char *)d->text.p);
        free(d);
}

static int convert(struct reader *r, int id, unsigned depth, struct doc **ret);

static int convert_map(struct reader *r, const yaml_node_t *n, unsigned depth, struct doc *d)
{
        const struct doc **end = &d->first;

        for (yaml_node_pair_t *p = n->data.mapping.pairs.start; p < n->data.mapping.pairs.top; p++) {
                const yaml_node_t *key = yaml_document_get_node(r->yaml, p->key);
                struct doc *value;
                int code;

                if (key->type != YAML_SCALAR_NODE)
                        return fail_node(r, key, "a setting's name must be a word");
                if ((r->compared += d->count) > COMPARED_MAX)
                        return fail_node(r, key, "there are too many settings side by side");
                for (const struct doc *other = d->first; other; other = other->next)
                        if (str_eq(other->key, scalar(key)))
                                return err_set(r->err, -EINVAL,
                                               "%s:%zu: '" STR_FMT "' is set in line %u already", r->name,
                                               key->start_mark.line + 1, STR_ARG(scalar(key)), other->line);
                code = convert(r, p->value, depth + 1, &value);
                if (code != 0)
                        return code;
                value->key = str_of(str_dupz(scalar(key)));
                value->line = (unsigned)key->start_mark.line + 1;
                *end = value;
                end = &value->next;
                d->count++;
        }
        return 0;
}

static int convert_list(struct reader *r, const yaml_node_t *n, unsigned depth, struct doc *d)
{
        const struct doc **end = &d->first;

        for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
                struct doc *value;
                int code = convert(r, *i, depth + 1, &value);

                if (code != 0)
                        return code;
                *end = value;
                end = &value->next;
                d->count++;
        }
        return 0;
}

static int convert(struct reader *r, int id, unsigned depth, struct doc **ret)
{
        const yaml_node_t *n = yaml_document_get_node(r->yaml, id);
        struct doc *d;
        int code = 0;

        if (depth > DOC_DEPTH_MAX)
                return fail_node(r, n, "this is nested too deep");
        if (++r->nodes > DOC_NODES_MAX)
                return fail_node(r, n, "the file holds too many values");
        if (n->type == YAML_SCALAR_NODE && (r->bytes += scalar(n).n) > DOC_BYTES_MAX)
                return fail_node(r, n, "the file's values are too long");
        d = mem_new(struct doc);
        d->line = (unsigned)n->start_mark.line + 1;
        d->file = r->file;
        switch (n->type) {
        case YAML_MAPPING_NODE:
                d->kind = DOC_MAP;
                code = convert_map(r, n, depth, d);
                break;
        case YAML_SEQUENCE_NODE:
                d->kind = DOC_LIST;
                code = convert_list(r, n, depth, d);
                break;
        default:
                d->kind = DOC_WORD;
                d->empty = is_empty(n);
                d->quoted = n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
                d->text = str_of(str_dupz(d->empty ? STR_NONE : scalar(n)));
                if (d->text.n != (d->empty ? 0 : scalar(n).n))
                        code = fail_node(r, n, "a value holds a NUL byte");
        }
        if (code == 0)
                *ret = d;
        else
                node_free(d);
        return code;
}

/* Plain explanations of libyaml's messages for the most frequent mistakes. */
static const char *meant(const char *problem)
{
        static const char *const words[][2] = {
                {"mapping values are not allowed", "the line is indented too far, or a text with ': ' in it "
                                                   "needs quotes"},
                {"did not find expected key", "the line is indented otherwise than those before it"},
                {"did not find expected '-' indicator",
                 "the line is indented otherwise than those before it"},
                {"could not find expected ':'", "a setting is written `name: value`"},
                {"block sequence entries are not allowed", "a list begins in a line of its own"},
                {"cannot start any token", "a text that begins with such a sign needs quotes"},
                {"unexpected end of stream", "a quote is not closed"},
        };

        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
                if (strstr(problem, words[i][0]))
                        return words[i][1];
        return NULL;
}

static bool begins_with_tab(struct str text, size_t line)
{
        struct str one = STR_NONE;

        for (size_t i = 0; i <= line && str_cut(&text, '\n', &one); i++)
                ;
        for (size_t i = 0; i < one.n && (one.p[i] == ' ' || one.p[i] == '\t'); i++)
                if (one.p[i] == '\t')
                        return true;
        return false;
}

static int not_yaml(const yaml_parser_t *parser, const char *name, struct str text, struct err *err)
{
        const char *problem = parser->problem ? parser->problem : "not YAML";
        const char *what = meant(problem);
        size_t line = parser->problem_mark.line;

        if (parser->error == YAML_READER_ERROR) { /* which has no line */
                for (size_t i = line = 0; i < parser->problem_offset && i < text.n; i++)
                        line += text.p[i] == '\n';
                what = "the file is not in UTF-8, or has signs that cannot be printed";
        }
        if (begins_with_tab(text, line))
                return err_set(err, -EINVAL,
                               "%s:%zu: the line begins with a tab; YAML is indented with blanks", name,
                               line + 1);
        return err_set(err, -EINVAL, "%s:%zu: %s%s%s", name, line + 1, problem, what ? ": " : "",
                       what ? what : "");
}

/* A second document in the file would be dropped without a word. */
static int check_end(yaml_parser_t *parser, const char *name, struct str text, struct err *err)
{
        yaml_document_t more;
        const yaml_node_t *root;
        int code = 0;

        if (!yaml_parser_load(parser, &more))
                return not_yaml(parser, name, text, err);
        root = yaml_document_get_root_node(&more);
        if (root)
                code = err_set(err, -EINVAL, "%s:%zu: a second document begins here", name,
                               root->start_mark.line + 1);
        yaml_document_delete(&more);
        return code;
}

int doc_parse(const char *name, struct str text, struct doc **ret_doc, struct err *err)
{
        yaml_parser_t parser;
        yaml_document_t yaml;
        struct doc *root = NULL;
        int code = 0;

        if (!yaml_parser_initialize(&parser))
                abort();
        yaml_parser_set_input_string(&parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
        if (!yaml_parser_load(&parser, &yaml)) {
                code = not_yaml(&parser, name, text, err);
                yaml_parser_delete(&parser);
                return code;
        }
        if (yaml_document_get_root_node(&yaml)) {
                struct reader r = {.yaml = &yaml, .name = name, .file = mem_dupz(name), .err = err};

                code = convert(&r, 1, 0, &root);
                if (code == 0)
                        code = check_end(&parser, name, text, err);
                if (code != 0 || (root->kind == DOC_WORD && root->empty)) {
                        node_free(root);
                        free(r.file);
                        root = NULL;
                }
        }
        yaml_document_delete(&yaml);
        yaml_parser_delete(&parser);
        if (code == 0)
                *ret_doc = root;
        return code;
}

void doc_free(struct doc *root)
{
        if (root)
                free((char *)root->file);
        node_free(root);
}

const struct doc *doc_get(const struct doc *map, const char *key)
{
        if (!map || map->kind != DOC_MAP)
                return NULL;
        for (const struct doc *d = map->first; d; d = d->next)
                if (str_eqz(d->key, key))
                        return d;
        return NULL;
}

static const char *doc_kind_name(const struct doc *d)
{
        static const char *const names[] = {"word", "list", "map"};

        return names[d->kind];
}

static int bad(const struct doc *d, struct err *err, const char *wanted)
{
        struct str key = d->key.n ? d->key : STR("a value");

        if (d->kind != DOC_WORD)
                err_set(err, -EINVAL, STR_FMT " must be %s, not a %s", STR_ARG(key), wanted,
                        doc_kind_name(d));
        else
                err_set(err, -EINVAL, STR_FMT ": '" STR_FMT "' is not %s", STR_ARG(key), STR_ARG(d->text),
                        wanted);
        return doc_where(err, -EINVAL, d);
}

int doc_text(const struct doc *d, struct str *ret, struct err *err)
{
        if (d->kind != DOC_WORD)
                return bad(d, err, "a word");
        *ret = d->text;
        return 0;
}

int doc_bool(const struct doc *d, bool *ret, struct err *err)
{
        static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};

        for (size_t i = 0; d->kind == DOC_WORD && i < 3; i++)
                if (str_ieqz(d->text, yes[i]) || str_ieqz(d->text, no[i])) {
                        *ret = str_ieqz(d->text, yes[i]);
                        return 0;
                }
        return bad(d, err, "true or false");
}

int doc_count(const struct doc *d, uint64_t *ret, struct err *err)
{
        if (d->kind != DOC_WORD || str_to_u64(d->text, ret) != 0)
                return bad(d, err, "a whole number");
        return 0;
}

int doc_number(const struct doc *d, double *ret, struct err *err)
{
        double v;

        if (d->kind != DOC_WORD || str_to_double(d->text, &v) != 0 || !isfinite(v))
                return bad(d, err, "a number");
        *ret = v;
        return 0;
}

int doc_size(const struct doc *d, uint64_t *ret_bytes, struct err *err)
{
        if (d->kind != DOC_WORD || quantity_size(d->text, ret_bytes) != 0)
                return bad(d, err, "a size such as 500MiB or 2GiB");
        return 0;
}

int doc_duration(const struct doc *d, uint64_t *ret_ms, struct err *err)
{
        if (d->kind != DOC_WORD || quantity_duration(d->text, ret_ms) != 0)
                return bad(d, err, "a duration such as 90s, 5m, 2h or 1d");
        return 0;
}

int doc_words(const struct doc *d, int (*each)(void *arg, struct str word, struct err *err), void *arg,
              struct err *err)
{
        if (d->kind == DOC_WORD && d->empty)
                return 0;
        if (d->kind == DOC_WORD) {
                int code = each(arg, d->text, err);

                return code != 0 ? doc_where(err, code, d) : 0;
        }
        if (d->kind == DOC_MAP)
                return bad(d, err, "a list of words");
        for (const struct doc *i = d->first; i; i = i->next) {
                int code;

                if (i->kind != DOC_WORD)
                        return bad(d, err, "a list of words");
                code = each(arg, i->text, err);
                if (code != 0)
                        return doc_where(err, code, i);
        }
        return 0;
}

int doc_only(const struct doc *map, const char *const *keys, struct err *err)
{
        if (map->kind != DOC_MAP) {
                err_set(err, -EINVAL, "settings are written `name: value`");
                return doc_where(err, -EINVAL, map);
        }
        for (const struct doc *d = map->first; d; d = d->next) {
                const char *best = NULL;
                unsigned least = d->key.n < 6 ? (unsigned)(d->key.n + 1) / 2 : 4; /* not just any word */
                bool known = false;

                for (size_t i = 0; keys[i]; i++) {
                        unsigned distance = str_distance(d->key, str_of(keys[i]), 3);

                        known |= str_eqz(d->key, keys[i]);
                        if (distance < least) {
                                least = distance;
                                best = keys[i];
                        }
                }
                if (known)
                        continue;
                err_set(err, -EINVAL, "there is no setting '" STR_FMT "'%s%s%s", STR_ARG(d->key),
                        best ? "; did you mean " : "", best ? best : "", best ? "?" : "");
                for (const struct doc *before = map->first; before != d && !best; before = before->next)
                        if (before->next == d && before->empty)
                                err_set(err, -EINVAL,
                                        "there is no setting '" STR_FMT "' here; if it belongs to " STR_FMT
                                        " of line %u, indent it more",
                                        STR_ARG(d->key), STR_ARG(before->key), before->line);
                return doc_where(err, -EINVAL, d);
        }
        return 0;
}

int doc_no_twins(const struct doc *map, struct err *err)
{
        for (const struct doc *d = map->first; d; d = d->next)
                for (const struct doc *other = map->first; other != d; other = other->next)
                        if (str_ieq(d->key, other->key)) {
                                err_set(err, -EINVAL,
                                        "'" STR_FMT "' is set in line %u already: case does not count",
                                        STR_ARG(d->key), other->line);
                                return doc_where(err, -EINVAL, d);
                        }
        return 0;
}

int doc_refuse(const struct doc *d, struct err *err, const char *what)
{
        err_set(err, -EINVAL, STR_FMT " %s", STR_ARG(d->key.n ? d->key : STR("it")), what);
        return doc_where(err, -EINVAL, d);
}

int doc_where(struct err *err, int code, const struct doc *d)
{
        return err_prefix(err, code, "%s:%u", d->file, d->line);
}
