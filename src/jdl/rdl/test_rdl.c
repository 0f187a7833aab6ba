/* Called with the schema file that ships: xmllint must refuse what the reader refuses by its table, and
 * accept the rest. What requests become is in tests/golden/rdl. */
#include "jdl/rdl/rdl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jdl/form/form_json.h"
#include "jdl/sums/test_schema.h"

static struct form form;
static struct err err;

static int no_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        (void)path;
        (void)ret;
        return -ENOENT;
}
static const char *no_variable(void *arg, const char *name)
{
        (void)arg;
        (void)name;
        return NULL;
}
static const struct form_world world = {.read_file = no_file, .getenv = no_variable, .cwd = "/home/u"};

static int parse(struct str text, const struct entity *entities, size_t count)
{
        static const struct condor_options options = {.filesystem_domain = "d", .submit_host = "here"};
        BUF_CLEANUP struct buf name = {0};

        form_deinit(&form);
        form_init(&form);
        err.text[0] = 0;
        return rdl_parse(&world,
                         &(struct sums_job){.file = "f",
                                            .text = text,
                                            .entities = entities,
                                            .entity_count = count,
                                            .request_id = "ID"},
                         &options, &form, &name, &err);
}

#define TASKS                                                                                                \
        "<ScriptTask ID='t'><Text>true</Text><output fromScratch='x' toURL='file:/o/x.$JOBINDEX'/>"          \
        "</ScriptTask>\n<Dataset ID='d'><input URL='file:/d/1'/></Dataset>\n"
#define ALL(elements) "<AbstractRequest>\n" elements TASKS "</AbstractRequest>"

static void knows_its_languages(void **state)
{
        static const char *const yes[] =
                {"<AbstractRequest/>", "\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <job> -->\n<AbstractRequest>",
                 "<!DOCTYPE a [<!ENTITY b 'c'>]>\n<AbstractRequest>", "# c\n---\nAbstractRequest:\n  a: b\n"},
                                 *const no[] = {"",
                                                "<job/>",
                                                "<AbstractRequests/>",
                                                "<!-- <AbstractRequest> --><job/>",
                                                "executable = a\nAbstractRequest: b\n",
                                                "<!DOCTYPE a [",
                                                "<!--"};

        (void)state;
        for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
                if (!rdl_is(str_of(yes[i])))
                        fail_msg("%s", yes[i]);
        for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
                if (rdl_is(str_of(no[i])))
                        fail_msg("%s", no[i]);
}

static void agrees_with_the_schema(void **state)
{
        static const struct {
                const char *text;
                bool right, valid; /* how often an element is there in any order, and what an ID is of, the
                                      schema cannot say */
        } all[] = {
                {ALL("<Request taskRef='t'/>"), true, true},
                {ALL("<Request ID='a' taskRef='t' datasetRef='d'><RequestName>n</RequestName></Request>"),
                 true, true},
                {ALL("<Request ID='a' taskRef='t'/><WorkFlow><MergeRequests id='m'><RequestID idref='a'/>"
                     "</MergeRequests></WorkFlow>"),
                 true, true},
                {ALL(""), false, true},
                {ALL("<Request/>"), false, false},
                {ALL("<Request taskRef='t'/><WorkFlow><MergeRequests id='m'/></WorkFlow>"), false, false},
                {ALL("<Request ID='t' taskRef='t'/>"), false, false},
                {ALL("<Request ID='1' taskRef='t'/>"), false, false},
                {ALL("<Request taskRef='none'/>"), false, true},
                {ALL("<Request taskRef='t' nProcesses='0'/>"), false, false},
                {ALL("<Request taskRef='t' other='0'/>"), false, false},
                {ALL("<Request taskRef='t'>text</Request>"), false, false},
                {ALL("<Request taskRef='t'/><Application ID='p' name='csh' type='shell'/>"), false, false},
                {ALL("<Request taskRef='t'/><Application ID='p'/>"), false, false},
                {"<Request taskRef='t'/>", false, false},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                bool right = parse(str_of(all[i].text), NULL, 0) == 0, valid = validates(all[i].text);

                if (right != all[i].right || valid != all[i].valid)
                        fail_msg("%s: the reader says %d (%s), the schema %d", all[i].text, right, err.text,
                                 valid);
        }
}

/* One request, written twice. */
static void reads_yaml_as_xml(void **state)
{
        static const char in_xml[] = "<AbstractRequest name='n'>\n"
                                     "<Request ID='a' taskRef='t' nProcesses='2' appRef='s'/>\n"
                                     "<Request ID='b' taskRef='t' datasetRef='a'/>\n"
                                     "<ScriptTask ID='t'>\n<Text>cat &lt; \"$FILELIST\"</Text>\n"
                                     "<Environment name='A'>b</Environment>\n"
                                     "<output fromScratch='x' toURL='file:/o/x.$JOBID'/></ScriptTask>\n\n"
                                     "<Application ID='s' name='sh'/>\n</AbstractRequest>",
                          in_yaml[] = "AbstractRequest:\n  name: n\n  Request:\n    - {ID: a, taskRef: t, "
                                      "nProcesses: 2, appRef: s}\n"
                                      "    - {ID: b, taskRef: t, datasetRef: a}\n  ScriptTask:\n    ID: t\n"
                                      "    Text: 'cat < \"$FILELIST\"'\n    Environment: {name: A, text: b}\n"
                                      "    output: {fromScratch: x, toURL: 'file:/o/x.$JOBID'}\n"
                                      "  Application: {ID: s, name: sh}\n";
        BUF_CLEANUP struct buf one = {0}, other = {0};

        (void)state;
        if (parse(str_of(in_xml), NULL, 0) != 0)
                fail_msg("%s", err.text);
        assert_string_equal(buf_z(&form.edges), "0-1>2");
        form_write_json(&one, &form, &(struct form_body){0});
        if (parse(str_of(in_yaml), NULL, 0) != 0)
                fail_msg("%s", err.text);
        form_write_json(&other, &form, &(struct form_body){0});
        assert_string_equal(buf_z(&one), buf_z(&other));
}

static void is_a_template(void **state)
{
        static const struct entity task = {STR("task"), STR("t")};
        const struct str text = STR(ALL("<Request taskRef='&task;'/>"));

        (void)state;
        assert_int_equal(parse(text, &task, 1), 0);
        assert_int_equal(parse(text, NULL, 0), -EINVAL);
        assert_int_equal(parse(STR("AbstractRequest: {}"), &task, 1), -EINVAL);
        assert_string_equal(err.text, "f: entities are for descriptions in XML");
}

static void bomb(const char *what, const char *says)
{
        assert_int_not_equal(parse(str_of(what), NULL, 0), 0);
        if (!strstr(err.text, says))
                fail_msg("%s", err.text);
}

static void does_not_grow(void **state)
{
        BUF_CLEANUP struct buf xml = {0}, yaml = {0}, deep = {0}, text = {0}, many = {0};

        (void)state;
        buf_addz(&xml, "<!DOCTYPE a [<!ENTITY a0 'xxxxxxxxxxxxxxxx'>");
        for (int i = 1; i < 9; i++)
                buf_printf(&xml, "<!ENTITY a%d '&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;&a%d;'>", i,
                           i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        buf_addz(&xml, "]><AbstractRequest><Request taskRef='&a8;'/></AbstractRequest>");
        bomb(buf_z(&xml), "is made of others 8 deep");
        bomb("<!DOCTYPE a [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><AbstractRequest name='&a;'/>", "f:1: ");

        buf_addz(&yaml, "AbstractRequest:\n  Request: &a0 [{taskRef: t}]\n");
        for (int i = 1; i < 9; i++)
                buf_printf(&yaml, "  a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                           i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        bomb(buf_z(&yaml), "the file holds too many values");

        buf_addz(&text, "AbstractRequest:\n  name: &a '");
        for (unsigned i = 0; i < 500000; i++)
                buf_char(&text, 'x');
        buf_addz(&text, "'\n  Request:\n");
        for (unsigned i = 0; i < 30; i++)
                buf_addz(&text, "    - {taskRef: *a}\n");
        bomb(buf_z(&text), "the file holds too much");

        for (unsigned i = 0; i < 100; i++)
                buf_addz(&deep, "<AbstractRequest>");
        bomb(buf_z(&deep), "nested too deep");

        buf_addz(&many, "AbstractRequest:\n  Request:\n");
        for (unsigned i = 0; i <= RDL_REQUESTS_MAX; i++)
                buf_addz(&many, "    - {taskRef: t}\n");
        bomb(buf_z(&many), "1000 requests at most");

        buf_reset(&text);
        for (unsigned i = 0; i <= RDL_TEXT_MAX; i++)
                buf_char(&text, ' ');
        bomb(buf_z(&text), "has more than 1 MiB");
}

/* Two merges, each of the two before: there are twice as many ways to the requests. */
static void add_merges(struct buf *text)
{
        buf_addz(text, "<MergeRequests id='m0'><RequestID idref='a'/><RequestID idref='b'/></MergeRequests>"
                       "<MergeRequests id='n0'><RequestID idref='a'/><RequestID idref='b'/></MergeRequests>");
        for (int i = 1; i < 40; i++)
                for (int k = 0; k < 2; k++)
                        buf_printf(text,
                                   "<MergeRequests id='%c%d'><RequestID idref='m%d'/><RequestID idref='n%d'/>"
                                   "</MergeRequests>",
                                   k ? 'n' : 'm', i, i - 1, i - 1);
}

static void counts_references(void **state)
{
        /* The requests, what waits for what, what is said. */
        static const char *const all[][3] = {
                {"<Request ID='a' taskRef='t'/><Request ID='b' taskRef='t'/>",
                 "<SetupRequestDependancy><RequestToBeDoneFirstID idref='a'/><RequestWaitingForInputID "
                 "idref='m39'/></SetupRequestDependancy>",
                 "more than 100000 references"},
                {"<Request ID='a' taskRef='u'/><Request ID='b' taskRef='u'/><Request ID='c' taskRef='u'/>",
                 "<SetupRequestDependancy><RequestToBeDoneFirstID idref='m39'/><RequestWaitingForInputID "
                 "idref='c'/></SetupRequestDependancy>",
                 "more than 1000000 ways"},
                {"<Request ID='a' taskRef='u'/><Request ID='b' taskRef='u'/><Request ID='c' taskRef='u'/>",
                 "<SetupRequestDependancy when='any'><RequestToBeDoneFirstID idref='m39'/>"
                 "<RequestWaitingForInputID idref='c'/></SetupRequestDependancy>",
                 "more than 1000000 ways"},
                {"<Request ID='a' taskRef='u'/><Request ID='b' taskRef='u'/>"
                 "<Request ID='c' taskRef='u' datasetRef='m39'/>",
                 "", "more than 1000000 ways"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
                BUF_CLEANUP struct buf text = {0};

                buf_printf(&text,
                           "<AbstractRequest>%s" TASKS "<ScriptTask ID='u'><Text>true</Text></ScriptTask>"
                           "<WorkFlow>",
                           all[i][0]);
                add_merges(&text);
                buf_printf(&text, "%s</WorkFlow></AbstractRequest>", all[i][1]);
                bomb(buf_z(&text), all[i][2]);
        }
}

/* Each of the requests has a script of its own, and the task has one text. */
static void one_task_of_many_requests(void **state)
{
        BUF_CLEANUP struct buf text = {0};

        (void)state;
        buf_addz(&text,
                 "<!DOCTYPE a [<!ENTITY a '0123456789'><!ENTITY b '&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;'>"
                 "<!ENTITY c '&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;'>]><AbstractRequest><ScriptTask ID='t'><Text>");
        for (int i = 0; i < 100; i++)
                buf_addz(&text, "&c;");
        buf_addz(&text, "</Text></ScriptTask>");
        for (unsigned i = 0; i < RDL_REQUESTS_MAX; i++)
                buf_addz(&text, "<Request taskRef='t'/>");
        buf_addz(&text, "</AbstractRequest>");
        bomb(buf_z(&text), "the scripts of all requests have more than 16 MiB");
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(knows_its_languages),
                cmocka_unit_test(agrees_with_the_schema),
                cmocka_unit_test(reads_yaml_as_xml),
                cmocka_unit_test(is_a_template),
                cmocka_unit_test(does_not_grow),
                cmocka_unit_test(counts_references),
                cmocka_unit_test(one_task_of_many_requests),
        };
        int rc;

        if (argc != 2)
                return 2;
        schema = argv[1];
        form_init(&form);
        rc = cmocka_run_group_tests(tests, NULL, NULL);
        form_deinit(&form);
        return rc;
}
