#include "server/config/nodes.h"

#include <errno.h>

#include "base/format/doc.h"

#define MAX_LOST_MAX 1000000u

static int read_max_lost(const struct doc *d, uint32_t *ret, struct err *err)
{
        uint64_t n;
        int r = doc_count(d, &n, err);

        if (r == 0 && (n == 0 || n > MAX_LOST_MAX)) {
                err_set(err, -EINVAL, "max_lost must be from 1 to %u", MAX_LOST_MAX);
                return doc_where(err, -EINVAL, d);
        }
        if (r == 0)
                *ret = (uint32_t)n;
        return r;
}

static int read_duration(const struct doc *d, int64_t nothing, int64_t *ret, struct err *err)
{
        uint64_t ms;
        int r = doc_duration(d, &ms, err);

        if (r == 0)
                *ret = ms ? (int64_t)ms : nothing;
        return r;
}

int config_nodes_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"max_lost", "lost_pause", "silent_after", "drain_lossy", NULL};
        struct config_nodes *n = place;
        const struct doc *one;
        bool drain;
        int r = doc_only(d, keys, err);

        *n = (struct config_nodes){0};
        if (r == 0 && (one = doc_get(d, "max_lost")) != NULL)
                r = read_max_lost(one, &n->max_lost, err);
        if (r == 0 && (one = doc_get(d, "lost_pause")) != NULL)
                r = read_duration(one, -1, &n->lost_pause_ms, err);
        if (r == 0 && (one = doc_get(d, "silent_after")) != NULL)
                r = read_duration(one, INT64_MAX, &n->silent_ms, err);
        if (r == 0 && (one = doc_get(d, "drain_lossy")) != NULL) {
                r = doc_bool(one, &drain, err);
                n->keep_lossy = r == 0 && !drain;
        }
        return r;
}

void config_nodes_config(const struct config_nodes *n, struct core_config *ret)
{
        ret->max_lost = n->max_lost;
        ret->lost_pause_ms = n->lost_pause_ms;
        ret->node_silent_ms = n->silent_ms;
        ret->keep_lossy_nodes = n->keep_lossy;
}
