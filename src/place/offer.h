/* offer: builds the ad of a queue, and computes how many jobs it may ask for in advance.
 *
 * An offer says what a queue would take now. Jobs of a few milliseconds are over before the answer to the
 * next offer can arrive, so a queue whose jobs have been that short asks for more than is free, and the
 * excess jobs wait briefly at the agent: Cpus and Memory in the ad contain that read-ahead, FreeCpus and
 * FreeMemory do not. The ad's own Requirements exclude jobs that would never fit. Pure.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct offer_place { /* constant parts of the ad; strings are borrowed */
        const char *name, *machine, *queue, *filesystem_domain;
        const char *arch, *opsys; /* NULL: given by `shows` */
        const char *shows;  /* attributes that all other attributes of the ad override, "a = 1; b = 2;"; NULL:
                               none */
        const char *limits; /* limits that are enforced: "memory (v1), …" */
        const char *pull_policy;
        const char *requirements; /* the site's condition on jobs, an expression; NULL: none */
        const char *rank;         /* the site's rank of jobs, an expression; NULL: none */
        const char *extra;        /* further attributes, "a = 1; b = 2;"; NULL: none */
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* total */
        uint64_t walltime_max_ms;                      /* 0: none */
};

struct offer_now {
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* free */
        uint64_t ahead;                                /* jobs to take beyond what is free */
        uint64_t job_cpus_milli, job_memory_bytes;     /* resources of one such job */
        uint64_t load_milli;
        uint64_t running;
        const char *devices; /* "GPUs = 1; TotalGPUs = 2; "; NULL: none */
};

/* Returns the number of jobs to take beyond the free room, from the mean time that the last jobs took (0:
 * unknown). */
uint64_t offer_ahead(uint64_t mean_job_ms_x1000, uint64_t cpus_milli);
/* Returns the number of a wish by its name: small-input 1, short-run 2, large-memory 3, as in drover.proto;
 * 0: unknown. */
unsigned offer_wish(struct str word);
#define OFFER_WISHES_MAX 3u
/* Returns 0 if all expressions of the site can be parsed, or -EINVAL with err that names the one that
 * cannot. */
int offer_check(const struct offer_place *p, struct err *err);
void offer_ad(const struct offer_place *p, const struct offer_now *now, struct buf *out);
/* Appends a text as a quoted string of an ad; control characters are removed. */
void offer_text(struct buf *out, struct str s);
