#include "agent/queue/leave.h"

#include "agent/queue/queues.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "place/offer.h"

#define STEPS      64u    /* steps in which the remaining time is advertised */
#define RESERVE    20u    /* this fraction of the whole time is for staging */
#define RESERVE_MS 60000u /* upper bound of the reserve */
#define QUIET      3u     /* ticks without an attempt, in which messages under way arrive */
#define NEVER_MS   600000
#define HURRY_MS   30000 /* added to the agent's kill_grace */

struct leave {
        int64_t begun_ms, end_ms; /* boot clock; end 0: it has no time */
        int64_t busy_ms;          /* last time with an attempt, or start */
        int64_t leaves_ms;        /* time at which it began to leave; 0: it stays */
        bool met;                 /* the server, once: before that it is given NEVER_MS to answer */
        unsigned quiet;
        const char *why;
};

const char leave_requirement[] = "TARGET.AllowedExecuteDuration isnt undefined || MY.TakesUnknownTimes";

void leave_open(struct agent *a)
{
        struct leave *l = a->leave = mem_new(struct leave);
        int64_t now = clock_boot_ms();

        *l = (struct leave){.begun_ms = now, .busy_ms = now};
        if (a->config.leave_after_ms)
                l->end_ms = now + (int64_t)a->config.leave_after_ms;
        if (!a->config.leave_unknown_ms)
                a->config.leave_unknown_ms = a->config.leave_after_ms / 2;
}

void leave_close(struct agent *a)
{
        free(a->leave);
        a->leave = NULL;
}

static void begin_leaving(struct agent *a, const char *why)
{
        a->leave->leaves_ms = clock_boot_ms();
        a->leave->why = why;
        log_info("msg=\"the agent leaves\" why=\"%s\" jobs=%zu", why, map_count(a->attempts));
        agent_turn_later(a);
}

static void end_agent(struct agent *a)
{
        if (map_count(a->attempts))
                log_warn("msg=\"jobs are left, and end with the agent\" jobs=%zu", map_count(a->attempts));
        a->config.kill_on_stop = true;
        loop_stop(a->loop);
}

void leave_tick(struct agent *a)
{
        struct leave *l = a->leave;
        int64_t now = clock_boot_ms(), hurry_ms = HURRY_MS + (int64_t)a->config.kill_grace_ms;
        int64_t idle_ms = (int64_t)a->config.leave_idle_ms;

        if (map_count(a->attempts) || (a->greeted && !l->met))
                l->busy_ms = now;
        l->met = l->met || a->greeted;
        if (!l->met && idle_ms && idle_ms < NEVER_MS)
                idle_ms = NEVER_MS;
        if (!l->leaves_ms && l->end_ms && now >= l->end_ms)
                begin_leaving(a, "its time is over");
        else if (!l->leaves_ms && idle_ms && now - l->busy_ms >= idle_ms)
                begin_leaving(a, "it had nothing to run");
        else if (l->leaves_ms) {
                l->quiet = map_count(a->attempts) ? 0 : l->quiet + 1;
                if (l->quiet > QUIET || now - l->leaves_ms >= hurry_ms)
                        end_agent(a);
        }
}

bool leave_told(struct agent *a)
{
        if (!a->config.leave_after_ms && !a->config.leave_idle_ms)
                return false;
        if (!a->leave->leaves_ms)
                begin_leaving(a, "it was told to end");
        return true;
}

bool leave_begun(const struct agent *a)
{
        return a->leave->leaves_ms != 0;
}

bool leave_has_time(const struct agent *a)
{
        return a->leave->end_ms != 0;
}

uint64_t leave_left_ms(const struct agent *a)
{
        uint64_t whole = a->config.leave_after_ms, step = whole / STEPS + 1, reserve = whole / RESERVE, left;
        int64_t now = clock_boot_ms();

        if (!a->leave->end_ms)
                return 0;
        if (reserve > RESERVE_MS)
                reserve = RESERVE_MS;
        left = a->leave->end_ms > now ? (uint64_t)(a->leave->end_ms - now) : 0;
        left = left > reserve ? left - reserve : 0;
        return left > step ? left - left % step : 1;
}

void leave_advertise(const struct agent *a, struct buf *out)
{
        if (a->leave->end_ms)
                buf_printf(out, "TakesUnknownTimes = %s; ",
                           a->leave->end_ms - clock_boot_ms() >= (int64_t)a->config.leave_unknown_ms
                                   ? "true"
                                   : "false");
        if (a->leave->leaves_ms) {
                buf_addz(out, "Leaving = ");
                offer_text(out, str_of(a->leave->why));
                buf_addz(out, "; ");
        }
}
