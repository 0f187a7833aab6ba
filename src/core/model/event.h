/* event: the facts that make up the log.
 *
 * Applying the events of a job in order gives its state, in the server after a restart as in the simulator.
 * An event may cover many members of a request. A record consists of a version, a type, the time, and the
 * fields that the type has, in the order of enum event_field (see the table in event.c); the number of a type
 * or a field is never reused.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"

enum event_type {
        EVENT_SUBMITTED = 1, /* the request is accepted; its record is the blob request/ID */
        EVENT_MATCHED,       /* members are given to a queue, each under `fence` */
        EVENT_ACCEPTED,      /* the agent accepts the attempts */
        EVENT_REFUSED,       /* the agent refuses the attempts: idle again, or held when `code` is
                                set */
        EVENT_STARTED,
        EVENT_EXITED, /* an attempt's result is taken; `next` is the state that policy chose */
        EVENT_LOST,   /* an attempt is lost: its lease has ended, or the agent does not know it; `next` as for
                         EVENT_EXITED */
        EVENT_HELD,
        EVENT_RELEASED,
        EVENT_REMOVED,
        EVENT_VACATING, /* the agent is told to stop the attempts; `next` is the state that follows */
        EVENT_SUSPENDED,
        EVENT_RESUMED,
        EVENT_PRIORITY,  /* members get the priority `value` */
        EVENT_FILED,     /* members without a record are in history now; members in `left` leave
                            it */
        EVENT_PURGED,    /* the request is forgotten; its jobs are in history */
        EVENT_FILLED,    /* `values`: what the place filled in for members that were just given to it */
        EVENT_GANG = 40, /* members that were just matched start together, after EVENT_GO; `value` is their
                            set, see gang.h */
        EVENT_GO = 41,   /* all members of a gang are accepted: they may start */
        EVENT_LEASE_ENDED =
                45, /* the submitter was silent for too long: jobs that have not ended are removed */
        EVENT_RESULTS_TAKEN = 46, /* the submitter has the results of these members */
        EVENT_CHECKPOINTED = 50,  /* a checkpoint of the attempt is in the spool: `values` lists its files */
        EVENT_EDITED = 51,        /* waiting members get other attributes: `values`, see edit.h */
        EVENT_WAITS = 55,         /* members that were just submitted wait for other jobs (dependency.h) */
        EVENT_READY = 56,         /* members do not wait for other jobs any more */
        EVENT_SKIPPED = 57,       /* members that waited need not run: they are completed */
        EVENT_NODE = 60, /* no request: the state of the node of `agent` becomes `next`, ordered by `who`;
                            value: the deadline; code NODE_REPORT: only an admin
                            should know of it */
        EVENT_NODE_FACTS = 61,    /* no request: `values` is the node's description of its machine */
        EVENT_NODE_INSTANCE = 62, /* no request: `values` is the machine that was started for the node, and
                                     what was paid for it (model/node.h) */
        EVENT_BANK = 65,          /* no request: `values` is an order to the bank (bank/order.h) */
        EVENT_ADVANCE = 66, /* no request: `values` is an order for a reservation (reservation/advance.h) */
        EVENT_SPACE = 67,   /* no request: `values` is an order for a store's space (data/space.h) */
        EVENT_ATTRIBUTES = 70, /* the attempt's program sets attributes: `values`, see chirp.h */
        EVENT_REMARK = 71,     /* the attempt's program adds a line to the job's log: `reason` */
        EVENT_TYPES
};

struct event {
        enum event_type type;
        int64_t at_ms; /* Unix milliseconds */
        uint64_t request;
        struct set members; /* owned: event_deinit */
        uint32_t fence;
        struct str agent, queue;
        struct str who;        /* of an order to a node: the person or part that gave it */
        uint32_t next;         /* enum job_state; for a node enum node_state */
        int32_t code, subcode; /* hold reason codes, numbered as in HTCondor's manual */
        struct str reason;
        int64_t value;
        /* result of an attempt: */
        bool signaled;
        int32_t exit_code; /* exit code, or signal number with `signaled` */
        uint32_t outcome;  /* enum core_outcome */
        int64_t started_ms, ended_ms;
        int64_t cpu_user_ms, cpu_system_ms;
        uint64_t memory_peak_bytes;
        struct str outputs;           /* packed list of spooled outputs, see core.h */
        uint64_t bytes_in, bytes_out; /* copied to and from the job; 0 in older records that lack them */
        uint64_t energy_uj;           /* microjoules; 0 if not measured, and in older records */
        struct str values; /* packed, see fill.h; for EVENT_PURGED forgotten.h; for EVENT_EDITED edit.h */
        bool stays;        /* jobs that the event ends may stay in the queue (retention.h); false in older
                              records */
        /* resources of a match, for each member: */
        uint32_t cpus;
        uint64_t memory_mib, disk_kib, lease_ms;
        struct str more;           /* countable resources for each member: "GPUs=2 Licence=1" */
        struct str account, draws; /* the account and the limits that the match charges, see charge.h; empty
                                      in older records */
};

/* Frees the members; strings are borrowed. */
void event_deinit(struct event *e);
/* Appends the record of the event. */
void event_pack(struct buf *out, const struct event *e);
/* Reads a record; strings of *e are borrowed from it. Returns 0, or -EBADMSG with err. */
int event_unpack(struct event *e, struct str record, struct err *err);
const char *event_name(enum event_type type); /* "matched"; "?": unknown type */
