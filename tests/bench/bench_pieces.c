/* How long the core is busy in one piece with what is large.
 *
 * Ten thousand queues of 16 processors, all busy, and twenty thousand requests that wait, of a hundred users:
 * `eta` plays the queue forward, `quote` asks what one request more would take. `late`: a request of a
 * hundred thousand jobs whose memory stands in their items, in a hundred sizes. `removed`: a million jobs
 * that are removed, and their rows of history. `tick`: what is done every second when nothing is due. Of each
 * the longest piece, and all pieces together, in processor time of the one thread.
 *
 * Prints `name value unit higher|lower` lines. Arguments: queues and requests (default 10000 20000).
 */
#include <string.h>

#include "bench.h"
#include "core/forecast/quote.h"
#include "core/lifecycle/draft.h"
#include "core/query.h"

#define START_MS 1700000000000

static struct {
        struct core *core;
        int64_t now_ms, longest, all, began;
        unsigned pieces;
} field;

static void on_event(void *arg, const struct event *e)
{
        static struct buf record;

        (void)arg;
        buf_reset(&record);
        event_pack(&record, e);
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        (void)arg, (void)a;
}

static void begin(void)
{
        field.began = cpu_ns();
}

static void end(void)
{
        int64_t took = cpu_ns() - field.began;

        field.longest = took > field.longest ? took : field.longest;
        field.all += took;
        field.pieces++;
}

static void forget(void)
{
        field.longest = field.all = field.pieces = 0;
}

static void tell(const char *what, uint64_t n)
{
        line(what, "longest_ms", n, (double)field.longest / 1e6, "ms", "lower");
        line(what, "all_ms", n, (double)field.all / 1e6, "ms", "lower");
        forget();
}

static void pass_time(int64_t ms)
{
        field.now_ms += ms;
        core_clock(field.core, field.now_ms, field.now_ms - START_MS + 1000);
}

static void settle(void)
{
        for (bool more = true; more;) {
                more = core_tick(field.core) == 0;
                more |= core_match(field.core);
        }
}

static void start(void)
{
        static const struct core_world world = {.event = on_event,
                                                .history = world_history,
                                                .keep = world_keep,
                                                .forget = world_forget,
                                                .assign = on_assign,
                                                .control = world_control};
        static const struct core_config config = {.lease_ms = 360000000};

        field.core = core_new(&config, &world);
        field.now_ms = START_MS;
        pass_time(1000);
}

static void describe(struct submission *s, unsigned user, uint64_t jobs)
{
        static char owner[32];
        static uint64_t number;
        struct submission_part *p = submission_add_part(s);

        snprintf(owner, sizeof(owner), "user%u@lab", user);
        s->owner = str_of(owner);
        s->at_ms = field.now_ms;
        number++;
        memcpy(s->uuid, &number, sizeof(number));
        submission_add_attribute(p, STR("Cmd"), STR("\"/usr/bin/analyse\""), false);
        submission_add_attribute(p, STR("ExpectedRunTime"), STR("600"), false);
        submission_add_attribute(p, STR("Requirements"),
                                 STR("TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus && "
                                     "TARGET.OpSys == \"LINUX\""),
                                 false);
        submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
        submission_add_attribute(p, STR("RequestDisk"), STR("1024"), false);
        p->steps = jobs;
}

static struct core_draft *draft(const struct submission *s, enum core_draft_use use)
{
        struct core_draft *d;
        struct err err;

        begin();
        must(core_draft_new(field.core, s, use, &d, &err) == 0, "a submit");
        for (bool more = true; more; begin()) {
                must(core_draft_some(d, &more, &err) == 0, "a submit");
                end();
        }
        return d;
}

static uint64_t submit(const struct submission *s)
{
        struct core_draft *d = draft(s, CORE_DRAFT_SUBMIT);
        uint64_t id;
        bool existing;

        begin();
        must(core_draft_submit(d, &id, &existing, NULL) == 0, "a submit");
        end();
        core_draft_free(d);
        return id;
}

static void submit_one(unsigned user, unsigned memory, uint64_t jobs)
{
        char text[16];
        struct submission s = {.at_ms = 0};

        snprintf(text, sizeof(text), "%u", memory);
        describe(&s, user, jobs);
        submission_add_attribute(&s.parts[0], STR("RequestMemory"), str_of(text), false);
        submit(&s);
        submission_deinit(&s);
}

static void add_queues(unsigned queues)
{
        static const char ad[] = "[ Arch = \"X86_64\"; OpSys = \"LINUX\"; Cpus = 16; Memory = 65536; Disk = "
                                 "100000000; TotalCpus = 16; TotalMemory = 65536; "
                                 "Requirements = TARGET.RequestCpus <= 16 ]";

        for (unsigned i = 0; i < queues; i++) {
                char name[16];
                struct core_offer o = {.agent = name,
                                       .queue = "default",
                                       .serial = 1,
                                       .ad = {ad, sizeof(ad) - 1},
                                       .jobs_max = 64};

                snprintf(name, sizeof(name), "node%05u", i);
                core_agent_connected(field.core, name);
                must(core_offer(field.core, &o, NULL) == 0, "an offer");
        }
}

static void on_place(void *arg, const struct core_quote_place *p)
{
        (void)arg, (void)p;
}

static void bench_times(unsigned queues, unsigned requests)
{
        struct submission s = {.at_ms = 0};
        struct core_quoting *q;
        uint32_t look = 0;

        start();
        add_queues(queues);
        submit_one(0, 100, (uint64_t)queues * 16);
        settle();
        for (unsigned i = 0; i < requests; i++)
                submit_one(i % 100, 100 + i % 1000, 1 + i % 7);
        settle();
        forget();
        pass_time(1000);
        for (bool more = true; more; end()) {
                begin();
                more = core_eta_some(field.core, &look);
        }
        tell("eta", requests);
        for (int i = 0; i < 5; i++) {
                pass_time(1000);
                begin();
                core_tick(field.core);
                end();
        }
        tell("tick", requests);
        describe(&s, 200, 100);
        q = core_quote_new(draft(&s, CORE_DRAFT_QUOTE));
        for (bool more = true; more; end()) {
                begin();
                more = core_quote_some(q, on_place, NULL);
        }
        core_quote_free(q);
        tell("quote", requests);
        submission_deinit(&s);
        core_free(field.core);
}

static void act(uint64_t request, enum core_action action, const char *what, uint64_t jobs)
{
        struct core_command cmd = {.action = action, .request = request, .value = 7, .reason = STR("so")};
        uint64_t count;

        begin();
        must(core_act(field.core, &cmd, &count, NULL) == 0 && count == jobs, what);
        end();
        tell(what, jobs);
}

/* A request with so many classes, and what can be done to all of its jobs. */
static void bench_late(uint64_t jobs, unsigned sizes, bool acts)
{
        struct submission s = {.at_ms = 0};
        struct buf items = {0};
        uint64_t id;

        start();
        describe(&s, 1, 1);
        submission_add_attribute(&s.parts[0], STR("RequestMemory"), STR("$(size)"), true);
        submission_add_attribute(&s.parts[0], STR("Arguments"), STR("\"$(Process)\""), true);
        submission_add_variable(&s.parts[0], STR("size"));
        for (uint64_t i = 0; i < jobs; i++)
                buf_printf(&items, "%u\n", 100 + (unsigned)(i % sizes));
        s.parts[0].items = buf_view(&items);
        s.parts[0].rows = jobs;
        id = submit(&s);
        for (bool more = true; more; end()) {
                begin();
                more = core_match(field.core);
        }
        tell(acts ? "late_1000" : "late", jobs);
        if (acts) {
                act(id, CORE_ACT_PRIORITY, "priority", jobs);
                act(id, CORE_ACT_HOLD, "hold", jobs);
                act(id, CORE_ACT_RELEASE, "release", jobs);
                act(id, CORE_ACT_REMOVE, "remove_1000", jobs);
        }
        submission_deinit(&s);
        buf_deinit(&items);
        core_free(field.core);
}

/* An agent that comes and holds so many files. */
static void bench_held(uint64_t files)
{
        struct core_file *held = mem_array(NULL, files, sizeof(*held));

        start();
        for (uint64_t i = 0; i < files; i++)
                held[i] = (struct core_file){i * 0x9e3779b97f4a7c15 | 1, 1000000};
        core_agent_connected(field.core, "node");
        for (uint64_t i = 0; i < files; i += 4000) { /* as it says it */
                begin();
                core_cache_delta(field.core, "node", held + i, 4000, NULL, 0, i == 0);
                end();
        }
        tell("held_files", files);
        core_free(field.core);
        free(held);
}

/* One with so many jobs: nothing is heard of it until its leases end; or it comes back without them. */
static void bench_lost(uint32_t jobs, bool comes_back)
{
        char ad[200];
        struct core_offer o = {
                .agent = "node", .queue = "default", .serial = 1, .jobs_max = jobs, .ad = {ad, 0}};

        start();
        o.ad.n = (size_t)snprintf(ad, sizeof(ad),
                                  "[ OpSys = \"LINUX\"; Cpus = %u; Memory = 100000000; Disk = 1000000000; "
                                  "Requirements = true ]",
                                  jobs);
        core_agent_connected(field.core, "node");
        must(core_offer(field.core, &o, NULL) == 0, "an offer");
        submit_one(1, 100, jobs);
        settle();
        forget();
        if (comes_back) {
                begin();
                core_inventory(field.core, "node", NULL, 0, NULL, NULL);
                end();
        } else {
                core_agent_away(field.core, "node");
                pass_time(400000000);
        }
        for (bool more = true; more; end()) {
                begin();
                more = core_tick(field.core) == 0;
        }
        tell(comes_back ? "lost_inventory" : "lost_leases", jobs);
        core_free(field.core);
}

static void bench_removed(uint64_t jobs)
{
        struct submission s = {.at_ms = 0};
        struct core_command cmd = {.action = CORE_ACT_REMOVE};
        uint64_t count;

        start();
        describe(&s, 1, jobs);
        cmd.request = submit(&s);
        submission_deinit(&s);
        settle();
        forget();
        begin();
        must(core_act(field.core, &cmd, &count, NULL) == 0 && count == jobs, "a remove");
        end();
        for (bool more = true; more; end()) {
                begin();
                more = core_tick(field.core) == 0;
        }
        tell("removed", jobs);
        core_free(field.core);
}

int main(int argc, char **argv)
{
        unsigned queues = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 10000;

        bench_times(queues, argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 20000);
        bench_late(100000, 100, false);
        bench_late(100000, 1000, true);
        bench_held(100000);
        bench_lost(10000, true);
        bench_lost(10000, false);
        bench_removed(1000000);
        return 0;
}
