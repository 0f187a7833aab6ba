/* signals: their names in what users write. */
#pragma once
#include "base/str.h"

/* "SIGUSR1", "USR1" or "10", letters of either case. 0: it is none. */
int signal_number(struct str name);
