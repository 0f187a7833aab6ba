/* DAG files. Whatever they hold, the answer is a form or an error with a text; what is written is JSON text
 * that ends. Two files can be read: a submit file, and a DAG file for splices and includes; what stands
 * behind a byte 0 is a rescue file. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jdl/dag/dag.h"
#include "jdl/form/form_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int no_command(void *arg, const char *command, struct buf *ret)
{
        (void)arg;
        (void)command;
        (void)ret;
        return -ENOENT;
}

static int two_files(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        if (strcmp(path, "s") == 0)
                buf_addz(ret, "executable = e\narguments = $(x) $(Process)\nqueue 2\n");
        else if (strcmp(path, "d") == 0)
                buf_addz(ret, "JOB I s\nJOB K s\nPARENT I CHILD K\nVARS ALL_NODES x=\"1\"\n");
        else
                return -ENOENT;
        return 0;
}

static int some_paths(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                      void *to)
{
        (void)arg;
        (void)pattern;
        each(to, STR("a b"));
        each(to, want == 'd' ? STR("d") : STR("f.x"));
        return 0;
}

static const char *variable(void *arg, const char *name)
{
        (void)arg;
        return name[0] == 'H' ? "/home/$(ann)" : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const environment[] = {"HOME=/home/$(ann)", NULL};
        static const struct form_world world = {.read_file = two_files,
                                                .glob = some_paths,
                                                .getenv = variable,
                                                .run = no_command,
                                                .environment = environment,
                                                .cwd = "/home"};
        static const struct condor_options condor = {.filesystem_domain = "d", .submit_host = "h"};
        struct str rest = str_make((const char *)data, size), text = STR_NONE;
        const char *name = "rescue";
        struct dag_options options = {.condor = &condor, .rescues = &rest, .rescue_names = &name};
        BUF_CLEANUP struct buf out = {0};
        struct dag_summary sum = {0};
        struct form form;
        struct err err = {{0}};
        int r;

        if (size > 4096)
                return 0;
        str_cut(&rest, '\0', &text);
        options.rescue_count = rest.n > 0;
        form_init(&form);
        r = dag_parse(&world, "fuzz", text, &options, &form, &sum, &err);
        if (r && (r > 0 || !err.text[0]))
                abort();
        if (!r) {
                if (form_members(&form) == 0 || sum.done >= sum.nodes)
                        abort();
                form_write_json(&out, &form, &(struct form_body){0});
                if (!str_ends(buf_view(&out), STR("}")))
                        abort();
        }
        form_deinit(&form);
        dag_files_deinit(&sum.files);
        return 0;
}
