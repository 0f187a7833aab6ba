#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/pack.h"
#include "base/set.h"

#define LIMIT 300u /* of the model: the words of a small set, and what lies beyond them */

struct model {
        bool has[LIMIT];
};

/* Every question that can be asked of a set, against the array. */
static void check(const struct set *s, const struct model *m)
{
        uint64_t count = 0, at = 0, first, end;

        for (unsigned i = 0; i < LIMIT; i++) {
                assert_int_equal(set_has(s, i), m->has[i]);
                count += m->has[i];
        }
        assert_int_equal(set_count(s), count);
        for (unsigned i = 0; i < LIMIT; i++) { /* the runs */
                if (!m->has[i])
                        continue;
                assert_true(set_run(s, at, &first, &end));
                assert_int_equal(first, i);
                while (i < LIMIT && m->has[i])
                        i++;
                assert_int_equal(end, i);
                at = end;
        }
        assert_false(set_run(s, at, &first, &end));
        at = 0;
        SET_FOREACH (s, x) {
                while (at < x)
                        assert_false(m->has[at++]);
                assert_true(m->has[at++]);
                count--;
        }
        assert_int_equal(count, 0);
}

static uint64_t model_count(const struct model *m, uint64_t first, uint64_t end)
{
        uint64_t n = 0;

        for (; first < end && first < LIMIT; first++)
                n += m->has[first];
        return n;
}

static void there_and_back(const struct set *s)
{
        BUF_CLEANUP struct buf b = {0}, text = {0}, again = {0};
        struct set t = {0}, u = {0};
        struct unpack from;

        set_pack(&b, s);
        from = unpack_from(buf_view(&b));
        assert_int_equal(set_unpack(&t, &from), 0);
        assert_true(unpack_done(&from));
        set_print(&text, s);
        if (set_count(s))
                assert_int_equal(set_parse(&u, buf_view(&text), LIMIT), 0);
        set_print(&again, &t);
        assert_string_equal(buf_z(&text), buf_z(&again));
        set_remove_all(&t, &u);
        assert_int_equal(set_count(&t), 0);
        set_deinit(&t);
        set_deinit(&u);
}

/* One random change to set number `k`, in the set and in the model. */
static void step(struct set *sets, struct model *models, unsigned k, unsigned limit)
{
        struct set *s = &sets[k], *o = &sets[!k];
        struct model *m = &models[k], *n = &models[!k];
        unsigned i = (unsigned)random() % limit, j = i + (unsigned)random() % (limit - i + 1);

        switch (random() % 12) {
        case 0:
                set_add_range(s, i, j);
                while (i < j)
                        m->has[i++] = true;
                break;
        case 1:
                set_remove_range(s, i, j);
                while (i < j)
                        m->has[i++] = false;
                break;
        case 2:
                set_add_all(s, o);
                for (i = 0; i < LIMIT; i++)
                        m->has[i] |= n->has[i];
                break;
        case 3:
                set_remove_all(s, o);
                for (i = 0; i < LIMIT; i++)
                        m->has[i] &= !n->has[i];
                break;
        case 4:
                set_keep_all(s, o);
                for (i = 0; i < LIMIT; i++)
                        m->has[i] &= n->has[i];
                break;
        case 5:
                set_deinit(o);
                set_copy(o, s);
                *n = *m;
                break;
        case 6:
        case 7:
                assert_int_equal(set_remove(s, i), m->has[i]);
                m->has[i] = false;
                break;
        case 8:
                assert_int_equal(set_count_range(s, i, j), model_count(m, i, j));
                there_and_back(s);
                break;
        default: assert_int_equal(set_add(s, i), !m->has[i]); m->has[i] = true;
        }
}

static void random_model(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= 40; seed++) {
                struct set sets[2] = {0};
                struct model models[2] = {0};
                unsigned limit = seed % 4 == 0 ? 64 : seed % 4 == 1 ? 65 : LIMIT;

                srandom(seed);
                for (int i = 0; i < 300; i++) {
                        unsigned k = (unsigned)random() % 2;

                        step(sets, models, k, limit);
                        check(&sets[k], &models[k]);
                }
                set_deinit(&sets[0]);
                set_deinit(&sets[1]);
        }
}

/* The same with blocks of 20,000 members, so that ranges cross the bitmap's containers of 65,536 and leave
 * some out: every operation, then the runs against the array. */
static void random_blocks(void **state)
{
        enum { BLOCKS = 40, BLOCK = 20000 };
        struct set sets[2] = {0};
        bool has[2][BLOCKS] = {0};

        (void)state;
        srandom(11);
        for (int round = 0; round < 3000; round++) {
                unsigned k = (unsigned)random() % 2, i = (unsigned)random() % BLOCKS;
                unsigned j = i + (unsigned)random() % (BLOCKS - i + 1) % 5, what = (unsigned)random() % 9;
                uint64_t first, end, at = 0;

                if (what < 3)
                        set_add_range(&sets[k], (uint64_t)i * BLOCK, (uint64_t)j * BLOCK);
                else if (what < 6)
                        set_remove_range(&sets[k], (uint64_t)i * BLOCK, (uint64_t)j * BLOCK);
                else if (what == 6)
                        set_add_all(&sets[k], &sets[!k]);
                else if (what == 7)
                        set_remove_all(&sets[k], &sets[!k]);
                else if (round % 10 == 0)
                        set_keep_all(&sets[k], &sets[!k]);
                for (unsigned b = 0; b < BLOCKS; b++) {
                        if (what < 6)
                                has[k][b] = b >= i && b < j ? what < 3 : has[k][b];
                        else if (what == 6)
                                has[k][b] |= has[!k][b];
                        else if (what == 7)
                                has[k][b] &= !has[!k][b];
                        else if (round % 10 == 0)
                                has[k][b] &= has[!k][b];
                }
                for (unsigned b = 0; b < BLOCKS; b++) {
                        unsigned from = b;

                        while (b < BLOCKS && has[k][b])
                                b++;
                        if (from == b)
                                continue;
                        assert_true(set_run(&sets[k], at, &first, &end));
                        assert_int_equal(first, (uint64_t)from * BLOCK);
                        assert_int_equal(end, (uint64_t)b * BLOCK);
                        assert_int_equal(set_count_range(&sets[k], first, end), end - first);
                        at = end;
                }
                assert_false(set_run(&sets[k], at, &first, &end));
        }
        set_deinit(&sets[0]);
        set_deinit(&sets[1]);
}

static void million(void **state)
{
        struct set s = {0}, t = {0};
        uint64_t first, end;

        (void)state;
        set_add_range(&s, 0, 1000000);
        assert_int_equal(set_count(&s), 1000000);
        assert_true(set_bytes(&s) < 4096); /* a few bits a member, however many */
        for (uint32_t i = 0; i < 500000; i++) {
                assert_true(set_remove(&s, (uint32_t)set_first(&s)));
                assert_true(set_add(&t, i));
        }
        assert_true(set_bytes(&s) < 200000);
        assert_true(set_bytes(&t) < 200000);
        assert_true(set_run(&s, 0, &first, &end));
        assert_int_equal(first, 500000);
        assert_int_equal(end, 1000000);
        set_add_all(&t, &s);
        assert_true(set_run(&t, 0, &first, &end));
        assert_int_equal(first, 0);
        assert_int_equal(end, 1000000);
        set_deinit(&s);
        set_deinit(&t);
}

static void far_end(void **state)
{
        struct set s = {0};
        uint64_t first, end;

        (void)state;
        assert_true(set_add(&s, UINT32_MAX));
        assert_int_equal(set_next(&s, 0), UINT32_MAX);
        assert_true(set_next(&s, 1ull << 32) == SET_END);
        assert_true(set_run(&s, 5, &first, &end));
        assert_int_equal(end, 1ull << 32);
        set_add_range(&s, (1ull << 32) - 70000, 1ull << 32);
        assert_true(set_run(&s, 5, &first, &end));
        assert_int_equal(first, (1ull << 32) - 70000);
        assert_int_equal(end, 1ull << 32);
        assert_int_equal(set_count_range(&s, (1ull << 32) - 10, 1ull << 32), 10);
        set_deinit(&s);
}

static void text(void **state)
{
        static const struct {
                const char *in, *out;
                int code;
        } cases[] = {
                {"5", "5", 0},
                {"0-99,150,200-", "0-99,150,200-299", 0},
                {" 3 , 1-2 ", "1-3", 0},
                {"7-7", "7", 0},
                {"", "", -EINVAL},
                {"1,,2", "1", -EINVAL},
                {"-5", "", -EINVAL},
                {"a", "", -EINVAL},
                {"1-2-3", "", -EINVAL},
                {"300", "", -ERANGE},
                {"5-3", "", -ERANGE},
                {"0-300", "", -ERANGE},
                {"99999999999999999999", "", -ERANGE},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                BUF_CLEANUP struct buf b = {0};
                struct set s = {0};

                assert_int_equal(set_parse(&s, str_of(cases[i].in), 300), cases[i].code);
                set_print(&b, &s);
                assert_string_equal(buf_z(&b), cases[i].out);
                set_deinit(&s);
        }
}

static void bad_records(void **state)
{
        static const struct {
                const char *p;
                size_t n;
        } cases[] = {
                {"", 0},                                          /* nothing */
                {"\x01\x05", 2},                                  /* a run without length */
                {"\x01\x05\x00", 3},                              /* an empty run */
                {"\x01\xff\xff\xff\xff\x0f\x02", 7},              /* past 2^32 */
                {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10}, /* 2^64 - 1 runs */
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
                struct unpack u = unpack_from(str_make(cases[i].p, cases[i].n));
                struct set s = {0};

                assert_int_equal(set_unpack(&s, &u), -EBADMSG);
                set_deinit(&s);
        }
}

/* Every third of a million: reading it back must not look at all of it for every run. */
static void fragmented(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct set s = {0}, t = {0};
        struct unpack from;

        (void)state;
        for (uint64_t i = 0; i < 1000000; i += 3)
                set_add(&s, (uint32_t)i);
        set_pack(&b, &s);
        from = unpack_from(buf_view(&b));
        assert_int_equal(set_unpack(&t, &from), 0);
        assert_int_equal(set_count(&t), set_count(&s));
        set_remove_all(&s, &t);
        assert_int_equal(set_count(&s), 0);
        set_deinit(&s);
        set_deinit(&t);
}

static void expect_common(const struct set *a, const struct set *b)
{
        uint64_t m = set_first(a);

        while (m != SET_END && !set_has(b, (uint32_t)m))
                m = set_next(a, m + 1);
        assert_int_equal(set_first_common(a, b), m);
        assert_int_equal(set_first_common(b, a), m);
}

/* The first of both, for sets of any size: without a common member, and with one behind members of one that
 * lie between those of the other. */
static void common(void **state)
{
        static const uint32_t counts[] = {1, 60, 70, 1000, 300000};

        (void)state;
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
                for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
                        struct set a = {0}, b = {0};

                        expect_common(&a, &b);
                        for (uint32_t n = 0; n < counts[i]; n++)
                                set_add(&a, 2 * n);
                        expect_common(&a, &b);
                        for (uint32_t n = 0; n < counts[k]; n++)
                                set_add(&b, 2 * n + 1);
                        expect_common(&a, &b);
                        set_add(&b, 2 * (counts[i] - 1));
                        expect_common(&a, &b);
                        set_add(&a, 1);
                        expect_common(&a, &b);
                        set_deinit(&a);
                        set_deinit(&b);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(random_model), cmocka_unit_test(random_blocks),
                cmocka_unit_test(million),      cmocka_unit_test(far_end),
                cmocka_unit_test(text),         cmocka_unit_test(bad_records),
                cmocka_unit_test(fragmented),   cmocka_unit_test(common),
        };

        return cmocka_run_group_tests_name("base/set", tests, NULL, NULL);
}
