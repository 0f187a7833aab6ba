/* help_text: texts made from the table of commands and from the files of cli/command/help. All calls append
 * to out. */
#pragma once
#include "cli/command/commands.h"

struct help_text {
        const char *name;     /* of the command */
        const char *text;     /* the paragraphs of the manual page, in Markdown */
        const char *examples; /* lines: a command, and below it, indented, what it does; NULL: none */
};
extern const struct help_text help_texts[]; /* made by embed_help.py; ends with a row without a name */
/* Returns the help of a command; it aborts if there is none. */
const struct help_text *help_text_of(const struct command *c);

void help_all(struct buf *out, const struct cli *cli);                              /* drover --help */
void help_command(struct buf *out, const struct cli *cli, const struct command *c); /* drover queue --help */
void help_page(struct buf *out,
               const struct command *c);  /* the manual page of a command, pandoc's Markdown */
void help_page_commands(struct buf *out); /* the list of commands for drover.1 */
