/* signals: signal names as users write them. */
#pragma once
#include "base/str.h"

/* Returns the number of "SIGUSR1", "USR1" or "10", in either case. 0: the text is no signal. */
int signal_number(struct str name);
