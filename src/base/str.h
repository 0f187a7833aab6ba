/* str: a borrowed view of bytes.
 *
 * A str is a pointer and a length, without a terminator; it is valid as long as the bytes that it refers to.
 * Text is bytes; only ASCII case is folded. An empty str may have a NULL pointer. Passed by value.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
        const char *p;
        size_t n;
};

#define STR(literal) ((struct str){("" literal), sizeof(literal) - 1})
#define STR_NONE     ((struct str){NULL, 0})
#define STR_FMT      "%.*s" /* printf("x=" STR_FMT "\n", STR_ARG(x)) */
#define STR_ARG(s)   (int)(s).n, ((s).p ? (s).p : "")

static inline struct str str_of(const char *z) /* NULL gives the empty str */
{
        return (struct str){z, z ? strlen(z) : 0};
}
static inline struct str str_make(const char *p, size_t n)
{
        return (struct str){p, n};
}

bool str_eq(struct str a, struct str b);
bool str_eqz(struct str a, const char *z);
bool str_ieq(struct str a, struct str b); /* without regard to case */
bool str_ieqz(struct str a, const char *z);
int str_cmp(struct str a, struct str b); /* as memcmp, a prefix sorts first */
int str_icmp(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_istarts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

struct str str_skip(struct str s, size_t n); /* without its first n bytes (fewer if shorter) */
struct str str_head(struct str s, size_t n); /* its first n bytes (fewer if shorter) */
struct str str_trim(struct str s);           /* without white space at both ends */
struct str str_trim_left(struct str s);
ptrdiff_t str_find(struct str s, char c); /* index of the first c, or -1 */
ptrdiff_t str_rfind(struct str s, char c);
ptrdiff_t str_search(struct str s, struct str needle); /* index of the first needle, or -1 */

/* Moves the text before the next `sep` (or all of it) from *rest to *ret_head, and steps over the sep.
 * Returns false, with nothing changed, when *rest is used up: `rest->p == NULL`. An empty str that is not
 * used up yields one empty head, so "a,,b," has four. */
bool str_cut(struct str *rest, char sep, struct str *ret_head);

/* Takes the next word (run of non-white-space) from *rest. False when there is none. */
bool str_word(struct str *rest, struct str *ret_word);

/* Whole-string numbers: 0, -EINVAL (not a number, or anything before or behind it), -ERANGE. */
int str_to_i64(struct str s, int64_t *ret);
int str_to_u64(struct str s, uint64_t *ret);
int str_to_double(struct str s, double *ret);

/* Returns the length in bytes of the UTF-8 character that s begins with (RFC 3629); 0: s begins with none. */
size_t str_utf8(struct str s);

char *str_dupz(struct str s); /* a NUL-terminated copy; the caller frees */

/* Returns the edit distance (insert, delete, change, swap of neighbours) regardless of case, for "did you
 * mean"; max + 1 if the distance is above max, or a string is longer than 64 bytes. */
unsigned str_distance(struct str a, struct str b, unsigned max);
