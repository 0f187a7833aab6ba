/* set: a set of member numbers of a request.
 *
 * A set of uint32 in a few bits a member however large: requests under 64 members use one word, larger ones a
 * compressed bitmap (CRoaring), re-optimised when runs have been broken up. {0} is the empty set; set_deinit
 * frees. Copies are made with set_copy only. Not thread-safe.
 */
#pragma once
#include "base/buf.h"

struct set {
        union {
                uint64_t word; /* members 0..63 while `bitmap` is NULL */
                struct {       /* while `bitmap` is not NULL */
                        uint64_t count : 40;
                        uint64_t churn : 24; /* changes since the bitmap was last optimised */
                } big;
        };
        void *bitmap; /* roaring_bitmap_t once there was a member over 63 */
};

void set_deinit(struct set *s);
void set_copy(struct set *to, const struct set *from); /* to is overwritten: it must be empty or deinited */
static inline uint64_t set_count(const struct set *s)
{
        return s->bitmap ? s->big.count : (uint64_t)__builtin_popcountll(s->word);
}
bool set_has(const struct set *s, uint32_t member);
bool set_add(struct set *s, uint32_t member);                    /* false: it was there */
bool set_remove(struct set *s, uint32_t member);                 /* false: it was not there */
void set_add_range(struct set *s, uint64_t first, uint64_t end); /* [first, end), end <= 2^32 */
void set_remove_range(struct set *s, uint64_t first, uint64_t end);
void set_add_all(struct set *s, const struct set *other);    /* union */
void set_remove_all(struct set *s, const struct set *other); /* difference */
void set_keep_all(struct set *s, const struct set *other);   /* intersection */
uint64_t set_count_range(const struct set *s, uint64_t first, uint64_t end);

#define SET_END UINT64_MAX
uint64_t set_next(const struct set *s, uint64_t from); /* the first member >= from, or SET_END */
static inline uint64_t set_first(const struct set *s)
{
        return set_next(s, 0);
}
/* The first member that both have, or SET_END. Fast also where members of one lie between those of the other
 * by the million. */
uint64_t set_first_common(const struct set *a, const struct set *b);
/* Gives the run of members that begins at the first member >= from: [*ret_first, *ret_end). False: there is
 * none. Walk: for (uint64_t at = 0; set_run(s, at, &a, &b); at = b). */
bool set_run(const struct set *s, uint64_t from, uint64_t *ret_first, uint64_t *ret_end);
#define SET_FOREACH(s, m) for (uint64_t m = set_next(s, 0); m != SET_END; m = set_next(s, m + 1))

size_t set_bytes(const struct set *s); /* memory it holds beside the struct */

/* Text as people write it, "0-99,150,200-": ranges with both ends included. Parsing adds to the set; every
 * number must be under `limit`. 0, or -EINVAL, -ERANGE. */
void set_print(struct buf *b, const struct set *s);
int set_parse(struct set *s, struct str text, uint64_t limit);

/* Record form: count of runs, then for each the gap from the last one's end and its length. */
struct unpack;
void set_pack(struct buf *b, const struct set *s);
int set_unpack(struct set *s, struct unpack *u); /* adds; 0, or -EBADMSG */
