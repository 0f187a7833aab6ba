#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config/config.h"

#define SETTINGS                                                                                             \
        "policies:\n"                                                                                        \
        "  night: {placement: passive, queues: [long, short]}\n"                                             \
        "  lab: {queues: [short], users: ['*@lab'], attributes: {JobPrio: 3}}\n"                             \
        "dispatchers:\n"                                                                                     \
        "  farm: {places: 'TARGET.AgentName == \"farm\"'}\n"                                                 \
        "virtual_queues:\n"                                                                                  \
        "  short: {places: 'TARGET.QueueName == \"short\"', time_limit: 90m, max_memory: 4G, search_order: " \
        "1}\n"                                                                                               \
        "  long: {dispatcher: farm, users: [ann@lab], search_order: 7}\n"                                    \
        "applications:\n"                                                                                    \
        "  root: {command: /opt/root, environment: {ROOTSYS: /opt, OPTS: 'a b'}, requirements: HasRoot}\n"   \
        "initializers:\n"                                                                                    \
        "  web: {attributes: {JobPrio: -5, Note: '\"web\"'}, policy: lab, environment: {VIA: web}}\n"

static struct config parse(const char *text)
{
        struct config c = {0};
        struct err err = {""};

        if (config_parse(&c, "f", str_of(text), &err) != 0)
                fail_msg("%s", err.text);
        return c;
}

/* A request of one part, with attributes given as name, text pairs. */
static int apply(const struct config *c, const char *who, const char *const *attributes, struct submission *s,
                 struct arena *arena, struct err *err)
{
        struct submission_part *p;

        *s = (struct submission){.part_count = 0};
        p = submission_add_part(s);
        for (; attributes && *attributes; attributes += 2)
                submission_add_attribute(p, str_of(attributes[0]), str_of(attributes[1]), false);
        return presets_apply(&c->presets, who, s, arena, err);
}

static void expect(const struct submission *s, const char *name, const char *text)
{
        for (size_t i = 0; i < s->parts[0].attribute_count; i++)
                if (str_ieqz(s->parts[0].attributes[i].name, name)) {
                        struct str had = s->parts[0].attributes[i].text;

                        if (!text || !str_eqz(had, text))
                                fail_msg("%s is " STR_FMT, name, STR_ARG(had));
                        return;
                }
        if (text)
                fail_msg("there is no %s", name);
}

#define SHORT                                                                                                \
        "(TARGET.QueueName == \"short\") && (MY.RequestMemory =?= undefined || MY.RequestMemory <= 4096) "   \
        "&& "                                                                                                \
        "(MY.AllowedExecuteDuration =?= undefined || MY.AllowedExecuteDuration <= 5400)"
#define LONG "(TARGET.AgentName == \"farm\")"

static void test_queues_and_policies(void **state)
{
        const char *const queue[] = {"JobVirtualQueue", "\"short\"", "Requirements", "A || B", NULL},
                          *const policy[] = {"JobPolicy", "\"night\"", NULL},
                          *const ranked[] = {"JobPolicy", "\"night\"", "Rank", "Memory", NULL};
        struct config c = parse(SETTINGS);
        struct submission s;
        struct arena arena = {0};
        struct err err = {""};

        (void)state;
        assert_int_equal(apply(&c, "bob@far", queue, &s, &arena, &err), 0);
        expect(&s, "Requirements", "(A || B) && " SHORT);
        expect(&s, "AllowedExecuteDuration", "5400");
        expect(&s, "Rank", NULL);
        submission_deinit(&s);
        assert_int_equal(apply(&c, "ann@lab", policy, &s, &arena, &err), 0);
        expect(&s, "Requirements", "((" SHORT ") || (" LONG "))");
        expect(&s, "Rank", "ifThenElse(" SHORT ", -1, ifThenElse(" LONG ", -7, -9223372036854775807))");
        expect(&s, "PlacementPolicy", "\"passive\"");
        submission_deinit(&s);
        /* who may not use one of its queues has the others, and a rank of his own stays */
        assert_int_equal(apply(&c, "bob@far", ranked, &s, &arena, &err), 0);
        expect(&s, "Requirements", "((" SHORT "))");
        expect(&s, "Rank", "Memory");
        submission_deinit(&s);
        arena_deinit(&arena);
        config_deinit(&c);
}

static void test_applications_and_initializers(void **state)
{
        const char *const root[] = {"JobApplication", "\"root\"", "Environment", "\"A=1\"",
                                    "Arguments",      "\"x\"",    NULL},
                          *const web[] = {"JobInitializer", "\"web\"", "JobPrio", "7", NULL},
                          *const none[] = {"JobPolicy", "\"none\"", NULL};
        struct config c = parse(SETTINGS "defaults: {initializer: web, policy: night}\n");
        struct submission s;
        struct arena arena = {0};
        struct err err = {""};

        (void)state;
        assert_int_equal(apply(&c, "ann@lab", root, &s, &arena, &err), 0);
        expect(&s, "Cmd", "\"/opt/root\"");
        expect(&s, "TransferExecutable", "false");
        expect(&s, "Environment", "\"ROOTSYS=/opt 'OPTS=a b' VIA=web A=1\"");
        expect(&s, "Requirements", "(HasRoot) && ((" SHORT "))");
        expect(&s, "Note", "\"web\"");
        submission_deinit(&s);
        assert_int_equal(apply(&c, "ann@lab", web, &s, &arena, &err), 0);
        expect(&s, "JobPrio", "7");
        expect(&s, "JobPolicy", "\"lab\"");
        submission_deinit(&s);
        assert_int_equal(apply(&c, "ann@lab", none, &s, &arena, &err), 0);
        expect(&s, "Requirements", NULL);
        expect(&s, "PlacementPolicy", NULL);
        submission_deinit(&s);
        /* an initializer that names what the user may not use is no way around it */
        assert_int_equal(apply(&c, "bob@far", web, &s, &arena, &err), -EACCES);
        submission_deinit(&s);
        arena_deinit(&arena);
        config_deinit(&c);
}

static void test_who_may(void **state)
{
        static const struct {
                const char *name, *text;
                int result;
                const char *error;
        } tried[] = {
                {"JobVirtualQueue", "\"long\"", -EACCES, "you may not use the virtual_queue 'long'"},
                {"JobPolicy", "\"lab\"", -EACCES, "you may not use the policy 'lab'"},
                {"JobPolicy", "\"day\"", -EINVAL, "there is no policy 'day' here"},
                {"JobPolicy", "\"fifo\"", -EINVAL, "there is no policy 'fifo' here"},
                {"JobPolicy", "\"cluster_monitor\"", 0, ""},
                {"JobPolicy", "strcat(\"l\", \"ab\")", -EINVAL, "JobPolicy must be a name in quotes"},
                {"PlacementPolicy", "\"near\"", -EINVAL, "PlacementPolicy must be cost, blind"},
        };
        const char *const sly[] = {"JobVirtualQueue", "\"short\"", "Requirements", "true) || (true", NULL};
        struct config c = parse(SETTINGS "defaults: {virtual_queue: long}\n");
        struct arena arena = {0};

        (void)state;
        for (size_t i = 0; i < sizeof(tried) / sizeof(tried[0]); i++) {
                const char *const attributes[] = {tried[i].name, tried[i].text, NULL};
                struct err err = {""};
                struct submission s;

                assert_int_equal(apply(&c, "bob@far", attributes, &s, &arena, &err), tried[i].result);
                assert_true(str_starts(str_of(err.text), str_of(tried[i].error)));
                if (tried[i].result == 0) /* the default is not his, and is no error */
                        expect(&s, "JobVirtualQueue", NULL);
                assert_int_equal(presets_check(&c.presets, "bob@far", &s, &err),
                                 strcmp(tried[i].name, "PlacementPolicy") ? tried[i].result : 0);
                submission_deinit(&s);
        }
        for (int i = 0; i < 1; i++) {
                struct err err = {""};
                struct submission s;

                assert_int_equal(apply(&c, "bob@far", sly, &s, &arena, &err), -EINVAL);
                assert_true(str_starts(str_of(err.text), STR("Requirements: ")));
                submission_deinit(&s);
        }
        arena_deinit(&arena);
        config_deinit(&c);
}

static void test_mistakes(void **state)
{
        static const struct {
                const char *text, *error;
        } wrong[] = {
                {"policies: {a: {queues: [x]}}\n", "f:1: there is no virtual_queue 'x'"},
                {"policies:\n  a:\n    placement: fifo\n", "f:3: placement must be cost, blind"},
                {"policies: {none: {}}\n", "f:1: none is no name"},
                {"virtual_queues:\n  a: {users: [ann@lab]}\n", "f:2: a needs 'places'"},
                {"virtual_queues:\n  a:\n    places: '1 +'\n", "f:3: places "},
                {"virtual_queues: {a: {places: 'x == \"$(b)\"'}}\n", "f:1: places has \"$(\""},
                {"virtual_queues: {a: {places: 'true', time_limit: 0}}\n", "f:1: time_limit must be"},
                {"virtual_queues: {a: {dispatcher: d}}\n", "f:1: there is no dispatcher 'd'"},
                {"applications: {a: {}}\n", "f:1: a "},
                {"applications: {a: {command: bin/a}}\n", "f:1: command must be an absolute path"},
                {"applications: {a: {command: /a, environment: {B: \"x\\ny\"}}}\n", "f:1: B has "},
                {"initializers: {a: {policy: b}}\n", "f:1: there is no policy 'b'"},
                {"initializers: {a: {users: [ann]}}\n", "f:1: 'ann' is not a user"},
                {"initializers: {a: {attributes: {'x y': 1}}}\n", "f:1: x y is not the name of an attribute"},
                {"initializers: {a: {attribute: {}}}\n", "f:1: "},
                {"catalogs: {a: {query: 'run=1,limit=5'}}\n", "f:1: query must have no where and no limit"},
                {"catalogs: {a: {query: 'run'}}\n", "f:1: query "},
                {"catalogs: {a: {users: [x]}}\n", "f:1: 'x' is not a user"},
                {"recorders: {a: {keywords: [memory_of]}}\n",
                 "f:1: 'memory_of' is no keyword of submit files"},
                {"recorders: {a: {users: [x]}}\n", "f:1: 'x' is not a user"},
                {"recorders: {a: {file: x}}\n", "f:1: there is no setting 'file'"},
                {"\ndefaults: {policy: b}\n", "f:2: there is no policy 'b'"},
                {"defaults: {policies: b}\n", "f:1: "},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                struct config c = {0};
                struct err err = {""};

                assert_int_equal(config_parse(&c, "f", str_of(wrong[i].text), &err), -EINVAL);
                if (!str_starts(str_of(err.text), str_of(wrong[i].error)))
                        fail_msg("%s: %s", wrong[i].text, err.text);
                config_deinit(&c);
        }
}

static void test_changes(void **state)
{
        struct config a = parse("page: yes\npolicies: {a: {}}\nadmins: [ann@lab]\n"),
                      b = parse("admins: ['ann@lab']\npolicies: {a: {placement: passive}}\n");
        BUF_CLEANUP struct buf now = {0}, later = {0};

        (void)state;
        config_changes(&a, &b, true, &now);
        config_changes(&a, &b, false, &later);
        assert_string_equal(buf_z(&now), "policies");
        assert_string_equal(buf_z(&later), "page");
        config_deinit(&a);
        config_deinit(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_queues_and_policies),
                cmocka_unit_test(test_applications_and_initializers),
                cmocka_unit_test(test_who_may),
                cmocka_unit_test(test_mistakes),
                cmocka_unit_test(test_changes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
