/* job_template: the attributes that the jobs of a request's part share, compiled once.
 *
 * Templates with the same text are one object with a count of its users. Attributes without macros are
 * expressions of `ad`; late attributes keep their text, which becomes an expression of a member's own ad.
 *
 * Many requests differ in a few texts only, such as the arguments. Their templates borrow: the ad has only
 * these expressions of its own, and a parent that has the others, the ad of a template of the same owner.
 */
#pragma once
#include "classad/expr.h"

struct submission_part;
struct core;
struct job_template_late {
        symbol name;
        uint32_t spelling; /* symbols_spelling() */
        struct str text;   /* owned */
};
/* Rule for jobs of a part that start together, in consecutive groups (gang.h). */
enum gang_within { GANG_ANYWHERE, GANG_GROUP, GANG_NODE }; /* same values as enum core_gang_within */
struct gang_rule {
        int64_t size; /* members of a gang; 0: jobs start one by one; -1: the whole part is one gang */
        enum gang_within within;
        symbol by;       /* GANG_GROUP: queues with the same value of this attribute are a group */
        bool first_ends; /* the set is over when its first member ends */
        bool launches;   /* programs of its members may start programs beside each other's */
};
/* Rule for jobs that are given the best of all places by a reservation, see meta_rule.h. */
struct meta_rule {
        bool wanted;   /* false: the jobs go to any place whose turn it is */
        bool together; /* all jobs of the request start together; `wanted` is true then */
        double time;   /* weight of the time to the result, 0 to 1; the rest is that of the cost */
};
/* The ways in which a job changes the space of the store that it writes to (data/space.h). */
enum lot_act {
        LOT_WRITE,   /* a program's outputs go there */
        LOT_COPY,    /* a transfer: writes what it reads */
        LOT_REMOVE,  /* rm */
        LOT_RESERVE, /* makes a lot */
        LOT_RELEASE, /* ends a lot */
        LOT_NOTHING  /* mkdir, stage, verify */
};
struct job_template {
        struct str key; /* that of c->templates (template_key.h): with the same key they are the same */
        struct job_template *lender; /* whose ad is the parent of this one's; a user of it; NULL: none */
        uint64_t shape;              /* template_key_shape */
        struct symbols_use *names;   /* attribute names that its ad and its late attributes use */
        struct ad *ad;
        struct job_template_late *late;
        uint32_t late_count, variable_count, fill_count;
        char **variables;
        symbol *fills; /* attributes with $$() in their text; see fill.h */
        unsigned refs;
        int32_t abort_code;         /* exit code of one of its jobs that ends the graph; 0: none */
        int placement;              /* enum core_placement that its jobs ask for; -1: that of the server */
        enum lot_act lot_act;       /* what its jobs do with space, and in which lot: */
        char *lot_name;             /* ReserveId; NULL: none */
        int64_t lot_ms;             /* ReserveDuration; 0: not said */
        bool lends : 1;             /* no two of its attributes have one name, so others may borrow */
        bool late_borrowed : 1;     /* `late` is the lender's; the variables of one that borrows always are */
        bool fills_vary : 1;        /* filled-in values may differ between members */
        bool exit_policy : 1;       /* OnExitHold or OnExitRemove has to be evaluated */
        bool periodic_policy : 1;   /* PeriodicHold, PeriodicRelease or PeriodicRemove has to be evaluated */
        bool leaves : 1;            /* LeaveJobInQueue has to be evaluated when a job has ended */
        bool dependency_remove : 1; /* jobs that wait for something impossible are removed; false: held */
        bool abort_stays : 1;       /* its jobs stay when an exit code ends the graph that they are in */
        bool checkpoints : 1;       /* its program makes a checkpoint on request */
        bool restarts : 1;          /* its jobs may have a checkpoint or an earlier output to continue from */
        bool rerun_eager : 1;       /* a lost attempt is run again before its lease has ended */
        bool per_member : 1;        /* as job_class_is_per_member found it */
        bool late_class : 1;        /* a late attribute matters for matching, so members are put into classes
                                       one by one */
        uint64_t per_member_keyed;  /* classes.keyed + 1 of the time of per_member; 0: never */
        int64_t jobs_max;           /* jobs of a request that may be under way at once; INT64_MAX: no limit */
        uint64_t reservation;       /* advance reservation that its jobs must run in; 0: none */
        struct gang_rule gang;
        struct meta_rule meta;
        /* The author's statements about a run; see estimate.c. */
        int64_t expected_ms, allowed_ms; /* 0: not said */
        int64_t long_ms;                 /* longest run time, for the order among its owner's jobs */
        int64_t bytes_out_said;          /* -1: not said */
        int64_t better_wait_ms;          /* -1: not said */
        int64_t cpus;                    /* processors requested, if the request is a number; otherwise 1 */
        double price_weight;
};

/* Returns the template of a part: an existing one with the same text, or a new one, whose names are charged
 * to `owner`. Returns 0; -EINVAL with err, which names the attribute. The caller unrefs *ret. */
int job_template_get(struct core *c, const struct submission_part *p, struct str owner,
                     struct job_template **ret, struct err *err);
/* Makes the template that `from` becomes with changes (edit.h), which replace, add or remove attributes.
 * Otherwise as job_template_get. */
int job_template_edit(struct core *c, const struct job_template *from, struct str changes, struct str owner,
                      struct job_template **ret, struct err *err);
void job_template_unref(struct core *c, struct job_template *t); /* NULL is fine */
/* Returns the memory that it holds, in bytes. */
size_t job_template_bytes(const struct job_template *t);
/* Returns the memory that it would hold if it borrowed nothing, in bytes: what its owner is charged. */
size_t job_template_full_bytes(const struct job_template *t);
/* Charges the names of expressions that are parsed from now on, as of late attributes in one member, to the
 * template; NULL: to nobody. Returns the previous setting, which the caller restores with symbols_use_set().
 */
struct symbols_use *job_template_names(struct core *c, const struct job_template *t);
/* STR_NONE: the attribute is not late. */
struct str job_template_late_text(const struct job_template *t, symbol name);
