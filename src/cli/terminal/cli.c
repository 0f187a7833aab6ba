#include "cli/terminal/cli.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/system/clock.h"
#include "cli/terminal/human.h"

const char *cli_name = "drover";

static _Thread_local struct buf *said; /* destination of messages instead of stderr */

int cli_time(const struct options *o, const char *option, int64_t *ret_ms)
{
        const char *text = options_text(o, option);
        struct err err = {""};

        if (!text || human_to_time(text, clock_wall_ms(), ret_ms, &err) == 0)
                return 0;
        return cli_error(CLI_USAGE, "--%s: %s", option, err.text);
}

static bool has_word(const char *words, const char *word)
{
        struct str rest = str_of(words), one;

        while (str_word(&rest, &one))
                if (str_eqz(one, word))
                        return true;
        return false;
}

int cli_check_options(const struct options *o, const char *subcommand, const char *names, bool tables)
{
        for (size_t i = 0; i < o->given_count; i++) {
                const char *name = o->given[i].row->name;
                bool of_tables = has_word("columns sort csv no-header", name);

                if (has_word("dir server json", name) || has_word(names, name) || (of_tables && tables))
                        continue;
                return cli_error(CLI_USAGE, "drover %s %s --%s: see drover %.*s --help", subcommand,
                                 of_tables ? "prints no table, and takes no" : "takes no", name,
                                 (int)strcspn(subcommand, " "), subcommand);
        }
        return 0;
}

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

/* Appends a line, broken between words. */
static void add_broken(struct buf *out, struct str line, unsigned width)
{
        unsigned at = 0;
        struct str word;

        while (str_word(&line, &word)) {
                unsigned n = human_width(word);

                if (at)
                        buf_char(out, at + 1 + n > width ? '\n' : ' ');
                at = at && at + 1 + n <= width ? at + 1 + n : n;
                buf_str(out, word);
        }
}

/* Appends text whose lines are broken between words where they are wider than that. 0: they stay. */
static void add_sentences(struct buf *out, struct str text, unsigned width)
{
        struct str line;

        while (text.n && str_cut(&text, '\n', &line)) {
                if (width && human_width(line) > width)
                        add_broken(out, line, width);
                else
                        buf_str(out, line);
                buf_char(out, '\n');
        }
}

/* Returns the width of the terminal that messages go to; 0: none. */
static unsigned message_width(void)
{
        struct winsize w;

        return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 0;
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
        buf_reset(&raw);
        buf_printf(&raw, "%s: %s\n", cli_name, buf_z(&text));
        buf_reset(&text);
        add_sentences(&text, buf_view(&raw), message_width());
        fwrite(text.p, 1, text.n, stderr);
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

void cli_print_sentences(const struct cli *cli, struct buf *out)
{
        struct buf broken BUF_CLEANUP = {0};

        add_sentences(&broken, buf_view(out), cli->width);
        cli_print(&broken);
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
