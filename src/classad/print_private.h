/* print_private: printing of nodes and of times, for the rest of classad/. */
#pragma once
#include "classad/code.h"
#include "classad/print.h"

void print_node(struct buf *out, const struct node *nd, const struct symbols *symbols);
/* Prints a list's node without the parentheses written around it. */
void print_bare_node(struct buf *out, const struct node *nd, const struct symbols *symbols);
void value_time_text(struct buf *out, const struct value *v); /* 2024-01-31T12:00:00+01:00 */
void value_interval_text(struct buf *out, double seconds);    /* 1+02:03:04.500, leading zeros left out */

/* Appends the text of an expression with an octal escape for each byte that is not part of a UTF-8 character
 * which XML allows; such bytes occur in strings and quoted names only. */
void print_utf8(struct buf *out, struct str text);

/* Lists the attributes to print: the ad's own, then those of its parents that are not hidden. The caller
 * frees the list. */
struct listed {
        symbol name;
        uint32_t spelling;
        const struct node *nd;
};
struct listed *print_listed(const struct ad *ad, bool with_parents, size_t *ret_n);
