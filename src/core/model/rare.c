/* What most requests do without: sets of members that do not wait, why they are held, logs, spooled files. A
 * million requests of one job that wait have none of it. */
#include "base/mem.h"
#include "core/model/request.h"
#include "core/model/submission.h"

const struct request_rare request_nothing_rare;

struct request_rare *request_rare_make(struct request *r)
{
        if (!r->rare)
                r->rare = mem_new(struct request_rare);
        return r->rare;
}

void request_rare_trim(struct request *r)
{
        if (!r->rare || memcmp(r->rare, &request_nothing_rare, sizeof(*r->rare)) != 0)
                return;
        free(r->rare);
        r->rare = NULL;
}

void request_rare_free(struct request *r)
{
        struct request_rare *rare = r->rare;

        if (!rare)
                return;
        for (size_t i = 0; i < rare->hold_count; i++) {
                set_deinit(&rare->holds[i].members);
                free(rare->holds[i].reason);
        }
        free(rare->holds);
        for (size_t i = 0; i < rare->log_count; i++) {
                set_deinit(&rare->log[i].members);
                free(rare->log[i].entry.text);
        }
        free(rare->log);
        for (size_t i = 0; i < rare->priority_count; i++)
                set_deinit(&rare->priorities[i].members);
        free(rare->priorities);
        set_deinit(&rare->held);
        set_deinit(&rare->completed);
        set_deinit(&rare->removed);
        set_deinit(&rare->failed);
        set_deinit(&rare->unfiled);
        set_deinit(&rare->left);
        free(rare->spooled);
        free(rare->spooled_names);
        free(rare);
        r->rare = NULL;
}

size_t request_rare_bytes(const struct request *r)
{
        const struct request_rare *rare = r->rare;

        return rare ? sizeof(*rare) + set_bytes(&rare->held) + set_bytes(&rare->completed) +
                               set_bytes(&rare->removed) + set_bytes(&rare->failed)
                    : 0;
}

/* ---- */

void request_spooled_load(struct request *r, const struct submission *s)
{
        struct request_rare *rare;
        struct buf names = {0};

        if (s->spooled_count == 0)
                return;
        rare = request_rare_make(r);
        rare->spooled = mem_array(NULL, s->spooled_count, sizeof(*rare->spooled));
        rare->spooled_count = s->spooled_count;
        for (size_t i = 0; i < s->spooled_count; i++) {
                rare->spooled[i] = s->spooled[i];
                buf_str(&names, s->spooled[i].name);
        }
        rare->spooled_names = buf_take(&names);
        for (size_t i = 0, at = 0; i < rare->spooled_count; at += rare->spooled[i++].name.n)
                rare->spooled[i].name.p = rare->spooled_names + at;
}

const struct hold_group *request_hold(const struct request *r, uint32_t member)
{
        const struct request_rare *rare = request_rare(r);

        for (size_t i = 0; i < rare->hold_count; i++)
                if (set_has(&rare->holds[i].members, member))
                        return &rare->holds[i];
        return NULL;
}

void request_hold_drop(struct request *r, const struct set *members)
{
        struct request_rare *rare = r->rare;

        for (size_t i = 0; rare && i < rare->hold_count;) {
                struct hold_group *h = &rare->holds[i];

                set_remove_all(&h->members, members);
                if (set_count(&h->members) > 0) {
                        i++;
                        continue;
                }
                set_deinit(&h->members);
                free(h->reason);
                *h = rare->holds[--rare->hold_count];
        }
}
