/* offer: the ad of a queue, and how far ahead it may ask.
 *
 * An offer says what a queue would take now. Jobs that last a few milliseconds are over before the answer to
 * the next offer can arrive, so a queue whose jobs have been that short asks for more than is free and keeps
 * the rest waiting for a moment at the agent: Cpus and Memory in the ad contain that read-ahead, FreeCpus and
 * FreeMemory do not. The ad's own Requirements keep out what would never fit. Pure.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct offer_place { /* what does not change; strings borrowed */
        const char *name, *machine, *queue, *filesystem_domain;
        const char *arch, *opsys; /* NULL: `shows` says them */
        const char *shows;  /* attributes that all others of the ad go before, "a = 1; b = 2;"; NULL: none */
        const char *limits; /* which limits are real: "memory (v1), …" */
        const char *pull_policy;
        const char *requirements;                      /* of the site, an expression; NULL: none */
        const char *rank;                              /* of jobs, an expression; NULL: none */
        const char *extra;                             /* more attributes, "a = 1; b = 2;"; NULL: none */
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* total */
        uint64_t walltime_max_ms;                      /* 0: none */
};

struct offer_now {
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* free */
        uint64_t ahead;                                /* jobs to take beyond what is free */
        uint64_t job_cpus_milli, job_memory_bytes;     /* of such a job */
        uint64_t load_milli;
        uint64_t running;
        const char *devices; /* "GPUs = 1; TotalGPUs = 2; "; NULL: none */
};

/* How many jobs beyond what is free to keep at hand, from the mean time that the last jobs took (0: not
 * known). */
uint64_t offer_ahead(uint64_t mean_job_ms_x1000, uint64_t cpus_milli);
/* A wish of an offer by its word: small-input 1, short-run 2, large-memory 3, as in drover.proto; 0: none of
 * them. */
unsigned offer_wish(struct str word);
#define OFFER_WISHES_MAX 3u
/* Can what the site says in its own words be read? 0, or -EINVAL with err that names which cannot. */
int offer_check(const struct offer_place *p, struct err *err);
void offer_ad(const struct offer_place *p, const struct offer_now *now, struct buf *out);
/* A text as an ad has it, in quotes; control characters go. */
void offer_text(struct buf *out, struct str s);
