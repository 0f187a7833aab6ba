/* symbols_private: the inside of a table of symbols, with the buffers that it lends to the parser. */
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "base/set.h"
#include "classad/compile.h"

struct symbol_slot {
        uint32_t hash;
        symbol sym; /* 0: free */
};

struct symbols_account {
        uint32_t names; /* that it pays for */
        uint32_t uses;
        char name[];
};

struct symbols_use {
        struct symbols *symbols;
        struct symbols_account *account; /* NULL: keeps for good */
        struct set names;
        uint32_t max;
};

#define SYMBOL_KEPT UINT32_MAX

struct symbol_record {
        struct str name;                 /* of a free one nothing */
        struct symbols_account *account; /* that pays for it; NULL: it is kept */
        const struct symbols_use *last;  /* the last use that has it, to ask its set more seldom */
        uint32_t refs;                   /* uses that have it, or SYMBOL_KEPT; 0: it is free */
        symbol next_free;
};

struct symbols {
        struct symbol_slot *slots;
        struct symbol_record *records; /* records[1..count] */
        uint32_t mask, count, used;
        symbol first_free, last_free; /* the longest free comes first */
        uint32_t free_count;
        struct symbols_use *use; /* the current one, or NULL */
        struct symbols_use keep;
        struct map *accounts;
        uint32_t known; /* symbols that every table begins with */
        bool *spelled;  /* of those: somebody used it */
        size_t records_cap;
        uint64_t key;
        struct arena arena;
        uint32_t from_eval; /* names that eval() added */
        bool frozen;        /* a parse may add no names */
        /* the parser's: empty between parses */
        struct code code;
        struct buf text; /* strings with their escapes resolved */
        struct entry *entries;
        size_t entries_n, entries_cap;
        uint32_t *kids;
        size_t kids_n, kids_cap;
};
