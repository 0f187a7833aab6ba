/* offers: the offers of the agent's queues.
 *
 * An offer is a queue's ad, made by place/offer.h, and the number of jobs that the queue accepts now. It is
 * sent at any change; while short jobs are read ahead, only if it has changed by a quarter of the depth.
 */
#pragma once
#include "agent/message/job_template.h"
#include "base/buf.h"
#include "place/offer.h"
#include "run/runner.h"

struct agent;
struct attempt;
struct queue;

struct offers_said { /* offer for one kind of places, as last sent */
        struct buf shows,
                requires; /* from the other server's places; empty where jobs stay with this agent */
        struct buf last;  /* ad as last sent */
        uint64_t sent_jobs, assigned;
        bool sent;
};

struct offers { /* offers of a queue */
        struct offer_place place;
        struct buf extra, requirements; /* constant parts of the ad */
        struct buf devices;             /* devices for the ad, set by offers_look() */
        char *limits, *policy;
        struct buf ad;
        uint64_t serial;
        struct offers_said said[RUN_KINDS_MAX]; /* a queue that does not delegate has one */
        uint64_t kinds_digest;                  /* hash of the kinds in `said` */
        uint64_t mean_us, mean_cpus,
                mean_memory;  /* means of the last jobs; cpus in thousandths, memory in bytes */
        int64_t gave_back_ms; /* boot clock: last time that a job waited too long for room; 0: never */
};

struct offers_room {
        struct offer_now ad;
        uint64_t jobs; /* most jobs to take */
};

/* ---- offers.c */
void offers_open(struct agent *a, struct queue *q);
void offers_close(struct queue *q); /* also for a queue that was never opened */
/* Sends changed offers, once the server has greeted. force: sends also small changes, and all offers after a
 * new greeting; gives back attempts that have waited too long for room. */
void offers_update(struct agent *a, bool force);
/* Called when a job of the queue has ended, `micros` after its assignment. The mean decides on reading
 * ahead. */
void offers_job_took(const struct attempt *at, uint64_t micros);
void offers_assigned(struct queue *q, unsigned kind,
                     uint64_t jobs); /* counts jobs assigned from the last offer */
/* Sets the wishes (numbers of offer_wish) of a queue from now on, until the agent ends. queue "": of all. */
void offers_wish(struct agent *a, const char *queue, const unsigned *wishes, size_t count);
void offers_deny(struct agent *a, const char *owner,
                 const char *why); /* excludes the owner from the next offer on */
void offers_allow(struct agent *a,
                  const char *owner); /* ends the exclusion from the next offer on, whatever its reason */
void offers_denied_free(struct agent *a);

/* ---- room.c */
/* Returns whether there is room for the attempt now. */
bool offers_fits(const struct attempt *at);
/* Returns why a job of the template can never fit the queue; NULL: it can. */
const char *offers_never_fits(const struct queue *q, const struct job_template *m);
/* Computes the next offer for a kind of places. ret->ad.devices is borrowed from the queue until the next
 * call. */
void offers_look(struct queue *q, unsigned kind, struct offers_room *ret);
/* Returns facts about the places behind the queue; empty where its jobs run here. */
struct run_capacity offers_capacity(const struct queue *q);
