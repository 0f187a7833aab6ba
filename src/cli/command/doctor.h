/* doctor: what is wrong with an installation (doctor.c). */
#pragma once
#include "cli/terminal/cli.h"

/* Looks at the folder and this machine without asking a server, and prints to standard error what is wrong,
 * a line each; warnings are left out. */
void doctor_say_wrong(struct cli *cli, const char *dir);
