/* What the core costs: memory of a queued job, submits, matching, results, replay. No store and no sockets.
 * Prints `name value unit higher|lower` lines. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "core/core.h"
#include "core/query.h"

static struct buf *records;
static size_t record_count, record_cap;
static struct buf kept; /* of the newest request */
static uint64_t given, rows;
static bool recording;

static void on_event(void *arg, const struct event *e)
{
        struct buf record = {0};

        (void)arg;
        event_pack(&record, e);
        if (recording) {
                MEM_GROW(records, record_cap, record_count + 1);
                records[record_count++] = record;
        } else {
                buf_deinit(&record);
        }
}

static void on_history(void *arg, const struct past_job *f)
{
        (void)arg;
        rows += f->data.n > 0;
}

static void on_keep(void *arg, uint64_t request, struct str record)
{
        (void)arg;
        (void)request;
        buf_reset(&kept);
        buf_str(&kept, record);
}

static void on_forget(void *arg, uint64_t request)
{
        (void)arg;
        (void)request;
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        (void)arg;
        given += set_count(a->members);
}

static void on_control(void *arg, const char *agent, enum core_control what, uint64_t request, uint32_t fence,
                       const struct set *members)
{
        (void)arg;
        (void)agent;
        (void)what;
        (void)request;
        (void)fence;
        (void)members;
}

static int on_load(void *arg, uint64_t request, struct buf *ret, struct err *err)
{
        (void)arg;
        (void)request;
        (void)err;
        buf_str(ret, buf_view(&kept));
        return 0;
}

static struct core *make(void)
{
        static const struct core_world world = {NULL,      on_event,  on_history, on_keep,
                                                on_forget, on_assign, on_control, on_load};
        static const struct core_config config = {.lease_ms = 300000};
        struct core *c = core_new(&config, &world);

        core_clock(c, 1700000000000, 1000);
        return c;
}

static void line(const char *name, double value, const char *unit, const char *better)
{
        printf("%s %.6g %s %s\n", name, value, unit, better);
}

#define ITEM_ARGUMENTS "\"--run $(Process) --file $(Item)\""

/* One request: `rows` items of about 60 bytes, or none; classes are told apart by their memory. */
static void submit_as(struct core *c, const char *owner, uint64_t count, bool items, unsigned class,
                      const char *arguments)
{
        const char *const attributes[][2] = {
                {"Cmd", "\"/usr/bin/analyse\""},
                {"Arguments", arguments},
                {"Requirements",
                 "TARGET.Arch == \"X86_64\" && TARGET.OpSys == \"LINUX\" && TARGET.Disk >= RequestDisk && "
                 "TARGET.Memory >= RequestMemory && TARGET.Cpus >= RequestCpus && TARGET.HasFileTransfer"},
                {"RequestCpus", "1"},
                {"RequestDisk", "1024"},
                {"Iwd", "\"/home/ann/project\""},
                {"Out", "\"out.$(Process)\""},
                {"Err", "\"err.$(Process)\""},
        };
        struct submission s = {.owner = str_of(owner), .at_ms = 1700000000000};
        struct submission_part *p = submission_add_part(&s);
        static uint64_t number;
        struct buf text = {0};
        char memory[24];
        uint64_t id;
        bool existing;
        struct err err;

        number++;
        memcpy(s.uuid, &number, sizeof(number));
        snprintf(memory, sizeof(memory), "%u", 100 + class);
        for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
                submission_add_attribute(p, str_of(attributes[i][0]), str_of(attributes[i][1]),
                                         strstr(attributes[i][1], "$(") != NULL);
        submission_add_attribute(p, STR("RequestMemory"), str_of(memory), false);
        submission_add_variable(p, STR("Item"));
        if (items) {
                for (uint64_t i = 0; i < count; i++)
                        buf_printf(&text, "/data/run2026/physics/st_physics_%010" PRIu64 "_raw.root\n", i);
                p->rows = count;
        } else {
                buf_addz(&text, "x\n");
                p->steps = count;
        }
        p->items = buf_view(&text);
        if (core_submit(c, &s, false, &id, &existing, &err)) {
                fprintf(stderr, "bench_core: %s\n", err.text);
                exit(1);
        }
        submission_deinit(&s);
        buf_deinit(&text);
}

static void submit(struct core *c, uint64_t count, bool items, unsigned class)
{
        submit_as(c, "ann@local", count, items, class, ITEM_ARGUMENTS);
}

static size_t used(void)
{
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

static void bench_memory(void)
{
        const uint64_t n = 1000000;

        for (int items = 0; items < 2; items++) {
                struct core *c = make();
                size_t before;

                submit(c, 1, items, 0);
                before = used();
                submit(c, n, items, 0);
                buf_deinit(&kept);
                line(items ? "core_bytes_per_queued_job_with_item" : "core_bytes_per_queued_job",
                     (double)(used() - before) / (double)n, "B", "lower");
                core_free(c);
        }
        struct core *c = make();
        size_t before = used();
        for (int i = 0; i < 10000; i++)
                submit(c, 1, false, 0);
        line("core_bytes_per_single_job_request", (double)(used() - before) / 10000, "B", "lower");
        before = used();
        for (int i = 0; i < 10000; i++) {
                char arguments[32];

                snprintf(arguments, sizeof(arguments), "\"--run %d\"", i);
                submit_as(c, "ann@local", 1, false, 0, arguments);
        }
        line("core_bytes_per_single_job_request_own_arguments", (double)(used() - before) / 10000, "B",
             "lower");
        before = used();
        for (unsigned i = 0; i < 2000; i++)
                submit(c, 1, false, 1 + i);
        line("core_bytes_per_single_job_request_own_memory", (double)(used() - before) / 2000, "B", "lower");
        core_free(c);
}

static void offer(struct core *c, unsigned i)
{
        char name[16], ad[400];
        struct core_offer o = {.agent = name, .queue = "default", .serial = 1, .ad = {ad, 0}, .jobs_max = 64};

        snprintf(name, sizeof(name), "node%05u", i);
        o.ad.n = (size_t)snprintf(
                ad, sizeof(ad),
                "[ Arch = \"X86_64\"; OpSys = \"LINUX\"; Cpus = 16; Memory = 65536; Disk = 100000000; "
                "TotalCpus = 16; TotalMemory = 65536; TotalDisk = 100000000; HasFileTransfer = true; "
                "LoadAvg = 0.1; Requirements = LoadAvg < 0.5 && TARGET.RequestCpus <= 16 ]");
        core_agent_connected(c, name);
        if (core_offer(c, &o, NULL))
                abort();
}

/* 1,000 classes with a million jobs, agents that come one after the other: assignments a second. */
static void bench_match(uint64_t queued, unsigned classes, unsigned agents)
{
        struct core *c = make();
        char name[64];
        int64_t start;

        for (unsigned i = 0; i < classes; i++)
                submit(c, queued / classes, false, i);
        given = 0;
        start = clock_mono_ns();
        for (unsigned i = 0; i < agents; i++) {
                offer(c, i);
                core_match(c);
        }
        snprintf(name, sizeof(name), "core_assignments_per_s_%" PRIu64 "_queued", queued);
        line(name, (double)given * 1e9 / (double)(clock_mono_ns() - start), "/s", "higher");
        core_free(c);
}

/* 1,000 accounts with 50,000 jobs in all, one turn after the other: assignments a second. */
static void bench_accounts(unsigned accounts, uint64_t jobs)
{
        struct core *c = make();
        int64_t start;

        for (unsigned i = 0; i < accounts; i++) {
                char owner[32];

                snprintf(owner, sizeof(owner), "user%u@local", i);
                submit_as(c, owner, jobs / accounts, false, 0, ITEM_ARGUMENTS);
        }
        given = 0;
        start = clock_mono_ns();
        for (unsigned i = 0; given < jobs && i < jobs; i++) {
                offer(c, i);
                core_match(c);
        }
        line("core_assignments_per_s_1000_accounts", (double)given * 1e9 / (double)(clock_mono_ns() - start),
             "/s", "higher");
        core_free(c);
}

/* One agent's worth of jobs again and again: match, accept, start, exit, history. */
static void bench_life(void)
{
        struct core *c = make();
        uint64_t done = 0;
        int64_t start;

        submit(c, 100000, true, 0);
        recording = true;
        start = clock_mono_ns();
        for (unsigned round = 0; done < 50000; round++) {
                struct set members = {0};

                offer(c, 0);
                core_match(c);
                set_add_range(&members, done, done + 16);
                struct core_attempts a = {1, 1, &members};
                a.request = core_request_last(c);
                core_accepted(c, "node00000", &a);
                core_started(c, "node00000", &a, 1700000000000);
                for (uint64_t m = done; m < done + 16; m++) {
                        struct core_result r = {.request = a.request, .member = (uint32_t)m, .fence = 1};

                        if (!core_result(c, "node00000", &r))
                                abort();
                }
                set_deinit(&members);
                done += 16;
        }
        line("core_lives_per_s", (double)done * 1e9 / (double)(clock_mono_ns() - start), "/s", "higher");
        struct core *again = make();
        start = clock_mono_ns();
        recording = false;
        size_t replayed = 0;
        for (; replayed < record_count; replayed++)
                if (core_replay(again, buf_view(&records[replayed]), NULL))
                        break;
        if (replayed == record_count)
                line("core_replayed_records_per_s",
                     (double)replayed * 1e9 / (double)(clock_mono_ns() - start), "/s", "higher");
        core_free(again);
        core_free(c);
}

int main(void)
{
        bench_memory();
        bench_match(2000, 1000, 2000);
        bench_match(1000000, 1000, 2000);
        bench_accounts(1000, 50000);
        recording = true;
        bench_life();
        return 0;
}
