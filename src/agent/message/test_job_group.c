/* Groups and results come back from their packed form as they were, and malformed bytes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "agent/message/job_group.h"
#include "agent/message/job_result.h"

static char *texts[] = {(char *)"a", (char *)"b", (char *)"c", (char *)"d"};

static void test_every_field_of_a_group(void **state)
{
        unsigned char sum[32] = {9};
        struct spool_ref files[] = {{(char *)"f", sum, 17, true}, {(char *)"unnamed", NULL, 0, false}};
        struct member_range ranges[] = {{2, 3}, {9, 1}};
        struct job_item items[] = {
                {.member = 2, .row = 5, .step = 6, .values = texts, .value_count = 2},
                {.member = 9, .checkpoint = files, .checkpoint_count = 2},
        };
        struct job_group g = {.request = 7,
                              .part = 1,
                              .fence = 4,
                              .ranges = ranges,
                              .range_count = 2,
                              .items = items,
                              .item_count = 2,
                              .lease_ms = 1000,
                              .wait_for_go = true,
                              .gang = 2,
                              .gang_size = 8,
                              .gang_machines = (char *)"x,y",
                              .filled = texts,
                              .filled_count = 2};
        BUF_CLEANUP struct buf packed = {0}, again = {0};
        struct arena room = {0};
        struct job_group r;

        (void)state;
        job_group_pack(&g, &packed);
        assert_int_equal(job_group_unpack(packed.p, packed.n, &room, &r), 0);
        assert_int_equal(r.request, 7);
        assert_int_equal(r.part, 1);
        assert_int_equal(r.fence, 4);
        assert_int_equal(r.range_count, 2);
        assert_memory_equal(r.ranges, ranges, sizeof(ranges));
        assert_int_equal(r.lease_ms, 1000);
        assert_true(r.wait_for_go);
        assert_int_equal(r.gang, 2);
        assert_int_equal(r.gang_size, 8);
        assert_string_equal(r.gang_machines, "x,y");
        assert_int_equal(r.filled_count, 2);
        assert_string_equal(r.filled[3], "d");
        assert_true(job_group_is_sorted(&r));
        const struct job_item *i = job_group_item(&r, 2);
        assert_int_equal(i->row, 5);
        assert_int_equal(i->step, 6);
        assert_int_equal(i->value_count, 2);
        assert_string_equal(i->values[1], "b");
        i = job_group_item(&r, 9);
        assert_int_equal(i->checkpoint_count, 2);
        assert_string_equal(i->checkpoint[0].name, "f");
        assert_memory_equal(i->checkpoint[0].sha256, sum, 32);
        assert_int_equal(i->checkpoint[0].size, 17);
        assert_true(i->checkpoint[0].executable);
        assert_null(i->checkpoint[1].sha256);
        assert_null(job_group_item(&r, 3));
        job_group_pack(&r, &again);
        assert_true(str_eq(buf_view(&packed), buf_view(&again)));
        arena_deinit(&room);
}

static void test_order_of_items(void **state)
{
        struct job_item items[] = {{.member = 3}, {.member = 3}};
        struct job_group g = {.items = items, .item_count = 2};

        (void)state;
        assert_false(job_group_is_sorted(&g));
        g.item_count = 1;
        assert_true(job_group_is_sorted(&g));
        g.item_count = 0;
        assert_true(job_group_is_sorted(&g));
        assert_null(job_group_item(&g, 3));
}

static void test_every_field_of_a_result(void **state)
{
        struct output_ref output = {.name = (char *)"out", .sha256 = {3}, .size = 5, .mode = 0644},
                          sent = {.name = (char *)"https://x/y", .size = 6};
        struct attempt_name name = {7, 2, 5}, unpacked;
        struct job_result from = {.outcome = OUTCOME_LIMIT_EXCEEDED,
                                  .set = true,
                                  .is_checkpoint = true,
                                  .step_count = 2,
                                  .steps = {{true, 9, 1, 2, {3, 4}}, {false, 1, 5, 6, {7, 8}}},
                                  .started_ms = 10,
                                  .ended_ms = 11,
                                  .cpu_user_ms = 12,
                                  .cpu_system_ms = 13,
                                  .memory_peak_bytes = 14,
                                  .bytes_in = 15,
                                  .bytes_out = 16,
                                  .bytes_freed = 17,
                                  .energy_uj = 18,
                                  .hold_code = 34,
                                  .hold_subcode = -2,
                                  .reason = (char *)"why",
                                  .outputs = &output,
                                  .output_count = 1,
                                  .sent = &sent,
                                  .sent_count = 1,
                                  .tails = {{(char *)"end", 3, 100}, {NULL, 0, 0}}},
                          r;
        BUF_CLEANUP struct buf packed = {0}, again = {0};

        (void)state;
        job_result_pack(&name, &from, &packed);
        assert_int_equal(job_result_unpack(packed.p, packed.n, &unpacked, &r), 0);
        assert_int_equal(unpacked.request, 7);
        assert_int_equal(unpacked.fence, 2);
        assert_int_equal(unpacked.member, 5);
        assert_int_equal(r.outcome, OUTCOME_LIMIT_EXCEEDED);
        assert_true(r.set && r.is_checkpoint);
        assert_int_equal(r.step_count, 2);
        assert_true(r.steps[0].signaled && r.steps[0].exit_code == 9 && r.steps[0].ended_ms == 2);
        assert_int_equal(r.steps[1].printed[1], 8);
        assert_int_equal(r.hold_subcode, -2);
        assert_string_equal(r.reason, "why");
        assert_string_equal(r.outputs[0].name, "out");
        assert_memory_equal(r.outputs[0].sha256, output.sha256, 32);
        assert_string_equal(r.sent[0].name, "https://x/y");
        assert_memory_equal(r.tails[0].bytes, "end", 3);
        assert_int_equal(r.tails[0].size, 100);
        assert_null(r.tails[1].bytes);
        job_result_pack(&unpacked, &r, &again);
        assert_true(str_eq(buf_view(&packed), buf_view(&again)));
        job_result_deinit(&r);
}

static void test_malformed(void **state)
{
        struct arena room = {0};
        struct attempt_name name;
        struct job_group g;
        struct job_result r;

        (void)state;
        assert_int_not_equal(job_group_unpack("\xff\xff\xff", 3, &room, &g), 0);
        assert_int_not_equal(job_result_unpack("\xff\xff\xff", 3, &name, &r), 0);
        arena_deinit(&room);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_field_of_a_group),
                cmocka_unit_test(test_order_of_items),
                cmocka_unit_test(test_every_field_of_a_result),
                cmocka_unit_test(test_malformed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
