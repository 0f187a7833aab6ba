/*
 *            joined: at the follower's position        a beat, answered
 *   alone ------------------------------------> joined -----------------> joined, with a lease
 *     ^                                           |  ^ the lease ends           |
 *     +---- the follower says that it has left ---+  +--------------------------+
 *
 *   follower, not joined ---- a beat with a newer joining ----> joined ---- lease over, handed over ---->
 * alone ^                                                           |
 *     +---------------- leave, or a larger epoch -----------------+
 *
 * Joinings are numbered because a message may be late: a beat of before the follower left must not make it
 * join again, as the leader goes on without it. A leader that hands over gives up its right first, on its own
 * disk, because the message may be late as well.
 */
#include "server/mirror/relation.h"

#define MARGIN_PART 4 /* the follower waits for this part of the lease longer: clocks differ by less */

bool relation_may_act(const struct relation *r, int64_t now_ms)
{
        return r->kept.role == RELATION_LEADS && (!r->kept.joined || now_ms < r->until_ms);
}

/* The seconds keep epochs growing even if what is kept was removed. */
static uint64_t next_epoch(uint64_t epoch, int64_t wall_s, uint64_t random)
{
        uint64_t high = (epoch >> 32) + 1;

        if (wall_s > 0 && wall_s < UINT32_MAX && (uint64_t)wall_s > high)
                high = (uint64_t)wall_s;
        return high << 32 | (uint32_t)random;
}

static void lead(struct relation *r, int64_t wall_s, uint64_t random)
{
        r->kept = (struct relation_kept){.role = RELATION_LEADS,
                                         .epoch = next_epoch(r->kept.epoch, wall_s, random)};
        r->line = random;
        r->leaving = r->handed = false;
        r->until_ms = 0;
}

void relation_start(struct relation *r, const struct relation_kept *kept, struct relation_at at,
                    int64_t now_ms, uint64_t line)
{
        r->kept = *kept;
        r->at = r->join_at = at;
        r->line = line;
        r->until_ms = 0;
        r->leaving = r->handed = r->heard = false;
        r->heard_ms = now_ms;
}

/* ---- leader */

void relation_beat(const struct relation *r, struct relation_beat *ret)
{
        *ret = (struct relation_beat){.epoch = r->kept.epoch,
                                      .join = r->kept.join,
                                      .at = r->join_at,
                                      .joined = r->kept.joined,
                                      .leave = r->kept.joined && r->leaving};
}

bool relation_answered(struct relation *r, const struct relation_beat *b, const struct relation_said *said,
                       int64_t sent_ms)
{
        struct relation_kept *k = &r->kept;

        if (said->epoch > k->epoch) {
                *k = (struct relation_kept){.role = RELATION_FOLLOWS, .epoch = said->epoch};
                return true;
        }
        if (k->role != RELATION_LEADS || said->epoch != k->epoch || b->epoch != k->epoch || said->leads)
                return false;
        if (!k->joined) {
                if (!relation_at_is(said->at, r->at) || !r->at.serial)
                        return false;
                k->join++;
                k->joined = true;
                r->join_at = r->at;
                r->until_ms = sent_ms; /* over; the next answer begins it */
                return true;
        }
        if (!b->joined || b->join != k->join)
                return false;
        if (!said->joined && said->join >= k->join) { /* it has left, and cannot join by an old beat */
                k->joined = r->leaving = false;
                return true;
        }
        if (!said->joined && !b->leave) /* it could not join: its store is not as it was */
                r->leaving = true;
        if (said->joined && said->join == k->join && sent_ms + r->lease_ms > r->until_ms)
                r->until_ms = sent_ms + r->lease_ms;
        return false;
}

struct relation_at relation_next(struct relation *r)
{
        r->at = (struct relation_at){r->line, r->at.serial + 1};
        return r->at;
}

void relation_diverge(struct relation *r, struct relation_at at, uint64_t line)
{
        r->at = at;
        r->line = line;
}

void relation_dismiss(struct relation *r)
{
        r->leaving = r->kept.role == RELATION_LEADS && r->kept.joined;
}

bool relation_hand_over(struct relation *r, int64_t now_ms, struct relation_beat *ret)
{
        if (!r->kept.joined || !relation_may_act(r, now_ms))
                return false;
        relation_beat(r, ret);
        ret->at = r->at;
        ret->leave = false;
        ret->hand_over = true;
        r->kept.role = RELATION_FOLLOWS;
        r->kept.joined = false;
        return true;
}

/* ---- follower */

bool relation_heard(struct relation *r, const struct relation_beat *b, int64_t now_ms)
{
        struct relation_kept *k = &r->kept;

        if (b->epoch < k->epoch || (b->epoch == k->epoch && k->role == RELATION_LEADS))
                return false;
        r->heard_ms = now_ms;
        r->heard = b->epoch == k->epoch;
        if (b->epoch > k->epoch) { /* what was joined under another epoch may differ */
                *k = (struct relation_kept){.role = RELATION_FOLLOWS, .epoch = b->epoch, .join = b->join};
                r->handed = false;
                return true;
        }
        if (b->leave && b->join >= k->join) {
                bool changed = k->joined || k->join != b->join;

                k->join = b->join;
                k->joined = r->handed = false;
                return changed;
        }
        if (b->hand_over) {
                r->handed = k->joined && b->join == k->join && relation_at_is(r->at, b->at);
                return false;
        }
        if (b->leave || !b->joined || b->join <= k->join || r->at.serial < b->at.serial)
                return false;
        k->join = b->join;
        k->joined = true;
        return true;
}

void relation_say(const struct relation *r, struct relation_said *ret)
{
        *ret = (struct relation_said){.epoch = r->kept.epoch,
                                      .join = r->kept.join,
                                      .at = r->at,
                                      .leads = r->kept.role == RELATION_LEADS,
                                      .joined = r->kept.role == RELATION_FOLLOWS && r->kept.joined};
}

bool relation_leave(struct relation *r)
{
        if (r->kept.role != RELATION_FOLLOWS || !r->kept.joined)
                return false;
        r->kept.joined = r->handed = false;
        return true;
}

int64_t relation_takes_over_ms(const struct relation *r)
{
        if (r->kept.role != RELATION_FOLLOWS || !r->kept.joined)
                return INT64_MAX;
        if (r->handed)
                return INT64_MIN;
        return r->automatic && r->heard ? r->heard_ms + r->lease_ms + r->lease_ms / MARGIN_PART : INT64_MAX;
}

bool relation_take_over(struct relation *r, int64_t now_ms, int64_t wall_s, uint64_t random)
{
        if (relation_takes_over_ms(r) > now_ms)
                return false;
        lead(r, wall_s, random);
        return true;
}

bool relation_promote(struct relation *r, int64_t wall_s, uint64_t random)
{
        lead(r, wall_s, random);
        return true;
}
