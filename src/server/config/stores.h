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
        struct str *probes; /* of each; agents are told */
        size_t store_count;
        struct core_label *labels;
        size_t label_count;
        struct arena arena; /* has all they name */
};
/* `at` is a struct config_stores. 0; or -EINVAL, -E2BIG with err, which has file and line. */
int config_stores_read(void *at, const struct doc *d, struct err *err);
int config_clearance_read(void *at, const struct doc *d, struct err *err);
void config_stores_deinit(struct config_stores *s);
/* Calls for each label of a store for which no agent is cleared: no job that reads from there will run. */
void config_stores_unclear(const struct config_stores *s,
                           void (*fn)(void *arg, struct str label, struct str store), void *arg);
/* The stores and labels as the core takes them; borrowed from s. */
struct core_data config_stores_data(const struct config_stores *s);
