/* top: requests, places and problems on the whole screen, looked at again every two seconds. */
#pragma once
#include "cli/terminal/cli.h"

/* Until the user leaves. Standard input and output are a terminal. Returns the exit code. */
int top_run(struct cli *cli);
