#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/system/program.h"
#include "cli/client/source.h"
#include "cli/command/commands.h"

#define MOST 100 /* open requests if --most is not given */

static bool is_name(const char *z)
{
        for (const char *at = z; *at; at++)
                if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
                        return false;
        return *z && strlen(z) <= SOURCE_NAME_MAX;
}

/* Returns the last component of a program's path. */
static const char *base_name(const char *path)
{
        const char *slash = strrchr(path, '/');

        return slash ? slash + 1 : path;
}

int cmd_source(struct cli *cli, const struct options *o)
{
        const char *name = options_text(o, "name");
        int64_t most = options_number(o, "most", MOST);
        struct buf path BUF_CLEANUP = {0};
        char **argv;
        int code;

        if (!name)
                name = base_name(o->words[0]);
        if (!is_name(name))
                return cli_error(CLI_USAGE, "--name %s: a name has up to %d letters, digits and -_.", name,
                                 SOURCE_NAME_MAX);
        if (most < 1 || most > SOURCE_OPEN_MAX)
                return cli_error(CLI_USAGE, "--most is from 1 to %d", SOURCE_OPEN_MAX);
        if (strchr(o->words[0], '/') || program_shipped("sources", o->words[0], &path, NULL) != 0) {
                buf_reset(&path);
                buf_addz(&path, o->words[0]);
        }
        cli->owner = options_text(o, "owner");
        argv = mem_zalloc((o->word_count + 1) * sizeof(*argv));
        for (size_t i = 1; i < o->word_count; i++)
                argv[i] = (char *)o->words[i];
        argv[0] = (char *)buf_z(&path);
        code = source_run(cli, &(struct source_options){.name = name,
                                                        .most = (size_t)most,
                                                        .files = options_flag(o, "files"),
                                                        .argv = argv});
        free(argv);
        return code;
}
