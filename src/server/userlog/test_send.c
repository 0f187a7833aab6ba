/* The user log on a core of its own, with agents that are only written down: what would be sent is looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "auth/certificates.h"
#include "server/agents/leases.h"
#include "server/userlog/private.h"

#define WALL_MS 1767323045000

static void on_event(void *arg, const struct event *e)
{
        struct server *s = arg;

        userlog_event(s, e);
        atomic_store(&s->durable_seq, s->userlog->next_seq - 1);
}

static void on_history(void *arg, const struct past_job *f)
{
        (void)arg;
        (void)f;
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg;
        (void)request;
        (void)record;
}

static void on_forget(void *arg, uint64_t request)
{
        (void)arg;
        (void)request;
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        (void)arg;
        (void)a;
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        (void)arg, (void)agent, (void)what, (void)request, (void)fence, (void)members;
}

static int make_server(void **state)
{
        struct server *s = mem_new(struct server);
        struct core_config config = {0};
        struct core_world world = {.arg = s,
                                   .event = on_event,
                                   .history = on_history,
                                   .keep = on_keep,
                                   .forget = on_forget,
                                   .assign = on_assign,
                                   .control = on_control};

        s->loop = loop_new();
        s->turn = turn_new(s, NULL);
        s->agents = agents_new(s, NULL);
        s->leases = leases_new();
        s->userlog = userlog_new();
        s->core = core_new(&config, &world);
        core_clock(s->core, WALL_MS, 1000);
        *state = s;
        return 0;
}

static int free_server(void **state)
{
        struct server *s = *state;

        userlog_free(s->userlog);
        agents_drop_all(s->agents);
        leases_free(s->leases);
        core_free(s->core);
        turn_free(s->turn);
        loop_free(s->loop);
        free(s);
        return 0;
}

static uint64_t submit(struct server *s, const char *log, bool late, uint64_t jobs)
{
        struct submission sub = {.owner = STR("ann@local"), .at_ms = WALL_MS};
        struct submission_part *p = submission_add_part(&sub);
        static unsigned char last;
        BUF_CLEANUP struct buf text = {0};
        uint64_t id = 0;
        bool existing;
        struct err err;

        sub.uuid[0] = ++last;
        submission_add_attribute(p, STR("Cmd"), STR("\"/bin/true\""), false);
        submission_add_attribute(p, STR("Iwd"), STR("\"/home/ann\""), false);
        submission_add_attribute(p, STR("FileSystemDomain"), STR("\"here\""), false);
        submission_add_attribute(p, STR("SubmitHost"), STR("\"sub\""), false);
        if (log) {
                buf_printf(&text, "\"%s\"", log);
                submission_add_attribute(p, STR("UserLog"), buf_view(&text), late);
        }
        p->rows = 1;
        p->steps = jobs;
        assert_int_equal(core_submit(s->core, &sub, false, &id, &existing, &err), 0);
        submission_deinit(&sub);
        return id;
}

static void act(struct server *s, enum core_action action, uint64_t request, struct str reason)
{
        struct core_command c = {.action = action, .request = request, .reason = reason};
        uint64_t affected = 0;

        assert_int_equal(core_act(s->core, &c, &affected, NULL), 0);
        assert_true(affected > 0);
}

static struct agent *join(struct server *s, const char *name, uint64_t session, const char *domain,
                          struct str owner)
{
        const struct certificate certificate = {.name = name, .until_ms = INT64_MAX};
        struct agent_hello hello = {.name = name,
                                    .hostname = name,
                                    .filesystem_domain = domain,
                                    .program = "",
                                    .session = session,
                                    .certificate = &certificate};
        struct core_offer offer = {.agent = name,
                                   .queue = "q",
                                   .serial = 1,
                                   .ad = STR("[ Cpus = 4; Memory = 1000; Disk = 1000000 ]"),
                                   .owners = &owner,
                                   .owner_count = 1};
        struct agent *a = agents_connected(s, &hello);

        assert_int_equal(core_offer(s->core, &offer, NULL), 0);
        return a;
}

static struct channel *only_channel(struct server *s)
{
        assert_non_null(s->userlog->active);
        assert_null(s->userlog->active->next);
        return s->userlog->active;
}

static void answer(struct server *s, struct agent *a, struct out *o, const char *error, bool again)
{
        userlog_written(s, a,
                        &(struct command_log_written){
                                .serial = o->serial, .error = str_of(error), .again = again, .added = true});
}

#define LINE(n) "000 (001.00" n ".000) 2026-01-02 03:04:05 Job submitted from host: <sub:0?alias=sub>\n...\n"

static void test_waits_for_the_right_agent(void **state)
{
        struct server *s = *state;
        struct channel *c;
        struct agent *a;

        submit(s, "job.log", false, 2);
        join(s, "n1", 11, "elsewhere", STR("ann@local"));
        join(s, "n2", 12, "here", STR("bob@local"));
        userlog_flush(s);
        c = only_channel(s);
        assert_null(c->outs);
        assert_int_equal(c->session, 0);
        a = join(s, "n3", 13, "here", STR("ann@local"));
        c->looked_ms = 0;
        userlog_flush(s);
        assert_int_equal(c->session, 13);
        assert_non_null(c->outs);
        assert_true(c->outs->sent);
        assert_string_equal(c->outs->path, "/home/ann/job.log");
        assert_string_equal(buf_z(&c->outs->text), LINE("0") LINE("1"));
        assert_null(c->outs->next);
        answer(s, a, c->outs, NULL, false);
        assert_null(c->outs);
        userlog_flush(s);
        assert_null(s->userlog->active);
        assert_int_equal(s->userlog->bytes, 0);
}

static void test_nothing_for_jobs_without(void **state)
{
        struct server *s = *state;

        act(s, CORE_ACT_HOLD, submit(s, NULL, false, 2), STR("why"));
        act(s, CORE_ACT_HOLD, submit(s, "/dev/null", false, 2), STR("why"));
        act(s, CORE_ACT_HOLD, submit(s, "", false, 2), STR("why"));
        assert_null(s->userlog->active);
        assert_int_equal(idmap_count(s->userlog->requests), 0);
        assert_int_equal(s->userlog->next_seq, 7);
}

static void test_not_before_it_is_durable(void **state)
{
        struct server *s = *state;

        submit(s, "job.log", false, 1);
        join(s, "n1", 11, "here", STR("ann@local"));
        atomic_store(&s->durable_seq, 0);
        userlog_flush(s);
        assert_null(only_channel(s)->outs);
        atomic_store(&s->durable_seq, 1);
        userlog_flush(s);
        assert_non_null(only_channel(s)->outs);
}

static void test_sent_again_to_the_next_session(void **state)
{
        struct server *s = *state;
        struct channel *c;
        struct agent *a;

        submit(s, "$(Process).log", true, 3);
        a = join(s, "n1", 11, "here", STR("ann@local"));
        userlog_flush(s);
        c = only_channel(s);
        assert_string_equal(c->outs->path, "/home/ann/0.log");
        assert_string_equal(c->outs->next->path, "/home/ann/1.log");
        assert_string_equal(c->outs->next->next->path, "/home/ann/2.log");
        assert_false(c->outs->again);
        answer(s, a, c->outs, NULL, false);
        agents_gone(s, STR("n1"), 11);
        userlog_flush(s);
        assert_false(c->outs->sent);
        a = join(s, "n1", 14, "here", STR("ann@local"));
        c->looked_ms = 0;
        userlog_flush(s);
        assert_true(c->outs->sent && c->outs->again);
        assert_string_equal(c->outs->path, "/home/ann/1.log");
        answer(s, a, c->outs, "no space", true); /* nothing is sent for a while */
        userlog_flush(s);
        assert_false(c->outs->sent);
        c->not_before_ms = 0;
        userlog_flush(s);
        answer(s, a, c->outs, "not allowed", false); /* given up */
        assert_string_equal(c->outs->path, "/home/ann/2.log");
}

static void test_too_much_is_said_in_the_log(void **state)
{
        struct server *s = *state;
        MEM_CLEANUP char *reason = mem_zalloc(8001);
        uint64_t id = submit(s, "job.log", false, 3), dropped;
        struct channel *c = only_channel(s);
        char want[160];

        memset(reason, 'x', 8000);
        for (int i = 0; i < 4000; i++) {
                act(s, CORE_ACT_HOLD, id, str_of(reason));
                act(s, CORE_ACT_RELEASE, id, str_of(reason));
        }
        assert_true(c->entry_bytes <= 32 << 20);
        assert_int_equal(c->entry_bytes, s->userlog->bytes);
        assert_int_equal(c->missing_count, 1);
        dropped = c->missing[0].count;
        assert_true(dropped > 0 && dropped % 3 == 0);
        for (struct entry *e = c->first; e; e = e->next)
                dropped += 3;
        assert_int_equal(dropped, 3 * 8001);
        join(s, "n1", 11, "here", STR("ann@local"));
        snprintf(want, sizeof(want),
                 "008 (001.000.000) 2026-01-02 03:04:05 Drover: %llu events are missing here, too many were "
                 "waiting\n"
                 "...\n",
                 (unsigned long long)c->missing[0].count);
        userlog_flush(s);
        assert_int_equal(c->missing_count, 0);
        assert_int_equal(strncmp(buf_z(&c->outs->text), want, strlen(want)), 0);
        assert_true(c->out_bytes >= 262144 && c->out_bytes < 2 * 262144);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_server, free_server)
        const struct CMUnitTest tests[] = {
                TEST(test_waits_for_the_right_agent),   TEST(test_nothing_for_jobs_without),
                TEST(test_not_before_it_is_durable),    TEST(test_sent_again_to_the_next_session),
                TEST(test_too_much_is_said_in_the_log),
        };

        setenv("TZ", "UTC", 1);
        tzset();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
