/* fuzz_form: the world of readers of descriptions: each file is a list, and each query and pattern finds some
 * files. */
#pragma once
#include <errno.h>

#include "jdl/form/form.h"

static int no_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        buf_addz(ret, "/d/a\nfile://n1/d/b.c\n# no\nroot://x//y\n");
        return path[0] == 'n' ? -ENOENT : 0;
}

static int some_paths(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path),
                      void *to)
{
        (void)arg;
        if (want == 'd' || pattern[0] == 'n')
                return 0;
        each(to, STR("/d/a b"));
        each(to, STR("/d/c/"));
        return 0;
}

static int some_files(void *arg, struct str name, struct str query, bool events, const char *order,
                      void (*fn)(void *to, const struct form_found *f), void *to, struct err *err)
{
        const struct form_replica replicas[] = {{STR("file://n1/d/a%20b"), STR("n1"), STR("local")},
                                                {STR("file:/d/a b"), STR("n2"), {0}}};

        (void)arg;
        (void)err;
        (void)events;
        (void)name;
        for (int i = 0; i < 3 && query.n; i++)
                fn(to,
                   &(struct form_found){
                           .events = 7, .order = str_of(order), .replicas = replicas, .replica_count = 2});
        return 0;
}

static const char *get_environment(void *arg, const char *name)
{
        (void)arg;
        return name[0] == 'H' ? "/home/$(ann)" : NULL;
}

static int run(void *arg, const char *command, struct buf *ret_stdout)
{
        (void)arg;
        buf_addz(ret_stdout, command);
        return 0;
}

static const struct form_world some_world = {.read_file = no_file,
                                             .glob = some_paths,
                                             .catalog = some_files,
                                             .getenv = get_environment,
                                             .run = run,
                                             .cwd = "/home/ann"};
