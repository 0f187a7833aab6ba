/* print_private: printing of nodes and of times, for the rest of classad/. */
#pragma once
#include "classad/code.h"
#include "classad/print.h"

void print_node(struct buf *out, const struct node *nd, const struct symbols *symbols);
void value_time_text(struct buf *out, const struct value *v); /* 2024-01-31T12:00:00+01:00 */
void value_interval_text(struct buf *out, double seconds);    /* 1+02:03:04.500, leading zeros left out */
