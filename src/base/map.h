/* map: hash tables from a byte string, or from a 64-bit number, to a pointer.
 *
 * Keys are copied, values are the caller's. Lookups and inserts are O(1) expected, with a keyed hash, so that
 * no user can choose names that collide. Values are never NULL: NULL says "not there". Not thread-safe.
 */
#pragma once
#include "base/str.h"

struct map; /* string keys */
struct map *map_new(void);
struct map *map_new_nocase(void);    /* keys compared without regard to ASCII case */
void map_free(struct map *m);        /* not the values; NULL is fine */
void map_free_values(struct map *m); /* with the values, by free(); NULL is fine */
size_t map_count(const struct map *m);
void *map_get(const struct map *m, struct str key);
void *map_put(struct map *m, struct str key, void *value); /* returns the value that was there, or NULL */
void *map_take(struct map *m, struct str key);             /* removes; returns the value, or NULL */
/* Returns the map's own copy of a key that is in it, which is valid until it is taken; with a NUL behind it.
 * The copy may be passed to map_take. */
struct str map_key(const struct map *m, struct str key);
/* Walks in no particular order: size_t at = 0; while (map_next(m, &at, &key, &value)). Nothing may be put or
 * taken while walking. key and value may be NULL. */
bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value);

struct idmap; /* number keys */
struct idmap *idmap_new(void);
void idmap_free(struct idmap *m);
size_t idmap_count(const struct idmap *m);
void *idmap_get(const struct idmap *m, uint64_t key);
void *idmap_put(struct idmap *m, uint64_t key, void *value);
void *idmap_take(struct idmap *m, uint64_t key);
bool idmap_next(const struct idmap *m, size_t *at, uint64_t *ret_key, void **ret_value);

/* Fixes the hash key, so that walks have the same order in every run, for a
 * program that must be reproducible, such as the simulator. Call this before the first map is made. */
void map_fix_order(void);

/* A 64-bit hash of bytes under the process's random key (not stable between runs; never stored). */
uint64_t map_hash(const void *p, size_t n);
/* A 64-bit hash under a fixed key, which may be stored. Whoever chooses the bytes can make two hashes
 * collide. */
uint64_t map_hash_stable(const void *p, size_t n);
