/* completion: what shells complete the words of `drover` with, made from the table of commands. */
#pragma once
#include "cli/command/commands.h"

/* Appends the script for "bash", "zsh" or "fish". False: there is none for that shell. */
bool completion_script(struct buf *out, struct str shell);
