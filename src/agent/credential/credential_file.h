/* credential_file: writes one credential as a private file in the credential folder of a sandbox. */
#pragma once
#include "base/str.h"

/* Replaces the file in one step; makes the folder if it is missing. Returns 0 or -errno. */
int credential_write(int sandbox, const char *name, struct str text);
