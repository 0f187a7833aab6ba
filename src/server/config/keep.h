/* keep: the section "keep" of the settings: how long what jobs have left is kept. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct doc;
struct config_keep {
        int64_t history_ms;    /* rows of finished jobs; 0: for ever */
        uint64_t history_jobs; /* the newest so many at most; 0: no limit */
        int64_t usage_ms;      /* records of what attempts used, by whole months; 0: for ever */
        int64_t outputs_ms; /* outputs in the spool, after they were delivered; 0: as long as the history */
        bool printed_said;
        uint64_t printed_bytes; /* said: see config_keep_printed */
};
#define CONFIG_KEEP_PRINTED (1ull << 30)
/* Bytes of what jobs have printed that are kept of all jobs; 0: none. */
static inline uint64_t config_keep_printed(const struct config_keep *k)
{
        return k->printed_said ? k->printed_bytes : CONFIG_KEEP_PRINTED;
}
/* `place` is a struct config_keep, read anew. 0, or -EINVAL with err that names file and line. */
int config_keep_read(void *place, const struct doc *d, struct err *err);
