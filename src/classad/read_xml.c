/* XML is read with libxml2's xmlTextReader, element by element, so that memory is freed at once.
 * A text that begins with <c> gets an element around it; the reader is fed through a function for that, and
 * in small pieces.
 *
 * Entities are not replaced, and a document type that declares any is refused; the network and other files
 * are never looked at. Our own depth is bounded by CLASSAD_DEPTH_MAX, an ad's text by CLASSAD_TEXT_MAX. */
#include <errno.h>

#include "base/format/libxml.h"
#include "base/mem.h"
#include "classad/build.h"
#include "classad/lex.h"
#include "classad/read.h"

#define FRAGMENT_HEAD "<classads>"
#define FRAGMENT_FOOT "</classads>"

struct xml_reader {
        xmlTextReader *reader;
        struct build build;
        struct buf text; /* of the element that is read */
        struct str all;
        struct str feed[3]; /* input that libxml2 has not read yet */
        bool fragment;
        size_t text_bytes; /* of the present ad */
        struct err *err;
        bool placed; /* err tells the position */
        char parse_error[256];
        int parse_line, parse_column;
};

static int feed(void *arg, char *to, int n)
{
        struct xml_reader *x = arg;

        for (size_t i = 0; i < 3; i++) {
                size_t take = x->feed[i].n < (size_t)n ? x->feed[i].n : (size_t)n;

                if (take == 0)
                        continue;
                memcpy(to, x->feed[i].p, take);
                x->feed[i] = str_skip(x->feed[i], take);
                return (int)take;
        }
        return 0;
}

/* Keeps the first error in the XML. Errors in namespaces are ignored. */
static void keep_error(void *arg, xmlErrorPtr error)
{
        struct xml_reader *x = arg;
        struct str s = str_trim(str_of(error->message));

        if (x->parse_line || error->level < XML_ERR_ERROR || error->domain == XML_FROM_NAMESPACE)
                return;
        x->parse_line = error->line > 0 ? error->line : 1;
        x->parse_column = error->int2 > 0 ? error->int2 : 1;
        if (x->fragment && x->parse_line == 1 && x->parse_column > (int)sizeof(FRAGMENT_HEAD) - 1)
                x->parse_column -= (int)sizeof(FRAGMENT_HEAD) - 1;
        for (size_t i = 0; i < s.n && i + 1 < sizeof(x->parse_error); i++)
                x->parse_error[i] = s.p[i] == '\n' ? ' ' : s.p[i];
}

struct xml_reader *xml_reader_new(struct symbols *symbols, struct str text)
{
        struct xml_reader *x = mem_new(struct xml_reader);
        struct str begin = str_trim_left(text);

        build_init(&x->build, symbols);
        x->all = text;
        x->text.max = CLASSAD_TEXT_MAX;
        x->fragment = begin.n >= 3 && begin.p[0] == '<' && begin.p[1] == 'c' &&
                      strchr(" \t\r\n>/", begin.p[2]) && begin.p[2];
        x->feed[0] = x->fragment ? STR(FRAGMENT_HEAD) : STR_NONE;
        x->feed[1] = text;
        x->feed[2] = x->fragment ? STR(FRAGMENT_FOOT) : STR_NONE;
        return x;
}

void xml_reader_free(struct xml_reader *x)
{
        if (!x)
                return;
        if (x->reader)
                libxml.p_xmlFreeTextReader(x->reader);
        build_deinit(&x->build);
        buf_deinit(&x->text);
        free(x);
}

static struct str name_here(const struct xml_reader *x)
{
        return str_of((const char *)libxml.p_xmlTextReaderConstName(x->reader));
}

static bool is(const struct xml_reader *x, const char *name)
{
        return str_eqz(name_here(x), name);
}

/* Adds the position of the present element to an error: libxml2 knows the line, in which the tag is searched.
 */
static int here(struct xml_reader *x, int code)
{
        xmlNode *nd = libxml.p_xmlTextReaderCurrentNode(x->reader);
        long known = nd ? libxml.p_xmlGetLineNo(nd) : 1;
        unsigned line = known > 0 ? (unsigned)known : 1, column = 1;
        struct str rest = x->all, text = STR_NONE, tag = name_here(x);

        for (unsigned i = 0; i < line && str_cut(&rest, '\n', &text);)
                i++;
        for (size_t i = 0; i + tag.n < text.n; i++)
                if (text.p[i] == '<' && str_starts(str_skip(text, i + 1), tag)) {
                        column = (unsigned)i + 1;
                        break;
                }
        x->placed = true;
        return err_prefix(x->err, code, "line %u, column %u", line, column);
}

static int fail_xml(struct xml_reader *x, const char *what)
{
        err_set(x->err, CLASSAD_SYNTAX, "%s", what);
        return here(x, CLASSAD_SYNTAX);
}

static int xml_unexpected(struct xml_reader *x, const char *need)
{
        struct str name = name_here(x);

        err_set(x->err, CLASSAD_SYNTAX, "<%.60s> where %s should stand", name.n < 60 ? name.p : "...", need);
        return here(x, CLASSAD_SYNTAX);
}

/* Moves to the next node: 0 with its type, which is 0 at the end of the document. */
static int xml_step(struct xml_reader *x, int *ret_type)
{
        int r = libxml.p_xmlTextReaderRead(x->reader);

        if (r < 0 || x->parse_line) {
                x->placed = true;
                return err_set(x->err, CLASSAD_SYNTAX, "line %d, column %d: %s",
                               x->parse_line ? x->parse_line : 1, x->parse_line ? x->parse_column : 1,
                               x->parse_line ? x->parse_error : "this is not XML");
        }
        *ret_type = r ? libxml.p_xmlTextReaderNodeType(x->reader) : 0;
        if (*ret_type == XML_READER_TYPE_ENTITY_REFERENCE)
                return fail_xml(x, "an entity that XML does not have of itself");
        return 0;
}

static int count_text(struct xml_reader *x, size_t n)
{
        x->text_bytes += n;
        if (x->text_bytes > CLASSAD_TEXT_MAX)
                return err_set(x->err, CLASSAD_TOO_BIG, "an ad is longer than %u bytes", CLASSAD_TEXT_MAX);
        return 0;
}

/* The text of an element that holds nothing else, up to its end, in x->text. */
static int read_text(struct xml_reader *x)
{
        int type, r;

        buf_reset(&x->text);
        if (libxml.p_xmlTextReaderIsEmptyElement(x->reader))
                return 0;
        while ((r = xml_step(x, &type)) == 0) {
                struct str s;

                switch (type) {
                case XML_READER_TYPE_END_ELEMENT: return 0;
                case XML_READER_TYPE_ELEMENT: return xml_unexpected(x, "text");
                case XML_READER_TYPE_TEXT:
                case XML_READER_TYPE_CDATA:
                case XML_READER_TYPE_WHITESPACE:
                case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
                        s = str_of((const char *)libxml.p_xmlTextReaderConstValue(x->reader));
                        if ((r = count_text(x, s.n)) != 0)
                                return r;
                        buf_str(&x->text, s);
                        break;
                default: break;
                }
        }
        return r;
}

/* Reads to the end of an element that may have white space only. */
static int read_nothing(struct xml_reader *x)
{
        int r = read_text(x);

        if (r == 0 && str_trim(buf_view(&x->text)).n)
                return fail_xml(x, "text where none should stand");
        return r;
}

/* Text with the escapes of the language: it is put between quotes, and read as a string. */
static int unescape(struct xml_reader *x, struct str s, struct buf *out)
{
        struct buf quoted BUF_CLEANUP = {0};
        struct lex lx = {.scratch = out};

        buf_char(&quoted, '"');
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"' || (s.p[i] == '\\' && i + 1 == s.n))
                        buf_char(&quoted, '\\');
                buf_char(&quoted, s.p[i]);
                if (s.p[i] == '\\' && i + 1 < s.n)
                        buf_char(&quoted, s.p[++i]);
        }
        buf_char(&quoted, '"');
        lx.p = lx.start = quoted.p;
        lx.end = quoted.p + quoted.n;
        lex_next(&lx);
        if (lx.kind != TOKEN_STRING)
                return fail_xml(x, lx.bad);
        if (out->n == 0) /* it had no escape, and still stands between the quotes */
                buf_str(out, lx.text);
        return 0;
}

static int xml_number(struct xml_reader *x, bool real, uint32_t *ret)
{
        struct str s = str_trim(buf_view(&x->text));
        struct value v = value_real(0);

        if (!real) {
                v.type = VALUE_INTEGER;
                if (str_to_i64(s, &v.integer) != 0)
                        return fail_xml(x, "an integer that is none, or has more than 64 bits");
        } else if (str_ieq(s, STR("INF")) || str_ieq(s, STR("-INF"))) {
                v.real = s.p[0] == '-' ? -__builtin_inf() : __builtin_inf();
        } else if (str_ieq(s, STR("NaN"))) {
                v.real = __builtin_nan("");
        } else if (str_to_double(s, &v.real) != 0) {
                return fail_xml(x, "a real that is none");
        }
        return build_value(&x->build, &v, ret, x->err);
}

static int xml_string(struct xml_reader *x, uint32_t *ret)
{
        struct buf s BUF_CLEANUP = {0};
        int r = unescape(x, buf_view(&x->text), &s);

        if (r)
                return r;
        return build_value(&x->build, &(struct value){.type = VALUE_STRING, .string = buf_view(&s)}, ret,
                           x->err);
}

/* The attribute of the present element, copied to x->text; false when it has none. */
static bool xml_attribute(struct xml_reader *x, const char *name)
{
        buf_reset(&x->text);
        if (libxml.p_xmlTextReaderMoveToAttribute(x->reader, (const xmlChar *)name) != 1)
                return false;
        buf_addz(&x->text, (const char *)libxml.p_xmlTextReaderConstValue(x->reader));
        libxml.p_xmlTextReaderMoveToElement(x->reader);
        return true;
}

static int boolean(struct xml_reader *x, uint32_t *ret)
{
        struct str s;
        bool yes;
        int r;

        if (!xml_attribute(x, "v"))
                return fail_xml(x, "<b> needs v=\"t\" or v=\"f\"");
        s = buf_view(&x->text);
        yes = str_ieqz(s, "t") || str_ieqz(s, "true");
        if (!yes && !str_ieqz(s, "f") && !str_ieqz(s, "false"))
                return fail_xml(x, "<b> needs v=\"t\" or v=\"f\"");
        r = read_nothing(x);
        return r ? r
                 : build_value(&x->build, &(struct value){.type = VALUE_BOOLEAN, .boolean = yes}, ret,
                               x->err);
}

static int xml_constant(struct xml_reader *x, struct value v, uint32_t *ret)
{
        int r = read_nothing(x);

        return r ? r : build_value(&x->build, &v, ret, x->err);
}

static int xml_thing(struct xml_reader *x, unsigned depth, uint32_t *ret);

/* Moves to the next child element: true; false at the end of the present element, or on failure, told by
 * *ret_r. */
static bool child(struct xml_reader *x, int *ret_r)
{
        int type;

        while ((*ret_r = xml_step(x, &type)) == 0) {
                switch (type) {
                case XML_READER_TYPE_ELEMENT: return true;
                case XML_READER_TYPE_END_ELEMENT: return false;
                case XML_READER_TYPE_TEXT:
                case XML_READER_TYPE_CDATA:
                        *ret_r = fail_xml(x, "text where none should stand");
                        return false;
                default: break;
                }
        }
        return false;
}

static int xml_read_list(struct xml_reader *x, unsigned depth, uint32_t *ret)
{
        size_t mark = build_list_begin(&x->build);
        uint32_t at;
        int r = 0;

        if (!libxml.p_xmlTextReaderIsEmptyElement(x->reader))
                while (child(x, &r)) {
                        if ((r = xml_thing(x, depth, &at)) != 0 ||
                            (r = build_member(&x->build, at, x->err)) != 0)
                                return r;
                }
        return r ? r : build_list_end(&x->build, mark, ret, x->err);
}

/* <a n="Name">value</a> */
static int xml_named_attribute(struct xml_reader *x, size_t mark, unsigned depth)
{
        struct buf name BUF_CLEANUP = {0};
        struct entry entry;
        uint32_t at;
        int r;

        if (!is(x, "a"))
                return xml_unexpected(x, "<a n=\"...\">");
        if (!xml_attribute(x, "n"))
                return fail_xml(x, "<a> needs a name: n=\"...\"");
        if ((r = count_text(x, x->text.n)) != 0 || (r = unescape(x, buf_view(&x->text), &name)) != 0)
                return r;
        if ((r = build_name(&x->build, buf_view(&name), &entry, x->err)) != 0)
                return r;
        if (libxml.p_xmlTextReaderIsEmptyElement(x->reader) || !child(x, &r))
                return r ? r : fail_xml(x, "an attribute without a value");
        if ((r = xml_thing(x, depth, &at)) != 0)
                return r;
        if (child(x, &r))
                return xml_unexpected(x, "the end of the attribute");
        return r ? r : build_attribute(&x->build, mark, &entry, at, x->err);
}

static int xml_attributes(struct xml_reader *x, size_t mark, unsigned depth)
{
        int r = 0;

        if (libxml.p_xmlTextReaderIsEmptyElement(x->reader))
                return 0;
        while (child(x, &r))
                if ((r = xml_named_attribute(x, mark, depth)) != 0)
                        return r;
        return r;
}

static int xml_expression(struct xml_reader *x, uint32_t *ret)
{
        int r = build_expr(&x->build, buf_view(&x->text), ret, x->err);

        return r ? err_prefix(x->err, r, "in its expression") : 0;
}

/* Elements that hold text. */
static int simple(struct xml_reader *x, uint32_t *ret)
{
        static const char *const names[] = {"i", "r", "s", "e", "at", "rt"};
        size_t kind = 0;
        int r;

        while (kind < 6 && !is(x, names[kind]))
                kind++;
        if (kind == 6)
                return xml_unexpected(x, "a value");
        if ((r = read_text(x)) != 0)
                return r;
        switch (kind) {
        case 0:
        case 1: return xml_number(x, kind == 1, ret);
        case 2: return xml_string(x, ret);
        case 3: return xml_expression(x, ret);
        default: return build_time(&x->build, kind == 4, str_trim(buf_view(&x->text)), ret, x->err);
        }
}

static int xml_thing(struct xml_reader *x, unsigned depth, uint32_t *ret)
{
        size_t mark = build_ad_begin(&x->build);
        int r;

        if (depth >= CLASSAD_DEPTH_MAX)
                return err_set(x->err, CLASSAD_TOO_DEEP, "nested too deep (the limit is %d)",
                               CLASSAD_DEPTH_MAX);
        if (is(x, "l"))
                return xml_read_list(x, depth + 1, ret);
        if (is(x, "c")) {
                r = xml_attributes(x, mark, depth + 1);
                return r ? r : build_ad_end(&x->build, mark, ret, x->err);
        }
        if (is(x, "b"))
                return boolean(x, ret);
        if (is(x, "un"))
                return xml_constant(x, value_undefined(), ret);
        if (is(x, "er"))
                return xml_constant(x, value_error(), ret);
        return simple(x, ret);
}

static int check_doctype(struct xml_reader *x)
{
        xmlNode *nd = libxml.p_xmlTextReaderCurrentNode(x->reader);
        const xmlDtd *type = (const xmlDtd *)(const void *)nd;
        ptrdiff_t at = str_search(x->all, STR("<!DOCTYPE"));
        const struct lex lx = {.start = x->all.p};
        unsigned line, column;

        if (!nd || nd->type != XML_DTD_NODE || (!type->entities && !type->pentities))
                return 0;
        x->placed = true;
        lex_position(&lx, x->all.p + (at < 0 ? 0 : at), &line, &column);
        return err_set(x->err, CLASSAD_SYNTAX,
                       "line %u, column %u: a document that declares entities is refused", line, column);
}

static int begin_document(struct xml_reader *x)
{
        int r = libxml_open(x->err);

        if (r)
                return r;
        x->reader = libxml.p_xmlReaderForIO(feed, NULL, x, NULL, NULL,
                                            XML_PARSE_NONET | XML_PARSE_HUGE | XML_PARSE_BIG_LINES |
                                                    XML_PARSE_COMPACT);
        if (!x->reader)
                return err_set(x->err, -ENOMEM, "libxml2 has no memory");
        libxml.p_xmlTextReaderSetStructuredErrorHandler(x->reader, (xmlStructuredErrorFunc)keep_error, x);
        return 0;
}

static int next_ad(struct xml_reader *x, struct ad **ret_ad)
{
        int type, r;

        while ((r = xml_step(x, &type)) == 0) {
                if (type == 0) {
                        *ret_ad = NULL;
                        return 0;
                }
                if (type == XML_READER_TYPE_DOCUMENT_TYPE && (r = check_doctype(x)) != 0)
                        return r;
                if (type == XML_READER_TYPE_TEXT || type == XML_READER_TYPE_CDATA)
                        return fail_xml(x, "text where none should stand");
                if (type != XML_READER_TYPE_ELEMENT || is(x, "classads"))
                        continue;
                if (!is(x, "c"))
                        return xml_unexpected(x, "<c>");
                if ((r = xml_attributes(x, 0, 1)) == 0)
                        *ret_ad = build_finish(&x->build);
                return r;
        }
        return r;
}

int xml_reader_next(struct xml_reader *x, struct ad **ret_ad, struct err *err)
{
        struct err unused = {""};
        int r;

        x->err = err ? err : &unused;
        if (!x->reader && (r = begin_document(x)) != 0)
                return r;
        x->text_bytes = 0;
        r = next_ad(x, ret_ad);
        return r > 0 && !x->placed ? here(x, r) : r;
}
