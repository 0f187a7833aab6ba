#include "server/userlog/format.h"

#include <inttypes.h>
#include <time.h>

#include "core/core.h"

void userlog_time(const struct userlog_line *l, struct tm *ret)
{
        time_t at = (time_t)(l->at_ms / 1000);

        if (l->options & USERLOG_UTC)
                gmtime_r(&at, ret);
        else
                localtime_r(&at, ret);
}

static void add_header(struct buf *out, enum userlog_number number, const struct userlog_line *l)
{
        struct tm tm;

        userlog_time(l, &tm);
        buf_printf(out, "%03d (%03" PRIu64 ".%03" PRIu32 ".000) ", (int)number, l->request, l->member);
        if (l->options & USERLOG_ISO_DATE)
                buf_printf(out, "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
        else
                buf_printf(out, "%02d/%02d", tm.tm_mon + 1, tm.tm_mday);
        buf_printf(out, " %02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
        if (l->options & USERLOG_SUB_SECOND)
                buf_printf(out, ".%03d", (int)(l->at_ms % 1000));
        buf_addz(out, l->options & USERLOG_UTC ? "Z " : " ");
}

/* Writes a text on one line, so that it cannot end an event or begin another. */
static void add_text(struct buf *out, const char *before, struct str text)
{
        text = str_head(str_trim(text), USERLOG_TEXT_MAX);
        buf_addz(out, before);
        for (size_t i = 0; i < text.n; i++)
                buf_char(out, text.p[i] == '\n'                                     ? '|'
                              : (unsigned char)text.p[i] < ' ' && text.p[i] != '\t' ? ' '
                                                                                    : text.p[i]);
        buf_char(out, '\n');
}

/* Writes a name within a line. Names are checked when they arrive, but those in an older log were not. */
static void add_name(struct buf *out, const char *name)
{
        for (const char *p = name; *p; p++)
                buf_char(out, (unsigned char)*p <= ' ' || *p == 0x7f ? '_' : *p);
}

static void add_time(struct buf *out, const char *what, int64_t ms)
{
        int64_t s = ms > 0 ? ms / 1000 : 0;

        buf_printf(out, "%s %" PRId64 " %02d:%02d:%02d", what, s / 86400, (int)(s / 3600 % 24),
                   (int)(s / 60 % 60), (int)(s % 60));
}

void userlog_cpu_time(struct buf *out, int64_t user_ms, int64_t system_ms)
{
        add_time(out, "Usr", user_ms);
        add_time(out, ", Sys", system_ms);
}

static void add_usage(struct buf *out, int64_t user_ms, int64_t system_ms, const char *of)
{
        buf_addz(out, "\t\t");
        userlog_cpu_time(out, user_ms, system_ms);
        buf_printf(out, "  -  %s\n", of);
}

static void add_bytes(struct buf *out, uint64_t bytes, const char *of)
{
        buf_printf(out, "\t%" PRIu64 "  -  %s By Job\n", bytes, of);
}

static void add_ending(struct buf *out, const struct userlog_line *l)
{
        if (l->signaled)
                buf_printf(out, "\t(0) Abnormal termination (signal %" PRId32 ")\n\t(0) No core file\n",
                           l->exit_code);
        else
                buf_printf(out, "\t(1) Normal termination (return value %" PRId32 ")\n", l->exit_code);
}

static void add_resources(struct buf *out, const struct userlog_line *l)
{
        if (l->cpus == 0)
                return;
        buf_printf(out, "\tPartitionable Resources : %8s %8s %9s \n", "Usage", "Request", "Allocated");
        buf_printf(out, "\t   %-20s : %8s %8" PRIu32 " %9" PRIu32 " \n", "Cpus", "", l->cpus, l->cpus);
        buf_printf(out, "\t   %-20s : %8s %8" PRIu64 " %9" PRIu64 " \n", "Disk (KB)", "", l->disk_kib,
                   l->disk_kib);
        buf_printf(out, "\t   %-20s : %8" PRIu64 " %8" PRIu64 " %9" PRIu64 " \n", "Memory (MB)",
                   userlog_mib(l->memory_peak_bytes), l->memory_mib, l->memory_mib);
}

static void add_terminated(struct buf *out, const struct userlog_line *l)
{
        buf_addz(out, "Job terminated.\n");
        add_ending(out, l);
        add_usage(out, l->cpu_user_ms, l->cpu_system_ms, "Run Remote Usage");
        add_usage(out, 0, 0, "Run Local Usage");
        add_usage(out, l->total_user_ms, l->total_system_ms, "Total Remote Usage");
        add_usage(out, 0, 0, "Total Local Usage");
        add_bytes(out, l->bytes_out, "Run Bytes Sent");
        add_bytes(out, l->bytes_in, "Run Bytes Received");
        add_bytes(out, l->bytes_out, "Total Bytes Sent");
        add_bytes(out, l->bytes_in, "Total Bytes Received");
        add_resources(out, l);
}

static void add_checkpointed(struct buf *out, const struct userlog_line *l)
{
        buf_addz(out, "Job was checkpointed.\n");
        add_usage(out, l->cpu_user_ms, l->cpu_system_ms, "Run Remote Usage");
        add_usage(out, 0, 0, "Run Local Usage");
        buf_printf(out, "\t%" PRIu64 "  -  Run Bytes Sent By Job For Checkpoint\n", l->bytes_out);
}

static void add_evicted(struct buf *out, const struct userlog_line *l)
{
        buf_addz(out, l->requeued ? "Job was evicted.\n\t(0) Job terminated and was requeued\n"
                                  : "Job was evicted.\n\t(0) CPU times\n");
        add_usage(out, l->cpu_user_ms, l->cpu_system_ms, "Run Remote Usage");
        add_usage(out, 0, 0, "Run Local Usage");
        add_bytes(out, l->bytes_out, "Run Bytes Sent");
        add_bytes(out, l->bytes_in, "Run Bytes Received");
        if (l->requeued)
                add_ending(out, l);
        if (l->reason.n)
                add_text(out, l->requeued ? "\t" : "\tReason: ", l->reason);
        add_resources(out, l);
}

void userlog_address(struct buf *out, const char *host)
{
        buf_char(out, '<');
        add_name(out, host);
        buf_addz(out, ":0?alias=");
        add_name(out, host);
        buf_char(out, '>');
}

static void add_submit(struct buf *out, const struct userlog_line *l)
{
        buf_addz(out, "Job submitted from host: ");
        userlog_address(out, l->host);
        buf_char(out, '\n');
        if (l->notes && *l->notes)
                add_text(out, "    ", str_of(l->notes));
        if (l->user_notes && *l->user_notes)
                add_text(out, "    ", str_of(l->user_notes));
}

void userlog_slot(struct buf *out, const struct userlog_line *l)
{
        if (l->queue) {
                add_name(out, l->queue);
                buf_char(out, '@');
        }
        add_name(out, l->host);
}

static void add_body(struct buf *out, enum userlog_number number, const struct userlog_line *l)
{
        switch (number) {
        case USERLOG_SUBMIT: add_submit(out, l); break;
        case USERLOG_EXECUTE:
                buf_addz(out, "Job executing on host: ");
                userlog_address(out, l->host);
                buf_addz(out, "\n\tSlotName: ");
                userlog_slot(out, l);
                buf_char(out, '\n');
                break;
        case USERLOG_EXECUTABLE_ERROR: buf_addz(out, "(1) Job file not executable.\n"); break;
        case USERLOG_CHECKPOINTED: add_checkpointed(out, l); break;
        case USERLOG_EVICTED: add_evicted(out, l); break;
        case USERLOG_TERMINATED: add_terminated(out, l); break;
        case USERLOG_IMAGE_SIZE:
                buf_printf(out,
                           "Image size of job updated: %" PRIu64 "\n\t%" PRIu64
                           "  -  MemoryUsage of job (MB)\n\t%" PRIu64 "  -  ResidentSetSize of job (KB)\n",
                           l->memory_peak_bytes >> 10, userlog_mib(l->memory_peak_bytes),
                           l->memory_peak_bytes >> 10);
                break;
        case USERLOG_GENERIC: add_text(out, "", l->reason); break;
        case USERLOG_ABORTED:
                buf_addz(out, "Job was aborted.\n");
                if (l->reason.n)
                        add_text(out, "\t", l->reason);
                break;
        /* the number of processes is not known, because the whole process tree is stopped */
        case USERLOG_SUSPENDED:
                buf_addz(out, "Job was suspended.\n\tNumber of processes actually suspended: 1\n");
                break;
        case USERLOG_UNSUSPENDED: buf_addz(out, "Job was unsuspended.\n"); break;
        case USERLOG_HELD:
                buf_addz(out, "Job was held.\n");
                add_text(out, "\t", l->reason.n ? l->reason : STR("Reason unspecified"));
                buf_printf(out, "\tCode %" PRId32 " Subcode %" PRId32 "\n", l->code, l->subcode);
                break;
        case USERLOG_RELEASED:
                buf_addz(out, "Job was released.\n");
                if (l->reason.n)
                        add_text(out, "\t", l->reason);
                break;
        case USERLOG_DISCONNECTED:
                buf_addz(out, "Job disconnected, attempting to reconnect\n");
                add_text(out, "    ", l->reason);
                buf_addz(out, "    Trying to reconnect to ");
                userlog_slot(out, l);
                buf_char(out, ' ');
                userlog_address(out, l->host);
                buf_char(out, '\n');
                break;
        case USERLOG_RECONNECT_FAILED:
                buf_addz(out, "Job reconnection failed\n");
                add_text(out, "    ", l->reason);
                buf_addz(out, "    Can not reconnect to ");
                userlog_slot(out, l);
                buf_addz(out, ", rescheduling job\n");
                break;
        }
}

void userlog_format(struct buf *out, enum userlog_number number, const struct userlog_line *l)
{
        if (l->options & (USERLOG_XML | USERLOG_JSON)) {
                userlog_format_ad(out, number, l);
                return;
        }
        add_header(out, number, l);
        add_body(out, number, l);
        buf_addz(out, "...\n");
}

/* Sets the events for the end of an attempt: first how it ended, then what happens to the job. */
static unsigned numbers_over(const struct userlog_record *r, enum userlog_number *n)
{
        bool itself = r->type == EVENT_EXITED && r->outcome == CORE_EXITED, started = r->started;
        bool never =
                r->type == EVENT_EXITED && r->outcome == CORE_NOT_STARTED; /* the log may report a start */
        unsigned count = 0;

        if (itself && !started) {
                n[count++] = USERLOG_EXECUTE;
                started = true;
        }
        if (r->type == EVENT_EXITED && started && r->has_memory)
                n[count++] = USERLOG_IMAGE_SIZE;
        if (r->type == EVENT_LOST && started) {
                n[count++] = USERLOG_DISCONNECTED;
                n[count++] = USERLOG_RECONNECT_FAILED;
        }
        switch (r->next) {
        case JOB_COMPLETED: n[count++] = USERLOG_TERMINATED; break;
        case JOB_REMOVED: n[count++] = USERLOG_ABORTED; break;
        case JOB_HELD:
                if (started && !itself && !never)
                        n[count++] = USERLOG_EVICTED;
                if (never && r->code == CORE_HOLD_NOT_STARTED)
                        n[count++] = USERLOG_EXECUTABLE_ERROR;
                n[count++] = USERLOG_HELD;
                break;
        default:
                if (started)
                        n[count++] = USERLOG_EVICTED;
                break;
        }
        return count;
}

unsigned userlog_numbers(const struct userlog_record *r, enum userlog_number numbers[USERLOG_NUMBERS_MAX])
{
        switch (r->type) {
        case EVENT_SUBMITTED: numbers[0] = USERLOG_SUBMIT; return 1;
        case EVENT_STARTED: numbers[0] = USERLOG_EXECUTE; return 1;
        case EVENT_HELD: numbers[0] = USERLOG_HELD; return 1;
        case EVENT_RELEASED: numbers[0] = USERLOG_RELEASED; return 1;
        case EVENT_REMOVED: numbers[0] = USERLOG_ABORTED; return 1;
        case EVENT_SUSPENDED: numbers[0] = USERLOG_SUSPENDED; return 1;
        case EVENT_RESUMED: numbers[0] = USERLOG_UNSUSPENDED; return 1;
        case EVENT_CHECKPOINTED: numbers[0] = USERLOG_CHECKPOINTED; return 1;
        case EVENT_REMARK: numbers[0] = USERLOG_GENERIC; return 1;
        case EVENT_EXITED:
        case EVENT_LOST:
        case EVENT_REFUSED: return numbers_over(r, numbers);
        default: return 0;
        }
}
