/* Ids that wait for a command while it hangs are bounded, and none of the verbs is lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "run/batch/acts.h"
#include "run/batch/state.h"
#include "run/batch/submit_user.h"
#include "run/batch/tasks.h"

#define TIMES 300000

static const struct batch_system system_here = {.name = "here"};

static void a_command_that_hangs(void **state)
{
        struct batch b = {
                .system = &system_here, .verbs = (1u << BATCH_VERBS_COUNT) - 1, .acts = batch_acts_new()};
        struct submit_user p = {.user = NULL};
        struct submission s = {.submit_user = &p, .name = (char *)"n", .native = (char *)"123456"};
        struct task t = {.submit_user = &p, .s = &s, .state = TASK_IN};

        (void)state;
        b.table.natives = map_new();
        b.table.all = &t;
        map_put(b.table.natives, STR("123456"), &t);
        for (unsigned i = 0; i < TIMES; i++) {
                t.acted_ms = 0; /* it is listed still, long after its end was requested */
                batch_act_unasked(&b, &t, BATCH_END);
                batch_act(&b, &t, BATCH_NUDGE);
                batch_act_unasked(&b, &t, BATCH_HOLD);
        }
        assert_true(p.acts[BATCH_HOLD].n > 100000);
        for (int verb = 0; verb < BATCH_VERBS_COUNT; verb++)
                assert_true(p.acts[verb].n < 2 << 20);
        assert_true(str_starts(buf_view(&p.acts[BATCH_END]), STR("123456 123456 ")));
        assert_int_not_equal(t.acted_ms, 0); /* requested again when it has been listed for some time */
        assert_int_equal(t.unheard, 1u << BATCH_HOLD);

        for (int verb = 0; verb < BATCH_VERBS_COUNT; verb++)
                buf_deinit(&p.acts[verb]);
        t.held = true;
        batch_acts_again(&b);
        assert_int_equal(t.wanted, 1u << BATCH_HOLD);
        map_free(b.table.natives);
        batch_acts_free(b.acts);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(a_command_that_hangs)};

        return cmocka_run_group_tests(tests, NULL, NULL);
}
