/* world: what the core's outputs become here: records in the turn's batch, and messages to agents. */
#pragma once
#include "server/daemon/server.h"

void world_init(struct core_world *w, struct server *s);
/* The blob under which a request's record is kept. Returns a view of room. */
#define WORLD_NAME_MAX 40
struct str world_record_name(char room[WORLD_NAME_MAX], uint64_t request);
