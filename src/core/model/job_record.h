/* job_record: the core's record of a job that was given to an agent, with the job's log.
 *
 * A member of a request gets a record at its first attempt, and keeps it until the member has ended or has
 * left the queue. Only events change records (events/apply.h).
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
        uint32_t dropped; /* entries dropped from the middle */
};
#define LOG_ENTRIES_MAX 64u /* for one job; the first half and the newest entries are kept */

struct job {
        uint32_t member, fence;
        enum job_state state, goal; /* goal: the state that follows JOB_VACATING */
        uint32_t starts, completions;
        struct request *request;
        struct queue *queue;     /* NULL: the job has no attempt */
        struct job *next, *prev; /* list of the queue's attempts */
        uint32_t cpus;           /* resources that the attempt takes */
        uint64_t memory_mib, disk_kib, lease_ms;
        struct amounts *more; /* countable resources that it takes; owned; NULL: none */
        char *more_text;      /* `more` as text, as in the event */
        int64_t entered_ms, started_ms, first_started_ms, ended_ms, wall_ms, cpu_user_ms, cpu_system_ms;
        /* total; and the start of the present suspension, 0: not suspended. */
        int64_t suspended_ms, suspended_at_ms;
        uint64_t memory_peak_bytes;
        uint64_t bytes_in, bytes_out; /* copied to and from the job, sum over all its runs */
        uint64_t energy_uj;           /* microjoules that were measured, sum over all its runs */
        struct queue *last_queue;
        struct draws *draws;            /* units of limits that the attempt holds; NULL: none */
        struct account *account;        /* account that the attempt is charged to; NULL: none */
        int64_t rate;                   /* rate of the charge, in thousandths of a processor */
        uint32_t gang_first, gang_size; /* the attempt's set (gang.h); size 0: none */
        bool gang_goes;                 /* the set has been told to start */
        bool charged;                   /* the attempt is charged to its account and its limits */
        bool accepted; /* the agent has accepted the attempt, so its offers take it into account */
        bool unknown;  /* the agent does not know the attempt, so the next slice of leases_end ends it as
                          lost */
        bool ended, signaled;
        int64_t ends_ms, ends_at_ms,
                /* Estimated end, the time of the estimate, and the time until which it is used. */
                ends_due_ms;
        float expected_ms;   /* run time expected when the attempt started; 0: not known */
        uint8_t expected_by; /* kind of the expectation, see estimate.c */
        int32_t exit_code;
        int32_t hold_code, hold_subcode;
        char *hold_reason; /* owned; kept for the log after a release */
        char *outputs;     /* packed outputs of the last result; owned */
        size_t outputs_n;
        char *filled; /* packed values that the last place filled in (fill.h); owned */
        size_t filled_n;
        char *checkpoint; /* files of the last checkpoint, packed as outputs are; owned; NULL: none */
        size_t checkpoint_n;
        char *own; /* attributes that its program has set (chirp.h), packed as changes.h says; owned; NULL:
                      none */
        size_t own_n;
        uint32_t remarks;          /* attributes set and log lines written by its program so far */
        struct job_losses *losses; /* owned; NULL: no recent loss of an attempt */
        bool alone;                /* the attempt has its node to itself, see losses.h */
        struct joblog log;
};

void joblog_push(struct joblog *log, struct joblog_entry e);              /* takes ownership of e.text */
void joblog_event(struct job *j, const struct event *e, struct queue *q); /* q may be NULL */
/* Logs the event once for all of the members, which need not have records. */
void joblog_event_of_all(struct request *r, const struct event *e, const struct set *members);
void joblog_deinit(struct joblog *log);
