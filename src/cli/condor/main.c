/* drover-condor: HTCondor's commands and SUMS's over Drover's API. One program under the names of them all
 * (links in libexec/drover/condor and libexec/drover/sums); under its own name the first word says which. A
 * failure is exit code 1, whatever it is, as HTCondor's are. */
#include <errno.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/condor/condor.h"

static const struct condor_tool *find_tool(const char *path)
{
        ptrdiff_t slash = str_rfind(str_of(path), '/');

        for (size_t i = 0; condor_tools[i]; i++)
                if (strcmp(condor_tools[i]->name, path + slash + 1) == 0)
                        return condor_tools[i];
        return NULL;
}

static int run_tool(struct cli *cli, const struct condor_tool *tool, int argc, const char *const *argv)
{
        struct buf out BUF_CLEANUP = {0};
        struct flags f FLAGS_CLEANUP;
        struct err err = {""};
        struct str rest, line;
        int code;

        if (flags_read(&f, tool, argc, argv, &err) != 0)
                return cli_error(1, "%s", err.text);
        if (flags_has(&f, "help")) {
                flags_help(tool, &out);
                cli_print(&out);
                return 0;
        }
        if (flags_has(&f, "version")) {
                condor_version_print();
                return 0;
        }
        flags_warnings(&f, &out);
        rest = buf_view(&out);
        while (str_cut(&rest, '\n', &line))
                if (line.n)
                        cli_note(STR_FMT, STR_ARG(line));
        code = tool->run(cli, &f);
        return code == 0 || tool->passes_code ? code : 1;
}

static void print_pages(void)
{
        struct buf out BUF_CLEANUP = {0};

        for (size_t i = 0; condor_tools[i]; i++)
                if (str_starts(str_of(condor_tools[i]->name),
                               STR("condor_"))) /* SUMS's have a page of their own */
                        flags_page(condor_tools[i], &out);
        cli_print(&out);
}

int main(int argc, char **argv)
{
        struct cli cli = {.now_ms = clock_wall_ms()};
        const struct condor_tool *tool = argc > 0 ? find_tool(argv[0]) : NULL;
        int skip = 1, code;

        if (!tool && argc > 1) {
                tool = find_tool(argv[1]);
                skip = 2;
        }
        if (tool) {
                cli_name = tool->name;
                code = run_tool(&cli, tool, argc - skip, (const char *const *)argv + skip);
        } else if (argc == 2 && strcmp(argv[1], "--page") == 0) {
                print_pages();
                code = 0;
        } else {
                cli_name = "drover-condor";
                code = cli_error(1,
                                 "call it by the name of one of HTCondor's commands: see drover-condor(1)");
        }
        api_close(&cli);
        if (fflush(stdout) != 0 || ferror(stdout))
                return cli_error(1, "the output could not be written: %s", strerror(errno));
        return code;
}
