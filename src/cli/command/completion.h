/* completion: shell completion for `drover`, made from the table of commands. */
#pragma once
#include "cli/command/commands.h"

/* Appends the script for "bash", "zsh" or "fish". Returns false for any other shell. */
bool completion_script(struct buf *out, struct str shell);
