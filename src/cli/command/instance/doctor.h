/* doctor: finds errors in an installation (doctor.c). */
#pragma once
#include "cli/terminal/cli.h"

/* Checks the folder and this machine without asking a server, and prints errors to standard error, one a
 * line; warnings are left out. */
void doctor_say_wrong(struct cli *cli, const char *dir);
