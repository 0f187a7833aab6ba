/* credential_file: one credential as a private file in its folder of a sandbox. */
#pragma once
#include "base/str.h"

/* In one step, and the folder is made if it is not there. 0 or -errno. */
int credential_write(int sandbox, const char *name, struct str text);
