/* rdl: composite requests in the Request Definition Language (RDL) of STAR's scheduler, in XML or YAML.
 *
 * An AbstractRequest has requests, each of which refers to a task (what is done), an application (what does
 * it), a dataset (with which files) and limits; and a WorkFlow, which says which request waits for which,
 * whose outputs are the files of which, what is merged, and which are alternatives to each other. Each
 * request becomes a part of one form, made as those of SUMS are (jdl/sums/request.h), and the WorkFlow its
 * edges, as those of a DAG. The user's documentation is drover-rdl(7).
 *
 * Source: what is published of RDL0.52.xsd (star.bnl.gov, public/comp/Grid/scheduler/rdl).
 * Pure: files, commands and the catalog come through struct form_world. */
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
