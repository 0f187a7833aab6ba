/* wishlist: which nodes the queue would have started, and which may go: the jobs that wait, put into groups,
 * and the nodes of provisioners as they are, given to a plan (plan.h).
 *
 * Jobs want as many places at a time as let them end within the horizon, by what is known of how long they
 * run; of which nothing is known, a place each. Those that no machine would help are left out: they wait for
 * a time of day or for units of a limit; they are placement jobs; or their data are labelled, for which
 * nodes are cleared by name. Nothing here changes the core but when a node had its last job, which is noticed
 * by looking.
 */
#pragma once
#include "base/owners.h"
#include "core/query.h"
#include "core/wishlist/plan.h"

#define WISHLIST_CLASSES_MAX 2000u /* that are looked at in one plan */
#define WISHLIST_DEMANDS_MAX 256u

struct wishlist_shape {
        struct str provisioner;
        const struct ad *ad;  /* as an agent there would offer its machine, until one has: borrowed, with the
                                 core's symbols */
        struct owners owners; /* whose jobs agents there run; empty: everybody's */
};
/* Arrays are as long as those of `plan`, whose nodes, demands and spent_micro are filled in here; all is
 * borrowed. */
struct wishlist_settings {
        struct plan_input plan;
        const struct wishlist_shape *shapes;
        const struct str *provisioners; /* their names */
        int64_t horizon_ms;
        int64_t wait_ms; /* jobs that have waited for less are left out */
};
struct wishlist_demand {
        uint64_t request; /* one of those that asked */
        uint32_t member;
        uint32_t classes;
        struct str owner;
};
struct wishlist {
        struct plan_input in;
        struct plan plan;
        struct wishlist_demand *who; /* for each demand */
        const char **names;          /* for each node */
        uint64_t left_out;           /* jobs that no machine would help, or that no shape suits */
        bool *suits;                 /* what the demands' point to */
        int64_t *boot_ms;            /* of each shape, as learned; 0: not known */
        struct ad **learned;         /* of each shape, what an agent that is there offers; NULL: none is */
        struct plan_shape *shapes;   /* as given, with boot_ms */
        struct plan_node *nodes;
        struct plan_demand *demands;
};
/* Texts in it are borrowed until the core changes. */
void wishlist_make(struct core *c, const struct wishlist_settings *s, struct wishlist *ret);
void wishlist_deinit(struct wishlist *w);
