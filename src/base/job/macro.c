/* One pass over the text finds references and writes what they stand for; a macro's value is expanded by a
 * deeper pass before it is written, never by looking at what was written, so that a value that is final stays
 * as it is.
 *
 * When something late is met, the reference is written out again with all that is known filled in. $(DOLLAR)
 * then has to stay too, or a later expansion would take the $ for its own: so the first pass keeps it, and
 * when nothing late was found, a second pass writes the $.
 */
#include "base/job/macro.h"

#include <ctype.h>
#include <errno.h>

#include "base/job/macro_function.h"

static bool name_char(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
               c == '.';
}

bool macro_is_name(struct str name)
{
        for (size_t i = 0; i < name.n; i++)
                if (!name_char(name.p[i]))
                        return false;
        return name.n > 0;
}

int macro_spend(struct macro_run *r, size_t n)
{
        r->work += n;
        if (r->work <= r->work_max)
                return 0;
        return err_set(r->err, -EMSGSIZE, "macros expand to more than %zu KiB in all", r->work_max >> 10);
}

/* Returns the index of the ')' whose '(' stood before s; -1: there is none. */
static ptrdiff_t macro_close(struct str s)
{
        unsigned depth = 1;

        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '(')
                        depth++;
                else if (s.p[i] == ')' && --depth == 0)
                        return (ptrdiff_t)i;
        }
        return -1;
}

int macro_deeper(struct macro_run *r, struct str text, struct buf *out, bool *late)
{
        int rc = macro_spend(r, text.n + 1);

        if (rc)
                return rc;
        if (r->depth >= MACRO_DEPTH_MAX)
                return err_set(r->err, -EINVAL,
                               "macros refer to each other deeper than %d levels; does one refer to itself?",
                               MACRO_DEPTH_MAX);
        r->depth++;
        rc = macro_run(r, text, out, late);
        r->depth--;
        return rc;
}

/* Writes a text that is not to be expanded. */
void macro_final(struct macro_run *r, struct str text, struct buf *out)
{
        if (!r->keep_dollar || str_find(text, '$') < 0) {
                buf_str(out, text);
                return;
        }
        r->saw_dollar = true;
        for (size_t i = 0; i < text.n; i++) {
                if (text.p[i] == '$')
                        buf_addz(out, "$(DOLLAR)");
                else
                        buf_char(out, text.p[i]);
        }
}

enum macro_found macro_item(struct str value, struct buf *out)
{
        buf_str(out, value);
        return str_find(value, '$') < 0 ? MACRO_FINAL : MACRO_VALUE;
}

/* Looks a name up and writes its value. *found is the result of the lookup. */
int macro_value(struct macro_run *r, struct str name, struct buf *out, bool *late, enum macro_found *found)
{
        BUF_CLEANUP struct buf raw = {.max = MACRO_TEXT_MAX};
        int rc = 0;

        *found = r->world->lookup(r->world->arg, name, &raw);
        r->work += raw.n;
        if (buf_check(&raw))
                return err_set(r->err, -EMSGSIZE, "the value of $(" STR_FMT ") is too long",
                               STR_ARG(str_head(name, 80)));
        if (*found == MACRO_VALUE)
                rc = macro_deeper(r, buf_view(&raw), out, late);
        else if (*found == MACRO_FINAL)
                macro_final(r, buf_view(&raw), out);
        return rc;
}

/* How long a name is that stands at the front of s, in which $(…) may stand; *nested says whether one does,
 * and *work grows by the bytes that were looked at beyond it.
 */
static size_t name_length(struct str s, bool *nested, size_t *work)
{
        size_t i = 0;

        *nested = false;
        for (;;) {
                ptrdiff_t end;

                while (i < s.n && name_char(s.p[i]))
                        i++;
                if (!str_starts(str_skip(s, i), STR("$(")))
                        return i;
                end = macro_close(str_skip(s, i + 2));
                *work += end < 0 ? s.n - i : (size_t)end;
                if (end < 0)
                        return i;
                *nested = true;
                i += (size_t)end + 3;
        }
}

static int missing(struct macro_run *r, struct str name)
{
        if (r->world->missing_is_error)
                return err_set(r->err, -EINVAL,
                               "$(" STR_FMT ") is not defined; define it, or give a default: $(" STR_FMT
                               ":…)",
                               STR_ARG(str_head(name, 80)), STR_ARG(str_head(name, 80)));
        if (r->world->missing)
                r->world->missing(r->world->arg, name);
        return 0;
}

/* $(name) or $(name:default), both texts as they stand. */
static int plain(struct macro_run *r, struct str name, const struct str *fallback, struct buf *out,
                 bool *late)
{
        size_t start = out->n;
        enum macro_found found;
        int rc;

        if (str_ieq(name, STR("DOLLAR"))) {
                r->saw_dollar = true;
                buf_addz(out, r->keep_dollar ? "$(DOLLAR)" : "$");
                return 0;
        }
        rc = macro_value(r, name, out, late, &found);
        if (rc)
                return rc;
        if (found == MACRO_LATE) {
                *late = true;
                buf_truncate(out, start);
                buf_addz(out, "$(");
                buf_str(out, name);
                if (fallback) {
                        buf_char(out, ':');
                        rc = macro_deeper(r, *fallback, out, late);
                }
                buf_char(out, ')');
        } else if (fallback && out->n == start) {
                rc = macro_deeper(r, *fallback, out, late);
        } else if (found == MACRO_UNKNOWN) {
                rc = missing(r, name);
        }
        return rc;
}

/* A reference whose name holds references: they are expanded first. */
static int plain_nested(struct macro_run *r, struct str name, const struct str *fallback, struct buf *out,
                        bool *late)
{
        BUF_CLEANUP struct buf whole = {.max = MACRO_TEXT_MAX};
        bool name_late = false;
        int rc = macro_deeper(r, name, &whole, &name_late);

        if (rc)
                return rc;
        if (!name_late && !macro_is_name(buf_view(&whole)))
                return err_set(r->err, -EINVAL,
                               "'" STR_FMT "', made from $(" STR_FMT "), cannot be a macro's name",
                               STR_ARG(str_head(buf_view(&whole), 80)), STR_ARG(str_head(name, 80)));
        if (!name_late)
                return plain(r, buf_view(&whole), fallback, out, late);
        *late = true;
        buf_addz(out, "$(");
        buf_str(out, buf_view(&whole));
        if (fallback) {
                buf_char(out, ':');
                rc = macro_deeper(r, *fallback, out, late);
        }
        buf_char(out, ')');
        return rc;
}

static int unclosed(struct macro_run *r, struct str s)
{
        return err_set(r->err, -EINVAL,
                       "the reference that begins with '" STR_FMT "' is never closed with a ')'",
                       STR_ARG(str_head(s, 40)));
}

/* s begins with "$(". *used: how much of it was read. */
static int parenthesis(struct macro_run *r, struct str s, struct buf *out, bool *late, size_t *used)
{
        bool nested;
        size_t n = name_length(str_skip(s, 2), &nested, &r->work), at = n + 2;
        struct str name = str_make(s.p + 2, n), fallback;
        bool has_default = false;
        ptrdiff_t end;

        if (n && at >= s.n)
                return unclosed(r, s);
        if (n == 0 || (s.p[at] != ')' && s.p[at] != ':')) {
                buf_addz(out, "$("); /* not ours */
                *used = 2;
                return 0;
        }
        if (s.p[at] == ':') {
                has_default = true;
                end = macro_close(str_skip(s, at + 1));
                if (end < 0)
                        return unclosed(r, s);
                fallback = str_make(s.p + at + 1, (size_t)end);
                at += 1 + (size_t)end;
        }
        *used = at + 1;
        return (nested ? plain_nested : plain)(r, name, has_default ? &fallback : NULL, out, late);
}

/* s begins with '$'. Finds the name of a function before a '('; its length, or 0. */
static size_t function_length(struct str s)
{
        size_t n = 1;

        while (n < s.n && name_char(s.p[n]) && s.p[n] != '.')
                n++;
        return n < s.n && s.p[n] == '(' && macro_function_known(str_make(s.p + 1, n - 1)) ? n - 1 : 0;
}

static int one_reference(struct macro_run *r, struct str s, struct buf *out, bool *late, size_t *used)
{
        size_t n;
        ptrdiff_t end;

        if (str_starts(s, STR("$("))) {
                return parenthesis(r, s, out, late, used);
        } else if (str_starts(s, STR("$$"))) {
                *used = 2;
        } else if ((n = function_length(s)) > 0) {
                struct str body = str_skip(s, n + 2);

                end = macro_close(body);
                if (end < 0)
                        return unclosed(r, s);
                *used = n + 2 + (size_t)end + 1;
                return macro_function_call(r, str_make(s.p + 1, n), str_head(body, (size_t)end), out, late);
        } else {
                *used = 1;
        }
        if (*used == 2 && s.n > 2 && s.p[2] == '(')
                *used = 3;
        buf_str(out, str_head(s, *used));
        return 0;
}

int macro_run(struct macro_run *r, struct str text, struct buf *out, bool *late)
{
        while (text.n) {
                ptrdiff_t at = str_find(text, '$');
                size_t used = 0;
                int rc;

                buf_str(out, at < 0 ? text : str_head(text, (size_t)at));
                if (at < 0)
                        break;
                text = str_skip(text, (size_t)at);
                rc = one_reference(r, text, out, late, &used);
                if (!rc)
                        rc = macro_spend(r, 0); /* for the value that the lookup appended */
                if (rc)
                        return rc;
                text = str_skip(text, used);
        }
        if (buf_check(out))
                return err_set(r->err, -EMSGSIZE, "the text that macros expand to is too long");
        return 0;
}

int macro_expand(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                 struct err *err)
{
        BUF_CLEANUP struct buf whole = {.max = MACRO_TEXT_MAX};
        size_t own = MACRO_WORK_MAX, *left = w->work ? w->work : &own;
        struct macro_run r = {.world = w, .err = err, .work_max = *left, .keep_dollar = true};
        uint64_t random = w->random ? *w->random : 0;
        bool late = false;
        size_t start = out->n;
        int rc = macro_run(&r, text, &whole, &late);

        if (!rc && !late && r.saw_dollar && !w->keep_dollar) {
                r.keep_dollar = r.saw_dollar = false;
                if (w->random)
                        *w->random = random;
                buf_reset(&whole);
                rc = macro_run(&r, text, &whole, &late);
        }
        *left -= r.work < *left ? r.work : *left;
        if (rc)
                return rc;
        buf_str(out, buf_view(&whole));
        if (buf_check(out)) {
                buf_truncate(out, start);
                return err_set(err, -EMSGSIZE, "the text that macros expand to is too long");
        }
        if (ret_late)
                *ret_late = late;
        return 0;
}

/* The length of the string literal at the front of s, with both quotes; 0 when it is never closed. */
static size_t literal_length(struct str s)
{
        for (size_t i = 1; i < s.n; i++) {
                if (s.p[i] == '\\')
                        i++;
                else if (s.p[i] == '"')
                        return i + 1;
        }
        return 0;
}

/* What stands before the next string literal; quotes in a reference belong to the reference. What is looked
 * at more than once is taken from *left; the text goes on no further when that is used up. */
static size_t outside_length(struct str s, size_t *left)
{
        size_t i = 0;

        while (i < s.n && s.p[i] != '"' && *left > 0) {
                struct str rest = str_skip(s, i);
                ptrdiff_t end;
                size_t n = s.p[i] == '$' ? function_length(rest) : 0, looked;

                if (n == 0 && !str_starts(rest, STR("$("))) {
                        i++;
                        continue;
                }
                end = macro_close(str_skip(rest, n + 2));
                looked = end < 0 ? rest.n : (size_t)end;
                *left -= looked < *left ? looked : *left;
                i += n + 2 + (end < 0 ? 0 : (size_t)end + 1);
        }
        return i < s.n ? i : s.n;
}

/* Undoes the escapes of a string literal (ClassAd manual: \" \\ \n \t \r \b \f \ooo; others stand for
 * themselves). */
static void unescape(struct str inner, struct buf *out)
{
        static const char letters[] = "ntrbf", bytes[] = "\n\t\r\b\f";

        for (size_t i = 0; i < inner.n; i++) {
                char c = inner.p[i];
                const char *at;
                unsigned v = 0, digits = 0;

                if (c != '\\' || i + 1 >= inner.n) {
                        buf_char(out, c);
                        continue;
                }
                c = inner.p[++i];
                while (digits < 3 && i < inner.n && inner.p[i] >= '0' && inner.p[i] <= '7') {
                        v = v * 8 + (unsigned)(inner.p[i++] - '0');
                        digits++;
                }
                if (digits) {
                        i--;
                        buf_char(out, (char)v);
                } else if ((at = c ? strchr(letters, c) : NULL)) {
                        buf_char(out, bytes[at - letters]);
                } else {
                        buf_char(out, c);
                }
        }
}

static void escape(struct str plain, struct buf *out)
{
        static const char letters[] = "\"\\ntrbf", bytes[] = "\"\\\n\t\r\b\f";

        for (size_t i = 0; i < plain.n; i++) {
                const char *at = plain.p[i] ? strchr(bytes, plain.p[i]) : NULL;

                if (at)
                        buf_char(out, '\\');
                buf_char(out, at ? letters[at - bytes] : plain.p[i]);
        }
}

/* Expands the string literal whose text between the quotes is `inner`. */
static int expand_literal(const struct macro_world *w, struct str inner, struct buf *out, bool *late,
                          struct err *err)
{
        BUF_CLEANUP struct buf plain = {.max = MACRO_TEXT_MAX}, value = {.max = MACRO_TEXT_MAX};
        int rc;

        if (str_find(inner, '$') < 0) {
                buf_str(out, inner);
                return 0;
        }
        unescape(inner, &plain);
        rc = macro_expand(w, buf_view(&plain), &value, late, err);
        if (!rc)
                escape(buf_view(&value), out);
        return rc;
}

int macro_expand_expression(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                            struct err *err)
{
        size_t start = out->n, own = MACRO_WORK_MAX, *left = w->work ? w->work : &own;
        struct macro_world world = *w;
        bool any_late = false;
        int rc = 0;

        world.work = left;
        while (text.n && !rc) {
                bool late = false;
                size_t n = outside_length(text, left);

                if (*left == 0) {
                        rc = err_set(err, -EMSGSIZE, "its macros expand to too much in all");
                } else if (n) {
                        rc = macro_expand(&world, str_head(text, n), out, &late, err);
                } else if ((n = literal_length(text)) > 0) {
                        buf_char(out, '"');
                        rc = expand_literal(&world, str_make(text.p + 1, n - 2), out, &late, err);
                        buf_char(out, '"');
                } else { /* an open quote: the parser of expressions will say so */
                        n = text.n;
                        buf_str(out, text);
                }
                any_late |= late;
                text = str_skip(text, n);
        }
        if (!rc && buf_check(out))
                rc = err_set(err, -EMSGSIZE, "the text that macros expand to is too long");
        if (rc)
                buf_truncate(out, start);
        else if (ret_late)
                *ret_late = any_late;
        return rc;
}

uint64_t macro_job_seed(uint64_t request, uint32_t member)
{
        return request * 1000003 + member + 1;
}

bool macro_cut(struct str *rest, char sep, struct str *ret_element)
{
        size_t depth = 0, i;
        bool macro = false; /* behind a '$', or in the name that follows it */

        if (!rest->p)
                return false;
        for (i = 0; i < rest->n; i++) {
                char c = rest->p[i];

                if (c == '(' && (depth > 0 || macro))
                        depth++;
                else if (c == ')' && depth > 0)
                        depth--;
                else if (c == sep && depth == 0)
                        break;
                macro = c == '$' || (macro && (isalnum((unsigned char)c) || c == '_'));
        }
        *ret_element = str_trim(str_head(*rest, i));
        *rest = i < rest->n ? str_skip(*rest, i + 1) : STR_NONE;
        return true;
}

bool macro_present(struct str text)
{
        size_t work = 0;

        for (ptrdiff_t at; (at = str_find(text, '$')) >= 0;) {
                bool nested;

                text = str_skip(text, (size_t)at);
                if (str_starts(text, STR("$$"))) {
                        text = str_skip(text, 2);
                        continue;
                }
                if (function_length(text))
                        return true;
                if (str_starts(text, STR("$(")) &&
                    (name_length(str_skip(text, 2), &nested, &work) > 0 || work > MACRO_WORK_MAX))
                        return true; /* the expansion will report the excess */
                text = str_skip(text, 1);
        }
        return false;
}
