/* config: what an agent is told, by options, by a file in YAML, or both; options win.
 *
 * One table (config.c) names each setting once: `--pull-policy load=150%` and `pull_policy: load=150%` are
 * the same. Sizes take B, KiB, MiB, GiB, TiB (and K, M, G, T); times ms, s, m, h, d.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "place/pull_policy.h"

#define CONFIG_LIST_MAX 256

struct config_list {
        char *v[CONFIG_LIST_MAX];
        size_t n;
};

struct config {
        struct config_list servers; /* addresses, tried in turn */
        char *dir, *name, *token, *token_file;
        struct config_list owners; /* name@domain; "any": anybody's */
        struct config_list users;  /* "owner user": whom jobs run as; of root's agent, see users.h */
        uint64_t min_uid;
        char *user; /* the agent's own, with users; after config_finish in agent_uid and agent_gid */
        unsigned agent_uid, agent_gid;
        char *domain;            /* of our own user's principal: "local" */
        char *filesystem_domain; /* NULL: this machine and mount namespace */
        char *queue;
        uint64_t cpus_milli, memory_bytes, disk_bytes,
                jobs_max; /* 0: what the machine has; jobs_max 0: none */
        char *requirements, *attributes;
        struct pull_policy pull_policy;
        bool cgroups;
        uint64_t pids_max;
        uint64_t kill_grace_ms, cache_bytes;
        bool kill_on_stop;
        char *shepherd, *log_level;
};

void config_init(struct config *c);
void config_deinit(struct config *c);
/* 0; -EINVAL, or -errno of the file named by --config, with err. *ret_help: --help or --version was asked for
 * and printed. */
int config_options(struct config *c, int argc, char **argv, bool *ret_done, struct err *err);
int config_file(struct config *c, const char *path, struct err *err);
/* Fills in defaults, reads the token's file, checks. After it dir is absolute. */
int config_finish(struct config *c, struct err *err);
