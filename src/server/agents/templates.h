/* templates: a part of a request as the Template message from which an agent runs the part's members.
 *
 * Late attributes keep their macros, which the agent expands. In all other attributes a '$' that would
 * read as a macro is written as $(DOLLAR). A late attribute that is not a plain string is evaluated by the
 * agent after its macros are expanded. */
#pragma once
#include "server/agents/message.h"

/* Returns NULL when there is no such part. hands_on: adds what the agent needs to hand jobs on to another
 * server. *ret_late: a text has macros, so members need their items. */
Drover__Template *templates_make(struct server *s, struct message *m, uint64_t request, uint32_t part,
                                 bool hands_on, bool *ret_late);
