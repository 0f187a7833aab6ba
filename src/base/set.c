#include "base/set.h"

#include <assert.h>
#include <errno.h>
#include <roaring/roaring.h>

#include "base/pack.h"

/* Number of single changes after which a bitmap is searched for runs again. */
#define CHURN_MAX    4096u
#define COMMON_STEPS 32u  /* members of each set that are compared before the sets are intersected */
#define RANGE_LONG   4096 /* a range of so many is worth looking at all the rest at once */

static uint64_t range_mask(uint64_t first, uint64_t end) /* bits of [first, end) within 0..63 */
{
        if (first >= end || first > 63)
                return 0;
        return (end >= 64 ? ~0ull : (1ull << end) - 1) & ~((1ull << first) - 1);
}

static void grow(struct set *s)
{
        roaring_bitmap_t *r;

        if (s->bitmap)
                return;
        r = roaring_bitmap_create();
        assert(r);
        for (uint64_t w = s->word; w; w &= w - 1)
                roaring_bitmap_add(r, (uint32_t)__builtin_ctzll(w));
        s->big.count = (uint64_t)__builtin_popcountll(s->word);
        s->big.churn = 0;
        s->bitmap = r;
}

static void churned(struct set *s, uint32_t by)
{
        s->big.churn += by;
        if (s->big.churn >= CHURN_MAX) {
                s->big.churn = 0;
                roaring_bitmap_run_optimize(s->bitmap);
                roaring_bitmap_shrink_to_fit(s->bitmap);
        }
}

static void recount(struct set *s)
{
        if (!s->bitmap)
                return;
        s->big.count = roaring_bitmap_get_cardinality(s->bitmap);
        if (s->big.count == 0)
                set_deinit(s);
}

void set_deinit(struct set *s)
{
        if (s->bitmap)
                roaring_bitmap_free(s->bitmap);
        *s = (struct set){0};
}

void set_copy(struct set *to, const struct set *from)
{
        *to = *from;
        if (from->bitmap)
                to->bitmap = roaring_bitmap_copy(from->bitmap);
}

bool set_has(const struct set *s, uint32_t member)
{
        if (s->bitmap)
                return roaring_bitmap_contains(s->bitmap, member);
        return member < 64 && (s->word >> member & 1);
}

bool set_add(struct set *s, uint32_t member)
{
        if (!s->bitmap && member < 64) {
                if (s->word >> member & 1)
                        return false;
                s->word |= 1ull << member;
                return true;
        }
        grow(s);
        if (!roaring_bitmap_add_checked(s->bitmap, member))
                return false;
        churned(s, 1);
        s->big.count++;
        return true;
}

bool set_remove(struct set *s, uint32_t member)
{
        if (!s->bitmap) {
                if (member >= 64 || !(s->word >> member & 1))
                        return false;
                s->word &= ~(1ull << member);
                return true;
        }
        if (!roaring_bitmap_remove_checked(s->bitmap, member))
                return false;
        s->big.count--;
        churned(s, 1);
        if (s->big.count == 0)
                set_deinit(s);
        return true;
}

void set_add_range(struct set *s, uint64_t first, uint64_t end)
{
        if (first >= end)
                return;
        assert(end <= 1ull << 32);
        if (!s->bitmap && end <= 64) {
                s->word |= range_mask(first, end);
        } else {
                grow(s);
                roaring_bitmap_add_range(s->bitmap, first, end);
                if (end - first >= RANGE_LONG)
                        roaring_bitmap_run_optimize(s->bitmap);
                else
                        churned(s, end - first < 64 ? (uint32_t)(end - first) : 64);
        }
        recount(s);
}

void set_remove_range(struct set *s, uint64_t first, uint64_t end)
{
        if (first >= end)
                return;
        if (end > 1ull << 32)
                end = 1ull << 32;
        if (!s->bitmap) {
                s->word &= ~range_mask(first, end);
        } else {
                roaring_bitmap_remove_range(s->bitmap, first, end);
                churned(s, 64);
        }
        recount(s);
}

void set_add_all(struct set *s, const struct set *other)
{
        if (!s->bitmap && !other->bitmap) {
                s->word |= other->word;
        } else {
                grow(s);
                if (other->bitmap)
                        roaring_bitmap_or_inplace(s->bitmap, other->bitmap);
                else
                        for (uint64_t w = other->word; w; w &= w - 1)
                                roaring_bitmap_add(s->bitmap, (uint32_t)__builtin_ctzll(w));
                churned(s, 64);
        }
        recount(s);
}

void set_remove_all(struct set *s, const struct set *other)
{
        if (!s->bitmap) {
                SET_FOREACH (other, m) {
                        if (m > 63)
                                break;
                        s->word &= ~(1ull << m);
                }
        } else if (other->bitmap) {
                roaring_bitmap_andnot_inplace(s->bitmap, other->bitmap);

                churned(s, 64);
        } else {
                for (uint64_t w = other->word; w; w &= w - 1)
                        roaring_bitmap_remove(s->bitmap, (uint32_t)__builtin_ctzll(w));
                churned(s, 64);
        }
        recount(s);
}

void set_keep_all(struct set *s, const struct set *other)
{
        if (!s->bitmap) {
                uint64_t keep = 0;

                for (uint64_t w = s->word; w; w &= w - 1) {
                        unsigned m = (unsigned)__builtin_ctzll(w);

                        if (set_has(other, m))
                                keep |= 1ull << m;
                }
                s->word = keep;
        } else {
                struct set copy;

                set_copy(&copy, other);
                grow(&copy);
                roaring_bitmap_and_inplace(s->bitmap, copy.bitmap);
                set_deinit(&copy);
                churned(s, 64);
        }
        recount(s);
}

uint64_t set_count_range(const struct set *s, uint64_t first, uint64_t end)
{
        if (!s->bitmap)
                return (uint64_t)__builtin_popcountll(s->word & range_mask(first, end));
        if (first >= end)
                return 0;
        return roaring_bitmap_rank(s->bitmap, (uint32_t)(end - 1)) -
               (first ? roaring_bitmap_rank(s->bitmap, (uint32_t)(first - 1)) : 0);
}

uint64_t set_next(const struct set *s, uint64_t from)
{
        if (!s->bitmap) {
                uint64_t w = from < 64 ? s->word & ~((1ull << from) - 1) : 0;

                return w ? (uint64_t)__builtin_ctzll(w) : SET_END;
        }
        if (from <= UINT32_MAX) {
                roaring_uint32_iterator_t it;

                roaring_init_iterator(s->bitmap, &it);
                if (roaring_move_uint32_iterator_equalorlarger(&it, (uint32_t)from))
                        return it.current_value;
        }
        return SET_END;
}

uint64_t set_first_common(const struct set *a, const struct set *b)
{
        uint64_t m = set_first(a), n;

        for (unsigned i = 0; i < COMMON_STEPS || !a->bitmap || !b->bitmap; i++) {
                n = m == SET_END ? SET_END : set_next(b, m);
                if (n == m || n == SET_END)
                        return n;
                m = set_next(a, n);
        }
        roaring_bitmap_t *both = roaring_bitmap_and(a->bitmap, b->bitmap);
        assert(both);
        n = roaring_bitmap_is_empty(both) ? SET_END : roaring_bitmap_minimum(both);
        roaring_bitmap_free(both);
        return n;
}

/* Returns whether the set has all of [first, end), first < end. Uses ranks, because
 * roaring_bitmap_contains_range of CRoaring 0.2.66 is wrong about a range whose last container is missing: it
 * asserts, or looks at the next container. */
static bool all_there(const struct set *s, uint64_t first, uint64_t end)
{
        return end <= 1ull << 32 && set_count_range(s, first, end) == end - first;
}

bool set_run(const struct set *s, uint64_t from, uint64_t *ret_first, uint64_t *ret_end)
{
        uint64_t first = set_next(s, from), lo, step = 1;

        if (first == SET_END)
                return false;
        *ret_first = first;
        if (!s->bitmap) {
                uint64_t rest = ~(s->word >> first);

                *ret_end = first + (rest ? (uint64_t)__builtin_ctzll(rest) : 64 - first);
                return true;
        }
        /* Gallop, then step back: a run of n members is found in O(log n) range tests. */
        for (lo = first + 1; all_there(s, lo, lo + step); step *= 2)
                lo += step;
        for (step /= 2; step; step /= 2) /* [first, lo) is all there; [lo, lo + 2 * step) is not */
                if (all_there(s, lo, lo + step))
                        lo += step;
        *ret_end = lo;
        return true;
}

size_t set_bytes(const struct set *s)
{
        roaring_statistics_t st;

        if (!s->bitmap)
                return 0;
        roaring_bitmap_statistics(s->bitmap, &st);
        return sizeof(roaring_bitmap_t) + st.n_bytes_array_containers + st.n_bytes_run_containers +
               st.n_bytes_bitset_containers + st.n_containers * 16;
}

void set_print(struct buf *b, const struct set *s)
{
        uint64_t first, end;

        for (uint64_t at = 0; set_run(s, at, &first, &end); at = end) {
                buf_printf(b, "%s%llu", at ? "," : "", (unsigned long long)first);
                if (end - first > 1)
                        buf_printf(b, "-%llu", (unsigned long long)(end - 1));
        }
}

int set_parse(struct set *s, struct str text, uint64_t limit)
{
        struct str part, lo;
        uint64_t first, last;
        int r;

        while (str_cut(&text, ',', &part)) {
                part = str_trim(part);
                if (!str_cut(&part, '-', &lo))
                        return -EINVAL;
                r = str_to_u64(lo, &first);
                if (r)
                        return r;
                if (!part.p) {
                        last = first;
                } else if (part.n == 0) {
                        last = limit ? limit - 1 : 0;
                } else {
                        r = str_to_u64(part, &last);
                        if (r)
                                return r;
                }
                if (first >= limit || last >= limit || last < first)
                        return -ERANGE;
                set_add_range(s, first, last + 1);
        }
        return 0;
}

void set_pack(struct buf *b, const struct set *s)
{
        uint64_t first, end, runs = 0, before = 0;

        for (uint64_t at = 0; set_run(s, at, &first, &end); at = end)
                runs++;
        pack_u64(b, runs);
        for (uint64_t at = 0; set_run(s, at, &first, &end); at = end) {
                pack_u64(b, first - before);
                pack_u64(b, end - first);
                before = end;
        }
}

int set_unpack(struct set *s, struct unpack *u)
{
        uint64_t runs = unpack_u64(u), at = 0;

        while (runs-- && !u->bad) {
                uint64_t gap = unpack_max(u, UINT32_MAX), n = unpack_max(u, 1ull << 32);

                if (u->bad || n == 0 || at + gap + n > 1ull << 32) {
                        u->bad = true;
                        break;
                }
                set_add_range(s, at + gap, at + gap + n);
                at += gap + n;
        }
        return u->bad ? -EBADMSG : 0;
}
