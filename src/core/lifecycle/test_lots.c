/* Space of stores: what does not fit waits, lots are made, used, released and expire, and nobody gets what
 * belongs to others. */
#include "core/test_story.h"

#include "core/data/data.h"
#include "core/lifecycle/lots.h"

#define AD  "[Cpus = 20; TotalCpus = 20; Memory = 1000; TotalMemory = 1000; Disk = 100000]"
#define MIB (1ull << 20)

static void configure_called(struct story *s, struct str name, uint64_t capacity_mib)
{
        const struct str dav = STR("https://dav.lab/"), far = STR("https://far.lab/");
        const struct core_store stores[] = {
                {.urls = {name, &dav, 1}, .capacity_bytes = capacity_mib * MIB, .file_bytes = 3 * MIB},
                {.urls = {STR("far"), &far, 1}}};
        const struct core_data data = {.stores = stores, .store_count = 2};

        assert_int_equal(core_data_set(s->core, &data, NULL), 0);
}

static void configure_as(struct story *s, uint64_t capacity_mib)
{
        configure_called(s, STR("dav"), capacity_mib);
}

static void configure(struct story *s)
{
        configure_as(s, 10);
        story_offer(s, "n1", AD, 20);
}

static void turn(struct story *s, int64_t ms)
{
        story_wait(s, ms);
        core_renew(s->core, "n1");
        for (unsigned i = 0; i < 100 && core_tick(s->core) == 0; i++)
                ;
        story_offer(s, "n1", AD, 20);
        assert_null(core_check(s->core));
}

static void over(struct story *s, uint64_t request, int exit_code, uint64_t written, uint64_t freed)
{
        const struct core_result r = {.request = request,
                                      .fence = 1,
                                      .exit_code = exit_code,
                                      .started_ms = s->now,
                                      .ended_ms = s->now,
                                      .bytes_out = written,
                                      .bytes_freed = freed};

        assert_true(core_result(s->core, "n1", &r));
        assert_null(core_check(s->core));
}

static int writes(struct story *s, const char *mib, const char *lot)
{
        return lot ? SUBMIT(1, "OutputDestination", "\"https://dav.lab/out\"", "TransferOutputSizeMB", mib,
                            "ReserveId", lot)
                   : SUBMIT(1, "OutputDestination", "\"https://dav.lab/out\"", "TransferOutputSizeMB", mib);
}

static int acts(struct story *s, const char *type, const char *lot)
{
        return SUBMIT(1, "OutputDestination", "\"https://dav.lab/x\"", "DapType", type, "ReserveId", lot,
                      "TransferOutputSizeMB", "6", "ReserveDuration", "100");
}

static void waits_because(struct story *s, int request, const char *text)
{
        struct err why = {""};

        assert_int_equal(core_job_space(s->core, (uint64_t)request, 0, &why), text ? 0 : CORE_UNKNOWN);
        assert_string_equal(why.text, text ? text : "");
}

static void has(struct story *s, uint64_t reserved, uint64_t files, uint64_t claimed)
{
        struct space_view v;

        assert_true(space_look(s->core, 0, &v));
        assert_int_equal(v.reserved, reserved);
        assert_int_equal(v.files, files);
        assert_int_equal(v.claimed, claimed);
        assert_true(reserved + files + claimed <= v.capacity);
}

static void test_what_does_not_fit_waits(void **state)
{
        struct story *s = *state;

        configure(s);
        for (int i = 0; i < 3; i++)
                writes(s, "4", NULL);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\nassign n1 q 2 0 f1\n");
        has(s, 0, 0, 8 * MIB);
        waits_because(
                s, 3,
                "It waits for space in the store dav: it may write 4 MiB, and of the capacity of 10 MiB "
                "files have 0, lots 0 and running jobs 8.");
        over(s, 1, 0, 3 * MIB, 0);
        core_match(s->core); /* a file of 3 MiB, a claim of 4: 3 are left */
        SAID(actions, "");
        over(s, 2, 1, 0, 0); /* it failed, and wrote nothing */
        core_match(s->core);
        SAID(actions, "assign n1 q 3 0 f1\n");
        waits_because(s, 3, NULL);
        over(s, 3, 0, MIB + 1, 0);
        has(s, 0, 4 * MIB + 1, 0);
        story_replays(s);
}

/* A transfer claims the size of a known file, and file_size for one whose size nobody says; a store without a
 * capacity counts nothing. */
static void test_what_is_claimed(void **state)
{
        struct story *s = *state;

        configure(s);
        SUBMIT(1, "OutputDestination", "\"https://dav.lab/out\"");
        SUBMIT(1, "OutputDestination", "\"https://far.lab/out\"");
        SUBMIT(1, "DapType", "\"transfer\"", "TransferInput", "\"https://far.lab/f\"", "TransferInputSizes",
               "\"1048577\"", "OutputDestination", "\"https://dav.lab/out\"");
        SUBMIT(1, "DapType", "\"rm\"", "OutputDestination", "\"https://dav.lab/out\"");
        SUBMIT(1, "TransferOutputRemaps", "\"a=b;c = https://dav.lab/c\"", "TransferOutputSizeMB", "1");
        core_match(s->core);
        has(s, 0, 0, 6 * MIB);
        assert_int_equal(core_part_space(s->core, 1, 0), 3 * MIB);
        assert_int_equal(core_part_space(s->core, 2, 0), 0);
        assert_int_equal(core_part_space(s->core, 3, 0), 2 * MIB);
        assert_int_equal(core_part_space(s->core, 5, 0), MIB);
}

static void test_a_lot(void **state)
{
        struct story *s = *state;
        const struct lot *x;

        configure(s);
        writes(s, "2", "\"run-7\"");
        core_match(s->core);
        waits_because(s, 1,
                      "It writes in the lot run-7, which is not there now: a job with dap_type = reserve and "
                      "reserve_id = run-7 makes it.");
        acts(s, "\"reserve\"", "\"run-7\"");
        core_match(s->core);
        SAID(actions, "assign n1 q 2 0 f1\n");
        has(s, 0, 0, 6 * MIB);
        over(s, 2, 0, 0, 0);
        has(s, 6 * MIB, 0, 0);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        writes(s, "5", "\"RUN-7\"");
        writes(s, "5", NULL);
        core_match(s->core);
        SAID(actions, "");
        waits_because(s, 3,
                      "It waits for space in the lot RUN-7 of the store dav: it may write 5 MiB, and of the "
                      "lot's 6 MiB 0 are used and 2 claimed by running jobs.");
        over(s, 1, 0, MIB / 2, 0);
        x = space_find(s->core, STR("dav"), STR("ann@local"), STR("run-7"));
        assert_int_equal(x->used_bytes, MIB / 2);
        core_match(s->core);
        SAID(actions, "assign n1 q 3 0 f1\n");
        over(s, 3, 0, 4 * MIB, 0);
        /* Removed in the lot: its owner may write there again; not outside. */
        acts(s, "\"rm\"", "\"run-7\"");
        core_match(s->core);
        FORGET(actions);
        over(s, 5, 0, 0, 4 * MIB);
        assert_int_equal(x->used_bytes, MIB / 2);
        has(s, 6 * MIB, 0, 0);
        /* Released: what is in it counts as a file. */
        acts(s, "\"release\"", "\"run-7\"");
        core_match(s->core);
        FORGET(actions);
        over(s, 6, 0, 0, 0);
        turn(s, 1000);
        assert_null(space_find(s->core, STR("dav"), STR("ann@local"), STR("run-7")));
        has(s, 0, MIB / 2, 5 * MIB);
        SAID(actions, "assign n1 q 4 0 f1\n");
        story_replays(s);
}

/* Nothing starts in a lot whose time is over, and it ends with the last that writes in it. */
static void test_a_lot_expires(void **state)
{
        struct story *s = *state;

        configure(s);
        acts(s, "\"reserve\"", "\"a\"");
        core_match(s->core);
        over(s, 1, 0, 0, 0);
        writes(s, "2", "\"a\"");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\nassign n1 q 2 0 f1\n");
        turn(s, 101000);
        writes(s, "2", "\"a\"");
        core_match(s->core);
        SAID(actions, "");
        waits_because(s, 3, "It writes in the lot a, whose time is over.");
        has(s, 6 * MIB, 0, 0);
        over(s, 2, 0, 2 * MIB, 0);
        core_match(s->core);
        SAID(actions, "");
        turn(s, 1000);
        has(s, 0, 2 * MIB, 0);
        story_replays(s);
        /* Reserved anew under its name, it goes on. */
        acts(s, "\"reserve\"", "\"a\"");
        core_match(s->core);
        over(s, 4, 0, 0, 0);
        core_match(s->core);
        SAID(actions, "assign n1 q 4 0 f1\nassign n1 q 3 0 f1\n");
}

static void test_reserved_again_it_grows(void **state)
{
        struct story *s = *state;

        configure_as(s, 20);
        story_offer(s, "n1", AD, 20);
        for (unsigned i = 1; i < 3; i++) {
                acts(s, "\"reserve\"", "\"a\"");
                core_match(s->core);
                over(s, i, 0, 0, 0);
        }
        has(s, 12 * MIB, 0, 0);
        acts(s, "\"reserve\"", "\"b\"");
        core_match(s->core);
        over(s, 3, 1, 0, 0); /* it failed: nothing is reserved */
        has(s, 12 * MIB, 0, 0);
        s->owner = "bob@local";
        acts(s, "\"release\"", "\"a\""); /* there is none of his */
        core_match(s->core);
        over(s, 4, 0, 0, 0);
        turn(s, 1000);
        has(s, 12 * MIB, 0, 0);
        assert_int_equal(core_lot_release(s->core, STR("dav"), STR("bob@local"), STR("a"), NULL),
                         CORE_UNKNOWN);
        assert_int_equal(core_lot_release(s->core, STR("dav"), STR("ann@local"), STR("a"), NULL), 0);
        turn(s, 1000);
        has(s, 0, 0, 0);
        story_replays(s);
}

/* An agent, or a job at it, says what it likes. */
static void test_lies_have_bounds(void **state)
{
        struct story *s = *state;

        configure(s);
        writes(s, "2", NULL);
        core_match(s->core);
        over(s, 1, 0, UINT64_MAX, 0);
        has(s, 0, 2 * MIB, 0);
        s->owner = "bob@local";
        SUBMIT(1, "DapType", "\"rm\"", "OutputDestination", "\"https://dav.lab/out\"");
        SUBMIT(1, "DapType", "\"rm\"", "OutputDestination", "\"https://dav.lab/out\"", "ReserveId", "\"a\"");
        writes(s, "1", NULL);
        core_match(s->core);
        over(s, 2, 0, 0, UINT64_MAX); /* he has no file there */
        over(s, 3, 0, 0, UINT64_MAX);
        over(s, 4, 0, MIB, UINT64_MAX);
        has(s, 0, 3 * MIB, 0);
        SUBMIT(1, "DapType", "\"rm\"", "OutputDestination", "\"https://dav.lab/out\"");
        core_match(s->core);
        over(s, 5, 0, 0, UINT64_MAX);
        has(s, 0, 2 * MIB, 0);
        story_replays(s);
}

static void test_what_the_store_says(void **state)
{
        struct story *s = *state;
        struct core_link link = {
                .store = STR("dav"), .latency_us = 1, .free_known = true, .free_bytes = 3 * MIB};

        configure(s);
        core_links(s->core, "n1", &link, 1);
        writes(s, "2", NULL);
        writes(s, "2", NULL);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        waits_because(
                s, 2,
                "It waits for space in the store dav: it may write 2 MiB, and of the capacity of 10 MiB "
                "files have 0, lots 0 and running jobs 2. The store itself says that 3 MiB are free.");
        over(s, 1, 0, 2 * MIB, 0);
        core_match(s->core);
        SAID(actions, ""); /* what was written since is not free any more */
        link.free_bytes = 100 * MIB;
        core_links(s->core, "n1", &link, 1);
        core_match(s->core);
        SAID(actions, "assign n1 q 2 0 f1\n");
        has(s, 0, 2 * MIB, 2 * MIB);
}

/* A class whose limits depend on the place waits at no limit of its own, and is matched again all the same.
 */
static void test_it_grows_for_limits_of_places_too(void **state)
{
        struct story *s = *state;
        struct core_link link = {
                .store = STR("dav"), .latency_us = 1, .free_known = true, .free_bytes = 3 * MIB};

        configure(s);
        core_links(s->core, "n1", &link, 1);
        for (int i = 0; i < 2; i++)
                SUBMIT(1, "OutputDestination", "\"https://dav.lab/out\"", "TransferOutputSizeMB", "2",
                       "ConcurrencyLimits", "strcat(\"db.\", TARGET.Cpus)");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        over(s, 1, 0, 2 * MIB, 0);
        core_match(s->core);
        SAID(actions, "");
        link.free_bytes = 100 * MIB;
        core_links(s->core, "n1", &link, 1);
        core_match(s->core);
        SAID(actions, "assign n1 q 2 0 f1\n");
}

/* An agent says nothing of a store that others must believe: what any of those says that are connected is
 * believed, and with the last of them what is known goes. */
static void test_what_one_agent_says_of_a_store(void **state)
{
        struct story *s = *state;
        struct core_link link = {.store = STR("dav"), .latency_us = 1, .free_known = true};
        struct space_view v;

        configure(s);
        core_agent_connected(s->core, "n2");
        core_links(s->core, "n2", &link, 1); /* it lies */
        writes(s, "4", NULL);
        core_match(s->core);
        SAID(actions, ""); /* nobody knows better */
        link.free_bytes = 8 * MIB;
        core_links(s->core, "n1", &link, 1);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        over(s, 1, 0, 4 * MIB, 0);
        for (unsigned i = 0; i < 3; i++) { /* however often */
                link.free_bytes = i * MIB;
                core_links(s->core, "n2", &link, 1);
        }
        writes(s, "4", NULL);
        writes(s, "1", NULL);
        core_match(s->core); /* 8 were free, and 4 have been written since */
        SAID(actions, "assign n1 q 2 0 f1\n");
        over(s, 2, 0, 4 * MIB, 0);
        core_match(s->core);
        SAID(actions, "");
        link.free_bytes = 2 * MIB;
        core_links(s->core, "n2", &link, 1);
        link.free_bytes = 5 * MIB;
        core_links(s->core, "n1", &link, 1);
        core_agent_away(s->core, "n1");
        core_agent_connected(s->core, "n1");
        assert_true(space_look(s->core, 0, &v));
        assert_int_equal(v.measured_free, 2 * MIB); /* by n2 */
        core_agent_away(s->core, "n2");
        assert_true(space_look(s->core, 0, &v));
        assert_int_equal(v.measured_free, UINT64_MAX);
        assert_null(core_check(s->core));
}

/* A store gets another name while a job writes in a lot that it has under the old one. */
static void test_a_store_that_is_renamed(void **state)
{
        struct story *s = *state;

        configure(s);
        acts(s, "\"reserve\"", "\"a\"");
        core_match(s->core);
        over(s, 1, 0, 0, 0);
        writes(s, "2", "\"a\"");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\nassign n1 q 2 0 f1\n");
        configure_called(s, STR("new"), 10);
        over(s, 2, 0, MIB, 0);
        has(s, 0, MIB, 0);
        story_replays(s);
}

/* The server is started again, so much later. */
static void restart(struct story *s, int64_t ms)
{
        BUF_CLEANUP struct buf snapshot = {0};

        core_snapshot(s->core, &snapshot);
        core_free(s->core);
        s->now += ms;
        s->core = story_core(s, false);
        configure_as(s, 10);
        assert_int_equal(core_restore(s->core, buf_view(&snapshot), NULL), 0);
}

/* What an expression says of the lot may be something else when the server is started again. */
static void says_else_after_a_restart(struct story *s, const char *type, const char *lot)
{
        configure(s);
        SUBMIT(1, "OutputDestination", "\"https://dav.lab/out\"", "DapType", type, "ReserveId", lot,
               "TransferOutputSizeMB", "1");
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        restart(s, 200000000);
        over(s, 1, 0, MIB, MIB);
}

static void test_another_lot_after_a_restart(void **state)
{
        says_else_after_a_restart(*state, "\"rm\"", "ifThenElse(time() > 1700100000, \"a/b\", \"a\")");
}

static void test_another_type_after_a_restart(void **state)
{
        says_else_after_a_restart(*state, "ifThenElse(time() > 1700100000, \"reserve\", \"transfer\")",
                                  "undefined");
}

static void test_an_administrator_knows_better(void **state)
{
        struct story *s = *state;
        struct err why;

        configure(s);
        assert_int_equal(core_space_set(s->core, STR("dav"), STR("ann@local"), 9 * MIB, NULL), 0);
        writes(s, "2", NULL);
        core_match(s->core);
        SAID(actions, "");
        has(s, 0, 9 * MIB, 0);
        assert_int_equal(core_space_set(s->core, STR("dav"), STR("ann@local"), 0, NULL), 0);
        core_match(s->core);
        SAID(actions, "assign n1 q 1 0 f1\n");
        assert_int_equal(core_space_set(s->core, STR("far"), STR("ann@local"), 0, &why), CORE_UNKNOWN);
        assert_string_equal(why.text, "there is no store 'far' with a capacity");
        assert_int_equal(core_space_set(s->core, STR("dav"), STR("ann"), 0, &why), CORE_INVALID);
        story_replays(s);
        /* A smaller store: what is there stays, and nothing more begins. */
        configure_as(s, 1);
        writes(s, "1", NULL);
        core_match(s->core);
        SAID(actions, "");
        configure_as(s, 0);
        core_match(s->core);
        SAID(actions, "assign n1 q 2 0 f1\n");
}

static void refused(struct story *s, const char *const *pairs, const char *why)
{
        struct err err = {""};

        assert_true(story_submit(s, 1, pairs, &err) < 0);
        assert_non_null(strstr(err.text, why));
}
#define REFUSED(why, ...) refused(s, (const char *const[]){"Requirements", "true", __VA_ARGS__, NULL}, why)

static void test_refusals(void **state)
{
        struct story *s = *state;

        configure(s);
        REFUSED("the name of a lot has", "DapType", "\"reserve\"", "OutputDestination",
                "\"https://dav.lab/\"", "TransferOutputSizeMB", "1");
        REFUSED("the name of a lot has", "ReserveId", "\"a/b\"", "OutputDestination", "\"https://dav.lab/\"");
        REFUSED("reserve_size:", "DapType", "\"reserve\"", "ReserveId", "\"a\"", "OutputDestination",
                "\"https://dav.lab/\"");
        REFUSED("writes to none", "DapType", "\"release\"", "ReserveId", "\"a\"", "OutputDestination",
                "\"https://far.lab/\"");
        REFUSED("the same for all jobs", "ReserveId", "\"$(Process)\"", "OutputDestination",
                "\"https://dav.lab/\"");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORY(test_what_does_not_fit_waits),
                STORY(test_what_is_claimed),
                STORY(test_a_lot),
                STORY(test_a_lot_expires),
                STORY(test_reserved_again_it_grows),
                STORY(test_lies_have_bounds),
                STORY(test_what_the_store_says),
                STORY(test_it_grows_for_limits_of_places_too),
                STORY(test_what_one_agent_says_of_a_store),
                STORY(test_a_store_that_is_renamed),
                STORY(test_another_lot_after_a_restart),
                STORY(test_another_type_after_a_restart),
                STORY(test_an_administrator_knows_better),
                STORY(test_refusals),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
