/* Submit files. Whatever they hold, the answer is a form or an error with a text; what is written is JSON
 * text that ends. There are no files, no commands, and one variable in the environment. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "jdl/condor/condor.h"
#include "jdl/form/form_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int no_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        (void)path;
        (void)ret;
        return -ENOENT;
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

static int some_files(void *arg, struct str name, struct str query, bool events, const char *order,
                      void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        const struct form_replica replicas[] = {{STR("file://n1/d/a%20b"), STR("n1"), STR("local")},
                                                {STR("file:/d/a b"), STR("n2"), {0}},
                                                {STR("https://far/x,y"), {0}, STR("web")}};

        (void)order;
        (void)name;
        (void)arg;
        if (query.n == 0)
                return err_set(err, -EIO, "there is no server");
        for (size_t i = 0; i < query.n && i < 20; i++)
                fn(to, &(struct form_found){.bytes = (uint64_t)(unsigned char)query.p[i],
                                            .events = events ? i : 0,
                                            .has_size = i % 2,
                                            .replicas = replicas + i % 3,
                                            .replica_count = query.p[i] == 'b' ? 0 : 3 - i % 3});
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
        static const struct form_world world = {.read_file = no_file,
                                                .glob = some_paths,
                                                .catalog = some_files,
                                                .getenv = variable,
                                                .run = no_file,
                                                .environment = environment,
                                                .cwd = "/home"};
        static const struct condor_options options = {.filesystem_domain = "d", .submit_host = "h"};
        BUF_CLEANUP struct buf out = {0};
        struct form form;
        struct err err = {{0}};
        int r;

        if (size > 4096)
                return 0;
        form_init(&form);
        r = condor_parse(&world, "fuzz", str_make((const char *)data, size), &options, &form, &err);
        if (r && (r > 0 || !err.text[0]))
                abort();
        if (!r) {
                if (form_members(&form) == 0)
                        abort();
                form_write_json(&out, &form, &(struct form_body){0});
                if (!str_ends(buf_view(&out), STR("}")))
                        abort();
        }
        form_deinit(&form);
        return 0;
}
