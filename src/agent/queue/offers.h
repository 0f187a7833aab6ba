/* offers: what each queue of the agent would take now, as its offers say it to the server.
 *
 * An offer is an ad of the queue, made by place/offer.h, and a number of jobs. It is sent when it has changed
 * enough to matter: with short jobs read ahead, a quarter of the depth; otherwise at once.
 */
#pragma once
#include "agent/model/job_template.h"
#include "base/buf.h"
#include "place/offer.h"
#include "run/runner.h"
#include "wire/drover.pb-c.h"

struct agent;
struct attempt;
struct queue;

struct offers_said {                /* an offer of one kind of places */
        struct buf shows, requires; /* of the other server's places; empty where jobs stay with this agent */
        struct buf last;            /* the ad as it was sent */
        uint64_t sent_jobs, assigned;
        bool sent;
};

struct offers { /* a queue's */
        struct offer_place place;
        struct buf extra, requirements; /* of the ad, what does not change */
        struct buf devices;             /* of the ad, what offers_look() has seen */
        char *limits, *policy;
        struct buf ad;
        uint64_t serial;
        struct offers_said said[RUN_KINDS_MAX];   /* a queue that hands nothing on has one */
        uint64_t kinds_digest;                    /* of what `said` shows */
        uint64_t mean_us, mean_cpus, mean_memory; /* of the last jobs; cpus in thousandths, memory in bytes */
        int64_t gave_back_ms; /* boot clock: when a job had last waited too long for room; 0: never */
};

struct offers_room {
        struct offer_now ad;
        uint64_t jobs; /* to take at most */
};

/* ---- offers.c */
void offers_open(struct agent *a, struct queue *q);
void offers_close(struct queue *q); /* also one that was never opened */
/* Sends what there is to send, once the server has greeted. force: also when little has changed, and after a
 * new greeting even when nothing has; attempts that have waited too long for room are given back. */
void offers_update(struct agent *a, bool force);
/* A job of the queue has ended: how long it took from its assignment. The mean decides on reading ahead. */
void offers_job_took(const struct attempt *at, uint64_t micros);
void offers_assigned(struct queue *q, unsigned kind, uint64_t jobs);   /* of what the last offer would take */
void offers_wish(struct agent *a, const Drover__Wishes *m);            /* from now on, until the agent ends */
void offers_deny(struct agent *a, const char *owner, const char *why); /* from the next offer on */
void offers_allow(struct agent *a, const char *owner); /* likewise, whatever he was denied for */
void offers_denied_free(struct agent *a);

/* ---- room.c */
/* Is there room for it now? */
bool offers_fits(const struct attempt *at);
/* Will there ever be? NULL, or why not. */
const char *offers_never_fits(const struct queue *q, const struct job_template *m);
/* The next offer of this kind of places. ret->ad.devices is the queue's, until the next call.
 */
void offers_look(struct queue *q, unsigned kind, struct offers_room *ret);
/* Facts about the places behind the queue; none where its jobs run here. */
struct run_capacity offers_capacity(const struct queue *q);
