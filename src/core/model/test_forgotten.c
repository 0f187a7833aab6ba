#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/model/forgotten.h"

#include "base/buf.h"

static struct forgotten_request known(uint64_t id, const char *owner)
{
        struct forgotten_request r = {.id = id, .digest = id * 3, .owner = str_of(owner)};

        memcpy(r.uuid, &id, sizeof(id));
        return r;
}

static uint64_t found(const struct forgotten *f, uint64_t id, const char *owner)
{
        struct forgotten_request want = known(id, owner), got;

        if (!forgotten_find(f, want.uuid, want.owner, &got))
                return 0;
        assert_true(str_eq(got.owner, want.owner));
        assert_int_equal(got.digest, id * 3);
        return got.id;
}

static void test_time(void **state)
{
        struct forgotten *f = forgotten_new();
        struct forgotten_request r;

        (void)state;
        for (uint64_t i = 1; i <= 3; i++) {
                r = known(i, i == 2 ? "bob@lab" : "ann@lab");
                forgotten_add(f, &r, (int64_t)i * 1000);
        }
        assert_int_equal(found(f, 1, "ann@lab"), 1);
        assert_int_equal(found(f, 1, "bob@lab"), 0);
        r = known(4, "bob@lab");
        forgotten_add(f, &r, 2001 + FORGOTTEN_MS);
        assert_int_equal(found(f, 1, "ann@lab"), 0);
        assert_int_equal(found(f, 2, "bob@lab"), 0);
        assert_int_equal(found(f, 3, "ann@lab"), 3);
        assert_int_equal(found(f, 4, "bob@lab"), 4);
        assert_int_equal(forgotten_count(f), 2);
        forgotten_free(f);
}

/* An owner with too many requests loses only the oldest of his own. */
static void test_owners(void **state)
{
        struct forgotten *f = forgotten_new(), *again = forgotten_new();
        struct forgotten_request r = known(1, "bob@lab"), got;
        struct buf packed = {0}, twice = {0};
        struct unpack u;

        (void)state;
        forgotten_add(f, &r, 0);
        for (uint64_t i = 2; i < FORGOTTEN_MAX + 5; i++) {
                r = known(i, "ann@lab");
                forgotten_add(f, &r, 0);
        }
        assert_int_equal(forgotten_count(f), FORGOTTEN_MAX + 1);
        assert_int_equal(found(f, 1, "bob@lab"), 1);
        assert_int_equal(found(f, 4, "ann@lab"), 0);
        assert_int_equal(found(f, 5, "ann@lab"), 5);
        forgotten_pack(f, &packed);
        u = unpack_from(buf_view(&packed));
        forgotten_unpack(again, &u);
        assert_true(unpack_done(&u));
        forgotten_pack(again, &twice);
        assert_true(str_eq(buf_view(&packed), buf_view(&twice)));
        assert_int_equal(found(again, 1, "bob@lab"), 1);
        assert_int_equal(forgotten_unpack_one(STR("\x03xyz"), &got), -EBADMSG);
        buf_deinit(&packed);
        buf_deinit(&twice);
        forgotten_free(f);
        forgotten_free(again);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_time),
                cmocka_unit_test(test_owners),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
