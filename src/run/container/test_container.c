/* Arguments for each engine, and the reading of their answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/container/container.h"

#define WORDS(...)                                                                                           \
        ((const struct run_word[]){__VA_ARGS__}),                                                            \
                sizeof((const struct run_word[]){__VA_ARGS__}) / sizeof(struct run_word)

static void expect(struct args *a, const char *text)
{
        BUF_CLEANUP struct buf b = {0};

        args_join_v2(&b, a);
        assert_string_equal(buf_z(&b), text);
        args_deinit(a);
        *a = (struct args){0};
}

static const struct container_host podman = {CONTAINER_PODMAN, false, false, "4.3.1"},
                                   crun = {CONTAINER_PODMAN, true, true, "4.3.1"},
                                   docker = {CONTAINER_DOCKER, false, false, "20.10.24"},
                                   apptainer = {CONTAINER_APPTAINER, true, true, "1.1.9"};
static char *const argv[] = {(char *)"/x", (char *)"a b", (char *)"--c", NULL};

static struct container_job job(void)
{
        return (struct container_job){.name = "drover-0-1.2.3.0",
                                      .instance = "uuid",
                                      .image = "docker.io/library/tool:1",
                                      .sandbox = "/s/box",
                                      .program = "/bin/tool",
                                      .argv = argv,
                                      .uid = 7,
                                      .gid = 8,
                                      .memory_bytes = 1 << 20,
                                      .cpus_milli = 2500,
                                      .files = 1024,
                                      .processes = 99};
}

static void test_podman(void **state)
{
        struct container_settings s;
        ARGS_CLEANUP struct args a = {0}, words = {0};
        struct container_job j = job();

        (void)state;
        assert_int_equal(container_settings_read(&s, NULL, 0, NULL), 0);
        assert_int_equal(container_start(&s, &podman, &j, &a, NULL), 0);
        expect(&a, "podman run --init --interactive --pull never --name=drover-0-1.2.3.0 "
                   "--label=org.drover.agent=uuid --user=7:8 --cap-drop=all "
                   "--security-opt=no-new-privileges --security-opt=label=disable --volume /s/box:/s/box "
                   "--workdir=/s/box --log-driver=none --ulimit=nofile=1024:1024 --ulimit=nproc=99:99 "
                   "--memory=1048576 --memory-swap=1048576 --cpu-shares=2560 docker.io/library/tool:1 "
                   "/bin/tool 'a b' --c");
        container_settings_deinit(&s);

        assert_int_equal(container_settings_read(&s,
                                                 WORDS({"engine", "podman"}, {"program", "/opt/podman"},
                                                       {"network", "none"}, {"mounts", "/data:ro"},
                                                       {"mounts", "/a:/b"}, {"options", "--root=/r"},
                                                       {"run_options", "--read-only"}),
                                                 NULL),
                         0);
        args_add(&words, STR("--env"));
        args_add(&words, STR("A= b"));
        j.env = &words;
        j.env_file = "/s/box/env";
        j.target = "/box";
        j.cwd = "/home/me";
        j.mount_program = "/home/me/tool";
        j.program = "/home/me/tool";
        j.override_entrypoint = true;
        j.gpus = "0,GPU-1";
        static char *const covered[] = {(char *)"/home/me/.drover", NULL};
        j.covered = covered;
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), 0);
        expect(&a, "/opt/podman --root=/r run --init --interactive --pull never --name=drover-0-1.2.3.0 "
                   "--label=org.drover.agent=uuid --userns=keep-id --user=7:8 --cap-drop=all "
                   "--security-opt=no-new-privileges --security-opt=label=disable --network=none "
                   "--volume /s/box:/box --volume /home/me:/home/me --volume /home/me/tool:/home/me/tool:ro "
                   "--volume /data:/data:ro --volume /a:/b "
                   "--mount=type=tmpfs,destination=/home/me/.drover,tmpfs-size=65536,notmpcopyup "
                   "--workdir=/home/me --log-driver=none "
                   "--ulimit=nofile=1024:1024 --ulimit=nproc=99:99 --cgroups=disabled "
                   "--device=nvidia.com/gpu=0 --device=nvidia.com/gpu=GPU-1 --env-file=/s/box/env "
                   "--env 'A= b' --read-only --entrypoint=/home/me/tool docker.io/library/tool:1 'a b' --c");
        j.program = "";
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), 0);
        assert_string_equal(a.v[a.n - 4], "--read-only"); /* no entry point, no program */
        assert_string_equal(a.v[a.n - 3], "docker.io/library/tool:1");
        assert_string_equal(a.v[a.n - 2], "a b");
        args_deinit(&a);
        a = (struct args){0};
        j.one_id = true; /* nobody but user 0 is there */
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), 0);
        bool root = false;
        for (size_t n = 0; n < a.n; n++) {
                root |= strcmp(a.v[n], "--user=0:0") == 0;
                assert_int_not_equal(strcmp(a.v[n], "--userns=keep-id"), 0);
        }
        assert_true(root);
        j.one_id = false;
        j.self_removing = true;
        static const struct container_mount two[] = {{(char *)"/s/box/in", (char *)"/data/in"},
                                                     {(char *)"/s/box/out", (char *)"/out"}},
                                            bad[] = {{(char *)"/s/box/in", (char *)"/a:b"}};
        j.mounts = two;
        j.mount_count = 2;
        j.own_workdir = true;
        args_deinit(&a);
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), 0);
        bool first = false, second = false;
        for (size_t n = 0; n < a.n; n++) {
                first |= strcmp(a.v[n], "/s/box/in:/data/in") == 0 && strcmp(a.v[n - 1], "--volume") == 0;
                second |= strcmp(a.v[n], "/s/box/out:/out") == 0;
                assert_int_not_equal(strncmp(a.v[n], "--workdir", 9), 0); /* where the image says */
        }
        assert_true(first && second);
        j.workdir = "/out";
        args_deinit(&a);
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), 0);
        bool there = false;
        for (size_t n = 0; n < a.n; n++)
                there |= strcmp(a.v[n], "--workdir=/out") == 0;
        assert_true(there);
        j.mounts = bad;
        j.mount_count = 1;
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), -EINVAL);
        j.mount_count = 0;
        j.sandbox = "/with:colon";
        assert_int_equal(container_start(&s, &crun, &j, &a, NULL), -EINVAL);
        container_settings_deinit(&s);
}

/* The init that looks at the mounts, and what it is told. */
static void test_init(void **state)
{
        struct container_settings s;
        ARGS_CLEANUP struct args a = {0}, seen = {0};
        struct container_job j = job();

        (void)state;
        args_add(&seen, STR("--env"));
        args_add(&seen, STR("DROVER_MOUNT_0=1f:2:/s/box"));
        j.init = "/usr/bin/drover-init";
        j.seen = &seen;
        assert_int_equal(container_settings_read(&s, NULL, 0, NULL), 0);
        assert_int_equal(container_start(&s, &podman, &j, &a, NULL), 0);
        expect(&a, "podman run --init --interactive --pull never --name=drover-0-1.2.3.0 "
                   "--label=org.drover.agent=uuid --user=7:8 --cap-drop=all "
                   "--security-opt=no-new-privileges --security-opt=label=disable --volume /s/box:/s/box "
                   "--workdir=/s/box --log-driver=none --init-path=/usr/bin/drover-init --env "
                   "DROVER_MOUNT_0=1f:2:/s/box --ulimit=nofile=1024:1024 --ulimit=nproc=99:99 "
                   "--memory=1048576 --memory-swap=1048576 --cpu-shares=2560 docker.io/library/tool:1 "
                   "/bin/tool 'a b' --c");
        container_settings_deinit(&s);
}

static void test_docker(void **state)
{
        struct container_settings s;
        ARGS_CLEANUP struct args a = {0}, seen = {0};
        struct container_job j = job();

        (void)state;
        j.gpus = "0,1";
        j.self_removing = true;
        assert_int_equal(container_settings_read(&s, WORDS({"engine", "docker"}, {"pull", "always"}), NULL),
                         0);
        assert_int_equal(container_start(&s, &docker, &j, &a, NULL), 0);
        expect(&a, "docker run --init --interactive --pull always --rm --name=drover-0-1.2.3.0 "
                   "--label=org.drover.agent=uuid --user=7:8 --cap-drop=all "
                   "--security-opt=no-new-privileges --security-opt=label=disable --volume /s/box:/s/box "
                   "--workdir=/s/box --gpus=\"device=0,1\" --memory=1048576 --memory-swap=1048576 "
                   "--cpu-shares=2560 docker.io/library/tool:1 /bin/tool 'a b' --c");
        args_add(&seen, STR("--env"));
        args_add(&seen, STR("DROVER_MOUNT_0=1:2:/s/box"));
        j.gpus = NULL;
        j.init = "/usr/bin/drover-init";
        j.seen = &seen;
        assert_int_equal(container_start(&s, &docker, &j, &a, NULL), 0);
        expect(&a, "docker run --init --interactive --pull always --rm --name=drover-0-1.2.3.0 "
                   "--label=org.drover.agent=uuid --user=7:8 --cap-drop=all "
                   "--security-opt=no-new-privileges --security-opt=label=disable --volume /s/box:/s/box "
                   "--workdir=/s/box --volume /usr/bin/drover-init:/sbin/docker-init:ro --env "
                   "DROVER_MOUNT_0=1:2:/s/box --memory=1048576 --memory-swap=1048576 "
                   "--cpu-shares=2560 docker.io/library/tool:1 /bin/tool 'a b' --c");
        j.init = "/usr/b:n/drover-init";
        assert_int_equal(container_start(&s, &docker, &j, &a, NULL), -EINVAL);
        args_deinit(&a);
        a = (struct args){0};
        container_remove(&s, CONTAINER_DOCKER, "x", &a);
        expect(&a, "docker rm --force --volumes x");
        container_list(&s, CONTAINER_DOCKER, "uuid", &a);
        expect(&a, "docker ps --all --filter label=org.drover.agent=uuid --format {{.Names}}");
        container_settings_deinit(&s);
}

static void test_apptainer(void **state)
{
        static char *const env[] = {(char *)"HOME=/h", (char *)"A.B=1", (char *)"2=3", (char *)"A=1\n2",
                                    NULL};
        struct container_settings s;
        ARGS_CLEANUP struct args a = {0}, words = {0};
        BUF_CLEANUP struct buf file = {0};
        struct container_job j = job();

        (void)state;
        j.target = "/box";
        j.gpus = "0";
        assert_int_equal(
                container_settings_read(&s, WORDS({"engine", "singularity"}, {"network", "none"}), NULL), 0);
        assert_int_equal(container_start(&s, &apptainer, &j, &a, NULL), 0);
        expect(&a,
               "singularity --silent exec --containall --cleanenv --no-privs --no-home --home /s/box:/box "
               "--bind /s/box:/box --pwd /box --net --network none --nv "
               "docker://docker.io/library/tool:1 /bin/tool 'a b' --c");
        container_environment(&s, CONTAINER_APPTAINER, env, &file, &words, &a);
        assert_int_equal(words.n + file.n, 0);
        assert_int_equal(a.n, 2); /* without those whose name no shell can have */
        assert_string_equal(a.v[0], "SINGULARITY_NO_EVAL=1");
        assert_string_equal(a.v[1], "SINGULARITYENV_A=1\n2");
        container_settings_deinit(&s);
        args_deinit(&a);
        a = (struct args){0};
        container_settings_read(&s, WORDS({"engine", "apptainer"}), NULL);
        container_environment(&s, CONTAINER_APPTAINER, env, &file, &words, &a);
        assert_string_equal(a.v[1], "APPTAINERENV_A=1\n2");
        j.image = "/images/a.sif";
        j.home = "/home/me";
        args_deinit(&a);
        a = (struct args){0};
        assert_int_equal(container_start(&s, &apptainer, &j, &a, NULL), 0);
        expect(&a, "apptainer --silent exec --containall --cleanenv --no-privs --no-home --home "
                   "/s/box:/home/me --bind /s/box:/box --pwd /box --nv /images/a.sif /bin/tool 'a b' --c");
        j.home = "/a,b";
        j.image = "./a.sif";
        assert_int_equal(container_start(&s, &apptainer, &j, &a, NULL), 0);
        expect(&a, "apptainer --silent exec --containall --cleanenv --no-privs --no-home --home /s/box:/box "
                   "--bind /s/box:/box --pwd /box --nv /s/box/a.sif /bin/tool 'a b' --c");
        j.program = "";
        assert_int_equal(container_start(&s, &apptainer, &j, &a, NULL), 0);
        expect(&a, "apptainer --silent run --containall --cleanenv --no-privs --no-home --home /s/box:/box "
                   "--bind /s/box:/box --pwd /box --nv /s/box/a.sif 'a b' --c");
        container_pull(&s, CONTAINER_APPTAINER, "x", &a);
        assert_int_equal(a.n, 0);
        container_settings_deinit(&s);
}

static void add_image(void *arg, struct str name, uint64_t bytes)
{
        buf_printf(arg, STR_FMT "=%llu ", STR_ARG(name), (unsigned long long)bytes);
}

/* With a folder for images, those of registries are fetched first, and run from there. */
static void test_kept(void **state)
{
        struct container_settings s;
        ARGS_CLEANUP struct args a = {0}, here = {0};
        BUF_CLEANUP struct buf b = {0}, out = {0};
        struct container_job j = job();

        (void)state;
        container_settings_read(&s, WORDS({"engine", "apptainer"}, {"pull", "never"}, {"images", "r.org/*"}),
                                NULL);
        assert_false(container_image_allowed(&s, CONTAINER_APPTAINER, STR("r.org/a:1")));
        s.folder = str_dupz(STR("/kept"));
        assert_true(container_image_allowed(&s, CONTAINER_APPTAINER, STR("r.org/a:1")));
        assert_false(container_keeps(&s, CONTAINER_APPTAINER, "/img/a.sif", NULL));
        assert_false(container_keeps(&s, CONTAINER_APPTAINER, "instance://a", NULL));
        assert_false(container_keeps(&s, CONTAINER_PODMAN, "r.org/a:1", NULL));
        assert_int_equal(container_start(&s, &apptainer, &j, &a, NULL), 0);
        assert_string_equal(a.v[a.n - 4], "/kept/docker.io%2Flibrary%2Ftool%3A1.sif");
        args_deinit(&a);
        a = (struct args){0};
        container_exists(&s, CONTAINER_APPTAINER, "r.org/a:1", &a);
        expect(&a, "test -s /kept/r.org%2Fa%3A1.sif");
        container_images(&s, CONTAINER_APPTAINER, &a);
        expect(&a, "find /kept -maxdepth 1 -name *.sif -printf '%f %sB\n'");
        container_pull(&s, CONTAINER_APPTAINER, "r.org/a:1", &a);
        assert_string_equal(a.v[3], "/kept/r.org%2Fa%3A1.sif");
        assert_string_equal(a.v[4], "docker://r.org/a:1");
        assert_string_equal(a.v[5], "apptainer");
        container_each_image(CONTAINER_APPTAINER, STR("r.org%2Fa%3A1.sif 12B\nother 3B\nx%2.sif 4B\n"),
                             add_image, &b);
        assert_string_equal(buf_z(&b), "r.org/a:1=12 ");
        args_add(&here, STR("r.org/a:1"));
        container_requirement(&s, CONTAINER_APPTAINER, &here, &out);
        assert_string_equal(
                buf_z(&out),
                "((TARGET.ContainerImage ?: TARGET.DockerImage) =?= undefined || "
                "regexp(\"^(\\\\./.*|/.*|(?!.*://).*\\\\.sif|(docker://)?(r\\\\.org/a:1))$\", "
                "TARGET.ContainerImage ?: "
                "TARGET.DockerImage)) && ((TARGET.ContainerImage ?: TARGET.DockerImage) =?= undefined || "
                "regexp(\"^((docker://)?(r\\\\.org/.*))$\", TARGET.ContainerImage ?: TARGET.DockerImage)) && "
                "(TARGET.DockerNetworkType =?= undefined || member(TARGET.DockerNetworkType, {\"none\", "
                "\"host\"}))");
        container_settings_deinit(&s);
}

static void test_environment(void **state)
{
        static char *const env[] = {(char *)"PLAIN=grün x", (char *)"Q=a'b",  (char *)"H=#",  (char *)"L=x ",
                                    (char *)"E=",           (char *)"N=1\n2", (char *)"S=a*", NULL};
        struct container_settings s = {0};
        ARGS_CLEANUP struct args words = {0};
        BUF_CLEANUP struct buf file = {0};

        (void)state;
        container_environment(&s, CONTAINER_PODMAN, env, &file, &words, NULL);
        assert_string_equal(buf_z(&file), "PLAIN=grün x\nS=a*\n");
        assert_int_equal(words.n, 10);
        assert_string_equal(words.v[1], "Q=a'b");
        assert_string_equal(words.v[9], "N=1\n2");
}

/* A command beside the job is started by the container's init if the job was. */
static void test_a_command_in_a_container(void **state)
{
        char *const command[] = {(char *)"ps", (char *)"a"};
        struct container_command x = {.argv = command, .argc = 2, .terminal = true};
        struct container_settings s = {0};
        ARGS_CLEANUP struct args plain = {0}, checked = {0};

        (void)state;
        container_exec(&s, CONTAINER_DOCKER, "box", &x, &plain);
        expect(&plain, "docker exec --tty box ps a");
        x.init = true;
        container_exec(&s, CONTAINER_PODMAN, "box", &x, &checked);
        expect(&checked, "podman exec --tty box /proc/1/exe -- ps a");
}

static void test_variables_of_its_init(void **state)
{
        static char *const env[] = {(char *)"DROVER_MOUNT_0=1:1:/proc", (char *)"DROVER_MOUNT_1=1:1:/\n",
                                    (char *)"DROVER_MOUNTS=1", NULL};
        struct container_settings s = {0};
        ARGS_CLEANUP struct args words = {0}, own = {0};
        BUF_CLEANUP struct buf file = {0};

        (void)state;
        container_environment(&s, CONTAINER_DOCKER, env, &file, &words, NULL);
        assert_string_equal(buf_z(&file), "DROVER_MOUNTS=1\n");
        assert_int_equal(words.n, 0);
        container_environment(&s, CONTAINER_APPTAINER, env, &file, &words, &own);
        assert_int_equal(own.n, 2);
        assert_string_equal(own.v[1], "APPTAINERENV_DROVER_MOUNTS=1");
}

static void refused(const struct run_word *words, size_t count, const char *text)
{
        struct container_settings s;
        struct err err = {""};

        assert_int_equal(container_settings_read(&s, words, count, &err), -EINVAL);
        assert_non_null(strstr(err.text, text));
        container_settings_deinit(&s);
}

static void test_settings(void **state)
{
        struct container_settings s;

        (void)state;
        refused(WORDS({"engine", "lxc"}), "engine is auto");
        refused(WORDS({"pull", "sometimes"}), "pull is missing");
        refused(WORDS({"mounts", "data"}), "a mount is /PATH");
        refused(WORDS({"mounts", "/a:/b:rw"}), "a mount is /PATH");
        refused(WORDS({"imagse", "x"}), "no setting 'imagse'");
        refused(WORDS({"program", "/opt/p"}), "program needs engine");
        assert_int_equal(
                container_settings_read(&s,
                                        WORDS({"images", "docker.io/library/*"}, {"images", "/img/*.sif"},
                                              {"network", "inner"}, {"networks", "host"}),
                                        NULL),
                0);
        assert_true(s.automatic);
        assert_true(container_image_allowed(&s, CONTAINER_PODMAN, STR("docker.io/library/a:1")));
        assert_true(container_image_allowed(&s, CONTAINER_PODMAN, STR("/img/a.sif")));
        assert_false(container_image_allowed(&s, CONTAINER_PODMAN, STR("docker.io/me/a:1")));
        assert_null(container_network_refused(&s, "inner"));
        assert_null(container_network_refused(&s, "host"));
        assert_null(container_network_refused(&s, ""));
        assert_non_null(container_network_refused(&s, "none"));
        container_settings_deinit(&s);
        assert_int_equal(container_settings_read(&s, WORDS({"engine", "apptainer"}, {"pull", "never"}), NULL),
                         0);
        assert_true(container_image_allowed(&s, CONTAINER_APPTAINER, STR("/img/a.sif")));
        assert_false(container_image_allowed(&s, CONTAINER_APPTAINER, STR("docker.io/library/a:1")));
        assert_false(container_image_allowed(&s, CONTAINER_APPTAINER, STR("oras://a/b.sif")));
        container_settings_deinit(&s);
}

static void test_image(void **state)
{
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        assert_int_equal(container_image(CONTAINER_PODMAN, STR("tool"), &b, NULL), 0);
        assert_string_equal(buf_z(&b), "docker.io/library/tool:latest");
        assert_int_equal(container_image(CONTAINER_PODMAN, STR("/a.sif"), &b, NULL), -EINVAL);
        assert_int_equal(container_image(CONTAINER_DOCKER, STR("oras://a/b"), &b, NULL), -EINVAL);
        assert_int_equal(container_image(CONTAINER_APPTAINER, STR("oras://a/b"), &b, NULL), 0);
        buf_reset(&b);
        assert_int_equal(container_image(CONTAINER_APPTAINER, STR("a/b.sif"), &b, NULL), 0);
        assert_string_equal(buf_z(&b), "./a/b.sif");
        buf_reset(&b);
        assert_int_equal(container_image(CONTAINER_APPTAINER, STR(".b.sif"), &b, NULL), 0);
        assert_string_equal(buf_z(&b), "./.b.sif");
        assert_int_equal(container_image(CONTAINER_APPTAINER, STR("/a/../b.sif"), &b, NULL), -EINVAL);
        assert_int_equal(container_image(CONTAINER_PODMAN, STR("--privileged"), &b, NULL), -EINVAL);
        assert_int_equal(container_image(CONTAINER_PODMAN, STR("a b"), &b, NULL), -EINVAL);
        assert_int_equal(container_image(CONTAINER_PODMAN, STR(""), &b, NULL), -EINVAL);
}

static void test_names(void **state)
{
        struct run_id id = {7, 42, 3, 1, 0}, got;
        char name[96];

        (void)state;
        container_name("01234567-89ab", id, name);
        assert_string_equal(name, "drover-01234567-7.42.3.1");
        assert_true(container_name_read(str_of(name), &got));
        assert_true(run_id_eq(id, got));
        assert_false(container_name_read(STR("other-7.42.3.1"), &got));
        assert_false(container_name_read(STR("drover-x"), &got));
        assert_false(container_name_read(STR(""), &got));
}

static void test_answers(void **state)
{
        struct container_host h;
        BUF_CLEANUP struct buf b = {0};

        (void)state;
        assert_true(container_probed(CONTAINER_PODMAN, STR("4.3.1 runc false\n"), &h));
        assert_false(h.in_place || h.rootless);
        assert_true(container_probed(CONTAINER_PODMAN, STR("4.9.3 crun true\n"), &h));
        assert_true(h.in_place && h.rootless);
        assert_string_equal(h.version, "4.9.3");
        assert_true(container_probed(CONTAINER_DOCKER, STR("20.10.24+dfsg1\n"), &h));
        assert_true(container_probed(CONTAINER_APPTAINER, STR("apptainer version 1.1.9-1.el9\n"), &h));
        assert_string_equal(h.version, "1.1.9-1.el9");
        assert_false(container_probed(CONTAINER_DOCKER, STR(""), &h));
        assert_false(container_probed(CONTAINER_PODMAN, STR("<no value>"), &h));
        container_each_image(
                CONTAINER_PODMAN,
                STR("localhost/tiny:1 2.13 MB\n<none>:<none> 1 GB\nbusybox:latest 72.8MB\n\nx:1 512kB\nbad"),
                add_image, &b);
        assert_string_equal(buf_z(&b), "localhost/tiny:1=2130000 docker.io/library/busybox:latest=72800000 "
                                       "docker.io/library/x:1=512000 docker.io/library/bad:latest=0 ");
}

static void ends(enum container_engine e, int code, const char *tail, enum container_end end,
                 const char *words)
{
        struct str got = STR_NONE;

        assert_int_equal(container_ended(e, code, str_of(tail), &got), end);
        if (end != CONTAINER_PROGRAM_ENDED)
                assert_true(str_eqz(got, words));
}

/* Recorded from apptainer 1.4.5, with other names. */
static void test_ends_of_apptainer(void **state)
{
        static const struct {
                enum container_end end;
                int code;
                const char *words, *around;
        } said[] = {
                {CONTAINER_NO_PROGRAM, 255, "FATAL:   stat /bin/no: no such file or directory", "\n"},
                {CONTAINER_NO_PROGRAM, 255, "FATAL:   stat /bin/sh/x: not a directory", "\n"},
                {CONTAINER_NO_PROGRAM, 255, "FATAL:   \"no\": executable file not found in $PATH", "\n"},
                {CONTAINER_NO_PROGRAM, 255, "FATAL:   permission denied", "\n"},
                {CONTAINER_NO_PROGRAM, 255, "FATAL:   is a directory", "\n"},
                {CONTAINER_NO_PROGRAM, 255,
                 "FATAL:   exec /box/bad failed: fork/exec /box/bad: no such file or directory", "\n"},
                {CONTAINER_FAILED, 255,
                 "FATAL:   While checking container encryption: could not open image /a.sif: failed to "
                 "retrieve "
                 "path for /a.sif: lstat /a.sif: no such file or directory",
                 "\n"},
                {CONTAINER_FAILED, 255,
                 "FATAL:   Unable to handle docker://127.0.0.1:1/a:1 uri: while building SIF from layers: "
                 "unable to "
                 "create new build: while searching for mksquashfs: exec: \"mksquashfs\": executable file "
                 "not "
                 "found in $PATH",
                 "\n"},
                {CONTAINER_FAILED, 255,
                 "FATAL:   container creation failed: network setup failed: no net configurations found in "
                 "/etc/apptainer/network",
                 "\n"},
                {CONTAINER_NO_IMAGE, 255,
                 "FATAL:   While checking container encryption: could not open image /i/r.org%2Fa%3A1.sif: "
                 "failed to "
                 "retrieve path for /i/r.org%2Fa%3A1.sif: lstat /i/r.org%2Fa%3A1.sif: no such file or "
                 "directory",
                 "\n"},
                {CONTAINER_FAILED, 255, /* it is here, and is broken: fetching it is not what it wants */
                 "FATAL:   While checking container encryption: could not open image /i/r.org%2Fa%3A1.sif: "
                 "image "
                 "format not recognized",
                 "\n"},
                {CONTAINER_FAILED, 1,
                 "ERROR  : Requesting capability set 0x000001ffffffffff while permitted capability set is "
                 "0x000001fffeffffff",
                 "\n\033[0m"},
        };

        (void)state;
        for (size_t i = 0; i < sizeof(said) / sizeof(*said); i++) {
                BUF_CLEANUP struct buf tail = {0};

                buf_printf(&tail, "mine\n%s%s%s", said[i].code == 1 ? "\033[91m" : "", said[i].words,
                           said[i].around);
                ends(CONTAINER_APPTAINER, said[i].code, buf_z(&tail), said[i].end, said[i].words);
        }
}

/* Errors of podman 4.3, docker 20.10 and apptainer 1.4, with other names. */
static void test_what_passes(void **state)
{
        static const char *const stay[] = {
                "Error: initializing source docker://127.0.0.1:5/a:1: reading manifest 1 in 127.0.0.1:5/a: "
                "manifest "
                "unknown: manifest unknown",
                "Error: initializing source docker://r.org/a:1: reading manifest 1 in r.org/a: unauthorized: "
                "authentication required",
                "Error response from daemon: pull access denied for a, repository does not exist or may "
                "require "
                "'docker login': denied: requested access to the resource is denied",
                "Error: initializing source docker://r.orgg/a:1: pinging container registry r.orgg: Get "
                "\"https://r.orgg/v2/\": dial tcp: lookup r.orgg on 192.0.2.1:53: no such host",
                "FATAL:   While making image from oci registry: image is broken",
                "Error: initializing source docker://r.org/timeout:1: requested access to the resource is "
                "denied",
                ""};
        static const char *const pass[] = {
                "Error: initializing source docker://r.org/a:1: pinging container registry r.org: Get "
                "\"https://r.org/v2/\": dial tcp 192.0.2.7:443: connect: connection refused",
                "Error: initializing source docker://r.org/a:1: pinging container registry r.org: received "
                "unexpected "
                "HTTP status: 503 Service Unavailable",
                "Error response from daemon: Get \"https://r.org/v2/\": net/http: request canceled while "
                "waiting for "
                "connection (Client.Timeout exceeded while awaiting headers)",
                "Error response from daemon: toomanyrequests: You have reached your pull rate limit.",
                "FATAL:   While making image from oci registry: error fetching image: dial tcp: lookup r.org "
                "on "
                "192.0.2.1:53: server misbehaving",
                "Error: writing blob: write /var/tmp/x: no space left on device"};

        (void)state;
        for (size_t i = 0; i < sizeof(stay) / sizeof(*stay); i++)
                assert_false(container_passes(str_of(stay[i])));
        for (size_t i = 0; i < sizeof(pass) / sizeof(*pass); i++)
                assert_true(container_passes(str_of(pass[i])));
}

static void test_ends(void **state)
{
        (void)state;
        ends(CONTAINER_PODMAN, 0, "Error: x\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_PODMAN, 125, "mine\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_PODMAN, 3, "Error: mine\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_PODMAN, 125, "Error: statfs /x: no such file or directory\n", CONTAINER_FAILED,
             "Error: statfs /x: no such file or directory");
        ends(CONTAINER_PODMAN, 125, "Error: localhost/nosuch:1: image not known\n", CONTAINER_NO_IMAGE,
             "Error: localhost/nosuch:1: image not known");
        ends(CONTAINER_PODMAN, 1, "ERROR (catatonit:6): failed to exec pid1: No such file or directory\n",
             CONTAINER_NO_PROGRAM, "ERROR (catatonit:6): failed to exec pid1: No such file or directory");
        ends(CONTAINER_PODMAN, 1, "ERROR (catatonit:6): x\nmine\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_DOCKER, 127, "[FATAL tini (7)] exec /no failed: No such file or directory\n",
             CONTAINER_NO_PROGRAM, "[FATAL tini (7)] exec /no failed: No such file or directory");
        ends(CONTAINER_DOCKER, 125,
             "docker: Error response from daemon: network x not found.\nSee 'docker run --help'.\n",
             CONTAINER_FAILED, "docker: Error response from daemon: network x not found.");
        ends(CONTAINER_APPTAINER, 255, "FATAL:   could not open image /a.sif: no such file\n",
             CONTAINER_FAILED, "FATAL:   could not open image /a.sif: no such file");
        ends(CONTAINER_APPTAINER, 255, "mine\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_APPTAINER, 3, "FATAL:   mine\n", CONTAINER_PROGRAM_ENDED, NULL);
        ends(CONTAINER_APPTAINER, 1, "mine\n\033[0m", CONTAINER_PROGRAM_ENDED, NULL);
        assert_true(str_eqz(container_words(STR("Trying\nError: a\nhint\n")), "Error: a"));
        assert_true(str_eqz(container_words(STR("one\ntwo\n")), "two"));
        assert_true(str_eqz(container_words(STR("")), ""));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_podman),
                cmocka_unit_test(test_init),
                cmocka_unit_test(test_docker),
                cmocka_unit_test(test_apptainer),
                cmocka_unit_test(test_kept),
                cmocka_unit_test(test_environment),
                cmocka_unit_test(test_a_command_in_a_container),
                cmocka_unit_test(test_variables_of_its_init),
                cmocka_unit_test(test_settings),
                cmocka_unit_test(test_image),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_what_passes),
                cmocka_unit_test(test_ends),
                cmocka_unit_test(test_ends_of_apptainer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
