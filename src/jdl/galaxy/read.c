/* Reads the tool's file: first imports, then macros where they are expanded, then tokens everywhere. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "jdl/galaxy/tool.h"

#define EXPAND_DEPTH_MAX 16

void tool_init(struct tool *t, const struct form_world *w, const char *file, struct form *warnings)
{
        *t = (struct tool){.w = w, .warnings = warnings, .file = file};
        t->x.arena = &t->arena;
        t->x.names = datum_new(&t->arena, DATUM_MAP);
}

void tool_deinit(struct tool *t)
{
        xml_free(t->root);
        xml_free(t->tables_root);
        for (size_t i = 0; i < t->kept_count; i++)
                xml_free(t->kept[i]);
        free(t->files);
        free(t->outputs);
        arena_deinit(&t->arena);
}

int tool_fail(const struct xml *at, struct err *err, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        err_vset(err, -EINVAL, fmt, ap);
        va_end(ap);
        return err_prefix(err, -EINVAL, "%s:%u", at->file, at->line);
}

struct str tool_attribute(const struct xml *at, const char *name, const char *otherwise)
{
        const char *v = xml_get(at, name);

        return str_of(v ? v : otherwise);
}

bool tool_says(const struct xml *at, const char *name)
{
        const char *v = xml_get(at, name);

        return v && (str_ieqz(str_of(v), "true") || str_ieqz(str_of(v), "yes") || strcmp(v, "1") == 0);
}

void tool_warn(struct tool *t, const struct xml *at, const char *fmt, ...)
{
        BUF_CLEANUP struct buf b = {.max = 1024};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&b, fmt, ap);
        va_end(ap);
        form_warn(t->warnings, at->line, "%s", buf_z(&b));
}

/* Returns the folder of a path; "." if it has none. */
static struct str tool_folder(const char *file)
{
        ptrdiff_t slash = str_rfind(str_of(file), '/');

        return slash < 0 ? STR(".") : slash == 0 ? STR("/") : str_head(str_of(file), (size_t)slash);
}

static int read_xml(struct tool *t, const char *path, struct xml **ret, struct err *err)
{
        BUF_CLEANUP struct buf text = {.max = TOOL_TEXT_MAX};
        int rc = t->w->read_file(t->w->arg, path, &text);

        if (rc != 0)
                return err_set(err, rc, "%s: %s", path, strerror(-rc));
        if (buf_check(&text) != 0)
                return err_set(err, -E2BIG, "%s: it is over %u MiB", path, TOOL_TEXT_MAX >> 20);
        return xml_parse(path, buf_view(&text), ret, err);
}

/* ---- macros: those of all files form one list, the tool's own first */

static const struct xml *find_macro(const struct tool *t, const char *name)
{
        for (size_t i = 0; i <= t->kept_count; i++) {
                const struct xml *root = i ? t->kept[i - 1] : t->root;
                const struct xml *macros = xml_is(root, "macros") ? root : xml_child(root, "macros");

                for (const struct xml *m = macros ? macros->first : NULL; m; m = m->next)
                        if ((xml_is(m, "xml") || xml_is(m, "macro")) && xml_get(m, "name") &&
                            strcmp(xml_get(m, "name"), name) == 0)
                                return m;
        }
        return NULL;
}

static int import(struct tool *t, const struct xml *root, struct err *err)
{
        const struct xml *macros = xml_is(root, "macros") ? root : xml_child(root, "macros");
        int rc = 0;

        for (const struct xml *i = xml_child(macros, "import"); i && rc == 0; i = xml_next(i, "import")) {
                BUF_CLEANUP struct buf path = {0};
                struct str folder = tool_folder(root->file);

                buf_printf(&path, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(xml_text(i)));
                if (t->kept_count == TOOL_FILES_MAX)
                        return tool_fail(i, err, "more than %d files are imported", TOOL_FILES_MAX - 1);
                rc = read_xml(t, buf_z(&path), &t->kept[t->kept_count], err);
                if (rc == 0) {
                        const struct xml *imported = t->kept[t->kept_count++];

                        rc = import(t, imported, err);
                }
        }
        return rc;
}

struct size {
        uint64_t elements, bytes; /* bytes: of texts and attributes */
};

static void measure(const struct xml *x, struct size *s)
{
        s->elements++;
        s->bytes += x->text ? strlen(x->text) : 0;
        for (size_t i = 0; i < x->attribute_count; i++)
                s->bytes += strlen(x->attributes[i].value);
        for (const struct xml *c = x->first; c; c = c->next)
                measure(c, s);
}

/* Counts what will be copied `times` times, because nested macros and tokens can make a large tool from a
 * small file. */
static int spend(struct tool *t, const struct xml *at, const struct size *s, uint64_t times, struct err *err)
{
        t->nodes += s->elements * times;
        t->bytes += s->bytes * times;
        if (t->nodes > TOOL_NODES_MAX)
                return tool_fail(at, err, "macros make more than %u elements", TOOL_NODES_MAX);
        if (t->bytes > TOOL_BYTES_MAX)
                return tool_fail(at, err, "macros and tokens make more than %u MiB of text",
                                 TOOL_BYTES_MAX >> 20);
        return 0;
}

/* Replaces all occurrences of `from` in a text by `to`. */
static int replace(struct tool *t, const struct xml *at, char **text, struct str from, struct str to,
                   struct err *err)
{
        BUF_CLEANUP struct buf b = {0};
        struct size s = {0};
        struct str rest = str_of(*text);
        uint64_t times = 0;
        int rc;

        if (!from.n || str_search(rest, from) < 0)
                return 0;
        for (ptrdiff_t i; (i = str_search(rest, from)) >= 0; rest = str_skip(rest, (size_t)i + from.n))
                times++;
        s.bytes = to.n;
        rc = spend(t, at, &s, times, err);
        if (rc != 0)
                return rc;
        rest = str_of(*text);
        for (ptrdiff_t i; (i = str_search(rest, from)) >= 0; rest = str_skip(rest, (size_t)i + from.n)) {
                buf_str(&b, str_head(rest, (size_t)i));
                buf_str(&b, to);
        }
        buf_str(&b, rest);
        free(*text);
        *text = buf_take(&b);
        return 0;
}

static int replace_in(struct tool *t, struct xml *x, struct str from, struct str to, struct err *err)
{
        int rc = replace(t, x, &x->text, from, to, err);

        for (size_t i = 0; i < x->attribute_count && rc == 0; i++)
                rc = replace(t, x, &x->attributes[i].value, from, to, err);
        for (struct xml *c = x->first; c && rc == 0; c = c->next)
                rc = replace_in(t, c, from, to, err);
        return rc;
}

/* Replaces the macro's own tokens, @NAME@, by attributes of <expand> or the token_name of the macro. */
static int own_tokens(struct tool *t, const struct xml *macro, const struct xml *expand, struct xml *body,
                      struct err *err)
{
        int rc = 0;

        for (size_t i = 0; i < expand->attribute_count + macro->attribute_count && rc == 0; i++) {
                const struct xml_attribute *a = i < expand->attribute_count
                                                        ? &expand->attributes[i]
                                                        : &macro->attributes[i - expand->attribute_count];
                BUF_CLEANUP struct buf token = {0};
                const char *name = a->name;

                if (i >= expand->attribute_count && strncmp(name, "token_", 6) != 0)
                        continue;
                name += strncmp(name, "token_", 6) == 0 ? 6 : 0;
                buf_char(&token, '@');
                for (; *name; name++)
                        buf_char(&token, (char)toupper((unsigned char)*name));
                buf_char(&token, '@');
                rc = replace_in(t, body, buf_view(&token), str_of(a->value), err);
        }
        return rc;
}

/* Copies the children of `from` as a list. */
static struct xml *copy_children(const struct xml *from)
{
        struct xml *first = NULL, **end = &first;

        for (const struct xml *c = from->first; c; c = c->next) {
                *end = xml_dup(c);
                end = &(*end)->next;
        }
        return first;
}

static void drop_element(struct xml *x)
{
        x->file = NULL; /* borrowed by the copy */
        xml_free(x);
}

/* Replaces the element *at by a list. Returns the position after it. */
static struct xml **put_chain(struct xml **at, struct xml *chain)
{
        struct xml *old = *at, *next = old->next;

        *at = chain;
        while (*at)
                at = &(*at)->next;
        *at = next;
        drop_element(old);
        return at;
}

static void fill_yields(struct xml *body, const struct xml *with)
{
        for (struct xml **at = &body->first; *at;) {
                if (xml_is(*at, "yield")) {
                        at = put_chain(at, copy_children(with));
                } else {
                        fill_yields(*at, with);
                        at = &(*at)->next;
                }
        }
}

static uint64_t count_yields(const struct xml *x)
{
        uint64_t n = 0;

        for (const struct xml *c = x->first; c; c = c->next)
                n += xml_is(c, "yield") ? 1 : count_yields(c);
        return n;
}

/* Returns a copy of a macro with its tokens replaced, and with the content of <expand> in place of
 * <yield/>. NULL: there was an error. */
static struct xml *expanded(struct tool *t, const struct xml *macro, const struct xml *expand,
                            struct err *err)
{
        struct size own = {0}, with = {0};
        struct xml *body;
        int rc;

        measure(macro, &own);
        measure(expand, &with);
        if (spend(t, expand, &own, 1, err) != 0 || spend(t, expand, &with, 1, err) != 0)
                return NULL;
        body = xml_dup(macro);
        rc = own_tokens(t, macro, expand, body, err);
        if (rc == 0)
                rc = spend(t, expand, &with, count_yields(body), err);
        if (rc == 0) {
                fill_yields(body, expand);
                return body;
        }
        drop_element(body);
        return NULL;
}

static int expand(struct tool *t, struct xml *x, unsigned depth, struct err *err)
{
        int rc = 0;

        if (depth > EXPAND_DEPTH_MAX + XML_DEPTH_MAX)
                return tool_fail(x, err, "macros are nested too deep");
        for (struct xml **at = &x->first; *at && rc == 0;) {
                const char *name = xml_get(*at, "macro");
                const struct xml *macro;
                struct xml *body;

                if (!xml_is(*at, "expand")) {
                        rc = xml_is(*at, "macros") ? 0 : expand(t, *at, depth + 1, err);
                        at = &(*at)->next;
                        continue;
                }
                macro = name ? find_macro(t, name) : NULL;
                if (!macro)
                        return tool_fail(*at, err, "there is no macro %s", name ? name : "without a name");
                body = expanded(t, macro, *at, err);
                if (!body)
                        return -EINVAL;
                rc = expand(t, body, depth + 4, err);
                if (rc == 0)
                        at = put_chain(at, copy_children(body));
                drop_element(body);
        }
        return rc;
}

/* Returns the n-th of the trees with macros; the first is the tool's own. */
static const struct xml *macros_of(const struct tool *t, size_t n)
{
        const struct xml *root = n ? t->kept[n - 1] : t->root;

        return xml_is(root, "macros") ? root : xml_child(root, "macros");
}

/* Replaces one token in the texts of all other tokens. */
static int fill_token_in_tokens(struct tool *t, const struct xml *token, struct err *err)
{
        struct str name = str_of(xml_get(token, "name")), text = str_of(token->text);
        int rc = 0;

        if (name.n && str_search(text, name) >= 0)
                return tool_fail(token, err, "the token " STR_FMT " is within itself", STR_ARG(name));
        for (size_t i = 0; i <= t->kept_count; i++)
                for (struct xml *m = xml_child(macros_of(t, i), "token"); m && rc == 0;
                     m = xml_next(m, "token"))
                        rc = m == token ? 0 : replace(t, m, &m->text, name, text, err);
        return rc;
}

static int fill_tokens(struct tool *t, struct err *err)
{
        int rc = 0;

        for (size_t i = 0; i <= t->kept_count; i++)
                for (const struct xml *m = xml_child(macros_of(t, i), "token"); m && rc == 0;
                     m = xml_next(m, "token"))
                        rc = fill_token_in_tokens(t, m, err);
        for (size_t i = 0; i <= t->kept_count; i++) {
                const struct xml *macros = macros_of(t, i);

                for (const struct xml *m = xml_child(macros, "token"); m && rc == 0;
                     m = xml_next(m, "token")) {
                        /* the token itself is also in the tree that is changed */
                        MEM_CLEANUP char *value = mem_dupz(m->text);
                        MEM_CLEANUP char *name = mem_dupz(xml_get(m, "name"));

                        for (size_t a = 0; name && a < t->root->attribute_count && rc == 0; a++)
                                rc = replace(t, t->root, &t->root->attributes[a].value, str_of(name),
                                             str_of(value), err);
                        for (struct xml *x = name ? t->root->first : NULL; x && rc == 0; x = x->next)
                                if (!xml_is(x, "macros"))
                                        rc = replace_in(t, x, str_of(name), str_of(value), err);
                }
        }
        return rc;
}

int tool_read(struct tool *t, struct err *err)
{
        int rc = read_xml(t, t->file, &t->root, err);

        if (rc != 0)
                return rc;
        if (!xml_is(t->root, "tool") || !xml_get(t->root, "id"))
                return tool_fail(t->root, err, "this is not a Galaxy tool: there is no <tool id=...>");
        rc = import(t, t->root, err);
        if (rc == 0)
                rc = expand(t, t->root, 0, err);
        return rc == 0 ? fill_tokens(t, err) : rc;
}
