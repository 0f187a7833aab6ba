#include "run/drover/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/mem.h"
#include "run/drover/remote_number.h"

#define ATTRIBUTES_MAX   200u
#define NAME_MAX_BYTES   256u
#define VALUE_BYTES      1024u
#define REQUIREMENTS_MAX 4096u
#define RESOURCES_MAX    8u
#define COUNT_MAX        100000000 /* most processors, or units of a resource */
#define MIB_MAX          (INT64_C(1) << 40)

struct remote_kinds {
        struct arena arena;
        struct run_kind v[RUN_KINDS_MAX];
        size_t count;
        uint64_t digest;
};

/* Adds a text and its end to the digest (FNV-1a). */
static void digest_add(struct remote_kinds *k, const char *text)
{
        do
                k->digest = (k->digest ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
        while (*text++);
}

static const char *kinds_text_of(struct remote_kinds *k, const json_t *v, size_t max)
{
        if (!json_is_string(v) || json_string_length(v) > max ||
            strlen(json_string_value(v)) != json_string_length(v))
                return NULL;
        return arena_dup(&k->arena, json_string_value(v), json_string_length(v) + 1);
}

static uint64_t kinds_count_of(const json_t *o, const char *name)
{
        return (uint64_t)remote_number_within(o, name, 0, COUNT_MAX);
}

static uint64_t kinds_bytes_of(const json_t *o, const char *name)
{
        return (uint64_t)remote_number_within(o, name, 0, MIB_MAX) << 20;
}

static void read_attributes(struct remote_kinds *k, const json_t *o, struct run_kind *to)
{
        struct run_word *all = arena_alloc(&k->arena, ATTRIBUTES_MAX * sizeof(*all));
        const char *name;
        json_t *v;

        to->attributes = all;
        json_object_foreach ((json_t *)o, name, v) {
                const char *text = strlen(name) <= NAME_MAX_BYTES ? kinds_text_of(k, v, VALUE_BYTES) : NULL;

                if (!text || to->attribute_count == ATTRIBUTES_MAX)
                        continue;
                all[to->attribute_count++] =
                        (struct run_word){arena_dup(&k->arena, name, strlen(name) + 1), text};
                digest_add(k, name);
                digest_add(k, text);
        }
}

static bool is_name(const char *z)
{
        size_t n = strlen(z);

        return n > 0 && n <= 64 &&
               strspn(z, "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == n &&
               (*z < '0' || *z > '9');
}

static void read_resources(struct remote_kinds *k, const json_t *list, struct run_kind *to)
{
        struct run_resource *all = arena_alloc(&k->arena, RESOURCES_MAX * sizeof(*all));
        json_t *o;
        size_t i;

        to->resources = all;
        json_array_foreach (list, i, o) {
                const char *name = kinds_text_of(k, json_object_get(o, "name"), 64);

                if (!name || !is_name(name) || to->resource_count == RESOURCES_MAX)
                        continue;
                uint64_t units = kinds_count_of(o, "all"), idle = kinds_count_of(o, "free");
                all[to->resource_count++] = (struct run_resource){name, units, idle < units ? idle : units,
                                                                  kinds_count_of(o, "largest")};
                digest_add(k, name);
        }
}

static void read_kind(struct remote_kinds *k, const json_t *o, struct run_kind *to)
{
        const char *requirements = kinds_text_of(k, json_object_get(o, "requirements"), REQUIREMENTS_MAX);

        *to = (struct run_kind){
                .requirements =
                        requirements ? requirements : "false", /* unreadable requirements keep jobs away */
                .places = kinds_count_of(o, "places"),
                .cpus_milli = kinds_count_of(o, "cpus") * 1000,
                .idle_cpus_milli = kinds_count_of(o, "free_cpus") * 1000,
                .node_cpus_milli = kinds_count_of(o, "largest_cpus") * 1000,
                .memory_bytes = kinds_bytes_of(o, "memory_mib"),
                .idle_memory_bytes = kinds_bytes_of(o, "free_memory_mib"),
                .node_memory_bytes = kinds_bytes_of(o, "largest_memory_mib"),
                .node_disk_bytes = kinds_bytes_of(o, "largest_disk_mib"),
        };
        read_attributes(k, json_object_get(o, "attributes"), to);
        read_resources(k, json_object_get(o, "resources"), to);
        digest_add(k, to->requirements);
}

struct remote_kinds *remote_kinds_read(const json_t *list)
{
        json_t *o;
        size_t i;

        if (!json_is_array(list))
                return NULL;
        struct remote_kinds *k = mem_new(struct remote_kinds);
        k->digest = UINT64_C(0xcbf29ce484222325);
        json_array_foreach (list, i, o)
                if (json_is_object(o) && k->count < RUN_KINDS_MAX)
                        read_kind(k, o, &k->v[k->count++]);
        k->digest += k->digest == 0; /* 0 means no digest */
        return k;
}

void remote_kinds_free(struct remote_kinds *k)
{
        if (!k)
                return;
        arena_deinit(&k->arena);
        free(k);
}

void remote_kinds_tell(const struct remote_kinds *k, struct run_capacity *ret)
{
        ret->kinds = k ? k->v : NULL;
        ret->kind_count = k ? k->count : 0;
        ret->kinds_digest = k ? k->digest : 0;
}
