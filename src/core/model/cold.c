/* Rarely used state of requests: sets of members that do not wait, hold reasons, logs, spooled files. A
 * million waiting requests of one job have none of it.
 */
#include "base/map.h"
#include "base/mem.h"
#include "core/model/graph.h"
#include "core/model/request.h"
#include "core/model/submission.h"

#include <assert.h>

const struct request_cold request_nothing_cold;

struct request_cold *request_cold_make(struct request *r)
{
        if (!r->cold)
                r->cold = mem_new(struct request_cold);
        return r->cold;
}

void request_cold_trim(struct request *r)
{
        if (!r->cold || memcmp(r->cold, &request_nothing_cold, sizeof(*r->cold)) != 0)
                return;
        free(r->cold);
        r->cold = NULL;
}

void request_cold_free(struct request *r)
{
        struct request_cold *cold = r->cold;

        if (!cold)
                return;
        for (size_t i = 0; i < cold->hold_count; i++) {
                set_deinit(&cold->holds[i].members);
                free(cold->holds[i].reason);
        }
        free(cold->holds);
        for (size_t i = 0; i < cold->log_count; i++) {
                set_deinit(&cold->log[i].members);
                free(cold->log[i].entry.text);
        }
        free(cold->log);
        for (size_t i = 0; i < cold->priority_count; i++)
                set_deinit(&cold->priorities[i].members);
        free(cold->priorities);
        set_deinit(&cold->held);
        set_deinit(&cold->completed);
        set_deinit(&cold->removed);
        set_deinit(&cold->failed);
        set_deinit(&cold->unfiled);
        set_deinit(&cold->left);
        set_deinit(&cold->blocked);
        set_deinit(&cold->delayed);
        set_deinit(&cold->waiting);
        set_deinit(&cold->reserved);
        set_deinit(&cold->authorised);
        idmap_free(cold->exits);
        graph_free(cold->graph);
        free(cold->dependents);
        map_free(cold->spooled_index);
        free(cold->spooled);
        free(cold->spooled_names);
        free(cold);
        r->cold = NULL;
}

size_t request_cold_bytes(const struct request *r)
{
        const struct request_cold *cold = r->cold;

        return cold ? sizeof(*cold) + set_bytes(&cold->held) + set_bytes(&cold->completed) +
                               set_bytes(&cold->removed) + set_bytes(&cold->failed) +
                               set_bytes(&cold->blocked) + set_bytes(&cold->waiting) +
                               set_bytes(&cold->delayed) + graph_bytes(cold->graph) +
                               (cold->exits ? idmap_count(cold->exits) * 16 : 0)
                    : 0;
}

int32_t request_exit(const struct request *r, uint32_t member)
{
        const struct idmap *exits = request_cold(r)->exits;

        return exits ? (int32_t)(intptr_t)idmap_get(exits, member) : 0;
}

void request_exit_set(struct request *r, uint32_t member, int32_t code)
{
        if (code && r->cold && r->cold->exits)
                idmap_put(r->cold->exits, member, (void *)(intptr_t)code);
}

/* ---- spooled files */

void request_spooled_load(struct request *r, const struct submission *s)
{
        struct request_cold *cold;
        struct buf names = {0};

        if (s->spooled_count == 0)
                return;
        cold = request_cold_make(r);
        cold->spooled = mem_array(NULL, s->spooled_count, sizeof(*cold->spooled));
        cold->spooled_count = s->spooled_count;
        for (size_t i = 0; i < s->spooled_count; i++) {
                cold->spooled[i] = s->spooled[i];
                buf_str(&names, s->spooled[i].name);
        }
        cold->spooled_names = buf_take(&names);
        for (size_t i = 0, at = 0; i < cold->spooled_count; at += cold->spooled[i++].name.n)
                cold->spooled[i].name.p = cold->spooled_names + at;
}

void request_spooled_keep(const struct request *r)
{
        if (request_cold(r)->spooled_count)
                r->cold->spooled_users++;
}

struct map *request_spooled_take(const struct request *r)
{
        struct request_cold *cold = r->cold;

        if (!cold || cold->spooled_count == 0)
                return NULL;
        request_spooled_keep(r);
        if (!cold->spooled_index) {
                cold->spooled_index = map_new();
                for (size_t i = 0; i < cold->spooled_count; i++)
                        map_put(cold->spooled_index, cold->spooled[i].name, &cold->spooled[i]);
        }
        return cold->spooled_index;
}

void request_spooled_give(const struct request *r)
{
        if (request_cold(r)->spooled_count == 0)
                return;
        assert(r->cold->spooled_users > 0);
        if (--r->cold->spooled_users > 0)
                return;
        map_free(r->cold->spooled_index);
        r->cold->spooled_index = NULL;
}

const struct hold_group *request_hold(const struct request *r, uint32_t member)
{
        const struct request_cold *cold = request_cold(r);

        for (size_t i = 0; i < cold->hold_count; i++)
                if (set_has(&cold->holds[i].members, member))
                        return &cold->holds[i];
        return NULL;
}

void request_hold_drop(struct request *r, const struct set *members)
{
        struct request_cold *cold = r->cold;

        for (size_t i = 0; cold && i < cold->hold_count;) {
                struct hold_group *h = &cold->holds[i];

                set_remove_all(&h->members, members);
                if (set_count(&h->members) > 0) {
                        i++;
                        continue;
                }
                set_deinit(&h->members);
                free(h->reason);
                *h = cold->holds[--cold->hold_count];
        }
}
