#include "cli/client/lookalike.h"

#include <errno.h>
#include <stdio.h>

#include "base/system/clock.h"
#include "cli/client/api.h"
#include "cli/terminal/cli.h"

static const struct words_tool *find_tool(const struct lookalike *l, const char *path)
{
        ptrdiff_t slash = str_rfind(str_of(path), '/');

        for (size_t i = 0; l->tools[i]; i++)
                if (strcmp(l->tools[i]->name, path + slash + 1) == 0)
                        return l->tools[i];
        return NULL;
}

static void print_help(const struct lookalike *l, const struct words_tool *tool)
{
        BUF_CLEANUP struct buf out = {0}, closing = {0};

        buf_printf(&closing, "A command of Drover's that looks like %s: see %s.", l->system, l->page);
        words_help(tool, buf_z(&closing), &out);
        cli_print(&out);
}

static void print_warnings(const struct words *w)
{
        BUF_CLEANUP struct buf out = {0};
        struct str rest, line;

        words_warnings(w, &out);
        rest = buf_view(&out);
        while (str_cut(&rest, '\n', &line))
                if (line.n)
                        cli_note(STR_FMT, STR_ARG(line));
}

static int run_tool(struct cli *cli, const struct lookalike *l, const struct words_tool *tool, size_t argc,
                    const char *const *argv)
{
        WORDS_CLEANUP struct words w;
        struct err err = {""};

        words_init(&w, tool);
        if (words_environment(&w, &err) != 0 || words_read(&w, WORDS_CALL, argc, argv, &err) != 0) {
                cli_error(1, "error: %s", err.text);
                fprintf(stderr, "Try \"%s --help\" for more information\n", tool->name);
                return 1;
        }
        if (words_has(&w, "help") || words_has(&w, "usage")) {
                print_help(l, tool);
                return 0;
        }
        if (words_has(&w, "version")) {
                l->version();
                return 0;
        }
        if (l->warns)
                print_warnings(&w);
        return tool->run(cli, &w);
}

static void print_pages(const struct lookalike *l)
{
        BUF_CLEANUP struct buf out = {0};

        for (size_t i = 0; l->tools[i]; i++)
                words_page(l->tools[i], &out);
        cli_print(&out);
}

int lookalike_main(int argc, char **argv, const struct lookalike *l)
{
        struct cli cli = {.now_ms = clock_wall_ms()};
        const struct words_tool *tool = argc > 0 ? find_tool(l, argv[0]) : NULL;
        int skip = 1, code;

        if (!tool && argc > 1) {
                tool = find_tool(l, argv[1]);
                skip = 2;
        }
        if (tool) {
                cli_name = tool->name;
                code = run_tool(&cli, l, tool, (size_t)(argc - skip), (const char *const *)argv + skip);
        } else if (argc == 2 && strcmp(argv[1], "--page") == 0) {
                print_pages(l);
                code = 0;
        } else {
                cli_name = l->program;
                code = cli_error(1, "call it by the name of one of %s commands: see %s", l->system, l->page);
        }
        api_close(&cli);
        if (fflush(stdout) != 0 || ferror(stdout))
                return cli_error(1, "the output could not be written: %s", strerror(errno));
        return code;
}
