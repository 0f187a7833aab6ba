#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/query.h"
#include "sim/game.h"
#include "sim/world.h"

struct seen {
        struct sim_world *world;
        unsigned session, assigned, acked;
};

static unsigned session_of(void *arg, const char *agent)
{
        (void)agent;
        return ((struct seen *)arg)->session;
}

static void on_leave(void *arg, struct sim_action *a)
{
        struct seen *s = arg;

        assert_int_equal(a->session, s->session);
        if (a->kind == SIM_ASSIGN)
                s->assigned += (unsigned)set_count(&a->members);
        else if (a->kind == SIM_ACK)
                s->acked++;
        sim_action_deinit(a);
}

static const struct sim_world_ops ops = {session_of, on_leave};

static void begin(struct seen *s)
{
        const struct sim_world_config config = {.start_ms = 1000, .strict = true};

        *s = (struct seen){.session = 7};
        assert_int_equal(sim_world_new(&config, &ops, s, &s->world, NULL), 0);
}

static uint64_t submit(struct seen *s)
{
        struct submission sub = {.owner = STR("ann@local"), .at_ms = sim_world_now(s->world)};
        struct submission_part *p = submission_add_part(&sub);
        uint64_t id;
        bool existing;

        sub.uuid[0] = (unsigned char)sim_world_now(s->world);
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
        p->steps = 3;
        assert_int_equal(core_submit(sim_world_core(s->world), &sub, false, &id, &existing, NULL), 0);
        sim_world_answer(s->world, id);
        submission_deinit(&sub);
        return id;
}

static void offer(struct seen *s)
{
        const struct core_offer o = {.agent = "n0",
                                     .queue = "default",
                                     .serial = 1,
                                     .jobs_max = 10,
                                     .ad = STR("[ Cpus = 2; Memory = 100; Disk = 1000; ]")};

        core_agent_connected(sim_world_core(s->world), "n0");
        core_inventory(sim_world_core(s->world), "n0", NULL, 0, NULL, NULL);
        assert_int_equal(core_offer(sim_world_core(s->world), &o, NULL), 0);
}

static void a_turn_leaves_when_it_is_durable(void **state)
{
        struct seen s;

        (void)state;
        begin(&s);
        submit(&s);
        offer(&s);
        sim_world_turn(s.world);
        assert_int_equal(s.assigned, 0);
        assert_int_equal(sim_world_records(s.world), 0);
        sim_world_commit(s.world);
        assert_int_equal(s.assigned, 2);
        assert_true(sim_world_records(s.world) >= 2);
        sim_world_check(s.world);
        sim_world_compare(s.world, false, 0);
        sim_world_compare(s.world, true, 1);
        assert_null(sim_world_violated(s.world));
        sim_world_free(s.world);
}

static void a_crash_loses_what_is_not_durable(void **state)
{
        struct seen s;
        struct core_request r;
        uint64_t kept, lost;

        (void)state;
        begin(&s);
        kept = submit(&s);
        sim_world_turn(s.world);
        sim_world_commit(s.world);
        sim_world_go(s.world, 2000);
        lost = submit(&s);
        offer(&s);
        sim_world_turn(s.world);
        sim_world_crash(s.world, 1);
        assert_int_equal(s.assigned, 0);
        assert_int_equal(core_request_get(sim_world_core(s.world), kept, &r), 0);
        assert_int_equal(r.counts.idle, 3);
        assert_int_equal(core_request_get(sim_world_core(s.world), lost, &r), CORE_UNKNOWN);
        sim_world_check(s.world);
        assert_null(sim_world_violated(s.world));
        sim_world_free(s.world);
}

static void the_first_violation_is_kept(void **state)
{
        struct seen s;

        (void)state;
        begin(&s);
        sim_world_violation(s.world, "one of %d", 2);
        sim_world_violation(s.world, "another");
        assert_string_equal(sim_world_violated(s.world), "one of 2");
        sim_world_free(s.world);
}

static char *story(uint64_t seed)
{
        struct sim_game_options o = {.seed = seed, .steps = 300};
        struct sim_game_counts n;
        struct err err;
        char *text;
        size_t size;

        o.trace = open_memstream(&text, &size);
        assert_int_equal(sim_game_play(&o, &n, &err), 0);
        assert_true(n.ended > 0);
        fclose(o.trace);
        return text;
}

static void a_seed_plays_the_same_game(void **state)
{
        char *a = story(11), *b = story(11), *other = story(12);

        (void)state;
        assert_string_equal(a, b);
        assert_string_not_equal(a, other);
        free(a);
        free(b);
        free(other);
}

static void random_numbers_are_what_they_say(void **state)
{
        struct sim_random r;
        double sum = 0;
        unsigned first = 0, small = 0;

        (void)state;
        sim_random_seed(&r, 1);
        for (int i = 0; i < 20000; i++) {
                sum += sim_random_exponential(&r, 10);
                small += sim_random_lognormal(&r, 100, 2) < 100;
                first += sim_random_popular(&r, 100) == 0;
                assert_true(sim_random_popular(&r, 3) < 3);
        }
        assert_in_range((int)(sum / 20000 * 100), 950, 1050);
        assert_in_range(small, 9700, 10300);                        /* half are below the median */
        assert_in_range(first, 20000 * 13 / 100, 20000 * 17 / 100); /* log 2 / log 101 */
        assert_int_equal(sim_random_popular(&r, 0), 0);
        assert_int_equal(sim_random_below(&r, 0), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_turn_leaves_when_it_is_durable),
                cmocka_unit_test(a_crash_loses_what_is_not_durable),
                cmocka_unit_test(the_first_violation_is_kept),
                cmocka_unit_test(a_seed_plays_the_same_game),
                cmocka_unit_test(random_numbers_are_what_they_say),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
