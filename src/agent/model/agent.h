/* agent: the struct that all parts of the agent share: configuration, identity, and a pointer to each part's
 * own state.
 *
 * One thread runs one loop; other threads copy files (workers). The effects of a turn of the loop are
 * gathered and carried out at its end in this order (main.c): the journal is written, tasks go to the
 * runner, messages go to the server, offers are updated. Nothing is therefore told or started that a
 * restarted agent would not know.
 */
#pragma once
#include "agent/config/config.h"
#include "agent/machine/machine.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/system/cgroup.h"
#include "base/system/hidden.h"
#include "ev/loop.h"
#include "place/lease_clock.h"
#include "run/runner.h"

#define AGENT_MAGIC 0x41474e54u

struct attempt;
struct attempt_news;
struct energy;

struct agent {
        uint32_t magic;
        struct loop *loop;
        struct config config;
        /* identity and folders */
        int dir, jobs; /* descriptors: state folder, sandboxes */
        char *jobs_path;
        /* with `users`, else NULL: folder of root and the shepherd, and path of the map of users */
        char *shepherd_dir, *users_path;
        /* Drover's own folders; NULL with `users`, because paths are opened with the users' rights then */
        struct hidden *hidden;
        unsigned containment; /* parts of containment that are available: flags of run_spec */
        char instance[37], boot_id[64], hostname[256], user[64], home[256];
        struct machine machine;
        struct energy *energy;                             /* NULL: nothing measures it */
        struct devices *devices;                           /* devices of the machine */
        uint64_t machine_cpus_milli, machine_memory_bytes; /* resources of all process queues together */
        struct cgroups *cgroups;                           /* NULL: control groups cannot be used */

        const struct attempt_news *news; /* functions by which the parts report results of attempts */
        void (*turn)(void *agent);       /* see agent_turn_later */
        bool turn_set, stopping;
        bool sandboxes_wait;      /* some attempt's sandbox has to be removed */
        unsigned empty_sandboxes; /* number of empty sandboxes kept for reuse: sandbox_recycle */
        char *empty_owner;        /* owner of the empty sandboxes */
        bool swept; /* left-over sandboxes and containers were removed, after all runners listed their tasks
                     */
        int exit_code;

        struct map *attempts;    /* by agent_key */
        struct map *templates;   /* "request.part" */
        uint64_t held_bytes;     /* memory of all templates and of what attempts own */
        uint64_t template_bytes; /* memory of the templates received in this session */
        struct queue **queues;   /* in the order of the configuration, then the retired ones */
        size_t queue_count, queue_cap;
        struct backend **backends;
        size_t backend_count, backend_cap;
        struct runner *runner; /* runner of processes on this machine: backends[0]'s */
        struct user_commands *user_commands;

        struct lease_clock lease;
        struct timer *lease_timer, *tick;
        bool greeted; /* the server has the inventory: messages and offers may be sent */
        struct journal *journal;
        int journal_error; /* -errno: the journal cannot be written now, so no work is accepted; 0: it can */

        /* state of the parts */
        struct connection *connection;
        struct outbox *outbox;
        struct streams *streams; /* streams of attempts that somebody follows */
        struct output_tails *output_tails;
        struct live_output
                *live_outputs;   /* attempts whose streams are copied to the submitter while they run */
        struct chirps *chirps;   /* calls of programs to the server */
        struct map *credentials; /* credentials of jobs' owners, see credentials.h */
        struct stages *stages;
        struct cache *cache;
        struct inputs *inputs; /* files being fetched */
        struct movers *movers;
        struct stores *stores;
        struct spool *spool;
        struct engine *engines; /* containers.h */
        struct environments *environments;
        struct sensors *sensors;
        struct queue_uses *uses;
        struct leave *leave;
        struct http_server *metrics; /* NULL: metrics are not served */
        struct config_list *denied;  /* "!owner why": configured owners that `users` does not allow */
};

/* Has agent->turn called once at the end of this turn of the loop, after all callbacks. */
void agent_turn_later(struct agent *a);
/* Returns the attempt; NULL: the agent has no such attempt. */
struct attempt *agent_find(const struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
/* Writes the attempt's key in agent->attempts, 16 bytes. */
void agent_key(char room[17], uint64_t request, uint32_t member, uint32_t fence);
