/* Prints what a job of a Galaxy tool would be: its warnings, its attributes but for those of the place, its
 * script. The parameters of NAME.xml are in NAME.json, the data tables of all in tables.conf. The world is
 * the folder it runs in. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/system/fs.h"
#include "jdl/galaxy/galaxy.h"
#include "jdl/script/script.h"

static int read_file(void *arg, const char *path, struct buf *ret)
{
        (void)arg;
        return fs_read(AT_FDCWD, path, 1 << 20, ret, NULL);
}

static int find(void *arg, const char *pattern, char want, void (*each)(void *to, struct str path), void *to)
{
        (void)arg;
        (void)pattern;
        (void)want;
        (void)each;
        (void)to;
        return 0;
}

static const char *get(void *arg, const char *name)
{
        (void)arg;
        (void)name;
        return NULL;
}

/* The script within the quotes of the attribute and of the arguments. */
static void print_script(const char *text)
{
        for (; *text; text++) {
                if (*text == '\\' && text[1]) {
                        text++;
                        putchar(*text == 'n' ? '\n' : *text);
                } else if (*text == '\'' && text[1] == '\'') {
                        putchar(*text++);
                } else {
                        putchar(*text);
                }
        }
}

int main(int argc, char **argv)
{
        static const char *const shown[] = {"TransferInput", "ContainerImage", "CondaEnv", "JobBatchName"};
        const struct form_world world = {
                .read_file = read_file, .glob = find, .getenv = get, .cwd = "/home/ann/tools"};
        const struct condor_options o = {.arch = "X86_64", .opsys = "LINUX"};
        BUF_CLEANUP struct buf params = {0};
        struct galaxy_rendered made = {{0}};
        struct form form;
        struct err err = {""};
        int rc;

        if (argc != 2)
                return 2;
        buf_add(&params, argv[1], strlen(argv[1]) - 4);
        buf_addz(&params, ".json");
        form_init(&form);
        rc = galaxy_render(
                &world,
                &(struct galaxy_job){.tool = argv[1], .params = buf_z(&params), .tables = "tables.conf"},
                &made, &err);
        for (size_t i = 0; i < made.warnings.warning_count; i++)
                fprintf(stderr, "%s:%u: warning: %s\n", argv[1], made.warnings.warnings[i].line,
                        made.warnings.warnings[i].text);
        if (rc == 0)
                rc = script_job(&world, argv[1], buf_view(&made.description), buf_view(&made.script), NULL,
                                &o, &form, &err);
        if (rc != 0)
                fprintf(stderr, "%s\n", err.text);
        for (size_t i = 0; rc == 0 && i < sizeof(shown) / sizeof(*shown); i++) {
                const struct form_attribute *a = form_get(form.parts, str_of(shown[i]));

                if (a)
                        printf("%s = %s\n", a->name, a->text);
        }
        if (rc == 0)
                print_script(form_get(form.parts, STR("Arguments"))->text);
        if (rc == 0)
                putchar('\n');
        form_deinit(&form);
        galaxy_rendered_deinit(&made);
        return rc == 0 ? 0 : 1;
}
