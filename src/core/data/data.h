/* data: what the core knows of files and of the places where they are.
 *
 * A *store* is a configured place for files; agents measure how far it is. A *file* is the first 64 bits of
 * the SHA-256 of its canonical URL, with whose it is where it is not for all (base/file_key.h). Agents tell
 * which files they hold as changes to what they told before. None of this is an event: after a restart the
 * configuration is read again, and agents say again what they hold and measured.
 *
 * A *label* says that data is sensitive. Stores and datasets (prefixes of URLs) carry labels, and only what
 * core_data_set was told, never an agent's own word, makes an agent cleared for one. A job's labels are the
 * union of those of its inputs, its image, and what its author adds (DataLabels); it is given to agents that
 * are cleared for all of them, and its outputs may only go to stores that carry all of them.
 */
#pragma once
#include "base/err.h"
#include "base/file_id.h"

struct core;

#define CORE_LABELS_MAX 64u
#define CORE_STORES_MAX 254u     /* the spool has the number behind the last one, and 255 is INPUT_MADE */
#define CORE_FILES_MAX  1000000u /* that one agent may say it holds; what is more is not counted */

struct core_store_from { /* how many jobs may bring data from a store into another at once */
        struct str name;
        uint32_t concurrency;
};
struct core_store {
        struct store_urls urls; /* prefixes as file_prefix makes them; the first one names the files */
        const struct str *labels;
        size_t label_count;
        uint32_t concurrency;    /* jobs that may read from it at once; 0: any number */
        uint32_t concurrency_in; /* and write into it */
        const struct core_store_from *from;
        size_t from_count;
        uint64_t capacity_bytes; /* for people: no limit that is kept; 0: not said */
};
struct core_label {
        struct str name;
        const struct str *agents; /* names of agents that are cleared for it; "x*" is any that begins so */
        size_t agent_count;
        const struct str *datasets; /* prefixes as file_prefix makes them: what is below them has it too */
        size_t dataset_count;
        bool not_spooled; /* outputs may not come back to the server either */
};
struct core_data {
        const struct core_store *stores;
        size_t store_count;
        const struct core_label *labels; /* those that only stores name are nobody's */
        size_t label_count;
};
/* Copies it all; takes the place of what was said before, and puts every job into its class again. 0; or
 * -EINVAL, -E2BIG with err, and nothing has changed. */
int core_data_set(struct core *c, const struct core_data *data, struct err *err);

struct core_file {
        uint64_t id, bytes;
};
/* full_reset: `added` is all that the agent holds. Otherwise `removed` goes first. */
void core_cache_delta(struct core *c, const char *agent, const struct core_file *added, size_t added_count,
                      const uint64_t *removed, size_t removed_count, bool full_reset);

struct core_link {
        struct str store;                 /* the name of one; empty: the server's spool. Others are ignored */
        uint64_t latency_us, bytes_per_s; /* 0 bytes: not known yet */
        uint64_t bytes_per_s_out;         /* to there; 0: not known, taken to be the same */
        int64_t down_ms;     /* Unix milliseconds: since when it has not answered the agent; 0: it answers */
        struct str down_why; /* with down_ms: what the agent saw last */
        int64_t measured_ms; /* Unix milliseconds: the newest of these numbers; 0: now */
};
/* A store that does not answer is told to by down_ms until it does: no job that must read or write there is
 * given to the agent. All of it is forgotten when the agent connects, which tells it again. */
void core_links(struct core *c, const char *agent, const struct core_link *links, size_t count);

/* ---- looking */
struct core_link_view {
        const char *agent;
        uint64_t latency_us, bytes_per_s;
        int64_t measured_ms; /* Unix milliseconds; 0: never */
        int64_t down_ms; /* since when it has not answered this agent; 0: it answers, as far as is known */
        const char *down_why; /* NULL: it answers */
};
struct core_store_view {
        const struct core_store *store;
        const struct core_link_view *links; /* sorted by agent; those that measured or missed it, connected
                                               or not */
        size_t link_count;
};
/* Calls fn for each store in the order of the configuration. */
void core_stores(struct core *c, void (*fn)(void *arg, const struct core_store_view *s), void *arg);

/* A store that a job must read or write and that does not answer some agents that are connected. */
struct core_store_down {
        struct str store;
        unsigned agents;   /* that it does not answer, */
        unsigned of;       /* of so many that are connected */
        const char *agent; /* one of them: the one that has had no answer for longest */
        int64_t since_ms;  /* which is since then */
        const char *why;
};
/* Calls fn for each such store of the job, as long as it has not ended. 0, or CORE_UNKNOWN. */
int core_job_stores_down(struct core *c, uint64_t request, uint32_t member,
                         void (*fn)(void *arg, const struct core_store_down *d), void *arg);

struct core_moved { /* by jobs whose results were taken since the start */
        uint64_t bytes_in, bytes_out;
};
void core_bytes_moved(const struct core *c, struct core_moved *ret);

/* Is an agent of this name cleared for the label; or, with an empty one, for any? */
bool core_cleared(struct core *c, const char *agent, struct str label);
