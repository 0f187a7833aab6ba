/* Every kind of command has a handler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/daemon/commands.h"

static void test_each_kind_has_a_handler(void **state)
{
        (void)state;
        for (unsigned kind = 0; kind < COMMAND_KINDS; kind++)
                assert_non_null(command_handlers[kind]);
}

/* A handler that goes on later has all of the command; what is left of it can be freed. */
static void test_a_command_is_taken(void **state)
{
        struct command *c = command_new(COMMAND_ACCEPT, 7, STR("n1")), *taken;
        struct set *members = mem_new(struct set);

        (void)state;
        set_add(members, 3);
        c->attempts = mem_array(NULL, 1, sizeof(*c->attempts));
        c->attempts[c->attempt_count++] = (struct core_attempts){1, 2, members};
        taken = command_take(c);
        command_free(c);
        assert_int_equal(taken->session, 7);
        assert_true(str_eqz(taken->agent, "n1"));
        assert_int_equal(taken->attempt_count, 1);
        assert_true(set_has(taken->attempts[0].members, 3));
        command_free(taken);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_kind_has_a_handler),
                cmocka_unit_test(test_a_command_is_taken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
