/* Both maps are open-addressing tables with linear probing and deletion by moving back what follows
 * (Knuth 6.4, algorithm R), so that there are no tombstones and a table that shrinks stays fast. At most 3/4
 * full. */
#include "base/map.h"

#include <assert.h>
#include <pthread.h>
#include <sys/random.h>

#include "base/mem.h"

static uint64_t hash_key[2] = {0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u};
static pthread_once_t hash_once = PTHREAD_ONCE_INIT;

static void hash_seed(void)
{
        /* Without entropy the constants above stay: slower under attack, never wrong. */
        if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) < 0)
                return;
}

static void hash_no_seed(void)
{
}

void map_fix_order(void)
{
        pthread_once(&hash_once, hash_no_seed); /* the constants stay */
}

static inline uint64_t mix(uint64_t a, uint64_t b)
{
        __uint128_t m = (__uint128_t)a * b;

        return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t hash_keyed(const uint64_t key[2], const unsigned char *p, size_t n, bool nocase)
{
        uint64_t h = key[0] ^ n, w;
        unsigned char part[8];

        while (n > 0) {
                size_t k = n < 8 ? n : 8;

                memset(part, 0, sizeof(part));
                memcpy(part, p, k);
                if (nocase)
                        for (size_t i = 0; i < k; i++)
                                if (part[i] >= 'A' && part[i] <= 'Z')
                                        part[i] = (unsigned char)(part[i] + 32);
                memcpy(&w, part, sizeof(w));
                h = mix(h ^ w, key[1] | 1);
                p += k;
                n -= k;
        }
        return mix(h, 0xd6e8feb86659fd93u);
}

static uint64_t hash_bytes(const unsigned char *p, size_t n, bool nocase)
{
        return hash_keyed(hash_key, p, n, nocase);
}

uint64_t map_hash_stable(const void *p, size_t n)
{
        static const uint64_t key[2] = {0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu};

        return hash_keyed(key, p, n, false);
}

uint64_t map_hash(const void *p, size_t n)
{
        pthread_once(&hash_once, hash_seed);
        return hash_bytes(p, n, false);
}

struct slot {
        uint64_t hash;
        void *value; /* NULL: free */
        char *key;
        size_t n;
};

struct map {
        struct slot *slots;
        size_t count, mask;
        bool nocase;
};

struct map *map_new(void)
{
        struct map *m = mem_new(struct map);

        pthread_once(&hash_once, hash_seed);
        m->mask = 7;
        m->slots = mem_zalloc((m->mask + 1) * sizeof(*m->slots));
        return m;
}

struct map *map_new_nocase(void)
{
        struct map *m = map_new();

        m->nocase = true;
        return m;
}

void map_free(struct map *m)
{
        if (!m)
                return;
        for (size_t i = 0; i <= m->mask; i++)
                free(m->slots[i].key);
        free(m->slots);
        free(m);
}

void map_free_values(struct map *m)
{
        for (size_t i = 0; m && i <= m->mask; i++)
                free(m->slots[i].value);
        map_free(m);
}

size_t map_count(const struct map *m)
{
        return m->count;
}

static size_t map_at(const struct map *m, struct str key, uint64_t hash)
{
        size_t i = hash & m->mask;

        for (; m->slots[i].value; i = (i + 1) & m->mask) {
                const struct slot *s = &m->slots[i];
                struct str have = str_make(s->key, s->n);

                if (s->hash == hash && (m->nocase ? str_ieq(have, key) : str_eq(have, key)))
                        break;
        }
        return i;
}

void *map_get(const struct map *m, struct str key)
{
        return m->slots[map_at(m, key, hash_bytes((const unsigned char *)key.p, key.n, m->nocase))].value;
}

struct str map_key(const struct map *m, struct str key)
{
        const struct slot *s =
                &m->slots[map_at(m, key, hash_bytes((const unsigned char *)key.p, key.n, m->nocase))];

        assert(s->value);
        return str_make(s->key, s->n);
}

static void map_grow(struct map *m)
{
        struct slot *old = m->slots;
        size_t n = m->mask + 1;

        m->mask = n * 2 - 1;
        m->slots = mem_zalloc(n * 2 * sizeof(*m->slots));
        for (size_t i = 0; i < n; i++) {
                size_t j;

                if (!old[i].value)
                        continue;
                for (j = old[i].hash & m->mask; m->slots[j].value; j = (j + 1) & m->mask)
                        ;
                m->slots[j] = old[i];
        }
        free(old);
}

void *map_put(struct map *m, struct str key, void *value)
{
        uint64_t hash = hash_bytes((const unsigned char *)key.p, key.n, m->nocase);
        size_t i = map_at(m, key, hash);
        void *was = m->slots[i].value;

        if (was) {
                m->slots[i].value = value;
                return was;
        }
        if ((m->count + 1) * 4 > (m->mask + 1) * 3) {
                map_grow(m);
                i = map_at(m, key, hash);
        }
        m->slots[i] = (struct slot){hash, value, mem_dup(key.p, key.n), key.n};
        m->count++;
        return NULL;
}

void *map_take(struct map *m, struct str key)
{
        size_t i = map_at(m, key, hash_bytes((const unsigned char *)key.p, key.n, m->nocase));
        void *was = m->slots[i].value;

        if (!was)
                return NULL;
        free(m->slots[i].key);
        m->count--;
        for (size_t j = i;;) {
                j = (j + 1) & m->mask;
                if (!m->slots[j].value)
                        break;
                if (((j - m->slots[j].hash) & m->mask) >= ((j - i) & m->mask)) {
                        m->slots[i] = m->slots[j];
                        i = j;
                }
        }
        m->slots[i] = (struct slot){0};
        return was;
}

bool map_next(const struct map *m, size_t *at, struct str *ret_key, void **ret_value)
{
        for (; *at <= m->mask; (*at)++) {
                const struct slot *s = &m->slots[*at];

                if (!s->value)
                        continue;
                if (ret_key)
                        *ret_key = str_make(s->key, s->n);
                if (ret_value)
                        *ret_value = s->value;
                (*at)++;
                return true;
        }
        return false;
}

struct idslot {
        uint64_t key;
        void *value;
};

struct idmap {
        struct idslot *slots;
        size_t count, mask;
};

static inline uint64_t id_hash(uint64_t key)
{
        return mix(key ^ hash_key[0], hash_key[1] | 1);
}

struct idmap *idmap_new(void)
{
        struct idmap *m = mem_new(struct idmap);

        pthread_once(&hash_once, hash_seed);
        m->mask = 7;
        m->slots = mem_zalloc((m->mask + 1) * sizeof(*m->slots));
        return m;
}

void idmap_free(struct idmap *m)
{
        if (!m)
                return;
        free(m->slots);
        free(m);
}

size_t idmap_count(const struct idmap *m)
{
        return m->count;
}

static size_t idmap_at(const struct idmap *m, uint64_t key)
{
        size_t i = id_hash(key) & m->mask;

        while (m->slots[i].value && m->slots[i].key != key)
                i = (i + 1) & m->mask;
        return i;
}

void *idmap_get(const struct idmap *m, uint64_t key)
{
        return m->slots[idmap_at(m, key)].value;
}

void *idmap_put(struct idmap *m, uint64_t key, void *value)
{
        size_t i = idmap_at(m, key);
        void *was = m->slots[i].value;

        if (!was && (m->count + 1) * 4 > (m->mask + 1) * 3) {
                struct idslot *old = m->slots;
                size_t n = m->mask + 1;

                m->mask = n * 2 - 1;
                m->slots = mem_zalloc(n * 2 * sizeof(*m->slots));
                for (size_t k = 0; k < n; k++)
                        if (old[k].value)
                                m->slots[idmap_at(m, old[k].key)] = old[k];
                free(old);
                i = idmap_at(m, key);
        }
        m->slots[i] = (struct idslot){key, value};
        if (!was)
                m->count++;
        return was;
}

void *idmap_take(struct idmap *m, uint64_t key)
{
        size_t i = idmap_at(m, key);
        void *was = m->slots[i].value;

        if (!was)
                return NULL;
        m->count--;
        for (size_t j = i;;) {
                j = (j + 1) & m->mask;
                if (!m->slots[j].value)
                        break;
                if (((j - id_hash(m->slots[j].key)) & m->mask) >= ((j - i) & m->mask)) {
                        m->slots[i] = m->slots[j];
                        i = j;
                }
        }
        m->slots[i] = (struct idslot){0};
        return was;
}

bool idmap_next(const struct idmap *m, size_t *at, uint64_t *ret_key, void **ret_value)
{
        for (; *at <= m->mask; (*at)++) {
                if (!m->slots[*at].value)
                        continue;
                if (ret_key)
                        *ret_key = m->slots[*at].key;
                if (ret_value)
                        *ret_value = m->slots[*at].value;
                (*at)++;
                return true;
        }
        return false;
}
