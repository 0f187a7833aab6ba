/* site: the places of a simulation: clusters of agents, stores, and the links between them.
 *
 * A cluster is a number of agents that are alike; one with a batch system is one agent with all its
 * processors. Every cluster has a store beside it, and a link to each store; transfers of its agents share
 * the link's bandwidth equally.
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
 *       cut: 10h            # mean, of each agent: its network fails; default: it does not
 *       cut-for: 5m         # mean; until then jobs run on, unless their leases end
 *       outages: [{from: 2d, for: 6h}]  # all its agents are away then, and what they run is lost
 *       watts: {idle: 3, busy: 12}      # of a processor; default 0
 *       price: 0.40         # of an agent's hour; default 0
 *       cloud: {boot: 2m, idle: 5m, period: 1m, interrupted: 12h}
 *                           # its agents come and go as the wishlist has it; interrupted: mean time after
 *                           # which one is taken away; default: never
 *       links: {south: {bandwidth: 50M, latency: 20ms}}
 *   provision: {budget_hour: 10, budget_month: 2000, max_nodes: 40} # of agents that come and go
 *
 * Links that are not given: `near` to a cluster's own store, `far` to the others.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define SIM_CLUSTERS_MAX 200u
#define SIM_AGENTS_MAX   100000u

struct sim_link {
        uint64_t bytes_per_s; /* 0: not given */
        uint64_t latency_us;
};
#define SIM_ALL_AGENTS UINT32_MAX
struct sim_outage { /* times since the start */
        int64_t from_ms, to_ms;
        uint32_t agent; /* number within the cluster, from 0; SIM_ALL_AGENTS: all */
};
struct sim_cloud {
        int64_t boot_ms, idle_ms, period_ms; /* boot_ms 0: its agents are always there */
        int64_t interrupted_ms;              /* mean; 0: never */
};
struct sim_budget { /* millionths; -1: no bound */
        int64_t hour_micro, month_micro;
        uint32_t nodes; /* 0: no bound */
};
struct sim_cluster {
        char *name;
        uint32_t agents, cpus;
        uint64_t memory_mib, cache_bytes;
        double speed;
        int64_t start_delay_ms, mtbf_ms, repair_ms; /* means; mtbf_ms 0: it does not fail */
        int64_t cut_ms, cut_for_ms;                 /* means; cut_ms 0: its network does not fail */
        struct sim_link *links;                     /* to the store of each cluster, in their order */
        size_t link_count;
        struct sim_outage *outages;
        size_t outage_count;
        double idle_watts, busy_watts; /* of a processor */
        double price;                  /* of an agent's hour */
        struct sim_cloud cloud;
};
struct sim_site {
        struct sim_cluster *clusters;
        size_t count, cap;
        struct sim_link near, far;
        struct sim_budget budget;
};
void sim_site_init(struct sim_site *s); /* no clusters; near 1 GB/s and 1 ms, far 50 MB/s and 20 ms */
void sim_site_deinit(struct sim_site *s);
/* Adds a cluster with defaults and these numbers of agents and processors. Borrowed until the next one is
 * added. */
struct sim_cluster *sim_site_add(struct sim_site *s, struct str name, uint32_t agents, uint32_t cpus);
/* Returns the index of the cluster of that name; -1: there is none. */
int sim_site_find(const struct sim_site *s, struct str name);
/* Adds the clusters and links that a file describes. 0; -EINVAL with err "NAME:LINE: ...". */
int sim_site_read(struct sim_site *s, const char *name, struct str text, struct err *err);
/* Fills in the links that were not given; the site does not change any more. */
void sim_site_finish(struct sim_site *s);
uint64_t sim_site_agents(const struct sim_site *s);
uint64_t sim_site_cpus(const struct sim_site *s);
double sim_site_idle_watts(const struct sim_site *s); /* of all processors, if nothing ran */
bool sim_site_has_watts(const struct sim_site *s); /* whether a cluster gives the power of its processors */
double sim_site_price(const struct sim_site *s);   /* of an hour of all agents */
bool sim_site_has_nodes(
        const struct sim_site *s); /* whether a cluster has a price, or agents that come and go */
