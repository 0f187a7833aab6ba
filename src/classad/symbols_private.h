/* symbols_private: the inside of a table of symbols, with the buffers that it lends to the parser. */
#pragma once
#include "base/arena.h"
#include "classad/compile.h"

struct symbol_slot {
        uint32_t hash;
        symbol sym; /* 0: free */
};

struct symbols {
        struct symbol_slot *slots;
        struct str *names; /* names[1..count] */
        uint32_t mask, count;
        uint32_t known; /* symbols that every table begins with */
        bool *spelled;  /* of those: somebody used it */
        size_t names_cap;
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
