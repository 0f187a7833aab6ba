/* queue: a queue of an agent: its limits, its offers, its attempts.
 *
 * Queues whose runner is `process` share the machine: together they never commit more than it has (struct
 * machine), and a device is held by one job at a time, whichever queue the job came by.
 *
 * A queue that was removed from the agent's file while it had jobs is retired: it offers nothing, and is
 * removed with its last job.
 */
#pragma once
#include "agent/config/config.h"
#include "agent/machine/devices.h"
#include "agent/message/job_result.h"
#include "place/pull_policy.h"
#include "run/runner.h"

struct agent;
struct attempt;
struct engine;

struct name_list { /* attempts to name in one message */
        struct attempt_name *v;
        size_t n, cap;
};

enum attempt_state {
        ATTEMPT_WAITING,
        ATTEMPT_STAGING,
        ATTEMPT_RUNNING,
        ATTEMPT_DELIVERING,
        ATTEMPT_DONE,
        ATTEMPT_STATES
};

struct backend { /* an open runner */
        struct agent *a;
        struct runner *runner;
        const char *queue; /* name of its queue, borrowed from the configuration; NULL: shared by the process
                              queues */
        struct run_word *settings; /* settings of a batch system; borrows from the configuration */
        bool ready, silent;        /* silent: see run_observer */
        char *unreachable;   /* why the batch system does not answer, while its tasks go on; NULL: it answers,
                                or has not been asked yet */
        uint64_t generation; /* generation of its listing of known tasks */
};

struct queue_wait {         /* see queue/wait.h */
        int64_t next_ms;    /* boot clock: earliest time of the next question */
        uint64_t begins_ms; /* Unix time at which a job would begin; 0: at once, or unknown */
        bool asking;
        bool unknown; /* a job would wait, and the batch system cannot say for how long */
};

struct queue {
        struct agent *a;
        const struct config_queue *config;
        struct backend *backend;
        struct engine *engine; /* container engine; NULL: none */
        bool retired;
        struct attempt *lists[ATTEMPT_STATES];
        struct attempt **waiting_last;
        size_t counts[ATTEMPT_STATES];
        size_t kept; /* number of WAITING attempts with reserved room */
        /* resources requested by these, STAGING and RUNNING attempts */
        uint64_t committed_cpus_milli, committed_memory_bytes, committed_disk_bytes;
        struct device_set devices; /* devices that the queue may give to jobs */
        struct pull_use use;
        struct queue_wait wait;
        struct offers *offers;
        bool ad_stale;      /* see queue_ad_changed */
        unsigned wishes[3]; /* at most OFFER_WISHES_MAX wishes set by the server in place of the file's; 0
                               ends them */
        bool wishes_said;
        struct name_list accepted; /* attempts accepted in this turn */
        uint64_t ended[OUTCOMES];  /* number of ended attempts since the agent started */
        uint64_t staging_failures; /* number of attempts that failed before their program started, since the
                                      agent started */
};

struct queue *queue_find(const struct agent *a, const char *name); /* returns NULL if there is none */
/* Appends the name of the queue's offer for a kind of places. A queue that delegates makes one offer for
 * each kind of places there; the first is named as the queue, the others NAME+2 and so on. Returns false if
 * there is no name for the kind. */
bool queue_offer_name(const struct queue *q, unsigned kind, struct buf *out);
struct queue *queue_find_offer(const struct agent *a, const char *name, unsigned *ret_kind); /* or NULL */
/* Splits lines "name value" into pairs, in one allocation that the caller frees. */
struct run_word *queue_words(const struct config_list *l);
bool queue_is_local(const struct queue *q); /* returns whether its jobs are processes on this machine */
bool queue_hands_on(const struct queue *q); /* returns whether it delegates to another server, which provides
                                               containers and environments */
/* Returns the parts of containment for its jobs, flags of run_spec; 0 if jobs do not run on this machine. */
unsigned queue_containment(const struct queue *q);
/* Marks the ad as stale after a change of more than numbers: it is built anew before it is sent. */
void queue_ad_changed(struct queue *q);
size_t queues_count(const struct agent *a, enum attempt_state state);
/* Resources committed by all process queues together. */
uint64_t queues_committed_cpus(const struct agent *a);
uint64_t queues_committed_memory(const struct agent *a);

void name_list_add(struct name_list *l, const struct attempt *at);
