/* eta_share: how the accounts that want something will share the pool, as a flow, for the files of eta. For
 * the files of core/ only; numbers only, nothing here knows of jobs.
 *
 * The order (order.h) gives each job to the account with the most points, which are as many the fewer as its
 * processors (those it has, and its mean of late) are more for its part of the pool. In the long run all that
 * get something stand at one level of points. So while the same accounts want something, each has a steady
 * number of processors, or none while it has had too much; when one has got all it wants, the others share
 * anew. What changes more slowly than that, the decay of what they have had, is left out, and so is that
 * what a group's account leaves is the group's first.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct eta_stream {    /* what one account wants */
        double part;   /* of the pool, > 0 */
        double lately; /* processors that count against it beside those that it has */
        double now;    /* it has */
        double points; /* of its first job, beside fair share, in processors for the whole pool */
        double cap;    /* processors that it can make use of */
        double work;   /* all that it wants, processors times milliseconds; 0: nothing */
        /* eta_share.c's own */
        double base, left, rate, offset;
};
struct eta_flow {                      /* eta_share.c's own */
        struct eta_stream *v, **order; /* by base */
        size_t count;
        double all, at_ms;
        unsigned phase;
};
typedef void eta_flow_fn(void *arg, size_t stream, double at_ms, double rate, double done);
/* `all` processors, of which `idle` are free; an attempt takes run_ms, about. The streams are the caller's
 * and stay where they are until eta_flow_end. */
void eta_flow_begin(struct eta_flow *f, struct eta_stream *streams, size_t count, double all, double idle,
                    double run_ms);
/* Goes on to the next time at which somebody has all he wants. Calls fn for each stream that gets something
 * until then: from at_ms on (from now) it gets `rate` processors, until it has got `done` of its work. False:
 * that was all; those that were not told of have no processors ever. */
bool eta_flow_step(struct eta_flow *f, eta_flow_fn *fn, void *arg);
void eta_flow_end(struct eta_flow *f);
