/* sense: checks of the literal values of job attributes, where they are written.
 *
 * Only literals are checked (-1, "abc", and expressions that fold to one): the value of an expression is
 * known at a place, or later. Readers of descriptions check to name the line, and the core checks so that
 * nothing gets past it. condor_submit takes any RequestCpus, and HTCondor's slots round it up to a whole
 * number, at least 1 (manual, MODIFY_REQUEST_EXPR_REQUESTCPUS: quantize(RequestCpus, {1})); so 0 is accepted,
 * and negative numbers are refused.
 */
#pragma once
#include "classad/expr.h"

/* Checks an attribute: RequestCpus, RequestMemory, RequestDisk and RequestGPUs are no texts, and no Request…
 * is below 0; ExpectedRunTime, BetterPlaceWait and PriceWeight are numbers in their ranges. All else passes.
 * 0, or -EINVAL with err, which does not name the attribute. */
int sense_check(struct str attribute, const struct expr *x, struct err *err);

/* Checks TransferInputSizes against TransferInput, both comma-separated: each element is a number of
 * bytes or empty, and no number lacks its input. 0, or -EINVAL with err, as above. */
int sense_check_sizes(struct str sizes, struct str inputs, struct err *err);
