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
        uint32_t names; /* names charged to this account */
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
        struct str name;                 /* empty for a free record */
        struct symbols_account *account; /* account charged for the name; NULL: the name is kept */
        const struct symbols_use *last;  /* last use that took the name: saves a lookup in its set */
        uint32_t refs;                   /* number of uses that hold the name, or SYMBOL_KEPT; 0: free */
        union {
                symbol of; /* the name that this is another spelling of; 0: a name */
                symbol next_free;
        };
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
        bool *spelled;  /* for each known symbol: whether it has been used */
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
