/* wishlist: gives the waiting jobs, in groups, and the provisioners' nodes to a plan (plan.h), which says
 * which nodes to start and which to drain.
 *
 * Jobs want as many places at a time as let them end within the horizon, by their predicted run times; jobs
 * without a prediction want one place each. Jobs that no machine would help are left out: those that wait
 * for a time of day or for units of a limit, placement jobs, and jobs with labelled data, for which nodes
 * are cleared by name. Files are counted as a new machine fetches them, over the links of an agent of its
 * shape, of the present or the past. The only change to the core is the time of a node's last job, which is
 * recorded when the node is examined.
 */
#pragma once
#include "base/job/owners.h"
#include "core/query.h"
#include "core/wishlist/plan.h"

#define WISHLIST_CLASSES_MAX 2000u /* most classes examined in one plan */
#define WISHLIST_DEMANDS_MAX 256u
/* Limits of one plan, and of an account in it before all others have had as much; the steps (eval.h) that
 * its expressions may take. Classes beyond the limits are left out. */
#define WISHLIST_CLASSES_OF_ONE 250u
#define WISHLIST_DEMANDS_OF_ONE 32u
#define WISHLIST_STEPS_OF_ONE   400000u

struct wishlist_shape {
        struct str provisioner;
        const struct ad *ad; /* ad of a machine of this shape, until an agent there has offered one: borrowed,
                                with the core's symbols */
        struct owners owners; /* owners whose jobs agents there run; empty: everybody's */
};
/* Arrays have the lengths of those in `plan`, whose nodes, demands and spent_micro are filled in by
 * wishlist_make; everything is borrowed. */
struct wishlist_settings {
        struct plan_input plan;
        const struct wishlist_shape *shapes;
        const struct str *provisioners; /* names of the provisioners */
        int64_t horizon_ms;
        int64_t wait_ms; /* jobs that have waited for less are left out */
};
struct wishlist_demand {
        uint64_t request; /* one of the requests of the group */
        uint32_t member;
        struct str owner;
};
struct wishlist {
        struct plan_input in;
        struct plan plan;
        struct wishlist_demand *who; /* for each demand */
        const char **names;          /* for each node */
        uint64_t left_out;   /* jobs that no machine would help, that suit no shape, or that are beyond the
                                limits */
        bool *suits;         /* storage for the demands' `suits` */
        int64_t *fetch_ms;   /* and for their `fetch_ms` */
        int64_t *boot_ms;    /* learned boot time of each shape; 0: not known */
        struct ad **learned; /* ad of an existing agent of each shape; NULL: none */
        struct plan_shape *shapes; /* copy of the given shapes, with boot_ms */
        struct plan_node *nodes;
        struct plan_demand *demands;
};
/* Makes a wishlist; its texts are borrowed and valid until the core changes. */
void wishlist_make(struct core *c, const struct wishlist_settings *s, struct wishlist *ret);
void wishlist_deinit(struct wishlist *w);
