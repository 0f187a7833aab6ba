/* data: what the core knows of files and of the places where they are.
 *
 * A *store* is a configured place for files; agents measure their links to it. A *file* is identified by the
 * first 64 bits of the SHA-256 of its canonical URL, together with its owner unless it is public
 * (base/job/file_key.h). Agents report the files that they hold as changes to their last report. None of this
 * is an event: after a restart the configuration is read again, and agents report again.
 *
 * A *label* marks data as sensitive. Stores and datasets (prefixes of URLs) carry labels, and only
 * core_data_set, never an agent's own report, clears an agent for a label. A job's labels are the union of
 * those of its inputs, its image, and those that its author adds (DataLabels). The job is given only to
 * agents that are cleared for all of them, and its outputs may go only to stores that carry all of them.
 */
#pragma once
#include "base/err.h"
#include "base/job/file_id.h"

struct core;

#define CORE_LABELS_MAX 64u
#define CORE_STORES_MAX 254u     /* the spool has the number behind the last one, and 255 is INPUT_MADE */
#define CORE_FILES_MAX  1000000u /* most files counted for one agent */

struct core_store_from { /* limit on jobs that copy data from another store into this one at once */
        struct str name;
        uint32_t concurrency;
};
struct core_store {
        struct store_urls urls; /* prefixes made by file_prefix; the first one names the files */
        const struct str *labels;
        size_t label_count;
        uint32_t concurrency;    /* jobs that may read from it at once; 0: any number */
        uint32_t concurrency_in; /* jobs that may write into it at once; 0: any number */
        const struct core_store_from *from;
        size_t from_count;
        uint64_t capacity_bytes; /* what jobs and lots may fill (data/space.h); 0: it is not counted */
        uint64_t file_bytes;     /* claim of a job that does not say what it writes; 0: SPACE_FILE_BYTES */
};
struct core_label {
        struct str name;
        const struct str *agents; /* names of agents cleared for it; "x*" matches all that begin with x */
        size_t agent_count;
        const struct str *datasets; /* prefixes made by file_prefix: data below them has the label */
        size_t dataset_count;
        bool not_spooled; /* outputs may not be spooled to the server either */
};
struct core_data {
        const struct core_store *stores;
        size_t store_count;
        const struct core_label *labels; /* no agent is cleared for labels that only stores name */
        size_t label_count;
};
/* Replaces the configuration of stores and labels by a copy of `data`, and assigns every job to its class
 * again. Returns 0; or -EINVAL, -E2BIG with err, and nothing has changed. */
int core_data_set(struct core *c, const struct core_data *data, struct err *err);

struct core_file {
        uint64_t id, bytes;
};
/* Records a change of the files that an agent holds: `removed` is applied before `added`. full_reset:
 * `added` is everything that the agent holds. */
void core_cache_delta(struct core *c, const char *agent, const struct core_file *added, size_t added_count,
                      const uint64_t *removed, size_t removed_count, bool full_reset);

struct core_link {
        struct str store; /* name of the store; empty: the server's spool. Unknown names are ignored */
        uint64_t latency_us, bytes_per_s; /* 0 bytes: not known yet */
        uint64_t bytes_per_s_out;         /* write speed; 0: not known, taken to be that of reading */
        int64_t down_ms; /* Unix milliseconds since when the store does not answer the agent; 0: it answers */
        struct str down_why; /* with down_ms: the last error */
        int64_t measured_ms; /* Unix milliseconds of the newest measurement; 0: now */
        bool free_known;     /* the store has told its free space */
        uint64_t free_bytes;
};
/* Records an agent's links. An agent reports a store as down by down_ms until it answers: no job that must
 * read or write there is given to the agent meanwhile. All links are forgotten when the agent connects, and
 * reported again. */
void core_links(struct core *c, const char *agent, const struct core_link *links, size_t count);

/* ---- looking */
struct core_link_view {
        const char *agent;
        uint64_t latency_us, bytes_per_s;
        int64_t measured_ms; /* Unix milliseconds; 0: never */
        int64_t down_ms;     /* since when it does not answer this agent; 0: it answers, as far as is known */
        const char *down_why; /* NULL: it answers */
};
struct lot;
struct space_view;
struct core_store_view {
        const struct core_store *store;
        const struct core_link_view *links; /* sorted by agent; agents that have measured it or could not
                                               reach it, connected or not */
        size_t link_count;
        const struct space_view *space; /* NULL: the store has no capacity (data/space.h) */
        struct lot *const *lots; /* lots of the store, and its files outside of lots, by owner and name */
        size_t lot_count;
};
/* Calls fn for each store in the order of the configuration. */
void core_stores(struct core *c, void (*fn)(void *arg, const struct core_store_view *s), void *arg);

/* A store that a job must read or write and that some connected agents cannot reach. */
struct core_store_down {
        struct str store;
        unsigned agents;   /* number of connected agents that cannot reach it */
        unsigned of;       /* number of connected agents */
        const char *agent; /* the agent that has not reached it for the longest time */
        int64_t since_ms;  /* since when that agent has not reached it */
        const char *why;
};
/* Calls fn for each such store of a job that has not ended. Returns 0, or CORE_UNKNOWN. */
int core_job_stores_down(struct core *c, uint64_t request, uint32_t member,
                         void (*fn)(void *arg, const struct core_store_down *d), void *arg);

struct core_moved { /* by jobs whose results arrived since the start */
        uint64_t bytes_in, bytes_out;
};
void core_bytes_moved(const struct core *c, struct core_moved *ret);

/* Returns whether an agent of this name is cleared for the label, or for any label if it is empty. */
bool core_cleared(struct core *c, const char *agent, struct str label);
