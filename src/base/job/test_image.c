#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/job/image.h"

static void test_names(void **state)
{
        static const struct {
                const char *image, *name;
                enum image_kind kind;
        } cases[] = {
                {"busybox", "docker.io/library/busybox:latest", IMAGE_NAME},
                {"docker://busybox:1.35", "docker.io/library/busybox:1.35", IMAGE_NAME},
                {"docker.io/busybox", "docker.io/library/busybox:latest", IMAGE_NAME},
                {"docker.io/library/busybox", "docker.io/library/busybox:latest", IMAGE_NAME},
                {"me/tool:2", "docker.io/me/tool:2", IMAGE_NAME},
                {"localhost/tiny:1", "localhost/tiny:1", IMAGE_NAME},
                {"localhost:5000/tiny", "localhost:5000/tiny:latest", IMAGE_NAME},
                {"quay.io/a/b@sha256:0123", "quay.io/a/b@sha256:0123", IMAGE_NAME},
                {"/cvmfs/images/a.sif", "/cvmfs/images/a.sif", IMAGE_FILE},
                {"./folder", "./folder", IMAGE_FILE},
                {"a.sif", "a.sif", IMAGE_FILE},
                {"oras://ghcr.io/a/b:1", "oras://ghcr.io/a/b:1", IMAGE_URL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                BUF_CLEANUP struct buf name = {0}, again = {0};

                assert_int_equal(image_name(str_of(cases[i].image), &name), cases[i].kind);
                assert_string_equal(buf_z(&name), cases[i].name);
                image_name(buf_view(&name), &again);
                assert_string_equal(buf_z(&again), cases[i].name);
        }
}

static void test_urls(void **state)
{
        BUF_CLEANUP struct buf a = {0}, b = {0};

        (void)state;
        image_url(STR("tool"), &a);
        assert_string_equal(buf_z(&a), "docker://docker.io/library/tool:latest");
        image_url(STR("/images/a.sif"), &b);
        assert_string_equal(buf_z(&b), "/images/a.sif");
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_urls)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
