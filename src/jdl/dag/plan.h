/* plan: routes the data of a graph through one store near the processors.
 *
 * Files that nodes read from other stores are copied there once (stage-in). Files that nodes write to other
 * stores are written there first, so that later nodes read them locally, and then copied to their
 * destination (stage-out). Files that no node needs any more are removed (clean-up). Each of these steps is
 * a placement job; those of one link are one part of the request. With a limit on space, the files in the
 * store never exceed it: a file gets the bytes of files that were removed before, and waits for their
 * removal. That space may be reserved as a lot of the store (core/data/space.h), in which all of them are
 * written.
 *
 * Files that cannot be planned stay as their author wrote them, and the report says so: files that differ by
 * job number, outputs that register themselves, local files.
 */
#pragma once
#include "jdl/condor/condor.h"
#include "jdl/form/form.h"

struct dag_plan_options {
        const char *stage;     /* a URL that ends with '/' */
        const char *tag;       /* letters and digits: name of the request's own folder in it */
        uint64_t space;        /* maximum bytes in the store at one time; 0: any number */
        uint64_t file_size;    /* assumed bytes of a file; needed with `space` */
        uint64_t reserve_s;    /* with `space`: that space is a lot of the store for so many seconds, which a
                                  first job makes and a last one ends; 0: it is not reserved */
        const char *registers; /* value of register_outputs for the files that are taken out; NULL: none */
        const struct condor_options *condor;
};
/* Adds parts and edges to the form of a DAG, and changes inputs and outputs of its parts. The report, for
 * people, is appended to *ret. Returns 0; or -EINVAL, -E2BIG with err, and the form is unusable. */
int dag_plan(const struct form_world *w, const struct dag_plan_options *o, struct form *form, struct buf *ret,
             struct err *err);
