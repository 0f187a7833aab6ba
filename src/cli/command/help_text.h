/* help_text: texts made from the table of commands. All calls append to out. */
#pragma once
#include "cli/command/commands.h"

void help_all(struct buf *out, const struct cli *cli);                              /* drover --help */
void help_command(struct buf *out, const struct cli *cli, const struct command *c); /* drover queue --help */
void help_page(struct buf *out,
               const struct command *c);  /* the manual page of a command, pandoc's Markdown */
void help_page_commands(struct buf *out); /* the list of commands for drover.1 */
