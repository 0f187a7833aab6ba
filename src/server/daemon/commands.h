/* commands: the handlers of the agents' commands, one for each kind. */
#pragma once
#include "server/agents/agents.h"

extern command_fn *const command_handlers[COMMAND_KINDS];
