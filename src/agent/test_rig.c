#include "agent/test_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "auth/ca.h"
#include "base/system/clock.h"
#include "base/system/fs.h"

struct rig rig;

static struct loop *loop;
static struct listener *listener;
static struct tls_context *tls;
static struct ca *ca;
static uint64_t offer_serial;

/* received messages, in order, until a test expects them */
struct heard {
        struct heard *next;
        Drover__ToServer *m;
};
static struct heard *heard_first;
static Drover__ToServer *current;

/* ---- the server */

void rig_send(Drover__ToAgent *m)
{
        assert_non_null(rig.session);
        session_send(rig.session, &m->base);
}

static void on_join(const Drover__Join *j)
{
        BUF_CLEANUP struct buf cert = {0}, pem = {0};
        struct err err;

        assert_string_equal(j->token, rig.token);
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
        rig_send(&m);
}

void rig_reply_inventory(Drover__Attempts **kill_list, size_t n)
{
        Drover__InventoryReply r = DROVER__INVENTORY_REPLY__INIT;

        r.kill = kill_list;
        r.n_kill = n;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_INVENTORY_REPLY;
        m.inventory_reply = &r;
        rig_send(&m);
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
                w.renew_ms = rig.renew_ms;
                to.kind_case = DROVER__TO_AGENT__KIND_WELCOME;
                to.welcome = &w;
                rig_send(&to);
        } else if (m->kind_case == DROVER__TO_SERVER__KIND_RENEW) {
                Drover__RenewAck r = DROVER__RENEW_ACK__INIT;

                r.serial = m->renew->serial;
                to.kind_case = DROVER__TO_AGENT__KIND_RENEW_ACK;
                to.renew_ack = &r;
                if (rig.answer_renewals)
                        rig_send(&to);
        } else if (m->kind_case == DROVER__TO_SERVER__KIND_INVENTORY && rig.answer_inventory) {
                rig_reply_inventory(NULL, 0);
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
        if (rig.session == s)
                rig.session = NULL;
}

static void on_accept(void *arg, int fd)
{
        static const struct session_ops ops = {NULL, on_message, on_closed};

        (void)arg;
        session_free(rig.session);
        rig.session = session_accept(loop, fd, tls, 0, &ops, NULL);
        session_frame_max(rig.session, SESSION_FRAME_MAX);
}

static void on_patience(void *arg)
{
        *(bool *)arg = true;
        loop_stop(loop);
}

Drover__ToServer *rig_hear(Drover__ToServer__KindCase kind)
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

void rig_run_for(int64_t ms)
{
        bool over = false;
        struct timer *t = timer_new(loop, on_patience, &over);

        timer_start(t, ms);
        while (!over)
                loop_run(loop);
        timer_free(t);
}

void rig_forget(void)
{
        while (heard_first) {
                struct heard *h = heard_first;

                heard_first = h->next;
                drover__to_server__free_unpacked(h->m, NULL);
                free(h);
        }
}

/* ---- the agent */

void rig_kill_agent(void)
{
        kill(rig.agent, SIGKILL);
        waitpid(rig.agent, NULL, 0);
        rig_forget();
}

void rig_start_agent(void)
{
        rig.agent = fork();
        if (rig.agent == 0) {
                BUF_CLEANUP struct buf log = {0};

                buf_printf(&log, "%s/log", rig.top);
                int fd = open(buf_z(&log), O_WRONLY | O_CREAT | O_APPEND, 0600);
                dup2(fd, 2);
                if (rig.file_max) {
                        signal(SIGXFSZ, SIG_IGN);
                        setrlimit(RLIMIT_FSIZE, &(struct rlimit){rig.file_max, rig.file_max});
                }
                execl(getenv("AGENT"), "drover-agent", "--server", rig.address, "--dir", rig.state, "--name",
                      "n1", "--token", rig.token, "--shepherd", getenv("SHEPHERD"), "--kill-grace", "200ms",
                      "--cpus", "4", "--memory", "4G", "--filesystem-domain", "here", "--log-level", "debug",
                      NULL);
                _exit(99);
        }
}

/* ---- work */

void rig_sha256(const char *text, unsigned char ret[32])
{
        EVP_Digest(text, strlen(text), ret, NULL, EVP_sha256(), NULL);
}

void rig_assign(const struct job *j)
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
        t.owner = (char *)(j->stranger ? "stranger@local" : rig.owner);
        t.iwd = (char *)(j->iwd ? j->iwd : rig.work);
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
                rig_sha256(j->spooled_text, sum);
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
        g.lease_ms = rig.lease_ms;
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
        rig_send(&m);
}

Drover__Attempts *rig_attempt(uint64_t request)
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

void rig_control(uint64_t request, Drover__Command command)
{
        Drover__Attempts *list[1] = {rig_attempt(request)};
        Drover__Control c = DROVER__CONTROL__INIT;

        c.command = command;
        c.attempts = list;
        c.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_CONTROL;
        m.control = &c;
        rig_send(&m);
}

static void ack(uint64_t request)
{
        Drover__Attempts *list[1] = {rig_attempt(request)};
        Drover__ResultAck a = DROVER__RESULT_ACK__INIT;

        a.attempts = list;
        a.n_attempts = 1;
        Drover__ToAgent m = DROVER__TO_AGENT__INIT;
        m.kind_case = DROVER__TO_AGENT__KIND_RESULT_ACK;
        m.result_ack = &a;
        rig_send(&m);
}

Drover__JobResult *rig_result(uint64_t request)
{
        for (;;) {
                Drover__Result *r = rig_hear(DROVER__TO_SERVER__KIND_RESULT)->result;

                for (size_t i = 0; i < r->n_jobs; i++)
                        if (r->jobs[i]->request == request) {
                                ack(request);
                                return r->jobs[i];
                        }
        }
}

void rig_content(const char *file, const char *want)
{
        BUF_CLEANUP struct buf b = {0}, path = {0};

        buf_printf(&path, "%s/%s", rig.work, file);
        assert_int_equal(fs_read(AT_FDCWD, buf_z(&path), 1 << 20, &b, NULL), 0);
        assert_string_equal(buf_z(&b), want);
}

void rig_place(const char *file, const char *text)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/%s", rig.work, file);
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&path), str_of(text), 0644, false, NULL), 0);
}

bool rig_exists(const char *file)
{
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/%s", rig.work, file);
        return access(buf_z(&path), F_OK) == 0;
}

void rig_wait_for(const char *file)
{
        for (int i = 0; i < 2000 && !rig_exists(file); i++)
                rig_run_for(10);
        assert_true(rig_exists(file));
}

/* ---- all of it */

int rig_setup(void **s)
{
        (void)s;
        struct err err = {""};
        BUF_CLEANUP struct buf path = {0}, cert = {0}, key = {0};
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        strncpy(rig.top, "/tmp/drover-agent-XXXXXX", sizeof(rig.top) - 1);
        assert_non_null(mkdtemp(rig.top));
        snprintf(rig.state, sizeof(rig.state), "%s/state", rig.top);
        snprintf(rig.work, sizeof(rig.work), "%s/iwd", rig.top);
        snprintf(rig.address, sizeof(rig.address), "unix:%s/agents.sock", rig.top);
        assert_int_equal(mkdir(rig.work, 0700), 0);
        buf_printf(&path, "%s/ca", rig.top);
        assert_int_equal(ca_open(buf_z(&path), STR("unit"), clock_wall_ms(), &ca, &err), 0);
        assert_int_equal(ca_issue_server(ca, NULL, 0, clock_wall_ms(), 86400, &cert, &key, &err), 0);
        snprintf(rig.token, sizeof(rig.token), "drover-agent-token.v1.%s.id.secret", ca_fingerprint(ca));
        struct tls_config t = {.ca_pem = ca_cert_pem(ca),
                               .cert_pem = buf_view(&cert),
                               .key_pem = buf_view(&key),
                               .ask_client = true};
        assert_int_equal(tls_server_new(&t, &tls, &err), 0);
        loop = loop_new();
        rig.renew_ms = 300;
        rig.lease_ms = 60000;
        rig.answer_renewals = rig.answer_inventory = true;
        return listener_new(loop, rig.address, 0600, on_accept, NULL, &listener, &err);
}

int rig_teardown(void **s)
{
        (void)s;
        if (rig.agent > 0) {
                kill(rig.agent, SIGINT); /* ends what runs */
                int status;
                assert_int_equal(waitpid(rig.agent, &status, 0), rig.agent);
                assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        session_free(rig.session);
        listener_free(listener);
        tls_unref(tls);
        ca_free(ca);
        rig_forget();
        drover__to_server__free_unpacked(current, NULL);
        loop_free(loop);
        for (int i = 0; i < 100 && fs_remove_tree(AT_FDCWD, rig.top) != 0; i++)
                usleep(20000);
        return 0;
}
