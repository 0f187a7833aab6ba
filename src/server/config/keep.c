#include "server/config/keep.h"

#include <errno.h>

#include "base/format/doc.h"

static int read_age(const struct doc *d, int64_t *ret, struct err *err)
{
        uint64_t ms = 0;
        int r = d ? doc_duration(d, &ms, err) : 0;

        if (r == 0 && d && ms == 0) {
                err_set(err, -EINVAL, "%s must be longer than that; leave it out to keep all", d->key.p);
                return doc_where(err, -EINVAL, d);
        }
        *ret = (int64_t)ms;
        return r;
}

int config_keep_read(void *place, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"history", "history_jobs", "usage", "outputs", "printed", NULL};
        struct config_keep *k = place;
        const struct doc *jobs = doc_get(d, "history_jobs"), *printed = doc_get(d, "printed");
        int r = doc_only(d, keys, err);

        *k = (struct config_keep){0};
        if (r == 0)
                r = read_age(doc_get(d, "history"), &k->history_ms, err);
        if (r == 0)
                r = read_age(doc_get(d, "usage"), &k->usage_ms, err);
        if (r == 0)
                r = read_age(doc_get(d, "outputs"), &k->outputs_ms, err);
        if (r == 0 && jobs)
                r = doc_count(jobs, &k->history_jobs, err);
        if (r == 0 && printed)
                r = doc_size(printed, &k->printed_bytes, err);
        k->printed_said = printed != NULL;
        if (r == 0 && jobs && k->history_jobs == 0) {
                err_set(err, -EINVAL, "history_jobs must be more than that; leave it out to keep all");
                r = doc_where(err, -EINVAL, jobs);
        }
        return r;
}
