#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli/slurm/hosts.h"

static void lists_are_written_out(void **state)
{
        static const struct {
                const char *list, *names;
        } good[] = {{"n1", "n1"},
                    {"n1,m2", "n1,m2"},
                    {"n[1-3,5]", "n1,n2,n3,n5"},
                    {"n[08-11]x,m", "n08x,n09x,n10x,n11x,m"}};
        static const char *const bad[] = {"",       ",",    "n[1-3",      "n1]",     "n[]",
                                          "n[3-1]", "n[a]", "n[1-99999]", "n[1]m[2]"};

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
                BUF_CLEANUP struct buf out = {0};

                assert_int_equal(hosts_expand(str_of(good[i].list), &out, NULL), 0);
                assert_string_equal(buf_z(&out), good[i].names);
        }
        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                BUF_CLEANUP struct buf out = {0};

                if (hosts_expand(str_of(bad[i]), &out, NULL) == 0)
                        fail_msg("%s was taken", bad[i]);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(lists_are_written_out)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
