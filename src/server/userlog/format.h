/* format: formats events of a job as HTCondor's job event log has them.
 *
 * As text an event is a line that begins with its number, the job and the time; then lines that depend on
 * the number; and a line "...". In XML and JSON it is a ClassAd (ad.c). Numbers and forms follow the
 * HTCondor manual, "Job Event Log Codes" and EVENT_LOG_FORMAT_OPTIONS, and what its reader accepts
 * (condor_event.cpp). The text depends only on the arguments, so that an event which is formatted again
 * after a restart has the same text. Pure, except for the time zone. */
#pragma once
#include <time.h>

#include "base/buf.h"
#include "core/model/event.h"
#include "server/config/log_options.h"

enum userlog_number {
        USERLOG_SUBMIT = 0,
        USERLOG_EXECUTE = 1,
        USERLOG_EXECUTABLE_ERROR = 2,
        USERLOG_CHECKPOINTED = 3,
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

/* One event of a job. Texts may have any length, and are cut to USERLOG_TEXT_MAX bytes when they are
 * written; line ends in them become '|'. */
#define USERLOG_TEXT_MAX 8191
struct userlog_line {
        uint64_t request;
        uint32_t member;
        int64_t at_ms;
        const char *host;               /* of the submitter for a submit event; otherwise of the agent */
        const char *queue;              /* NULL: unknown */
        const char *notes, *user_notes; /* submit event; NULL or empty: none */
        struct str reason;
        int32_t code, subcode;
        bool requeued; /* evicted event: the job ended by itself and runs again */
        bool signaled;
        int32_t exit_code; /* exit code, or the signal */
        int64_t cpu_user_ms, cpu_system_ms, total_user_ms, total_system_ms;
        uint64_t bytes_in, bytes_out /* checkpointed event: of its files */, memory_peak_bytes;
        uint32_t cpus; /* resources of the attempt; 0: unknown, and no table of resources is written */
        uint64_t memory_mib, disk_kib;
        unsigned options;        /* userlog_option */
        struct symbols *symbols; /* for XML and JSON: attribute names are added here */
};
void userlog_format(struct buf *out, enum userlog_number number, const struct userlog_line *l);
/* Parts of an event. */
void userlog_cpu_time(struct buf *out, int64_t user_ms,
                      int64_t system_ms); /* Usr 0 00:00:00, Sys 0 00:00:00 */
/* the event's time, in the log's time zone */
void userlog_time(const struct userlog_line *l, struct tm *ret);
void userlog_slot(struct buf *out, const struct userlog_line *l); /* queue@host */
void userlog_address(struct buf *out, const char *host);          /* <host:0?alias=host> */
static inline uint64_t userlog_mib(uint64_t bytes)
{
        return (bytes + (1 << 20) - 1) >> 20;
}
/* Appends a complete event in XML or JSON (ad.c). */
void userlog_format_ad(struct buf *out, enum userlog_number number, const struct userlog_line *l);

/* Fills `numbers` with the events that a record of the core becomes in the log, in order, and returns
 * their number. `started` in the record: the log has the attempt's execute event, or this record is it. */
#define USERLOG_NUMBERS_MAX 5
struct userlog_record {
        enum event_type type;
        uint32_t next, outcome; /* as in struct event */
        int32_t code;
        bool started, has_memory;
};
unsigned userlog_numbers(const struct userlog_record *r, enum userlog_number numbers[USERLOG_NUMBERS_MAX]);
