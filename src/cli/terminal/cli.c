#include "cli/terminal/cli.h"

#include <stdio.h>

#include "cli/terminal/human.h"

const char *cli_name = "drover";

static _Thread_local struct buf *said; /* where messages go instead of stderr */

void cli_say_into(struct buf *out)
{
        said = out;
}

/* Messages have words of the server, of agents and of files in them; the lines that they are of stay. */
static void add_safe(struct buf *out, struct str text)
{
        struct str line;

        while (str_cut(&text, '\n', &line)) {
                human_safe(out, line);
                if (text.p)
                        buf_char(out, '\n');
        }
}

int cli_error(int code, const char *fmt, ...)
{
        struct buf raw BUF_CLEANUP = {0}, text BUF_CLEANUP = {0};
        va_list ap;

        va_start(ap, fmt);
        buf_vprintf(&raw, fmt, ap);
        va_end(ap);
        add_safe(&text, buf_view(&raw));
        if (said) {
                buf_printf(said, "%s\n", buf_z(&text));
                return code;
        }
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
        if (out->n)
                fwrite(out->p, 1, out->n, stdout);
        buf_reset(out);
}

int cli_table(const struct cli *cli, struct table *t, const struct table_column *columns, unsigned count)
{
        struct err err;

        table_init(t, columns, count);
        return table_set_form(t, &cli->form, &err) == 0 ? 0 : cli_error(CLI_USAGE, "%s", err.text);
}

bool cli_plain(const struct cli *cli)
{
        return !cli->form.columns && !cli->form.sort && !cli->form.csv && !cli->form.bare;
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

        if (table_rows(t) == 0 || !cli_plain(cli))
                return;
        buf_char(&line, '\n');
        cli_print(&line);
        cli_print_table(cli, t);
}
