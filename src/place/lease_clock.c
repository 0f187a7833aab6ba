#include "place/lease_clock.h"

void lease_clock_greeted(struct lease_clock *c, int64_t hello_ms)
{
        if (hello_ms > c->from_ms)
                c->from_ms = hello_ms;
        for (int i = 0; i < 8; i++) /* answers of an earlier session will not come */
                c->sent_ms[i] = 0;
}

uint64_t lease_clock_renewing(struct lease_clock *c, int64_t now_ms)
{
        c->serial++;
        c->sent_ms[c->serial % 8] = now_ms;
        return c->serial;
}

bool lease_clock_renewed(struct lease_clock *c, uint64_t serial)
{
        if (serial == 0 || serial > c->serial || serial + 8 <= c->serial || !c->sent_ms[serial % 8])
                return false;
        if (c->sent_ms[serial % 8] >= lease_clock_end(c))
                return false;
        if (c->sent_ms[serial % 8] > c->from_ms)
                c->from_ms = c->sent_ms[serial % 8];
        return true;
}

void lease_clock_hold(struct lease_clock *c, int64_t term_ms, int64_t now_ms)
{
        if (term_ms <= 0)
                return;
        if (c->term_ms == 0 && c->from_ms == 0)
                c->from_ms = now_ms;
        if (c->term_ms == 0 || term_ms < c->term_ms)
                c->term_ms = term_ms;
}

void lease_clock_release_all(struct lease_clock *c)
{
        c->term_ms = 0;
}

int64_t lease_clock_end(const struct lease_clock *c)
{
        return c->term_ms ? c->from_ms + c->term_ms : LEASE_CLOCK_NEVER;
}
