/* job_record: what the core keeps of a job that was given to an agent, with its log.
 *
 * A member of a request gets a record at its first attempt, and keeps it until it has ended, or has left the
 * queue. Records are changed by events only (events/apply.h).
 */
#pragma once
#include "base/str.h"
#include "core/model/event.h"
#include "core/model/job.h"
#include "core/model/names.h"

struct account;
struct amounts;
struct draws;
struct job_losses;

struct joblog_entry {
        int64_t at_ms;
        struct queue *queue; /* NULL: none */
        char *text;          /* NULL: none; owned */
        uint32_t fence;
        int32_t code;
        enum event_type type;
};
struct joblog {
        struct joblog_entry *entries;
        uint32_t count, cap;
        uint32_t dropped; /* entries left out of the middle */
};
#define LOG_ENTRIES_MAX 64u /* of one job; the first half and the newest are kept */

struct job {
        uint32_t member, fence;
        enum job_state state, goal; /* goal: where a vacating job goes */
        uint32_t starts, completions;
        struct request *request;
        struct queue *queue;     /* while it has an attempt */
        struct job *next, *prev; /* attempts of the queue */
        uint32_t cpus;           /* what the attempt takes */
        uint64_t memory_mib, disk_kib, lease_ms;
        struct amounts *more; /* countable resources; owned; NULL: none */
        char *more_text;      /* the same, as in the event */
        int64_t entered_ms, started_ms, first_started_ms, ended_ms, wall_ms, cpu_user_ms, cpu_system_ms;
        int64_t suspended_ms, suspended_at_ms; /* in all; since when, 0: it is not */
        uint64_t memory_peak_bytes;
        uint64_t bytes_in, bytes_out; /* copied to and from it, in all its runs */
        struct queue *last_queue;
        struct draws *draws;            /* of the attempt: units of limits; NULL: none */
        struct account *account;        /* that the attempt is charged to; NULL: none */
        int64_t rate;                   /* at which, in thousandths of a processor */
        uint32_t gang_first, gang_size; /* of the attempt's set (gang.h); size 0: it has none */
        bool gang_goes;                 /* it may start */
        bool charged;                   /* all of this is counted */
        bool accepted;                  /* the agent knows of the attempt: its offers count it */
        bool unknown;                   /* the agent does not: it is lost with the next slice (leases_end) */
        bool ended, signaled;
        int64_t ends_ms, ends_at_ms,
                ends_due_ms; /* when it will end, as estimated then; until when that stands */
        float expected_ms;   /* to run, when the attempt was started; 0: nobody knew */
        uint8_t expected_by; /* of what, see estimate.c */
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        char *hold_reason; /* owned; kept for the log after release */
        char *outputs;     /* packed, of the last result; owned */
        size_t outputs_n;
        char *filled; /* packed, what the last place filled in (fill.h); owned */
        size_t filled_n;
        char *checkpoint; /* packed as outputs, the files of the last one; owned; NULL: none */
        size_t checkpoint_n;
        struct job_losses *losses; /* owned; NULL: none of its attempts was lost of late */
        bool alone;                /* its attempt has its node for itself, see losses.h */
        struct joblog log;
};

void joblog_push(struct joblog *log, struct joblog_entry e);              /* takes e.text */
void joblog_event(struct job *j, const struct event *e, struct queue *q); /* q may be NULL */
/* For members without a record: one entry for all of them. */
void joblog_event_of_all(struct request *r, const struct event *e, const struct set *members);
void joblog_deinit(struct joblog *log);
