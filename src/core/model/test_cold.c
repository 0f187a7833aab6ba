#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

static struct request *one(struct core *c)
{
        return submit(c, "x\n", 1, (const char *const[]){"Cmd", "\"/bin/true\"", NULL});
}

static void hold(struct core *c, uint64_t request)
{
        const struct core_command cmd = {.action = CORE_ACT_HOLD, .request = request, .reason = STR("later")};
        uint64_t n;

        assert_int_equal(core_act(c, &cmd, &n, NULL), 0);
        assert_int_equal(n, 1);
}

/* A waiting request of one bucket has it in the struct, without a set of members, and has no cold state. */
static void test_waits(void **state)
{
        const struct request *r = one(*state);

        assert_null(r->cold);
        assert_ptr_equal(r->buckets, &r->only_bucket);
        assert_null(r->only_bucket->members);
        assert_int_equal(r->parts->items_n, 2);
        assert_memory_equal(r->parts->items, "x\n", 2);
        assert_int_equal(set_count(&request_cold(r)->held), 0);
        assert_null(request_hold(r, 0));
}

/* Each of three buckets has a set of members, and the array of buckets is allocated. */
static void test_buckets(void **state)
{
        struct core *c = *state;
        struct request *r =
                submit(c, "1\n2\n3\n1\n", 4,
                       (const char *const[]){"Cmd", "\"/bin/true\"", "~RequestMemory", "$(f)", NULL});

        assert_int_equal(r->bucket_count, 3);
        assert_ptr_not_equal(r->buckets, &r->only_bucket);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(set_count(r->buckets[i]->members), i == 0 ? 2 : 1);
        assert_int_equal(r->idle, 4);
        request_split(c, r);
        assert_int_equal(r->bucket_count, 3);
        assert_int_equal(r->idle, 4);
        assert_null(core_check(c));
}

/* After a restore only requests that need cold state have it. */
static void test_restore(void **state)
{
        struct core *c = *state, *shadow;
        const struct core_config config = {.shadow = true};
        struct buf BUF_CLEANUP snapshot = {0};
        uint64_t waits = one(c)->id, held = one(c)->id;

        hold(c, held);
        assert_string_equal(request_hold(request_find(c, held), 0)->reason, "later");
        core_snapshot(c, &snapshot);
        shadow = core_new(&config, &c->world);
        assert_int_equal(core_restore(shadow, buf_view(&snapshot), NULL), 0);
        assert_null(request_find(shadow, waits)->cold);
        assert_int_equal(request_state(request_find(shadow, waits), 0), JOB_IDLE);
        assert_int_equal(request_state(request_find(shadow, held), 0), JOB_HELD);
        assert_string_equal(request_hold(request_find(shadow, held), 0)->reason, "later");
        core_free(shadow);
}

/* Two requests with the same hash of the uuid are both found, whichever is removed first. */
static void test_uuid_chain(void **state)
{
        struct core *c = *state;
        struct request *a = one(c), *b = one(c);
        unsigned char uuid[16];
        uint64_t id = a->id;

        /* Puts b in front of a, as if its hash was the same. */
        memcpy(uuid, a->uuid, sizeof(uuid));
        idmap_put(c->requests->by_uuid, map_hash(uuid, sizeof(uuid)), b);
        request_cold_make(b)->uuid_next = a;
        assert_ptr_equal(request_by_uuid(c, uuid, str_of(request_owner(a))), a);
        assert_null(request_by_uuid(c, uuid, STR("bob@lab")));
        request_free(c, a);
        assert_null(request_find(c, id));
        assert_null(request_cold(b)->uuid_next);
        assert_null(request_by_uuid(c, uuid, str_of(request_owner(b))));
        idmap_take(c->requests->by_uuid, map_hash(uuid, sizeof(uuid)));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bare_core, bare_core_free)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_waits),
                TEST(test_buckets),
                TEST(test_restore),
                TEST(test_uuid_chain),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
