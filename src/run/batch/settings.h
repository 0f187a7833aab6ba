/* settings: the settings of a batch queue, and the environment of its commands. */
#pragma once
#include "run/batch/batch.h"

struct batch;

int batch_settings_check(const struct batch_system *s, const struct runner_config *c, struct err *err);
/* Makes a minimal environment for the system's commands, so that submissions do not depend on who started
 * the agent. */
void batch_environment(const struct batch_system *system, const struct batch_settings *settings,
                       struct args *env);
/* A setting that was checked, or `otherwise`. */
unsigned batch_setting_number(const struct batch *b, const char *name, unsigned otherwise);
