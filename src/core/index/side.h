/* side: the indexed part of one side, a class or a queue: what it shows to the other side and demands of it.
 * For the files of core/index only.
 *
 * A side is a small ad made from the whole one: the clauses of Requirements that can be indexed, the
 * attributes that these use in their own ad, and the attributes that the other side's clauses use. Two sides
 * with the same text are the same.
 */
#pragma once
#include "base/buf.h"
#include "base/share.h"
#include "classad/eval.h"
#include "core/index/index.h"

struct amounts;

/* Attributes that one side shows, in the order in which they were learned. */
struct index_name {
        symbol name;
        uint32_t changes; /* number of changes of its value */
        bool moving;      /* its value changes too often: no longer shown */
        bool counted;     /* a countable resource: only whether there is any is shown, not the amount */
};
struct index_names {
        struct index_name v[INDEX_NAMES_MAX];
        unsigned n;
        struct share *share; /* shares of those who introduced the names; names stay */
};

struct index_clause {
        uint64_t names; /* names of the other side that the clause uses, a bit each */
};
struct index_side {
        struct ad *ad;
        struct index_clause *clauses;
        unsigned clause_count;
        uint64_t counted; /* names of resources, a bit each, that a class must have or a queue has */
        uint64_t labels;  /* labels of a class's data, or labels that a queue's agent is cleared for */
        uint64_t known;   /* names that it shows as constant or undefined, a bit each */
        struct buf text;  /* text by which sides are compared */
};
void index_side_deinit(struct index_side *s);

/* Returns whether a name must not be indexed, because its value changes by itself or splits signatures too
 * much. */
typedef bool index_moving_fn(const struct core *c, symbol name);
/* `own`: names that this side shows. `other`: names that the other side shows, extended here. `demands`:
 * index the clauses. `own_is_shown`: own names used in clauses are shown names as well (for queues, whose
 * values may change). */
struct index_side_how {
        struct index_names *own, *other;
        index_moving_fn *own_moves, *other_moves;
        bool demands, own_is_shown;
        uint64_t labels;
        struct str who;             /* owner or agent whose share new names are taken from */
        const struct amounts *asks; /* amounts that a class asks for; NULL: none known */
};
void index_side_make(struct core *c, const struct ad *ad, const struct index_side_how *how,
                     struct index_side *ret);
/* Returns whether the queue is cleared for the class's data and no indexed demand of one side certainly
 * fails at the other. */
bool index_sides_meet(struct core *c, const struct index_side *job_class, const struct index_side *queue);
