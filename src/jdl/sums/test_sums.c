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

/* The named queue has an hour, the policy four; without a name nothing is limited. */
static int time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                      struct err *err)
{
        (void)arg;
        if (str_eqz(named[FORM_PRESET_QUEUE], "away"))
                return err_set(err, -5, "no server");
        ret->seconds = str_eqz(named[FORM_PRESET_QUEUE], "short")    ? 3600
                       : str_eqz(named[FORM_PRESET_POLICY], "night") ? 4 * 3600
                                                                     : 0;
        snprintf(ret->of, sizeof(ret->of), "the queue");
        return 0;
}

static const struct form_world world = {.read_file = no_file,
                                        .glob = some_paths,
                                        .getenv = get_environment,
                                        .run = run,
                                        .catalog = catalog,
                                        .time_limit = time_limit,
                                        .cwd = "/home/u",
                                        .now_s = 1};
#define NO_PRESET "notification = never"
static const char *preset = NO_PRESET;
static const struct condor_options options = {
        .filesystem_domain = "d", .submit_host = "here", .extra = &preset, .extra_count = 1};
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

/* Parses with a line of the submit language; returns the numbers of files of the jobs, "2 2". */
static const char *pieces(const char *line, const char *text)
{
        static char counts[200];
        struct str rest, row;
        size_t n = 0;

        preset = line;
        accept(text);
        preset = NO_PRESET;
        counts[0] = 0;
        rest = buf_view(&form.parts[0].items);
        while (str_cut(&rest, '\n', &row) && row.n)
                n += (size_t)snprintf(counts + n, sizeof(counts) - n, "%s" STR_FMT, n ? " " : "",
                                      STR_ARG(str_skip(row, (size_t)(str_rfind(row, '\x1f') + 1))));
        return counts;
}

/* Files and events an hour are cut against the time of the queue that the request goes to. */
static void test_time_of_queues(void **state)
{
        const char *files = JOB("filesPerHour='1'", "<input URL='catalog:?two' nFiles='all'/>"),
                   *own = JOB("filesPerHour='1' maxWallTime='120'",
                              "<input URL='catalog:?two' nFiles='all'/>"),
                   *soft = JOB("filesPerHour='1' maxWallTime='120' softLimits='true'",
                               "<input URL='catalog:?two' nFiles='all'/>"),
                   *events = JOB("eventsPerHour='20'", "<input URL='catalog:?two' nFiles='all'/>");

        (void)state;
        assert_string_equal(pieces("job_virtual_queue = short", files), "1 1 1 1");
        assert_non_null(strstr(buf_z(&form.notes), "a job has 3600 seconds, a limit of the queue\n"));
        assert_string_equal(pieces("+JobVirtualQueue = \"short\"", files), "1 1 1 1");
        assert_string_equal(pieces("job_policy = night", files), "4");
        assert_int_equal(form.warning_count, 0);
        assert_string_equal(pieces("job_virtual_queue = short", events), "2 2");
        /* the request's own time; a soft one is not known to the queue, and the shorter one counts */
        assert_string_equal(pieces("job_virtual_queue = short", own), "2 2");
        assert_string_equal(pieces("job_virtual_queue = short", soft), "1 1 1 1");
        assert_string_equal(pieces("job_policy = night", soft), "2 2");
        /* what is not known is said */
        assert_string_equal(pieces("job_virtual_queue = long", files), "4");
        assert_int_equal(form.warning_count, 1);
        assert_non_null(strstr(form.warnings[0].text, "nothing limits the time of a job"));
        assert_string_equal(pieces("job_virtual_queue = away", files), "4");
        assert_non_null(strstr(form.warnings[0].text, "the time limit of the jobs is not known"));
        assert_non_null(strstr(form.warnings[0].text, ": no server"));
        preset = "job_virtual_queue = short";
        assert_true(parse(JOB("filesPerHour='0.5'", "<input URL='file:/d/x'/>")) < 0);
        assert_non_null(strstr(err.text, "in 3600 seconds a job does not do one file, at 0.5 files an hour "
                                         "(a limit of the queue)"));
        preset = NO_PRESET;
}

/* A warning says when the files of an input cannot give what its attributes ask for. */
static void test_warnings_of_inputs(void **state)
{
        static const char *const warned[][2] = {
                {JOB("", "<input URL='command:list of mine' nFiles='5' limitByEvents='true'/>"),
                 "2 of 2 files have no number under the key events, which counts as 0: the limit of 5 "
                 "events"},
                {JOB("", "<input URL='catalog:?a' nFiles='all' preferStorage='hpss'/>"),
                 "4 files have no replica in the preferred store hpss, and are read where they are"},
                {JOB("", "<input URL='catalog:?a' nFiles='3' preferStorage='hpss'/>"),
                 "3 files have no replica in the preferred store hpss"},
                {JOB("", "<input URL='file:/d/x' preferStorage='hpss'/>"),
                 "the preferred store has no effect"},
                {JOB("", "<input URL='catalog:?a' nFiles='20' limitByEvents='true' preferStorage='local'/>"),
                 NULL},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(warned) / sizeof(*warned); i++) {
                accept(warned[i][0]);
                assert_int_equal(form.warning_count, warned[i][1] ? 1 : 0);
                if (warned[i][1] && !strstr(form.warnings[0].text, warned[i][1]))
                        fail_msg("%s", form.warnings[0].text);
                if (warned[i][1])
                        assert_int_equal(form.warnings[0].line, 3);
        }
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
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_plain),         cmocka_unit_test(test_shell),
                cmocka_unit_test(test_inputs),        cmocka_unit_test(test_told),
                cmocka_unit_test(test_wrong),         cmocka_unit_test(test_warnings_of_inputs),
                cmocka_unit_test(test_time_of_queues)};
        int failed;

        schema = argc > 1 ? argv[1] : "sums.xsd";
        failed = cmocka_run_group_tests(tests, NULL, NULL);
        form_deinit(&form);
        sums_told_deinit(&told);
        return failed;
}
