/* commands: what the server does with what agents say, one handler for each kind of command. */
#pragma once
#include "server/agents/agents.h"

extern command_fn *const command_handlers[COMMAND_KINDS];
