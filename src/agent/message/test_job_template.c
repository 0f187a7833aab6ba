/* Every field that a server sends arrives at the agent's parts, and the journal's form has the same fields.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/message/job_template.h"
#include "wire/drover.pb-c.h"

static unsigned char sum[32] = {1, 2, 3};

static char *texts[] = {(char *)"a", (char *)"b"};

static void pack(struct buf *out, size_t sum_size)
{
        Drover__Step step = DROVER__STEP__INIT, *steps[] = {&step};
        Drover__SpoolRef ref = DROVER__SPOOL_REF__INIT, *refs[] = {&ref};
        Drover__Remap remap = DROVER__REMAP__INIT, *remaps[] = {&remap};
        Drover__Resource resource = DROVER__RESOURCE__INIT, *resources[] = {&resource};
        Drover__Attribute attribute = DROVER__ATTRIBUTE__INIT, *attributes[] = {&attribute};
        Drover__Origin origin = DROVER__ORIGIN__INIT;
        Drover__Checkpointing checkpointing = DROVER__CHECKPOINTING__INIT;
        Drover__Template m = DROVER__TEMPLATE__INIT;

        step = (Drover__Step){step.base,
                              .executable = (char *)"exe",
                              .arguments_v1 = (char *)"v1",
                              .arguments_v2 = (char *)"v2",
                              .environment_v2 = (char *)"env",
                              .stdin_file = (char *)"in",
                              .stdout_file = (char *)"out",
                              .stderr_file = (char *)"err",
                              .container = (char *)"image",
                              .transfer_executable = true,
                              .ignore_failure = true,
                              .argv = texts,
                              .n_argv = 2,
                              .container_network = (char *)"none",
                              .container_target_dir = (char *)"/work",
                              .container_pull_always = true,
                              .container_workdir = (char *)"/in",
                              .container_own_workdir = true,
                              .container_override_entrypoint = true};
        ref.name = (char *)"file";
        ref.sha256 = (ProtobufCBinaryData){sum_size, sum};
        ref.size = 17;
        ref.executable = true;
        remap.name = (char *)"from";
        remap.path = (char *)"to";
        resource.name = (char *)"GPUs";
        resource.count = 3;
        attribute.name = (char *)"SlurmQos";
        attribute.value = (char *)"high";
        origin = (Drover__Origin){origin.base, (char *)"s",   (char *)"o", (char *)"l",
                                  (char *)"p", (char *)"7.1", 5,           (char *)"uuid"};
        checkpointing.by_signal = true;
        checkpointing.code = 85;
        checkpointing.signal = 10;
        checkpointing.files = texts;
        checkpointing.n_files = 1;
        m = (Drover__Template){m.base,
                               .request = 7,
                               .part = 2,
                               .owner = (char *)"ann@x",
                               .iwd = (char *)"/home",
                               .filesystem_domain = (char *)"x",
                               .variables = texts,
                               .n_variables = 2,
                               .steps = steps,
                               .n_steps = 1,
                               .input_files = texts,
                               .n_input_files = 1,
                               .output_files = texts + 1,
                               .n_output_files = 1,
                               .all_outputs = true,
                               .transfer = DROVER__TRANSFER__TRANSFER_IN_PLACE,
                               .spooled = refs,
                               .n_spooled = 1,
                               .cpus_milli = 1500,
                               .memory_bytes = 1,
                               .disk_bytes = 2,
                               .walltime_ms = 3,
                               .user_log = (char *)"log",
                               .outputs_on_failure = true,
                               .output_remaps = remaps,
                               .n_output_remaps = 1,
                               .mounts = remaps,
                               .n_mounts = 1,
                               .streams_in_sandbox = true,
                               .output_destination = (char *)"https://d",
                               .resources = resources,
                               .n_resources = 1,
                               .attributes = attributes,
                               .n_attributes = 1,
                               .origin = &origin,
                               .checkpointing = &checkpointing,
                               .kill_signal = 12,
                               .vacate_ms = 4,
                               .keeps_when_evicted = true,
                               .credentials = texts,
                               .n_credentials = 2,
                               .modules = (char *)"gcc",
                               .conda_env = (char *)"c",
                               .file_list = (char *)"list",
                               .register_outputs = true,
                               .output_bytes_max = 9,
                               .python_env = (char *)"p"};
        out->n += drover__template__pack(&m, buf_room(out, drover__template__get_packed_size(&m)));
}

static void assert_all(const struct job_template *t)
{
        const struct job_step *s = &t->steps[0];

        assert_int_equal(t->request, 7);
        assert_int_equal(t->part, 2);
        assert_string_equal(t->owner, "ann@x");
        assert_string_equal(t->iwd, "/home");
        assert_string_equal(t->filesystem_domain, "x");
        assert_int_equal(t->variable_count, 2);
        assert_string_equal(t->variables[1], "b");
        assert_int_equal(t->step_count, 1);
        assert_string_equal(s->executable, "exe");
        assert_string_equal(s->arguments_v1, "v1");
        assert_string_equal(s->arguments_v2, "v2");
        assert_int_equal(s->argv_count, 2);
        assert_string_equal(s->argv[0], "a");
        assert_string_equal(s->environment_v2, "env");
        assert_string_equal(s->stdin_file, "in");
        assert_string_equal(s->stdout_file, "out");
        assert_string_equal(s->stderr_file, "err");
        assert_true(s->transfer_executable && s->ignore_failure && s->container_pull_always &&
                    s->container_override_entrypoint);
        assert_string_equal(s->container, "image");
        assert_string_equal(s->container_network, "none");
        assert_string_equal(s->container_target_dir, "/work");
        assert_true(s->container_own_workdir && t->streams_in_sandbox);
        assert_string_equal(s->container_workdir, "/in");
        assert_int_equal(t->mount_count, 1);
        assert_string_equal(t->mounts[0].name, "from");
        assert_string_equal(t->mounts[0].path, "to");
        assert_int_equal(t->input_file_count, 1);
        assert_string_equal(t->input_files[0], "a");
        assert_int_equal(t->output_file_count, 1);
        assert_string_equal(t->output_files[0], "b");
        assert_true(t->all_outputs && t->outputs_on_failure && t->keeps_when_evicted);
        assert_int_equal(t->spooled_count, 1);
        assert_string_equal(t->spooled[0].name, "file");
        assert_int_equal(t->spooled[0].size, 17);
        assert_true(t->spooled[0].executable);
        assert_int_equal(t->cpus_milli, 1500);
        assert_int_equal(t->memory_bytes, 1);
        assert_int_equal(t->disk_bytes, 2);
        assert_int_equal(t->walltime_ms, 3);
        assert_int_equal(t->output_remap_count, 1);
        assert_string_equal(t->output_remaps[0].name, "from");
        assert_string_equal(t->output_remaps[0].path, "to");
        assert_string_equal(t->output_destination, "https://d");
        assert_int_equal(t->resource_count, 1);
        assert_string_equal(t->resources[0].name, "GPUs");
        assert_int_equal(t->resources[0].count, 3);
        assert_int_equal(t->attribute_count, 1);
        assert_string_equal(t->attributes[0].name, "SlurmQos");
        assert_string_equal(t->attributes[0].value, "high");
        assert_string_equal(t->origin->servers, "s");
        assert_string_equal(t->origin->owner, "o");
        assert_string_equal(t->origin->label, "l");
        assert_string_equal(t->origin->path, "p");
        assert_string_equal(t->origin->job, "7.1");
        assert_int_equal(t->origin->hops_left, 5);
        assert_string_equal(t->origin->trace, "uuid");
        assert_true(t->checkpointing->by_signal);
        assert_int_equal(t->checkpointing->code, 85);
        assert_int_equal(t->checkpointing->signal, 10);
        assert_int_equal(t->checkpointing->file_count, 1);
        assert_string_equal(t->checkpointing->files[0], "a");
        assert_int_equal(t->kill_signal, 12);
        assert_int_equal(t->vacate_ms, 4);
        assert_int_equal(t->credential_count, 2);
        assert_string_equal(t->credentials[1], "b");
        assert_string_equal(t->modules, "gcc");
        assert_string_equal(t->conda_env, "c");
        assert_string_equal(t->python_env, "p");
        assert_string_equal(t->file_list, "list");
        assert_true(t->register_outputs);
        assert_int_equal(t->output_bytes_max, 9);
}

static void test_every_field(void **state)
{
        BUF_CLEANUP struct buf sent = {0}, kept = {0};

        (void)state;
        pack(&sent, 32);
        struct job_template *t = job_template_unpack(sent.p, sent.n);
        assert_all(t);
        assert_memory_equal(t->spooled[0].sha256, sum, 32);
        assert_int_equal(t->transfer, TRANSFER_IN_PLACE);
        job_template_pack(t, &kept);
        assert_true(str_eq(buf_view(&sent), buf_view(&kept)));
        job_template_set_transfer(t, TRANSFER_NO);
        buf_reset(&kept);
        job_template_pack(t, &kept);
        job_template_free(t);
        t = job_template_unpack(kept.p, kept.n);
        assert_all(t);
        assert_int_equal(t->transfer, TRANSFER_NO);
        job_template_free(t);
}

/* In an empty template texts are empty, not missing. */
static void test_an_empty_one(void **state)
{
        (void)state;
        struct job_template *t = job_template_unpack("", 0);
        assert_string_equal(t->owner, "");
        assert_string_equal(t->file_list, "");
        assert_int_equal(t->step_count + t->spooled_count + t->resource_count + t->attribute_count, 0);
        assert_null(t->origin);
        assert_null(t->checkpointing);
        job_template_free(t);
        job_template_free(NULL);
}

static void test_what_is_wrong(void **state)
{
        BUF_CLEANUP struct buf sent = {0};

        (void)state;
        pack(&sent, 31);
        struct job_template *t = job_template_unpack(sent.p, sent.n);
        assert_null(t->spooled[0].sha256);
        assert_all(t);
        job_template_free(t);
        assert_null(job_template_unpack(sent.p, sent.n - 1));
        assert_null(job_template_unpack("\xff\xff\xff", 3));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_field),
                cmocka_unit_test(test_an_empty_one),
                cmocka_unit_test(test_what_is_wrong),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
