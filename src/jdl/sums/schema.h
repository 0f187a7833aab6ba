/* schema: the elements of a description in XML, their attributes, and the form of each value.
 *
 * It is one table for each language, from which the reader, its messages and the shipped schema file are
 * made: that of SUMS here (sums.xsd), that of RDL in jdl/rdl (rdl.xsd). SUMS's is the language of the manual
 * of STAR's Unified Meta Scheduler and its SUMS_UJDL.xsd; the texts are our own. Pure. */
#pragma once
#include "base/buf.h"
#include "base/format/xml.h"

enum sums_type {
        SUMS_TEXT,
        SUMS_BOOLEAN, /* true, false, 1, 0 */
        SUMS_COUNT,   /* a whole number of at least 1 */
        SUMS_AMOUNT,  /* a number above 0 */
        SUMS_INTEGER,
        SUMS_ALL_OR_COUNT, /* all, or a whole number of at least 1 */
        SUMS_SYNTAX,       /* paths, rootd, xrootd */
        SUMS_ANYTHING,     /* may also have child elements */
        SUMS_ID,           /* a name that no other element of the document has: letters, digits, . _ - */
        SUMS_IDREF,        /* such a name that some element has */
        SUMS_WHEN,         /* ok, any, fail */
        SUMS_PROGRAM,      /* program, module, preset */
};
struct sums_attribute {
        const char *name;
        enum sums_type type;
        bool required;
};
struct sums_element {
        const char *name, *within;               /* within: NULL for the root */
        const struct sums_attribute *attributes; /* terminated by one without a name */
        enum sums_type text;                     /* SUMS_TEXT or a type of number, if has_text */
        bool has_text;                           /* false: only child elements */
        unsigned least, most;                    /* occurrences within its parent; most 0: any number */
};
struct schema {
        const char *what, *manual;           /* as in "a description of SUMS", "drover-sums(7)" */
        const struct sums_element *elements; /* terminated by one without a name; parents come before their
                                                children, and the root is first */
};
extern const struct schema sums_schema;
/* attributes of elements that RDL has as well */
extern const struct sums_attribute sums_stream_attributes[], sums_standard_input_attributes[],
        sums_input_attributes[], sums_output_attributes[], sums_sandbox_attributes[],
        sums_package_attributes[];

/* Appends what statistics call the parts of a description (sums_is_keyword), with blanks between. */
void sums_keywords(const struct xml *root, struct buf *out);
/* Returns the element's row; NULL: there is none. within: NULL for the root. */
const struct sums_element *schema_element(const struct schema *s, const char *name, const char *within);
/* Checks the document against the table, but not whether names of SUMS_ID and SUMS_IDREF go together.
 * Returns 0; or -EINVAL with err, which names file, line, element and attribute, and the accepted form. */
int schema_check(const struct schema *s, const struct xml *root, struct err *err);
void schema_write(const struct schema *s, struct buf *out); /* appends the text of the schema file */
/* Puts "FILE:LINE: <NAME>text" into err. Returns -EINVAL. */
int schema_fail(const struct xml *x, struct err *err, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
