#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/config/config.h"
#include "server/import/sums.h"

#define PACKAGE "gov.bnl.star.offline.scheduler"

/* The queue and the policy of the published description, in the file around them. */
static const char published[] =
        "<?xml version=\"1.0\"?>\n"
        "<java version=\"1.4.0\" class=\"java.beans.XMLDecoder\">\n"
        "<object class=\"java.util.Hashtable\">\n"
        "<void method=\"put\"><string>RCAS</string>\n"
        "<object id=\"RCASDispatcher\" class=\"" PACKAGE
        ".dispatcher.LSFDispatcher\"><void method=\"setRetries\"><int>3</int></void></object></void>\n"
        "<void method=\"put\"><string>sge</string><object id=\"SGE\" class=\"" PACKAGE
        ".dispatcher.SGEDispatcher\"/></void>\n"
        "<void method=\"put\"><string>q</string><object id=\"NSFlocalQueueObj\" class=\"" PACKAGE
        ".Queue\">\n"
        "<void method=\"setID\"><string>localQueue</string></void>\n"
        "<void method=\"setName\"><string>star_cas_dd</string></void>\n"
        "<void method=\"setAssociatedDispatcher\"><object idref=\"RCASDispatcher\"/></void>\n"
        "<void method=\"setCluster\"><string>rcas.rcf.bnl.gov</string></void>\n"
        "<void method=\"setTimeLimit\"><int>90</int></void>\n"
        "<void method=\"setMaxMemory\"><int>440</int></void>\n"
        "<void method=\"setSearchOrderPriority\"><int>1</int></void>\n"
        "<void method=\"setType\"><string>LSF</string></void>\n"
        "<void method=\"setImplementation\"><string>local</string></void></object></void>\n"
        "<void method=\"put\"><string>q2</string><object id=\"HBT group\" class=\"" PACKAGE ".Queue\">\n"
        "<void property=\"name\"><string>hbt \"x\"</string></void><void "
        "property=\"associatedDispatcher\"><object idref=\"SGE\"/></void>\n"
        "<void property=\"timeLimit\"><int>-1</int></void></object></void>\n"
        "<void method=\"put\"><string>resonance</string><object class=\"" PACKAGE ".policy.PassivePolicy\">\n"
        "<void method=\"addQueue\"><object idref=\"HBT group\"/></void>\n"
        "<void method=\"addQueue\"><object idref=\"NSFlocalQueueObj\"/></void>\n"
        "<void method=\"addQueue\"><object idref=\"NFSQueue\"/></void></object></void>\n"
        "<void method=\"put\"><string>monitor</string><object class=\"" PACKAGE
        ".policy.AssignmentByQueueMonitorPolicy\"/></void>\n"
        "<void method=\"put\"><string>none</string><object class=\"" PACKAGE
        ".policy.ClusterAssignmentByMonitorPolicy\"/></void>\n"
        "<void method=\"put\"><string>app</string><object class=\"" PACKAGE
        ".Application\"><void method=\"setPath\"><string>/opt/star</string></void></object></void>\n"
        "<void method=\"put\"><string>init</string><object class=\"" PACKAGE
        ".initializer.XMLJobInitializer\"/></void>\n"
        "<void method=\"put\"><string>stat</string><object class=\"" PACKAGE
        ".StatisticsRecorder\"><void method=\"setFile\"><string>/f</string></void></object></void>\n"
        "</object></java>\n";

static void test_published(void **state)
{
        static const char *const told[] = {
                "f.xml:5: LSFDispatcher RCAS: no runner",
                "f.xml:5: LSFDispatcher RCAS: Retries has no equivalent",
                "f.xml:11: Queue localQueue: Cluster is looked for in",
                "f.xml:15: Queue localQueue: Type has no equivalent",
                "f.xml:16: Queue localQueue: Implementation has no equivalent",
                "f.xml:19: Queue q2: TimeLimit is no number",
                "f.xml:23: PassivePolicy resonance: addQueue refers to no queue of this file",
                "f.xml:25: ClusterAssignmentByMonitorPolicy 'none' is called none-2",
                "f.xml:28: StatisticsRecorder stat: File has no equivalent",
        };
        BUF_CLEANUP struct buf out = {0}, notes = {0};
        struct config c = {0};
        struct err err = {""};
        const struct preset *x;

        (void)state;
        if (sums_import("f.xml", str_of(published), &out, &notes, &err) != 0)
                fail_msg("%s", err.text);
        assert_int_equal(config_parse(&c, "out", buf_view(&out), &err), 0);
        x = preset_find(&c.presets, PRESET_QUEUE, STR("localQueue"));
        assert_string_equal(
                x->condition.p,
                "(TARGET.QueueName =?= \"star_cas_dd\" && TARGET.Cluster =?= \"rcas.rcf.bnl.gov\") && "
                "(MY.RequestMemory =?= undefined || MY.RequestMemory <= 440) && "
                "(MY.AllowedExecuteDuration =?= undefined || MY.AllowedExecuteDuration <= 5400) && "
                "(TARGET.Dispatcher =?= \"RCAS\")");
        assert_int_equal(x->order, 1);
        x = preset_find(&c.presets, PRESET_QUEUE, STR("q2"));
        assert_string_equal(x->condition.p,
                            "(TARGET.QueueName =?= \"hbt \\\"x\\\"\") && (TARGET.Runner =?= \"gridengine\")");
        x = preset_find(&c.presets, PRESET_POLICY, STR("resonance"));
        assert_int_equal(x->member_count, 2);
        assert_string_equal(x->members[0].name.p, "q2");
        assert_string_equal(x->attributes[0].text.p, "\"passive\"");
        assert_string_equal(preset_find(&c.presets, PRESET_POLICY, STR("monitor"))->attributes[0].text.p,
                            "\"queue_monitor\"");
        assert_string_equal(preset_find(&c.presets, PRESET_POLICY, STR("none-2"))->attributes[0].text.p,
                            "\"cluster_monitor\"");
        assert_string_equal(preset_find(&c.presets, PRESET_APPLICATION, STR("app"))->attributes[0].text.p,
                            "\"/opt/star\"");
        assert_non_null(preset_find(&c.presets, PRESET_INITIALIZER, STR("init")));
        assert_int_equal(c.presets.recorders.count, 1);
        assert_true(presets_record(&c.presets, STR("ann@lab"), "dataset"));
        for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
                if (!strstr(buf_z(&notes), told[i]))
                        fail_msg("\"%s\" is not in\n%s", told[i], buf_z(&notes));
        config_deinit(&c);
}

static void test_no_configuration(void **state)
{
        static const struct {
                const char *text, *error;
        } wrong[] = {
                {"<java><object class=\"java.util.ArrayList\"/></java>",
                 "f.xml:1: this is no configuration of SUMS"},
                {"<job/>", "f.xml:1: this is no configuration of SUMS"},
                {"page: yes\n", "f.xml:1: "},
                {"<!DOCTYPE java [<!ENTITY a \"b\">]><java>&a;</java>", "f.xml:"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                BUF_CLEANUP struct buf out = {0}, notes = {0};
                struct err err = {""};

                assert_int_equal(sums_import("f.xml", str_of(wrong[i].text), &out, &notes, &err), -EINVAL);
                if (!str_starts(str_of(err.text), str_of(wrong[i].error)))
                        fail_msg("%s", err.text);
        }
}

/* Names of settings, notes and conditions are made of whatever a file has. */
static void test_hostile_names(void **state)
{
        static const char text[] =
                "<java><object id=\"a: {x&#10;y\" class=\"x.Queue\"><void method=\"setName\">"
                "<string>'\"}\n&#9;\\</string></void><void method=\"set&#10;\"/></object>"
                "<object id=\"a: {x&#10;y\" class=\"x.PBSDispatcher\"/><object class=\"Queue\"/></java>";
        BUF_CLEANUP struct buf out = {0}, notes = {0};
        struct config c = {0};
        struct err err = {""};

        (void)state;
        if (sums_import("f.xml", str_of(text), &out, &notes, &err) != 0)
                fail_msg("%s\n%s", err.text, buf_z(&out));
        assert_int_equal(config_parse(&c, "out", buf_view(&out), &err), 0);
        assert_non_null(preset_find(&c.presets, PRESET_QUEUE, STR("a___x_y")));
        assert_non_null(preset_find(&c.presets, PRESET_QUEUE, STR("Queue")));
        assert_null(strchr(buf_z(&notes), '\t'));
        config_deinit(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_published),
                cmocka_unit_test(test_no_configuration),
                cmocka_unit_test(test_hostile_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
