/* drover-slurm: Slurm's commands over Drover's API. One program under the names of them all (links in
 * libexec/drover/slurm); under its own name the first word says which. */
#include <errno.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/slurm/slurm.h"

static const struct slurm_tool *const tools[] = {&slurm_sbatch, &slurm_squeue,   &slurm_scancel, &slurm_sacct,
                                                 &slurm_sinfo,  &slurm_scontrol, &slurm_srun,    NULL};

static const struct slurm_tool *find_tool(const char *path)
{
        ptrdiff_t slash = str_rfind(str_of(path), '/');

        for (size_t i = 0; tools[i]; i++)
                if (strcmp(tools[i]->name, path + slash + 1) == 0)
                        return tools[i];
        return NULL;
}

static int run_tool(struct cli *cli, const struct slurm_tool *tool, size_t argc, const char *const *argv)
{
        BUF_CLEANUP struct buf out = {0};
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        words_init(&w, tool);
        if (words_environment(&w, &err) != 0 || words_read(&w, WORDS_CALL, argc, argv, &err) != 0) {
                slurm_error(1, "%s", err.text);
                fprintf(stderr, "Try \"%s --help\" for more information\n", tool->name);
                return 1;
        }
        if (words_has(&w, "help") || words_has(&w, "usage")) {
                words_help(tool, &out);
                cli_print(&out);
                return 0;
        }
        if (words_has(&w, "version")) {
                slurm_version_print();
                return 0;
        }
        return tool->run(cli, &w);
}

static void print_pages(void)
{
        BUF_CLEANUP struct buf out = {0};

        for (size_t i = 0; tools[i]; i++)
                words_page(tools[i], &out);
        cli_print(&out);
}

int main(int argc, char **argv)
{
        struct cli cli = {.now_ms = clock_wall_ms()};
        const struct slurm_tool *tool = argc > 0 ? find_tool(argv[0]) : NULL;
        int skip = 1, code;

        if (!tool && argc > 1) {
                tool = find_tool(argv[1]);
                skip = 2;
        }
        if (tool) {
                cli_name = tool->name;
                code = run_tool(&cli, tool, (size_t)(argc - skip), (const char *const *)argv + skip);
        } else if (argc == 2 && strcmp(argv[1], "--page") == 0) {
                print_pages();
                code = 0;
        } else {
                cli_name = "drover-slurm";
                code = cli_error(1, "call it by the name of one of Slurm's commands: see drover-slurm(7)");
        }
        api_close(&cli);
        if (fflush(stdout) != 0 || ferror(stdout))
                return cli_error(1, "the output could not be written: %s", strerror(errno));
        return code;
}
