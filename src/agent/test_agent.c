/* The real agent and shepherd against a small server of our own. */
#include "agent/test_rig.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "base/system/fs.h"
#include "run/process/shepherd_protocol.h"

static void joins_and_offers(void **s)
{
        (void)s;
        rig_start_agent();
        Drover__ToServer *m = rig_hear(DROVER__TO_SERVER__KIND_INVENTORY);
        assert_int_equal(m->inventory->n_running + m->inventory->n_finished, 0);
        m = rig_hear(DROVER__TO_SERVER__KIND_OFFER);
        while (m->offer->jobs_max == 0) /* the shepherd is not running yet */
                m = rig_hear(DROVER__TO_SERVER__KIND_OFFER);
        assert_string_equal(m->offer->queue, "default");
        assert_int_equal(m->offer->jobs_max, 4);
        assert_non_null(strstr(m->offer->ad, "TotalCpus = 4;"));
        assert_non_null(strstr(m->offer->ad, "Memory = 4096;"));
        assert_int_equal(m->offer->n_owners, 1); /* only jobs of the agent's own user */
        snprintf(rig.owner, sizeof(rig.owner), "%s", m->offer->owners[0]);
        struct stat st;
        BUF_CLEANUP struct buf key = {0};
        buf_printf(&key, "%s/agent.key", rig.state);
        assert_int_equal(stat(buf_z(&key), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void runs_members_with_items(void **s)
{
        (void)s;
        rig_place("in.txt", "input ");
        rig_assign(&(struct job){
                .request = 1,
                .count = 3,
                .input = "in.txt",
                .all_outputs = true,
                .stdout_file = "out.$(Process)",
                .script = "echo $GREETING $(word) $DROVER_JOB; cat in.txt > made.$(word); exit $(Process)"});
        Drover__Accept *a = rig_hear(DROVER__TO_SERVER__KIND_ACCEPT)->accept;
        assert_int_equal(a->n_attempts, 1);
        assert_int_equal(a->attempts[0]->fence, 3);
        assert_int_equal(a->attempts[0]->n_members, 1);
        assert_int_equal(a->attempts[0]->members[0]->count, 3);
        unsigned seen = 0, codes = 0;
        while (seen < 3) {
                Drover__Result *r = rig_hear(DROVER__TO_SERVER__KIND_RESULT)->result;

                for (size_t i = 0; i < r->n_jobs; i++, seen++) {
                        assert_int_equal(r->jobs[i]->outcome, DROVER__OUTCOME__EXITED);
                        assert_int_equal(r->jobs[i]->n_steps, 1);
                        assert_int_equal(r->jobs[i]->steps[0]->exit_code, r->jobs[i]->member);
                        assert_true(r->jobs[i]->memory_peak_bytes > 0);
                        codes |= 1u << r->jobs[i]->member;
                }
        }
        assert_int_equal(codes, 7);
        rig_content("out.1", "hello there one 1.1\n");
        rig_content("made.two", "input ");
        rig_content("in.txt", "input ");
}

static void each_member_has_its_folder(void **s)
{
        (void)s;
        char folders[112], path[160];
        snprintf(folders, sizeof(folders), "%s/run_$(Process)", rig.work);
        for (unsigned i = 0; i < 2; i++) {
                snprintf(path, sizeof(path), "%s/run_%u", rig.work, i);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        rig_place("run_0/given", "zero");
        rig_place("run_1/given", "one");
        rig_assign(&(struct job){.request = 5,
                                 .count = 2,
                                 .iwd = folders,
                                 .input = "given",
                                 .output = "made",
                                 .stdout_file = "$(word).out",
                                 .script = "cat given; cp given made"});
        unsigned seen = 0;
        while (seen < 2) {
                Drover__Result *r = rig_hear(DROVER__TO_SERVER__KIND_RESULT)->result;

                for (size_t i = 0; i < r->n_jobs; i++, seen++)
                        assert_int_equal(r->jobs[i]->outcome, DROVER__OUTCOME__EXITED);
        }
        rig_content("run_0/zero.out", "zero");
        rig_content("run_1/one.out", "one");
        rig_content("run_0/made", "zero");
        rig_content("run_1/made", "one");
}

static void steps_in_order(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 10,
                                 .stdout_file = "steps",
                                 .script = "echo first > kept; echo a; exit 4",
                                 .second = "cat kept; pwd > /dev/null; exit 5",
                                 .ignore_failure = true});
        Drover__JobResult *r = rig_result(10);
        assert_int_equal(r->n_steps, 2);
        assert_int_equal(r->steps[0]->exit_code, 4);
        assert_int_equal(r->steps[1]->exit_code, 5);
        rig_content("steps", "a\nfirst\n");
        rig_assign(&(struct job){.request = 11, .script = "exit 4", .second = "exit 5"});
        r = rig_result(11);
        assert_int_equal(r->n_steps, 1); /* the second was not run */
}

static void holds_what_cannot_run(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 20, .missing_program = true});
        Drover__JobResult *r = rig_result(20);
        assert_int_equal(r->outcome, DROVER__OUTCOME__NOT_STARTED);
        assert_int_equal(r->hold_code, 6);
        assert_non_null(strstr(r->reason, "no-such-program"));
        rig_assign(&(struct job){.request = 21, .script = "true", .input = "absent"});
        r = rig_result(21);
        assert_int_equal(r->outcome, DROVER__OUTCOME__STAGING_FAILED);
        assert_int_equal(r->hold_code, 13);
        assert_non_null(strstr(r->reason, "/absent"));
        rig_assign(&(struct job){.request = 22, .script = "true", .output = "promised"});
        r = rig_result(22);
        assert_int_equal(r->hold_code, 12);
        assert_non_null(strstr(r->reason, "did not make its output promised"));
        /* a link out of the sandbox is not followed */
        rig_assign(&(struct job){.request = 23, .script = "ln -s /etc/passwd leak", .output = "leak"});
        r = rig_result(23);
        assert_int_equal(r->hold_code, 12);
        assert_false(rig_exists("leak"));
        rig_assign(&(struct job){.request = 24, .script = "true", .output = "../../agent.key"});
        assert_int_equal(rig_result(24)->hold_code, 12);
}

static void obeys_controls(void **s)
{
        (void)s;
        rig_assign(&(struct job){
                .request = 30, .script = "trap 'exit 9' TERM; sleep 1000 & wait", .wait_for_go = true});
        rig_hear(DROVER__TO_SERVER__KIND_ACCEPT);
        rig_run_for(200);
        Drover__Attempts *list[1] = {rig_attempt(30)};
        Drover__Go go = DROVER__GO__INIT;
        go.attempts = list;
        go.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_GO;
        m.go = &go;
        rig_send(&m);
        Drover__Started *st = rig_hear(DROVER__TO_SERVER__KIND_STARTED)->started;
        assert_int_equal(st->attempts[0]->request, 30);
        rig_control(30, DROVER__COMMAND__REMOVE);
        Drover__JobResult *r = rig_result(30);
        assert_int_equal(r->outcome, DROVER__OUTCOME__KILLED);
        /* killed before it was started */
        rig_assign(&(struct job){.request = 31, .script = "true", .wait_for_go = true});
        rig_hear(DROVER__TO_SERVER__KIND_ACCEPT);
        rig_control(31, DROVER__COMMAND__HOLD);
        assert_int_equal(rig_result(31)->outcome, DROVER__OUTCOME__KILLED);
}

/* Later jobs do not take the room of a job that waits for Go, however short they are. */
static void keeps_room_until_go(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 32, .script = "true", .wait_for_go = true, .cpus = 4});
        rig_hear(DROVER__TO_SERVER__KIND_ACCEPT);
        rig_assign(&(struct job){.request = 33, .script = "echo > $DROVER_SCRATCH/../../../iwd/ran"});
        rig_hear(DROVER__TO_SERVER__KIND_ACCEPT);
        rig_run_for(300);
        assert_false(rig_exists("ran"));
        rig_control(32, DROVER__COMMAND__VACATE);
        assert_int_equal(rig_result(32)->outcome, DROVER__OUTCOME__KILLED);
        rig_wait_for("ran");
        assert_int_equal(rig_result(33)->outcome, DROVER__OUTCOME__EXITED);
}

static double number_in(const char *ad, const char *name)
{
        const char *at = strstr(ad, name);

        assert_non_null(at);
        return strtod(at + strlen(name), NULL);
}

/* Short jobs are asked for before there is room for them. A wide one that comes instead and waits for a long
 * one goes back, and would only come again. */
static void reads_not_ahead_after_it_gave_back(void **s)
{
        (void)s;
        for (uint64_t i = 0; i < 40; i++) {
                rig_assign(&(struct job){.request = 200 + i, .script = "true"});
                assert_int_equal(rig_result(200 + i)->outcome, DROVER__OUTCOME__EXITED);
        }
        rig_assign(&(struct job){.request = 190, .script = "exec sleep 1000"});
        rig_assign(&(struct job){.request = 191, .script = "true", .cpus = 4});
        assert_string_equal(rig_hear(DROVER__TO_SERVER__KIND_REFUSE)->refuse->reason, "busy");
        /* the agent makes an offer then */
        rig_assign(&(struct job){.request = 192, .script = "exec sleep 1000"});
        const char *ad = rig_hear(DROVER__TO_SERVER__KIND_OFFER)->offer->ad;
        assert_true(number_in(ad, " Cpus = ") == number_in(ad, " FreeCpus = "));
        for (uint64_t request = 190; request <= 192; request += 2) {
                rig_control(request, DROVER__COMMAND__REMOVE);
                assert_int_equal(rig_result(request)->outcome, DROVER__OUTCOME__KILLED);
        }
}

static void refuses_strangers(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 35, .script = "true", .stranger = true});
        Drover__Refuse *r = rig_hear(DROVER__TO_SERVER__KIND_REFUSE)->refuse;
        assert_int_equal(r->attempts[0]->request, 35);
        assert_false(r->hold);
        pid_t pid = geteuid() ? 0 : fork();
        if (pid == 0 && geteuid() == 0) {
                execl(getenv("AGENT"), "drover-agent", "--server", rig.address, "--dir", rig.work, "--owner",
                      "any", NULL);
                _exit(99);
        }
        int status = 2 << 8;
        if (pid > 0)
                waitpid(pid, &status, 0);
        assert_int_equal(WEXITSTATUS(status), 2); /* root's agent runs root's jobs only */
}

static void carries_through_the_spool(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 40,
                                 .elsewhere = true,
                                 .spooled_name = "data",
                                 .spooled_text = "shipped text",
                                 .stdout_file = "far.out",
                                 .script = "cat data; tr a-z A-Z < data > RESULT",
                                 .all_outputs = true});
        Drover__SpoolRead *read = rig_hear(DROVER__TO_SERVER__KIND_SPOOL_READ)->spool_read;
        unsigned char sum[32], up[32];
        rig_sha256("shipped text", sum);
        assert_memory_equal(read->sha256.data, sum, 32);
        for (unsigned at = 0; at < 12; at += 4) { /* in three chunks */
                Drover__SpoolData d = DROVER__SPOOL_DATA__INIT;

                d.sha256.data = sum;
                d.sha256.len = 32;
                d.offset = at;
                d.size = 12;
                d.data.data = (uint8_t *)"shipped text" + at;
                d.data.len = 4;
                Drover__ToAgent m = DROVER__TO_AGENT__INIT;
                m.kind_case = DROVER__TO_AGENT__KIND_SPOOL_DATA;
                m.spool_data = &d;
                rig_send(&m);
        }
        rig_sha256("SHIPPED TEXT", up);
        bool found = false;
        for (int i = 0; i < 2; i++) {
                Drover__SpoolWrite *w = rig_hear(DROVER__TO_SERVER__KIND_SPOOL_WRITE)->spool_write;

                found = found || !memcmp(w->sha256.data, up, 32);
                assert_true(w->last);
                Drover__SpoolStored d = DROVER__SPOOL_STORED__INIT;
                d.sha256 = w->sha256;
                d.stored = w->data.len;
                d.complete = true;
                Drover__ToAgent m = DROVER__TO_AGENT__INIT;
                m.kind_case = DROVER__TO_AGENT__KIND_SPOOL_STORED;
                m.spool_stored = &d;
                rig_send(&m);
        }
        assert_true(found);
        Drover__JobResult *r = rig_result(40);
        assert_int_equal(r->outcome, DROVER__OUTCOME__EXITED);
        assert_int_equal(r->n_outputs, 2);
        assert_string_equal(r->outputs[0]->name, "far.out");
        assert_int_equal(r->outputs[0]->size, 12);
        assert_string_equal(r->outputs[1]->name, "RESULT");
        assert_false(rig_exists("RESULT"));
        /* a cached file is not requested again, and a wrong one is never used */
        rig_assign(&(struct job){.request = 41,
                                 .spooled_name = "data",
                                 .spooled_text = "shipped text",
                                 .script = "grep -q shipped data"});
        assert_int_equal(rig_result(41)->steps[0]->exit_code, 0);
        rig_assign(&(struct job){.request = 42,
                                 .spooled_name = "data",
                                 .spooled_text = "what it should be",
                                 .script = "true"});
        read = rig_hear(DROVER__TO_SERVER__KIND_SPOOL_READ)->spool_read;
        Drover__SpoolData d = DROVER__SPOOL_DATA__INIT;
        d.sha256 = read->sha256;
        d.size = 5;
        d.data.data = (uint8_t *)"wrong";
        d.data.len = 5;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_SPOOL_DATA;
        m.spool_data = &d;
        rig_send(&m);
        r = rig_result(42);
        assert_int_equal(r->hold_code, 13);
        assert_non_null(strstr(r->reason, "checksum"));
}

static void keeps_results_until_acknowledged(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 50, .script = "exit 6"});
        rig_assign(&(struct job){.request = 51,
                                 .script = "touch $DROVER_SCRATCH/../../../iwd/going; sleep 1000"});
        rig_assign(&(struct job){.request = 52, .script = "sleep 1000"});
        Drover__Result *first = rig_hear(DROVER__TO_SERVER__KIND_RESULT)->result;
        assert_int_equal(first->jobs[0]->request, 50);
        rig_wait_for("going");
        rig.answer_inventory = false;
        rig_forget();
        session_free(rig.session); /* the server goes away, and comes back */
        rig.session = NULL;
        Drover__Inventory *i = rig_hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory;
        assert_int_equal(i->n_finished,
                         1 + 2); /* the members of requests 1 and 5 were never acknowledged either */
        assert_int_equal(i->n_running, 2);
        assert_int_equal(i->running[0]->request, 51);
        Drover__Attempts *list[1] = {rig_attempt(52)};
        rig_reply_inventory(list, 1);
        rig.answer_inventory = true;
        assert_int_equal(rig_result(50)->steps[0]->exit_code, 6);
        rig_control(51, DROVER__COMMAND__VACATE);
        assert_int_equal(rig_result(51)->outcome, DROVER__OUTCOME__KILLED);
}

static void a_killed_agent_loses_nothing(void **s)
{
        (void)s;
        unlink("going");
        rig_assign(&(struct job){.request = 60,
                                 .stdout_file = "adopted",
                                 .all_outputs = true,
                                 .script = "echo x > $DROVER_SCRATCH/../../../iwd/begun; while [ ! -e "
                                           "$DROVER_SCRATCH/../../../iwd/finish ]; do sleep 0.02; done; echo "
                                           "made > product; echo lived; exit 17"});
        rig_wait_for("begun");
        rig_kill_agent();
        rig_start_agent();
        Drover__Inventory *i = rig_hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory;
        assert_int_equal(i->n_running, 1);
        assert_int_equal(i->running[0]->request, 60);
        rig_place("finish", "");
        Drover__JobResult *r = rig_result(60);
        assert_int_equal(r->outcome, DROVER__OUTCOME__EXITED);
        assert_int_equal(r->steps[0]->exit_code, 17);
        rig_content("adopted", "lived\n");
        rig_content("product", "made\n");
        /* a job that ends while no agent runs */
        unlink("begun");
        rig_assign(&(struct job){
                .request = 61, .script = "echo x > $DROVER_SCRATCH/../../../iwd/again; sleep 0.3; exit 18"});
        rig_wait_for("again");
        rig_kill_agent();
        usleep(500000);
        rig_start_agent();
        assert_int_equal(rig_result(61)->steps[0]->exit_code, 18);
}

/* Leaves a task at the shepherd, as an agent with a map of users does: /bin/true, not forgotten. */
static void leave_a_stage(uint64_t request)
{
        struct {
                struct shepherd_hello hello;
                struct shepherd_start start;
                char strings[40];
        } m = {.hello = {{sizeof(m.hello), SHEPHERD_HELLO}, SHEPHERD_VERSION, 0},
               .start = {.record = {sizeof(m.start) + sizeof(m.strings), SHEPHERD_START},
                         .id = {request, 0, 3, 0x80000000u | 64, 0},
                         .slot = SHEPHERD_NO_SLOT,
                         .argc = 1}};

        memcpy(m.strings + 7, "/bin/true\0true", 15); /* owner, user, sandbox, folder and streams are empty */
        struct sockaddr_un at = {.sun_family = AF_UNIX};
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/" SHEPHERD_SOCKET, rig.state);
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(send(fd, &m, sizeof(m), 0), sizeof(m));
        for (bool ended = false; !ended;) {
                static _Alignas(8) char answer[32768];
                ssize_t n = recv(fd, answer, sizeof(answer), 0);
                assert_true(n > 0);
                for (const char *p = answer; p < answer + n;) {
                        const struct shepherd_child *c = (const void *)p;

                        ended = ended || (c->record.kind == SHEPHERD_CHILD && c->id.step == m.start.id.step &&
                                          c->state == SHEPHERD_EXITED);
                        p += c->record.size;
                }
        }
        close(fd);
}

static void a_stage_of_an_earlier_life_is_no_step(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 65,
                                 .script = "echo x > $DROVER_SCRATCH/../../../iwd/stepping; while [ ! -e "
                                           "$DROVER_SCRATCH/../../../iwd/step-on ]; do sleep 0.02; done; "
                                           "exit 19"});
        rig_wait_for("stepping");
        rig_kill_agent();
        leave_a_stage(65);
        rig_start_agent();
        rig_hear(DROVER__TO_SERVER__KIND_INVENTORY);
        rig_place("step-on", "");
        Drover__JobResult *r = rig_result(65);
        assert_int_equal(r->outcome, DROVER__OUTCOME__EXITED);
        assert_int_equal(r->steps[0]->exit_code, 19);
}

/* The agent starts although its journal cannot be written, as on a full disk. */
static void it_starts_where_nothing_can_be_written(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 66,
                                 .script = "echo x > $DROVER_SCRATCH/../../../iwd/full; while [ ! -e "
                                           "$DROVER_SCRATCH/../../../iwd/room ]; do sleep 0.02; done; "
                                           "exit 20"});
        rig_wait_for("full");
        rig_kill_agent();
        rig.file_max = 10;
        rig_start_agent();
        rig.file_max = 0;
        Drover__Inventory *i = rig_hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory;
        assert_int_equal(i->n_running, 1);
        assert_int_equal(i->running[0]->request, 66);
        rig_place("room", "");
        assert_int_equal(rig_result(66)->steps[0]->exit_code, 20);
        rig_kill_agent();
        rig_start_agent();
        rig_hear(DROVER__TO_SERVER__KIND_INVENTORY);
}

static pid_t shepherd_pid(void)
{
        BUF_CLEANUP struct buf b = {0}, path = {0};

        for (int pid = 2; pid < 4194304; pid++) {
                buf_reset(&path);
                buf_reset(&b);
                buf_printf(&path, "/proc/%d/cmdline", pid);
                if (fs_read(AT_FDCWD, buf_z(&path), 4096, &b, NULL) == 0 &&
                    str_starts(buf_view(&b), STR("drover-shepherd")) &&
                    str_search(buf_view(&b), str_of(rig.state)) > 0)
                        return pid;
                if (pid > 1000000)
                        break;
        }
        fail_msg("no shepherd");
        return -1;
}

static void a_dead_shepherd_means_lost(void **s)
{
        (void)s;
        rig_assign(&(struct job){.request = 70,
                                 .script = "echo x > $DROVER_SCRATCH/../../../iwd/mark; sleep 1000"});
        rig_wait_for("mark");
        kill(shepherd_pid(), SIGKILL);
        assert_int_equal(rig_result(70)->outcome, DROVER__OUTCOME__LOST);
        /* The agent waits until the next shepherd is there. No new offer is required, since none may have
         * changed. */
        rig_assign(&(struct job){.request = 71, .script = "exit 1"});
        assert_int_equal(rig_result(71)->steps[0]->exit_code, 1);
}

static void the_lease_ends_without_the_server(void **s)
{
        (void)s;
        rig.lease_ms = 1500;
        rig_assign(&(struct job){.request = 80,
                                 .script = "echo $$ > $DROVER_SCRATCH/../../../iwd/pid; exec sleep 1000"});
        rig_wait_for("pid");
        BUF_CLEANUP struct buf b = {0}, path = {0};
        buf_printf(&path, "%s/pid", rig.work);
        for (int i = 0; i < 200 && b.n == 0; i++) {
                rig_run_for(10);
                fs_read(AT_FDCWD, buf_z(&path), 64, &b, NULL);
        }
        int64_t pid;
        assert_int_equal(str_to_i64(str_trim(buf_view(&b)), &pid), 0);
        rig_run_for(2500); /* renewed: it goes on */
        assert_int_equal(kill((pid_t)pid, 0), 0);
        rig.answer_renewals = false;
        int64_t start = clock_boot_ms();
        while (kill((pid_t)pid, 0) == 0 && clock_boot_ms() - start < PATIENCE_MS)
                rig_run_for(20);
        assert_int_equal(kill((pid_t)pid, 0), -1);
        /* a server that was only stopped learns that the job is given up, and does not wait for it */
        assert_int_equal(rig_hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory->n_running, 0);
        rig.answer_renewals = true;
        rig.lease_ms = 60000;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(joins_and_offers),
                cmocka_unit_test(runs_members_with_items),
                cmocka_unit_test(each_member_has_its_folder),
                cmocka_unit_test(steps_in_order),
                cmocka_unit_test(holds_what_cannot_run),
                cmocka_unit_test(obeys_controls),
                cmocka_unit_test(keeps_room_until_go),
                cmocka_unit_test(reads_not_ahead_after_it_gave_back),
                cmocka_unit_test(refuses_strangers),
                cmocka_unit_test(carries_through_the_spool),
                cmocka_unit_test(keeps_results_until_acknowledged),
                cmocka_unit_test(a_killed_agent_loses_nothing),
                cmocka_unit_test(a_stage_of_an_earlier_life_is_no_step),
                cmocka_unit_test(it_starts_where_nothing_can_be_written),
                cmocka_unit_test(a_dead_shepherd_means_lost),
                cmocka_unit_test(the_lease_ends_without_the_server),
        };

        return cmocka_run_group_tests(tests, rig_setup, rig_teardown);
}
