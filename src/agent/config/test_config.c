#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "agent/config/users.h"
#include "base/system/fs.h"

static char top[64], path[96];

static int read_text(const char *text, struct config *c, struct err *err)
{
        assert_int_equal(fs_write(AT_FDCWD, path, str_of(text), 0600, false, NULL), 0);
        config_init(c);
        return config_file(c, path, err);
}

static void reads_settings(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        assert_int_equal(read_text("server: [unix:/run/x, head:7331]\nname: n7\ncpus: 1.5\nmemory: "
                                   "2GiB\nkill_grace: 1m\n"
                                   "cgroups: off\npull_policy: load=inf,jobs/day=9\nowner:\n  - a@b\n"
                                   "cache_fresh: 0s\nmovers:\n  irods: /usr/libexec/irods\n"
                                   "images:\n  debian:12: 120M\n",
                                   &c, &err),
                         0);
        assert_int_equal(c.servers.n, 2);
        assert_string_equal(c.servers.v[1], "head:7331");
        assert_int_equal(c.queue.cpus_milli, 1500);
        assert_true(c.queue.memory_bytes == 2ull << 30);
        assert_int_equal(c.kill_grace_ms, 60000);
        assert_true(c.cache_fresh_ms == 0 && c.transfers == 4);
        assert_string_equal(c.movers.v[0], "irods /usr/libexec/irods");
        assert_string_equal(c.images.v[0], "debian:12 120M");
        assert_false(c.cgroups);
        assert_true(c.queue.pull_policy.load_percent == PULL_NO_LIMIT &&
                    c.queue.pull_policy.jobs_per_day == 9);
        assert_string_equal(c.owners.v[0], "a@b");
        /* options win, and a list of them takes the file's place */
        char *argv[] = {(char *)"agent",
                        (char *)"--config",
                        path,
                        (char *)"--server=other:1",
                        (char *)"--kill-grace",
                        (char *)"5s",
                        (char *)"--kill-on-stop",
                        (char *)"--dir",
                        top};
        bool done;
        config_deinit(&c);
        config_init(&c);
        assert_int_equal(config_options(&c, 9, argv, &done, &err), 0);
        assert_false(done);
        assert_int_equal(c.servers.n, 1);
        assert_string_equal(c.servers.v[0], "other:1");
        assert_int_equal(c.kill_grace_ms, 5000);
        assert_true(c.kill_on_stop);
        assert_string_equal(c.name, "n7");
        config_deinit(&c);
}

static int finish(const char *text, struct config *c, struct err *err)
{
        int r = read_text(text, c, err);

        if (r == 0) {
                settings_set(c,
                             &(struct setting){"dir", SETTING_TEXT, offsetof(struct config, dir), NULL, NULL},
                             str_of(top), NULL);
                r = config_finish(c, err);
        }
        return r;
}

static void one_queue_without_a_list(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        assert_int_equal(
                finish("server: a:1\nqueue: night\ncpus: 3\nattributes: 'HasFoo = true'\n", &c, &err), 0);
        assert_int_equal(c.queue_count, 1);
        assert_string_equal(c.queues[0]->name, "night");
        assert_string_equal(c.queues[0]->runner, "process");
        assert_int_equal(c.queues[0]->cpus_milli, 3000);
        assert_string_equal(c.queues[0]->attributes, "HasFoo = true");
        config_deinit(&c);
}

static void queues_change_the_defaults(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        assert_int_equal(finish("server: a:1\ncpus: 8\ntags: [site, old]\nrank: TARGET.JobPrio\ngpus: 2\n"
                                "pull_policy: load=150%\nqueues:\n"
                                "  - name: short\n    walltime_max: 1h\n    tags: [fast]\n    gpus: 0\n"
                                "    wish: [short-run, small-input]\n"
                                "  - name: long\n    cpus: 2\n    requirements: TARGET.Owner == \"a\"\n"
                                "    attributes: {Rack: 7, Site: '\"x\"'}\n    gpus: [GPU-1, 5]\n"
                                "    resources: {Licence: 3}\n    price: 0.25\n    closed: on\n",
                                &c, &err),
                         0);
        assert_int_equal(c.queue_count, 2);
        const struct config_queue *s = c.queues[0], *l = c.queues[1];
        assert_int_equal(s->cpus_milli, 8000);
        assert_int_equal(s->walltime_max_ms, 3600000);
        assert_int_equal(s->tags.n, 1);
        assert_string_equal(s->tags.v[0], "fast");
        assert_int_equal(s->wishes.n, 2);
        assert_string_equal(s->wishes.v[0], "short-run");
        assert_string_equal(s->rank, "TARGET.JobPrio");
        assert_int_equal(s->pull_policy.load_percent, 150);
        assert_int_equal(s->resources.n, 1);
        assert_string_equal(s->resources.v[0], "GPUs 0");
        assert_int_equal(l->cpus_milli, 2000);
        assert_int_equal(l->tags.n, 2);
        assert_string_equal(l->requirements, "TARGET.Owner == \"a\"");
        assert_string_equal(l->attributes, "Rack = 7; Site = \"x\"; ");
        assert_int_equal(l->resources.n, 2);
        assert_string_equal(l->resources.v[0], "GPUs: GPU-1 5");
        assert_string_equal(l->resources.v[1], "Licence 3");
        assert_int_equal(l->price_milli, 250);
        assert_true(l->closed && !s->closed);
        config_deinit(&c);
}

static void says_what_is_wrong_with_a_queue(void **state)
{
        (void)state;
        static const struct {
                const char *text, *says;
        } bad[] = {
                {"queues: 3\n", ":2: queues is a list of 1 to"},
                {"queues:\n  - cpus: 2\n", ":3: a queue needs a name"},
                {"queues:\n  - name: a@b\n", "which 'a@b' is not"},
                {"queues:\n  - name: a\n  - name: a\n", ":4: there are two queues of the name a"},
                {"queues:\n  - name: a\n    cpu: 2\n", ":4: "},
                {"queues:\n  - name: a\n    cpus: x\n", ":4: cpus cannot be 'x'"},
                {"queues:\n  - name: a\n    server: x\n", ":4: "},
                {"queues:\n  - name: a\n    requirements: (TARGET.x ==\n", ":3: requirements cannot be read"},
                {"queues:\n  - name: a\n    rank: '1 +'\n", ":3: rank cannot be read: line 1, column 4: "},
                {"rank: '1 +'\n", ":2: rank cannot be read"},
                {"attributes: Rack 7\n", ":2: attributes cannot be read"},
                {"cpus: 0\n", ":2: cpus cannot be 0"},
                {"queues:\n  - name: a\n    memory: 0M\n", ":4: memory cannot be 0"},
                {"disk: 0\n", ":2: disk cannot be 0"},
                {"jobs_max: 0\n", ":2: jobs_max cannot be 0"},
                {"queued_max: 0\n", ":2: queued_max cannot be 0"},
                {"images:\n  a: much\n", ":2: images: a has no size"},
                {"movers:\n  a: b\n", ":2: movers: "},
                {"queues:\n  - name: a\n    wish: fast\n",
                 ":3: wish is up to 3 of small-input, short-run and large-memory, the weightier first; "
                 "\"fast\" is "
                 "not"},
                {"queues:\n  - name: a\n    attributes: Rack 7\n", ":3: attributes cannot be read"},
                /* settings that would have no effect, while the jobs would run here */
                {"queues:\n  - name: a\n    slurm: {partition: main}\n",
                 ":4: queue a has settings of slurm, and its runner is process: write `runner: slurm`"},
                {"queues:\n  - name: a\n    runner: pbs\n    exec: {program: x}\n",
                 ":5: queue a has settings of exec, and its runner is pbs"},
                {"slurm:\n  partition: main\nqueues:\n  - name: a\n  - name: b\n    runner: pbs\n",
                 ":2: here are settings of slurm, and no queue has this runner: write `runner: slurm`"},
                {"cpus: 2\ndrover:\n  server: x\n", ":3: here are settings of drover, and no queue has"},
                {"queues:\n  - name: a\n    runner: slurm\n    slurm:\n    partition: main\n",
                 ":6: there is no setting 'partition' here; if it belongs to slurm of line 5, indent it "
                 "more"},
        };
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
                struct config c;
                struct err err = {""};
                BUF_CLEANUP struct buf text = {0};

                buf_printf(&text, "server: a:1\n%s", bad[i].text);
                assert_int_equal(finish(buf_z(&text), &c, &err), -EINVAL);
                if (!strstr(err.text, bad[i].says))
                        fail_msg("%s: %s", bad[i].text, err.text);
                config_deinit(&c);
        }
}

/* A map with only comments, as in a half-used example, counts as empty. */
static void nothing_is_an_empty_map(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        assert_int_equal(finish("server: a:1\nresources: {Licence: 3}\ntags: [x]\nqueues:\n  - name: a\n"
                                "    runner: slurm\n    slurm:\n      # partition: main\n    resources:\n"
                                "    tags:\n    environment:\n",
                                &c, &err),
                         0);
        assert_string_equal(c.queues[0]->runner, "slurm");
        assert_int_equal(c.queues[0]->slurm.n, 0);
        assert_int_equal(c.queues[0]->resources.n, 1);
        assert_int_equal(c.queues[0]->tags.n, 0);
        config_deinit(&c);
        assert_int_equal(finish("server: a:1\nmemory: 1048576\ncache: 0\n", &c, &err), 0);
        assert_int_equal(c.queue.memory_bytes, 1 << 20);
        config_deinit(&c);
}

static void a_token_is_for_the_first_time(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        const char *text = "server: a:1\ntoken_file: /no/such/token\n";
        char cert[128];
        snprintf(cert, sizeof(cert), "%s/agent.crt", top);
        assert_true(finish(text, &c, &err) < 0);
        assert_non_null(strstr(err.text, "agent.yaml:2: token_file: "));
        config_deinit(&c);
        assert_int_equal(fs_write(AT_FDCWD, cert, STR("x"), 0600, false, NULL), 0);
        assert_int_equal(finish(text, &c, &err), 0);
        assert_null(c.token);
        config_deinit(&c);
        unlink(cert);
}

static void a_token_is_in_a_file_of_ones_own(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        BUF_CLEANUP struct buf text = {0}, token = {0};
        buf_printf(&token, "%s/token", top);
        buf_printf(&text, "server: a:1\ntoken_file: %s\n", buf_z(&token));
        assert_int_equal(fs_write(AT_FDCWD, buf_z(&token), STR("secret\n"), 0600, false, NULL), 0);
        assert_int_equal(finish(buf_z(&text), &c, &err), 0);
        assert_string_equal(c.token, "secret");
        config_deinit(&c);
        assert_int_equal(chmod(buf_z(&token), 0644), 0);
        assert_true(finish(buf_z(&text), &c, &err) < 0);
        assert_non_null(strstr(err.text, "agent.yaml:2: token_file: "));
        assert_non_null(strstr(err.text, "(mode 0644): chmod 600"));
        config_deinit(&c);
        unlink(buf_z(&token));
}

/* Owners match by the rule of base/job/owners.h, like in the server's offers. */
static void runs_jobs_of_its_owners(void **state)
{
        static char one[] = "a@b", all[] = "*@c", any[] = "any";
        char *const entries[] = {one, all, any};
        static const struct {
                size_t first, count;
                const char *owner;
                bool own;
        } rows[] = {
                {0, 0, "x@y", true}, {0, 1, "a@b", true},  {0, 1, "x@b", false},
                {0, 2, "x@c", true}, {1, 1, "a@b", false}, {2, 1, "x@y", true},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct config c = {.owners.n = rows[i].count};

                memcpy(c.owners.v, entries + rows[i].first, rows[i].count * sizeof(*entries));
                assert_int_equal(users_own(&c, rows[i].owner), rows[i].own);
        }
}

static void maps_owners_to_users(void **state)
{
        (void)state;
        struct config c;
        struct err err = {""};
        struct users_entry e;
        assert_int_equal(read_text("min_uid: 1000\nusers:\n  a@b: nobody\n  r@b: root\n  d@b: daemon\n"
                                   "  x@b: no-such-user\n  \"*@c\": same name\n  daemon@c: nobody\n"
                                   "  \"*@d\": nobody\n",
                                   &c, &err),
                         0);
        c.agent_uid = 12345;
        static const struct {
                const char *owner, *user, *says;
        } cases[] = {
                {"a@b", "nobody", NULL},
                {"nobody@c", "nobody", NULL},
                {"daemon@c", "nobody", NULL}, /* an owner's own line comes first */
                {"anyone@d", "nobody", NULL},
                {"z@b", NULL, "name no local user for z@b"},
                {"a@bb", NULL, "name no local user"},
                {"a", NULL, "name no local user"},
                {"@d", NULL, "name no local user"},
                {"r@b", NULL, "no job runs as uid 0"},
                {"root@c", NULL, "no job runs as uid 0"},
                {"d@b", NULL, "whose uid 1 is below min_uid, 1000"},
                {"x@b", NULL, "no user no-such-user"},
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                int r = users_find(&c, cases[i].owner, &e, &err);

                assert_int_equal(r, cases[i].user ? 0 : -EPERM);
                if (cases[i].user)
                        assert_string_equal(e.name, cases[i].user);
                else if (!strstr(err.text, cases[i].says))
                        fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
        }
        MEM_CLEANUP char *owner = users_owner(&c, 65534);
        assert_string_equal(owner, "a@b");
        assert_null(users_owner(&c, 0));
        assert_null(users_owner(&c, 1));
        BUF_CLEANUP struct buf text = {0};
        users_print(&c, &text);
        assert_non_null(strstr(buf_z(&text), "\na@b nobody\n"));
        assert_non_null(strstr(buf_z(&text), "\n*@c *\n"));
        c.agent_uid = 65534; /* such a job could read the agent's key */
        assert_int_equal(users_find(&c, "a@b", &e, &err), -EPERM);
        assert_non_null(strstr(err.text, "the agent's own user"));
        config_deinit(&c);
}

static void says_what_is_wrong(void **state)
{
        (void)state;
        static const struct {
                const char *text, *says;
        } cases[] = {
                {"memroy: 3G\n", ":1: there is no setting 'memroy'; did you mean memory?"},
                {"name: x\nmemory: lots\n",
                 ":2: memory cannot be 'lots': write a size with its unit, as in 512M"},
                {"name:\n", ":1: name has no value: write one, or leave the line out"},
                {"gpus:\n", ":1: gpus has no value"},
                {"pull_policy: load=2\n", "load"},
                {"memory: 16\n", ":1: memory cannot be '16': write a size with its unit"},
                {"disk: 1048575\n", "disk cannot be '1048575'"},
                {"memory: 16Q\n", "memory cannot be '16Q': write a size with its unit, as in 512M or 16G"},
                {"walltime_max: 1-\n", "walltime_max cannot be '1-': write a time, as in 90s"},
                {"cpus: all\n", "cpus cannot be 'all': write a number"},
                {"cgroups: maybe\n", "cgroups cannot be 'maybe': write on or off"},
                {"name: [a, b]\n", "name cannot be a list: write one value behind the colon"},
                {"tags: {a: b}\n", "tags cannot be a map: write a word, or a list of words"},
                {"slurm: [a]\n", "slurm cannot be a list: write a map: lines `name: value` beneath it"},
                {"just text\n", "settings are written"},
                {"name: [a\n", ":"},
                {"pull_policy: load\n", "has no '='"},
                {"users: alice\n", "users is a map in the file: each line beneath it is `name: value`"},
                {"users:\n  a@b: [c, d]\n", "users maps owners to users"},
                {"users:\n  'a b@c': d\n", "users cannot map"},
        };
        for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                struct config c;
                struct err err = {""};

                assert_true(read_text(cases[i].text, &c, &err) < 0);
                if (!strstr(err.text, cases[i].says))
                        fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
                config_deinit(&c);
        }
        struct config c;
        struct err err = {""};
        bool done;
        char *unknown[] = {(char *)"agent", (char *)"--sever", (char *)"x"},
             *short_of[] = {(char *)"agent", (char *)"--name"};
        static const char *const late[][2] = {
                {"images:\n  debian: large\n", "images: debian has no size"},
                {"movers:\n  irods: ./here\n", "movers: irods: its program is an absolute path"},
                {"movers:\n  irods: here\n", "movers: irods: no program 'here' comes with Drover"},
                {"server: head.example\n",
                 ":2: the server 'head.example' is no address: write unix:/path or"},
                {"server: [unix:/x, 'head:']\n", ":2: the server 'head:' is no address"},
                {"server: unix:/x\ndir: /dev/null/x\n",
                 ":2: cannot use the folder /dev/null/x: Not a directory"},
                {"server: unix:/x\ndir: /home/nobody-is-called-so/x/y\n",
                 ":2: cannot use the folder /home/nobody-is-called-so/x/y: No such file or directory"},
        };
        for (unsigned i = 0; i < sizeof(late) / sizeof(*late); i++) {
                BUF_CLEANUP struct buf text = {0};

                if (!strstr(late[i][0], "server"))
                        buf_addz(&text, "server: unix:/run/x\n");
                if (!strstr(late[i][0], "dir:"))
                        buf_printf(&text, "dir: %s/agent\n", top);
                buf_addz(&text, late[i][0]);
                assert_int_equal(read_text(buf_z(&text), &c, &err), 0);
                assert_true(config_finish(&c, &err) < 0);
                if (!strstr(err.text, late[i][1]))
                        fail_msg("'%s' does not say '%s'", err.text, late[i][1]);
                config_deinit(&c);
        }
        config_init(&c);
        assert_int_equal(config_options(&c, 3, unknown, &done, &err), -EINVAL);
        assert_int_equal(config_options(&c, 2, short_of, &done, &err), -EINVAL);
        assert_non_null(strstr(err.text, "needs a value"));
        assert_int_equal(config_finish(&c, &err), -EINVAL); /* no server */
        config_deinit(&c);
}

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-conf-XXXXXX", sizeof(top) - 1);
        if (!mkdtemp(top))
                return 1;
        snprintf(path, sizeof(path), "%s/agent.yaml", top);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

int main(void)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(reads_settings),
                                           cmocka_unit_test(one_queue_without_a_list),
                                           cmocka_unit_test(queues_change_the_defaults),
                                           cmocka_unit_test(says_what_is_wrong_with_a_queue),
                                           cmocka_unit_test(nothing_is_an_empty_map),
                                           cmocka_unit_test(a_token_is_for_the_first_time),
                                           cmocka_unit_test(a_token_is_in_a_file_of_ones_own),
                                           cmocka_unit_test(runs_jobs_of_its_owners),
                                           cmocka_unit_test(maps_owners_to_users),
                                           cmocka_unit_test(says_what_is_wrong)};

        return cmocka_run_group_tests(tests, setup, teardown);
}
