/* core_parts: the core itself, as its parts see it. */
#pragma once
#include "classad/eval.h"
#include "core/model/agent.h"
#include "core/model/attributes.h"
#include "core/model/listeners.h"
#include "core/model/request.h"

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
        uint64_t late_steps; /* taken by part_expand: what it does counts like steps of evaluations */
        int64_t now_ms, steady_ms;

        struct requests *requests;         /* model/request.h */
        struct map *templates;             /* by their text, model/job_template.h */
        struct map *agents;                /* by name, model/agent.h */
        struct pending_match *pending;     /* model/pending_match.h */
        struct delegations *delegations;   /* model/delegation.h */
        struct limits *limits;             /* accounts/limit.h */
        struct shares *shares;             /* accounts/share.h */
        struct bank *bank;                 /* bank/bank.h */
        struct billing *billing;           /* billing/billing.h */
        uint64_t bank_made;                /* what the last order has made */
        struct index *index;               /* index/index.h */
        struct estimates *estimates;       /* estimate/estimate.h */
        struct data *data;                 /* data/data_state.h */
        struct fairness *fairness;         /* fairness/order.h */
        struct classes *classes;           /* model/job_class.h */
        struct gangs *gangs;               /* gang/gang.h */
        struct dependencies *dependencies; /* dependency/dependency.h */
        struct reservations *reservations; /* gang/reserve.h */
        struct matching *matching;         /* match/matching.h */
        struct core_draft *drafts;         /* that are being made, lifecycle/draft.h */
        struct leases *leases;             /* lifecycle/leases.h */
        struct policies *policies;         /* lifecycle/policy.h */
        struct retention *retention;       /* lifecycle/retention.h */
        struct clearing clearing;          /* model/losses.h */
        bool nodes_drain;                  /* at the last look some did */
        int64_t nodes_look_ms;             /* at nodes that drain, by the steady clock (lifecycle/nodes.h) */
        int64_t nodes_due_ms; /* no pause of a node ends before, by the steady clock (model/losses.h) */
        struct node_spending spending; /* of the month, on machines of provisioners */
        struct eta *eta;               /* forecast/eta.h; NULL: not needed yet */
        struct forecast *plays;        /* that are under way, forecast/forecast.h */
};
#define CORE_MAGIC 0x44726f76u

/* Steps that the core has taken, ever. */
static inline uint64_t core_steps(const struct core *c)
{
        return c->eval.steps_all + c->late_steps;
}
