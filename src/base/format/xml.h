/* xml: a small XML document as a tree, for files that other programs define.
 *
 * An element has a name, attributes, elements within it, and its text: all characters that stand directly in
 * it, in order, as one string. Each knows its file and line, so that whoever reads it can say where a mistake
 * is. Comments and processing instructions are skipped; a document that declares entities is refused, and
 * no other file and no network is looked at. Depth and the number of elements are limited. Link base_xml_dep;
 * libxml2 is opened on the first call. A tree belongs to one thread at a time.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

#define XML_DEPTH_MAX 64u
#define XML_NODES_MAX 100000u

struct xml_attribute {
        char *name, *value;
};

struct xml {
        char *name; /* with the prefix of its namespace, if it has one */
        char *text; /* never NULL */
        struct xml_attribute *attributes;
        size_t attribute_count, attribute_cap;
        struct xml *first, *next;
        unsigned line;    /* of the end of its start tag, from 1: where its text begins */
        const char *file; /* the name it was read under; the root's own, the others' borrowed */
};

/* Reads a text; `name` is the file's, for messages. *ret is the root element, for xml_free. 0; -EINVAL with
 * err "NAME:LINE: ..."; -ENOSYS: no libxml2 on this machine. */
int xml_parse(const char *name, struct str text, struct xml **ret, struct err *err);
/* A schema (XML Schema 1.0), by which documents are checked. It may be used by one thread at a time. */
struct xml_schema;
/* Reads a schema, which includes no other one. 0; -EINVAL, -ENOSYS as xml_parse. */
int xml_schema_new(const char *name, struct str text, struct xml_schema **ret, struct err *err);
void xml_schema_free(struct xml_schema *s); /* NULL is fine */
/* As xml_parse; -EINVAL also for a document that does not follow the schema. */
int xml_parse_valid(const char *name, struct str text, struct xml_schema *schema, struct xml **ret,
                    struct err *err);
/* Appends text with the characters escaped that have a meaning in elements and in attributes. What XML cannot
 * hold (most control characters, and bytes that are no UTF-8) becomes U+FFFD. */
void xml_escape(struct buf *out, struct str text);
void xml_free(struct xml *root); /* with its contents, without its next siblings; NULL is fine */
/* Copies the element and its contents, without its next siblings. The copy borrows the file's name. */
struct xml *xml_dup(const struct xml *x);

/* Returns the value of an attribute; NULL: the element has none, or x is NULL. */
const char *xml_get(const struct xml *x, const char *name);
bool xml_is(const struct xml *x, const char *name);
/* Return the first child of x with the name, and the next sibling behind `after` with it; NULL: none. */
struct xml *xml_child(const struct xml *x, const char *name);
struct xml *xml_next(const struct xml *after, const char *name);
struct str xml_text(const struct xml *x); /* without white space at both ends; empty for NULL */
