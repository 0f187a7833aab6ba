/* relation: decides which of two servers leads, when each has its own store.
 *
 * One server leads; the other follows: it keeps a copy of the leader's store. While the follower is joined,
 * the leader commits nothing that the follower does not have, and may act only as long as the follower has
 * promised not to take over: the lease. The follower renews this promise with each answer to a beat. The
 * leader counts the lease from when it sent that beat, the follower from when it received it, plus a margin,
 * so that the leader's lease ends first, whatever the network does. A follower that is not joined never takes
 * over, and a leader whose follower is not joined leads alone.
 *
 * Each leadership has an epoch, which is unique and larger than any before. A server that receives a larger
 * epoch than its own becomes a follower. A position is the number of a group of records and the line in which
 * it was written; it identifies the whole content of a store. A leader begins a new line at each start,
 * because the follower may have a group that the leader had sent but not written.
 *
 * The invariant (test_relation.c tests it with every kind of failure): everything that a leader has committed
 * with its follower, or alone, is in the store of every later leader, unless an administrator has promoted a
 * server that did not have it.
 *
 * A leader that finds itself a follower after a call must restart from the durable state (`kept`), and must
 * not write pending data.
 *
 * Pure: times are milliseconds of a clock that does not stop while the machine sleeps; random numbers are
 * passed in. After each call that returns true, `kept` must be on disk before anything else is done or sent.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum relation_role { RELATION_FOLLOWS, RELATION_LEADS };

/* What must be on the disk. */
struct relation_kept {
        enum relation_role role;
        uint64_t epoch; /* newest that is known; of a leader, its own; 0: none */
        /* A leader numbers the joinings within its epoch. Of a follower: the newest that it has accepted, or
         * has left. */
        uint64_t join;
        bool joined;
};

struct relation_at {
        uint64_t line, serial; /* both 0: the store is empty, or incomplete */
};

struct relation {
        int64_t lease_ms;
        bool automatic; /* a follower takes over when the lease has ended; otherwise only when it is promoted
                         */
        struct relation_kept kept;
        struct relation_at at; /* of a leader: with the group that is being made durable */
        /* leader: */
        uint64_t line;
        struct relation_at join_at; /* position at the joining */
        int64_t until_ms;           /* end of the lease */
        bool leaving;               /* asks the follower to be no longer joined */
        /* follower: */
        int64_t heard_ms; /* of the last beat */
        bool heard;       /* there was one since the start: else the leader may have been promoted past it */
        bool handed;      /* the leader has handed over */
};

/* Goes from the leader to the follower. */
struct relation_beat {
        uint64_t epoch, join;
        struct relation_at at; /* at the joining; with hand_over: of all that the leader has */
        bool joined, leave, hand_over;
};
/* The follower's answer. */
struct relation_said {
        uint64_t epoch, join;
        struct relation_at at;
        bool leads, joined;
};

/* The start of a process. A leader that had a joined follower must hear of it before it may act; a follower
 * takes over only from a leader that it has heard since. line: a random number. */
void relation_start(struct relation *r, const struct relation_kept *kept, struct relation_at at,
                    int64_t now_ms, uint64_t line);

/* Returns whether this server leads and may make things durable and act. */
bool relation_may_act(const struct relation *r, int64_t now_ms);

/* ---- leader */
void relation_beat(const struct relation *r, struct relation_beat *ret);
/* Takes the answer to a beat. */
bool relation_answered(struct relation *r, const struct relation_beat *b, const struct relation_said *said,
                       int64_t sent_ms);
/* Returns the position of the next group, which the store is at from now on. */
struct relation_at relation_next(struct relation *r);
/* The group was not written here, and the follower may have it: the store is still at `at`, and a new line
 * begins. */
void relation_diverge(struct relation *r, struct relation_at at, uint64_t line);
/* The follower's store cannot be brought to where this one is, or is too slow: it is to leave. */
void relation_dismiss(struct relation *r);
/* Gives the lead up for good: nothing is made durable any more, and *ret is a beat that tells the follower.
 */
bool relation_hand_over(struct relation *r, int64_t now_ms, struct relation_beat *ret);

/* ---- follower */
bool relation_heard(struct relation *r, const struct relation_beat *b, int64_t now_ms);
void relation_say(const struct relation *r, struct relation_said *ret);
/* Leaves: it takes over no more. The leader learns that from the next answer. */
bool relation_leave(struct relation *r);
/* Takes over if it is time: true, and this server leads alone. */
bool relation_take_over(struct relation *r, int64_t now_ms, int64_t wall_s, uint64_t random);
int64_t relation_takes_over_ms(const struct relation *r); /* when; INT64_MAX: never by itself */

/* ---- either: an administrator says that the other server does not lead. */
bool relation_promote(struct relation *r, int64_t wall_s, uint64_t random);

static inline bool relation_at_is(struct relation_at a, struct relation_at b)
{
        return a.line == b.line && a.serial == b.serial;
}
