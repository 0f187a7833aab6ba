/* Classes that are found again without their key, and requests whose record is like the last one's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#define RECORDS 32u

static struct {
        struct buf log[RECORDS], records[RECORDS];
        size_t count;
} kept;

static void on_event(void *arg, const struct event *e)
{
        (void)arg;
        assert_true(kept.count < RECORDS);
        event_pack(&kept.log[kept.count++], e);
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg;
        assert_true(request < RECORDS);
        buf_str(&kept.records[request], record);
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg;
        if (request >= RECORDS || kept.records[request].n == 0)
                return err_set(err, -ENOENT, "there is no record");
        buf_str(ret, buf_view(&kept.records[request]));
        return 0;
}

static struct core *new_core(void)
{
        const struct core_world world = {NULL,        on_event,     bare_history, on_keep, bare_forget,
                                         bare_assign, bare_control, on_load,      NULL,    bare_go};
        const struct core_config config = {.lease_ms = 86400000, .rekey_slice = 1000};
        struct core *c = core_new(&config, &world);

        core_clock(c, 1700000000000, 1000);
        return c;
}

static int setup(void **state)
{
        *state = new_core();
        return 0;
}

static int teardown(void **state)
{
        const char *bad = core_check(*state);

        if (bad)
                fail_msg("%s", bad);
        core_free(*state);
        for (size_t i = 0; i < RECORDS; i++) {
                buf_deinit(&kept.log[i]);
                buf_deinit(&kept.records[i]);
        }
        memset(&kept, 0, sizeof(kept));
        buf_deinit(&bare_assigned);
        return 0;
}

/* Submits one job with these attributes, name and text in turn, up to NULL. */
static struct request *one_job(struct core *c, const char *owner, const char *const *attributes)
{
        static unsigned char serial;
        struct submission s = {.owner = str_of(owner), .at_ms = 1700000000000 + serial};
        struct submission_part *p = submission_add_part(&s);
        struct err err = {""};
        bool existing;
        uint64_t id;

        s.uuid[3] = ++serial;
        for (; *attributes; attributes += 2)
                submission_add_attribute(p, str_of(attributes[0]), str_of(attributes[1]), false);
        if (core_submit(c, &s, false, &id, &existing, &err) != 0)
                fail_msg("%s", err.text);
        submission_deinit(&s);
        return request_find(c, id);
}

static struct job_class *class_of(const struct core *c, uint64_t request)
{
        return request_find(c, request)->only_bucket->job_class;
}

/* A replay of the log gives the same requests: numbers, owners, uuids, and jobs that share a class. */
static void same_again(struct core *c)
{
        struct core *again = new_core();

        for (size_t i = 0; i < kept.count; i++)
                assert_int_equal(core_replay(again, buf_view(&kept.log[i]), NULL), 0);
        core_ready(again);
        assert_null(core_check(again));
        for (uint64_t id = 0; (id = core_request_next(c, id)) != 0;) {
                const struct request *was = request_find(c, id), *is = request_find(again, id);

                assert_memory_equal(was->uuid, is->uuid, sizeof(was->uuid));
                assert_string_equal(request_owner(was), request_owner(is));
                assert_int_equal(was->submitted_ms, is->submitted_ms);
                assert_int_equal(was->digest, is->digest);
                for (uint64_t k = 0; (k = core_request_next(c, k)) != 0;)
                        assert_int_equal(class_of(c, id) == class_of(c, k),
                                         class_of(again, id) == class_of(again, k));
        }
        core_free(again);
}

static const char *const plain[] = {"Cmd", "\"x\"", "RequestMemory", "16", NULL};
static const char *const more_memory[] = {"Cmd", "\"x\"", "RequestMemory", "17", NULL};
static const char *const other_arguments[] = {"Cmd",   "\"x\"", "RequestMemory", "16", "Arguments",
                                              "\"1\"", NULL};

static void test_owners_have_classes_of_their_own(void **state)
{
        struct core *c = *state;
        const char *const owners[] = {"ann@lab", "ann@lab", "bob@lab", "ann@lab", "bob@lab"};

        for (size_t i = 0; i < 5; i++)
                one_job(c, owners[i], plain);
        one_job(c, "ann@lab", more_memory);
        one_job(c, "ann@lab", other_arguments);
        one_job(c, "ann@lab", other_arguments);
        assert_ptr_equal(class_of(c, 1), class_of(c, 2));
        assert_ptr_equal(class_of(c, 1), class_of(c, 4));
        assert_ptr_equal(class_of(c, 3), class_of(c, 5));
        assert_ptr_not_equal(class_of(c, 1), class_of(c, 3));
        assert_ptr_not_equal(class_of(c, 1), class_of(c, 6));
        assert_ptr_equal(class_of(c, 1), class_of(c, 7));
        assert_ptr_equal(class_of(c, 1), class_of(c, 8));
        assert_string_equal(class_of(c, 5)->owner, "bob@lab");
        same_again(c);
}

/* A freed class is not found again while its template lives on, nor a freed template while its class does. */
static void test_freed(void **state)
{
        struct core *c = *state;

        one_job(c, "ann@lab", plain);
        one_job(c, "bob@lab", plain);
        one_job(c, "ann@lab", plain);
        request_free(c, request_find(c, 1));
        request_free(c, request_find(c, 3));
        one_job(c, "ann@lab", plain);
        assert_string_equal(class_of(c, 4)->owner, "ann@lab");
        assert_int_equal(class_of(c, 4)->users, 1);
        one_job(c, "ann@lab", other_arguments);
        assert_ptr_equal(class_of(c, 5), class_of(c, 4));
        request_free(c, request_find(c, 5));
        for (unsigned i = 0; i < 8; i++) /* some template gets the memory of the one that has gone */
                assert_int_equal(class_of(c, one_job(c, "ann@lab", more_memory)->id)->memory_mib, 17);
        assert_int_equal(class_of(c, 4)->memory_mib, 16);
}

static void test_the_requests_number_matters(void **state)
{
        struct core *c = *state;
        const char *const numbered[] = {"Cmd", "\"x\"", "Requirements", "ClusterId > 0", NULL};

        one_job(c, "ann@lab", numbered);
        one_job(c, "ann@lab", numbered);
        assert_ptr_not_equal(class_of(c, 1), class_of(c, 2));
        same_again(c);
}

/* A name that an agent's condition has begun to refer to tells classes apart from then on. */
static void test_a_name_becomes_significant(void **state)
{
        struct core *c = *state;
        const char *const one[] = {"Cmd", "\"x\"", "Kind", "1", NULL};
        const char *const two[] = {"Cmd", "\"x\"", "Kind", "2", NULL};

        one_job(c, "ann@lab", one);
        one_job(c, "ann@lab", two);
        assert_ptr_equal(class_of(c, 1), class_of(c, 2));
        offer(c, "n1", "[Cpus=0; Memory=1; Requirements=TARGET.Kind != 7]");
        assert_ptr_not_equal(class_of(c, 1), class_of(c, 2));
        one_job(c, "ann@lab", one);
        one_job(c, "ann@lab", two);
        one_job(c, "ann@lab", one);
        assert_ptr_equal(class_of(c, 1), class_of(c, 3));
        assert_ptr_equal(class_of(c, 1), class_of(c, 5));
        assert_ptr_equal(class_of(c, 2), class_of(c, 4));
}

/* After a loss of the log's end, jobs that may be running wait; new ones like them do not. */
static void test_lost(void **state)
{
        struct core *c = *state;

        one_job(c, "ann@lab", plain);
        one_job(c, "ann@lab", plain);
        core_lost(c, 2, 60000);
        one_job(c, "ann@lab", plain);
        one_job(c, "ann@lab", plain);
        assert_ptr_equal(class_of(c, 1), class_of(c, 2));
        assert_ptr_not_equal(class_of(c, 1), class_of(c, 3));
        assert_ptr_equal(class_of(c, 3), class_of(c, 4));
}

/* A record that is cut off is damage, also one that begins like the last. */
static void test_damaged_records(void **state)
{
        struct core *c = *state, *again = new_core();
        struct err err = {""};

        one_job(c, "ann@lab", plain);
        one_job(c, "ann@lab", plain);
        one_job(c, "ann@lab", plain);
        buf_truncate(&kept.records[2], kept.records[2].n - 1);
        assert_int_equal(core_replay(again, buf_view(&kept.log[0]), &err), 0);
        assert_int_equal(core_replay(again, buf_view(&kept.log[1]), &err), -EBADMSG);
        assert_int_equal(core_replay(again, buf_view(&kept.log[2]), &err), 0);
        buf_truncate(&kept.records[1], 5);
        assert_int_equal(core_replay(again, buf_view(&kept.log[0]), &err),
                         CORE_DAMAGED); /* the number is taken */
        core_free(again);
        again = new_core();
        assert_int_equal(core_replay(again, buf_view(&kept.log[0]), &err), -EBADMSG);
        core_free(again);
}

/* Requests are found by their numbers, in any order, also when some have gone. */
static void test_found(void **state)
{
        struct core *c = *state;

        for (unsigned i = 0; i < 6; i++)
                one_job(c, "ann@lab", plain);
        for (uint64_t step = 1; step < 6; step++)
                for (uint64_t id = 1, n = 0; n < 12; n++, id = (id + step) % 8)
                        if (id >= 1 && id <= 6)
                                assert_int_equal(request_find(c, id)->id, id);
                        else
                                assert_null(request_find(c, id));
        assert_int_equal(request_find(c, 3)->id, 3);
        request_free(c, request_find(c, 3));
        assert_null(request_find(c, 3));
        assert_int_equal(request_find(c, 4)->id, 4);
        assert_int_equal(core_request_next(c, 2), 4);
        request_free(c, request_find(c, 6));
        assert_null(request_find(c, 6));
        assert_int_equal(request_find(c, 5)->id, 5);
        assert_null(request_find(c, 0));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_owners_have_classes_of_their_own, setup, teardown),
                cmocka_unit_test_setup_teardown(test_freed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_requests_number_matters, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_name_becomes_significant, setup, teardown),
                cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
                cmocka_unit_test_setup_teardown(test_damaged_records, setup, teardown),
                cmocka_unit_test_setup_teardown(test_found, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
