/* delegated_attributes: the attributes of a job that an agent sends along when it hands the job on to another
 * server.
 *
 * All attributes are sent, except two kinds. The agent itself sets some (the program, its arguments, files
 * and streams, the job's identity). This server acts by others: on the job's end, retries, dependencies,
 * gangs, accounts and notices; every server on the way would apply these once more. */
#pragma once
#include "classad/ad.h"
#include "server/agents/message.h"

/* Adds the attributes of a part, and the trace that is there, to the origin of its template, as expressions
 * in which the agent expands macros; `ad` is the part's ad. Returns false, and adds none, if they are too
 * long. */
bool delegated_attributes_add(struct server *s, struct message *m, uint64_t request, uint32_t part,
                              const struct ad *ad, Drover__Origin *ret);
