/* schema: the elements of a description of SUMS, their attributes, and the form of each value.
 *
 * It is one table, from which the reader, its messages and the shipped schema file (sums.xsd) are made.
 * The language is that of the manual of STAR's Unified Meta Scheduler and its SUMS_UJDL.xsd; the texts are
 * our own. Pure. */
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
extern const struct sums_element
        sums_elements[]; /* terminated by one without a name; parents come before their children */

/* Checks the document against the table. Returns 0; or -EINVAL with err, which names file, line, element and
 * attribute, and the accepted form. */
int sums_check(const struct xml *root, struct err *err);
/* Appends the text of sums.xsd. */
void sums_write_schema(struct buf *out);
