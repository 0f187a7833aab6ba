/* Writes events as ClassAds, with the names and types that HTCondor's toClassAd() gives each event: bytes
 * are reals, times are texts. Unknown values are left out. */
#include <inttypes.h>

#include "classad/print.h"
#include "server/userlog/format.h"

static symbol name(const struct userlog_line *l, const char *attribute)
{
        return symbols_intern(l->symbols, str_of(attribute));
}

static void put_integer(struct ad *ad, const struct userlog_line *l, const char *attribute, int64_t v)
{
        ad_set_integer(ad, name(l, attribute), v);
}

static void put_boolean(struct ad *ad, const struct userlog_line *l, const char *attribute, bool v)
{
        ad_set_boolean(ad, name(l, attribute), v);
}

static void put_bytes(struct ad *ad, const struct userlog_line *l, const char *attribute, uint64_t v)
{
        ad_set_real(ad, name(l, attribute), (double)v);
}

static void put_text(struct ad *ad, const struct userlog_line *l, const char *attribute, struct str v)
{
        v = str_head(str_trim(v), USERLOG_TEXT_MAX);
        if (v.n)
                ad_set_string(ad, name(l, attribute), v);
}

static void put_usage(struct ad *ad, const struct userlog_line *l, const char *attribute, int64_t user_ms,
                      int64_t system_ms)
{
        BUF_CLEANUP struct buf text = {0};

        userlog_cpu_time(&text, user_ms, system_ms);
        put_text(ad, l, attribute, buf_view(&text));
}

static void put_address(struct ad *ad, const struct userlog_line *l, const char *attribute)
{
        BUF_CLEANUP struct buf text = {0};

        userlog_address(&text, l->host);
        put_text(ad, l, attribute, buf_view(&text));
}

static void put_slot(struct ad *ad, const struct userlog_line *l, const char *attribute)
{
        BUF_CLEANUP struct buf text = {0};

        userlog_slot(&text, l);
        put_text(ad, l, attribute, buf_view(&text));
}

static void put_time(struct ad *ad, const struct userlog_line *l)
{
        BUF_CLEANUP struct buf text = {0};
        struct tm tm;

        userlog_time(l, &tm);
        buf_printf(&text, "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                   tm.tm_hour, tm.tm_min, tm.tm_sec);
        if (l->options & USERLOG_SUB_SECOND)
                buf_printf(&text, ".%03d", (int)(l->at_ms % 1000));
        if (l->options & USERLOG_UTC)
                buf_char(&text, 'Z');
        put_text(ad, l, "EventTime", buf_view(&text));
}

static const char *type_name(enum userlog_number number)
{
        switch (number) {
        case USERLOG_SUBMIT: return "SubmitEvent";
        case USERLOG_EXECUTE: return "ExecuteEvent";
        case USERLOG_EXECUTABLE_ERROR: return "ExecutableErrorEvent";
        case USERLOG_CHECKPOINTED: return "CheckpointedEvent";
        case USERLOG_EVICTED: return "JobEvictedEvent";
        case USERLOG_TERMINATED: return "JobTerminatedEvent";
        case USERLOG_IMAGE_SIZE: return "JobImageSizeEvent";
        case USERLOG_GENERIC: return "GenericEvent";
        case USERLOG_ABORTED: return "JobAbortedEvent";
        case USERLOG_SUSPENDED: return "JobSuspendedEvent";
        case USERLOG_UNSUSPENDED: return "JobUnsuspendedEvent";
        case USERLOG_HELD: return "JobHeldEvent";
        case USERLOG_RELEASED: return "JobReleaseEvent"; /* HTCondor's own name; not "Released" */
        case USERLOG_DISCONNECTED: return "JobDisconnectedEvent";
        case USERLOG_RECONNECT_FAILED: return "JobReconnectFailedEvent";
        }
        return "FutureEvent";
}

static void put_ending(struct ad *ad, const struct userlog_line *l)
{
        put_boolean(ad, l, "TerminatedNormally", !l->signaled);
        put_integer(ad, l, l->signaled ? "TerminatedBySignal" : "ReturnValue", l->exit_code);
}

static void put_usages(struct ad *ad, const struct userlog_line *l)
{
        put_usage(ad, l, "RunRemoteUsage", l->cpu_user_ms, l->cpu_system_ms);
        put_usage(ad, l, "RunLocalUsage", 0, 0);
}

static void put_run(struct ad *ad, const struct userlog_line *l)
{
        put_usages(ad, l);
        put_bytes(ad, l, "SentBytes", l->bytes_out);
        put_bytes(ad, l, "ReceivedBytes", l->bytes_in);
        if (l->cpus == 0)
                return;
        put_integer(ad, l, "RequestCpus", l->cpus);
        put_integer(ad, l, "Cpus", l->cpus);
        put_integer(ad, l, "RequestDisk", (int64_t)l->disk_kib);
        put_integer(ad, l, "Disk", (int64_t)l->disk_kib);
        put_integer(ad, l, "RequestMemory", (int64_t)l->memory_mib);
        put_integer(ad, l, "Memory", (int64_t)l->memory_mib);
        put_integer(ad, l, "MemoryUsage", (int64_t)userlog_mib(l->memory_peak_bytes));
}

static void put_terminated(struct ad *ad, const struct userlog_line *l)
{
        put_ending(ad, l);
        put_run(ad, l);
        put_usage(ad, l, "TotalRemoteUsage", l->total_user_ms, l->total_system_ms);
        put_usage(ad, l, "TotalLocalUsage", 0, 0);
        put_bytes(ad, l, "TotalSentBytes", l->bytes_out);
        put_bytes(ad, l, "TotalReceivedBytes", l->bytes_in);
}

static void put_evicted(struct ad *ad, const struct userlog_line *l)
{
        put_boolean(ad, l, "Checkpointed", false);
        put_boolean(ad, l, "TerminatedAndRequeued", l->requeued);
        if (l->requeued)
                put_ending(ad, l);
        else
                put_boolean(ad, l, "TerminatedNormally", false);
        put_run(ad, l);
        put_text(ad, l, "Reason", l->reason);
}

static void put_body(struct ad *ad, enum userlog_number number, const struct userlog_line *l)
{
        switch (number) {
        case USERLOG_SUBMIT:
                put_address(ad, l, "SubmitHost");
                put_text(ad, l, "LogNotes", str_of(l->notes));
                put_text(ad, l, "UserNotes", str_of(l->user_notes));
                break;
        case USERLOG_EXECUTE:
                put_address(ad, l, "ExecuteHost");
                put_slot(ad, l, "SlotName");
                break;
        case USERLOG_EXECUTABLE_ERROR: put_integer(ad, l, "ExecuteErrorType", 1); break;
        case USERLOG_CHECKPOINTED:
                put_usages(ad, l);
                put_bytes(ad, l, "SentBytes", l->bytes_out);
                break;
        case USERLOG_EVICTED: put_evicted(ad, l); break;
        case USERLOG_TERMINATED: put_terminated(ad, l); break;
        case USERLOG_IMAGE_SIZE:
                put_integer(ad, l, "Size", (int64_t)(l->memory_peak_bytes >> 10));
                put_integer(ad, l, "MemoryUsage", (int64_t)userlog_mib(l->memory_peak_bytes));
                put_integer(ad, l, "ResidentSetSize", (int64_t)(l->memory_peak_bytes >> 10));
                break;
        case USERLOG_GENERIC: put_text(ad, l, "Info", l->reason); break;
        case USERLOG_ABORTED:
        case USERLOG_RELEASED: put_text(ad, l, "Reason", l->reason); break;
        case USERLOG_SUSPENDED: put_integer(ad, l, "NumberOfPIDs", 1); break;
        case USERLOG_UNSUSPENDED: break;
        case USERLOG_HELD:
                put_text(ad, l, "HoldReason", l->reason.n ? l->reason : STR("Reason unspecified"));
                put_integer(ad, l, "HoldReasonCode", l->code);
                put_integer(ad, l, "HoldReasonSubCode", l->subcode);
                break;
        case USERLOG_DISCONNECTED:
                put_address(ad, l, "StartdAddr");
                put_slot(ad, l, "StartdName");
                put_text(ad, l, "DisconnectReason", l->reason);
                put_text(ad, l, "EventDescription", STR("Job disconnected, attempting to reconnect"));
                break;
        case USERLOG_RECONNECT_FAILED:
                put_slot(ad, l, "StartdName");
                put_text(ad, l, "Reason", l->reason);
                put_text(ad, l, "EventDescription", STR("Job reconnect impossible: rescheduling job"));
                break;
        }
}

void userlog_format_ad(struct buf *out, enum userlog_number number, const struct userlog_line *l)
{
        struct ad *ad = ad_new(l->symbols);

        put_text(ad, l, "MyType", str_of(type_name(number)));
        put_integer(ad, l, "EventTypeNumber", number);
        put_time(ad, l);
        put_integer(ad, l, "Cluster", (int64_t)l->request);
        put_integer(ad, l, "Proc", l->member);
        put_integer(ad, l, "Subproc", 0);
        put_body(ad, number, l);
        if (l->options & USERLOG_JSON)
                ad_print_json_lines(out, ad);
        else
                ad_print_xml(out, ad, false);
        ad_free(ad);
}
