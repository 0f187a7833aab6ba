/* event: the facts that make up the log.
 *
 * A job is its events: applying them in order gives the state, in the server after a restart as in the
 * simulator. An event may cover many members of a request. The record is a version, a type, the time, and the
 * fields that the type has, in the order of enum event_field (see the table in event.c); a type or a field is
 * never reused.
 */
#pragma once
#include "base/err.h"
#include "base/set.h"

enum event_type {
        EVENT_SUBMITTED = 1, /* the request was accepted; its record is the blob request/ID */
        EVENT_MATCHED,       /* members were given to a queue, each under `fence` */
        EVENT_ACCEPTED,      /* the agent took them */
        EVENT_REFUSED,       /* the agent did not: idle again, or held when `code` is set */
        EVENT_STARTED,
        EVENT_EXITED, /* an attempt's result was taken; `next` is the state that policy chose */
        EVENT_LOST,   /* the attempt is gone: lease ended, or the agent does not know it; `next` as above */
        EVENT_HELD,
        EVENT_RELEASED,
        EVENT_REMOVED,
        EVENT_VACATING, /* the agent was told to stop; `next` is where it goes then */
        EVENT_SUSPENDED,
        EVENT_RESUMED,
        EVENT_PRIORITY,  /* members have priority `value` now */
        EVENT_FILED,     /* members that ended without a record are in history now; left ones left */
        EVENT_PURGED,    /* the request is forgotten; history keeps it */
        EVENT_FILLED,    /* what the place filled in for members that it was just given: `values` */
        EVENT_GANG = 40, /* members, just matched, start together: none before EVENT_GO; `value` is their
                           set, see gang.h */
        EVENT_GO = 41,   /* all members of a set were accepted: they may start */
        EVENT_LEASE_ENDED = 45,   /* the submitter was not heard of: what is left is removed */
        EVENT_RESULTS_TAKEN = 46, /* it has the results of these members */
        EVENT_CHECKPOINTED = 50,  /* the attempt's checkpoint is in the spool: `values` lists its files */
        EVENT_EDITED = 51,        /* members, which wait, have other attributes: `values`, as in edit.h */
        EVENT_WAITS = 55,         /* members, just submitted, wait for other jobs (dependency.h) */
        EVENT_READY = 56,         /* members do so no more */
        EVENT_SKIPPED = 57,       /* members, which waited, need not run: they are completed */
        EVENT_NODE = 60, /* of no request: the node of `agent` is `next`, says `who`; value: its deadline */
        EVENT_NODE_FACTS = 61,    /* of no request: `values` is what it says of its machine */
        EVENT_NODE_INSTANCE = 62, /* of no request: `values` is the machine that was started for it, and what
                                     was paid for it (model/node.h) */
        EVENT_BANK = 65,          /* of no request: `values` is an order to the bank (bank/order.h) */
        EVENT_TYPES
};

struct event {
        enum event_type type;
        int64_t at_ms; /* Unix milliseconds */
        uint64_t request;
        struct set members; /* owned: event_deinit */
        uint32_t fence;
        struct str agent, queue;
        struct str who;        /* of an order to a node */
        uint32_t next;         /* enum job_state; of a node, enum node_state */
        int32_t code, subcode; /* hold reason codes, as HTCondor's manual numbers them */
        struct str reason;
        int64_t value;
        /* a result */
        bool signaled;
        int32_t exit_code; /* or the signal */
        uint32_t outcome;  /* enum core_outcome */
        int64_t started_ms, ended_ms;
        int64_t cpu_user_ms, cpu_system_ms;
        uint64_t memory_peak_bytes;
        struct str outputs;           /* packed list of spooled outputs, see core.h */
        uint64_t bytes_in, bytes_out; /* copied to and from the job; 0 in records of before they were kept */
        struct str values; /* packed, see fill.h; of a purged request, forgotten.h; of an edit, edit.h */
        bool stays; /* what ends by it may stay in the queue, see retention.h; false in records of before */
        /* resources of a match, for each member */
        uint32_t cpus;
        uint64_t memory_mib, disk_kib, lease_ms;
        struct str more;           /* countable resources for each of them: "GPUs=2 Licence=1" */
        struct str account, draws; /* what it claims elsewhere, see charge.h; empty in records of before */
};

void event_deinit(struct event *e);
void event_pack(struct buf *out, const struct event *e);
/* Strings are borrowed from the record. 0, or -EBADMSG with err. */
int event_unpack(struct event *e, struct str record, struct err *err);
const char *event_name(enum event_type type); /* "matched"; "?" when unknown */
