/* run_id: the name of a task, which is one step of an attempt at a job. It is unique for the life of a
 * server. */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct run_id { /* a step of an attempt; all zero: no task */
        uint64_t request;
        uint32_t member, fence, step, zero;
};
/* Appends the id as "request.member.fence.step". */
void run_id_print(struct buf *out, struct run_id id);
bool run_id_parse(struct str text, struct run_id *ret);   /* false: text is not an id */
static inline struct str run_key(const struct run_id *id) /* key for maps; borrows id */
{
        return str_make((const char *)id, sizeof(*id));
}
static inline bool run_id_eq(struct run_id a, struct run_id b)
{
        return a.request == b.request && a.member == b.member && a.fence == b.fence && a.step == b.step;
}
