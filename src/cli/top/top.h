/* top: shows requests, places and problems on the whole screen, refreshed every two seconds. */
#pragma once
#include "cli/terminal/cli.h"

/* Runs until the user quits. Standard input and output must be a terminal. Returns the exit code. */
int top_run(struct cli *cli);
