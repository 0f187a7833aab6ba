/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */
#include <errno.h>
#include <string.h>

#include "place/handover.h"

static const struct handover_attribute job[] = {
        {"Model", "\"east\""}, {"Steered", "TARGET.QueueName == \"east\""}, {"Bad", "1 +"}};

static void expect(const char *requirements, const char *own, const char *want)
{
        BUF_CLEANUP struct buf b = {0};
        struct err err = {""};

        assert_int_equal(handover_requirements(requirements, job, 3, own, &b, &err), 0);
        assert_string_equal(buf_z(&b), want);
}

static void test_what_any_place_can_say_goes_along(void **state)
{
        (void)state;
        expect("TARGET.Arch == \"X86_64\" && TARGET.HasDocker", NULL,
               "(TARGET.Arch == \"X86_64\") && (TARGET.HasDocker)");
        expect("TARGET.Model == MY.Model", NULL, "(TARGET.Model == MY.Model)");
        expect("true", NULL, "(true)");
}

static void test_what_only_this_queue_says_stays(void **state)
{
        (void)state;
        expect("TARGET.Runner == \"drover\"", NULL, "true");
        expect("TARGET.Memory > 5 && QueueName == \"east\"", NULL, "(TARGET.Memory > 5)");
        expect("TARGET.HasFileTransfer || (TARGET.FileSystemDomain == MY.FileSystemDomain)", NULL, "true");
        expect("member(\"far\", TARGET.Tags) && TARGET.HasGPU", NULL, "(TARGET.HasGPU)");
        expect("TARGET.Site == \"east\" && TARGET.Arch == \"arm64\"", "Site = \"east\"; X = 1;",
               "(TARGET.Arch == \"arm64\")");
}

static void test_an_attribute_of_the_job_is_looked_through(void **state)
{
        (void)state;
        expect("MY.Steered && TARGET.Memory > 5", NULL, "(TARGET.Memory > 5)");
        expect("Bad =?= undefined", NULL, "(Bad =?= undefined)");
}

static void test_what_is_no_expression(void **state)
{
        BUF_CLEANUP struct buf b = {0};
        struct err err = {""};

        (void)state;
        assert_int_equal(handover_requirements("true) || (true", NULL, 0, NULL, &b, &err), -EINVAL);
        assert_non_null(strstr(err.text, "Requirements cannot be read"));
        assert_int_equal(b.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_any_place_can_say_goes_along),
                cmocka_unit_test(test_what_only_this_queue_says_stays),
                cmocka_unit_test(test_an_attribute_of_the_job_is_looked_through),
                cmocka_unit_test(test_what_is_no_expression),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
