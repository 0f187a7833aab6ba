/* eta_share: predicts how accounts with waiting jobs share the pool, as a flow. For the files of core/ only;
 * works on numbers, without jobs.
 *
 * The order (order.h) gives each job to the account with the most points, and an account's points decrease
 * with its processors (present ones and its recent mean) relative to its part of the pool. In the long run
 * all accounts that get processors reach the same level of points. While the set of accounts with waiting
 * jobs does not change, each therefore gets a constant number of processors, or none if it has had too much;
 * when the demand of one is satisfied, the shares of the others are computed again. The slower decay of usage
 * is ignored, and so is the rule that the unused part of an account goes to its group first.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

struct eta_stream {    /* demand of one account */
        double part;   /* its part of the pool, > 0 */
        double lately; /* processors of recent usage that count against it, beside the present ones */
        double now;    /* processors that it has */
        double points; /* points of its first job without fair share, in processors for the whole pool */
        double cap;    /* most processors that it can use */
        double work;   /* its total demand, processors times milliseconds; 0: nothing */
        /* private to eta_share.c */
        double base, left, rate, offset;
};
struct eta_flow {                      /* private to eta_share.c */
        struct eta_stream *v, **order; /* by base */
        size_t count;
        double all, at_ms;
        unsigned phase;
};
typedef void eta_flow_fn(void *arg, size_t stream, double at_ms, double rate, double done);
/* Starts the flow with `all` processors, of which `idle` are free; an attempt takes about run_ms. The caller
 * owns the streams, which must stay in place until eta_flow_end. */
void eta_flow_begin(struct eta_flow *f, struct eta_stream *streams, size_t count, double all, double idle,
                    double run_ms);
/* Advances to the next time at which an account has all it wants. Calls fn for each stream that gets
 * something until then: from at_ms on (relative to the start) it gets `rate` processors, until `done` of its
 * work is done. Returns false at the end: streams for which fn was never called get no processors. */
bool eta_flow_step(struct eta_flow *f, eta_flow_fn *fn, void *arg);
void eta_flow_end(struct eta_flow *f);
