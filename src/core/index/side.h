/* side: what one side, a class or a queue, shows to the other and demands of it, as far as the index
 * knows. For index*.c only.
 *
 * It is a small ad made out of the whole one: the clauses of Requirements that can be indexed, what these
 * look at in their own ad, and the attributes that the other side's clauses ask for. Two of the same text are
 * the same.
 */
#pragma once
#include "base/buf.h"
#include "base/share.h"
#include "classad/eval.h"
#include "core/index/index.h"

struct amounts;

/* Attributes that one side shows, in the order in which they were learnt. */
struct index_name {
        symbol name;
        uint32_t changes; /* how often it was another than before */
        bool moving;      /* too often: shown no longer */
        bool counted;     /* a countable resource: shown is whether there is any, not how many */
};
struct index_names {
        struct index_name v[INDEX_NAMES_MAX];
        unsigned n;
        struct share *share; /* of who brought them; they stay */
};

struct index_clause {
        uint64_t names; /* of the other side's, a bit each, that it looks at */
};
struct index_side {
        struct ad *ad;
        struct index_clause *clauses;
        unsigned clause_count;
        uint64_t counted; /* names, a bit each: resources that a class must have, or that a queue has */
        uint64_t labels;  /* of the data of a class; those that a queue's agent is cleared for */
        uint64_t known;   /* names that it shows, a bit each: constant, or not there */
        struct buf text;  /* what makes two the same */
};
void index_side_deinit(struct index_side *s);

/* Names that are not to be indexed, because they change by themselves or split too much. */
typedef bool index_moving_fn(const struct core *c, symbol name);
/* `own`: names that this side shows; `other`: that the other side shows, and learns by this. `demands`: index
 * its clauses. `hide_own`: own names in clauses are shown names as well (queues, whose values may move). */
struct index_side_how {
        struct index_names *own, *other;
        index_moving_fn *own_moves, *other_moves;
        bool demands, own_is_shown;
        uint64_t labels;
        struct str who;             /* whose share of the names new ones are from: an owner or an agent */
        const struct amounts *asks; /* of a class; NULL: nothing that is known */
};
void index_side_make(struct core *c, const struct ad *ad, const struct index_side_how *how,
                     struct index_side *ret);
/* Is the queue cleared for the class's data, and does nothing that one demands surely fail at the other? */
bool index_sides_meet(struct core *c, const struct index_side *job_class, const struct index_side *queue);
