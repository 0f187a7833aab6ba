/* queue: one way in at an agent: its limits, its offers, what runs there.
 *
 * The queues of an agent whose runner is `process` share the machine: together they give out no more of it
 * than is there (struct machine), and a device goes to one job at a time, whichever queue it came by.
 *
 * A queue that has gone from the agent's file while it had jobs is retired: it offers nothing, and goes with
 * the last of them.
 */
#pragma once
#include "agent/config/config.h"
#include "agent/machine/devices.h"
#include "place/pull_policy.h"
#include "run/runner.h"

struct agent;
struct attempt;
struct engine;

struct name_list { /* attempts to be named in one message */
        struct attempt_name {
                uint64_t request;
                uint32_t fence, member;
        } * v;
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

struct backend { /* a runner that is open. The process queues share one */
        struct agent *a;
        struct runner *runner;
        const char *queue;         /* its name, the configuration's; NULL: the process queues share it */
        struct run_word *settings; /* of a batch system; the words are the configuration's */
        bool ready, silent;        /* silent: see RUN_SILENT */
        char *unreachable; /* why it does not answer, though its tasks go on; NULL: it does, or has not yet */
        uint64_t generation; /* of its listing of what it knows */
};

struct queue_wait {         /* see queue/wait.h */
        int64_t next_ms;    /* boot clock: not asked again before */
        uint64_t begins_ms; /* Unix time at which a job would begin; 0: at once, or nobody knows */
        bool asking;
        bool unknown; /* it would not begin at once, and the system cannot say when it would */
};

struct queue {
        struct agent *a;
        const struct config_queue *config;
        struct backend *backend;
        struct engine *engine; /* of containers; NULL: none */
        bool retired;
        struct attempt *lists[ATTEMPT_STATES];
        struct attempt **waiting_last;
        size_t counts[ATTEMPT_STATES];
        size_t kept; /* WAITING ones that keep their room */
        /* what these, STAGING and RUNNING ones asked for */
        uint64_t committed_cpus_milli, committed_memory_bytes, committed_disk_bytes;
        struct device_set devices; /* that it may give out */
        struct pull_use use;
        struct queue_wait wait;
        struct offers *offers;
        bool ad_stale;      /* see queue_ad_changed */
        unsigned wishes[3]; /* OFFER_WISHES_MAX: the server has said them, in place of the file; 0: no more */
        bool wishes_said;
        struct name_list accepted; /* in this turn */
        uint64_t staging_failures; /* attempts that could not be brought to their start, since the agent began
                                    */
};

struct queue *queue_find(const struct agent *a, const char *name); /* NULL: there is none */
/* A queue that hands jobs on makes an offer for each kind of places there; the first is named as the queue,
 * the others NAME+2 and so on. False: there is no name for an offer of this kind. */
bool queue_offer_name(const struct queue *q, unsigned kind, struct buf *out);
struct queue *queue_find_offer(const struct agent *a, const char *name, unsigned *ret_kind); /* or NULL */
/* Lines "name value" as pairs, in one allocation that is the caller's. */
struct run_word *queue_words(const struct config_list *l);
bool queue_is_local(const struct queue *q); /* its jobs are processes of this machine */
bool queue_hands_on(const struct queue *q); /* to another server, which has the containers and environments */
/* Parts of containment around its jobs, flags of run_spec; 0 where they are no processes of this machine. */
unsigned queue_containment(const struct queue *q);
/* What its ad says beyond numbers is another: it is made anew before it is sent. */
void queue_ad_changed(struct queue *q);
size_t queues_count(const struct agent *a, enum attempt_state state);
/* Of this machine, by all its process queues. */
uint64_t queues_committed_cpus(const struct agent *a);
uint64_t queues_committed_memory(const struct agent *a);

void name_list_add(struct name_list *l, const struct attempt *at);
