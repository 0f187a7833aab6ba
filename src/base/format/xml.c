/* Read with libxml2's xmlTextReader, node by node. Entities are not replaced by it: a reference to one that
 * XML doesn't have of itself is refused, and so a file cannot grow on reading. */
#include "base/format/xml.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "base/format/libxml.h"
#include "base/mem.h"

struct xml_schema {
        xmlSchema *schema;
};

struct reader {
        xmlTextReader *xml;
        const char *name;
        struct str rest; /* input that libxml2 has not read yet */
        struct xml *open[XML_DEPTH_MAX];
        struct xml **end[XML_DEPTH_MAX]; /* where the next element within goes */
        struct buf text[XML_DEPTH_MAX];
        unsigned depth, nodes;
        struct xml *root;
        char problem[256];
        int problem_line;
        struct err *err;
};

static int feed(void *arg, char *to, int n)
{
        struct reader *r = arg;
        size_t take = r->rest.n < (size_t)n ? r->rest.n : (size_t)n;

        if (take)
                memcpy(to, r->rest.p, take);
        r->rest = str_skip(r->rest, take);
        return (int)take;
}

static void keep_problem(void *arg, xmlErrorPtr error)
{
        struct reader *r = arg;
        struct str s = str_trim(str_of(error->message));

        if (r->problem_line || error->level < XML_ERR_ERROR || error->domain == XML_FROM_NAMESPACE)
                return;
        r->problem_line = error->line > 0 ? error->line : 1;
        for (size_t i = 0; i < s.n && i + 1 < sizeof(r->problem); i++)
                r->problem[i] = s.p[i] == '\n' ? ' ' : s.p[i];
}

static unsigned line_of(const struct reader *r)
{
        xmlNode *n = libxml.p_xmlTextReaderCurrentNode(r->xml);
        long line = n ? libxml.p_xmlGetLineNo(n) : 0;

        return line > 0 ? (unsigned)line : 1;
}

static int fail_reading(struct reader *r, const char *what)
{
        return err_set(r->err, -EINVAL, "%s:%u: %s", r->name, line_of(r), what);
}

static struct str xml_value_of(const struct reader *r)
{
        return str_of((const char *)libxml.p_xmlTextReaderConstValue(r->xml));
}

static char *name_of(const struct reader *r)
{
        return mem_dupz((const char *)libxml.p_xmlTextReaderConstName(r->xml));
}

static void read_attributes(struct reader *r, struct xml *x)
{
        while (libxml.p_xmlTextReaderMoveToNextAttribute(r->xml) == 1) {
                MEM_GROW(x->attributes, x->attribute_cap, x->attribute_count + 1);
                x->attributes[x->attribute_count++] =
                        (struct xml_attribute){name_of(r), str_dupz(xml_value_of(r))};
        }
        libxml.p_xmlTextReaderMoveToElement(r->xml);
}

static void close_element(struct reader *r)
{
        struct buf *text = &r->text[--r->depth];

        r->open[r->depth]->text = buf_take(text);
}

static int open_element(struct reader *r)
{
        bool empty = libxml.p_xmlTextReaderIsEmptyElement(r->xml) == 1;
        struct xml *x;

        if (r->depth == XML_DEPTH_MAX)
                return fail_reading(r, "this is nested too deep");
        if (++r->nodes > XML_NODES_MAX)
                return fail_reading(r, "the file holds too many elements");
        x = mem_new(struct xml);
        x->name = name_of(r);
        x->line = line_of(r);
        if (r->depth == 0) {
                r->root = x;
                x->file = mem_dupz(r->name);
        } else {
                x->file = r->root->file;
                *r->end[r->depth - 1] = x;
                r->end[r->depth - 1] = &x->next;
        }
        read_attributes(r, x);
        r->open[r->depth] = x;
        r->end[r->depth] = &x->first;
        r->depth++;
        if (empty)
                close_element(r);
        return 0;
}

static int read_node(struct reader *r)
{
        switch (libxml.p_xmlTextReaderNodeType(r->xml)) {
        case XML_READER_TYPE_ELEMENT: return open_element(r);
        case XML_READER_TYPE_END_ELEMENT: close_element(r); return 0;
        case XML_READER_TYPE_TEXT:
        case XML_READER_TYPE_CDATA:
        case XML_READER_TYPE_WHITESPACE:
        case XML_READER_TYPE_SIGNIFICANT_WHITESPACE:
                if (r->depth)
                        buf_str(&r->text[r->depth - 1], xml_value_of(r));
                return 0;
        case XML_READER_TYPE_ENTITY_REFERENCE:
                return fail_reading(r, "an entity that XML does not have of itself");
        case XML_READER_TYPE_DOCUMENT_TYPE: return fail_reading(r, "a document type is not read");
        default: return 0; /* comments, processing instructions */
        }
}

static int read_all(struct reader *r)
{
        int more, code = 0;

        libxml.p_xmlTextReaderSetStructuredErrorHandler(r->xml, keep_problem, r);
        while (code == 0 && (more = libxml.p_xmlTextReaderRead(r->xml)) != 0) {
                if (more < 0 || r->problem_line)
                        return err_set(r->err, -EINVAL, "%s:%d: %s", r->name,
                                       r->problem_line ? r->problem_line : 1,
                                       *r->problem ? r->problem : "this is not XML");
                code = read_node(r);
        }
        if (code == 0 && r->problem_line)
                return err_set(r->err, -EINVAL, "%s:%d: %s", r->name, r->problem_line, r->problem);
        return code;
}

int xml_parse(const char *name, struct str text, struct xml **ret, struct err *err)
{
        struct reader r = {.name = name, .rest = text, .err = err};
        int code = libxml_open(err);

        if (code != 0)
                return code;
        if (str_trim(text).n == 0)
                return err_set(err, -EINVAL, "%s:1: there is nothing in it", name);
        r.xml = libxml.p_xmlReaderForIO(feed, NULL, &r, NULL, NULL,
                                        XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
        if (!r.xml)
                return err_set(err, -EINVAL, "%s: cannot be read as XML", name);
        code = read_all(&r);
        while (r.depth) /* of one that was not closed */
                close_element(&r);
        libxml.p_xmlFreeTextReader(r.xml);
        if (code == 0 && !r.root)
                code = err_set(err, -EINVAL, "%s:1: this is not XML", name);
        if (code != 0) {
                xml_free(r.root);
                return code;
        }
        *ret = r.root;
        return 0;
}

/* ---- schemas */

static void keep_schema_problem(void *arg, xmlErrorPtr error)
{
        struct err *err = arg;

        if (!err->text[0])
                err_set(err, -EINVAL, "line %d: " STR_FMT, error->line,
                        STR_ARG(str_trim(str_of(error->message))));
}

int xml_schema_new(const char *name, struct str text, struct xml_schema **ret, struct err *err)
{
        struct err why = {""};
        xmlSchemaParserCtxt *context;
        xmlSchema *schema;
        int r = libxml_open(err);

        if (r != 0)
                return r;
        context = libxml.p_xmlSchemaNewMemParserCtxt(text.p, (int)text.n);
        if (!context)
                return err_set(err, -EINVAL, "%s: cannot be read as a schema", name);
        libxml.p_xmlSchemaSetParserStructuredErrors(context, keep_schema_problem, &why);
        schema = libxml.p_xmlSchemaParse(context);
        libxml.p_xmlSchemaFreeParserCtxt(context);
        if (!schema)
                return err_set(err, -EINVAL, "%s: %s", name, why.text);
        *ret = mem_new(struct xml_schema);
        (*ret)->schema = schema;
        return 0;
}

/* Checks a text that was read without a mistake. The reader could check while it reads, but libxml2 2.9 then
 * crashes at a mistake of the text. */
static int check_by_schema(const char *name, struct str text, struct xml_schema *schema, struct err *err)
{
        struct err why = {""};
        xmlDoc *doc = libxml.p_xmlReadMemory(text.p, (int)text.n, NULL, NULL,
                                             XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
        xmlSchemaValidCtxt *context = doc ? libxml.p_xmlSchemaNewValidCtxt(schema->schema) : NULL;
        int r = -1;

        if (context) {
                libxml.p_xmlSchemaSetValidStructuredErrors(context, keep_schema_problem, &why);
                r = libxml.p_xmlSchemaValidateDoc(context, doc);
                libxml.p_xmlSchemaFreeValidCtxt(context);
        }
        libxml.p_xmlFreeDoc(doc);
        if (r == 0)
                return 0;
        return err_set(err, -EINVAL, "%s: %s", name,
                       *why.text ? why.text : "cannot be checked by the schema");
}

int xml_parse_valid(const char *name, struct str text, struct xml_schema *schema, struct xml **ret,
                    struct err *err)
{
        struct xml *root;
        int r = text.n > INT_MAX ? err_set(err, -EINVAL, "%s: is too large", name)
                                 : xml_parse(name, text, &root, err);

        if (r != 0)
                return r;
        r = check_by_schema(name, text, schema, err);
        if (r == 0)
                *ret = root;
        else
                xml_free(root);
        return r;
}

void xml_schema_free(struct xml_schema *s)
{
        if (s)
                libxml.p_xmlSchemaFree(s->schema);
        free(s);
}

/* ---- writing */

static bool is_xml_char(struct str c)
{
        unsigned char b = (unsigned char)c.p[0];

        if (c.n == 3 && b == 0xef && (unsigned char)c.p[1] == 0xbf)
                return (unsigned char)c.p[2] < 0xbe; /* not U+FFFE and U+FFFF */
        return b >= 0x20 || b == '\t' || b == '\n' || b == '\r';
}

void xml_escape(struct buf *out, struct str text)
{
        while (text.n) {
                size_t n = str_utf8(text);

                if (n == 0 || !is_xml_char(str_head(text, n)))
                        buf_addz(out, "\xef\xbf\xbd");
                else if (*text.p == '&')
                        buf_addz(out, "&amp;");
                else if (*text.p == '<')
                        buf_addz(out, "&lt;");
                else if (*text.p == '>')
                        buf_addz(out, "&gt;");
                else if (*text.p == '"')
                        buf_addz(out, "&quot;");
                else
                        buf_str(out, str_head(text, n));
                text = str_skip(text, n ? n : 1);
        }
}

static void free_tree(struct xml *x)
{
        struct xml *next;

        for (struct xml *i = x->first; i; i = next) {
                next = i->next;
                free_tree(i);
        }
        for (size_t i = 0; i < x->attribute_count; i++) {
                free(x->attributes[i].name);
                free(x->attributes[i].value);
        }
        free(x->attributes);
        free(x->name);
        free(x->text);
        free(x);
}

void xml_free(struct xml *root)
{
        char *file;

        if (!root)
                return;
        file = (char *)root->file;
        free_tree(root);
        free(file);
}

struct xml *xml_dup(const struct xml *x)
{
        struct xml *copy = mem_new(struct xml), **end = &copy->first;

        copy->name = mem_dupz(x->name);
        copy->text = mem_dupz(x->text);
        copy->line = x->line;
        copy->file = x->file;
        for (size_t i = 0; i < x->attribute_count; i++) {
                MEM_GROW(copy->attributes, copy->attribute_cap, i + 1);
                copy->attributes[copy->attribute_count++] = (struct xml_attribute){
                        mem_dupz(x->attributes[i].name), mem_dupz(x->attributes[i].value)};
        }
        for (const struct xml *i = x->first; i; i = i->next, end = &(*end)->next)
                *end = xml_dup(i);
        return copy;
}

const char *xml_get(const struct xml *x, const char *name)
{
        for (size_t i = 0; x && i < x->attribute_count; i++)
                if (strcmp(x->attributes[i].name, name) == 0)
                        return x->attributes[i].value;
        return NULL;
}

bool xml_is(const struct xml *x, const char *name)
{
        return strcmp(x->name, name) == 0;
}

static struct xml *find_inside(struct xml *x, const char *name)
{
        while (x && !xml_is(x, name))
                x = x->next;
        return x;
}

struct xml *xml_child(const struct xml *x, const char *name)
{
        return x ? find_inside(x->first, name) : NULL;
}

struct xml *xml_next(const struct xml *after, const char *name)
{
        return find_inside(after->next, name);
}

struct str xml_text(const struct xml *x)
{
        return x ? str_trim(str_of(x->text)) : STR_NONE;
}
