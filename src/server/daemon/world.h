/* world: carries out the core's outputs in the server: records in the turn's batch, and messages to
 * agents. */
#pragma once
#include "server/loop/server.h"

void world_init(struct core_world *w, struct server *s);
