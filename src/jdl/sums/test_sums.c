/* Called with the schema file that ships: xmllint must refuse what the reader refuses by its table, and
 * accept the rest. */
#include "jdl/sums/sums.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "jdl/sums/test_schema.h"

static int no_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        if (strcmp(path, "/lists/a") != 0)
                return -2;
        buf_addz(ret, "/d/one.MuDst.root\nfile://n1/d/two.root\nroot://x//d/three.root\n");
        return 0;
}
static int some_paths(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                      void *to)
{
        (void)arg;
        if (want == 'd' && strcmp(pattern, "/out/there") == 0)
                each(to, STR("/out/there/"));
        if (want != 'd' && strstr(pattern, "*.C")) {
                each(to, STR("/home/u/a.C"));
                each(to, STR("/home/u/b.C"));
        }
        return 0;
}
static const char *get_environment(void *arg, const char *name)
{
        (void)arg;
        return strcmp(name, "USER") == 0 ? "ann" : NULL;
}
static int run(void *arg, const char *command, struct buf *ret)
{
        (void)arg;
        if (strcmp(command, "list of mine") != 0)
                return -125;
        buf_addz(ret, "/d/c1\n/d/c2\n");
        return 0;
}
static int catalog(void *arg, struct str name, struct str query, bool events, const char *order,
                   void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        static const char *const hosts[] = {"n1", "n2"};

        (void)arg;
        (void)err;
        if (name.n && !str_eqz(name, "plug"))
                return -2;
        for (unsigned i = 0; i < 4 && str_search(query, STR("none")) < 0; i++) {
                char url[64], value[8];
                const struct form_replica replicas[] = {
                        {str_make(url, (size_t)snprintf(url, sizeof(url), "file:/d/f%u", i)),
                         str_of(hosts[i % 2]), STR("local")},
                        {STR("file:/shared/f"), STR_NONE, STR("NFS")}};

                snprintf(value, sizeof(value), "%u", 9 - i);
                fn(to, &(struct form_found){.events = events ? 10 : 0,
                                            .order = order ? str_of(value) : STR_NONE,
                                            .replicas = replicas,
                                            .replica_count = str_search(query, STR("two")) < 0 ? 1 : 2});
        }
        return 0;
}

static const struct form_world world = {.read_file = no_file,
                                        .glob = some_paths,
                                        .getenv = get_environment,
                                        .run = run,
                                        .catalog = catalog,
                                        .cwd = "/home/u",
                                        .now_s = 1};
static const struct condor_options options = {.filesystem_domain = "d", .submit_host = "here"};
static struct form form;
static struct sums_told told;
static struct err err;

static int parse(const char *text)
{
        form_deinit(&form);
        sums_told_deinit(&told);
        form_init(&form);
        told = (struct sums_told){0};
        err.text[0] = 0;
        return sums_parse(&world, &(struct sums_job){.file = "f", .text = str_of(text), .request_id = "ID"},
                          &options, &form, &told, &err);
}

#define JOB(attributes, elements)                                                                            \
        "<job " attributes ">\n<command>run $FILELIST</command><stdout URL=\"file:/o/$JOBID\"/>\n" elements  \
        "\n</job>"

static const char *attribute(const char *name)
{
        const struct form_attribute *a = form_get(&form.parts[0], str_of(name));

        return a ? a->text : "(none)";
}

static void accept(const char *text)
{
        if (parse(text) != 0)
                fail_msg("%s", err.text);
        assert_true(validates(text));
}

static const char *items(void)
{
        static char text[2000];
        struct str s = buf_view(&form.parts[0].items);

        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        for (char *p = text; *p; p++)
                *p = *p == '\x1f' ? '|' : *p;
        return text;
}

static void test_plain(void **state)
{
        (void)state;
        accept(JOB("name='a $x' nProcesses='5' minMemory='15' maxMemory='20' minStorageSpace='7' "
                   "maxWallTime='3'",
                   "<stderr URL='file:e.$JOBINDEX'/><output fromScratch='*.root' toURL='file:/out/there'/>"
                   "<output fromScratch='$SCRATCH/h.$PROCESSID' toURL='https://s/$JOBID'/>"
                   "<SandBox installer='ZIP'><Package name='p'><File>file: ./x.C/ "
                   "</File><File>file:*.C</File></Package></SandBox>"));
        assert_int_equal(form_members(&form), 5);
        assert_string_equal(attribute("Out"), "\"/o/ID_$(Process)\"");
        assert_string_equal(attribute("Err"), "\"/home/u/e.$(Process)\"");
        assert_string_equal(attribute("TransferOutput"), "\"*.root,h.$(Process)\"");
        assert_string_equal(attribute("TransferOutputRemaps"),
                            "\"*.root=/out/there/;h.$(Process)=https://s/ID_$(Process)\"");
        assert_string_equal(attribute("TransferInput"), "\"/home/u/x.C,/home/u/a.C,/home/u/b.C\"");
        assert_string_equal(attribute("ShouldTransferFiles"), "\"IF_NEEDED\"");
        assert_string_equal(attribute("RequestMemory"), "20");
        assert_string_equal(attribute("RequestDisk"), "7168");
        assert_string_equal(attribute("AllowedExecuteDuration"), "180");
        assert_string_equal(attribute("DatasetList"), "(none)");
        assert_non_null(strstr(attribute("Environment"), "JOBID=ID_$(Process)"));
        accept(JOB("", ""));
        assert_string_equal(attribute("TransferOutput"), "\"\"");
}

static void test_shell(void **state)
{
        (void)state;
        accept(JOB("", ""));
        assert_non_null(strstr(buf_z(&told.script), "exec csh .sums.csh\n"));
        accept(JOB("", "<shell>/bin/bash -l</shell>"));
        assert_non_null(strstr(buf_z(&told.script), "exec /bin/bash -l .sums.csh\n"));
        accept(JOB("", "<shell>singularity exec -e x.sif</shell>"));
        assert_non_null(strstr(buf_z(&told.script), "exec singularity exec -e x.sif csh .sums.csh\n"));
        accept(JOB("", "<shell>/bin/sh -c 'exec singularity exec x.sif</shell>"));
        assert_non_null(
                strstr(buf_z(&told.script), "exec /bin/sh -c 'exec singularity exec x.sif csh .sums.csh'\n"));
}

static void test_inputs(void **state)
{
        (void)state;
        accept(JOB("maxFilesPerProcess='2'", "<input URL='catalog:star.bnl.gov?a=b' nFiles='all'/>"));
        assert_non_null(strstr(items(), "TARGET.Machine == \"n1\" || TARGET.AgentName == \"n1\"|0|1|2\n"));
        assert_non_null(strstr(items(), "TARGET.AgentName == \"n2\"|0|3|2\n"));
        assert_string_equal(buf_z(&form.lists[0].text), "/d/f0\n/d/f2\n/d/f1\n/d/f3\n");
        accept(JOB("maxFilesPerProcess='2'", "<input URL='catalog:plug?a=b' nFiles='all'/>"));
        assert_string_equal(buf_z(&form.lists[0].text), "/d/f0\n/d/f2\n/d/f1\n/d/f3\n");
        accept(JOB("maxFilesPerProcess='2' fileListSyntax='rootd'",
                   "<input URL='catalog:?a=b' nFiles='3'/>"));
        assert_string_equal(buf_z(&form.lists[0].text),
                            "root://n1//d/f0\nroot://n1//d/f2\nroot://n2//d/f1\n");
        accept(JOB("fileListSyntax='xrootd' inputOrder='n'", "<input URL='catalog:?a=b' nFiles='all'/>"));
        assert_string_equal(items(), "true|0|1|4\n");
        assert_string_equal(buf_z(&form.lists[0].text),
                            "root://n2//d/f3\nroot://n1//d/f2\nroot://n2//d/f1\nroot://n1//d/f0\n");
        accept(JOB("", "<input URL='catalog:?two' nFiles='all'/>"));
        assert_string_equal(buf_z(&form.lists[0].text), "/shared/f\n/shared/f\n/shared/f\n/shared/f\n");
        accept(JOB("", "<input URL='catalog:?two' nFiles='all' preferStorage='local'/>"));
        assert_string_equal(buf_z(&form.lists[0].text), "/d/f0\n/d/f2\n/d/f1\n/d/f3\n");
        accept(JOB("", "<input URL='catalog:?two' nFiles='3' singleCopy='false'/>"));
        assert_string_equal(buf_z(&form.lists[0].text), "/d/f0\n/shared/f\n/d/f1\n");
        accept(JOB("maxFilesPerProcess='20' limitByEvents='true'",
                   "<input URL='catalog:?a=b' nFiles='30'/>"));
        assert_string_equal(buf_z(&form.lists[0].text), "/d/f0\n/d/f2\n/d/f1\n");
        accept(JOB("", "<input URL='filelist:/lists/a'/><input URL='command:list of mine'/>"
                       "<input URL='file:/x/$USER'/><input URL='file://n9/y'/>"));
        assert_string_equal(
                buf_z(&form.lists[0].text),
                "/d/one.MuDst.root\n/d/c1\n/d/c2\n/d/two.root\nroot://x//d/three.root\n/x/ann\n/y\n");
        accept(JOB("filesPerHour='0.5' maxWallTime='240' softLimits='true'",
                   "<input URL='command:list of mine' nFiles='all'/>"
                   "<output fromScratch='$FILEBASENAME.x' toURL='file:/out/'/>"));
        assert_string_equal(attribute("ExpectedRunTime"), "$(DatasetCount) * 3600.0 / 0.5");
        assert_string_equal(attribute("AllowedExecuteDuration"), "(none)");
        assert_string_equal(attribute("TransferOutput"), "\"$(DatasetBase).x\"");
        assert_string_equal(attribute("TransferOutputRemaps"), "\"$(DatasetBase).x=/out/$(DatasetBase).x\"");
        assert_non_null(strstr(items(), "|0|1|2|c1\n"));
}

static void test_told(void **state)
{
        (void)state;
        accept(JOB("simulateSubmission='true'",
                   "<Generator><Location>gen</Location><ReportLocation>/r/$USER</ReportLocation></Generator>"
                   "<ResourceUsage><Memory><MinMemory>2024</MinMemory></Memory><StorageSpace><MinStorage>5</"
                   "MinStorage>"
                   "</StorageSpace><Priority>7</Priority></ResourceUsage><Action>x<y/></Action>"));
        assert_true(told.simulate);
        assert_string_equal(told.report_folder, "/r/ann");
        assert_string_equal(told.script_folder, "gen");
        assert_string_equal(attribute("RequestMemory"), "2024");
        assert_string_equal(attribute("JobPrio"), "7");
        assert_int_equal(form.warning_count, 1);
}

struct wrong {
        const char *text, *says;
        bool structure; /* the schema file refuses it as well */
};
static const struct wrong wrongs[] = {
        {"<jib/>", "f:1: <jib> is not a description of SUMS", true},
        {"<job><stdout URL='file:/o'/></job>", "f:1: <job> has no <command>, which it needs", false},
        {"<job><command>a</command></job>",
         "f:1: <job> has no <stdout>; write <stdout URL=\"file:/PATH/$JOBID.out\"/>", false},
        {JOB("maxFilesperProcess='3'", ""),
         "f:1: <job> has no attribute maxFilesperProcess; it may have name, sim", true},
        {JOB("maxFilesPerProcess='none'", ""),
         "f:1: <job> maxFilesPerProcess=\"none\" is not right: a whole number of at least 1 is expected",
         true},
        {JOB("filesPerHour='-1'", ""), "a number above 0 is expected", true},
        {JOB("softLimits='yes'", ""), "softLimits=\"yes\" is not right: true or false is expected", true},
        {JOB("fileListSyntax='nfs'", ""), "paths, rootd or xrootd is expected", true},
        {JOB("", "<Sandbox/>"), "f:3: <Sandbox> is not known within <job>; it may have <command>", true},
        {JOB("", "<SandBox/>"), "f:3: <SandBox> has no <Package>, which it needs", true},
        {JOB("", "<input URL='catalog:?a' nFiles='ten'/>"),
         "f:3: <input> nFiles=\"ten\" is not right: \"all\" or a", true},
        {JOB("", "<input nFiles='all'/>"), "f:3: <input> has no URL, which it needs", true},
        {JOB("", "<input URL='/d/x'/>"),
         "f:3: <input> URL=\"/d/x\" is not right: file:/PATH, file://HOST/PATH", false},
        {JOB("", "<input URL='catalog:?none' nFiles='all'/>"),
         "f:3: <input> URL: 'catalog:?none' has no files", false},
        {JOB("", "<input URL='filelist:/no'/>"), "f:3: <input> URL: the list '/no' can't be read", false},
        {JOB("", "<input URL='command:false'/>"), "f:3: <input> URL: the command 'false' has failed", false},
        {JOB("", "<input URL='file:/d/*.none'/>"), "f:3: <input> URL: '/d/*.none' matches no file", false},
        {JOB("", "<input URL='file:/d/$NONE'/>"),
         "f:3: <input> has $NONE, which is not known when it is submitted", false},
        {JOB("nProcesses='2'", "<input URL='file:/d/x'/>"),
         "f:1: <job> has nProcesses, which is for jobs without", false},
        {JOB("inputOrder='n'", "<input URL='file:/d/x'/>"),
         "inputOrder=\"n\" needs inputs of the catalog only", false},
        {JOB("splitBy='run'", ""), "f:1: <job> has splitBy=\"run\", and files are cut by their number",
         false},
        {JOB("minFilesPerProcess='3' maxFilesPerProcess='2'", ""), "minFilesPerProcess is more than", false},
        {JOB("filesPerHour='1' maxWallTime='10'", "<input URL='file:/d/x'/>"),
         "a job does not do one file, at 1 files an hour", false},
        {JOB("", "<output fromScratch='/etc/x' toURL='file:/o'/>"),
         "f:3: <output> fromScratch=\"/etc/x\" is not right", false},
        {JOB("", "<output fromScratch='x' toURL='/o'/>"), "a file is written as file:/PATH", false},
        {JOB("", "<output fromScratch='x' toURL='file://n1/o'/>"), "is on one machine", false},
        {JOB("", "<output fromScratch='x;y' toURL='file:/o'/>"), "has one of , ; =", false},
        {JOB("", "<stdout URL='file:/o2'/>"), "f:3: <stdout> is there 2 times, and 1 is right", false},
        {JOB("", "text"), "and is to have elements only", true},
        {JOB("", "<shell> </shell>"), "f:3: <shell> is empty", true},
        {JOB("", "<ResourceUsage><Memory><MinMemory>lots</MinMemory></Memory></ResourceUsage>"),
         "<MinMemory> \"lots\" is not right", true},
        {"<job><command>a</job>", "f:1: ", true},
        {"<job><command>a && b</command></job>", "f:1: the character & is written as &amp;", true},
};

static void test_wrong(void **state)
{
        (void)state;
        for (size_t i = 0; i < sizeof(wrongs) / sizeof(*wrongs); i++) {
                assert_true(parse(wrongs[i].text) < 0);
                if (!strstr(err.text, wrongs[i].says))
                        fail_msg("%s\n does not say %s", err.text, wrongs[i].says);
                if (!strstr(wrongs[i].text, "<command>a"))
                        assert_int_equal(validates(wrongs[i].text), !wrongs[i].structure);
        }
        assert_false(sums_is(STR("executable = x\n")));
        assert_true(sums_is(STR("\xef\xbb\xbf \n<?xml version='1.0'?>")));
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_shell),
                                           cmocka_unit_test(test_inputs), cmocka_unit_test(test_told),
                                           cmocka_unit_test(test_wrong)};
        int failed;

        schema = argc > 1 ? argv[1] : "sums.xsd";
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        form_deinit(&form);
        sums_told_deinit(&told);
        return failed;
}
