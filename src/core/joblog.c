/* The log of one job: the first half of the entries stays, of the rest the newest. */
#include "base/mem.h"
#include "core/state.h"

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
