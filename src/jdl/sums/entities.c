/* Comments and CDATA sections are copied unchanged. A value that the text declares is markup, as in XML,
 * and its own references are replaced too; the depth of such a chain is limited to ENTITIES_DEPTH_MAX. */
#include "jdl/sums/entities.h"

#include <ctype.h>
#include <errno.h>

#include "base/mem.h"

struct reader {
        const char *file;
        const char *begin; /* beginning of the text, to count lines */
        struct entity *all;
        size_t count, cap;
        size_t given; /* number of them */
        size_t references;
        struct buf *out;
        struct err *err;
};

static bool is_first(char c)
{
        return isalpha((unsigned char)c) || c == '_' || c == ':' || (unsigned char)c >= 0x80;
}

static size_t name_length(struct str s)
{
        size_t n = 0;

        if (s.n == 0 || !is_first(s.p[0]))
                return 0;
        while (n < s.n &&
               (is_first(s.p[n]) || isdigit((unsigned char)s.p[n]) || s.p[n] == '-' || s.p[n] == '.'))
                n++;
        return n;
}

bool entities_is_name(struct str s)
{
        return s.n > 0 && name_length(s) == s.n;
}

static unsigned line_at(const struct reader *r, const char *at)
{
        unsigned line = 1;

        for (const char *p = r->begin; p < at; p++)
                line += *p == '\n';
        return line;
}

static int fail_entity(struct reader *r, const char *at, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int fail_entity(struct reader *r, const char *at, const char *fmt, ...)
{
        struct err what = {{0}};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(r->err, -EINVAL, "%s:%u: %s", r->file, line_at(r, at), what.text);
}

static const struct entity *find_entity(const struct reader *r, struct str name)
{
        for (size_t i = 0; i < r->count; i++)
                if (str_eq(r->all[i].name, name))
                        return &r->all[i];
        return NULL;
}

/* Appends a value from outside as literal characters. */
static void put_characters(struct str s, struct buf *out)
{
        for (size_t i = 0; i < s.n; i++)
                switch (s.p[i]) {
                case '&': buf_addz(out, "&amp;"); break;
                case '<': buf_addz(out, "&lt;"); break;
                case '>': buf_addz(out, "&gt;"); break;
                case '"': buf_addz(out, "&quot;"); break;
                case '\'': buf_addz(out, "&apos;"); break;
                default: buf_char(out, s.p[i]); break;
                }
}

static bool entities_is_xml_own(struct str name)
{
        return str_eqz(name, "amp") || str_eqz(name, "lt") || str_eqz(name, "gt") || str_eqz(name, "quot") ||
               str_eqz(name, "apos");
}

static size_t section_length(struct str s)
{
        static const struct {
                const char *begin, *end;
        } sections[] = {{"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<?", "?>"}};

        for (size_t i = 0; i < 3; i++)
                if (str_starts(s, str_of(sections[i].begin))) {
                        ptrdiff_t end = str_search(s, str_of(sections[i].end));

                        return end < 0 ? s.n : (size_t)end + strlen(sections[i].end);
                }
        return 0;
}

/* Copies s with its entities replaced. `at`: where in the text the outermost reference is. */
static int put_in(struct reader *r, struct str s, const char *at, unsigned depth)
{
        int rc = 0;

        for (size_t i = 0; i < s.n && rc == 0;) {
                const char *here = depth ? at : s.p + i;
                size_t section = section_length(str_skip(s, i)), n;
                const struct entity *e;
                struct str name;

                if (r->out->n > ENTITIES_TEXT_MAX)
                        return err_set(r->err, -E2BIG,
                                       "%s:%u: with its entities the text has more than %u MiB", r->file,
                                       line_at(r, here), ENTITIES_TEXT_MAX >> 20);
                if (section) {
                        buf_add(r->out, s.p + i, section);
                        i += section;
                        continue;
                }
                if (s.p[i] != '&' || (i + 1 < s.n && s.p[i + 1] == '#')) {
                        buf_char(r->out, s.p[i++]);
                        continue;
                }
                n = name_length(str_skip(s, i + 1));
                name = str_make(s.p + i + 1, n);
                if (n == 0 || i + 1 + n >= s.n || s.p[i + 1 + n] != ';')
                        return fail_entity(r, here, "the character & is written as &amp;");
                i += n + 2;
                if (++r->references > ENTITIES_REFERENCES_MAX)
                        return fail_entity(r, here, "there are more than %u references to entities",
                                           ENTITIES_REFERENCES_MAX);
                if (entities_is_xml_own(name)) {
                        buf_printf(r->out, "&" STR_FMT ";", STR_ARG(name));
                        continue;
                }
                e = find_entity(r, name);
                if (!e)
                        return fail_entity(r, here,
                                           "the entity &" STR_FMT
                                           "; has no value; give it with -entities " STR_FMT
                                           "=VALUE, or declare it by <!ENTITY>",
                                           STR_ARG(str_head(name, 100)), STR_ARG(str_head(name, 100)));
                if (e < r->all + r->given)
                        put_characters(e->value, r->out);
                else if (depth == ENTITIES_DEPTH_MAX)
                        return fail_entity(r, here, "the entity &" STR_FMT "; is made of others %u deep",
                                           STR_ARG(str_head(name, 100)), ENTITIES_DEPTH_MAX);
                else
                        rc = put_in(r, e->value, here, depth + 1);
        }
        return rc;
}

static size_t blanks(struct str s)
{
        size_t n = 0;

        while (n < s.n && isspace((unsigned char)s.p[n]))
                n++;
        return n;
}

static int add_entity(struct reader *r, const char *at, struct str name, struct str value)
{
        if (r->count == ENTITIES_MAX)
                return fail_entity(r, at, "more than %u entities are declared", ENTITIES_MAX);
        if (find_entity(r, name)) /* the first declaration counts, as in XML */
                return 0;
        MEM_GROW(r->all, r->cap, r->count + 1);
        r->all[r->count++] = (struct entity){name, value};
        return 0;
}

/* Reads <!ENTITY name "value">; *s begins after the keyword. */
static int declare(struct reader *r, struct str *s)
{
        const char *at = s->p;
        struct str name, value;
        ptrdiff_t end;
        char quote[2] = "";
        size_t n;

        *s = str_skip(*s, blanks(*s));
        n = name_length(*s);
        if (n == 0)
                return fail_entity(r, at, "an entity is declared as <!ENTITY name \"value\">");
        name = str_head(*s, n);
        *s = str_skip(*s, n);
        *s = str_skip(*s, blanks(*s));
        if (s->n == 0 || (s->p[0] != '"' && s->p[0] != '\''))
                return fail_entity(r, at,
                                   "the entity " STR_FMT
                                   " lies in another file, which is not read; write its value in "
                                   "quotes",
                                   STR_ARG(str_head(name, 100)));
        quote[0] = s->p[0];
        *s = str_skip(*s, 1);
        end = str_find(*s, quote[0]);
        if (end < 0)
                return fail_entity(r, at, "the value of the entity " STR_FMT " has no end",
                                   STR_ARG(str_head(name, 100)));
        value = str_head(*s, (size_t)end);
        *s = str_skip(*s, (size_t)end + 1);
        *s = str_skip(*s, blanks(*s));
        if (s->n == 0 || s->p[0] != '>')
                return fail_entity(r, at,
                                   "the declaration of the entity " STR_FMT " has no > after its value",
                                   STR_ARG(str_head(name, 100)));
        *s = str_skip(*s, 1);
        return add_entity(r, at, name, value);
}

/* Reads <!DOCTYPE ...> with its declarations; *s begins with it and is moved past it. */
static int document_type(struct reader *r, struct str *s)
{
        const char *at = s->p;
        struct str rest = str_skip(*s, 9);
        int rc = 0;

        while (rest.n && rest.p[0] != '[' && rest.p[0] != '>')
                rest = str_skip(rest, 1);
        if (str_search(str_make(at, (size_t)(rest.p - at)), STR("SYSTEM")) >= 0 ||
            str_search(str_make(at, (size_t)(rest.p - at)), STR("PUBLIC")) >= 0)
                return fail_entity(
                        r, at, "a document type in another file is not read; leave SYSTEM and PUBLIC out");
        if (rest.n && rest.p[0] == '[') {
                rest = str_skip(rest, 1);
                while (rc == 0) {
                        size_t section;

                        rest = str_skip(rest, blanks(rest));
                        section = section_length(rest);
                        if (rest.n == 0)
                                return fail_entity(r, at, "the document type has no end: ]> is missing");
                        if (rest.p[0] == ']')
                                break;
                        if (section) {
                                rest = str_skip(rest, section);
                        } else if (str_starts(rest, STR("<!ENTITY"))) {
                                rest = str_skip(rest, 8);
                                rc = declare(r, &rest);
                        } else {
                                return fail_entity(r, rest.p,
                                                   "a document type may have <!ENTITY name \"value\">, and "
                                                   "nothing else");
                        }
                }
                rest = str_skip(rest, 1);
                rest = str_skip(rest, blanks(rest));
        }
        if (rc == 0 && (rest.n == 0 || rest.p[0] != '>'))
                return fail_entity(r, at, "the document type has no end: ]> is missing");
        if (rc != 0)
                return rc;
        for (const char *p = at; p <= rest.p; p++)
                buf_char(r->out, *p == '\n' ? '\n' : ' ');
        *s = str_skip(rest, 1);
        return 0;
}

int entities_put_in(const char *file, struct str text, const struct entity *given, size_t count,
                    struct buf *ret, struct err *err)
{
        struct reader r = {.file = file, .begin = text.p, .out = ret, .err = err};
        struct str s = text;
        int rc = 0;

        if (text.n > ENTITIES_TEXT_MAX)
                return err_set(err, -E2BIG, "%s has more than %u MiB", file, ENTITIES_TEXT_MAX >> 20);
        if (memchr(text.p ? text.p : "", 0, text.n))
                return err_set(err, -EINVAL, "%s is no text: it has a zero byte", file);
        for (size_t i = 0; i < count && rc == 0; i++)
                rc = add_entity(&r, text.p, given[i].name, given[i].value);
        r.given = r.count;
        while (rc == 0 && s.n && !str_starts(s, STR("<!DOCTYPE"))) {
                size_t section = section_length(s);

                if (!section && !isspace((unsigned char)s.p[0]) && (unsigned char)s.p[0] < 0x80)
                        break;
                section = section ? section : 1;
                buf_add(ret, s.p, section);
                s = str_skip(s, section);
        }
        if (rc == 0 && str_starts(s, STR("<!DOCTYPE")))
                rc = document_type(&r, &s);
        if (rc == 0)
                rc = put_in(&r, s, s.p, 0);
        free(r.all);
        return rc;
}
