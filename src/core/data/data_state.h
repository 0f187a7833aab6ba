/* data_state: how the core keeps stores, labels, caches and links; for the files of core/ only. */
#pragma once
#include "base/map.h"
#include "core/data/data.h"
#include "core/model/names.h"

struct link_load;

/* What the configuration says. */
struct sites {
        struct core_store *stores; /* owned, with all they name */
        struct store_urls *urls;   /* of the stores, as file_url wants them; borrowed from them */
        uint64_t *store_labels;    /* a bit for each label */
        size_t store_count;
        struct core_label *labels;
        size_t label_count;
};
struct data {
        struct sites sites;
        struct idmap *files;       /* file → struct file, those that some agent holds; NULL: none ever */
        struct idmap *inflight;    /* the same of those on their way to one (inflight_transfers.h) */
        struct inputs *filling;    /* those that inputs_fill_slice goes on with */
        struct idmap *wanted[256]; /* file → whose members want it (locality.c), by its first byte */
        struct inputs *leaving;    /* of requests that have ended: taken out of `wanted` in slices */
        uint32_t locality_count;   /* see locality.c */
        struct cost_class **cost_classes;
        unsigned cost_class_count, cost_class_cap;
        unsigned ordered;      /* of these, with a search order */
        uint64_t load_changes; /* of cost_class.c, ever */
        struct core_moved moved;
};
int sites_label(const struct sites *s, struct str name); /* its number, or -1 */

struct link {
        uint64_t latency_us, bytes_per_s, bytes_per_s_out;
        int64_t measured_ms; /* 0: not measured */
        int64_t down_ms;     /* it has not answered since; 0: it answers */
        char *down_why;      /* owned; NULL: it answers */
        bool stale;          /* while it is down: copies that the agent holds do not help it either */
};
struct agent_data {
        struct idmap *held; /* file → its size */
        struct idmap
                *inflight;  /* file → for how many attempts it comes, and from where; NULL: nothing does */
        uint64_t bytes;     /* of all that it holds */
        struct link *links; /* by number of the store; behind the last one, the server's spool */
        size_t link_count;
        unsigned down_count;     /* of them, those that are down */
        struct link_load *loads; /* likewise; NULL: nothing ever came */
        size_t load_count;
};
/* A file that some agent holds, or is to hold (inflight_transfers.h). */
struct file {
        uint64_t bytes;
        struct core_agent **holders;
        uint32_t count, cap;
        uint32_t
                next; /* places.c begins there, so that it is not always the same ones that are asked first */
};

bool data_counts(const struct core *c); /* where files are decides who gets what */
bool agent_holds(const struct core_agent *a, uint64_t file);
/* The link of that number, if the store has not answered the agent; NULL: it answers, as far as is known. */
const struct link *agent_link_down(const struct core_agent *a, size_t store);
static inline bool agent_data_misses_stores(const struct agent_data *d)
{
        return d && d->down_count;
}
/* All stores answer the agent, as far as is known. */
void links_forget_down(struct core *c, struct core_agent *a);
/* The agent gave back an attempt of the job that it was to stage: what it holds of stores that do not answer
 * it is too old to be used without asking them. */
void links_gave_back(struct core *c, const struct job *j);
/* In such a map from files to struct file; it is made when it is NULL. Without holders a file is forgotten.
 */
void file_add_holder(struct idmap **files, uint64_t id, uint64_t bytes, struct core_agent *a);
void file_drop_holder(struct idmap *files, uint64_t id, const struct core_agent *a);
void files_free(struct idmap *files);
void data_init(struct core *c);
void data_deinit(struct core *c);                 /* and what it keeps of agents and queues */
const char *data_invariant(const struct core *c); /* for core_check */
/* core_data_set, but that the jobs stay in the classes that they are in. */
int data_set(struct core *c, const struct core_data *data, struct err *err);
