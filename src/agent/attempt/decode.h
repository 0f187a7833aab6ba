/* decode: attempts and templates from the server's messages, and from the journal, which has the same. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/drover.pb-c.h"

#define ASSIGN_MEMBERS_MAX 100000 /* of one Assign; more than any offer asks for */

/* The key of a template in agent->templates, 12 bytes. */
void template_key(char room[32], uint64_t request, uint32_t part);
/* Of a packed Template; kept in a->templates. NULL: the bytes are none. */
struct template *assign_template(struct agent *a, const void *p, size_t n);
void assign_templates_drop(struct agent *a); /* those in use stay with their attempts */
struct attempt *assign_member(struct queue *q, struct template *t, const Drover__Group *g, uint32_t member);
