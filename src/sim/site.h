/* site: the places of a simulation: clusters of agents, stores, and the links between them.
 *
 * A cluster is a number of agents that are alike; one with a batch system is one agent with all its
 * processors. Every cluster has a store beside it, and a link to each store, which its agents share: so many
 * transfers at once get so many parts of its bandwidth.
 *
 * As a file (YAML, see drover-sim(1)):
 *
 *   clusters:
 *     - name: north
 *       agents: 10          # default 1
 *       cpus: 16
 *       memory: 64GiB       # of each agent; default 4 GiB a processor
 *       speed: 1.2          # default 1
 *       cache: 500GiB       # of each agent; default 1 TiB
 *       start-delay: 30s    # mean time from being given to starting, as a batch system has it; default 0
 *       mtbf: 30d           # of each agent; default: they do not fail
 *       repair: 1h          # mean; default 1h
 *       links: {south: {bandwidth: 50M, latency: 20ms}}
 *
 * Links that are not given: `near` to a cluster's own store, `far` to the others.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define SIM_CLUSTERS_MAX 200u
#define SIM_AGENTS_MAX   100000u

struct sim_link {
        uint64_t bytes_per_s; /* 0: not said */
        uint64_t latency_us;
};
struct sim_cluster {
        char *name;
        uint32_t agents, cpus;
        uint64_t memory_mib, cache_bytes;
        double speed;
        int64_t start_delay_ms, mtbf_ms, repair_ms; /* means; mtbf_ms 0: it does not fail */
        struct sim_link *links;                     /* to the store of each cluster, in their order */
        size_t link_count;
};
struct sim_site {
        struct sim_cluster *clusters;
        size_t count, cap;
        struct sim_link near, far;
};
void sim_site_init(struct sim_site *s); /* no clusters; near 1 GB/s and 1 ms, far 50 MB/s and 20 ms */
void sim_site_deinit(struct sim_site *s);
/* A cluster with defaults and so many agents and processors. Borrowed until the next one is added. */
struct sim_cluster *sim_site_add(struct sim_site *s, struct str name, uint32_t agents, uint32_t cpus);
/* The index of the cluster of that name; -1. */
int sim_site_find(const struct sim_site *s, struct str name);
/* Adds what a file describes. 0; -EINVAL with err "NAME:LINE: ...". */
int sim_site_read(struct sim_site *s, const char *name, struct str text, struct err *err);
/* Fills in the links that were not given; the site does not change any more. */
void sim_site_finish(struct sim_site *s);
uint64_t sim_site_agents(const struct sim_site *s);
uint64_t sim_site_cpus(const struct sim_site *s);
