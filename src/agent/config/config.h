/* config: the configuration of an agent, from options, a YAML file, or both; options win.
 *
 * One table (config.c) names each setting once: `--pull-policy load=150%` and `pull_policy: load=150%` are
 * the same. Sizes take B, KiB, MiB, GiB, TiB (and K, M, G, T); times ms, s, m, h, d. Settings of a queue are
 * in a table of their own (queue.c); at the top of the file they are defaults for all queues.
 */
#pragma once
#include "agent/config/settings.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/job/args.h"
#include "place/pull_policy.h"

#define AGENT_CERTIFICATE "agent.crt" /* in the agent's own folder, after it has joined */

#define CONFIG_QUEUES_MAX 256
#define CONFIG_MOVER      "mover"     /* runner of queues for placement jobs */
#define CONFIG_DATA       "transfers" /* name of their default queue, which exists unless the file has one */

/* A queue. The file's top and the options give every queue's defaults (config.queue); an entry of the list
 * `queues` overrides them. */
struct config_queue {
        char *name, *runner;
        const struct doc *doc; /* its node in the file, for messages; NULL: none */
        char *type;            /* a word of the site's choice, for people and expressions; NULL: none */
        struct config_list tags, wishes;
        uint64_t search_order; /* UINT64_MAX: none */
        uint64_t price_milli;  /* price of a processor hour, in thousandths of a unit of the site's choice */
        uint64_t cpus_milli, memory_bytes, disk_bytes; /* 0: all that the place has */
        uint64_t jobs_max, queued_max;                 /* 0: limited by the resources only */
        uint64_t walltime_max_ms;                      /* 0: none */
        bool closed;                                   /* accepts no more jobs */
        char *close_when, *drain_when, *notify_when;   /* expressions over the queue's ad; NULL: none */
        uint64_t drain_within_ms;     /* how long jobs go on when drain_when is true; 0: to their end */
        struct config_list resources; /* lines for devices_add, or "GPUs found" */
        char *requirements, *rank, *attributes;
        struct pull_policy pull_policy;
        struct config_list environment; /* "NAME value": variables of its jobs, unless the job sets them */
        struct config_list modules;     /* environment modules loaded for all its jobs */
        char *modules_init, *conda_root;
        /* "name value": settings of each batch system or other server, in a block of its name */
#define RUNNER(name) struct config_list name;
#include "run/runners.def"
        struct config_list container;   /* settings of run/container/container.h, in the same form */
        struct config_list containment; /* "part on|off", see config_containment */
        unsigned contain;               /* result of `containment`: flags of run_spec */
};

/* A program whose lines become attributes of the queues' ads (place/sensor.h), or a health check of the
 * machine. */
#define CONFIG_SENSORS_MAX 32
struct config_sensor {
        char *name;
        struct args command;
        uint64_t interval_ms; /* 0: the program is kept running and prints whenever it likes */
        uint64_t timeout_ms;
};

struct config {
        struct config_list servers; /* addresses, tried in turn */
        char *dir, *name, *token, *token_file;
        struct config_list owners; /* owners whose jobs run here: name@domain; "any": all */
        struct config_list users; /* "owner user": local users that jobs run as; for an agent started by root,
                                     see users.h */
        uint64_t min_uid;
        char *user; /* with `users`: the agent's own user; after config_finish also in agent_uid and agent_gid
                     */
        unsigned agent_uid, agent_gid;
        char *domain;              /* domain of the principal of the agent's own user: "local" */
        char *filesystem_domain;   /* NULL: this machine and mount namespace */
        struct config_queue queue; /* defaults of all queues */
        struct config_queue **queues;
        size_t queue_count, queue_cap;
        struct doc *doc; /* the configuration file */
        bool paths;      /* false: no path that a job names is opened */
        bool cgroups;
        uint64_t pids_max;
        char *powercap; /* folder of counters of energy, or "none"; NULL: the kernel's */
        uint64_t kill_grace_ms, cache_bytes;
        uint64_t staging_silence_ms;    /* longest time without progress of a staging worker; 0: no limit */
        uint64_t shepherd_silence_ms;   /* silence after which the shepherd is reported as not answering; 0:
                                           never */
        uint64_t environments_bytes;    /* size limit of the environments made here; 0: none are made */
        uint64_t environment_limit_ms;  /* longest time for making an environment */
        char *python, *conda;           /* programs that make them; "none" */
        struct config_list pip_options; /* options of every pip install */
        uint64_t cache_fresh_ms;        /* time for which a copy is used before its store is asked again */
        uint64_t transfers;             /* most transfers at the same time */
        uint64_t placements;            /* most jobs of the queue for placement jobs; 0: no such queue */
        uint64_t transfer_limit_ms;     /* longest time of a transfer, all attempts included */
        uint64_t transfer_tries, transfer_retry_ms, transfer_stall_ms;
        uint64_t probe_ms;         /* interval between probes of a store; 0: none */
        struct config_list movers; /* "scheme program" */
        struct config_list tuning; /* "PREFIX streams=8 buffer=4M block=1M", as drover-mover takes it */
        struct config_list hide;   /* folders hidden from jobs, besides dir */
        struct config_list images; /* "name size": container images that others keep here */
        char *metrics;             /* address at which metrics are served; NULL: none */
        char *mover, *ca_file, *known_hosts;
        struct config_list node;     /* facts about the machine: "image debian-12" */
        struct config_sensor health; /* name NULL: none */
        struct config_sensor sensors[CONFIG_SENSORS_MAX];
        size_t sensor_count;
        bool kill_on_stop;
        uint64_t leave_after_ms, leave_idle_ms; /* times after which the agent ends by itself; 0: never */
        uint64_t leave_unknown_ms;              /* see leave.h */
        char *shepherd, *log_level;
};

void config_init(struct config *c);
void config_deinit(struct config *c);
/* Reads the options. *ret_done: --help or --version was given and has been printed. Returns 0; -EINVAL, or
 * -errno of the file named by --config, with err. */
int config_options(struct config *c, int argc, char **argv, bool *ret_done, struct err *err);
int config_file(struct config *c, const char *path, struct err *err);
/* Fills in defaults, reads the queues and the token's file, and checks all settings. Afterwards dir is
 * absolute, and there is at least one queue. Returns 0, or -errno with err. */
int config_finish(struct config *c, struct err *err);

/* Puts "FILE:LINE: " of a setting at the file's top before err, if the file has it. Returns code. */
int config_where(const struct config *c, const char *key, int code, struct err *err);

/* queue.c */
extern const struct settings config_queue_settings;
void config_queue_init(struct config_queue *q);
void config_queue_deinit(struct config_queue *q);
/* Returns the settings block of the queue's runner; NULL: the runner has none. */
const struct config_list *config_queue_words(const struct config_queue *q);
/* Reads `queues` of c->doc; if it is missing, one queue with the defaults is made. Returns 0, or -EINVAL
 * with err. */
int config_queues(struct config *c, struct err *err);
/* Returns whether the queue is for placement jobs: its runner is `mover`, which runs the agent's own mover
 * whatever program a job names. */
bool config_queue_places(const struct config_queue *q);
/* Adds a queue of that name with the defaults behind the others. */
struct config_queue *config_add_queue(struct config *c, const char *name);

/* sensors.c */
int config_sensors(struct config *c, struct err *err); /* reads c->doc; 0, or -EINVAL with err */
void config_sensors_deinit(struct config *c);

/* containment.c */
/* Reads `containment` of each queue into c->queues[i]->contain, flags of run_spec. Defaults: with `users`
 * every part but the network; for jobs of an ordinary agent's own user the folders and no new privileges; for
 * root's own the folders only. Returns 0, or -EINVAL with err. */
int config_containment(struct config *c, struct err *err);
/* Returns the name in the file of the index-th part, counted from 0, and its flag of run_spec; NULL: there
 * are no more. */
const char *config_containment_part(unsigned index, unsigned *ret_flag);
