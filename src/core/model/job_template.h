/* job_template: the attributes that the jobs of a request's part share, compiled once.
 *
 * Templates with the same text are one object, counted by its users. Attributes without macros are
 * expressions of `ad`; late ones keep their text, and become expressions of a member's own ad.
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
/* Jobs of a part that start together, in consecutive groups (gang.h). */
enum gang_within { GANG_ANYWHERE, GANG_GROUP, GANG_NODE }; /* as core_gang_within */
struct gang_rule {
        int64_t size; /* members of a set; 0: each job is on its own, -1: all of the part are one set */
        enum gang_within within;
        symbol by;       /* GANG_GROUP: queues with the same value of this attribute are a group */
        bool first_ends; /* when the first member ends, the set is over */
};
struct job_template {
        struct str key; /* owned: what makes two templates the same */
        unsigned refs;
        struct symbols_use *names; /* of its ad, and of what is made of its late attributes */
        struct ad *ad;
        struct job_template_late *late;
        size_t late_count;
        char **variables;
        size_t variable_count;
        symbol *fills; /* attributes with $$() in their text; see fill.h */
        size_t fill_count;
        bool fills_vary;        /* what is filled in may differ from member to member */
        int64_t jobs_max;       /* of a request that may be under way at once; INT64_MAX: any number */
        bool exit_policy;       /* OnExitHold or OnExitRemove must be evaluated */
        bool periodic_over;     /* they took too long: they are asked no more, and the jobs held */
        bool periodic_policy;   /* PeriodicHold, PeriodicRelease or PeriodicRemove must be */
        bool dependency_remove; /* jobs that wait for what never comes are removed; else held */
        bool abort_stays;       /* its jobs are left when an exit code ends the graph that they are in */
        int32_t abort_code;     /* a job of it that ends so ends the graph; 0: none does */
        bool leaves;            /* LeaveJobInQueue must be, when a job has ended */
        /* What its author says of a run; see estimate.c. */
        int64_t expected_ms, allowed_ms; /* 0: not said */
        int64_t long_ms;                 /* how long it may run, for its place among its owner's jobs */
        int64_t bytes_out_said;          /* -1: not said */
        int64_t better_wait_ms;          /* -1: not said */
        int64_t cpus;                    /* what it asks for, if that is a number; else 1 */
        double price_weight;
        bool checkpoints; /* its program makes checkpoints, when it is asked */
        bool restarts;    /* its jobs may have something to go on from */
        bool rerun_eager; /* a lost attempt is run again before its lease has ended */
        struct gang_rule gang;
        bool late_class; /* a late attribute matters for matching: members are classed one by one */
};

/* The template of a part: an existing one with the same text, or a new one, whose names are charged to
 * `owner`. 0; or -EINVAL with err, which names the attribute. The caller unrefs. */
int job_template_get(struct core *c, const struct submission_part *p, struct str owner,
                     struct job_template **ret, struct err *err);
/* The same of a template with changes (edit.h): an attribute has another text, is new, or is gone. */
int job_template_edit(struct core *c, const struct job_template *from, struct str changes, struct str owner,
                      struct job_template **ret, struct err *err);
void job_template_unref(struct core *c, struct job_template *t); /* NULL is fine */
/* What is parsed from now on is the template's: names that its late attributes have in one member, say, go
 * with it. NULL: nobody's. Returns what symbols_use_set() takes at the end. */
struct symbols_use *job_template_names(struct core *c, const struct job_template *t);
struct str job_template_late_text(const struct job_template *t, symbol name); /* STR_NONE: it is not late */
