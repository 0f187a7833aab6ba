/* parse: from text to code (private to classad/). The buffers are those of the table of symbols. */
#pragma once
#include "classad/symbols_private.h"

/* Reads one expression into symbols->code, which it empties first. 0 and the place of its root, or a
 * classad_error with err. `fold` is false in tests only. */
int parse_expression(struct symbols *symbols, struct str text, bool fold, uint32_t *ret_root,
                     struct err *err);
/* Reads an ad: its attributes are symbols->entries[0..entries_n), no name twice, their code symbols->code. */
int parse_ad(struct symbols *symbols, struct str text, enum classad_syntax syntax, struct err *err);

/* See ad_parse_part(). */
int parse_ad_part(struct symbols *symbols, struct str text, size_t *at, enum classad_syntax syntax,
                  struct err *err);

/* Removes repeated names: the order is that of the first places, the value that of the last. Returns the
 * number left. `index`, when not NULL, is a zeroed table of mask + 1 numbers that becomes the ad's index. */
uint32_t entries_unique(struct entry *entries, uint32_t n, uint32_t *index, uint32_t mask);
uint32_t entries_index_mask(uint32_t n); /* the mask for n attributes */
