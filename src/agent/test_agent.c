/* The real agent and shepherd against a small server of our own. $AGENT and $SHEPHERD are the programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/ca.h"
#include "base/clock.h"
#include "base/fs.h"
#include "wire/session.h"

#define PATIENCE_MS 20000

static char owner[128], top[64], state[96], work[96], address[128], token[256];
static struct loop *loop;
static struct listener *listener;
static struct tls_context *tls;
static struct ca *ca;
static struct session *session;
static pid_t agent;
static uint64_t renew_ms, lease_ms;
static bool answer_renewals, answer_inventory;
static uint64_t offer_serial;

/* what came, in order, until somebody expects it */
struct heard {
        struct heard *next;
        Drover__ToServer *m;
};
static struct heard *heard_first;
static Drover__ToServer *current;

/* ---- the server */

static void send_m(Drover__ToAgent *m)
{
        assert_non_null(session);
        session_send(session, &m->base);
}

static void on_join(const Drover__Join *j)
{
        BUF_CLEANUP struct buf cert = {0}, pem = {0};
        struct err err;
        assert_string_equal(j->token, token);
        assert_int_equal(ca_issue_agent(ca, str_of(j->csr_pem), str_of(j->name), clock_wall_ms(), 3600, &cert,
                                        NULL, &err),
                         0);
        buf_str(&pem, ca_cert_pem(ca));
        Drover__Joined joined = DROVER__JOINED__INIT;
        joined.name = j->name;
        joined.cert_pem = (char *)buf_z(&cert);
        joined.ca_pem = (char *)buf_z(&pem);
        joined.server_uuid = (char *)"unit";
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_JOINED;
        m.joined = &joined;
        send_m(&m);
}

static void reply_inventory(Drover__Attempts **kill_list, size_t n)
{
        Drover__InventoryReply r = DROVER__INVENTORY_REPLY__INIT;
        r.kill = kill_list;
        r.n_kill = n;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_INVENTORY_REPLY;
        m.inventory_reply = &r;
        send_m(&m);
}

static void keep(const Drover__ToServer *m)
{
        MEM_CLEANUP uint8_t *room = mem_alloc(drover__to_server__get_packed_size(m));
        size_t n = drover__to_server__pack(m, room);
        struct heard *h = mem_new(struct heard), **at = &heard_first;
        h->m = drover__to_server__unpack(NULL, n, room);
        while (*at)
                at = &(*at)->next;
        *at = h;
        loop_stop(loop);
}

static void on_message(void *arg, struct session *s, const ProtobufCMessage *base)
{
        const Drover__ToServer *m = (const void *)base;
        Drover__ToAgent to = DROVER__TO_AGENT__INIT;
        (void)arg;
        (void)s;
        if (m->kind_case == DROVER__TO_SERVER__KIND_JOIN) {
                on_join(m->join);
        } else if (m->kind_case == DROVER__TO_SERVER__KIND_HELLO) {
                Drover__Welcome w = DROVER__WELCOME__INIT;
                w.version = 1;
                w.server_uuid = (char *)"unit";
                w.name = (char *)"n1";
                w.renew_ms = renew_ms;
                to.kind_case = DROVER__TO_AGENT__KIND_WELCOME;
                to.welcome = &w;
                send_m(&to);
        } else if (m->kind_case == DROVER__TO_SERVER__KIND_RENEW) {
                Drover__RenewAck r = DROVER__RENEW_ACK__INIT;
                r.serial = m->renew->serial;
                to.kind_case = DROVER__TO_AGENT__KIND_RENEW_ACK;
                to.renew_ack = &r;
                if (answer_renewals)
                        send_m(&to);
        } else if (m->kind_case == DROVER__TO_SERVER__KIND_INVENTORY && answer_inventory) {
                reply_inventory(NULL, 0);
                keep(m);
        } else {
                if (m->kind_case == DROVER__TO_SERVER__KIND_OFFER)
                        offer_serial = m->offer->serial;
                keep(m);
        }
}

static void on_closed(void *arg, struct session *s, const struct err *why)
{
        (void)arg;
        (void)why;
        session_free(s);
        if (session == s)
                session = NULL;
}

static void on_accept(void *arg, int fd)
{
        static const struct session_ops ops = {NULL, on_message, on_closed};
        (void)arg;
        session_free(session);
        session = session_accept(loop, fd, tls, 0, &ops, NULL);
        session_frame_max(session, SESSION_FRAME_MAX);
}

static void on_patience(void *arg)
{
        *(bool *)arg = true;
        loop_stop(loop);
}

/* The next message of that kind; those before it are dropped. Valid until the next call. */
static Drover__ToServer *hear(Drover__ToServer__KindCase kind)
{
        bool late = false;
        struct timer *t = timer_new(loop, on_patience, &late);
        timer_start(t, PATIENCE_MS);
        for (;;) {
                while (heard_first) {
                        struct heard *h = heard_first;
                        heard_first = h->next;
                        drover__to_server__free_unpacked(current, NULL);
                        current = h->m;
                        free(h);
                        if (current->kind_case == kind) {
                                timer_free(t);
                                return current;
                        }
                }
                if (late)
                        break;
                loop_run(loop);
        }
        timer_free(t);
        fail_msg("message %d never came", (int)kind);
        return NULL;
}

static void run_for(int64_t ms)
{
        bool over = false;
        struct timer *t = timer_new(loop, on_patience, &over);
        timer_start(t, ms);
        while (!over)
                loop_run(loop);
        timer_free(t);
}

static void forget_heard(void)
{
        while (heard_first) {
                struct heard *h = heard_first;
                heard_first = h->next;
                drover__to_server__free_unpacked(h->m, NULL);
                free(h);
        }
}

/* ---- the agent */

static void start_agent(void)
{
        agent = fork();
        if (agent == 0) {
                BUF_CLEANUP struct buf log = {0};
                buf_printf(&log, "%s/log", top);
                int fd = open(buf_z(&log), O_WRONLY | O_CREAT | O_APPEND, 0600);
                dup2(fd, 2);
                execl(getenv("AGENT"), "drover-agent", "--server", address, "--dir", state, "--name", "n1",
                      "--token", token, "--shepherd", getenv("SHEPHERD"), "--kill-grace", "200ms", "--cpus",
                      "4", "--memory", "4G", "--filesystem-domain", "here", "--log-level", "debug", NULL);
                _exit(99);
        }
}

/* ---- work */

struct job {
        const char *iwd; /* NULL: work */
        uint64_t request;
        const char *script; /* for sh -c */
        const char *second; /* another step */
        bool ignore_failure, wait_for_go, all_outputs, missing_program, elsewhere, stranger;
        const char *input, *output, *stdout_file, *spooled_name, *spooled_text;
        uint32_t count, cpus;
};

static void sha256(const char *text, unsigned char ret[32])
{
        EVP_Digest(text, strlen(text), ret, NULL, EVP_sha256(), NULL);
}

static void assign(const struct job *j)
{
        char *argv1[2] = {(char *)"-c", (char *)(j->script ? j->script : "")},
             *argv2[2] = {(char *)"-c", (char *)(j->second ? j->second : "")};
        Drover__Step steps[2] = {DROVER__STEP__INIT, DROVER__STEP__INIT},
                     *step_list[2] = {&steps[0], &steps[1]};
        Drover__Template t = DROVER__TEMPLATE__INIT, *templates[1] = {&t};
        Drover__SpoolRef ref = DROVER__SPOOL_REF__INIT, *refs[1] = {&ref};
        unsigned char sum[32];
        char *input = (char *)j->input, *output = (char *)j->output, *variable = (char *)"word";
        for (int i = 0; i < 2; i++) {
                steps[i].executable = (char *)(j->missing_program ? "no-such-program" : "/bin/sh");
                steps[i].argv = i ? argv2 : argv1;
                steps[i].n_argv = 2;
                steps[i].transfer_executable = true;
                steps[i].stdout_file = (char *)(j->stdout_file ? j->stdout_file : "");
                steps[i].environment_v2 = (char *)"GREETING='hello there'";
        }
        steps[0].ignore_failure = j->ignore_failure;
        t.request = j->request;
        t.owner = (char *)(j->stranger ? "stranger@local" : owner);
        t.iwd = (char *)(j->iwd ? j->iwd : work);
        t.filesystem_domain = (char *)(j->elsewhere ? "far" : "here");
        t.steps = step_list;
        t.n_steps = j->second ? 2 : 1;
        t.variables = &variable;
        t.n_variables = 1;
        t.input_files = &input;
        t.n_input_files = j->input ? 1 : 0;
        t.output_files = &output;
        t.n_output_files = j->output ? 1 : 0;
        t.all_outputs = j->all_outputs;
        t.outputs_on_failure = true;
        t.cpus_milli = j->cpus ? j->cpus * 1000 : 1000;
        t.memory_bytes = 64 << 20;
        if (j->spooled_name) {
                sha256(j->spooled_text, sum);
                ref.name = (char *)j->spooled_name;
                ref.sha256.data = sum;
                ref.sha256.len = 32;
                ref.size = strlen(j->spooled_text);
                t.spooled = refs;
                t.n_spooled = 1;
                if (!j->input) {
                        input = ref.name;
                        t.n_input_files = 1;
                }
        }
        Drover__Range range = DROVER__RANGE__INIT, *ranges[1] = {&range};
        range.count = j->count ? j->count : 1;
        Drover__Item items[8], *item_list[8];
        char *values[8] = {(char *)"zero", (char *)"one",  (char *)"two", (char *)"three",
                           (char *)"four", (char *)"five", (char *)"six", (char *)"seven"};
        Drover__Group g = DROVER__GROUP__INIT, *groups[1] = {&g};
        for (uint32_t i = 0; i < range.count; i++) {
                drover__item__init(&items[i]);
                items[i].member = i;
                items[i].values = &values[i];
                items[i].n_values = 1;
                item_list[i] = &items[i];
        }
        g.request = j->request;
        g.fence = 3;
        g.members = ranges;
        g.n_members = 1;
        g.items = item_list;
        g.n_items = range.count;
        g.lease_ms = lease_ms;
        g.wait_for_go = j->wait_for_go;
        Drover__Assign a = DROVER__ASSIGN__INIT;
        a.queue = (char *)"default";
        a.serial = offer_serial;
        a.templates = templates;
        a.n_templates = 1;
        a.groups = groups;
        a.n_groups = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_ASSIGN;
        m.assign = &a;
        send_m(&m);
}

static Drover__Attempts *name(uint64_t request)
{
        static Drover__Range range;
        static Drover__Range *ranges[1] = {&range};
        static Drover__Attempts attempts;
        drover__range__init(&range);
        range.count = 1;
        drover__attempts__init(&attempts);
        attempts.request = request;
        attempts.fence = 3;
        attempts.members = ranges;
        attempts.n_members = 1;
        return &attempts;
}

static void control(uint64_t request, Drover__Command command)
{
        Drover__Attempts *list[1] = {name(request)};
        Drover__Control c = DROVER__CONTROL__INIT;
        c.command = command;
        c.attempts = list;
        c.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_CONTROL;
        m.control = &c;
        send_m(&m);
}

static void ack(uint64_t request)
{
        Drover__Attempts *list[1] = {name(request)};
        Drover__ResultAck a = DROVER__RESULT_ACK__INIT;
        a.attempts = list;
        a.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_RESULT_ACK;
        m.result_ack = &a;
        send_m(&m);
}

/* The result of a request of one job; acknowledged. */
static Drover__JobResult *result(uint64_t request)
{
        for (;;) {
                Drover__Result *r = hear(DROVER__TO_SERVER__KIND_RESULT)->result;
                for (size_t i = 0; i < r->n_jobs; i++)
                        if (r->jobs[i]->request == request) {
                                ack(request);
                                return r->jobs[i];
                        }
        }
}

static void content(const char *file, const char *want)
{
        BUF_CLEANUP struct buf b = {0}, path = {0};
        buf_printf(&path, "%s/%s", work, file);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &b, NULL), 0);
        assert_string_equal(buf_z(&b), want);
}

static void place(const char *file, const char *text)
{
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "%s/%s", work, file);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), str_of(text), 0644, false, NULL), 0);
}

static bool exists(const char *file)
{
        BUF_CLEANUP struct buf path = {0};
        buf_printf(&path, "%s/%s", work, file);
        return access(buf_z(&path), F_OK) == 0;
}

static void wait_for(const char *file)
{
        for (int i = 0; i < 2000 && !exists(file); i++)
                run_for(10);
        assert_true(exists(file));
}

/* ---- tests */

static void joins_and_offers(void **s)
{
        (void)s;
        start_agent();
        Drover__ToServer *m = hear(DROVER__TO_SERVER__KIND_INVENTORY);
        assert_int_equal(m->inventory->n_running + m->inventory->n_finished, 0);
        m = hear(DROVER__TO_SERVER__KIND_OFFER);
        while (m->offer->jobs_max == 0) /* before the shepherd is there */
                m = hear(DROVER__TO_SERVER__KIND_OFFER);
        assert_string_equal(m->offer->queue, "default");
        assert_int_equal(m->offer->jobs_max, 4);
        assert_non_null(strstr(m->offer->ad, "TotalCpus = 4;"));
        assert_non_null(strstr(m->offer->ad, "Memory = 4096;"));
        assert_int_equal(m->offer->n_owners, 1); /* its own user's jobs */
        snprintf(owner, sizeof(owner), "%s", m->offer->owners[0]);
        struct stat st;
        BUF_CLEANUP struct buf key = {0};
        buf_printf(&key, "%s/agent.key", state);
        assert_int_equal(stat(buf_z(&key), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
}

static void runs_members_with_items(void **s)
{
        (void)s;
        place("in.txt", "input ");
        assign(&(struct job){
                .request = 1,
                .count = 3,
                .input = "in.txt",
                .all_outputs = true,
                .stdout_file = "out.$(Process)",
                .script = "echo $GREETING $(word) $DROVER_JOB; cat in.txt > made.$(word); exit $(Process)"});
        Drover__Accept *a = hear(DROVER__TO_SERVER__KIND_ACCEPT)->accept;
        assert_int_equal(a->n_attempts, 1);
        assert_int_equal(a->attempts[0]->fence, 3);
        assert_int_equal(a->attempts[0]->n_members, 1);
        assert_int_equal(a->attempts[0]->members[0]->count, 3);
        unsigned seen = 0, codes = 0;
        while (seen < 3) {
                Drover__Result *r = hear(DROVER__TO_SERVER__KIND_RESULT)->result;
                for (size_t i = 0; i < r->n_jobs; i++, seen++) {
                        assert_int_equal(r->jobs[i]->outcome, DROVER__OUTCOME__EXITED);
                        assert_int_equal(r->jobs[i]->n_steps, 1);
                        assert_int_equal(r->jobs[i]->steps[0]->exit_code, r->jobs[i]->member);
                        assert_true(r->jobs[i]->memory_peak_bytes > 0);
                        codes |= 1u << r->jobs[i]->member;
                }
        }
        assert_int_equal(codes, 7);
        content("out.1", "hello there one 1.1\n");
        content("made.two", "input ");
        content("in.txt", "input ");
}

static void each_member_has_its_folder(void **s)
{
        (void)s;
        char folders[112], path[160];
        snprintf(folders, sizeof(folders), "%s/run_$(Process)", work);
        for (unsigned i = 0; i < 2; i++) {
                snprintf(path, sizeof(path), "%s/run_%u", work, i);
                assert_int_equal(mkdir(path, 0700), 0);
        }
        place("run_0/given", "zero");
        place("run_1/given", "one");
        assign(&(struct job){.request = 5,
                             .count = 2,
                             .iwd = folders,
                             .input = "given",
                             .output = "made",
                             .stdout_file = "$(word).out",
                             .script = "cat given; cp given made"});
        unsigned seen = 0;
        while (seen < 2) {
                Drover__Result *r = hear(DROVER__TO_SERVER__KIND_RESULT)->result;
                for (size_t i = 0; i < r->n_jobs; i++, seen++)
                        assert_int_equal(r->jobs[i]->outcome, DROVER__OUTCOME__EXITED);
        }
        content("run_0/zero.out", "zero");
        content("run_1/one.out", "one");
        content("run_0/made", "zero");
        content("run_1/made", "one");
}

static void steps_in_order(void **s)
{
        (void)s;
        assign(&(struct job){.request = 10,
                             .stdout_file = "steps",
                             .script = "echo first > kept; echo a; exit 4",
                             .second = "cat kept; pwd > /dev/null; exit 5",
                             .ignore_failure = true});
        Drover__JobResult *r = result(10);
        assert_int_equal(r->n_steps, 2);
        assert_int_equal(r->steps[0]->exit_code, 4);
        assert_int_equal(r->steps[1]->exit_code, 5);
        content("steps", "a\nfirst\n");
        assign(&(struct job){.request = 11, .script = "exit 4", .second = "exit 5"});
        r = result(11);
        assert_int_equal(r->n_steps, 1); /* the second was not run */
}

static void holds_what_cannot_run(void **s)
{
        (void)s;
        assign(&(struct job){.request = 20, .missing_program = true});
        Drover__JobResult *r = result(20);
        assert_int_equal(r->outcome, DROVER__OUTCOME__NOT_STARTED);
        assert_int_equal(r->hold_code, 6);
        assert_non_null(strstr(r->reason, "no-such-program"));
        assign(&(struct job){.request = 21, .script = "true", .input = "absent"});
        r = result(21);
        assert_int_equal(r->outcome, DROVER__OUTCOME__STAGING_FAILED);
        assert_int_equal(r->hold_code, 13);
        assert_non_null(strstr(r->reason, "/absent"));
        assign(&(struct job){.request = 22, .script = "true", .output = "promised"});
        r = result(22);
        assert_int_equal(r->hold_code, 12);
        assert_non_null(strstr(r->reason, "did not make its output promised"));
        /* what leads out of the sandbox is not read */
        assign(&(struct job){.request = 23, .script = "ln -s /etc/passwd leak", .output = "leak"});
        r = result(23);
        assert_int_equal(r->hold_code, 12);
        assert_false(exists("leak"));
        assign(&(struct job){.request = 24, .script = "true", .output = "../../agent.key"});
        assert_int_equal(result(24)->hold_code, 12);
}

static void obeys_controls(void **s)
{
        (void)s;
        assign(&(struct job){
                .request = 30, .script = "trap 'exit 9' TERM; sleep 1000 & wait", .wait_for_go = true});
        hear(DROVER__TO_SERVER__KIND_ACCEPT);
        run_for(200);
        Drover__Attempts *list[1] = {name(30)};
        Drover__Go go = DROVER__GO__INIT;
        go.attempts = list;
        go.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_GO;
        m.go = &go;
        send_m(&m);
        Drover__Started *st = hear(DROVER__TO_SERVER__KIND_STARTED)->started;
        assert_int_equal(st->attempts[0]->request, 30);
        control(30, DROVER__COMMAND__REMOVE);
        Drover__JobResult *r = result(30);
        assert_int_equal(r->outcome, DROVER__OUTCOME__KILLED);
        /* and before it was started */
        assign(&(struct job){.request = 31, .script = "true", .wait_for_go = true});
        hear(DROVER__TO_SERVER__KIND_ACCEPT);
        control(31, DROVER__COMMAND__HOLD);
        assert_int_equal(result(31)->outcome, DROVER__OUTCOME__KILLED);
}

/* Others that come while it waits for Go do not take its place, however short they are. */
static void keeps_room_until_go(void **s)
{
        (void)s;
        assign(&(struct job){.request = 32, .script = "true", .wait_for_go = true, .cpus = 4});
        hear(DROVER__TO_SERVER__KIND_ACCEPT);
        assign(&(struct job){.request = 33, .script = "echo > $DROVER_SCRATCH/../../../iwd/ran"});
        hear(DROVER__TO_SERVER__KIND_ACCEPT);
        run_for(300);
        assert_false(exists("ran"));
        control(32, DROVER__COMMAND__VACATE);
        assert_int_equal(result(32)->outcome, DROVER__OUTCOME__KILLED);
        wait_for("ran");
        assert_int_equal(result(33)->outcome, DROVER__OUTCOME__EXITED);
}

static void refuses_strangers(void **s)
{
        (void)s;
        assign(&(struct job){.request = 35, .script = "true", .stranger = true});
        Drover__Refuse *r = hear(DROVER__TO_SERVER__KIND_REFUSE)->refuse;
        assert_int_equal(r->attempts[0]->request, 35);
        assert_false(r->hold);
        pid_t pid = geteuid() ? 0 : fork();
        if (pid == 0 && geteuid() == 0) {
                execl(getenv("AGENT"), "drover-agent", "--server", address, "--dir", work, "--owner", "any",
                      NULL);
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
        assign(&(struct job){.request = 40,
                             .elsewhere = true,
                             .spooled_name = "data",
                             .spooled_text = "shipped text",
                             .stdout_file = "far.out",
                             .script = "cat data; tr a-z A-Z < data > RESULT",
                             .all_outputs = true});
        Drover__SpoolRead *read = hear(DROVER__TO_SERVER__KIND_SPOOL_READ)->spool_read;
        unsigned char sum[32], up[32];
        sha256("shipped text", sum);
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
                send_m(&m);
        }
        sha256("SHIPPED TEXT", up);
        bool found = false;
        for (int i = 0; i < 2; i++) {
                Drover__SpoolWrite *w = hear(DROVER__TO_SERVER__KIND_SPOOL_WRITE)->spool_write;
                found = found || !memcmp(w->sha256.data, up, 32);
                assert_true(w->last);
                Drover__SpoolStored d = DROVER__SPOOL_STORED__INIT;
                d.sha256 = w->sha256;
                d.stored = w->data.len;
                d.complete = true;
                Drover__ToAgent m = DROVER__TO_AGENT__INIT;
                m.kind_case = DROVER__TO_AGENT__KIND_SPOOL_STORED;
                m.spool_stored = &d;
                send_m(&m);
        }
        assert_true(found);
        Drover__JobResult *r = result(40);
        assert_int_equal(r->outcome, DROVER__OUTCOME__EXITED);
        assert_int_equal(r->n_outputs, 2);
        assert_string_equal(r->outputs[0]->name, "far.out");
        assert_int_equal(r->outputs[0]->size, 12);
        assert_string_equal(r->outputs[1]->name, "RESULT");
        assert_false(exists("RESULT"));
        /* once in the cache it is not asked for again, and a wrong one is never used */
        assign(&(struct job){.request = 41,
                             .spooled_name = "data",
                             .spooled_text = "shipped text",
                             .script = "grep -q shipped data"});
        assert_int_equal(result(41)->steps[0]->exit_code, 0);
        assign(&(struct job){.request = 42,
                             .spooled_name = "data",
                             .spooled_text = "what it should be",
                             .script = "true"});
        read = hear(DROVER__TO_SERVER__KIND_SPOOL_READ)->spool_read;
        Drover__SpoolData d = DROVER__SPOOL_DATA__INIT;
        d.sha256 = read->sha256;
        d.size = 5;
        d.data.data = (uint8_t *)"wrong";
        d.data.len = 5;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_SPOOL_DATA;
        m.spool_data = &d;
        send_m(&m);
        r = result(42);
        assert_int_equal(r->hold_code, 13);
        assert_non_null(strstr(r->reason, "checksum"));
}

static void keeps_results_until_acknowledged(void **s)
{
        (void)s;
        assign(&(struct job){.request = 50, .script = "exit 6"});
        assign(&(struct job){.request = 51,
                             .script = "touch $DROVER_SCRATCH/../../../iwd/going; sleep 1000"});
        assign(&(struct job){.request = 52, .script = "sleep 1000"});
        Drover__Result *first = hear(DROVER__TO_SERVER__KIND_RESULT)->result;
        assert_int_equal(first->jobs[0]->request, 50);
        wait_for("going");
        answer_inventory = false;
        forget_heard();
        session_free(session); /* the server goes away, and comes back */
        session = NULL;
        Drover__Inventory *i = hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory;
        assert_int_equal(i->n_finished,
                         1 + 2); /* the members of requests 1 and 5 were never acknowledged either */
        assert_int_equal(i->n_running, 2);
        assert_int_equal(i->running[0]->request, 51);
        Drover__Attempts *list[1] = {name(52)};
        reply_inventory(list, 1);
        answer_inventory = true;
        assert_int_equal(result(50)->steps[0]->exit_code, 6);
        control(51, DROVER__COMMAND__VACATE);
        assert_int_equal(result(51)->outcome, DROVER__OUTCOME__KILLED);
}

static void a_killed_agent_loses_nothing(void **s)
{
        (void)s;
        unlink("going");
        assign(&(struct job){.request = 60,
                             .stdout_file = "adopted",
                             .all_outputs = true,
                             .script = "echo x > $DROVER_SCRATCH/../../../iwd/begun; while [ ! -e "
                                       "$DROVER_SCRATCH/../../../iwd/finish ]; do sleep 0.02; done; echo "
                                       "made > product; echo lived; exit 17"});
        wait_for("begun");
        kill(agent, SIGKILL);
        waitpid(agent, NULL, 0);
        forget_heard();
        start_agent();
        Drover__Inventory *i = hear(DROVER__TO_SERVER__KIND_INVENTORY)->inventory;
        assert_int_equal(i->n_running, 1);
        assert_int_equal(i->running[0]->request, 60);
        place("finish", "");
        Drover__JobResult *r = result(60);
        assert_int_equal(r->outcome, DROVER__OUTCOME__EXITED);
        assert_int_equal(r->steps[0]->exit_code, 17);
        content("adopted", "lived\n");
        content("product", "made\n");
        /* one that ends while there is no agent */
        unlink("begun");
        assign(&(struct job){.request = 61,
                             .script = "echo x > $DROVER_SCRATCH/../../../iwd/again; sleep 0.3; exit 18"});
        wait_for("again");
        kill(agent, SIGKILL);
        waitpid(agent, NULL, 0);
        forget_heard();
        usleep(500000);
        start_agent();
        assert_int_equal(result(61)->steps[0]->exit_code, 18);
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
                    str_search(buf_view(&b), str_of(state)) > 0)
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
        assign(&(struct job){.request = 70,
                             .script = "echo x > $DROVER_SCRATCH/../../../iwd/mark; sleep 1000"});
        wait_for("mark");
        kill(shepherd_pid(), SIGKILL);
        assert_int_equal(result(70)->outcome, DROVER__OUTCOME__LOST);
        /* The next shepherd is there, or will be: it waits for it. No offer need tell, none may have changed.
         */
        assign(&(struct job){.request = 71, .script = "exit 1"});
        assert_int_equal(result(71)->steps[0]->exit_code, 1);
}

static void the_lease_ends_without_the_server(void **s)
{
        (void)s;
        lease_ms = 1500;
        assign(&(struct job){.request = 80,
                             .script = "echo $$ > $DROVER_SCRATCH/../../../iwd/pid; exec sleep 1000"});
        wait_for("pid");
        BUF_CLEANUP struct buf b = {0}, path = {0};
        buf_printf(&path, "%s/pid", work);
        for (int i = 0; i < 200 && b.n == 0; i++) {
                run_for(10);
                fs_read(AT_FDCWD, buf_z(&path), 64, &b, NULL);
        }
        int64_t pid;
        assert_int_equal(str_to_i64(str_trim(buf_view(&b)), &pid), 0);
        run_for(2500); /* renewed: it goes on */
        assert_int_equal(kill((pid_t)pid, 0), 0);
        answer_renewals = false;
        int64_t start = clock_boot_ms();
        while (kill((pid_t)pid, 0) == 0 && clock_boot_ms() - start < PATIENCE_MS)
                run_for(20);
        assert_int_equal(kill((pid_t)pid, 0), -1);
        answer_renewals = true;
        lease_ms = 60000;
}

static int setup(void **s)
{
        (void)s;
        struct err err = {""};
        BUF_CLEANUP struct buf path = {0}, cert = {0}, key = {0};
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        strncpy(top, "/tmp/drover-agent-XXXXXX", sizeof(top) - 1);
        assert_non_null(mkdtemp(top));
        snprintf(state, sizeof(state), "%s/state", top);
        snprintf(work, sizeof(work), "%s/iwd", top);
        snprintf(address, sizeof(address), "unix:%s/agents.sock", top);
        assert_int_equal(mkdir(work, 0700), 0);
        buf_printf(&path, "%s/ca", top);
        assert_int_equal(ca_open(buf_z(&path), STR("unit"), clock_wall_ms(), &ca, &err), 0);
        assert_int_equal(ca_issue_server(ca, NULL, 0, clock_wall_ms(), 86400, &cert, &key, &err), 0);
        snprintf(token, sizeof(token), "drover-agent-token.v1.%s.id.secret", ca_fingerprint(ca));
        struct tls_config t = {.ca_pem = ca_cert_pem(ca),
                               .cert_pem = buf_view(&cert),
                               .key_pem = buf_view(&key),
                               .ask_client = true};
        assert_int_equal(tls_server_new(&t, &tls, &err), 0);
        loop = loop_new();
        renew_ms = 300;
        lease_ms = 60000;
        answer_renewals = answer_inventory = true;
        return listener_new(loop, address, 0600, on_accept, NULL, &listener, &err);
}

static int teardown(void **s)
{
        (void)s;
        if (agent > 0) {
                kill(agent, SIGINT); /* ends what runs */
                int status;
                assert_int_equal(waitpid(agent, &status, 0), agent);
                assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        session_free(session);
        listener_free(listener);
        tls_unref(tls);
        ca_free(ca);
        forget_heard();
        drover__to_server__free_unpacked(current, NULL);
        loop_free(loop);
        for (int i = 0; i < 100 && fs_remove_tree(AT_FDCWD, top) != 0; i++)
                usleep(20000);
        return 0;
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
                cmocka_unit_test(refuses_strangers),
                cmocka_unit_test(carries_through_the_spool),
                cmocka_unit_test(keeps_results_until_acknowledged),
                cmocka_unit_test(a_killed_agent_loses_nothing),
                cmocka_unit_test(a_dead_shepherd_means_lost),
                cmocka_unit_test(the_lease_ends_without_the_server),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
