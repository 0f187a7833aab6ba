/* mem: allocation that succeeds or aborts.
 *
 * Drover does not try to go on without memory: a server that was refused an allocation would have to undo
 * half a step, and the log makes a restart safe. Sizes that a user controls are limited before the allocation
 * (see the limits in each module); the other causes of a failure are our own bugs and a machine that is out
 * of memory, and both end in abort() with one line on stderr. None of these returns NULL, and no caller tests
 * for it.
 */
#pragma once
#include <stddef.h>
#include <stdlib.h>

void *mem_alloc(size_t n);                           /* uninitialised; n may be 0 */
void *mem_zalloc(size_t n);                          /* zeroed */
void *mem_realloc(void *p, size_t n);                /* as realloc */
void *mem_array(void *p, size_t count, size_t size); /* realloc of count * size bytes, checked for overflow */
char *mem_dup(const void *p, size_t n);              /* a copy with a NUL behind it */
char *mem_dupz(const char *z);                       /* a copy of a C string; NULL gives NULL */

#define mem_new(type) ((type *)mem_zalloc(sizeof(type)))

/* Grows an array to room for `need` elements, at least doubling: MEM_GROW(v->items, v->cap, n). */
#define MEM_GROW(array, cap, need)                                                                           \
        do {                                                                                                 \
                if ((size_t)(cap) < (size_t)(need)) {                                                        \
                        size_t mem_grow_ = (size_t)(cap)*2 < 8 ? 8 : (size_t)(cap)*2;                        \
                        if (mem_grow_ < (size_t)(need))                                                      \
                                mem_grow_ = (need);                                                          \
                        (array) = mem_array((array), mem_grow_, sizeof(*(array)));                           \
                        (cap) = mem_grow_;                                                                   \
                }                                                                                            \
        } while (0)

/* For __attribute__((cleanup)): MEM_CLEANUP char *text = ...; frees at the end of the scope. */
static inline void mem_free_cleanup(void *pp)
{
        free(*(void **)pp);
}
#define MEM_CLEANUP __attribute__((cleanup(mem_free_cleanup)))
