#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static void *checked(void *p, size_t n)
{
        if (!p && n > 0) {
                fprintf(stderr, "drover: out of memory allocating %zu bytes\n", n);
                abort();
        }
        return p;
}

void *mem_alloc(size_t n)
{
        return checked(malloc(n ? n : 1), n);
}

void *mem_zalloc(size_t n)
{
        return checked(calloc(1, n ? n : 1), n);
}

void *mem_realloc(void *p, size_t n)
{
        return checked(realloc(p, n ? n : 1), n);
}

void *mem_array(void *p, size_t count, size_t size)
{
        size_t n;

        if (__builtin_mul_overflow(count, size, &n))
                checked(NULL, (size_t)-1);
        return mem_realloc(p, n);
}

char *mem_dup(const void *p, size_t n)
{
        char *copy = mem_alloc(n + 1);

        if (n)
                memcpy(copy, p, n);
        copy[n] = '\0';
        return copy;
}

char *mem_dupz(const char *z)
{
        return z ? mem_dup(z, strlen(z)) : NULL;
}
