/* list: lists of texts that DRMAA returns one by one. */
#pragma once
#include <stddef.h>

struct list {
        char **texts;
        size_t n, cap, next;
};
struct list *list_new(void);
void list_add(struct list *l, const char *text); /* the text is copied */
/* Copies the next text, truncated to n bytes with its NUL. Returns DRMAA_ERRNO_SUCCESS,
 * DRMAA_ERRNO_NO_MORE_ELEMENTS, or DRMAA_ERRNO_INVALID_ARGUMENT. */
int list_next(struct list *l, char *ret, size_t n);
void list_free(struct list *l); /* NULL is fine */
