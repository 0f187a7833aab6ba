/* sense: values that an attribute of a job cannot have, found where it is written.
 *
 * Only literals are judged (-1, "abc", and what is folded to one): what an expression gives is known at a
 * place, or later. Used by who reads descriptions, to name the line, and by the core, so that nothing comes
 * past it. condor_submit takes any RequestCpus, and the slots of HTCondor make of it what they have least of
 * (manual, MODIFY_REQUEST_EXPR_REQUESTCPUS: quantize(RequestCpus, {1})); so 0 has a sense, and less has none.
 */
#pragma once
#include "classad/expr.h"

/* RequestCpus, RequestMemory, RequestDisk and RequestGPUs are no texts, and no Request… is below 0;
 * ExpectedRunTime, BetterPlaceWait and PriceWeight are numbers in their ranges. All else passes.
 * 0, or -EINVAL with err, which does not name the attribute. */
int sense_check(struct str attribute, const struct expr *x, struct err *err);

/* TransferInputSizes, for the inputs TransferInput; both as texts, parted by commas: each element a number of
 * bytes or empty, and no number without its input. 0, or -EINVAL with err, as above. */
int sense_check_sizes(struct str sizes, struct str inputs, struct err *err);
