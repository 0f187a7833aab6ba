/* Compares the index with exhaustive evaluation: random classes and queues, and what each finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/test_help.h"

#include "base/mem.h"
#include "classad/match.h"

#define PICK(list) (list)[(size_t)random() % (sizeof(list) / sizeof((list)[0]))]

/* Requirements on places: forms that can be indexed and forms that cannot, true, false, undefined and
 * errors, names in the own ad and in the other's. */
static const char *const job_clauses[] = {
        "TARGET.Arch == \"X86_64\"",
        "Arch == \"aarch64\"",
        "\"linux\" == TARGET.OpSys",
        "TARGET.OpSys =?= \"LINUX\"",
        "TARGET.OpSys =!= \"linux\"",
        "TARGET.HasDocker",
        "TARGET.HasDocker =?= true",
        "!isUndefined(TARGET.HasDocker)",
        "HasConda || TARGET.HasDocker",
        "member(\"gpu\", TARGET.Tags)",
        "stringListMember(\"a\", TARGET.Groups)",
        "regexp(\"^node[0-4]\", TARGET.Machine)",
        "TARGET.Level >= 3",
        "TARGET.Level * 2 < Wanted",
        "TARGET.Level / 0 == 1",
        "Level == MY.Wanted",
        "TARGET.LoadAvg < 0.5",
        "TARGET.Cpus > 2",
        "TARGET.Memory >= RequestMemory",
        "time() % 2 == 0",
        "TARGET.Level > time() % 4",
        "TARGET.Depends > 3",
        "TARGET[\"Level\"] > 2",
        "eval(\"TARGET.Level\") > 2",
        "eval(\"TARGET.LoadAvg * 10\") > TARGET.Level",
        "ifThenElse(TARGET.HasDocker, TARGET.Level > 1, true)",
        "undefined",
        "error",
        "5",
        "\"text\"",
        "Nothing > 3",
        "MY.Wanted > 2",
        "(TARGET.Arch == \"X86_64\" && TARGET.HasDocker) || TARGET.Level == 1",
        "TARGET.Inner.x == 2",
        "Wish == TARGET.Level",
        "MY.Requirements",
};
static const char *const queue_clauses[] = {
        "TARGET.RequestCpus <= 4",
        "TARGET.Kind == \"short\"",
        "Kind =!= \"long\"",
        "TARGET.Owner == \"ann\"",
        "TARGET.Wanted > MY.Level",
        "TARGET.Wish == 2",
        "LoadAvg < 0.7",
        "TARGET.ProcId % 2 == 0",
        "MyLimit > 1",
        "TARGET.User != \"bob@local\"",
        "true",
        "undefined",
        "Level > 1",
        "isUndefined(TARGET.Kind) || HasDocker",
};

static void add_clauses(struct buf *b, const char *const *from, size_t count, int most)
{
        int n = (int)(random() % (most + 1));

        buf_addz(b, "true");
        for (int i = 0; i < n; i++)
                buf_printf(b, " && (%s)", from[(size_t)random() % count]);
}

static const char *const owners[] = {"ann@local", "bob@local", "cid@far"};

static void submit_any(struct core *c)
{
        static const char *const wanted[] = {"1", "2", "3", "7", "\"x\"", "undefined", "TARGET.Level + 1"};
        static const char *const kinds[] = {"\"short\"", "\"LONG\"", "3", "TARGET.Level"};
        static const char *const memory[] = {"10", "500", "TARGET.Memory / 2"};
        static const char *const priority[] = {"0", "5", "-3"};
        struct buf BUF_CLEANUP requirements = {0};
        const char *pairs[32];
        size_t n = 0;

        add_clauses(&requirements, job_clauses, sizeof(job_clauses) / sizeof(job_clauses[0]), 3);
        pairs[n++] = "Requirements";
        pairs[n++] = buf_z(&requirements);
        pairs[n++] = "RequestMemory";
        pairs[n++] = PICK(memory);
        pairs[n++] = "RequestCpus";
        pairs[n++] = random() % 4 ? "1" : "6";
        pairs[n++] = "JobPrio";
        pairs[n++] = PICK(priority);
        if (random() % 2) {
                pairs[n++] = "Wanted";
                pairs[n++] = PICK(wanted);
        }
        if (random() % 2) {
                pairs[n++] = "Kind";
                pairs[n++] = PICK(kinds);
        }
        if (random() % 4 == 0) {
                pairs[n++] = "Arch"; /* its own: a bare name is this one */
                pairs[n++] = "\"aarch64\"";
        }
        if (random() % 3 == 0) {
                pairs[n++] = "Wish";
                pairs[n++] = "MY.Wanted";
        }
        pairs[n] = NULL;
        assert_true(test_submit(c, PICK(owners), (uint64_t)(1 + random() % 3), pairs) > 0);
}

static void offer_any(struct core *c, unsigned agent)
{
        static const char *const attributes[] = {
                "Arch = \"X86_64\"",
                "Arch = \"AARCH64\"",
                "OpSys = \"LINUX\"",
                "OpSys = \"linux\"",
                "HasDocker = true",
                "HasDocker = false",
                "HasDocker = 1",
                "Tags = { \"gpu\", \"x\" }",
                "Tags = \"gpu\"",
                "Groups = \"a,b\"",
                "Level = 1",
                "Level = 2",
                "Level = 5",
                "Level = error",
                "Level = TARGET.Wanted",
                "LoadAvg = 0.3",
                "LoadAvg = 0.9",
                "Depends = TARGET.Wanted + 1",
                "Depends = 4",
                "Inner = [ x = 2 ]",
                "Inner = [ x = y; y = 2 ]",
                "HasConda = Level > 1",
                "MyLimit = LoadAvg * 3",
                "Kind = \"short\"",
        };
        struct buf BUF_CLEANUP ad = {0};
        struct str list[2];
        char name[16];
        struct core_offer o = {.agent = name, .queue = "q", .serial = 1, .jobs_max = 0, .owners = list};

        snprintf(name, sizeof(name), "node%u", agent);
        buf_printf(&ad, "[ Cpus = %ld; Memory = %ld; Disk = 1000; ", 1 + random() % 8, 100 * (random() % 9));
        for (int i = 0; i < 6; i++)
                buf_printf(&ad, "%s; ", PICK(attributes));
        if (random() % 2) {
                buf_addz(&ad, "Requirements = ");
                add_clauses(&ad, queue_clauses, sizeof(queue_clauses) / sizeof(queue_clauses[0]), 2);
        }
        buf_addz(&ad, " ]");
        o.ad = buf_view(&ad);
        switch (random() % 6) {
        case 0: list[o.owner_count++] = STR("*@local"); break;
        case 1: list[o.owner_count++] = STR("cid@far"); /* fall through */
        case 2: list[o.owner_count++] = STR("ann@local"); break;
        case 3:
                list[o.owner_count++] = STR("*@local");
                list[o.owner_count++] = STR("!bob@local not he");
                break;
        default: break;
        }
        core_agent_connected(c, name);
        o.jobs_max = (uint32_t)(random() % 3);
        assert_int_equal(core_offer(c, &o, NULL), 0);
}

static bool agree(struct core *c, const struct job_class *k, const struct queue *q)
{
        if (q->job_specific)
                return match_one_way(&c->eval, k->ad, q->ad);
        return match_ads(&c->eval, k->ad, q->ad) == MATCH_YES;
}

/* Every match of both sides must be found; the trees must return the same as the list. */
static void check_queue(struct core *c, const struct queue *q, uint64_t *agreed, uint64_t *excluded)
{
        struct index_classes w;
        const struct job_class *k, *before = NULL;
        uint64_t told = 0, expected = 0;
        struct need need;
        void *value;

        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);) {
                k = value;
                if (k->idle == 0)
                        continue;
                if (agree(c, k, q)) {
                        (*agreed)++;
                        assert_true(index_meets(k, q));
                } else if (!index_meets(k, q)) {
                        (*excluded)++;
                }
                need_of(c, k, k->ad, q->ad, &need);
                expected += index_meets(k, q) && queue_allows_owner(q, k->owner) &&
                            (!k->fixed || need_fits(c, &need, q));
        }
        index_classes_begin(&w, c, q);
        while ((k = index_classes_next(&w)) != NULL) {
                told++;
                assert_true(index_meets(k, q));
                assert_true(!before || !order_class_before(k, before));
                before = k;
        }
        index_classes_end(&w);
        assert_int_equal(told, expected);
        eval_reset(&c->eval);
}

static void each_queue(struct core *c, void (*fn)(void *arg, const struct queue *q), void *arg)
{
        void *value;

        for (size_t at = 0; map_next(c->agents, &at, NULL, &value);)
                for (const struct queue *q = ((struct core_agent *)value)->queues; q; q = q->next)
                        fn(arg, q);
}

struct expected {
        struct core *core;
        const struct job_class *job_class;
        uint64_t offers, agreed, excluded;
};

static void count_offer(void *arg, const struct queue *q)
{
        struct expected *x = arg;
        const struct job_class *k = x->job_class;
        struct need need;

        need_of(x->core, k, k->ad, q->ad, &need);
        x->offers += index_meets(k, q) && q->offers && q->jobs_left && queue_allows_owner(q, k->owner) &&
                     (!k->fixed || need_fits(x->core, &need, q));
}

static void check_class(struct core *c, const struct job_class *k)
{
        struct expected x = {.core = c, .job_class = k};
        const struct queue *q, *before = NULL;
        struct index_offers w;
        uint64_t told = 0;

        each_queue(c, count_offer, &x);
        index_offers_begin(&w, k);
        while ((q = index_offers_next(&w)) != NULL) {
                told++;
                assert_true(index_meets(k, q));
                assert_true(!before || before->cpus >= q->cpus);
                before = q;
        }
        index_offers_end(&w);
        assert_int_equal(told, x.offers);
}

static void check_one(void *arg, const struct queue *q)
{
        struct expected *x = arg;

        check_queue(x->core, q, &x->agreed, &x->excluded);
}

static void check_all(struct core *c, struct expected *x)
{
        const char *bad = core_check(c);
        void *value;

        if (bad)
                fail_msg("%s", bad);
        each_queue(c, check_one, x);
        for (size_t at = 0; map_next(c->classes->by_key, &at, NULL, &value);)
                if (((struct job_class *)value)->idle)
                        check_class(c, value);
}

static void remove_one(struct core *c)
{
        uint64_t affected, last = core_request_last(c);
        struct core_command cmd = {.action = random() % 2 ? CORE_ACT_HOLD : CORE_ACT_REMOVE,
                                   .request = last ? 1 + (uint64_t)random() % last : 0};

        if (random() % 3 == 0) {
                cmd.action = CORE_ACT_PRIORITY;
                cmd.value = random() % 10;
        }
        core_act(c, &cmd, &affected, NULL);
}

static void test_finds_whoever_agrees(void **state)
{
        struct expected x = {0};

        (void)state;
        for (unsigned seed = 1; seed <= 12; seed++) {
                void *made;
                struct core *c;

                srandom(seed);
                bare_core(&made);
                c = made;
                x.core = c;
                for (unsigned step = 0; step < 150; step++) {
                        core_clock(c, 1700000000000 + 1000 * (random() % 100), 1000);
                        switch (random() % 8) {
                        case 0:
                        case 1:
                        case 2: submit_any(c); break;
                        case 3: remove_one(c); break;
                        case 4: index_slice(c, 1 + (unsigned)random() % 20); break;
                        case 5: core_withdraw(c, "node3", "q"); break;
                        default: offer_any(c, (unsigned)random() % 12); break;
                        }
                        if (step % 5 == 0)
                                check_all(c, &x);
                }
                while (index_slice(c, 10))
                        ;
                check_all(c, &x);
                bare_core_free(&made);
        }
        /* The test means something: many pairs agree, and many are left out. */
        assert_true(x.agreed > 1000 && x.excluded > 1000);
}

static const char *const simple_job[] = {
        "Requirements",
        "TARGET.Arch == \"X86_64\" && TARGET.HasDocker && TARGET.LoadAvg < 1 && "
        "TARGET.Cpus >= RequestCpus",
        "RequestCpus",
        "1",
        "RequestMemory",
        "100",
        NULL,
};

static void offer_ad(struct core *c, const char *agent, const char *ad)
{
        struct core_offer o = {.agent = agent, .queue = "q", .serial = 1, .ad = str_of(ad), .jobs_max = 4};

        core_agent_connected(c, agent);
        assert_int_equal(core_offer(c, &o, NULL), 0);
}

static const struct queue *queue_named(struct core *c, const char *agent)
{
        return agent_find(c, agent)->queues;
}

/* Offers that differ only in what moves are of one offer signature; a class sees nothing of others. */
static void test_signatures(void **state)
{
        struct core *c = *state;
        struct index_offers w;
        struct index_counts n;
        char name[16], ad[200];
        void *value = NULL;
        size_t at = 0;

        test_submit(c, "ann@local", 5, simple_job);
        for (int i = 0; i < 30; i++) {
                snprintf(name, sizeof(name), "n%d", i);
                snprintf(ad, sizeof(ad),
                         "[ Arch = \"%s\"; HasDocker = true; Cpus = %d; Memory = 1000; Disk = 1; LoadAvg = "
                         "%d.5 ]",
                         i % 10 ? "ARM64" : "x86_64", 1 + i, i);
                offer_ad(c, name, ad);
        }
        index_counts(c, &n);
        assert_int_equal(n.job_signatures, 1);
        assert_int_equal(n.offer_signatures, 2);
        assert_int_equal(n.queue_names, 2); /* Arch, HasDocker */
        assert_true(map_next(c->classes->by_key, &at, NULL, &value));
        index_offers_begin(&w, value);
        assert_string_equal(index_offers_next(&w)->agent->name, "n20");
        assert_string_equal(index_offers_next(&w)->agent->name, "n10");
        assert_string_equal(index_offers_next(&w)->agent->name, "n0");
        assert_null(index_offers_next(&w));
        index_offers_end(&w);
        core_match(c); /* n10 and n20 are too busy, by what the index doesn't know */
        assert_string_equal(buf_z(&bare_assigned), "n0/q 1 0\n");
}

/* A name that is new with a job excludes nothing at existing queues until the slices have reached them. */
static void test_new_names_come_in_slices(void **state)
{
        static const char *const job[] = {"Requirements", "TARGET.HasConda", NULL};
        struct core *c = *state;
        struct index_counts n;
        void *value = NULL;
        size_t at = 0;

        offer_ad(c, "a", "[ Cpus = 1; Memory = 1; Disk = 1; HasConda = true ]");
        offer_ad(c, "b", "[ Cpus = 1; Memory = 1; Disk = 1 ]");
        test_submit(c, "ann@local", 5, job);
        assert_true(map_next(c->classes->by_key, &at, NULL, &value));
        assert_true(index_meets(value, queue_named(c, "a")));
        assert_true(index_meets(value, queue_named(c, "b")));
        assert_true(index_slice(c, 1));
        while (index_slice(c, 1))
                ;
        assert_true(index_meets(value, queue_named(c, "a")));
        assert_false(index_meets(value, queue_named(c, "b")));
        index_counts(c, &n);
        assert_int_equal(n.offer_signatures, 2);
}

/* A value that changes with every offer is no longer indexed. */
static void test_a_name_that_moves_is_dropped(void **state)
{
        static const char *const job[] = {"Requirements", "TARGET.Temperature < 50", NULL};
        struct core *c = *state;
        void *value = NULL;
        size_t at = 0;
        char ad[100];

        test_submit(c, "ann@local", 1, job);
        assert_true(map_next(c->classes->by_key, &at, NULL, &value));
        for (int i = 0; i < 200; i++) {
                snprintf(ad, sizeof(ad), "[ Cpus = 0; Memory = 1; Disk = 1; Temperature = %d ]", 60 + i % 7);
                offer_ad(c, "a", ad);
                if (i == 20)
                        assert_false(index_meets(value, queue_named(c, "a")));
        }
        assert_true(index_meets(value, queue_named(c, "a")));
}

/* An agent of one owner sees that owner's classes only. */
static void test_owners_are_looked_up(void **state)
{
        struct core *c = *state;
        struct index_classes w;
        struct queue *q;
        char owner[32];

        for (int i = 0; i < 50; i++) {
                snprintf(owner, sizeof(owner), "u%d@local", i);
                test_submit(c, owner, 1, simple_job);
        }
        struct str list[] = {STR("u7@local"), STR("u3@local"), STR("u7@local")};
        struct core_offer o = {.agent = "mine",
                               .queue = "q",
                               .serial = 1,
                               .ad = STR("[ Arch = \"X86_64\"; HasDocker = true; LoadAvg = 0; Cpus = 4; "
                                         "Memory = 1000; Disk = 1000 ]"),
                               .jobs_max = 4,
                               .owners = list,
                               .owner_count = 3};
        core_agent_connected(c, "mine");
        assert_int_equal(core_offer(c, &o, NULL), 0);
        q = agent_find(c, "mine")->queues;
        index_classes_begin(&w, c, q);
        assert_string_equal(index_classes_next(&w)->owner, "u3@local");
        assert_string_equal(index_classes_next(&w)->owner, "u7@local");
        assert_null(index_classes_next(&w));
        index_classes_end(&w);
        core_match(c);
        assert_true(c->matching->looks < 40);
}

/* Queues without a resource are excluded; the number left is compared later. */
static void test_what_is_not_there(void **state)
{
        static const char *const job[] = {"Requirements", "TARGET.GPUs >= RequestGPUs", "RequestGPUs", "2",
                                          NULL};
        struct core *c = *state;
        void *value = NULL;
        size_t at = 0;

        test_submit(c, "ann@local", 1, job);
        offer_ad(c, "none", "[ Cpus = 1; Memory = 1; Disk = 1 ]");
        offer_ad(c, "some", "[ Cpus = 1; Memory = 1; Disk = 1; GPUs = 1; TotalGPUs = 4 ]");
        assert_true(map_next(c->classes->by_key, &at, NULL, &value));
        assert_false(index_meets(value, queue_named(c, "none")));
        assert_true(index_meets(value, queue_named(c, "some")));
}

static void submit_of(struct core *c, const char *owner, const char *requirements)
{
        static unsigned char serial;
        struct submission s = {.owner = str_of(owner), .at_ms = 1700000000000, .uuid = {254, ++serial}};
        bool existing;
        struct err err;
        uint64_t id;

        submission_add_attribute(submission_add_part(&s), STR("Requirements"), str_of(requirements), false);
        if (core_submit(c, &s, false, &id, &existing, &err) != 0)
                fail_msg("%s", err.text);
        submission_deinit(&s);
}

/* The clauses of others are indexed, however many names one user introduces. */
static void test_one_user_leaves_names_for_others(void **state)
{
        struct core *c = *state;
        struct queue *q = offer(c, "n1", "[Cpus=4; Memory=1000; Disk=1000]");
        struct index_counts n;

        for (unsigned i = 0; i < 3 * INDEX_NAMES_MAX; i++) {
                char text[64];

                snprintf(text, sizeof(text), "TARGET.MadeUp%u == 1", i);
                submit_of(c, "mallory@lab", text);
        }
        index_counts(c, &n);
        assert_true(n.queue_names <= INDEX_NAMES_MAX / 2);
        submit_of(c, "ann@lab", "TARGET.AnnsOwn == 1");
        submit_of(c, "bob@lab", "TARGET.BobsOwn == 1");
        while (index_slice(c, 1000))
                ;
        for (uint64_t id = core_request_last(c) - 1; id <= core_request_last(c); id++)
                assert_false(index_meets(request_find(c, id)->only_bucket->job_class, q));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_finds_whoever_agrees),
                cmocka_unit_test_setup_teardown(test_signatures, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_new_names_come_in_slices, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_a_name_that_moves_is_dropped, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_owners_are_looked_up, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_what_is_not_there, bare_core, bare_core_free),
                cmocka_unit_test_setup_teardown(test_one_user_leaves_names_for_others, bare_core,
                                                bare_core_free),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
