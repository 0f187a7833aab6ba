/* amounts: so many of each countable resource beside processors, memory and disk: GPUs, licences of a node,
 * and whatever else a site counts. For the files of core/ only.
 *
 * A job asks for one by an attribute Request<Name> (HTCondor: request_<name>); a place says by a number
 * <Name> in its ad how many are free, and by Total<Name> how many it has. A place that says nothing has none.
 */
#pragma once
#include "base/buf.h"
#include "classad/eval.h"

#define AMOUNTS_MAX 8u /* different ones that a job may ask for */

struct amount {
        symbol name;    /* GPUs */
        symbol request; /* RequestGPUs; 0 when it is not known */
        int64_t n;
};
struct amounts {
        unsigned count;
        struct amount v[AMOUNTS_MAX];
};

/* The resource that an attribute asks for, "GPUs" of RequestGPUs; STR_NONE when it asks for none. */
struct str amounts_requested(struct str attribute);
/* Those that a job's ad, with its parents, asks for; n is 0. False: more than AMOUNTS_MAX, and *ret has some.
 */
bool amounts_names(struct symbols *symbols, const struct ad *ad, struct amounts *ret);
/* As text, "GPUs=2 Licence=1", for events and snapshots; those of 0 are left out. */
void amounts_print(struct buf *out, const struct symbols *symbols, const struct amounts *a);
int amounts_parse(struct symbols *symbols, struct str text, struct amounts *ret); /* 0, or -EBADMSG */
