/* userlog_format: events of a job as HTCondor's job event log writes them.
 *
 * An event is a line that begins with its number, the job and the local time, what follows by number, and a
 * line "...". Numbers and forms: HTCondor manual, "Job Event Log Codes", and what its reader accepts
 * (condor_event.cpp). The text depends on nothing but what is given, so that the same event formatted again,
 * after a restart, is the same text. Pure, but for the time zone.
 */
#pragma once
#include "base/buf.h"
#include "core/event.h"

enum userlog_number {
        USERLOG_SUBMIT = 0,
        USERLOG_EXECUTE = 1,
        USERLOG_EXECUTABLE_ERROR = 2,
        USERLOG_EVICTED = 4,
        USERLOG_TERMINATED = 5,
        USERLOG_IMAGE_SIZE = 6,
        USERLOG_GENERIC = 8,
        USERLOG_ABORTED = 9,
        USERLOG_SUSPENDED = 10,
        USERLOG_UNSUSPENDED = 11,
        USERLOG_HELD = 12,
        USERLOG_RELEASED = 13,
        USERLOG_DISCONNECTED = 22,
        USERLOG_RECONNECT_FAILED = 24,
};

/* What may be said of one job. Text has no limit but is cut to USERLOG_TEXT_MAX bytes where it is written;
 * ends of lines in it become '|'. */
#define USERLOG_TEXT_MAX 8191
struct userlog_line {
        uint64_t request;
        uint32_t member;
        int64_t at_ms;
        const char *host;               /* submit: of the submitter; else the agent */
        const char *queue;              /* NULL: not known */
        const char *notes, *user_notes; /* submit; NULL or empty: none */
        struct str reason;
        int32_t code, subcode;
        bool requeued; /* evicted: it ended by itself and runs again */
        bool signaled;
        int32_t exit_code; /* or the signal */
        int64_t cpu_user_ms, cpu_system_ms, total_user_ms, total_system_ms;
        uint64_t bytes_in, bytes_out, memory_peak_bytes;
        uint32_t cpus; /* what the attempt took; 0: not known, and no table of resources is written */
        uint64_t memory_mib, disk_kib;
};
void userlog_format(struct buf *out, enum userlog_number number, const struct userlog_line *l);

/* Which events a record of the core is in the log, in order; returns how many. `started`: the attempt's
 * execute event is in the log (or this record is it). */
#define USERLOG_NUMBERS_MAX 5
struct userlog_record {
        enum event_type type;
        uint32_t next, outcome; /* as in struct event */
        int32_t code;
        bool started, has_memory;
};
unsigned userlog_numbers(const struct userlog_record *r, enum userlog_number numbers[USERLOG_NUMBERS_MAX]);
