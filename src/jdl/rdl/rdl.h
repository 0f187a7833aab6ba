/* rdl: composite requests in the Request Definition Language (RDL) of STAR's scheduler, in XML or YAML.
 *
 * An AbstractRequest has requests, each of which refers to a task, an application, a dataset and limits; and
 * a WorkFlow, which defines the order of the requests, their data flow, merges and alternatives. Each request
 * becomes a part of one form, made like those of SUMS (jdl/sums/request.h), and the WorkFlow its edges, like
 * those of a DAG. The user's documentation is drover-rdl(7).
 *
 * Source: the published part of RDL0.52.xsd (star.bnl.gov, public/comp/Grid/scheduler/rdl). Pure: files,
 * commands and the catalog come through struct form_world.
 */
#pragma once
#include "jdl/sums/sums.h"

#define RDL_TEXT_MAX     (1u << 20) /* bytes of a description */
#define RDL_REQUESTS_MAX 1000u

bool rdl_is(
        struct str text); /* true for XML whose root is AbstractRequest, and for YAML that begins with it */
/* Translates the description; entities are for a template in XML. ret_name: the composite's name, empty if it
 * has none. Returns 0; -EINVAL, -E2BIG or -ENOSYS with err; or the error of a call of form_world. */
int rdl_parse(const struct form_world *w, const struct sums_job *job, const struct condor_options *o,
              struct form *ret, struct buf *ret_name, struct err *err);
