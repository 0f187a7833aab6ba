/* The template is rendered while it is read: a branch that is not taken is read with `live` off, and the
 * body of a loop is read once for each item. */
#include "jdl/galaxy/template.h"

#include <ctype.h>
#include <errno.h>

#include "jdl/galaxy/modules.h"

struct renderer {
        struct expressions *x;
        const char *file;
        unsigned line;
        struct str text;
        size_t at;
        struct buf *out;
        unsigned depth;
        enum { GO_ON, BREAK, CONTINUE, RETURN } flow;
        struct datum *returned; /* with RETURN */
        struct err *err;
};

#define PARAMETERS_MAX 16
#define CALLS_MAX      8 /* of functions, in each other */

/* What #def has made. The text is its body, and the directive that ends it. */
struct template_definition {
        const char *file;
        unsigned line;
        struct str text;
        struct str names[PARAMETERS_MAX];
        struct datum *values[PARAMETERS_MAX]; /* where none is given; NULL: it must be */
        size_t n;
};

struct directive {
        const char *name; /* "if", "end for" … */
        size_t begin;     /* offset of its '#' */
        bool clear;       /* only blanks come before it on its line */
};

static int fail_at(const struct renderer *r, size_t at, int code, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static int fail_at(const struct renderer *r, size_t at, int code, const char *fmt, ...)
{
        unsigned line = r->line;
        struct err made = {""}; /* the arguments may point into the current text */
        va_list ap;

        for (size_t i = 0; i < at && i < r->text.n; i++)
                line += r->text.p[i] == '\n';
        va_start(ap, fmt);
        err_vset(&made, code, fmt, ap);
        va_end(ap);
        *r->err = made;
        return err_prefix(r->err, code, "%s:%u", r->file, line);
}

static struct str rest_of(const struct renderer *r)
{
        return str_skip(r->text, r->at);
}

static size_t line_end(const struct renderer *r, size_t at)
{
        while (at < r->text.n && r->text.p[at] != '\n')
                at++;
        return at;
}

/* ---- directives */

static const char *const supported[] = {"if",         "elif",   "else if",  "else",    "end if", "unless",
                                        "end unless", "for",    "end for",  "set",     "silent", "echo",
                                        "slurp",      "break",  "continue", "pass",    "raw",    "import",
                                        "from",       "assert", "def",      "end def", "return"};
static const char *const refused[] = {
        "while",   "end while",  "try",     "end try", "except",    "finally",  "raise",    "include",
        "extends", "implements", "attr",    "block",   "end block", "call",     "end call", "cache",
        "filter",  "repeat",     "with",    "stop",    "del",       "compiler", "encoding", "arg",
        "macro",   "defmacro",   "closure", "super",   "global",    "yield",    "shBang",   "end raw"};

/* Returns the length of the directive at s if it is this one, with any blanks between its words; otherwise
 * 0. */
static size_t is_directive(struct str s, const char *name)
{
        size_t i = 0;

        for (; *name; name++) {
                if (*name == ' ') {
                        size_t from = i;

                        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'))
                                i++;
                        if (i == from)
                                return 0;
                } else if (i == s.n || s.p[i++] != *name) {
                        return 0;
                }
        }
        return i < s.n && (isalnum((unsigned char)s.p[i]) || s.p[i] == '_') ? 0 : i;
}

static size_t find_directive(struct str s, const char *const *names, size_t n, const char **ret)
{
        size_t best = 0;

        for (size_t i = 0; i < n; i++) {
                size_t length = is_directive(s, names[i]);

                if (length > best) { /* "else if" takes precedence over "else" */
                        best = length;
                        *ret = names[i];
                }
        }
        return best;
}

static bool is_clear(const struct renderer *r, size_t at)
{
        while (at > 0 && (r->text.p[at - 1] == ' ' || r->text.p[at - 1] == '\t'))
                at--;
        return at == 0 || r->text.p[at - 1] == '\n';
}

static void drop_blanks(struct buf *out)
{
        while (out->n && (out->p[out->n - 1] == ' ' || out->p[out->n - 1] == '\t'))
                out->n--;
}

/* Reads the end of a directive: its closing '#', or the end of its line. A directive alone on its line
 * removes the line. */
static int finish(struct renderer *r, const struct directive *d, bool live)
{
        size_t end = line_end(r, r->at), at = r->at;

        while (at < end && (r->text.p[at] == ' ' || r->text.p[at] == '\t' || r->text.p[at] == '\r'))
                at++;
        if (at < end && r->text.p[at] == '#' && !(at + 1 < end && r->text.p[at + 1] == '#')) {
                r->at = at + 1;
                return 0;
        }
        if (at < end && r->text.p[at] != '#')
                return fail_at(r, at, -EINVAL, "'" STR_FMT "' behind #%s is not understood",
                               STR_ARG(str_head(str_make(r->text.p + at, end - at), 40)), d->name);
        r->at = end;
        if (d->clear) {
                if (live)
                        drop_blanks(r->out);
                if (r->at < r->text.n)
                        r->at++;
        }
        return 0;
}

/* Skips the expression of a directive in a branch that is not taken; only its syntax is read. */
static void skip_expression(struct renderer *r)
{
        char quote = 0;
        unsigned open = 0;

        for (; r->at < r->text.n; r->at++) {
                char c = r->text.p[r->at];

                if (!quote && c == '\\' && r->at + 1 < r->text.n && r->text.p[r->at + 1] == '\n') {
                        r->at++; /* the line continues */
                } else if (quote) {
                        if (c == '\\')
                                r->at++;
                        else if (c == quote || c == '\n')
                                quote = 0;
                } else if (c == '"' || c == '\'') {
                        quote = c;
                } else if (strchr("([{", c) && c) {
                        open++;
                } else if (strchr(")]}", c) && c) {
                        open -= open > 0;
                } else if ((c == '\n' && !open) || c == '#') {
                        return;
                }
        }
}

/* Returns the text of a directive's expression: up to the end of the line, or of several lines within
 * brackets. */
static struct str directive_text(const struct renderer *r)
{
        struct renderer ahead = *r;

        skip_expression(&ahead);
        return str_make(r->text.p + r->at, ahead.at - r->at);
}

static int read_by(struct renderer *r,
                   int (*read)(struct expressions *, struct str, struct datum **, size_t *, struct err *),
                   struct datum **ret)
{
        size_t used = 0, begin = r->at;
        int rc = read(r->x, directive_text(r), ret, &used, r->err);

        r->at += used;
        return rc == 0 ? 0 : fail_at(r, begin, rc, "%s", r->err->text);
}

static int read_expression(struct renderer *r, struct datum **ret)
{
        return read_by(r, expression_read, ret);
}

/* Reads an expression, or several, which are a tuple. */
static int read_values(struct renderer *r, struct datum **ret)
{
        return read_by(r, expression_values, ret);
}

static bool template_take_word(struct renderer *r, const char *word)
{
        size_t at = r->at, n;

        while (at < r->text.n && (r->text.p[at] == ' ' || r->text.p[at] == '\t'))
                at++;
        n = is_directive(str_skip(r->text, at), word);
        if (n)
                r->at = at + n;
        return n > 0;
}

/* Returns whether the skipped text has a word `then`, which makes the #if a one-line one. */
static bool has_then(const struct renderer *r, size_t from)
{
        for (size_t i = from; i + 5 < r->at; i++)
                if (strchr(" \t)", r->text.p[i]) && is_directive(str_skip(r->text, i + 1), "then"))
                        return true;
        return false;
}

static void skip_colon(struct renderer *r)
{
        size_t at = r->at;

        while (at < r->text.n && (r->text.p[at] == ' ' || r->text.p[at] == '\t'))
                at++;
        if (at < r->text.n && r->text.p[at] == ':')
                r->at = at + 1;
}

static int write_value(struct renderer *r, size_t at, const struct datum *v)
{
        if (v->kind == DATUM_NONE && !v->written)
                return 0;
        if (!datum_write(v, r->out))
                return fail_at(r, at, -EINVAL, "a %s has no text", datum_kind_name(v));
        if (buf_check(r->out) != 0)
                return fail_at(r, at, -E2BIG, "more than %u bytes are written",
                               r->out->max ? (unsigned)r->out->max : 0);
        return 0;
}

static int render_block(struct renderer *r, bool live, const char *const *stops, struct directive *ret_stop);

/* ---- one function for each directive */

static int do_then(struct renderer *r, const struct directive *d, bool yes, bool live)
{
        struct datum *a, *b = NULL;
        int rc;

        if (!live) {
                skip_expression(r);
                return finish(r, d, false);
        }
        rc = read_expression(r, &a);
        if (rc == 0 && template_take_word(r, "else"))
                rc = read_expression(r, &b);
        if (rc == 0 && (yes || b))
                rc = write_value(r, d->begin, yes ? a : b);
        return rc == 0 ? finish(r, d, live) : rc;
}

static int do_if(struct renderer *r, const struct directive *d, bool live)
{
        static const char *const stops[] = {"elif", "else if", "else", "end if", NULL}, *const end[] = {
                                                                                                "end unless",
                                                                                                NULL};
        bool unless = strcmp(d->name, "unless") == 0, done = false, branch;
        struct directive at = *d;

        for (;;) {
                struct datum *v = NULL;
                size_t from = r->at;
                int rc = 0;

                branch = live && !done;
                if (strcmp(at.name, "else") == 0) {
                        skip_colon(r);
                } else {
                        if (branch)
                                rc = read_expression(r, &v);
                        else
                                skip_expression(r);
                        if (!live && has_then(r, from))
                                return finish(r, &at, false);
                        branch = branch && rc == 0 && datum_true(v) != unless;
                        if (rc == 0 && live && !done && template_take_word(r, "then"))
                                return do_then(r, &at, branch, live);
                        skip_colon(r);
                }
                done = done || branch;
                if (rc == 0)
                        rc = finish(r, &at, live);
                if (rc == 0)
                        rc = render_block(r, branch, unless ? end : stops, &at);
                if (rc != 0)
                        return rc;
                if (strncmp(at.name, "end", 3) == 0)
                        return finish(r, &at, live);
        }
}

static int do_for(struct renderer *r, const struct directive *d, bool live)
{
        static const char *const stops[] = {"end for", NULL};
        struct expression_target target;
        struct directive stop;
        struct datum *over, *list = NULL;
        size_t used = 0, inside, end = 0;
        int rc = 0;

        if (live) {
                rc = expression_target_read(r->x, directive_text(r), &target, &used, r->err);
                if (rc != 0)
                        return fail_at(r, d->begin, rc, "%s", r->err->text);
                r->at += used;
                if (!template_take_word(r, "in"))
                        return fail_at(r, d->begin, -EINVAL,
                                       "#for is supported as `#for $name in expression`");
                rc = read_values(r, &over);
                if (rc == 0 && (rc = expression_iterate(r->x, over, &list, r->err)) != 0)
                        rc = fail_at(r, d->begin, rc, "%s", r->err->text);
        } else {
                skip_expression(r);
        }
        skip_colon(r);
        if (rc == 0)
                rc = finish(r, d, live);
        inside = r->at;
        for (size_t i = 0; rc == 0 && list && i < list->n && r->flow != BREAK && r->flow != RETURN; i++) {
                r->at = inside;
                r->flow = GO_ON;
                rc = expression_bind(r->x, &target, list->items[i], false, r->err);
                if (rc != 0)
                        return fail_at(r, d->begin, rc, "%s", r->err->text);
                if (++r->x->steps > EXPRESSION_STEPS_MAX)
                        return fail_at(r, d->begin, -E2BIG, "it takes more than %u steps",
                                       EXPRESSION_STEPS_MAX);
                rc = render_block(r, true, stops, &stop);
                end = r->at;
        }
        if (r->flow != RETURN)
                r->flow = GO_ON;
        if (rc == 0 && !end) {
                r->at = inside;
                rc = render_block(r, false, stops, &stop);
        }
        return rc == 0 ? finish(r, &stop, live) : rc;
}

/* Sets a variable; shared: functions find it as well. */
static int put(struct renderer *r, const struct directive *d, struct str name, struct datum *v, bool shared)
{
        if (!datum_put(r->x->arena, r->x->names, name, v) ||
            (shared && !datum_put(r->x->arena, r->x->shared, name, v)))
                return fail_at(r, d->begin, -E2BIG, "there are more than %u variables", DATUM_ITEMS_MAX);
        return 0;
}

static void take_blanks(struct renderer *r)
{
        while (r->at < r->text.n && strchr(" \t", r->text.p[r->at]))
                r->at++;
}

/* Reads "#set $x = 1", "#set global $x", "#set $x += 1", "#set $x, $y = $pair" or "#set $x['a'] = 1". */
static int do_set(struct renderer *r, const struct directive *d)
{
        bool global = template_take_word(r, "global"), add;
        struct expression_target to;
        struct datum *v, *before;
        size_t used = 0;
        struct str target;
        int rc;

        if (global && r->x->calls)
                return fail_at(r, d->begin, -EINVAL, "#set global within #def is not supported");
        rc = expression_target_read(r->x, directive_text(r), &to, &used, r->err);
        target = str_head(rest_of(r), used);
        r->at += used;
        take_blanks(r);
        add = str_starts(rest_of(r), STR("+="));
        r->at += add;
        if (rc != 0 || (add && !to.name.n) || !str_starts(rest_of(r), STR("=")))
                return fail_at(r, d->begin, -EINVAL, "#set is supported as `#set $name = expression`");
        r->at++;
        rc = read_values(r, &v);
        if (rc != 0)
                return rc;
        if (add && (rc = expression_read(r->x, target, &before, &used, r->err)) == 0)
                rc = expression_add(r->x, before, v, &v, r->err);
        if (rc == 0)
                rc = expression_bind(r->x, &to, v, global, r->err);
        return rc == 0 ? 0 : fail_at(r, d->begin, rc, "%s", r->err->text);
}

static struct str take_name(struct renderer *r)
{
        size_t at;

        take_blanks(r);
        at = r->at;
        while (r->at < r->text.n &&
               (isalnum((unsigned char)r->text.p[r->at]) || strchr("_.", r->text.p[r->at])))
                r->at++;
        return str_make(r->text.p + at, r->at - at);
}

static bool take_comma(struct renderer *r)
{
        take_blanks(r);
        r->at += r->at < r->text.n && r->text.p[r->at] == ',';
        return r->text.p[r->at - 1] == ',';
}

/* Reads "import os, re as r" or "from os.path import basename". The names become variables, whose values
 * are modules or functions. */
static int do_import(struct renderer *r, const struct directive *d)
{
        struct str from = STR_NONE;
        int rc;

        if (strcmp(d->name, "from") == 0) {
                from = take_name(r);
                if (!template_take_word(r, "import"))
                        return fail_at(r, d->begin, -EINVAL,
                                       "#from is supported as `#from MODULE import NAME`");
        }
        do {
                BUF_CLEANUP struct buf whole = {0};
                struct str name = take_name(r), as = name;
                struct datum *v;

                buf_printf(&whole, STR_FMT "%s" STR_FMT, STR_ARG(from), from.n ? "." : "", STR_ARG(name));
                if (!module_is_known(from.n ? from : name))
                        return fail_at(r, d->begin, -EINVAL,
                                       "the module " STR_FMT " is not supported: os, os.path and re are",
                                       STR_ARG(from.n ? from : name));
                v = datum_function(r->x->arena, buf_view(&whole));
                if (template_take_word(r, "as"))
                        as = take_name(r);
                else if (str_find(as, '.') >= 0) { /* import os.path defines os */
                        as = str_head(as, (size_t)str_find(as, '.'));
                        v = datum_function(r->x->arena, as);
                }
                if (!as.n)
                        return fail_at(r, d->begin, -EINVAL, "#%s without a name", d->name);
                rc = put(r, d, as, v, true);
        } while (rc == 0 && take_comma(r));
        return rc;
}

/* Reads "assert CONDITION, text". */
static int do_assert(struct renderer *r, const struct directive *d)
{
        struct datum *v, *text = NULL;
        BUF_CLEANUP struct buf b = {.max = 1000};
        int rc = read_expression(r, &v);

        if (rc == 0 && r->at < r->text.n && r->text.p[r->at] == ',') {
                r->at++;
                rc = read_expression(r, &text);
        }
        if (rc != 0 || datum_true(v))
                return rc;
        if (text)
                datum_write(text, &b);
        return fail_at(r, d->begin, -EINVAL, "#assert: %s", b.n ? buf_z(&b) : "it is not so");
}

/* Copies the text up to #end raw unchanged. */
static int do_raw(struct renderer *r, const struct directive *d, bool live)
{
        struct directive end = {.name = "end raw"};
        ptrdiff_t at;
        int rc = finish(r, d, live);

        if (rc != 0)
                return rc;
        at = str_search(rest_of(r), STR("#end raw"));
        if (at < 0)
                return fail_at(r, d->begin, -EINVAL, "#raw has no #end raw");
        if (live)
                buf_str(r->out, str_head(rest_of(r), (size_t)at));
        end.begin = r->at + (size_t)at;
        end.clear = is_clear(r, end.begin);
        r->at = end.begin + strlen("#end raw");
        return finish(r, &end, live);
}

static int do_return(struct renderer *r, const struct directive *d)
{
        if (!r->x->calls)
                return fail_at(r, d->begin, -EINVAL, "#return outside of #def");
        r->flow = RETURN;
        r->returned = datum_new(r->x->arena, DATUM_NONE);
        return str_trim(directive_text(r)).n ? read_values(r, &r->returned) : 0;
}

/* Reads "(a, $b=1)" behind the name of a function. */
static int read_parameters(struct renderer *r, const struct directive *d, struct template_definition *def)
{
        if (!str_starts(rest_of(r), STR("(")))
                return 0;
        r->at++;
        for (;; def->n++) {
                int rc = 0;

                while (r->at < r->text.n && strchr(" \t\n$", r->text.p[r->at]))
                        r->at++;
                if (str_starts(rest_of(r), STR(")"))) {
                        r->at++;
                        return 0;
                }
                if (def->n == PARAMETERS_MAX)
                        return fail_at(r, d->begin, -E2BIG, "a function has more than %d parameters",
                                       PARAMETERS_MAX);
                def->names[def->n] = arena_str(r->x->arena, take_name(r));
                take_blanks(r);
                if (str_starts(rest_of(r), STR("="))) {
                        r->at++;
                        rc = read_expression(r, &def->values[def->n]);
                }
                if (rc != 0)
                        return rc;
                if (!def->names[def->n].n || (!take_comma(r) && !str_starts(rest_of(r), STR(")"))))
                        return fail_at(r, d->begin, -EINVAL,
                                       "#def is supported as `#def name(a, b=expression)`");
        }
}

static int do_def(struct renderer *r, const struct directive *d, bool live)
{
        static const char *const stops[] = {"end def", NULL};
        struct template_definition *def = arena_alloc(r->x->arena, sizeof(*def));
        struct str name = take_name(r);
        struct directive stop;
        struct datum *v;
        size_t inside;
        int rc = 0;

        *def = (struct template_definition){.file = r->file, .line = r->line};
        if (live)
                rc = read_parameters(r, d, def);
        else
                skip_expression(r);
        skip_colon(r);
        if (rc == 0 && !name.n)
                rc = fail_at(r, d->begin, -EINVAL, "#def without a name");
        if (rc == 0)
                rc = finish(r, d, live);
        inside = r->at;
        if (rc == 0)
                rc = render_block(r, false, stops, &stop);
        if (rc == 0 && live) {
                for (size_t i = 0; i < inside; i++)
                        def->line += r->text.p[i] == '\n';
                def->text = arena_str(r->x->arena, str_make(r->text.p + inside, r->at - inside));
                v = datum_function(r->x->arena, name);
                v->definition = def;
                rc = put(r, d, name, v, true);
        }
        return rc == 0 ? finish(r, &stop, live) : rc;
}

static struct datum *copy_names(struct arena *a, const struct datum *names)
{
        struct datum *copy = datum_new(a, DATUM_MAP);

        for (size_t i = 0; i < names->n; i++) {
                datum_add(a, copy, names->items[i]);
                copy->keys[i] = names->keys[i];
        }
        return copy;
}

/* Calls a function: its body sees its arguments and what the template was given, not what the caller has set.
 */
static int call_definition(struct expressions *x, const struct datum *function, const struct datum *arguments,
                           struct datum **ret, struct err *err)
{
        static const char *const stops[] = {"end def", NULL};
        const struct template_definition *def = function->definition;
        BUF_CLEANUP struct buf out = {.max = EXPRESSION_TEXT_MAX};
        struct renderer r = {
                .x = x, .file = def->file, .line = def->line, .text = def->text, .out = &out, .err = err};
        struct datum *caller = x->names, *names;
        struct directive stop;
        unsigned depth = x->depth; /* the expressions of the body count from 0 */
        int rc;

        x->steps += (unsigned)((def->text.n + x->shared->n) / 16);
        if (x->steps > EXPRESSION_STEPS_MAX)
                return err_set(err, -E2BIG, "it takes more than %u steps", EXPRESSION_STEPS_MAX);
        if (x->calls == CALLS_MAX)
                return err_set(err, -EINVAL, "functions call each other too deep");
        if (arguments->n > def->n)
                return err_set(err, -EINVAL, STR_FMT "() has %zu arguments", STR_ARG(function->text),
                               arguments->n);
        names = copy_names(x->arena, x->shared);
        for (size_t i = 0; i < def->n; i++) {
                struct datum *v = i < arguments->n ? arguments->items[i] : def->values[i];

                if (!v)
                        return err_set(err, -EINVAL, STR_FMT "() lacks its argument " STR_FMT,
                                       STR_ARG(function->text), STR_ARG(def->names[i]));
                if (!datum_put(x->arena, names, def->names[i], v))
                        return err_set(err, -E2BIG, "there are more than %u variables", DATUM_ITEMS_MAX);
        }
        x->names = names;
        x->calls++;
        rc = render_block(&r, true, stops, &stop);
        x->calls--;
        x->names = caller;
        x->depth = depth;
        if (rc != 0)
                return rc;
        if (stop.clear)
                drop_blanks(&out);
        *ret = r.returned;
        return r.flow == RETURN ? 0 : expression_text(x, &out, ret, err);
}

static int do_simple(struct renderer *r, const struct directive *d, bool live)
{
        struct datum *v;
        int rc = 0;

        if (strcmp(d->name, "slurp") == 0) {
                r->at = line_end(r, r->at);
                r->at += r->at < r->text.n;
                return 0;
        }
        if (!live)
                skip_expression(r);
        else if (strcmp(d->name, "set") == 0)
                rc = do_set(r, d);
        else if (strcmp(d->name, "import") == 0 || strcmp(d->name, "from") == 0)
                rc = do_import(r, d);
        else if (strcmp(d->name, "assert") == 0)
                rc = do_assert(r, d);
        else if (strcmp(d->name, "return") == 0)
                rc = do_return(r, d);
        else if (strcmp(d->name, "break") == 0)
                r->flow = BREAK;
        else if (strcmp(d->name, "continue") == 0)
                r->flow = CONTINUE;
        else if (strcmp(d->name, "pass") != 0)
                rc = read_values(r, &v);
        if (rc == 0 && live && strcmp(d->name, "echo") == 0)
                rc = write_value(r, d->begin, v);
        return rc == 0 ? finish(r, d, live) : rc;
}

static int do_directive(struct renderer *r, const struct directive *d, bool live)
{
        if (strcmp(d->name, "if") == 0 || strcmp(d->name, "unless") == 0)
                return do_if(r, d, live);
        if (strcmp(d->name, "for") == 0)
                return do_for(r, d, live);
        if (strcmp(d->name, "raw") == 0)
                return do_raw(r, d, live);
        if (strcmp(d->name, "def") == 0)
                return do_def(r, d, live);
        if (strcmp(d->name, "else") == 0 || strcmp(d->name, "elif") == 0 || strcmp(d->name, "else if") == 0 ||
            strncmp(d->name, "end ", 4) == 0)
                return fail_at(r, d->begin, -EINVAL, "#%s without its beginning", d->name);
        return do_simple(r, d, live);
}

/* ---- text */

static int do_placeholder(struct renderer *r, bool live)
{
        struct str s = str_skip(rest_of(r), 1);
        struct datum *v;
        size_t used = 0;
        int rc;

        if (!s.n || !(isalpha((unsigned char)s.p[0]) || strchr("_{(", s.p[0]))) {
                if (live)
                        buf_char(r->out, '$');
                r->at++;
                return 0;
        }
        if (!live) { /* no directive in it counts */
                r->at++;
                return 0;
        }
        rc = expression_place(r->x, s, &v, &used, r->err);
        if (rc != 0)
                return fail_at(r, r->at, rc, "$" STR_FMT ": %s", STR_ARG(str_head(s, used < 40 ? used : 40)),
                               r->err->text);
        rc = write_value(r, r->at, v);
        r->at += 1 + used;
        return rc;
}

/* Skips a comment: ## to the end of the line, or #* to *#. Returns false if there is none. */
static bool skip_comment(struct renderer *r, bool live)
{
        struct str s = rest_of(r);
        bool clear = is_clear(r, r->at);

        if (str_starts(s, STR("##"))) {
                r->at = line_end(r, r->at);
                if (clear && live)
                        drop_blanks(r->out);
                if (clear && r->at < r->text.n)
                        r->at++;
                return true;
        }
        if (str_starts(s, STR("#*"))) {
                ptrdiff_t end = str_search(s, STR("*#"));

                r->at = end < 0 ? r->text.n : r->at + (size_t)end + 2;
                return true;
        }
        return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
        for (; names && *names; names++)
                if (strcmp(name, *names) == 0)
                        return true;
        return false;
}

/* Handles a '#'. *ret_stopped: it is a directive that ends the block. */
static int at_hash(struct renderer *r, bool live, const char *const *stops, struct directive *ret_stop,
                   bool *ret_stopped)
{
        struct directive d = {.begin = r->at, .clear = is_clear(r, r->at)};
        struct str s = str_skip(rest_of(r), 1);
        size_t n = find_directive(s, supported, sizeof(supported) / sizeof(*supported), &d.name);

        *ret_stopped = false;
        if (skip_comment(r, live))
                return 0;
        if (!n) {
                if (find_directive(s, refused, sizeof(refused) / sizeof(*refused), &d.name))
                        return fail_at(r, r->at, -EINVAL, "#%s is not supported", d.name);
                if (live)
                        buf_char(r->out, '#');
                r->at++;
                return 0;
        }
        r->at += 1 + n;
        if (!is_one_of(d.name, stops))
                return do_directive(r, &d, live);
        *ret_stop = d;
        *ret_stopped = true;
        return 0;
}

/* Renders up to the end of the text, or to a directive in `stops` (NULL: none); r->at is then after its
 * name. */
static int render_block(struct renderer *r, bool live, const char *const *stops, struct directive *ret_stop)
{
        size_t begin = r->at;
        bool stopped = false;
        int rc = 0;

        if (++r->depth > TEMPLATE_DEPTH_MAX)
                return fail_at(r, r->at, -EINVAL, "this is nested too deep");
        while (rc == 0 && !stopped && r->at < r->text.n) {
                char c = r->text.p[r->at];
                bool writes = live && r->flow == GO_ON;

                if (c == '#') {
                        rc = at_hash(r, writes, stops, ret_stop, &stopped);
                } else if (c == '$') {
                        rc = do_placeholder(r, writes);
                } else {
                        if (c == '\\' && r->at + 1 < r->text.n && strchr("$#", r->text.p[r->at + 1]))
                                c = r->text.p[++r->at];
                        if (writes)
                                buf_char(r->out, c);
                        r->at++;
                }
        }
        r->depth--;
        if (rc == 0 && buf_check(r->out) != 0)
                rc = fail_at(r, begin, -E2BIG, "more than %u bytes are written", (unsigned)r->out->max);
        if (rc == 0 && stops && !stopped)
                rc = fail_at(r, begin, -EINVAL, "what began before this line has no #%s",
                             is_one_of("end for", stops)   ? "end for"
                             : is_one_of("end if", stops)  ? "end if"
                             : is_one_of("end def", stops) ? "end def"
                                                           : "end unless");
        return rc;
}

int template_render(struct expressions *x, const char *file, unsigned line, struct str text, struct buf *out,
                    struct err *err)
{
        struct err own = {""};
        struct renderer r = {
                .x = x, .file = file, .line = line, .text = text, .out = out, .err = err ? err : &own};

        if (!out->max)
                out->max = TEMPLATE_OUT_MAX;
        x->call = call_definition;
        x->shared = copy_names(x->arena, x->names);
        return render_block(&r, true, NULL, NULL);
}
