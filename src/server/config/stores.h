/* stores: the settings `stores:` and `clearance:` of droverd.yaml.
 *
 *   stores:
 *     lab:                              # a name
 *       urls: [https://se.lab/data/, root://se.lab//data/]
 *       labels: [patient]
 *       concurrency: 8
 *       capacity: 10T
 *       file_size: 4G
 *       probe: https://se.lab/data/probe  # a file to read, to measure bandwidth
 *   clearance:
 *     patient:                          # a label
 *       agents: [n1, ward-*]
 *       datasets: [https://far.org/cohort/]
 *       spool: no
 */
#pragma once
#include "base/arena.h"
#include "base/format/doc.h"
#include "core/data/data.h"

struct config_stores {
        struct core_store *stores;
        struct str *probes; /* probe of each store, for agents */
        size_t store_count;
        struct core_label *labels;
        size_t label_count;
        struct arena arena; /* memory of all names */
};
/* `at` is a struct config_stores. Returns 0; or -EINVAL or -E2BIG with err, which has file and line. */
int config_stores_read(void *at, const struct doc *d, struct err *err);
int config_clearance_read(void *at, const struct doc *d, struct err *err);
void config_stores_deinit(struct config_stores *s);
/* Calls fn for each label of a store for which no agent is cleared: no job that reads from the store can
 * run. */
void config_stores_unclear(const struct config_stores *s,
                           void (*fn)(void *arg, struct str label, struct str store), void *arg);
/* Returns the stores and labels in the core's form; borrowed from s. */
struct core_data config_stores_data(const struct config_stores *s);
