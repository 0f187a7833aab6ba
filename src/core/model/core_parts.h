/* core_parts: struct core, which holds the parts of the core. For the files of core/ only. */
#pragma once
#include "classad/eval.h"
#include "core/model/agent.h"
#include "core/model/attributes.h"
#include "core/model/listeners.h"
#include "core/model/precedence.h"
#include "core/model/request.h"

struct advances;
struct bank;
struct billing;
struct classes;
struct data;
struct dependencies;
struct estimates;
struct fairness;
struct gangs;
struct leases;
struct matching;
struct metas;
struct pending_match;
struct policies;
struct reservations;
struct retention;
struct core_draft;
struct eta;
struct forecast;
struct index;
struct shares;

struct core {
        uint32_t magic;
        bool replaying;
        struct core_config config;
        struct core_world world;
        struct core_listeners listeners;
        struct symbols *symbols;
        struct attributes attr;
        struct eval eval;
        /* Work beside evaluations that counts like their steps: texts that are expanded, filled in and
         * written to rows of history, and nodes of graphs that are looked up. */
        uint64_t late_steps;
        int64_t now_ms, steady_ms;

        struct requests *requests;         /* model/request.h */
        struct map *templates;             /* by their text, model/job_template.h */
        struct idmap *lenders;             /* templates that others may borrow from, by shape */
        struct map *agents;                /* by name, model/agent.h */
        struct pending_match *pending;     /* model/pending_match.h */
        struct delegations *delegations;   /* model/delegation.h */
        struct limits *limits;             /* accounts/limit.h */
        struct shares *shares;             /* accounts/share.h */
        struct bank *bank;                 /* bank/bank.h */
        struct billing *billing;           /* billing/billing.h */
        uint64_t bank_made;                /* id of what the last order of the bank has created */
        struct index *index;               /* index/index.h */
        struct estimates *estimates;       /* estimate/estimate.h */
        struct data *data;                 /* data/data_state.h */
        struct fairness *fairness;         /* fairness/order.h */
        struct order_wait order_wait;      /* model/precedence.h */
        struct classes *classes;           /* model/job_class.h */
        struct gangs *gangs;               /* gang/gang.h */
        struct dependencies *dependencies; /* dependency/dependency.h */
        struct reservations *reservations; /* gang/reserve.h */
        struct advances *advances;         /* reservation/advance.h */
        struct matching *matching;         /* match/matching.h */
        struct metas *metas;               /* meta/meta.c */
        struct core_draft *drafts;         /* drafts in progress, lifecycle/draft.h */
        struct leases *leases;             /* lifecycle/leases.h */
        struct policies *policies;         /* lifecycle/policy.h */
        struct retention *retention;       /* lifecycle/retention.h */
        struct node_watch nodes;           /* model/losses.h */
        struct node_spending spending;     /* spending of the month on machines of provisioners */
        struct eta *eta;                   /* forecast/eta.h; NULL: no estimate was asked for yet */
        struct forecast *forecasts;        /* forecasts in progress, forecast/forecast.h */
};
#define CORE_MAGIC 0x44726f76u

/* Returns the number of evaluation steps that the core has taken since its creation. */
static inline uint64_t core_steps(const struct core *c)
{
        return c->eval.steps_all + c->late_steps;
}
