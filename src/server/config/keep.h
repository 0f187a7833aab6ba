/* keep: the section "keep" of the settings: how long the records and files of finished jobs are kept. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct doc;
struct config_keep {
        int64_t history_ms;    /* rows of finished jobs; 0: for ever */
        uint64_t history_jobs; /* maximum number, the newest; 0: no limit */
        int64_t usage_ms;      /* usage records, by whole months; 0: for ever */
        int64_t outputs_ms;    /* outputs in the spool, after their delivery; 0: as long as the history */
        bool printed_said;
        uint64_t printed_bytes; /* said: see config_keep_printed */
};
#define CONFIG_KEEP_PRINTED (1ull << 30)
/* Returns the limit in bytes on the kept output of all jobs; 0: none is kept. */
static inline uint64_t config_keep_printed(const struct config_keep *k)
{
        return k->printed_said ? k->printed_bytes : CONFIG_KEEP_PRINTED;
}
/* `place` is a struct config_keep, which is replaced. Returns 0, or -EINVAL with err that names file and
 * line. */
int config_keep_read(void *place, const struct doc *d, struct err *err);
