/* amounts: quantities of countable resources other than processors, memory and disk: GPUs, licences of a
 * node, and whatever else a site counts. For the files of core/ only.
 *
 * A job asks for a resource by an attribute Request<Name> (HTCondor: request_<name>); a place gives in its ad
 * the number that is free as <Name>, and its total as Total<Name>. A place whose ad does not have the
 * attribute has none of the resource.
 */
#pragma once
#include "base/buf.h"
#include "classad/eval.h"

#define AMOUNTS_MAX 8u /* different resources that one job may ask for */

struct amount {
        symbol name;    /* GPUs */
        symbol request; /* RequestGPUs; 0: not known */
        int64_t n;
};
struct amounts {
        unsigned count;
        struct amount v[AMOUNTS_MAX];
};

/* Returns the resource that an attribute asks for, "GPUs" for RequestGPUs; STR_NONE: the attribute is no
 * request. */
struct str amounts_requested(struct str attribute);
/* Finds the resources that a job's ad asks for, its parents included, and sets each `n` to 0. Returns false
 * if there are more than AMOUNTS_MAX; *ret then holds some of them. */
bool amounts_names(struct symbols *symbols, const struct ad *ad, struct amounts *ret);
/* Prints the nonzero amounts as text for events and snapshots: "GPUs=2 Licence=1". */
void amounts_print(struct buf *out, const struct symbols *symbols, const struct amounts *a);
int amounts_parse(struct symbols *symbols, struct str text, struct amounts *ret); /* 0, or -EBADMSG */
