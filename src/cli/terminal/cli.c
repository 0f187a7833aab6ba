#include "cli/terminal/cli.h"

#include <stdio.h>

const char *cli_name = "drover";

int cli_error(int code, const char *fmt, ...)
{
        struct buf text BUF_CLEANUP = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        fflush(stdout);
        fprintf(stderr, "%s: %s\n", cli_name, buf_z(&text));
        return code;
}

void cli_note(const char *fmt, ...)
{
        struct buf text BUF_CLEANUP = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&text, fmt, ap);
        va_end(ap);
        cli_error(0, "%s", buf_z(&text));
}

void cli_print(struct buf *out)
{
        fwrite(out->p, 1, out->n, stdout);
        buf_reset(out);
}

void cli_print_table(const struct cli *cli, struct table *t)
{
        struct buf out BUF_CLEANUP = {0};

        t->colour = cli->colour;
        t->width = cli->width;
        table_print(t, &out);
        cli_print(&out);
}

void cli_print_table_below(const struct cli *cli, struct table *t)
{
        struct buf line BUF_CLEANUP = {0};

        if (table_rows(t) == 0)
                return;
        buf_char(&line, '\n');
        cli_print(&line);
        cli_print_table(cli, t);
}
