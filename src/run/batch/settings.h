/* settings: those of a batch queue, and the environment of its commands. */
#pragma once
#include "run/batch/batch.h"

struct batch;

int batch_settings_check(const struct batch_system *s, const struct runner_config *c, struct err *err);
/* A small environment for the system's commands: what is submitted shall not depend on who started the agent.
 */
void batch_environment(const struct batch_system *system, const struct batch_settings *settings,
                       struct args *env);
unsigned batch_setting_number(const struct batch *b, const char *name, unsigned otherwise); /* checked */
