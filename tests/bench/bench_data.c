/* What an assignment costs where files count.
 *
 * A thousand agents of 16 processors in ten clusters, each with a store beside it: 1 GB/s to that one, 50
 * MB/s to the others, as each agent measured it, some 20 % more or less. A thousand classes of jobs, each
 * with a data set of 2 GB at one of the stores and 200 MB of its own for each job. An agent keeps the last 64
 * files that it read. Jobs run for ten minutes.
 *
 * `data_queued`: agents are busy, and as one has finished it tells what it holds now and offers, and as many
 * jobs as it ran are submitted. `data_parked`: all agents wait, and requests of 16 jobs come, 32 in a turn,
 * until there are as many jobs as places; then all end. Timed are what the agents say of their caches, the
 * offers, and the matching, in processor time of the one thread, events packed as for the log.
 *
 * `fileless` are the same jobs without files, at agents that hold none, in turns with the above: the ratios
 * of the two rates are the medians of three turns.
 *
 * Prints `name value unit higher|lower` lines. Arguments: agents and jobs queued (default 1000 20000).
 */
#include <string.h>

#include "base/mem.h"
#include "bench.h"

#define CLASSES  1000u
#define STORES   10u
#define JOBS     16u
#define HELD_MAX 64u
#define START_MS 1700000000000
#define RUN_MS   600000
#define DATA_SET 2000000000u
#define OWN_FILE 200000000u
#define TURNS    3

struct given {
        uint64_t request;
        uint32_t fence;
        struct set members;
};
struct place {
        char name[16];
        struct given *given;
        size_t count, cap;
        uint64_t held[HELD_MAX]; /* ids, a ring; 0: none */
        unsigned at;
};

static struct {
        struct core *core;
        struct place *places;
        unsigned agents;
        uint64_t assigned;
        int64_t now_ms;
        struct buf record;
        unsigned *class_of; /* by request */
        size_t class_cap;
        uint32_t random;
        bool fileless;
} field;

static unsigned below(unsigned n)
{
        field.random = field.random * 1664525u + 1013904223u;
        return (unsigned)((uint64_t)field.random * n >> 32);
}

static void on_event(void *arg, const struct event *e)
{
        (void)arg;
        buf_reset(&field.record);
        event_pack(&field.record, e);
}

static void on_assign(void *arg, const struct core_assignment *a)
{
        struct place *p = &field.places[strtoul(a->agent + 4, NULL, 10)];
        struct given *g;

        (void)arg;
        MEM_GROW(p->given, p->cap, p->count + 1);
        g = &p->given[p->count++];
        *g = (struct given){.request = a->request, .fence = a->fence};
        set_copy(&g->members, a->members);
        field.assigned += set_count(a->members);
}

/* ---- the site */

static void set_stores(void)
{
        static char names[STORES][8], urls[STORES][16];
        struct str prefixes[STORES];
        struct core_store stores[STORES];

        for (unsigned i = 0; i < STORES; i++) {
                snprintf(names[i], sizeof(names[i]), "s%u", i);
                snprintf(urls[i], sizeof(urls[i]), "http://s%u/", i);
                prefixes[i] = str_of(urls[i]);
                stores[i] = (struct core_store){.urls = {str_of(names[i]), &prefixes[i], 1}};
        }
        must(core_data_set(field.core, &(struct core_data){.stores = stores, .store_count = STORES}, NULL) ==
                     0,
             "stores");
}

static uint64_t around(uint64_t value)
{
        return value * (80 + below(41)) / 100;
}

static void start(unsigned agents)
{
        static const struct core_world world = {.event = on_event,
                                                .history = world_history,
                                                .keep = world_keep,
                                                .forget = world_forget,
                                                .assign = on_assign,
                                                .control = world_control};
        static const struct core_config config = {.lease_ms = 3600000, .keep_finished = 100};

        field.assigned = 0;
        field.core = core_new(&config, &world);
        field.now_ms = START_MS;
        field.random = 1;
        field.agents = agents;
        field.places = mem_zalloc(agents * sizeof(*field.places));
        core_clock(field.core, START_MS, 1000);
        set_stores();
        for (unsigned i = 0; i < agents; i++) {
                struct core_link links[STORES];
                char names[STORES][8];

                snprintf(field.places[i].name, sizeof(field.places[i].name), "node%05u", i);
                for (unsigned s = 0; s < STORES; s++) {
                        snprintf(names[s], sizeof(names[s]), "s%u", s);
                        links[s] =
                                (struct core_link){str_of(names[s]), around(s == i % STORES ? 1000 : 20000),
                                                   around(s == i % STORES ? 1000000000 : 50000000), 0};
                }
                core_agent_connected(field.core, field.places[i].name);
                core_links(field.core, field.places[i].name, links, STORES);
        }
}

static void stop(void)
{
        core_free(field.core);
        for (unsigned i = 0; i < field.agents; i++) {
                for (size_t k = 0; k < field.places[i].count; k++)
                        set_deinit(&field.places[i].given[k].members);
                free(field.places[i].given);
        }
        free(field.places);
}

/* ---- jobs */

static void url_of(char *to, size_t room, unsigned n, int member)
{
        if (member < 0)
                snprintf(to, room, "http://s%u/d%u", n % STORES, n);
        else
                snprintf(to, room, "http://s%u/r%u/%d", n % STORES, n, member);
}

static void submit(unsigned n, uint64_t jobs)
{
        char files[100], sizes[40], memory[16], shared[32];
        struct submission s = {.at_ms = field.now_ms, .owner = STR("user@local")};
        struct submission_part *p = submission_add_part(&s);
        static uint64_t number;
        struct err err;
        uint64_t id;
        bool existing;

        number++;
        memcpy(s.uuid, &number, sizeof(number));
        url_of(shared, sizeof(shared), n, -1);
        snprintf(files, sizeof(files), "\"%s,http://s%u/r%u/$(Process)\"", shared, n % STORES, n);
        snprintf(sizes, sizeof(sizes), "\"%u,%u\"", DATA_SET, OWN_FILE);
        snprintf(memory, sizeof(memory), "%u", 100 + n);
        submission_add_attribute(p, STR("Cmd"), STR("\"/usr/bin/analyse\""), false);
        if (!field.fileless) {
                submission_add_attribute(p, STR("TransferInput"), str_of(files), true);
                submission_add_attribute(p, STR("TransferInputSizes"), str_of(sizes), false);
        }
        submission_add_attribute(p, STR("ExpectedRunTime"), STR("600"), false);
        submission_add_attribute(p, STR("Requirements"),
                                 STR("TARGET.Disk >= RequestDisk && TARGET.Memory >= RequestMemory && "
                                     "TARGET.Cpus >= RequestCpus && TARGET.OpSys == \"LINUX\""),
                                 false);
        submission_add_attribute(p, STR("RequestCpus"), STR("1"), false);
        submission_add_attribute(p, STR("RequestDisk"), STR("1024"), false);
        submission_add_attribute(p, STR("RequestMemory"), str_of(memory), false);
        p->steps = jobs;
        must(core_submit(field.core, &s, false, &id, &existing, &err) == 0, "a submit");
        submission_deinit(&s);
        MEM_GROW(field.class_of, field.class_cap, id + 1);
        field.class_of[id] = n;
}

/* ---- agents */

static bool holds(const struct place *p, uint64_t id)
{
        for (unsigned i = 0; i < HELD_MAX; i++)
                if (p->held[i] == id)
                        return true;
        return false;
}

struct delta {
        struct core_file *added;
        uint64_t *removed;
        size_t added_count, added_cap, removed_count, removed_cap;
};

static void read_file(struct place *p, struct delta *d, unsigned n, int member)
{
        char url[48];
        uint64_t id;

        url_of(url, sizeof(url), n, member);
        id = file_id(str_of(url));
        if (field.fileless || holds(p, id))
                return;
        if (p->held[p->at]) {
                MEM_GROW(d->removed, d->removed_cap, d->removed_count + 1);
                d->removed[d->removed_count++] = p->held[p->at];
        }
        p->held[p->at] = id;
        p->at = (p->at + 1) % HELD_MAX;
        MEM_GROW(d->added, d->added_cap, d->added_count + 1);
        d->added[d->added_count++] = (struct core_file){id, member < 0 ? DATA_SET : OWN_FILE};
}

/* All that the agent runs ends; submit_again: as many come to the end of the queue. */
static void end_all(struct place *p, struct delta *d, bool submit_again)
{
        for (size_t i = 0; i < p->count; i++) {
                struct given *g = &p->given[i];
                unsigned n = field.class_of[g->request];

                read_file(p, d, n, -1);
                SET_FOREACH (&g->members, m) {
                        struct core_result r = {
                                .request = g->request, .member = (uint32_t)m, .fence = g->fence};

                        read_file(p, d, n, (int)m);
                        must(core_result(field.core, p->name, &r), "a result");
                }
                if (submit_again)
                        submit(n, set_count(&g->members));
                set_deinit(&g->members);
        }
        p->count = 0;
}

static void offer(struct place *p, struct delta *d)
{
        static const char ad[] = "[ Arch = \"X86_64\"; OpSys = \"LINUX\"; Cpus = 16; Memory = 65536; Disk = "
                                 "100000000; TotalCpus = "
                                 "16; TotalMemory = 65536; Requirements = TARGET.RequestCpus <= 16 ]";
        struct core_offer o = {.agent = p->name,
                               .queue = "default",
                               .serial = 1,
                               .ad = {ad, sizeof(ad) - 1},
                               .jobs_max = 64};

        core_cache_delta(field.core, p->name, d->added, d->added_count, d->removed, d->removed_count, false);
        must(core_offer(field.core, &o, NULL) == 0, "an offer");
        free(d->added);
        free(d->removed);
}

static void accept(const struct place *p)
{
        for (size_t i = 0; i < p->count; i++) {
                const struct core_attempts a = {p->given[i].request, p->given[i].fence, &p->given[i].members};

                core_accepted(field.core, p->name, &a);
                core_started(field.core, p->name, &a, field.now_ms);
        }
}

static void pass_time(int64_t ms)
{
        field.now_ms += ms;
        core_clock(field.core, field.now_ms, field.now_ms - START_MS + 1000);
        core_tick(field.core);
}

static double bench_queued(unsigned agents, uint64_t queued, double *ret_p99_us)
{
        double per_s;

        const unsigned rounds = 3;
        int64_t *took = mem_array(NULL, (size_t)agents, sizeof(*took)), all = 0;

        start(agents);
        for (unsigned i = 0; i < CLASSES; i++)
                submit(i, queued / CLASSES);
        for (unsigned n = 0; n < rounds * agents; n++) {
                struct place *p = &field.places[n % agents];
                struct delta d = {0};
                int64_t begin;

                end_all(p, &d, true);
                pass_time(RUN_MS / agents);
                if (n == (rounds - 1) * agents)
                        field.assigned = 0;
                begin = cpu_ns();
                offer(p, &d);
                while (core_match(field.core))
                        ;
                took[n % agents] = cpu_ns() - begin;
                if (n >= (rounds - 1) * agents)
                        all += took[n % agents];
                accept(p);
        }
        per_s = (double)field.assigned * 1e9 / (double)all;
        *ret_p99_us = p99_us(took, agents);
        stop();
        free(took);
        return per_s;
}

static double bench_parked(unsigned agents, double *ret_p99_us)
{
        double per_s;

        const unsigned rounds = 3, turns = agents / 32;
        int64_t *took = mem_array(NULL, turns, sizeof(*took)), all = 0;

        start(agents);
        for (unsigned round = 0; round < rounds; round++) {
                pass_time(RUN_MS);
                all = 0;
                field.assigned = 0;
                for (unsigned i = 0; i < agents; i++) {
                        struct delta d = {0};
                        int64_t begin;

                        end_all(&field.places[i], &d, false);
                        begin = cpu_ns();
                        offer(&field.places[i], &d);
                        while (core_match(field.core))
                                ;
                        all += cpu_ns() - begin;
                }
                for (unsigned t = 0; t < turns; t++) {
                        int64_t begin;

                        for (unsigned k = 0; k < 32; k++)
                                submit(below(CLASSES), JOBS);
                        begin = cpu_ns();
                        while (core_match(field.core))
                                ;
                        took[t] = cpu_ns() - begin;
                        all += took[t];
                }
                for (unsigned i = 0; i < agents; i++)
                        accept(&field.places[i]);
        }
        per_s = (double)field.assigned * 1e9 / (double)all;
        *ret_p99_us = p99_us(took, turns);
        stop();
        free(took);
        return per_s;
}

static int by_double(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

static double median(double values[TURNS])
{
        qsort(values, TURNS, sizeof(*values), by_double);
        return values[TURNS / 2];
}

int main(int argc, char **argv)
{
        unsigned agents = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1000;
        uint64_t queued = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
        double rates[2][TURNS], p99[2][TURNS], ratios[2][TURNS];

        for (unsigned t = 0; t < TURNS; t++) {
                double unused;

                field.fileless = false;
                rates[0][t] = bench_queued(agents, queued, &p99[0][t]);
                rates[1][t] = bench_parked(agents, &p99[1][t]);
                field.fileless = true;
                ratios[0][t] = rates[0][t] / bench_queued(agents, queued, &unused);
                ratios[1][t] = rates[1][t] / bench_parked(agents, &unused);
        }
        line("data_queued", "per_s", queued, median(rates[0]), "/s", "higher");
        line("data_queued", "offer_p99_us", queued, median(p99[0]), "us", "lower");
        line("data_queued", "to_fileless", queued, median(ratios[0]), "ratio", "higher");
        line("data_parked", "per_s", agents, median(rates[1]), "/s", "higher");
        line("data_parked", "turn_p99_us", agents, median(p99[1]), "us", "lower");
        line("data_parked", "to_fileless", agents, median(ratios[1]), "ratio", "higher");
        return 0;
}
