#include "agent/model/queue.h"

#include <stdlib.h>
#include <string.h>

#include "agent/model/attempt.h"
#include "base/format/name.h"
#include "base/mem.h"

bool queue_is_local(const struct queue *q)
{
        return q->backend->runner->kind == &runner_process;
}

bool queue_hands_on(const struct queue *q)
{
        return !strcmp(q->config->runner, "drover");
}

struct queue *queue_find(const struct agent *a, const char *name)
{
        for (size_t i = 0; i < a->queue_count; i++)
                if (!strcmp(a->queues[i]->config->name, name))
                        return a->queues[i];
        return NULL;
}

bool queue_offer_name(const struct queue *q, unsigned kind, struct buf *out)
{
        buf_addz(out, q->config->name);
        if (kind)
                buf_printf(out, "+%u", kind + 1);
        return kind == 0 || (name_is_queue(buf_view(out)) && !queue_find(q->a, buf_z(out)));
}

struct queue *queue_find_offer(const struct agent *a, const char *name, unsigned *ret_kind)
{
        struct queue *q = queue_find(a, name);
        const char *plus = strrchr(name, '+');
        uint64_t n = 0;

        *ret_kind = 0;
        if (q || !plus || str_to_u64(str_of(plus + 1), &n) != 0 || n < 2 || n > RUN_KINDS_MAX)
                return q;
        MEM_CLEANUP char *head = str_dupz(str_make(name, (size_t)(plus - name)));
        q = queue_find(a, head);
        *ret_kind = (unsigned)n - 1;
        return q && queue_hands_on(q) ? q : NULL;
}

size_t queues_count(const struct agent *a, enum attempt_state state)
{
        size_t n = 0;

        for (size_t i = 0; i < a->queue_count; i++)
                n += a->queues[i]->counts[state];
        return n;
}

uint64_t queues_committed_cpus(const struct agent *a)
{
        uint64_t n = 0;

        for (size_t i = 0; i < a->queue_count; i++)
                if (queue_is_local(a->queues[i]) && !config_queue_places(a->queues[i]->config))
                        n += a->queues[i]->committed_cpus_milli;
        return n;
}

uint64_t queues_committed_memory(const struct agent *a)
{
        uint64_t n = 0;

        for (size_t i = 0; i < a->queue_count; i++)
                if (queue_is_local(a->queues[i]) && !config_queue_places(a->queues[i]->config))
                        n += a->queues[i]->committed_memory_bytes;
        return n;
}

unsigned queue_containment(const struct queue *q)
{
        return queue_is_local(q) ? q->config->contain : 0;
}

void queue_ad_changed(struct queue *q)
{
        q->ad_stale = true;
}

/* The text of the names is part of the same allocation. */
struct run_word *queue_words(const struct config_list *l)
{
        size_t bytes = l->n * sizeof(struct run_word);

        for (size_t i = 0; i < l->n; i++)
                bytes += strlen(l->v[i]) + 1;
        struct run_word *words = mem_alloc(bytes + 1);
        char *text = (char *)(words + l->n);
        for (size_t i = 0; i < l->n; i++) {
                size_t n = strlen(l->v[i]) + 1;

                memcpy(text, l->v[i], n);
                char *blank = strchr(text, ' ');
                *blank = 0;
                words[i] = (struct run_word){text, blank + 1};
                text += n;
        }
        return words;
}

void name_list_add(struct name_list *l, const struct attempt *at)
{
        MEM_GROW(l->v, l->cap, l->n + 1);
        l->v[l->n++] = attempt_name(at);
}
