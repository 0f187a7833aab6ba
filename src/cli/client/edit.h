/* edit: translates NAME=VALUE, as a user writes it, into a request to the server to change a job.
 *
 * A keyword of submit files has the meaning that it has there (request_memory=1G); any other name is an
 * attribute, with or without MY. or + before it, whose value is a ClassAd expression. An assignment without
 * a value removes the attribute.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct edit {
        struct buf members; /* members of the body of POST /v1/actions: "attributes":{...},"late":[...] */
        unsigned count;     /* number of attributes in it */
        bool has_priority;
        int64_t priority; /* sent by an action of its own */
};

bool edit_is_assignment(const char *word); /* true for NAME=..., false for an id */
/* EDIT_JOBS: of existing jobs; EDIT_SUBMIT: of a submit, where any keyword may be set */
enum edit_of { EDIT_JOBS, EDIT_SUBMIT };
/* Reads the assignments, and prints the warnings that a submit file would cause. Returns 0, or -EINVAL with
 * err. *ret is the caller's to deinit in both cases. */
int edit_read(const char *const *assignments, size_t count, enum edit_of what, struct edit *ret,
              struct err *err);
void edit_deinit(struct edit *e);
