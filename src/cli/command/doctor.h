/* doctor: what is wrong with an installation (cmd_doctor.c). */
#pragma once
#include "cli/cli.h"

/* Looks at the folder and this machine without asking a server, and prints to standard error what is wrong,
 * a line each; warnings are left out. */
void doctor_say_wrong(struct cli *cli, const char *dir);
