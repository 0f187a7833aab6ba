#include "jdl/sums/schema.h"

#include <errno.h>

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
static const struct sums_attribute stream[] = {
        {"URL", SUMS_TEXT, false}, {"discard", SUMS_BOOLEAN, false}, {0}};
static const struct sums_attribute standard_input[] = {{"URL", SUMS_TEXT, true}, {0}};
static const struct sums_attribute input[] = {
        {"URL", SUMS_TEXT, true},
        {"nFiles", SUMS_ALL_OR_COUNT, false},
        {"singleCopy", SUMS_BOOLEAN, false},
        {"preferStorage", SUMS_TEXT, false},
        {"limitByEvents", SUMS_BOOLEAN, false},
        {0},
};
static const struct sums_attribute output[] = {
        {"fromScratch", SUMS_TEXT, true}, {"toURL", SUMS_TEXT, true}, {0}};
static const struct sums_attribute sandbox[] = {{"installer", SUMS_TEXT, false}, {0}};
static const struct sums_attribute package[] = {{"name", SUMS_TEXT, false}, {0}};

const struct sums_element sums_elements[] = {
        {"job", NULL, job, SUMS_TEXT, false, 1, 1},
        {"command", "job", none, SUMS_TEXT, true, 1, 1},
        {"shell", "job", none, SUMS_TEXT, true, 0, 1},
        {"SandBox", "job", sandbox, SUMS_TEXT, false, 0, 1},
        {"Package", "SandBox", package, SUMS_TEXT, false, 1, ANY},
        {"File", "Package", none, SUMS_TEXT, true, 1, ANY},
        {"stdin", "job", standard_input, SUMS_TEXT, false, 0, 1},
        {"stdout", "job", stream, SUMS_TEXT, false, 0, 1},
        {"stderr", "job", stream, SUMS_TEXT, false, 0, 1},
        {"input", "job", input, SUMS_TEXT, false, 0, ANY},
        {"output", "job", output, SUMS_TEXT, false, 0, ANY},
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

static const char *const rights[] = {
        [SUMS_TEXT] = "a text",
        [SUMS_BOOLEAN] = "true or false",
        [SUMS_COUNT] = "a whole number of at least 1",
        [SUMS_AMOUNT] = "a number above 0",
        [SUMS_INTEGER] = "a whole number",
        [SUMS_ALL_OR_COUNT] = "\"all\" or a whole number of at least 1",
        [SUMS_SYNTAX] = "paths, rootd or xrootd",
        [SUMS_ANYTHING] = "anything",
};

/* ---- checks */

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
        default: return true;
        }
}

static int fail_element(const struct xml *x, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int fail_element(const struct xml *x, struct err *err, const char *fmt, ...)
{
        struct err what = {{0}};
        va_list ap;

        va_start(ap, fmt);
        err_vset(&what, 0, fmt, ap);
        va_end(ap);
        return err_set(err, -EINVAL, "%s:%u: <%.100s>%s", x->file, x->line, x->name, what.text);
}

/* Appends the names, separated by commas. */
static void list_elements(const char *within, struct buf *out)
{
        size_t start = out->n;

        for (const struct sums_element *e = sums_elements; e->name; e++)
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
static bool is_xml_own(const char *name)
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
                if (!a->name && !is_xml_own(given->name))
                        return fail_element(x, err, " has no attribute %.100s; it may have %s", given->name,
                                            buf_z(&list));
                if (a->name && !is_value(a->type, str_trim(str_of(given->value))))
                        return fail_element(x, err, " %s=\"%.100s\" is not right: %s is expected", a->name,
                                            given->value, rights[a->type]);
        }
        for (const struct sums_attribute *a = e->attributes; a->name; a++)
                if (a->required && (!xml_get(x, a->name) || !*xml_get(x, a->name)))
                        return fail_element(x, err, " has no %s, which it needs: %s is expected", a->name,
                                            rights[a->type]);
        return 0;
}

static const struct sums_element *find_element(const char *name, const char *within)
{
        for (const struct sums_element *e = sums_elements; e->name; e++)
                if (strcmp(e->name, name) == 0 && (!e->within == !within) &&
                    (!within || strcmp(e->within, within) == 0))
                        return e;
        return NULL;
}

static int check_times(const struct xml *x, const struct sums_element *e, struct err *err)
{
        for (const struct sums_element *in = sums_elements; in->name; in++) {
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
                        return fail_element(x, err, " has no <%s>, which it needs", in->name);
                if (in->most && times > in->most)
                        return fail_element(last, err, " is there %u times, and %u is right", times,
                                            in->most);
        }
        return 0;
}

static int check_text(const struct xml *x, const struct sums_element *e, struct err *err)
{
        struct str text = xml_text(x);

        if (!e->has_text && text.n)
                return fail_element(x, err, " has the text \"" STR_FMT "\", and is to have elements only",
                                    STR_ARG(str_head(text, 60)));
        if (e->has_text && e->text == SUMS_TEXT && text.n == 0)
                return fail_element(x, err, " is empty: %s is expected", rights[e->text]);
        if (e->has_text && !is_value(e->text, text))
                return fail_element(x, err, " \"" STR_FMT "\" is not right: %s is expected",
                                    STR_ARG(str_head(text, 60)), rights[e->text]);
        return 0;
}

static int check_element(const struct xml *x, const struct sums_element *e, struct err *err)
{
        int rc = e->text == SUMS_ANYTHING ? 0 : check_attributes(x, e, err);

        if (rc == 0 && e->text != SUMS_ANYTHING)
                rc = check_text(x, e, err);
        if (rc != 0 || e->text == SUMS_ANYTHING)
                return rc;
        if (rc == 0)
                rc = check_times(x, e, err);
        for (const struct xml *i = x->first; i && rc == 0; i = i->next) {
                const struct sums_element *in = find_element(i->name, e->name);
                BUF_CLEANUP struct buf list = {0};

                list_elements(e->name, &list);
                rc = in       ? check_element(i, in, err)
                     : list.n ? fail_element(i, err, " is not known within <%s>; it may have %s", e->name,
                                             buf_z(&list))
                              : fail_element(i, err, " is not known within <%s>, which has text only",
                                             e->name);
        }
        return rc;
}

int sums_check(const struct xml *root, struct err *err)
{
        const struct sums_element *e = find_element(root->name, NULL);

        if (!e)
                return fail_element(root, err,
                                    " is not a description of SUMS: the outermost element is <job>");
        return check_element(root, e, err);
}

/* ---- the file */

static const char *const schema_types[] = {
        [SUMS_TEXT] = "xs:string",    [SUMS_BOOLEAN] = "xs:boolean", [SUMS_COUNT] = "xs:positiveInteger",
        [SUMS_AMOUNT] = "amount",     [SUMS_INTEGER] = "xs:integer", [SUMS_ALL_OR_COUNT] = "allOrCount",
        [SUMS_SYNTAX] = "listSyntax",
};
static const char head[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<!-- Descriptions of STAR's Unified Meta Scheduler (SUMS), as Drover reads them; see "
        "drover-sums(7). -->\n"
        "<xs:schema xmlns:xs=\"http://www.w3.org/2001/XMLSchema\">\n"
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
static const char *content_of(const struct sums_element *e, const char **ret_attributes)
{
        unsigned kinds = 0, many = 0;

        for (const struct sums_element *in = sums_elements; in->name; in++)
                if (in->within && strcmp(in->within, e->name) == 0) {
                        kinds++;
                        many += in->most != 1;
                }
        *ret_attributes = many && kinds > 1 ? " minOccurs=\"0\" maxOccurs=\"unbounded\"" : "";
        return kinds == 0 ? NULL : kinds == 1 ? "sequence" : many ? "choice" : "all";
}

static void write_element(const struct sums_element *e, unsigned depth, bool times, struct buf *out)
{
        const char *occurs, *content = content_of(e, &occurs);
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
                for (const struct sums_element *in = sums_elements; in->name; in++)
                        if (in->within && strcmp(in->within, e->name) == 0)
                                write_element(in, depth + 1, !in_choice, out);
                buf_printf(out, "%*s</xs:%s>", (int)(2 * depth), "", content);
        }
        write_attributes(e, out);
        buf_addz(out, "</xs:complexType></xs:element>\n");
}

void sums_write_schema(struct buf *out)
{
        buf_addz(out, head);
        write_element(sums_elements, 1, false, out);
        buf_addz(out, "</xs:schema>\n");
}
