/* The log of one job keeps the first half of its entries for ever, and the newest of the others. */
#include "base/mem.h"
#include "core/model/agent.h"
#include "core/model/request.h"

void joblog_push(struct joblog *log, struct joblog_entry e)
{
        if (log->count == LOG_ENTRIES_MAX) {
                struct joblog_entry *out = &log->entries[LOG_ENTRIES_MAX / 2];

                free(out->text);
                memmove(out, out + 1, (LOG_ENTRIES_MAX / 2 - 1) * sizeof(*out));
                log->count--;
                log->dropped++;
        }
        if (log->count == log->cap) {
                log->cap = log->cap ? log->cap * 2 : 4;
                log->entries = mem_array(log->entries, log->cap, sizeof(*log->entries));
        }
        log->entries[log->count++] = e;
}

void joblog_deinit(struct joblog *log)
{
        for (uint32_t i = 0; i < log->count; i++)
                free(log->entries[i].text);
        free(log->entries);
        *log = (struct joblog){0};
}

/* Returns the text that users read: "exit 0, completed", "signal 9, idle: the job attribute …", "held: cannot
 * run /x". */
static char *log_words(const struct event *e)
{
        struct buf b = {0};

        if (e->type == EVENT_EXITED && e->outcome == CORE_EXITED)
                buf_printf(&b, "%s %d, ", e->signaled ? "signal" : "exit", e->exit_code);
        if (e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_REFUSED)
                buf_addz(&b, job_state_name((enum job_state)e->next));
        if (b.n && e->reason.n)
                buf_addz(&b, ": ");
        if (e->reason.n)
                buf_str(&b, e->reason);
        return b.n ? buf_take(&b) : NULL;
}

void joblog_event(struct job *j, const struct event *e, struct queue *q)
{
        joblog_push(&j->log, (struct joblog_entry){
                                     .at_ms = e->at_ms,
                                     .type = e->type,
                                     .fence = j->fence,
                                     .queue = q,
                                     .code = e->code,
                                     .text = log_words(e),
                             });
}

void joblog_event_of_all(struct request *r, const struct event *e, const struct set *members)
{
        struct request_cold *cold;
        struct range_log *l;

        if (set_count(members) == 0)
                return;
        cold = request_cold_make(r);
        if (cold->log_count >= 256) {
                set_deinit(&cold->log[0].members);
                free(cold->log[0].entry.text);
                memmove(cold->log, cold->log + 1, --cold->log_count * sizeof(*cold->log));
        }
        MEM_GROW(cold->log, cold->log_cap, cold->log_count + 1);
        l = &cold->log[cold->log_count++];
        *l = (struct range_log){.entry = {.at_ms = e->at_ms,
                                          .type = e->type,
                                          .code = e->code,
                                          .text = e->reason.n ? str_dupz(e->reason) : NULL}};
        set_copy(&l->members, members);
}
