/* doc: a small YAML document as a tree, for settings.
 *
 * A node is a word, a list or a map, and has its line number for error messages. Keys of a map are words and
 * unique. Aliases are followed; depth, the number of nodes and the length of their words are limited, so that
 * aliases cannot expand a file without bound. Built with libyaml (YAML 1.1); link base_doc_dep. A tree
 * belongs to one thread at a time.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define DOC_DEPTH_MAX 32u
#define DOC_NODES_MAX 100000u
#define DOC_BYTES_MAX (64u << 20) /* of all words */

enum doc_kind { DOC_WORD, DOC_LIST, DOC_MAP };

struct doc {
        enum doc_kind kind;
        bool empty;                     /* a word: nothing was written, or ~ or null without quotes */
        bool quoted;                    /* a word in quotes, or a block of text */
        unsigned line;                  /* from 1; of its key where it has one */
        const char *file;               /* the name it was read under */
        struct str key;                 /* its name in a map; empty in a list and at the root */
        struct str text;                /* of a word */
        const struct doc *first, *next; /* elements of a list or map, in the order of the file */
        size_t count;                   /* how many */
};

/* Reads a text; `name` is the file's, for messages. *ret_doc is the root, NULL for a text without anything in
 * it; doc_free frees it with all that is in it. 0; -EINVAL with err "NAME:LINE: ...": not YAML, a key that is
 * no word or stands twice, too deep, too large, more than one document. */
int doc_parse(const char *name, struct str text, struct doc **ret_doc, struct err *err);
void doc_free(struct doc *root); /* NULL is fine; of the root only */

/* Returns the value of a key; NULL: the map has none, or `map` is NULL or no map. */
const struct doc *doc_get(const struct doc *map, const char *key);

/* Convert a word to a value. 0; -EINVAL with err "NAME:LINE: KEY ...": the node is no such value. */
int doc_text(const struct doc *d, struct str *ret, struct err *err);
int doc_bool(const struct doc *d, bool *ret, struct err *err); /* true, yes, on; false, no, off */
int doc_count(const struct doc *d, uint64_t *ret, struct err *err);
int doc_number(const struct doc *d, double *ret, struct err *err);        /* finite */
int doc_size(const struct doc *d, uint64_t *ret_bytes, struct err *err);  /* base/format/quantity.h */
int doc_duration(const struct doc *d, uint64_t *ret_ms, struct err *err); /* base/format/quantity.h */
/* Calls `each` for each word of a list; a word counts as a list of one. The first result that is not 0 ends
 * the walk and is returned, with "NAME:LINE: " put before its err. */
int doc_words(const struct doc *d, int (*each)(void *arg, struct str word, struct err *err), void *arg,
              struct err *err);
/* Checks that `map` is a map whose keys are all in `keys` (NULL behind the last). 0, or -EINVAL with err,
 * which suggests the key that may be meant. */
int doc_only(const struct doc *map, const char *const *keys, struct err *err);
/* Checks that no two keys of a map differ in case only, for case-insensitive names. 0, or -EINVAL with err.
 */
int doc_no_twins(const struct doc *map, struct err *err);

/* Sets err to "NAME:LINE: KEY what" for a value that the caller cannot use; KEY is "it" in a list. Returns
 * -EINVAL. */
int doc_refuse(const struct doc *d, struct err *err, const char *what);
/* Puts "NAME:LINE: " of this node before the text of err. Returns code. */
int doc_where(struct err *err, int code, const struct doc *d);
