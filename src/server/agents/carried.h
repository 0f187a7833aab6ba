/* carried: the attributes of a job that go along when an agent hands it on to another server.
 *
 * Every attribute goes along but those that the way itself sets (the program, its words, its files and
 * streams, who it is) and those that this server acts by: what a job's end means, retries, dependencies,
 * gangs, accounts and notices are the first server's, or each hop would count them once more.
 */
#pragma once
#include "classad/ad.h"
#include "server/agents/message.h"

/* Adds the attributes of a part, whose ad this is, to the origin of its template; expressions, in which the
 * agent expands macros. False: they are longer than is sent; none was added. */
bool carried_attributes(struct server *s, struct message *m, uint64_t request, uint32_t part,
                        const struct ad *ad, Drover__Origin *ret);
