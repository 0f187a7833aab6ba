/* The curve: what an assignment costs as the queue grows, over ten thousand agents and a thousand classes.
 *
 * Ten thousand agents of eight kinds, with 16 processors free or one (`curve_one`); a thousand classes, told
 * apart by their memory, in twenty groups by what they demand (architecture, a container engine, conda, a
 * tag); every tenth agent suits no class. Each agent makes an offer in its turn and is given as many jobs;
 * before the next one these end, and as many of their classes are submitted, so that the queue stays as deep
 * as it is. Timed are the offers and the matching alone, in processor time of the one thread, events packed
 * as for the log. With a store the time is the clock's, from the first offer until the last assignment is
 * durable, 32 offers in a commit.
 *
 * With 16 free and 2,000 queued an offer takes two jobs of each of eight classes, with more it takes 16 of
 * one: what the depth of the queue costs by itself is seen with one free, where a decision is always an
 * offer, a class, a job and an event.
 *
 * Prints `name value unit higher|lower` lines. Arguments: depths to measure (default 2000 20000 200000
 * 1000000).
 */
#include <fcntl.h>
#include <malloc.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/system/clock.h"
#include "base/system/fs.h"
#include "bench.h"
#include "store/store.h"

#define AGENTS      10000u
#define CLASSES     1000u
#define JOBS        16u /* an agent takes */
#define TURN_OFFERS 32u /* in one commit */
#define START_MS    1700000000000

struct given {
        char agent[16];
        uint64_t request;
        uint32_t fence;
        struct set members;
};

static struct {
        struct core *core;
        struct store *store; /* NULL: records go nowhere */
        struct store_batch *batch;
        uint64_t term, appended, assigned;
        sem_t durable;
        struct given *given;
        size_t given_count, given_cap;
        struct buf record;
        unsigned *class_of, owners, rounds; /* class_of: by request */
        unsigned slots;                     /* that an offer has */
        size_t class_cap;
} field;

static void on_event(void *arg, const struct event *e)
{
        (void)arg;
        buf_reset(&field.record);
        event_pack(&field.record, e);
        if (field.store)
                store_batch_event(field.batch, buf_view(&field.record));
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        struct given *g;

        (void)arg;
        MEM_GROW(field.given, field.given_cap, field.given_count + 1);
        g = &field.given[field.given_count++];
        *g = (struct given){.request = a->request, .fence = a->fence};
        snprintf(g->agent, sizeof(g->agent), "%s", a->agent);
        set_copy(&g->members, a->members);
        field.assigned += set_count(a->members);
}

static void start(const char *address)
{
        static const struct core_world world = {.event = on_event,
                                                .history = world_history,
                                                .keep = world_keep,
                                                .forget = world_forget,
                                                .assign = on_assign,
                                                .control = world_control};
        static const struct core_config config = {.lease_ms = 300000, .keep_finished = 100};

        field.store = NULL;
        if (address) {
                struct err err;

                must(store_open(address, &field.store, NULL, &err) == 0, "the store");
                must(store_term_take(field.store, &field.term, NULL) == 0, "its term");
                sem_init(&field.durable, 0, 0);
                field.batch = store_batch_new();
        }
        field.core = core_new(&config, &world);
        core_clock(field.core, START_MS, 1000);
}

static void stop(void)
{
        core_free(field.core);
        if (field.store) {
                store_batch_free(field.batch);
                store_close(field.store);
        }
}

static void on_durable(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                       const struct err *err)
{
        (void)arg, (void)last_seq, (void)batch, (void)err;
        must(result == STORE_DURABLE, "a commit");
        sem_post(&field.durable);
}

static void append(void)
{
        if (!field.store)
                return;
        store_append(field.store, field.term, field.batch, on_durable, NULL);
        field.batch = store_batch_new();
        field.appended++;
}

static void wait_durable(void)
{
        for (; field.store && field.appended; field.appended--)
                sem_wait(&field.durable);
}

/* ---- jobs */

static const char *const demands[20] = {
        "TARGET.Arch == \"X86_64\"",
        "TARGET.Arch == \"X86_64\" && TARGET.HasDocker",
        "TARGET.Arch == \"X86_64\" && TARGET.HasConda",
        "TARGET.Arch == \"X86_64\" && member(\"fast\", TARGET.Tags)",
        "TARGET.Arch == \"aarch64\"",
        "TARGET.Arch == \"aarch64\" && TARGET.HasDocker",
        "TARGET.HasDocker",
        "TARGET.HasConda",
        "member(\"fast\", TARGET.Tags)",
        "member(\"fast\", TARGET.Tags) && TARGET.HasDocker",
        "TARGET.OpSys == \"LINUX\"",
        "TARGET.OpSys == \"LINUX\" && TARGET.HasDocker",
        "TARGET.OpSys == \"LINUX\" && TARGET.HasConda",
        "TARGET.OpSys == \"LINUX\" && TARGET.Arch == \"X86_64\"",
        "TARGET.OpSys == \"LINUX\" && TARGET.Arch == \"aarch64\"",
        "TARGET.OpSys == \"LINUX\" && TARGET.TotalMemory >= 1000",
        "TARGET.OpSys == \"LINUX\" && (TARGET.HasDocker || TARGET.HasConda)",
        "TARGET.OpSys == \"LINUX\" && !(TARGET.Arch == \"sparc\")",
        "TARGET.OpSys == \"LINUX\" && TARGET.TotalCpus >= 8",
        "TARGET.OpSys == \"LINUX\" && member(\"fast\", TARGET.Tags)",
};

/* Jobs of the n-th class. */
static void submit(unsigned n, uint64_t jobs)
{
        char requirements[400], memory[16], owner[32];
        struct submission s = {.at_ms = START_MS};
        struct submission_part *p = submission_add_part(&s);
        static uint64_t number;
        struct err err;
        uint64_t id;
        bool existing;

        snprintf(owner, sizeof(owner), "user%03u@local", n % field.owners);
        s.owner = str_of(owner);
        number++;
        memcpy(s.uuid, &number, sizeof(number));
        snprintf(requirements, sizeof(requirements),
                 "%s && TARGET.Disk >= RequestDisk && TARGET.Memory >= RequestMemory && TARGET.Cpus >= "
                 "RequestCpus",
                 demands[n % 20]);
        snprintf(memory, sizeof(memory), "%u", 100 + n);
        submission_add_attribute(p, STR("Cmd"), STR("\"/usr/bin/analyse\""), false);
        submission_add_attribute(p, STR("Requirements"), str_of(requirements), false);
        submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
        submission_add_attribute(p, STR("RequestDisk"), STR("1024"), false);
        submission_add_attribute(p, STR("RequestMemory"), str_of(memory), false);
        p->steps = jobs;
        must(core_submit(field.core, &s, false, &id, &existing, &err) == 0, "a submit");
        submission_deinit(&s);
        MEM_GROW(field.class_of, field.class_cap, id + 1);
        field.class_of[id] = n;
}

/* What was given ends, and as many of the same class come to the queue's end. */
static void end_and_submit(void)
{
        for (size_t i = 0; i < field.given_count; i++) {
                struct given *g = &field.given[i];
                const struct core_attempts a = {g->request, g->fence, &g->members};

                core_accepted(field.core, g->agent, &a);
                SET_FOREACH (&g->members, m) {
                        struct core_result r = {
                                .request = g->request, .member = (uint32_t)m, .fence = g->fence};

                        must(core_result(field.core, g->agent, &r), "a result");
                }
                submit(field.class_of[g->request], set_count(&g->members));
                set_deinit(&g->members);
        }
        field.given_count = 0;
        if (++field.rounds % 64 == 0)
                core_tick(field.core);
}

/* ---- agents */

static void offer(unsigned i)
{
        static const char *const places[8] = {
                "Arch = \"X86_64\"; HasDocker = true; Tags = { \"fast\", \"a\" }",
                "Arch = \"X86_64\"; HasConda = true",
                "Arch = \"X86_64\"; HasDocker = true; HasConda = true",
                "Arch = \"X86_64\"",
                "Arch = \"aarch64\"; HasDocker = true",
                "Arch = \"aarch64\"; HasConda = true; Tags = { \"fast\" }",
                "Arch = \"X86_64\"; Tags = { \"fast\" }",
                "Arch = \"aarch64\"",
        };
        char name[16], ad[500];
        struct core_offer o = {.agent = name, .queue = "default", .serial = 1, .ad = {ad, 0}, .jobs_max = 64};

        snprintf(name, sizeof(name), "node%05u", i);
        o.ad.n = (size_t)snprintf(
                ad, sizeof(ad),
                "[ %s; OpSys = \"%s\"; Cpus = %u; Memory = 65536; Disk = 100000000; TotalCpus = 16; "
                "TotalMemory = 65536; TotalDisk = 100000000; LoadAvg = 0.%u; Machine = \"%s.site\"; "
                "Requirements = LoadAvg < 1.5 && TARGET.RequestCpus <= 16 ]",
                i % 10 == 9 ? "Arch = \"sparc\"" : places[i % 8], i % 10 == 9 ? "SOLARIS" : "LINUX",
                field.slots, i % 10, name);
        must(core_offer(field.core, &o, NULL) == 0, "an offer");
}

static void connect_agents(void)
{
        char name[16];

        for (unsigned i = 0; i < AGENTS; i++) {
                snprintf(name, sizeof(name), "node%05u", i);
                core_agent_connected(field.core, name);
        }
}

/* ---- measuring */

static void fill(uint64_t queued, unsigned owners)
{
        field.owners = owners;
        for (unsigned i = 0; i < CLASSES; i++)
                submit(i, queued / CLASSES);
        connect_agents();
        while (core_tick(field.core) == 0)
                ;
}

static void bench_core(const char *what, uint64_t queued, unsigned owners, unsigned slots)
{
        int64_t *took = mem_array(NULL, AGENTS, sizeof(*took)), all = 0;
        struct mallinfo2 m;

        start(NULL);
        field.slots = slots;
        fill(queued, owners);
        m = mallinfo2();
        line(what, "megabytes", queued, (double)(m.uordblks + m.hblkhd) / 1e6, "MB", "lower");
        field.assigned = 0;
        for (unsigned i = 0; i < AGENTS; i++) {
                int64_t begin = cpu_ns();

                offer(i);
                while (core_match(field.core))
                        ;
                took[i] = cpu_ns() - begin;
                all += took[i];
                end_and_submit();
        }
        line(what, "per_s", queued, (double)field.assigned * 1e9 / (double)all, "/s", "higher");
        line(what, "offer_p99_us", queued, p99_us(took, AGENTS), "us", "lower");
        stop();
        free(took);
}

static void bench_store(const char *what, const char *address, uint64_t queued)
{
        int64_t all = 0;

        start(address);
        field.slots = JOBS;
        fill(queued, 1);
        append();
        wait_durable();
        field.assigned = 0;
        for (unsigned i = 0; i < AGENTS;) {
                int64_t begin = clock_mono_ns();

                for (unsigned n = 0; n < 20 * TURN_OFFERS && i < AGENTS;) {
                        for (unsigned k = 0; k < TURN_OFFERS && i < AGENTS; k++, n++)
                                offer(i++);
                        while (core_match(field.core))
                                ;
                        append();
                }
                wait_durable();
                all += clock_mono_ns() - begin;
                end_and_submit();
        }
        line(what, "per_s", queued, (double)field.assigned * 1e9 / (double)all, "/s", "higher");
        stop();
}

static void bench_stores(const char *const *depths, int count)
{
        const char *tmp = getenv("TMPDIR");

        for (int i = 0; i < count; i++)
                bench_store("curve_memory_store", "memory:", strtoull(depths[i], NULL, 10));
        for (int i = 0; i < count; i++) {
                struct buf BUF_CLEANUP folder = {0}, address = {0};

                buf_printf(&folder, "%s/drover-curve-XXXXXX", tmp ? tmp : "/var/tmp");
                must(mkdtemp((char *)buf_z(&folder)) != NULL, "a folder");
                buf_printf(&address, "sqlite:%s/curve.db", buf_z(&folder));
                bench_store("curve_sqlite", buf_z(&address), strtoull(depths[i], NULL, 10));
                must(fs_remove_tree(AT_FDCWD, buf_z(&folder)) == 0, "remove");
        }
}

int main(int argc, char **argv)
{
        static const char *const usual[] = {"2000", "20000", "200000", "1000000"};
        bool core_only = argc > 1 && strcmp(argv[1], "--core") == 0;
        int given = argc - 1 - core_only;
        const char *const *depths = given ? (const char *const *)argv + 1 + core_only : usual;
        int count = given ? given : 4;

        for (int i = 0; i < count; i++)
                bench_core("curve_core", strtoull(depths[i], NULL, 10), 1, JOBS);
        for (int i = 0; i < count; i++)
                bench_core("curve_one", strtoull(depths[i], NULL, 10), 1, 1);
        bench_core("curve_core_1000_accounts", 50000, 1000, JOBS);
        if (!core_only)
                bench_stores(depths, count);
        return 0;
}
