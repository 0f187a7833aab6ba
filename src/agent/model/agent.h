/* agent: the agent as its parts know it: what it was told, who it is, and a pointer to each part's own state.
 *
 * One thread, one loop; other threads copy files (workers). What happens in a turn of the loop is gathered
 * and leaves at its end, in this order (main.c): the journal is written, tasks go to the runner, messages go
 * to the server, offers are brought up to date. So nothing is told or started that a restart would not know.
 */
#pragma once
#include "agent/config/config.h"
#include "agent/machine/machine.h"
#include "base/buf.h"
#include "base/cgroup.h"
#include "base/err.h"
#include "base/hidden.h"
#include "base/map.h"
#include "ev/loop.h"
#include "place/lease_clock.h"
#include "run/runner.h"

#define AGENT_MAGIC 0x41474e54u

struct attempt;
struct attempt_news;

struct agent {
        uint32_t magic;
        struct loop *loop;
        struct config config;
        /* who and where it is */
        int dir, jobs; /* descriptors: state folder, sandboxes */
        char *jobs_path;
        /* with `users`, else NULL: the folder of root and the shepherd, and its map */
        char *shepherd_dir, *users_path;
        /* Drover's own folders; with `users` NULL: what is opened there is opened by users */
        struct hidden *hidden;
        unsigned containment; /* parts that jobs can have here: flags of run_spec */
        char instance[37], boot_id[64], hostname[256], user[64], home[256];
        struct machine machine;
        struct devices *devices;                           /* of the machine */
        uint64_t machine_cpus_milli, machine_memory_bytes; /* for all process queues together */
        struct cgroups *cgroups;                           /* NULL: there are none */

        const struct attempt_news *news; /* whom the parts tell of attempts */
        void (*turn)(void *agent);       /* see agent_turn_later */
        bool turn_set, stopping;
        bool sandboxes_wait;      /* some attempt leaves its sandbox */
        unsigned empty_sandboxes; /* for attempts that come: sandbox_recycle */
        char *empty_owner;        /* whose these are */
        bool swept;               /* of what no attempt claims, once all runners have told what they have */
        int exit_code;

        struct map *attempts;    /* by name: agent_key */
        struct map *templates;   /* "request.part" */
        uint64_t held_bytes;     /* of all templates in use or kept, and of what attempts have of their own */
        uint64_t template_bytes; /* of those that came in this session */
        struct queue **queues;   /* in the order of the configuration, then the retired ones */
        size_t queue_count, queue_cap;
        struct backend **backends;
        size_t backend_count, backend_cap;
        struct runner *runner; /* of the processes of this machine: backends[0]'s */
        struct user_commands *user_commands;

        struct lease_clock lease;
        struct timer *lease_timer, *tick;
        bool greeted; /* the server knows what we have: messages and offers may go */
        struct journal *journal;
        int journal_error; /* -errno: it cannot be written now, so no work is taken; 0 */

        /* the parts' own */
        struct connection *connection;
        struct outbox *outbox;
        struct streams *streams; /* of attempts that somebody follows */
        struct map *credentials; /* of jobs' owners, see credentials.h */
        struct stages *stages;
        struct cache *cache;
        struct inputs *inputs; /* what is being fetched */
        struct movers *movers;
        struct stores *stores;
        struct spool *spool;
        struct engine *engines; /* containers.h */
        struct environments *environments;
        struct sensors *sensors;
        struct queue_uses *uses;
        struct config_list *denied; /* "!owner why": asked for, and not allowed by `users` */
};

/* The end of this turn of the loop calls agent->turn, once, after all callbacks. */
void agent_turn_later(struct agent *a);
/* NULL: the agent holds no such attempt. */
struct attempt *agent_find(const struct agent *a, uint64_t request, uint32_t member, uint32_t fence);
/* The attempt's key in agent->attempts, 16 bytes. */
void agent_key(char room[17], uint64_t request, uint32_t member, uint32_t fence);
