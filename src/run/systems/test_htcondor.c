/* Output of HTCondor's commands is read: recorded (tests/data/htcondor has it by version), and written by
 * hand for states that a small pool does not reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/system/fs.h"
#include "run/batch/batch.h"

static const struct batch_settings none = {NULL, 0};

/* ---- recorded */

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const char *const versions[] = {"23.9.6", "25.14.1"};

static struct str recorded(const char *version, const char *file, struct buf *room)
{
        BUF_CLEANUP struct buf path = {0};
        struct err err = {""};

        buf_reset(room);
        buf_printf(&path, "%s/htcondor/%s/%s", getenv("RECORDED"), version, file);
        if (fs_read(AT_FDCWD, buf_z(&path), 1 << 20, room, &err) < 0)
                fail_msg("%s", err.text);
        return buf_view(room);
}

/* Appends a line read from an answer as "native name phase (reason)", followed by special states. */
static void write_line(void *arg, const struct batch_line *l)
{
        static const char *const phases[] = {"waiting", "running", "over", "cancelled",
                                             "timeout", "memory",  "lost", "unfit"};

        buf_printf(arg, STR_FMT " " STR_FMT " %s", STR_ARG(l->native), STR_ARG(l->name), phases[l->phase]);
        if (l->reason.n)
                buf_printf(arg, " (" STR_FMT ")", STR_ARG(l->reason));
        buf_printf(arg, "%s%s\n", l->stopped ? " stopped" : "", l->stays ? " stays" : "");
}

static void assert_read(const char *what, struct str answer, const char *want)
{
        BUF_CLEANUP struct buf copy = {0}, got = {0};

        buf_str(&copy, answer); /* it may be written to */
        if (!batch_htcondor.is_answer(buf_view(&copy)))
                fail_msg("%s is no answer", what);
        batch_htcondor.status_read(buf_view(&copy), write_line, &got);
        if (strcmp(buf_z(&got), want) != 0)
                fail_msg("%s is read as\n%s", what, buf_z(&got));
}

static void queries(void **state)
{
        (void)state;
        static const struct {
                const char *file, *want;
        } table[] = {
                {"q-idle.json", "6.0 d-6 waiting\n6.1 d-6 waiting\n6.2 d-6 waiting\n"},
                {"q-running.json", "1 d-1 running\n2.0 d-2 running\n2.1 d-2 running\n2.2 d-2 running\n"},
                {"q-suspended.json",
                 "1 d-1 running stopped\n2.0 d-2 running stopped\n2.1 d-2 running\n2.2 d-2 running\n"},
                {"q-completed.json", "4 d-4 over (status 3)\n"},
                {"q-held-by-user.json", "6.0 d-6 waiting (via condor_hold (by user alice))\n"
                                        "6.1 d-6 waiting (via condor_hold (by user alice))\n"
                                        "6.2 d-6 waiting\n"},
                {"q-held-at-submit.json", "8 d-8 waiting (submitted on hold at user's request)\n"},
                {"q-ending.json", "5.0 d-5 running\n5.1 d-5 running\n5.2 d-5 running\n"},
                {"q-held-after-start.json", "5.0 d-5 cancelled (not in my pool (by user alice)) stays\n"
                                            "5.2 d-5 running\n"},
                {"q-evicted.json", "9 d-9 lost stays\n"},
                {"q-held-cannot-start.json",
                 "10 d-10 unfit (Error from slot1_1@n1.pool.example: Failed to execute "
                 "'/home/alice/no-such.sh': (errno=2: 'No such file or directory')) stays\n"
                 "11 d-11 unfit (Error from slot1_1@n1.pool.example: Failed to execute '/home/alice/bad.sh': "
                 "invalid interpreter (/no/such/interpreter) specified on first line of script "
                 "(errno=2: 'No such file or directory')) stays\n"
                 "13 d-13 unfit (Cannot access initial working directory /home/alice/soon-gone: "
                 "No such file or directory) stays\n"
                 "14 d-14 unfit (Error from slot1_1@n1.pool.example: Failed to open '/home/alice/input' "
                 "as standard input: No such file or directory (errno 2)) stays\n"},
                {"q-held-time.json",
                 "16 d-16 timeout (The job exceeded allowed job duration of 00:02) stays\n"
                 "17 d-17 cancelled (a rule of the job) stays\n"},
                {"q-held-by-rules.json",
                 "19 d-19 cancelled (a rule of the pool) stays\n"
                 "20 d-20 memory (Error from slot1_1@n1.pool.example: memory usage exceeded request_memory)"
                 " stays\n"},
                {"history-ends.json", "3.2 d-3 over (signal 9)\n3.1 d-3 over (status 3)\n3.0 d-3 over\n"},
                {"history-removed.json", "5.1 d-5 cancelled (via condor_rm (by user alice))\n"},
                {"history-removed-idle.json", "6.1 d-6 cancelled (via condor_rm (by user alice))\n"
                                              "6.2 d-6 cancelled (via condor_rm (by user alice))\n"
                                              "6.0 d-6 cancelled (via condor_rm (by user alice))\n"},
                {"history-none.json", ""},
        };
        BUF_CLEANUP struct buf room = {0};
        for (size_t v = 0; v < COUNT(versions); v++)
                for (size_t i = 0; i < COUNT(table); i++)
                        assert_read(table[i].file, recorded(versions[v], table[i].file, &room),
                                    table[i].want);
        assert_read("an execute duration", recorded("25.14.1", "q-held-executing.json", &room),
                    "15 d-15 timeout (The job exceeded allowed execute duration of 00:02) stays\n");
}

/* Interpretation of the errors of a failed condor_submit. */
enum { UNSURE, REFUSED, FULL, ARRAY_REFUSED };

static void assert_words(const char *what, struct str errors, int want)
{
        int got = batch_htcondor.full(errors)            ? FULL
                  : !batch_htcondor.refused(1, errors)   ? UNSURE
                  : batch_htcondor.refused_array(errors) ? ARRAY_REFUSED
                                                         : REFUSED;

        if (got != want)
                fail_msg("%s is taken for %d, not %d", what, got, want);
}

static void refusals(void **state)
{
        (void)state;
        static const struct {
                const char *file;
                int want;
        } table[] = {
                {"submit-bad-requirements.err", REFUSED},
                {"submit-no-executable.err", REFUSED},
                {"submit-as-root.err", REFUSED},
                {"submit-requirement.err", REFUSED},
                {"submit-max-per-submission.err", ARRAY_REFUSED},
                {"submit-max-per-owner.err", FULL},
                {"submit-max-submitted.err", FULL},
                {"submit-denied.err", FULL}, /* by the schedd's configuration, which may change */
                {"submit-schedd-down.err", UNSURE},
                {"submit-unknown-schedd.err", UNSURE},
                {"submit-no-pool.err", UNSURE},
                {"submit-collector-down.err", UNSURE},
        };
        BUF_CLEANUP struct buf room = {0};
        for (size_t v = 0; v < COUNT(versions); v++)
                for (size_t i = 0; i < COUNT(table); i++)
                        assert_words(table[i].file, recorded(versions[v], table[i].file, &room),
                                     table[i].want);
}

static void submissions(void **state)
{
        (void)state;
        static const struct {
                const char *out, *native; /* NULL: it does not say */
        } table[] = {
                {"1.0 - 1.0\n", "1"}, /* recorded */
                {"2.0 - 2.2\n", "2"},
                {"4711.0 - 4711.99\n", "4711"},
                {"Submitting job(s).\n", NULL},
                {"1 job(s) submitted to cluster 7.\n", NULL},
                {"", NULL},
        };
        for (size_t i = 0; i < COUNT(table); i++) {
                BUF_CLEANUP struct buf native = {0};
                bool said = batch_htcondor.submitted(str_of(table[i].out), &native);

                assert_int_equal(said, table[i].native != NULL);
                assert_string_equal(buf_z(&native), said ? table[i].native : "");
        }
        BUF_CLEANUP struct buf member = {0};
        batch_htcondor.native_of("4711", 99, &member);
        assert_string_equal(buf_z(&member), "4711.99");
}

static void slots(void **state)
{
        (void)state;
        static const struct {
                const char *file;
                unsigned nodes, cpus, idle, largest, mib, idle_mib, largest_mib;
        } table[] = {
                {"status-unclaimed.json", 1, 8, 8, 8, 16384, 16384, 16384},
                {"status-dynamic.json", 1, 8, 4, 8, 16384, 15872, 16384},
                {"status-suspended.json", 1, 8, 4, 8, 16384, 15872, 16384},
                {"status-draining.json", 0, 0, 0, 0, 0, 0, 0},
                {"status-drained.json", 0, 0, 0, 0, 0, 0, 0},
                {"status-static.json", 3, 6, 4, 2, 6144, 4096, 2048},
        };
        BUF_CLEANUP struct buf room = {0};
        for (size_t v = 0; v < COUNT(versions); v++)
                for (size_t i = 0; i < COUNT(table); i++) {
                        struct run_capacity c = {0};

                        batch_htcondor.capacity_read(&none, recorded(versions[v], table[i].file, &room), &c);
                        print_message("# %s\n", table[i].file);
                        assert_int_equal(c.nodes, table[i].nodes);
                        assert_int_equal(c.cpus_milli, table[i].cpus * 1000);
                        assert_int_equal(c.idle_cpus_milli, table[i].idle * 1000);
                        assert_int_equal(c.node_cpus_milli, table[i].largest * 1000);
                        assert_int_equal(c.memory_bytes >> 20, table[i].mib);
                        assert_int_equal(c.idle_memory_bytes >> 20, table[i].idle_mib);
                        assert_int_equal(c.node_memory_bytes >> 20, table[i].largest_mib);
                }
}

static void slots_that_have_gpus(void **state)
{
        (void)state;
        static const struct {
                const char *file;
                unsigned gpus, idle, largest;
        } table[] = {{"status-gpus.json", 3, 1, 3},
                     {"status-gpus-static.json", 2, 1, 1},
                     {"status-static.json", 0, 0, 0}};
        BUF_CLEANUP struct buf room = {0};
        for (size_t i = 0; i < COUNT(table); i++) {
                struct run_capacity c = {0};

                batch_htcondor.capacity_read(&none, recorded("23.9.6", table[i].file, &room), &c);
                assert_int_equal(c.gpus, table[i].gpus);
                assert_int_equal(c.idle_gpus, table[i].idle);
                assert_int_equal(c.node_gpus, table[i].largest);
        }
}

/* ---- by hand */

/* Job 7.0 of three, d-1, with these attributes, in whose place ' stands for ". */
static void add_job(struct buf *out, const char *attributes)
{
        buf_addz(out, "{'ClusterId': 7, 'DroverCount': 3, 'DroverName': 'd-1', 'ProcId': 0, ");
        buf_printf(out, "%s}", attributes);
        for (size_t i = 0; i < out->n; i++)
                if (out->p[i] == '\'')
                        out->p[i] = '"';
}

static void one_job(void **state)
{
        (void)state;
        static const struct {
                const char *attributes, *want;
        } table[] = {
                {"'JobStatus': 6, 'NumJobStarts': 1, 'RemoteHost': 'n1'", "running"},
                {"'JobStatus': 9", "running"},
                {"'JobStatus': '\\/Expr(undefined)\\/'", ""},
                /* begun a second time: how the first one ended nobody knows */
                {"'JobStatus': 4, 'ExitCode': 0, 'NumJobStarts': 2", "lost"},
                {"'JobStatus': 5, 'HoldReasonCode': 16, 'HoldReason': 'Spooling'", "waiting (Spooling)"},
                {"'JobStatus': 5, 'HoldReasonCode': 34, 'HoldReasonSubCode': 0, 'NumJobStarts': 1",
                 "memory stays"},
                {"'JobStatus': 5, 'HoldReasonCode': 34, 'HoldReasonSubCode': 104", "unfit stays"}, /* disk */
                {"'JobStatus': 5, 'HoldReasonCode': 21, 'HoldReasonSubCode': 104, 'NumJobStarts': 1",
                 "cancelled stays"},
                {"'JobStatus': 5, 'HoldReasonCode': 47, 'NumJobStarts': 1", "timeout stays"},
                {"'JobStatus': 5, 'HoldReasonCode': 13, 'HoldReason': 'a\xff\\u0000b'", "unfit (a?) stays"},
        };
        for (size_t i = 0; i < COUNT(table); i++) {
                BUF_CLEANUP struct buf text = {0}, want = {0};

                buf_char(&text, '[');
                add_job(&text, table[i].attributes);
                buf_char(&text, ']');
                if (*table[i].want)
                        buf_printf(&want, "7.0 d-1 %s\n", table[i].want);
                assert_read(table[i].attributes, buf_view(&text), buf_z(&want));
        }
}

/* An entry that is not a job does not hide the others; an incomplete answer is rejected. */
static void odd_answers(void **state)
{
        (void)state;
        static const char *const halves[] = {
                "{}", "-- Failed to fetch ads from: <10.0.0.1:9618?addrs=10.0.0.1-9618> : head\n"};
        BUF_CLEANUP struct buf text = {0}, got = {0};
        buf_addz(&text, "[\n'x', 7, null,\n");
        add_job(&text, "'JobStatus': 2");
        struct str half = buf_view(&text);
        assert_false(batch_htcondor.is_answer(half));
        batch_htcondor.status_read(half, write_line, &got);
        assert_int_equal(got.n, 0);
        buf_addz(&text, "]\n");
        assert_read("among others", buf_view(&text), "7.0 d-1 running\n");
        for (size_t i = 0; i < COUNT(halves); i++) {
                MEM_CLEANUP char *copy = mem_dupz(halves[i]);

                assert_false(batch_htcondor.is_answer(str_of(copy)));
                batch_htcondor.status_read(str_of(copy), write_line, &got);
                assert_int_equal(got.n, 0);
        }
}

/* Errors of other versions, from HTCondor's sources, and of similar systems. */
static void other_words(void **state)
{
        (void)state;
        static const struct {
                const char *words;
                int want;
        } table[] = {
                {"\nERROR: Failed to connect to local queue manager\n"
                 "CEDAR:6001:Failed to connect to <10.0.0.1:9618>\n",
                 UNSURE},
                {"\nERROR: Failed to connect to local queue manager\n"
                 "AUTHENTICATE:1003:Failed to authenticate with any method\n",
                 FULL},
                {"\nERROR: Failed to commit job submission into the queue.\n", UNSURE},
                {"\nERROR: Failed to create cluster\n"
                 "Number of submitted jobs would exceed MAX_JOBS_SUBMITTED\n",
                 FULL},
                {"condor_submit: no Drover server answers at /x/api.sock: start one with `drover up`\n",
                 UNSURE},
                {"condor_submit: -:19: expected an expression\n", REFUSED},
                {"", UNSURE},
        };
        for (size_t i = 0; i < COUNT(table); i++)
                assert_words(table[i].words, str_of(table[i].words), table[i].want);
}

/* Slots: used by the owner; without totals of its machine; not a slot. */
static void odd_slots(void **state)
{
        (void)state;
        struct run_capacity c = {0};
        batch_htcondor.capacity_read(
                &none,
                STR("[{\"Cpus\": 1, \"Memory\": 2000, \"SlotType\": \"Static\", \"State\": \"Owner\"},"
                    " {\"Cpus\": 1, \"Memory\": 2000, \"SlotType\": \"Static\", \"State\": \"Unclaimed\"},"
                    " {\"Cpus\": -4, \"Memory\": \"many\", \"State\": \"Unclaimed\"}]"),
                &c);
        assert_int_equal(c.nodes, 1);
        assert_int_equal(c.idle_cpus_milli, 1000);
        assert_int_equal(c.idle_memory_bytes >> 20, 2000);
}

/* The site names such resources; case is ignored. */
static void odd_slots_with_gpus(void **state)
{
        (void)state;
        struct run_capacity c = {0};
        batch_htcondor.capacity_read(
                &none,
                STR("[{\"Cpus\": 3, \"Memory\": 2000, \"GPUs\": 2, \"TotalSlotCpus\": 8, "
                    "\"TotalSlotMemory\": 4000,"
                    " \"TotalSlotGPUs\": 4, \"SlotType\": \"Partitionable\", \"State\": \"Unclaimed\"},"
                    " {\"Cpus\": 0, \"Memory\": 2000, \"Gpus\": 1, \"TotalSlotCpus\": 8, "
                    "\"TotalSlotMemory\": 4000,"
                    " \"TotalSlotGpus\": 2, \"SlotType\": \"Partitionable\", \"State\": \"Unclaimed\"},"
                    " {\"Cpus\": 1, \"Memory\": 2000, \"GPUs\": 2, \"SlotType\": \"Dynamic\", \"State\": "
                    "\"Claimed\"},"
                    " {\"Cpus\": 1, \"Memory\": 2000, \"GPUs\": 1, \"SlotType\": \"Static\", \"State\": "
                    "\"Unclaimed\"},"
                    " {\"Cpus\": 1, \"Memory\": 2000, \"GPUs\": 1, \"SlotType\": \"Static\", \"State\": "
                    "\"Claimed\"},"
                    " {\"Cpus\": 1, \"Memory\": 2000, \"GPUs\": 9, \"SlotType\": \"Static\", \"State\": "
                    "\"Drained\"}]"),
                &c);
        assert_int_equal(c.gpus, 4 + 2 + 1 + 1);
        assert_int_equal(c.idle_gpus, 2 + 1);
        assert_int_equal(c.node_gpus, 4);
}

/* ---- what is asked */

static struct run_spec spec_of(const struct run_word *words, size_t count)
{
        return (struct run_spec){.sandbox = "/box",
                                 .cpus_milli = 1500,
                                 .memory_bytes = (100 << 20) + 1,
                                 .gpus = 2,
                                 .walltime_ms = 61000,
                                 .words = words,
                                 .word_count = count};
}

static void a_submit_file(void **state)
{
        (void)state;
        struct run_word set[] = {{"requirements", "OpSysMajorVer == 9"},
                                 {"rank", "Mips"},
                                 {"schedd", "head"},
                                 {"+ProjectName", "\"grid\""}},
                        words[] = {{"HtcondorRequirements", "HasX || Name == \")\""},
                                   {"HtcondorRank", "KFlops"},
                                   {"BatchProject", "physics.x"},
                                   {"BatchQueue", "long"}};
        struct batch_settings s = {set, 4};
        struct batch_call c = {.settings = &s};
        struct run_spec spec = spec_of(words, 4);
        BUF_CLEANUP struct buf head = {0}, line = {0};
        struct err err = {""};
        assert_int_equal(batch_htcondor.check(&s, &err), 0);
        assert_int_equal(batch_htcondor.resources(&s, &spec, &head, &err), 0);
        buf_addz(&head, "# this submission:\n");
        batch_htcondor.submit(&c, &(struct batch_sending){"d-1", "/a$b/d-1.sh", buf_z(&head), 3});
        for (int i = 0; i < c.argv.n; i++)
                buf_printf(&line, "%s ", c.argv.v[i]);
        assert_string_equal(buf_z(&line), "condor_submit -terse -name head - ");
        static const char *const lines[] = {
                "\nexecutable = /a$(DOLLAR)b/d-1.sh\n",
                "\noutput = /a$(DOLLAR)b/d-1.$(Process).log\n",
                "\nshould_transfer_files = NO\n",
                "\nenvironment = \"DROVER_TASK=$(Process)\"\n",
                "\nbatch_name = d-1\n+DroverName = \"d-1\"\n+DroverCount = 3\n",
                "\nrequest_cpus = 2\nrequest_memory = 101\nrequest_gpus = 2\nallowed_job_duration = 121\n"
                "requirements = (OpSysMajorVer == 9) && (HasX || Name == \")\")\nrank = KFlops\n"
                "accounting_group = physics.x\n+BatchQueue = \"long\"\n+ProjectName = \"grid\"\nqueue 3\n"};
        for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
                if (!strstr(buf_z(&c.input), lines[i]))
                        fail_msg("%s is not in %s", lines[i], buf_z(&c.input));
        args_deinit(&c.argv);
        buf_deinit(&c.input);
}

/* A job's attribute remains one expression, whatever its text. */
static void odd_words(void **state)
{
        (void)state;
        static const char *const odd[] = {
                "true) || (true", "true\nqueue 1000", "$ENV(HOME)", "a \\", "(", "\"", "[}", "", "x)",
                /* what ClassAds do not count as brackets */
                "/* ( */ true) || (true /* ) */", "'(' =!= 1) || ('x)' =!= 1", "true // ()"};
        struct err err = {""};
        BUF_CLEANUP struct buf head = {0};
        for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
                struct run_word words[] = {{"HtcondorRequirements", odd[i]}},
                                set[] = {{"requirements", odd[i]}}, own[] = {{"+Project", odd[i]}};
                struct run_spec spec = spec_of(words, 1);
                int r = batch_htcondor.resources(&none, &spec, &head, &err);

                assert_int_equal(r, *odd[i] ? -EINVAL : 0); /* an empty word is none */
                assert_int_equal(batch_htcondor.check(&(struct batch_settings){set, 1}, &err), -EINVAL);
                assert_int_equal(batch_htcondor.check(&(struct batch_settings){own, 1}, &err), -EINVAL);
        }
        struct run_word bad[] = {{"BatchProject", "a b"}}, domain[] = {{"filesystem_domain", "every"}};
        struct run_spec spec = spec_of(bad, 1);
        assert_int_equal(batch_htcondor.resources(&none, &spec, &head, &err), -EINVAL);
        assert_int_equal(batch_htcondor.check(&(struct batch_settings){domain, 1}, &err), -EINVAL);
}

static void assert_act(enum batch_verb verb, const char *want)
{
        struct batch_call c = {.settings = &none};
        BUF_CLEANUP struct buf line = {0};

        batch_htcondor.act(&c, verb, STR("7.1 9"));
        for (int i = 0; i < c.argv.n; i++)
                buf_printf(&line, "%s|", c.argv.v[i]);
        assert_string_equal(buf_z(&line), want);
        args_deinit(&c.argv);
}

static void acts(void **state)
{
        (void)state;
        assert_act(BATCH_END, "condor_rm|7.1|9|");
        assert_act(BATCH_STOP, "condor_suspend|7.1|9|");
        assert_act(BATCH_CONTINUE, "condor_continue|7.1|9|");
        assert_act(BATCH_RELEASE, "condor_release|7.1|9|");
        assert_act(BATCH_HOLD,
                   "condor_hold|-constraint|JobStatus == 1 && (stringListMember(string(ClusterId), "
                   "\"9\") || stringListMember(strcat(ClusterId, \".\", ProcId), \"7.1\"))|");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(queries),
                cmocka_unit_test(refusals),
                cmocka_unit_test(submissions),
                cmocka_unit_test(slots),
                cmocka_unit_test(slots_that_have_gpus),
                cmocka_unit_test(one_job),
                cmocka_unit_test(odd_answers),
                cmocka_unit_test(other_words),
                cmocka_unit_test(odd_slots),
                cmocka_unit_test(odd_slots_with_gpus),
                cmocka_unit_test(a_submit_file),
                cmocka_unit_test(odd_words),
                cmocka_unit_test(acts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
