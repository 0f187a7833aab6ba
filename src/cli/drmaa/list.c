#include "cli/drmaa/list.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cli/drmaa/drmaa.h"

struct list *list_new(void)
{
        return mem_zalloc(sizeof(struct list));
}

void list_add(struct list *l, const char *text)
{
        if (l->n == l->cap) {
                l->cap = l->cap ? 2 * l->cap : 8;
                l->texts = mem_array(l->texts, l->cap, sizeof(*l->texts));
        }
        l->texts[l->n++] = mem_dupz(text);
}

int list_next(struct list *l, char *ret, size_t n)
{
        if (!l || !ret || n == 0)
                return DRMAA_ERRNO_INVALID_ARGUMENT;
        if (l->next == l->n)
                return DRMAA_ERRNO_NO_MORE_ELEMENTS;
        snprintf(ret, n, "%s", l->texts[l->next++]);
        return DRMAA_ERRNO_SUCCESS;
}

void list_free(struct list *l)
{
        if (!l)
                return;
        for (size_t i = 0; i < l->n; i++)
                free(l->texts[i]);
        free(l->texts);
        free(l);
}
