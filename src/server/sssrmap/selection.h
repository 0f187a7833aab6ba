/* selection: what a request wants to see of the elements of its answer: which of them (Where), which of their
 * fields, in which order, and what is computed of them (Get).
 *
 * An element is a row of texts, one for each field, and each field has a kind, by which its texts are
 * compared and sorted. Match has * for any characters and ? for one. An element without a field meets no
 * condition on it but NE. Conditions are joined by And, which binds closer than Or, AndNot and OrNot; groups
 * are parentheses. Sort and Tros (downwards) order the elements. Count, Sum, Max, Min and Average are
 * computed of all elements, or of each group that has the same values in the fields that GroupBy names.
 *
 * What conditions may cost is bounded. Any thread; a struct belongs to one at a time. Fuzzed. */
#pragma once
#include "server/sssrmap/message.h"

#define SSSRMAP_FIELDS_MAX     32u
#define SSSRMAP_CONDITIONS_MAX 32u
#define SSSRMAP_OPERATORS_MAX  16u
#define SSSRMAP_STEPS_MAX      200000000u /* comparisons of a character or a value, for one answer */

enum sssrmap_kind {
        SSSRMAP_TEXT,   /* compared by its bytes */
        SSSRMAP_NUMBER, /* as numbers if both are, else by their bytes */
        SSSRMAP_JOB_ID, /* 7.10: by the numbers of request and job; a condition may name the request alone, 7.
                         * By their bytes if one is not an id, such as the name of a job in another system */
        SSSRMAP_USER,   /* a principal, by its bytes; a condition may name it without its domain */
};
struct sssrmap_fields {
        const char *names[SSSRMAP_FIELDS_MAX + 1]; /* up to NULL; constants */
        enum sssrmap_kind kinds[SSSRMAP_FIELDS_MAX];
};

struct sssrmap_selection;
/* Reads Where and Get of the present request, of which those that name one of `parameters` (up to NULL) and
 * compare for equality are left to the call. *ret borrows from the message and from fields. Returns 0; or
 * SSSRMAP_VALUE with err. */
int sssrmap_selection_new(const struct sssrmap_message *m, const char *const *parameters,
                          const struct sssrmap_fields *fields, struct sssrmap_selection **ret,
                          struct err *err);
void sssrmap_selection_free(struct sssrmap_selection *s); /* NULL is fine */

/* Takes an element with these values, one for each field; one whose p is NULL is not there. What is shown at
 * once is appended to out as an element of this name. */
void sssrmap_selection_add(struct sssrmap_selection *s, const struct str *values, const char *element,
                           struct buf *out);
/* Appends the elements that are known only now. Returns 0 with their number, all in all; or SSSRMAP_FAILED
 * with err: the conditions were too expensive for so many elements. */
int sssrmap_selection_end(struct sssrmap_selection *s, const char *element, struct buf *out, size_t *ret,
                          struct err *err);
