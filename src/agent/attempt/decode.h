/* decode: makes attempts and templates of what the server and the journal say, which is the same. */
#pragma once
#include "agent/message/job_group.h"
#include "agent/model/attempt.h"

#define ASSIGN_MEMBERS_MAX 100000 /* limit of members in one Assign; more than any offer asks for */

/* Writes the key of a template in agent->templates, 12 bytes. */
void held_template_key(char room[32], uint64_t request, uint32_t part);
/* Unpacks a Template and keeps it in a->templates. Returns NULL if the bytes are malformed. */
struct held_template *assign_template(struct agent *a, const void *p, size_t n);
void assign_templates_drop(struct agent *a); /* templates in use stay with their attempts */
/* Makes the attempt of a member of the group. */
struct attempt *assign_member(struct queue *q, struct held_template *t, const struct job_group *g,
                              uint32_t member);
