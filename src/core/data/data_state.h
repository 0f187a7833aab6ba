/* data_state: the core's records of stores, labels, caches and links; for the files of core/ only. */
#pragma once
#include "base/map.h"
#include "core/data/data.h"
#include "core/model/names.h"

struct link_load;
struct locality_late;
struct space;

/* The configured stores and labels. */
struct sites {
        struct core_store *stores; /* owned, with all they name */
        struct store_urls *urls;   /* URLs of the stores for file_url; borrowed from them */
        uint64_t *store_labels;    /* a bit for each label */
        size_t store_count;
        struct core_label *labels;
        size_t label_count;
};
struct data {
        struct sites sites;
        struct idmap *files;       /* file → struct file, for files that some agent holds; NULL: none yet */
        struct idmap *inflight;    /* file → struct file, for files being fetched by some agent
                                      (inflight_transfers.h) */
        struct inputs *filling;    /* inputs whose rows inputs_fill_slice is filling */
        struct idmap *wanted[256]; /* file → inputs of members that want it (locality.c), by the file's first
                                      byte */
        struct inputs *leaving;    /* inputs of ended requests, removed from `wanted` in slices */
        /* see locality.c */
        uint32_t locality_count;
        uint64_t locality_steps;    /* entries and files looked at so far */
        struct locality_late *late; /* agents whose sets have not followed their caches yet */
        int64_t late_ms;            /* steady clock, at the last look at late_left */
        uint64_t late_left;         /* steps that the sets may take now */
        uint64_t inputs_last;       /* number of the last inputs that were made */
        struct cost_class **cost_classes;
        unsigned cost_class_count, cost_class_cap;
        unsigned ordered;      /* number of cost classes with a search order */
        uint64_t load_changes; /* number of changes of load, counted by cost_class.c */
        struct core_moved moved;
        struct space *space; /* space.h */
};
int sites_label(const struct sites *s, struct str name); /* number of the label, or -1 */

struct link {
        uint64_t latency_us, bytes_per_s, bytes_per_s_out;
        int64_t measured_ms; /* 0: not measured */
        int64_t down_ms;     /* since when it does not answer; 0: it answers */
        char *down_why;      /* owned; NULL: it answers */
        bool stale;          /* while it is down: copies in the agent's cache are too old to use, too */
};
struct agent_data {
        struct idmap *held;     /* file → its size */
        struct idmap *inflight; /* file being fetched → number of attempts that wait for it, and its source;
                                   NULL: none */
        uint64_t bytes;         /* total size of the files held */
        struct link *links;     /* by number of the store; the last one is the server's spool */
        size_t link_count;
        unsigned down_count;     /* number of links that are down */
        struct link_load *loads; /* load of each link; NULL: no transfer yet */
        size_t load_count;
        struct locality_late *late; /* locality.c; NULL: none yet */
};
/* A file that some agent holds, or is fetching (inflight_transfers.h). */
struct file {
        uint64_t bytes;
        struct core_agent **holders;
        uint32_t count, cap;
        /* Holder at which places.c starts next, so that it does not always try the same ones first. */
        uint32_t next;
};

bool agent_holds(const struct core_agent *a, uint64_t file);
/* Returns the link if the store does not answer the agent; NULL: it answers, as far as is known. */
const struct link *agent_link_down(const struct core_agent *a, size_t store);
static inline bool agent_data_misses_stores(const struct agent_data *d)
{
        return d && d->down_count;
}
/* Marks all links of the agent as up. */
void links_forget_down(struct core *c, struct core_agent *a);
/* Marks cached copies as stale after the agent has given back an attempt that it was to stage: its copies of
 * files from unreachable stores are too old to be used without asking the store. */
void links_gave_back(struct core *c, const struct job *j);
/* Adds or removes a holder of a file in a map from files to struct file; the map is made when it is NULL,
 * and a file without holders is removed. */
void file_add_holder(struct idmap **files, uint64_t id, uint64_t bytes, struct core_agent *a);
void file_drop_holder(struct idmap *files, uint64_t id, const struct core_agent *a);
void files_free(struct idmap *files);
void data_init(struct core *c);
void data_deinit(struct core *c);                 /* also frees the data records of agents and queues */
const char *data_invariant(const struct core *c); /* for core_check */
/* Does what core_data_set does, but leaves jobs in their classes. */
int data_set(struct core *c, const struct core_data *data, struct err *err);
