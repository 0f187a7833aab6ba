/* config: what an agent is told, by options, by a file in YAML, or both; options win.
 *
 * One table (config.c) names each setting once: `--pull-policy load=150%` and `pull_policy: load=150%` are
 * the same. Sizes take B, KiB, MiB, GiB, TiB (and K, M, G, T); times ms, s, m, h, d. The settings of a queue
 * are in a table of their own (config_queue.c): at the top they are the default of all queues.
 */
#pragma once
#include "agent/config/settings.h"
#include "base/args.h"
#include "base/buf.h"
#include "base/err.h"
#include "place/pull_policy.h"

#define AGENT_CERTIFICATE "agent.crt" /* in the agent's own folder, once it has joined */

#define CONFIG_QUEUES_MAX 256
#define CONFIG_MOVER      "mover"     /* the runner of queues for placement jobs */
#define CONFIG_DATA       "transfers" /* the name of the queue for them that is there unless the file has one */

/* One way in. What the file's top and the options say is every queue's default (config.queue); a queue in the
 * list `queues` changes what it names. */
struct config_queue {
        char *name, *runner;
        const struct doc *doc; /* where it stands in the file, for messages; NULL: there is none */
        char *type;            /* a word of the site's own, for people and expressions; NULL: none */
        struct config_list tags, wishes;
        uint64_t search_order; /* UINT64_MAX: none */
        uint64_t price_milli;  /* thousandths of a unit of the site's own, for an hour of a processor */
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* 0: what the place has */
        uint64_t jobs_max, queued_max;                 /* 0: no limit but the resources */
        uint64_t walltime_max_ms;                      /* 0: none */
        bool closed;                                   /* takes no more jobs */
        char *close_when, *drain_when;                 /* expressions over its ad; NULL: none */
        struct config_list resources;                  /* lines for devices_add, or "GPUs found" */
        char *requirements, *rank, *attributes;
        struct pull_policy pull_policy;
        struct config_list environment; /* "NAME value" of its jobs, where theirs say nothing */
        struct config_list modules;     /* loaded for all its jobs */
        char *modules_init, *conda_root;
        /* "name value" of the settings of a batch system or another server, in a block of its name */
#define RUNNER(name) struct config_list name;
#include "run/runners.def"
        struct config_list container;   /* the same, of run/container/container.h */
        struct config_list containment; /* "part on|off", see config_containment */
        unsigned contain;               /* what comes of it: flags of run_spec */
};

/* A program whose lines become attributes of the queues' ads (place/sensor.h), or which says whether the
 * machine is well. */
#define CONFIG_SENSORS_MAX 32
struct config_sensor {
        char *name;
        struct args command;
        uint64_t interval_ms; /* 0: it is kept running, and says something whenever it likes */
        uint64_t timeout_ms;
};

struct config {
        struct config_list servers; /* addresses, tried in turn */
        char *dir, *name, *token, *token_file;
        struct config_list owners; /* name@domain; "any": anybody's */
        struct config_list users;  /* "owner user": whom jobs run as; of root's agent, see users.h */
        uint64_t min_uid;
        char *user; /* the agent's own, with users; after config_finish in agent_uid and agent_gid */
        unsigned agent_uid, agent_gid;
        char *domain;              /* of our own user's principal: "local" */
        char *filesystem_domain;   /* NULL: this machine and mount namespace */
        struct config_queue queue; /* what holds for each queue that says nothing else */
        struct config_queue **queues;
        size_t queue_count, queue_cap;
        struct doc *doc; /* the file */
        bool cgroups;
        uint64_t pids_max;
        uint64_t kill_grace_ms, cache_bytes;
        uint64_t staging_silence_ms;    /* a worker that stages makes no progress; 0: never */
        uint64_t shepherd_silence_ms;   /* the shepherd is said not to answer; 0: never */
        uint64_t environments_bytes;    /* that jobs run in, made here; 0: none are made */
        uint64_t environment_limit_ms;  /* for making one */
        char *python, *conda;           /* that make them; "none" */
        struct config_list pip_options; /* of every install */
        uint64_t cache_fresh_ms;        /* a copy is used for so long before its store is asked */
        uint64_t transfers;             /* at the same time */
        uint64_t placements;            /* jobs of the queue for placement jobs; 0: there is none */
        uint64_t transfer_limit_ms;     /* for one, with all its attempts */
        uint64_t transfer_tries, transfer_retry_ms;
        uint64_t probe_ms;         /* between two looks at a store; 0: none */
        struct config_list movers; /* "scheme program" */
        struct config_list hide;   /* folders that jobs do not see, beside dir */
        struct config_list images; /* "name size": here already, kept by others */
        char *mover, *ca_file, *known_hosts;
        struct config_list node;     /* what the machine is: "image debian-12" */
        struct config_sensor health; /* name NULL: there is none */
        struct config_sensor sensors[CONFIG_SENSORS_MAX];
        size_t sensor_count;
        bool kill_on_stop;
        char *shepherd, *log_level;
};

void config_init(struct config *c);
void config_deinit(struct config *c);
/* 0; -EINVAL, or -errno of the file named by --config, with err. *ret_help: --help or --version was asked for
 * and printed. */
int config_options(struct config *c, int argc, char **argv, bool *ret_done, struct err *err);
int config_file(struct config *c, const char *path, struct err *err);
/* Fills in defaults, reads the queues and the token's file, checks. After it dir is absolute, and there is at
 * least one queue. */
int config_finish(struct config *c, struct err *err);

/* Puts "FILE:LINE: " of a setting of the file's top before err, where it stands there. Returns code. */
int config_where(const struct config *c, const char *key, int code, struct err *err);

/* config_queue.c */
extern const struct settings config_queue_settings;
void config_queue_init(struct config_queue *q);
void config_queue_deinit(struct config_queue *q);
/* The block of the queue's runner; NULL: that has none. */
const struct config_list *config_queue_words(const struct config_queue *q);
/* Reads `queues` of c->doc; without it there is one, with the defaults. 0, or -EINVAL with err. */
int config_queues(struct config *c, struct err *err);
/* Is it for placement jobs? Its runner is `mover`: what it runs is the agent's own mover, whatever a job
 * names. */
bool config_queue_places(const struct config_queue *q);
/* A queue of that name with the defaults, added behind the others. */
struct config_queue *config_add_queue(struct config *c, const char *name);

/* sensors.c */
int config_sensors(struct config *c, struct err *err); /* reads c->doc; 0, or -EINVAL with err */
void config_sensors_deinit(struct config *c);

/* config_containment.c */
/* Reads `containment` of each queue into c->queues[i]->contain, flags of run_spec. What the file does not say
 * is: with `users` every part but the network; for jobs of an ordinary agent's own user the folders and no
 * new privileges; for root's own the folders only. 0, or -EINVAL with err. */
int config_containment(struct config *c, struct err *err);
/* The parts, by numbers from 0: the name in the file, and the flag of run_spec; NULL: there are no more. */
const char *config_containment_part(unsigned index, unsigned *ret_flag);
