#include "cli/command/help_text.h"

#include <ctype.h>

#include "cli/terminal/human.h"

const struct help_text *help_text_of(const struct command *c)
{
        const struct help_text *h = help_texts;

        for (; h->name; h++)
                if (strcmp(h->name, c->name) == 0)
                        return h;
        abort(); /* a test looks for the help of every command */
}

static void add_option_names(struct buf *out, const struct option_row *row)
{
        if (row->letter)
                buf_printf(out, "-%c, ", row->letter);
        buf_printf(out, "--%s", row->name);
        if (row->value)
                buf_printf(out, " %s", row->value);
}

/* Adds examples: a command and its description on each line. */
static void add_examples(struct buf *out, const char *examples)
{
        struct str rest = str_of(examples), line;

        while (str_cut(&rest, '\n', &line))
                buf_printf(out, "  " STR_FMT "\n", STR_ARG(line));
}

/* Returns whether the star begins an emphasis, and is not part of a pattern such as x*.csv. */
static bool begins_emphasis(const char *star)
{
        size_t n = strcspn(star + 1, "*\n");

        return n > 0 && star[n + 1] == '*' && isalnum((unsigned char)star[1]) &&
               isalnum((unsigned char)star[n]);
}

/* Adds Markdown as a terminal shows it: without the stars of emphasis, and without backslashes. */
static void add_plain(struct buf *out, const char *text)
{
        bool code = false, emphasis = false;

        for (; *text; text++) {
                code ^= *text == '`';
                if (*text == '\\' && !code && ispunct((unsigned char)text[1]))
                        buf_char(out, *++text);
                else if (*text == '*' && !code && (emphasis || begins_emphasis(text)))
                        emphasis = !emphasis;
                else
                        buf_char(out, *text);
        }
}

/* Adds paragraphs for a terminal: wrapped at the width and indented; lines that begin with a blank are
 * unchanged. */
static void add_wrapped(struct buf *out, struct str text, unsigned indent, unsigned width)
{
        struct str line, word;
        unsigned at = 0;

        while (str_cut(&text, '\n', &line)) {
                if (line.n == 0 || line.p[0] == ' ') {
                        if (at)
                                buf_char(out, '\n');
                        at = 0;
                        if (line.n)
                                buf_printf(out, "%*s" STR_FMT, (int)indent, "", STR_ARG(line));
                        buf_char(out, '\n');
                        continue;
                }
                while (str_word(&line, &word)) {
                        unsigned n = human_width(word);

                        if (at && at + 1 + n > width) {
                                buf_char(out, '\n');
                                at = 0;
                        }
                        if (at)
                                buf_char(out, ' ');
                        else
                                buf_printf(out, "%*s", (int)indent, "");
                        at += at ? n + 1 : indent + n;
                        buf_str(out, word);
                }
        }
        if (at)
                buf_char(out, '\n');
}

static unsigned text_width(const struct cli *cli)
{
        return cli->width && cli->width < 100 ? (cli->width < 40 ? 40 : cli->width) : 100;
}

static void heading(struct buf *out, const struct cli *cli, const char *text)
{
        buf_char(out, '\n');
        table_coloured(out, cli->colour, TABLE_BOLD, text);
        buf_char(out, '\n');
}

void help_all(struct buf *out, const struct cli *cli)
{
        const char *group = "";

        buf_addz(out, "drover: one queue over many places to run\n\n"
                      "Usage: drover COMMAND [OPTIONS] [ARGUMENTS]\n");
        for (const struct command *c = commands; c->name; c++) {
                if (strcmp(group, c->group) != 0)
                        heading(out, cli, c->group);
                group = c->group;
                buf_printf(out, "  %-11s %s\n", c->name, c->line);
        }
        buf_addz(out, "\nHelp for a command: drover COMMAND --help. To try it:\n"
                      "  drover up                    in one terminal, and in another:\n"
                      "  drover run -- hostname       a command, as if it ran here\n"
                      "  drover submit -- sleep 60    then: drover queue, drover show 2, drover wait 2\n");
}

static void add_options(struct buf *out, const struct cli *cli, const struct option_row *rows)
{
        for (; rows->name; rows++) {
                BUF_CLEANUP struct buf text = {0};
                size_t from = out->n;
                unsigned at;

                buf_addz(out, rows->letter ? "  " : "      ");
                add_option_names(out, rows);
                at = human_width(str_skip(buf_view(out), from));
                if (at > 27) {
                        buf_char(out, '\n');
                        at = 0;
                }
                buf_printf(out, "%*s", (int)(29 - at), "");
                from = out->n;
                add_plain(&text, rows->text);
                add_wrapped(out, buf_view(&text), 29, text_width(cli));
                /* add_wrapped also indents the first line, where the names are already. */
                memmove(out->p + from, out->p + from + 29, out->n - from - 29);
                buf_truncate(out, out->n - 29);
        }
}

void help_command(struct buf *out, const struct cli *cli, const struct command *c)
{
        const struct help_text *h = help_text_of(c);
        BUF_CLEANUP struct buf text = {0};

        buf_printf(out, "drover %s: %s\n\nUsage: drover %s %s\n\n", c->name, c->line, c->name, c->usage);
        add_plain(&text, h->text);
        add_wrapped(out, buf_view(&text), 0, text_width(cli));
        heading(out, cli, "Options");
        if (c->options)
                add_options(out, cli, c->options);
        add_options(out, cli, options_common);
        if (h->examples) {
                heading(out, cli, "Examples");
                add_examples(out, h->examples);
        }
}

/* ---- manual pages */

static void add_upper(struct buf *out, const char *text)
{
        for (; *text; text++)
                buf_char(out, *text >= 'a' && *text <= 'z' ? (char)(*text - 32) : *text);
}

static void page_options(struct buf *out, const struct option_row *rows)
{
        for (; rows->name; rows++) {
                buf_addz(out, "\n`");
                if (rows->letter)
                        buf_printf(out, "-%c`, `", rows->letter);
                buf_printf(out, "--%s`", rows->name);
                if (rows->value)
                        buf_printf(out, " *%s*", rows->value);
                buf_printf(out, "\n:   %s\n", rows->text);
        }
}

void help_page(struct buf *out, const struct command *c)
{
        const struct help_text *h = help_text_of(c);

        buf_addz(out, "% DROVER-");
        add_upper(out, c->name);
        buf_printf(out, "(1) Drover %s\n\n# NAME\n\ndrover-%s - %s\n\n# SYNOPSIS\n\n**drover %s** %s\n",
                   DROVER_VERSION, c->name, c->line, c->name, c->usage);
        buf_printf(out, "\n# DESCRIPTION\n\n%s\n\n# OPTIONS\n", h->text);
        if (c->options)
                page_options(out, c->options);
        page_options(out, options_common);
        if (h->examples) {
                struct str rest = str_of(h->examples), line;

                buf_addz(out, "\n# EXAMPLES\n\n");
                while (str_cut(&rest, '\n', &line))
                        buf_printf(out, "    " STR_FMT "\n", STR_ARG(line));
        }
        buf_addz(out, "\n# EXIT STATUS\n\nSee **drover**(1).\n\n# SEE ALSO\n\n**drover**(1)\n");
}

void help_page_commands(struct buf *out)
{
        const char *group = "";

        for (const struct command *c = commands; c->name; c++) {
                if (strcmp(group, c->group) != 0)
                        buf_printf(out, "%s## %s\n", *group ? "\n" : "", c->group);
                group = c->group;
                buf_printf(out, "\n**drover-%s**(1)\n:   %s.\n", c->name, c->line);
        }
}
