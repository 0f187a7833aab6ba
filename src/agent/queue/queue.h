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
#include "agent/queue/devices.h"
#include "agent/queue/wait.h"
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
        bool ready;
        char *unreachable; /* why it does not answer, though its tasks go on; NULL: it does, or has not yet */
        uint64_t generation; /* of its listing of what it knows */
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
        struct name_list accepted; /* in this turn */
        uint64_t completed;
};

/* Opens the queues that the configuration names, and their runners. 0 or -errno with err. */
int queues_open(struct agent *a, struct err *err);
void queues_stop(struct agent *a);                                 /* closes the runners */
void queues_close(struct agent *a);                                /* frees, when no attempt is left */
struct queue *queue_find(const struct agent *a, const char *name); /* NULL: there is none */
/* The queue that the journal names: if it is not in the configuration any more, a retired one. NULL with err:
 * its jobs are in a batch system which only its settings name. */
struct queue *queue_of_journal(struct agent *a, const char *name, const char *runner, struct err *err);
/* Lines "name value" as pairs, in one allocation that is the caller's. */
struct run_word *queue_words(const struct config_list *l);
bool queue_is_local(const struct queue *q); /* its jobs are processes of this machine */
size_t queues_count(const struct agent *a, enum attempt_state state);
/* Of this machine, by all its process queues. */
uint64_t queues_committed_cpus(const struct agent *a);
uint64_t queues_committed_memory(const struct agent *a);
