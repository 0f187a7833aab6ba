/* preset_limits: the time that the presets of the server's settings leave a job, for the readers of
 * descriptions. */
#pragma once
#include "jdl/form/form.h"

/* Implements form_world.time_limit; arg is the struct cli. */
int preset_time_limit(void *arg, const struct str named[FORM_PRESET_KINDS], struct form_time_limit *ret,
                      struct err *err);
