/* label: computes the labels of a job's data, and checks that its outputs go only where they may; for the
 * files of core/ only.
 *
 * Every URL and path that the job reads by its attributes (TransferInput, In, Cmd, the image) and every
 * place that it writes to (OutputDestination, TransferOutputRemaps, Out, Err) is examined. A member's labels
 * are part of its class, whatever its author wrote or omitted.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"
#include "core/model/names.h"

/* Computes the labels of a member's data, a bit each. Returns 0; or CORE_INVALID with err: an output would
 * go to a place that lacks one of them, or DataLabels names a label that is not configured. *ret is set in
 * any case. */
int label_of(struct core *c, const struct request *r, const struct part *p, uint32_t member, uint64_t *ret,
             struct err *err);
/* Computes the labels of a part, if its members share them: it may have a thousand classes and half a million
 * inputs. To be called when the part is loaded, and when what is configured has changed. */
void label_part(struct core *c, const struct request *r, struct part *p);
/* Returns whether members of the part may have different labels. */
bool label_differs(struct core *c, const struct part *p);
void label_print(const struct core *c, uint64_t labels, struct buf *out); /* "a,b" */
/* Returns the labels that the agent is cleared for: those of the configuration, restricted by
 * core_agent_labels; the agent's own claims do not count. */
uint64_t label_cleared(const struct core *c, const char *agent);
/* Checks a new request. Returns 0; or CORE_INVALID with err: it would move labelled data to a place that may
 * not have it. */
int label_refuse(struct core *c, const struct request *r, struct err *err);
