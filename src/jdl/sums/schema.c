#include "jdl/sums/schema.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "jdl/sums/sums.h"

#define ANY 0

static const struct sums_attribute none[] = {{0}};
static const struct sums_attribute job[] = {
        {"name", SUMS_TEXT, false},
        {"simulateSubmission", SUMS_BOOLEAN, false},
        {"mail", SUMS_BOOLEAN, false},
        {"nProcesses", SUMS_COUNT, false},
        {"inputOrder", SUMS_TEXT, false},
        {"fileListSyntax", SUMS_SYNTAX, false},
        {"minFilesPerProcess", SUMS_COUNT, false},
        {"maxFilesPerProcess", SUMS_COUNT, false},
        {"filesPerHour", SUMS_AMOUNT, false},
        {"minEvents", SUMS_COUNT, false},
        {"maxEvents", SUMS_COUNT, false},
        {"eventsPerHour", SUMS_AMOUNT, false},
        {"limitByEvents", SUMS_BOOLEAN, false},
        {"minMemory", SUMS_COUNT, false},
        {"maxMemory", SUMS_COUNT, false},
        {"minStorageSpace", SUMS_COUNT, false},
        {"maxStorageSpace", SUMS_COUNT, false},
        {"minWallTime", SUMS_COUNT, false},
        {"maxWallTime", SUMS_COUNT, false},
        {"softLimits", SUMS_BOOLEAN, false},
        {"copyInputLocally", SUMS_BOOLEAN, false},
        {"splitBy", SUMS_TEXT, false},
        {0},
};
const struct sums_attribute sums_stream_attributes[] = {
        {"URL", SUMS_TEXT, false}, {"discard", SUMS_BOOLEAN, false}, {0}};
const struct sums_attribute sums_standard_input_attributes[] = {{"URL", SUMS_TEXT, true}, {0}};
const struct sums_attribute sums_input_attributes[] = {
        {"URL", SUMS_TEXT, true},
        {"nFiles", SUMS_ALL_OR_COUNT, false},
        {"singleCopy", SUMS_BOOLEAN, false},
        {"preferStorage", SUMS_TEXT, false},
        {"limitByEvents", SUMS_BOOLEAN, false},
        {0},
};
const struct sums_attribute sums_output_attributes[] = {
        {"fromScratch", SUMS_TEXT, true}, {"toURL", SUMS_TEXT, true}, {0}};
const struct sums_attribute sums_sandbox_attributes[] = {{"installer", SUMS_TEXT, false}, {0}};
const struct sums_attribute sums_package_attributes[] = {{"name", SUMS_TEXT, false}, {0}};

static const struct sums_element elements[] = {
        {"job", NULL, job, SUMS_TEXT, false, 1, 1},
        {"command", "job", none, SUMS_TEXT, true, 1, 1},
        {"shell", "job", none, SUMS_TEXT, true, 0, 1},
        {"SandBox", "job", sums_sandbox_attributes, SUMS_TEXT, false, 0, 1},
        {"Package", "SandBox", sums_package_attributes, SUMS_TEXT, false, 1, ANY},
        {"File", "Package", none, SUMS_TEXT, true, 1, ANY},
        {"stdin", "job", sums_standard_input_attributes, SUMS_TEXT, false, 0, 1},
        {"stdout", "job", sums_stream_attributes, SUMS_TEXT, false, 0, 1},
        {"stderr", "job", sums_stream_attributes, SUMS_TEXT, false, 0, 1},
        {"input", "job", sums_input_attributes, SUMS_TEXT, false, 0, ANY},
        {"output", "job", sums_output_attributes, SUMS_TEXT, false, 0, ANY},
        {"Generator", "job", none, SUMS_TEXT, false, 0, 1},
        {"Location", "Generator", none, SUMS_TEXT, true, 0, 1},
        {"ReportLocation", "Generator", none, SUMS_TEXT, true, 0, 1},
        {"ScriptLocation", "Generator", none, SUMS_TEXT, true, 0, 1},
        {"ListLocation", "Generator", none, SUMS_TEXT, true, 0, 1},
        {"Action", "job", none, SUMS_ANYTHING, true, 0, ANY},
        {"storageService", "job", none, SUMS_ANYTHING, true, 0, ANY},
        {"ResourceUsage", "job", none, SUMS_TEXT, false, 0, 1},
        {"Memory", "ResourceUsage", none, SUMS_TEXT, false, 0, 1},
        {"MinMemory", "Memory", none, SUMS_COUNT, true, 0, 1},
        {"MaxMemory", "Memory", none, SUMS_COUNT, true, 0, 1},
        {"StorageSpace", "ResourceUsage", none, SUMS_TEXT, false, 0, 1},
        {"MinStorage", "StorageSpace", none, SUMS_COUNT, true, 0, 1},
        {"MaxStorage", "StorageSpace", none, SUMS_COUNT, true, 0, 1},
        {"Times", "ResourceUsage", none, SUMS_TEXT, false, 0, 1},
        {"MinWallTime", "Times", none, SUMS_COUNT, true, 0, 1},
        {"MaxWallTime", "Times", none, SUMS_COUNT, true, 0, 1},
        {"Priority", "ResourceUsage", none, SUMS_INTEGER, true, 0, 1},
        {0},
};
const struct schema sums_schema = {"a description of SUMS", "drover-sums(7)", elements};

static const char *const rights[] = {
        [SUMS_TEXT] = "a text",
        [SUMS_BOOLEAN] = "true or false",
        [SUMS_COUNT] = "a whole number of at least 1",
        [SUMS_AMOUNT] = "a number above 0",
        [SUMS_INTEGER] = "a whole number",
        [SUMS_ALL_OR_COUNT] = "\"all\" or a whole number of at least 1",
        [SUMS_SYNTAX] = "paths, rootd or xrootd",
        [SUMS_ANYTHING] = "anything",
        [SUMS_ID] = "a name of letters, digits, . _ and -, which begins with a letter,",
        [SUMS_IDREF] = "the ID of another element",
        [SUMS_WHEN] = "ok, any or fail",
        [SUMS_PROGRAM] = "program, module or preset",
};

/* ---- statistics */

bool sums_is_keyword(struct str name)
{
        struct str attribute = name, of = STR_NONE;

        if (str_find(name, '.') >= 0 && (!str_cut(&attribute, '.', &of) || !of.n))
                return false;
        for (const struct sums_element *e = elements; e->name; e++) {
                if (!of.n && e->within && str_eqz(name, e->name))
                        return true;
                if (of.n ? !str_eqz(of, e->name) || !e->within : e->within != NULL)
                        continue;
                for (const struct sums_attribute *a = e->attributes; a->name; a++)
                        if (str_eqz(attribute, a->name))
                                return true;
        }
        return false;
}

static bool has_word(struct str words, struct str word)
{
        struct str one;

        while (str_word(&words, &one))
                if (str_eq(one, word))
                        return true;
        return false;
}

static void add_word(struct buf *out, struct str word)
{
        if (sums_is_keyword(word) && !has_word(buf_view(out), word))
                buf_printf(out, "%s" STR_FMT, out->n ? " " : "", STR_ARG(word));
}

void sums_keywords(const struct xml *root, struct buf *out)
{
        for (size_t i = 0; i < root->attribute_count; i++)
                add_word(out, str_of(root->attributes[i].name));
        for (const struct xml *x = root->first; x; x = x->next) {
                add_word(out, str_of(x->name));
                for (size_t i = 0; i < x->attribute_count; i++) {
                        BUF_CLEANUP struct buf word = {0};

                        buf_printf(&word, "%s.%s", x->name, x->attributes[i].name);
                        add_word(out, buf_view(&word));
                }
        }
}

/* ---- checks */

static bool is_name(struct str s)
{
        if (s.n == 0 || s.n > 64 || !(isalpha((unsigned char)s.p[0]) || s.p[0] == '_'))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && !strchr("._-", s.p[i]))
                        return false;
        return true;
}

static bool is_value(enum sums_type type, struct str s)
{
        int64_t integer;
        uint64_t count;
        double amount;

        switch (type) {
        case SUMS_BOOLEAN:
                return str_eqz(s, "true") || str_eqz(s, "false") || str_eqz(s, "1") || str_eqz(s, "0");
        case SUMS_COUNT: return s.n && s.p[0] != '+' && str_to_u64(s, &count) == 0 && count > 0;
        case SUMS_AMOUNT: return str_to_double(s, &amount) == 0 && amount > 0 && amount < 1e15;
        case SUMS_INTEGER: return str_to_i64(s, &integer) == 0;
        case SUMS_ALL_OR_COUNT: return str_ieqz(s, "all") || is_value(SUMS_COUNT, s);
        case SUMS_SYNTAX: return str_eqz(s, "paths") || str_eqz(s, "rootd") || str_eqz(s, "xrootd");
        case SUMS_ID:
        case SUMS_IDREF: return is_name(s);
        case SUMS_WHEN: return str_eqz(s, "ok") || str_eqz(s, "any") || str_eqz(s, "fail");
        case SUMS_PROGRAM: return str_eqz(s, "program") || str_eqz(s, "module") || str_eqz(s, "preset");
        default: return true;
        }
}

int schema_fail(const struct xml *x, struct err *err, const char *fmt, ...)
{
        struct err what = {{0}};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(err, -EINVAL, "%s:%u: <%.100s>%s", x->file, x->line, x->name, what.text);
}

/* Appends the names, separated by commas. */
static void list_elements(const struct schema *s, const char *within, struct buf *out)
{
        size_t start = out->n;

        for (const struct sums_element *e = s->elements; e->name; e++)
                if (e->within && within && strcmp(e->within, within) == 0)
                        buf_printf(out, "%s<%s>", out->n > start ? ", " : "", e->name);
}

static void list_attributes(const struct sums_element *e, struct buf *out)
{
        size_t start = out->n;

        for (const struct sums_attribute *a = e->attributes; a->name; a++)
                buf_printf(out, "%s%s", out->n > start ? ", " : "", a->name);
        if (out->n == start)
                buf_addz(out, "no attributes");
}

/* Returns whether it is an attribute of XML namespaces or schemas, which editors add. */
static bool schema_is_xml_own(const char *name)
{
        return str_starts(str_of(name), STR("xmlns")) || str_find(str_of(name), ':') > 0;
}

static int check_attributes(const struct xml *x, const struct sums_element *e, struct err *err)
{
        for (size_t i = 0; i < x->attribute_count; i++) {
                const struct xml_attribute *given = &x->attributes[i];
                const struct sums_attribute *a = e->attributes;
                BUF_CLEANUP struct buf list = {0};

                while (a->name && strcmp(a->name, given->name) != 0)
                        a++;
                list_attributes(e, &list);
                if (!a->name && !schema_is_xml_own(given->name))
                        return schema_fail(x, err, " has no attribute %.100s; it may have %s", given->name,
                                           buf_z(&list));
                if (a->name && !is_value(a->type, str_trim(str_of(given->value))))
                        return schema_fail(x, err, " %s=\"%.100s\" is not right: %s is expected", a->name,
                                           given->value, rights[a->type]);
        }
        for (const struct sums_attribute *a = e->attributes; a->name; a++)
                if (a->required && (!xml_get(x, a->name) || !*xml_get(x, a->name)))
                        return schema_fail(x, err, " has no %s, which it needs: %s is expected", a->name,
                                           rights[a->type]);
        return 0;
}

const struct sums_element *schema_element(const struct schema *s, const char *name, const char *within)
{
        for (const struct sums_element *e = s->elements; e->name; e++)
                if (strcmp(e->name, name) == 0 && (!e->within == !within) &&
                    (!within || strcmp(e->within, within) == 0))
                        return e;
        return NULL;
}

static int check_times(const struct schema *s, const struct xml *x, const struct sums_element *e,
                       struct err *err)
{
        for (const struct sums_element *in = s->elements; in->name; in++) {
                const struct xml *last = NULL;
                unsigned times = 0;

                if (!in->within || strcmp(in->within, e->name) != 0)
                        continue;
                for (const struct xml *i = x->first; i; i = i->next)
                        if (xml_is(i, in->name)) {
                                times++;
                                last = i;
                        }
                if (times < in->least)
                        return schema_fail(x, err, " has no <%s>, which it needs", in->name);
                if (in->most && times > in->most)
                        return schema_fail(last, err, " is there %u times, and %u is right", times, in->most);
        }
        return 0;
}

static int check_text(const struct xml *x, const struct sums_element *e, struct err *err)
{
        struct str text = xml_text(x);

        if (!e->has_text && text.n)
                return schema_fail(x, err, " has the text \"" STR_FMT "\", and is to have elements only",
                                   STR_ARG(str_head(text, 60)));
        if (e->has_text && e->text == SUMS_TEXT && text.n == 0)
                return schema_fail(x, err, " is empty: %s is expected", rights[e->text]);
        if (e->has_text && !is_value(e->text, text))
                return schema_fail(x, err, " \"" STR_FMT "\" is not right: %s is expected",
                                   STR_ARG(str_head(text, 60)), rights[e->text]);
        return 0;
}

static int check_element(const struct schema *s, const struct xml *x, const struct sums_element *e,
                         struct err *err)
{
        int rc = e->text == SUMS_ANYTHING ? 0 : check_attributes(x, e, err);

        if (rc == 0 && e->text != SUMS_ANYTHING)
                rc = check_text(x, e, err);
        if (rc != 0 || e->text == SUMS_ANYTHING)
                return rc;
        if (rc == 0)
                rc = check_times(s, x, e, err);
        for (const struct xml *i = x->first; i && rc == 0; i = i->next) {
                const struct sums_element *in = schema_element(s, i->name, e->name);
                BUF_CLEANUP struct buf list = {0};

                list_elements(s, e->name, &list);
                rc = in ? check_element(s, i, in, err)
                     : list.n
                             ? schema_fail(i, err, " is not known within <%s>; it may have %s", e->name,
                                           buf_z(&list))
                             : schema_fail(i, err, " is not known within <%s>, which has text only", e->name);
        }
        return rc;
}

int schema_check(const struct schema *s, const struct xml *root, struct err *err)
{
        const struct sums_element *e = schema_element(s, root->name, NULL);

        if (!e)
                return schema_fail(root, err, " is not %s: the outermost element is <%s>", s->what,
                                   s->elements->name);
        return check_element(s, root, e, err);
}

/* ---- the file */

static const char *const schema_types[] = {
        [SUMS_TEXT] = "xs:string",
        [SUMS_BOOLEAN] = "xs:boolean",
        [SUMS_COUNT] = "xs:positiveInteger",
        [SUMS_AMOUNT] = "amount",
        [SUMS_INTEGER] = "xs:integer",
        [SUMS_ALL_OR_COUNT] = "allOrCount",
        [SUMS_SYNTAX] = "listSyntax",
        [SUMS_ID] = "id",
        [SUMS_IDREF] = "idref",
        [SUMS_WHEN] = "when",
        [SUMS_PROGRAM] = "program",
};
static const char head[] = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                           "<!-- The schema of %s, as Drover reads it; see %s. -->\n"
                           "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n";
static const char types[] =
        "  <xs:simpleType name=\"filled\">\n"
        "    <xs:restriction base=\"xs:string\"><xs:pattern "
        "value=\"[\\s\\S]*\\S[\\s\\S]*\"/></xs:restriction>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"amount\">\n"
        "    <xs:restriction base=\"xs:double\"><xs:minExclusive value=\"0\"/><xs:maxExclusive "
        "value=\"1e15\"/>"
        "</xs:restriction>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"allOrCount\">\n"
        "    <xs:union memberTypes=\"xs:positiveInteger\"><xs:simpleType><xs:restriction base=\"xs:token\">"
        "<xs:pattern value=\"[aA][lL][lL]\"/></xs:restriction></xs:simpleType></xs:union>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"listSyntax\">\n"
        "    <xs:restriction base=\"xs:token\"><xs:enumeration value=\"paths\"/><xs:enumeration "
        "value=\"rootd\"/>"
        "<xs:enumeration value=\"xrootd\"/></xs:restriction>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"id\">\n"
        "    <xs:restriction base=\"xs:ID\"><xs:pattern "
        "value=\"[A-Za-z_][A-Za-z0-9._\\-]{0,63}\"/></xs:restriction>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"idref\"><xs:restriction base=\"xs:IDREF\"/></xs:simpleType>\n"
        "  <xs:simpleType name=\"when\">\n"
        "    <xs:restriction base=\"xs:token\"><xs:enumeration value=\"ok\"/><xs:enumeration value=\"any\"/>"
        "<xs:enumeration value=\"fail\"/></xs:restriction>\n"
        "  </xs:simpleType>\n"
        "  <xs:simpleType name=\"program\">\n"
        "    <xs:restriction base=\"xs:token\"><xs:enumeration value=\"program\"/><xs:enumeration "
        "value=\"module\"/>"
        "<xs:enumeration value=\"preset\"/></xs:restriction>\n"
        "  </xs:simpleType>\n";

static void write_attributes(const struct sums_element *e, struct buf *out)
{
        for (const struct sums_attribute *a = e->attributes; a->name; a++)
                buf_printf(out, "<xs:attribute name=\"%s\" type=\"%s\"%s/>", a->name,
                           a->required && a->type == SUMS_TEXT ? "filled" : schema_types[a->type],
                           a->required ? " use=\"required\"" : "");
        buf_addz(out, "<xs:anyAttribute namespace=\"##other\" processContents=\"skip\"/>");
}

/* Returns the content model of an element: each child once in any order, or any number of each. In the
 * second case the reader checks the numbers, because a schema cannot express both. */
static const char *content_of(const struct schema *s, const struct sums_element *e,
                              const char **ret_attributes)
{
        unsigned kinds = 0, many = 0;

        for (const struct sums_element *in = s->elements; in->name; in++)
                if (in->within && strcmp(in->within, e->name) == 0) {
                        kinds++;
                        many += in->most != 1;
                }
        *ret_attributes = many && kinds > 1 ? " minOccurs=\"0\" maxOccurs=\"unbounded\"" : "";
        return kinds == 0 ? NULL : kinds == 1 ? "sequence" : many ? "choice" : "all";
}

static void write_element(const struct schema *s, const struct sums_element *e, unsigned depth, bool times,
                          struct buf *out)
{
        const char *occurs, *content = content_of(s, e, &occurs);
        bool in_choice = content && strcmp(content, "choice") == 0;

        buf_printf(out, "%*s<xs:element name=\"%s\"", (int)(2 * depth), "", e->name);
        if (times && e->least == 0)
                buf_addz(out, " minOccurs=\"0\"");
        if (times && e->most != 1)
                buf_addz(out, " maxOccurs=\"unbounded\"");
        if (e->text == SUMS_ANYTHING) {
                buf_addz(out, "><xs:complexType mixed=\"true\"><xs:sequence><xs:any minOccurs=\"0\" "
                              "maxOccurs=\"unbounded\" processContents=\"skip\"/></xs:sequence>"
                              "<xs:anyAttribute processContents=\"skip\"/></xs:complexType></xs:element>\n");
                return;
        }
        if (e->has_text) {
                buf_printf(out, "><xs:complexType><xs:simpleContent><xs:extension base=\"%s\">",
                           e->text == SUMS_TEXT ? "filled" : schema_types[e->text]);
                write_attributes(e, out);
                buf_addz(out, "</xs:extension></xs:simpleContent></xs:complexType></xs:element>\n");
                return;
        }
        buf_addz(out, "><xs:complexType>");
        if (content) {
                buf_printf(out, "<xs:%s%s>\n", content, occurs);
                for (const struct sums_element *in = s->elements; in->name; in++)
                        if (in->within && strcmp(in->within, e->name) == 0)
                                write_element(s, in, depth + 1, !in_choice, out);
                buf_printf(out, "%*s</xs:%s>", (int)(2 * depth), "", content);
        }
        write_attributes(e, out);
        buf_addz(out, "</xs:complexType></xs:element>\n");
}

void schema_write(const struct schema *s, struct buf *out)
{
        buf_printf(out, head, s->what, s->manual);
        buf_addz(out, types);
        write_element(s, s->elements, 1, false, out);
        buf_addz(out, "</xs:schema>\n");
}
