/* edit: NAME=VALUE as a user writes it, as what the server is asked to change of a job.
 *
 * A keyword of submit files has the meaning that it has there (request_memory=1G); any other name is an
 * attribute whose value is a ClassAd expression, also with MY. or + before it. Without a value the attribute
 * is taken away.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct edit {
        struct buf members; /* of the body of POST /v1/actions: "attributes":{...},"late":[...] */
        unsigned count;     /* attributes in it */
        bool has_priority;
        int64_t priority; /* an action of its own */
};

bool edit_is_assignment(const char *word); /* NAME=..., and no id */
enum edit_of { EDIT_JOBS, EDIT_SUBMIT };   /* of jobs that are there; of a submit, with any keyword */
/* 0, or -EINVAL with err. Whatever it returns, *ret is the caller's to deinit. */
int edit_read(const char *const *assignments, size_t count, enum edit_of what, struct edit *ret,
              struct err *err);
void edit_deinit(struct edit *e);
