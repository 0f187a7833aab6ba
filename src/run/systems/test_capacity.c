/* Reports of nodes are read: as Slurm 22.05 and Grid Engine 8.1.9 print them; of PBS as its manuals show
 * them (recorded: test_pbs.c), of exec as its contract says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/mem.h"
#include "run/batch/batch.h"

static const struct batch_settings none;

static struct run_capacity read_of(const struct batch_system *system, const struct batch_settings *s,
                                   const char *text)
{
        MEM_CLEANUP char *copy = mem_dupz(text); /* it may be written to */
        struct run_capacity c = {0};

        system->capacity_read(s, str_of(copy), &c);
        return c;
}

/* ---- Slurm */

static void slurm_nodes(void **state)
{
        (void)state;
        struct run_word word = {"partition", "short"};
        struct batch_settings set = {&word, 1};
        struct run_capacity c =
                read_of(&batch_slurm, &none,
                        "main*   1/3/0/4   4000   100 up 1-00:30:00 a1 idle\nshort   0/4/0/4   "
                        "4000   0 up 1-00:30:00 a1 idle\n"
                        "main*   0/0/8/8   9000   0 up 1-00:30:00 a1 idle\nmain*   0/8/0/8   "
                        "2000   0 up 20:00 a1 idle\n\nx\n"
                        "main*   0/8/0/8   2000   0 drain infinite a1 idle\n");
        assert_int_equal(c.nodes, 3);
        assert_int_equal(c.cpus_milli, 12000);
        assert_int_equal(c.idle_cpus_milli, 11000);
        assert_int_equal(c.node_cpus_milli, 8000);
        assert_int_equal(c.node_memory_bytes >> 20, 4000);
        assert_int_equal(c.idle_memory_bytes >> 20, 5900);
        assert_int_equal(c.walltime_max_ms, (24 * 60 + 30) * 60 * 1000); /* of what is open, the longest */
        c = read_of(&batch_slurm, &set, "short   0/4/0/4   4000   0 up infinite a1 idle");
        assert_int_equal(c.idle_cpus_milli, 4000);
        assert_int_equal(c.gpus, 0);
        assert_true(c.walltime_max_ms == UINT64_MAX);
        static const struct {
                const char *said;
                uint64_t seconds;
        } times[] = {{"5:00", 300}, {"12:00:01", 43201}, {"2-0:0:0", 172800},
                     {"2-x", 0},    {"n/a", 0},          {"1:2:3:4", 0}};
        for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
                BUF_CLEANUP struct buf line = {0};

                buf_printf(&line, "short 0/4/0/4 4000 0 up %s a1 idle (null) gpu:0\n", times[i].said);
                c = read_of(&batch_slurm, &set, buf_z(&line));
                assert_true(c.walltime_max_ms == (times[i].seconds ? times[i].seconds * 1000 : UINT64_MAX));
        }
}

static void slurm_gpus(void **state)
{
        (void)state;
        struct run_word word = {"gres_name", "gpu:a100"};
        struct batch_settings typed = {&word, 1};
        static const char nodes[] =
                "main*   1/3/0/4   4000   100 up infinite a1 idle gpu:a100:4(S:0-1),shard:8 "
                "gpu:a100:2(IDX:0,3),shard:0(0/4,0/4)\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle (null) gpu:0\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle gpu:2,gpus:9 gpu:1(IDX:1)\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle gpu:a100x:5 gpu:a100x:0(IDX:N/A)\n"
                "main*   0/0/4/4   4000   0   up infinite a1 idle gpu:7 gpu:0\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle gpu gpu:0\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle gpu:3\n"
                "main*   0/4/0/4   4000   0   up infinite a1 idle (( ,\n";
        struct run_capacity c = read_of(&batch_slurm, &none, nodes);
        assert_int_equal(c.gpus, 4 + 2 + 5 + 1);
        assert_int_equal(c.idle_gpus, 2 + 1 + 5 + 1);
        assert_int_equal(c.node_gpus, 5);
        c = read_of(&batch_slurm, &typed, nodes);
        assert_int_equal(c.gpus, 4);
        assert_int_equal(c.idle_gpus, 2);
}

/* The states are those of sinfo's StateLong. */
static void slurm_states(void **state)
{
        (void)state;
        static const struct {
                const char *state;
                unsigned cpus, idle, reserved_idle; /* reserved: the queue has a reservation */
        } table[] = {{"idle", 4, 3, 3},       {"mixed", 4, 3, 3},   {"reserved", 1, 0, 3},
                     {"maint", 1, 0, 3},      {"mixed$", 1, 0, 3},  {"idle*", 1, 0, 0},
                     {"idle^", 1, 0, 0},      {"planned", 4, 0, 0}, {"mixed-", 4, 0, 0},
                     {"completing", 4, 3, 3}, {"idle~", 4, 3, 3}};
        struct run_word word = {"reservation", "ours"}, makes = {"reservations", "yes"};
        const struct batch_settings reserved = {&word, 1}, reserving = {&makes, 1};
        for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
                BUF_CLEANUP struct buf line = {0};
                struct run_capacity c;

                print_message("# %s\n", table[i].state);
                buf_printf(&line, "main* 1/3/0/4 4000 0 up infinite a1 %s gpu:2 gpu:1(IDX:0)\n",
                           table[i].state);
                c = read_of(&batch_slurm, &none, buf_z(&line));
                assert_int_equal(c.cpus_milli, table[i].cpus * 1000);
                assert_int_equal(c.idle_cpus_milli, table[i].idle * 1000);
                assert_int_equal(c.gpus, 2);
                assert_int_equal(c.idle_gpus, table[i].idle ? 1 : 0);
                c = read_of(&batch_slurm, &reserved, buf_z(&line));
                assert_int_equal(c.idle_cpus_milli, table[i].reserved_idle * 1000);
                c = read_of(&batch_slurm, &reserving, buf_z(&line)); /* maintenance is not for its jobs */
                assert_int_equal(c.idle_cpus_milli,
                                 strcmp(table[i].state, "reserved") ? table[i].idle * 1000 : 3000);
        }
}

/* Nodes that take no jobs are told in Slurm's words; others are not. */
static void slurm_nodes_that_take_no_jobs(void **state)
{
        BUF_CLEANUP struct buf many = {0};
        struct run_capacity c;

        (void)state;
        c = read_of(&batch_slurm, &none,
                    "main* 0/4/0/4 4000 0 up infinite a1 idle gpu:1 gpu:0\n"
                    "main* 0/0/4/4 4000 0 up infinite a2 drained gpu:1 gpu:0\n"
                    "main* 0/0/4/4 4000 0 up infinite a3 down* gpu:1 gpu:0\n"
                    "main* 0/0/4/4 4000 0 up infinite a4 drained gpu:1 gpu:0\n"
                    "main* 0/4/0/4 4000 0 up infinite a5 idle~ gpu:1 gpu:0\n"
                    "main* 4/0/0/4 4000 0 up infinite a6 mixed- gpu:1 gpu:0\n"
                    "other 0/0/4/4 4000 0 up infinite a7 down gpu:1 gpu:0\n");
        assert_string_equal(c.unavailable, "2 drained, 1 down*");
        c = read_of(&batch_slurm, &none, "main* 0/4/0/4 4000 0 up infinite a1 idle gpu:1 gpu:0\n");
        assert_string_equal(c.unavailable, "");
        for (int i = 0; i < 40; i++)
                buf_printf(&many,
                           "main* 0/0/4/4 4000 0 up infinite a%d a_long_unknown_state_%d gpu:1 gpu:0\n", i,
                           i);
        c = read_of(&batch_slurm, &none, buf_z(&many));
        assert_true(strlen(c.unavailable) < sizeof(c.unavailable));
}

static void slurm_node_of_two_partitions(void **state)
{
        (void)state;
        struct run_word word = {"partition", "short,long"};
        const struct batch_settings both = {&word, 1};
        struct run_capacity c = read_of(&batch_slurm, &both,
                                        "short 0/4/0/4 4000 0 up 5:00 a1 idle gpu:1 gpu:0\n"
                                        "long 0/4/0/4 4000 0 up 10:00 a1 idle gpu:1 gpu:0\n"
                                        "long 4/0/0/4 4000 0 up 10:00 a2 allocated gpu:1 gpu:0\n");
        assert_int_equal(c.nodes, 2);
        assert_int_equal(c.cpus_milli, 8000);
        assert_int_equal(c.idle_cpus_milli, 4000);
        assert_int_equal(c.memory_bytes >> 20, 8000);
        assert_int_equal(c.walltime_max_ms, 600 * 1000);
        c = read_of(&batch_slurm, &both, "long 1/3/0/4 4000 4000 up 10:00 a1 mixed gpu:1 gpu:0\n");
        assert_int_equal(c.cpus_milli, 4000);
        assert_int_equal(c.idle_cpus_milli, 0); /* there is no memory for more */
}

static void slurm_gpus_without_processors(void **state)
{
        (void)state;
        struct run_word word = {"partition", "long"};
        const struct batch_settings s = {&word, 1};
        struct run_capacity c = read_of(&batch_slurm, &s,
                                        "long 0/4/0/4 4000 0 up 10:00 a1 idle gpu:1 gpu:0\n"
                                        "long 4/0/0/4 4000 0 up 10:00 a2 allocated gpu:1 gpu:0\n");
        assert_int_equal(c.gpus, 2);
        assert_int_equal(c.idle_gpus, 1); /* that of the other one has no processor left */
}

/* ---- Grid Engine */

static void grid_hosts(void **state)
{
        (void)state;
        struct run_word pe = {"parallel_environment", "smp"};
        const struct batch_settings with = {&pe, 1};
        struct run_capacity c;
        static const char text[] =
                "<Queue-List><name>all.q@a</name><slots_used>3</slots_used><slots_resv>0</slots_resv>"
                "<slots_total>8</slots_total><resource name=\"mem_total\" type=\"hl\">23.5G</resource>"
                "<job_list "
                "state=\"running\"><state>r</state><slots>3</slots><name>x</name></job_list></Queue-List>"
                "<Queue-List><name>long.q@a</name><slots_used>0</slots_used><slots_total>4</slots_total></"
                "Queue-List>"
                "<Queue-List><name>all.q@b</name><slots_used>0</slots_used><slots_total>16</slots_total>"
                "<state>d</state></Queue-List><Queue-List><name>all.q@c</name><slots_used>0</slots_used>"
                "<slots_total>2</slots_total></Queue-List>";
        c = read_of(&batch_gridengine, &none, text);
        assert_int_equal(c.nodes, 2);
        assert_int_equal(c.cpus_milli, 10000);
        assert_int_equal(c.idle_cpus_milli, 7000);
        assert_int_equal(c.node_cpus_milli, 1000);
        assert_int_equal(c.node_memory_bytes >> 20, 24064);
        c = read_of(&batch_gridengine, &with, text);
        assert_int_equal(c.node_cpus_milli, 8000);
}

/* A queue's instance at a host; `more`: its resources. */
static void add_instance(struct buf *out, const char *name, unsigned used, const char *more)
{
        buf_printf(out,
                   "<Queue-List><name>%s</name><slots_used>%u</slots_used><slots_total>8</slots_total>%s"
                   "</Queue-List>\n",
                   name, used, more);
}

#define RESOURCE(name, type, value) "<resource name=\"" name "\" type=\"" type "\">" value "</resource>"

static void grid_gpus(void **state)
{
        (void)state;
        struct run_word word = {"gpu_resource", "ngpus"};
        const struct batch_settings other = {&word, 1};
        struct batch_call c = {.settings = &none};
        BUF_CLEANUP struct buf text = {0};
        batch_gridengine.capacity(&c);
        assert_string_equal(c.argv.v[c.argv.n - 1], "mem_total,mem_free,slots,gpu");
        batch_call_deinit(&c);
        add_instance(&text, "all.q@a", 3, RESOURCE("gpu", "hc", "2.000000") RESOURCE("ngpus", "qc", "7"));
        add_instance(&text, "long.q@a", 0, RESOURCE("gpu", "hc", "2"));
        add_instance(&text, "all.q@b", 8, RESOURCE("gpu", "hc", "4")); /* no slot for them */
        add_instance(&text, "all.q@c", 0, RESOURCE("gpu", "hl", "16"));
        add_instance(&text, "all.q@d", 0, RESOURCE("gpu", "hf", "16") RESOURCE("gpux", "hc", "16"));
        add_instance(&text, "all.q@e", 0, RESOURCE("gpu", "hc", "8") "<state>d</state>");
        add_instance(&text, "all.q@f", 0, RESOURCE("gpu", "hc", "0.000000"));
        struct run_capacity has = read_of(&batch_gridengine, &none, buf_z(&text));
        assert_int_equal(has.gpus, 6);
        assert_int_equal(has.idle_gpus, 2);
        assert_int_equal(has.node_gpus, 4);
        has = read_of(&batch_gridengine, &other, buf_z(&text));
        assert_int_equal(has.idle_gpus, 7);
        buf_reset(&text); /* three of the cell */
        add_instance(&text, "all.q@a", 0, RESOURCE("gpu", "gc", "3"));
        add_instance(&text, "all.q@b", 0, RESOURCE("gpu", "gc", "3"));
        add_instance(&text, "all.q@c", 0, RESOURCE("gpu", "hc", "2"));
        has = read_of(&batch_gridengine, &none, buf_z(&text));
        assert_int_equal(has.gpus, 3);
        assert_int_equal(has.idle_gpus, 3);
}

/* The host has fewer slots left than its queue has. */
static void grid_slots_of_a_host(void **state)
{
        (void)state;
        BUF_CLEANUP struct buf text = {0};
        add_instance(&text, "all.q@a", 0, RESOURCE("slots", "hc", "1"));
        add_instance(&text, "long.q@a", 0, RESOURCE("slots", "hc", "1"));
        add_instance(&text, "all.q@b", 6, RESOURCE("slots", "qc", "2"));
        add_instance(&text, "all.q@c", 0, RESOURCE("slots", "gc", "0"));
        struct run_capacity c = read_of(&batch_gridengine, &none, buf_z(&text));
        assert_int_equal(c.nodes, 3);
        assert_int_equal(c.cpus_milli, 24000);
        assert_int_equal(c.idle_cpus_milli, 3000);
}

/* ---- PBS: as the manuals of Torque 6.1 and PBS Pro 2022 show it (pbsnodes) */

static void pbs_nodes(void **state)
{
        (void)state;
        struct run_capacity c =
                read_of(&batch_pbs, &none,
                        "n1\n     state = free\n     np = 8\n     jobs = 0/17.head, 2-3/18.head\n"
                        "     status = rectime=1,ncpus=8,physmem=16777216kb,state=free\n\n"
                        "n2\n     state = down,offline\n     np = 8\n\n"
                        "n3\n     Mom = n3\n     state = job-busy\n     resources_available.mem = 8gb\n"
                        "     resources_available.ncpus = 4\n     resources_assigned.mem = 1048576kb\n"
                        "     resources_assigned.ncpus = 4\n");
        assert_int_equal(c.nodes, 2);
        assert_int_equal(c.cpus_milli, 12000);
        assert_int_equal(c.idle_cpus_milli, 5000);
        assert_int_equal(c.node_cpus_milli, 8000);
        assert_int_equal(c.node_memory_bytes >> 30, 16);
        assert_int_equal(c.idle_memory_bytes >> 30, 23);
}

static void pbs_gpus(void **state)
{
        (void)state;
        struct run_capacity c =
                read_of(&batch_pbs, &none,
                        "n1\n     state = free\n     resources_available.ncpus = 8\n"
                        "     resources_available.ngpus = 4\n     resources_assigned.ncpus = 1\n"
                        "     resources_assigned.ngpus = 1\n\n"
                        "n2\n     state = job-busy\n     resources_available.ncpus = 8\n"
                        "     resources_available.ngpus = 2\n     resources_assigned.ncpus = 8\n\n"
                        "n3\n     state = offline\n     resources_available.ncpus = 8\n"
                        "     resources_available.ngpus = 8\n\n");
        assert_int_equal(c.gpus, 6);
        assert_int_equal(c.idle_gpus, 3);
        assert_int_equal(c.node_gpus, 4);
        c = read_of(&batch_pbs, /* n2: how many of them are free is not told */ &none,
                    "n1\n     state = free\n     np = 8\n     gpus = 4\n"
                    "     gpu_status = "
                    "gpu[1]=gpu_id=0:82;gpu_state=Unallocated;gpu_utilization=0%,gpu[0]="
                    "gpu_id=0:03;gpu_state=Exclusive,gpu[2]=gpu_state=Shared,gpu[3]=gpu_"
                    "state=Unavailable,"
                    "driver_ver=460.27,timestamp=Thu Jan 14 10:21:33 2021\n\n"
                    "n2\n     state = free\n     np = 8\n     gpus = 2\n");
        assert_int_equal(c.gpus, 3);
        assert_int_equal(c.idle_gpus, 1);
        assert_int_equal(c.node_gpus, 3);
}

/* Neither a load that is too high nor a node of another queue is room. */
static void pbs_nodes_without_room(void **state)
{
        (void)state;
        struct run_word word = {"queue", "big"}, unknown = {"queue", "small"};
        const struct batch_settings big = {&word, 1}, small = {&unknown, 1};
        static const char text[] = "n1\n     state = busy\n     np = 8\n\n"
                                   "n2\n     state = free\n     np = 4\n\n"
                                   "n3\n     state = free\n     np = 2\n     queue = big\n\n"
                                   "n4\n     state = down\n     np = 2\n     queue = big\n\n"
                                   "n5\n     state = sleep\n     np = 2\n";
        struct run_capacity c = read_of(&batch_pbs, &none, text);
        assert_int_equal(c.cpus_milli, 12000);
        assert_int_equal(c.idle_cpus_milli, 4000);
        c = read_of(&batch_pbs, &small, text);
        assert_int_equal(c.cpus_milli, 12000);
        c = read_of(&batch_pbs, &big, text);
        assert_int_equal(c.nodes, 1);
        assert_int_equal(c.idle_cpus_milli, 2000);
}

/* ---- exec */

static void exec_capacity(void **state)
{
        (void)state;
        struct run_capacity c =
                read_of(&batch_exec, NULL,
                        "{\"cpus\": 8, \"idle_cpus\": 3, \"nodes\": 2, \"node_cpus\": 4, \"memory\": -1}\n");
        assert_true(c.cpus_milli == 8000 && c.idle_cpus_milli == 3000 && c.node_cpus_milli == 4000 &&
                    c.memory_bytes == 0);
        assert_true(c.gpus == 0 && c.idle_gpus == 0 && c.node_gpus == 0);
        c = read_of(&batch_exec, NULL, "{\"cpus\": 8, \"gpus\": 4, \"idle_gpus\": 3, \"node_gpus\": 2}\n");
        assert_true(c.gpus == 4 && c.idle_gpus == 3 && c.node_gpus == 2);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(slurm_nodes),
                cmocka_unit_test(slurm_gpus),
                cmocka_unit_test(slurm_states),
                cmocka_unit_test(slurm_nodes_that_take_no_jobs),
                cmocka_unit_test(slurm_node_of_two_partitions),
                cmocka_unit_test(slurm_gpus_without_processors),
                cmocka_unit_test(grid_hosts),
                cmocka_unit_test(grid_gpus),
                cmocka_unit_test(grid_slots_of_a_host),
                cmocka_unit_test(pbs_nodes),
                cmocka_unit_test(pbs_gpus),
                cmocka_unit_test(pbs_nodes_without_room),
                cmocka_unit_test(exec_capacity),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
