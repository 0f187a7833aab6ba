#include "agent/queue/use.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/model/agent.h"
#include "agent/model/queue.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

#define WRITE_EVERY 20 /* ticks */

struct queue_uses {
        struct buf kept; /* contents of STATE/use */
        unsigned ticks;
};

static void read_line(struct agent *a, char *line)
{
        long long day;
        unsigned long long n[4];
        int end = 0;

        if (sscanf(line, "%lld %llu %llu %llu %llu%n", &day, &n[0], &n[1], &n[2], &n[3], &end) != 5)
                return;
        /* a line without a name is from a version with one queue */
        struct queue *q = line[end] == ' ' ? queue_find(a, line + end + 1) : a->queues[0];
        if (q)
                q->use = (struct pull_use){day, n[0], n[1], n[2], n[3]};
}

static void today(struct agent *a)
{
        for (size_t i = 0; i < a->queue_count; i++)
                pull_use_day(&a->queues[i]->use, clock_wall_ms() / 1000);
}

void queue_use_read(struct agent *a)
{
        BUF_CLEANUP struct buf b = {0};
        struct str rest, line;

        if (fs_read(a->dir, "use", 1 << 20, &b, NULL) == 0)
                for (rest = buf_view(&b); rest.n && str_cut(&rest, '\n', &line);) {
                        MEM_CLEANUP char *z = str_dupz(line);

                        read_line(a, z);
                }
        today(a);
        a->uses = mem_new(struct queue_uses);
        buf_str(&a->uses->kept, buf_view(&b));
}

void queue_use_write(struct agent *a)
{
        BUF_CLEANUP struct buf b = {0};

        for (size_t i = 0; i < a->queue_count; i++) {
                const struct pull_use *u = &a->queues[i]->use;

                buf_printf(&b, "%lld %llu %llu %llu %llu %s\n", (long long)u->day,
                           (unsigned long long)u->jobs, (unsigned long long)u->cpu_ms,
                           (unsigned long long)u->walltime_ms, (unsigned long long)u->memory_mib_s,
                           a->queues[i]->config->name);
        }
        if (str_eq(buf_view(&b), buf_view(&a->uses->kept)) ||
            fs_write(a->dir, "use", buf_view(&b), 0600, false, NULL) < 0)
                return;
        buf_reset(&a->uses->kept);
        buf_str(&a->uses->kept, buf_view(&b));
}

void queue_use_tick(struct agent *a)
{
        today(a);
        if (++a->uses->ticks % WRITE_EVERY == 0)
                queue_use_write(a);
}

void queue_use_close(struct agent *a)
{
        if (a->uses)
                buf_deinit(&a->uses->kept);
        free(a->uses);
        a->uses = NULL;
}
