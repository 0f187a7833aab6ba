/* arena: many small allocations that end together.
 *
 * Memory is taken in growing blocks and given back all at once. An arena with a limit returns NULL past it
 * (the one place in the program where an allocation can be refused: evaluation of users' expressions uses
 * it). {0} is an empty arena with no limit. Not thread-safe.
 */
#pragma once
#include <stddef.h>

#include "base/str.h"

struct arena_block;
struct arena {
        struct arena_block *head;
        char *next, *end;
        size_t used, max; /* bytes handed out; 0 means no limit */
};

void *arena_alloc(struct arena *a, size_t n); /* 16-byte aligned, uninitialised; NULL only past max */
char *arena_dup(struct arena *a, const void *p, size_t n); /* a copy with a NUL behind it */
struct str arena_str(struct arena *a, struct str s);       /* a copy; past max an empty str with p == NULL */
void arena_reset(struct arena *a);                         /* all is gone; keeps one block for the next use */
void arena_deinit(struct arena *a);
