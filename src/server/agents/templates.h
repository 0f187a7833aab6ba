/* templates: a part of a request as the Template message that an agent runs its members by.
 *
 * Attributes that are late keep their macros, for the agent to expand; in all others a '$' that would read as
 * a macro is written $(DOLLAR). A late attribute that is not a plain string is evaluated with the macros in
 * it.
 */
#pragma once
#include "server/agents/message.h"

/* NULL when there is no such part. hands_on: with what goes along to another server. *ret_late: a text holds
 * macros, so members need their items. */
Drover__Template *templates_make(struct server *s, struct message *m, uint64_t request, uint32_t part,
                                 bool hands_on, bool *ret_late);
