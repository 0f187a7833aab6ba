#include "core/test_story.h"

static void on_event(void *arg, const struct event *e)
{
        struct story *s = arg;

        buf_printf(&s->events, "%s %llu", event_name(e->type), (unsigned long long)e->request);
        if (set_count(&e->members)) {
                buf_char(&s->events, ' ');
                set_print(&s->events, &e->members);
        }
        if (e->type == EVENT_EXITED || e->type == EVENT_LOST || e->type == EVENT_VACATING)
                buf_printf(&s->events, " -> %s", job_state_name((enum job_state)e->next));
        buf_char(&s->events, '\n');
        assert_true(s->log_count < 64);
        event_pack(&s->log[s->log_count++], e);
}

static void on_history(void *arg, const struct past_job *f)
{
        struct story *s = arg;

        buf_printf(&s->history, "%llu.%u %s %d\n", (unsigned long long)f->request, f->member,
                   job_state_name(f->state), f->exit_code);
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        struct story *s = arg;

        if (request == 1) {
                buf_reset(&s->record);
                buf_str(&s->record, record);
        }
}

static void on_forget(void *arg, uint64_t request)
{
        struct story *s = arg;

        buf_printf(&s->actions, "forget %llu\n", (unsigned long long)request);
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        struct story *s = arg;

        buf_printf(&s->actions, "assign %s %s %llu ", a->agent, a->queue, (unsigned long long)a->request);
        set_print(&s->actions, a->members);
        buf_printf(&s->actions, " f%u\n", a->fence);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        static const char *const names[] = {"remove", "hold", "vacate", "suspend", "resume"};
        struct story *s = arg;

        buf_printf(&s->actions, "%s %s %llu ", names[what], agent, (unsigned long long)request);
        set_print(&s->actions, members);
        buf_printf(&s->actions, " f%u\n", fence);
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        struct story *s = arg;

        (void)err;
        assert_int_equal(request, 1);
        buf_str(ret, buf_view(&s->record));
        return 0;
}

struct core *story_core(struct story *s, bool shadow)
{
        struct core_world world = {s,         on_event,  on_history, on_keep,
                                   on_forget, on_assign, on_control, on_load};
        struct core_config config = {.lease_ms = 60000, .lease_margin_ms = 1000, .shadow = shadow};
        struct core *c = core_new(&config, &world);

        core_clock(c, s->now, s->now);
        return c;
}

int story_setup(void **state)
{
        struct story *s = mem_new(struct story);

        s->now = 1700000000000;
        s->core = story_core(s, false);
        *state = s;
        return 0;
}

int story_teardown(void **state)
{
        struct story *s = *state;

        const char *bad = core_check(s->core);

        if (bad)
                fail_msg("%s", bad);
        core_free(s->core);
        buf_deinit(&s->events);
        buf_deinit(&s->actions);
        buf_deinit(&s->history);
        buf_deinit(&s->record);
        for (size_t i = 0; i < s->log_count; i++)
                buf_deinit(&s->log[i]);
        free(s);
        return 0;
}

void story_wait(struct story *s, int64_t ms)
{
        s->now += ms;
        core_clock(s->core, s->now, s->now);
}

int story_submit(struct story *s, uint64_t steps, const char *const *pairs, struct err *err)
{
        struct submission sub = {.owner = str_of(s->owner ? s->owner : "ann@local"), .at_ms = s->now};
        struct submission_part *p = submission_add_part(&sub);
        static unsigned char next = 1;
        uint64_t id = 0;
        bool existing;
        int r;

        sub.uuid[0] = next++;
        p->steps = steps;
        for (; *pairs; pairs += 2)
                submission_add_attribute(p, str_of(pairs[0]), str_of(pairs[1]),
                                         strstr(pairs[1], "$(") != NULL);
        r = core_submit(s->core, &sub, false, &id, &existing, err);
        submission_deinit(&sub);
        return r ? -r : (int)id;
}
void story_offer(struct story *s, const char *agent, const char *ad, unsigned jobs)
{
        struct core_offer o = {.agent = agent, .queue = "q", .serial = 1, .ad = str_of(ad), .jobs_max = jobs};

        core_agent_connected(s->core, agent);
        assert_int_equal(core_offer(s->core, &o, NULL), 0);
        core_match(s->core);
}

bool story_result(struct story *s, const char *agent, uint32_t member, uint32_t fence, int exit_code)
{
        struct core_result r = {.request = 1,
                                .member = member,
                                .fence = fence,
                                .exit_code = exit_code,
                                .started_ms = s->now - 10,
                                .ended_ms = s->now};

        return core_result(s->core, agent, &r);
}

uint64_t story_act(struct story *s, enum core_action action, const char *members, int64_t value)
{
        struct core_command cmd = {.action = action, .request = 1, .reason = STR("so"), .value = value};
        struct set some = {0};
        uint64_t n = 0;

        if (members) {
                assert_int_equal(set_parse(&some, str_of(members), 1000000), 0);
                cmd.members = &some;
        }
        assert_int_equal(core_act(s->core, &cmd, &n, NULL), 0);
        set_deinit(&some);
        return n;
}

void story_replays(struct story *s)
{
        BUF_CLEANUP struct buf here = {0}, there = {0}, again = {0};
        struct core *c = story_core(s, true), *restored = story_core(s, true);

        for (size_t i = 0; i < s->log_count; i++)
                assert_int_equal(core_replay(c, buf_view(&s->log[i]), NULL), 0);
        core_snapshot(s->core, &here);
        core_snapshot(c, &there);
        assert_true(str_eq(buf_view(&here), buf_view(&there)));
        assert_int_equal(core_restore(restored, buf_view(&here), NULL), 0);
        core_snapshot(restored, &again);
        assert_true(str_eq(buf_view(&here), buf_view(&again)));
        core_free(c);
        core_free(restored);
}
