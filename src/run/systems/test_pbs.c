/* Recorded output of OpenPBS and Torque is read correctly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/batch/batch.h"
#include "run/systems/recorded.h"

#define OPENPBS "openpbs/23.06.06"
#define TORQUE  "torque/6.1.3.h5"

static const struct batch_settings pro = {NULL, 0}, torque = {(struct run_word[]){{"form", "torque"}}, 1};

static void asks_as(const struct batch_settings *s, void (*words)(struct batch_call *c), const char *want)
{
        struct batch_call c = {.settings = s};
        BUF_CLEANUP struct buf said = {0};

        words(&c);
        for (size_t i = 0; i < c.argv.n; i++)
                buf_printf(&said, "%s%s", i ? " " : "", c.argv.v[i]);
        assert_string_equal(buf_z(&said), want);
        batch_call_deinit(&c);
}

static void asks(void (*words)(struct batch_call *c), const char *want)
{
        asks_as(&pro, words, want);
}

static void status(struct batch_call *c)
{
        batch_pbs.status(c, "me");
}

static void past(struct batch_call *c)
{
        batch_pbs.past(c, "ann", "17,18[3]");
}

static void submit(struct batch_call *c)
{
        batch_pbs.submit(c, &(struct batch_sending){"d1", "/s", "", 1, .log = NULL});
}

/* A variable of 4016 has newlines that imitate the end of 4014. */
static void what_is_there(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0};
        asks(status, "qstat -f -w -t");
        assert_int_equal(recorded(OPENPBS, "qstat -f -w -t", &out, &errors), 0);
#define RUN(where) "(Job run at Sun Nov 22 at 18:03 on (head:ncpus=" where ") me"
        assert_read(
                batch_pbs.status_read, buf_z(&out),
                "4013 d1a2b0123456789 1 " RUN(
                        "1)") "\n"
                              "4014 d1a2b0123456790 7 (Can Never Run: Insufficient amount of server "
                              "resource: lic (R: 5 "
                              "A: 2 T: 2)) me\n"
                              "4015 job.sh 0 () me\n"
                              "4016 other 1 " RUN(
                                      "1)") "\n"
                                            "4017 stopped 1 " RUN(
                                                    "1)") " stopped\n"
                                                          "4018[1] d1a2b0123456791 2 " RUN(
                                                                  "2) and failed") "\n"
                                                                                   "4018[2] d1a2b0123456791 "
                                                                                   "1 " RUN(
                                                                                           "2)") "\n"
                                                                                                 "4018[3] "
                                                                                                 "d1a2b012345"
                                                                                                 "6791 "
                                                                                                 "1 " RUN(
                                                                                                         "2)") "\n"
                                                                                                               "4018[4] d1a2b0123456791 2 (Subjob finished) me bare\n");
}

static void what_is_over(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0};
        asks(past, "qstat -f -w -x 17 18[3]");
        assert_int_equal(
                recorded(OPENPBS, "qstat -f -w -x 4007 4008 4009 4010 4011 4012 999999", &out, &errors),
                batch_pbs.none_there);
        assert_read(batch_pbs.past_read, buf_z(&out),
                    "4007 three.sh 2 (Job run at Sun Nov 22 at 18:02 on (head:ncpus=1) and failed) me\n"
                    "4008 nine.sh 2 (Job run at Sun Nov 22 at 18:02 on (head:ncpus=1) and failed) me\n"
                    "4009 job.sh 4 (Job run at Sun Nov 22 at 18:02 on (head:ncpus=1) and exceeded resource "
                    "walltime) me\n"
                    "4010 job.sh 3 () me\n"
                    "4011 job.sh 3 (Job run at Sun Nov 22 at 18:02 on (head:ncpus=1) and terminated by "
                    "me@head) me\n"
                    "4012 STDIN 5 (Job run at Sun Nov 22 at 18:02 on (head:ncpus=1:mem=20480kb) and exceeded "
                    "resource mem) me\n");
}

struct told { /* what is made of an answer of qsub's */
        const char *command;
        bool full, refused, array;
};

static void assert_told(const char *file, const struct told *told, size_t count)
{
        BUF_CLEANUP struct buf out = {0}, errors = {0};

        for (size_t i = 0; i < count; i++) {
                int code = recorded(file, told[i].command, &out, &errors);

                assert_int_equal(batch_pbs.full(buf_view(&errors)), told[i].full);
                assert_int_equal(batch_pbs.refused(code, buf_view(&errors)), told[i].refused);
                assert_int_equal(batch_pbs.refused_array(buf_view(&errors)), told[i].array);
        }
}

static void submissions(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0}, native = {0};
        asks(submit, "qsub -f /s");
        recorded(OPENPBS, "qsub -f -S /bin/sh -N d1a2b0123456791 -l select=1:ncpus=2 -J 1-4 array.sh", &out,
                 &errors);
        assert_true(batch_pbs.submitted(buf_view(&out), &native));
        assert_string_equal(buf_z(&native), "4018");
        static const struct told told[] = {
                {"qsub -f -q nowhere job.sh", false, true, false},
                {"qsub -f -q shut job.sh", true, true, false},
                {"qsub -f -l lic=x job.sh", false, true, false},
                {"qsub -f -l select=1:nonsense=1 job.sh", false, true, false},
                {"qsub -f -l walltime=99:00:00 -q short job.sh", false, true, false},
                {"qsub -f -J 1-12 job.sh", true, true, true},
                {"qsub -f -J 1-5 job.sh", true, true, false},
                {"qsub -f -J 1-3 -r n job.sh", false, true, true},
                {"qsub -f job.sh # no server", false, false, false},
        };
        assert_told(OPENPBS, told, sizeof(told) / sizeof(*told));
        assert_true(batch_pbs.full(STR("qsub: Unauthorized Request  (PBSE_PERM)\n")));
}

static void nodes(void **state)
{
        (void)state;
        static const struct {
                const char *command;
                unsigned nodes, idle;
        } told[] = {{"pbsnodes -a", 1, 2},
                    {"pbsnodes -a # one is offline, one is not there", 0, 0},
                    {"pbsnodes -a # a job has one for itself", 1, 0}};
        for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
                BUF_CLEANUP struct buf out = {0}, errors = {0};
                struct run_capacity c = {0};

                recorded(OPENPBS, told[i].command, &out, &errors);
                batch_pbs.capacity_read(&pro, buf_view(&out), &c);
                assert_int_equal(c.nodes, told[i].nodes);
                assert_int_equal(c.cpus_milli, 8000 * told[i].nodes);
                assert_int_equal(c.idle_cpus_milli, 1000 * told[i].idle);
        }
}

/* A variable of 46 has newlines that imitate the end of 43. */
static void what_is_in_torque(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0};
#define STARTED "(Job started on Sun Nov 22 at 18:37) me"
        asks_as(&torque, status, "qstat -f -1 -t");
        assert_int_equal(recorded(TORQUE,
                                  "qstat -f -1 -t '42[]' 43.head.example.org 44.head.example.org "
                                  "45.head.example.org 46.head.example.org",
                                  &out, &errors),
                         0);
        assert_read(batch_pbs.status_read, buf_z(&out),
                    "42[1] d1a2b0123456789 2 " STARTED "\n42[2] d1a2b0123456789 3 " STARTED
                    "\n42[3] d1a2b0123456789 1 " STARTED "\n42[4] d1a2b0123456789 1 " STARTED
                    "\n43 held 0 () me\n44 stopped 1 " STARTED " stopped\n45 later 0 () me\n"
                    "46 other 1 " STARTED "\n");
        asks_as(&torque, past, "qstat -f -1 17 18[3]");
        assert_int_equal(recorded(TORQUE,
                                  "qstat -f -1 37.head.example.org 38.head.example.org 39.head.example.org "
                                  "40.head.example.org 41.head.example.org '42[1]' 999999",
                                  &out, &errors),
                         batch_pbs.none_there);
        assert_read(batch_pbs.past_read, buf_z(&out),
                    "37 three 2 " STARTED "\n38 nine 2 " STARTED "\n39 wall 4 " STARTED
                    "\n40 waits 2 () me bare\n41 runs 3 " STARTED "\n42[1] d1a2b0123456789 2 " STARTED "\n");
}

/* Newlines and backslashes of a value are preceded by a backslash, and long lines are broken anywhere. */
static void values_with_line_ends(void **state)
{
        (void)state;
        static const char *const values[] = {"a\\\nJob Id: 7.h", "a\\\n\t\\\nJob Id: 7.h",
                                             "a\\\n\t\nJob Id: 7.h", "a\\\\\\\nJob Id: 7.h",
                                             "a\\\n\tb\\\nJob Id: 7.h"};
        for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
                BUF_CLEANUP struct buf out = {0};

                buf_printf(&out, "Job Id: 8.h\n    Job_Name = x\n    job_state = R\n    Variable_List = %s",
                           values[i]);
                buf_addz(&out, "\\\n    job_state = C\n\t\\\n    exit_status = 0\n\nJob Id: 9.h\n    "
                               "job_state = Q\n");
                assert_read(batch_pbs.status_read, buf_z(&out), "8 x 1 ()\n9  0 ()\n");
        }
        assert_read(batch_pbs.status_read, /* Slurm's qstat */
                    "Job Id:\t8\n\tJob_Name = x\n\tjob_state = R\n", "8 x 1 ()\n");
        assert_read(batch_pbs.status_read, /* a backslash is the value's last letter */
                    "Job Id: 8.h\n    Variable_List = a\\\\\n    job_state = R\n", "8  1 ()\n");
}

/* Another job's submit_args claim that 8 is over, waits again, or cannot run; before it and behind it. */
static void forged_jobs(void **state)
{
        (void)state;
        static const char real[] = "Job Id: 8.h\n    Job_Name = d1\n    Job_Owner = me@h\n    job_state = R\n"
                                   "    submit_args = d1.sh\n    start_count = 1\n\n";
        static const char *const said[] = {"job_state = C\n    exit_status = 0", "job_state = C",
                                           "job_state = Q",
                                           "job_state = Q\n    comment = Can Never Run: you"};
        for (size_t i = 0; i < 2 * sizeof(said) / sizeof(*said); i++) {
                BUF_CLEANUP struct buf forged = {0}, out = {0};

                buf_printf(&forged,
                           "Job Id: 9.h\n    Job_Name = x\n    Job_Owner = ann@h\n    job_state = R\n"
                           "    submit_args = -N x\n\nJob Id: 8.h\n    Job_Name = d1\n    Job_Owner = me@h\n"
                           "    %s\n    start_count = 1\n\n",
                           said[i / 2]);
                buf_printf(&out, "%s%s%s", i % 2 ? real : "", buf_z(&forged), i % 2 ? "" : real);
                assert_read(batch_pbs.status_read, buf_z(&out),
                            i % 2 ? "8 d1 1 () me\n9 x 1 () ann\n" : "9 x 1 () ann\n8 d1 1 () me\n");
        }
        assert_read(batch_pbs.status_read, /* nor is the end of 8 hidden by a job of another name */
                    "Job Id: 8.h\n    Job_Name = d1\n    job_state = C\n    exit_status = 0\n\n"
                    "Job Id: 8.h\n    Job_Name = x\n    job_state = R\n",
                    "8 d1 2 ()\n8 x 1 ()\n");
}

static void submissions_to_torque(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0}, native = {0};
        asks_as(&torque, submit, "qsub /s");
        recorded(TORQUE,
                 "qsub -S /bin/sh -N d1a2b0123456789 -l nodes=1:ppn=1 -j oe -o /dev/null -t 1-4 array.sh",
                 &out, &errors);
        assert_true(batch_pbs.submitted(buf_view(&out), &native));
        assert_string_equal(buf_z(&native), "42");
        static const struct told told[] = {
                {"qsub -q nowhere job.sh", false, true, false},
                {"qsub -q shut job.sh", true, true, false},
                {"qsub -l lic=5 job.sh", false, true, false},
                {"qsub -l walltime=soon job.sh", false, true, false},
                {"qsub -l nodes=1:ppn=99 job.sh", false, true, false},
                {"qsub -l walltime=99:00:00 -q short job.sh", false, true, false},
                {"qsub -q few job.sh # one is there", true, true, false},
                {"qsub -t 1-3 -q mine job.sh", true, true, false},
                {"qsub -t 1-9 job.sh", true, true, true},
                {"qsub -t 1-2 -q mine job.sh # it takes no arrays", false, true, true},
                {"qsub job.sh # no server", false, false, false},
        };
        assert_told(TORQUE, told, sizeof(told) / sizeof(*told));
        assert_false(batch_pbs.refused(1, STR("qsub: submit error (Pbs Server is currently too busy to "
                                              "service this request. Please retry this request.)\n")));
}

static void nodes_of_torque(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf out = {0}, errors = {0};
        struct run_capacity c = {0};
        recorded(TORQUE, "pbsnodes -a", &out, &errors);
        batch_pbs.capacity_read(&torque, buf_view(&out), &c);
        assert_int_equal(c.nodes, 1);
        assert_int_equal(c.cpus_milli, 8000);
        assert_int_equal(c.idle_cpus_milli, 5000);
        assert_int_equal(c.memory_bytes >> 10, 24684084);
        c = (struct run_capacity){0};
        recorded(TORQUE, "pbsnodes -a # it is offline", &out, &errors);
        batch_pbs.capacity_read(&torque, buf_view(&out), &c);
        assert_int_equal(c.nodes, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_there),     cmocka_unit_test(what_is_over),
                cmocka_unit_test(submissions),       cmocka_unit_test(nodes),
                cmocka_unit_test(what_is_in_torque), cmocka_unit_test(values_with_line_ends),
                cmocka_unit_test(forged_jobs),       cmocka_unit_test(submissions_to_torque),
                cmocka_unit_test(nodes_of_torque),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
