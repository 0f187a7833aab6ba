/* admission: a request comes into the queue: what was submitted is loaded, the request is shown to those who
 * keep lists of requests; and it leaves the queue. */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What was submitted, in slices: begin, then some until there is no more. */
struct request_loading {
        const struct submission *from; /* borrowed */
        char *room;                    /* for the items of the next part */
        uint32_t part;
        size_t row_at; /* where the next row begins in the part's items */
        uint64_t row;
};
/* 0, or CORE_DAMAGED: it has not as many jobs. */
int request_load_begin(struct core *c, struct request *r, const struct submission *s,
                       struct request_loading *ret, struct err *err);
/* Stops when *budget (as in split.h) is used up. Sets *ret_more. 0, -EINVAL with err. */
int request_load_some(struct core *c, struct request *r, struct request_loading *l, uint32_t *budget,
                      bool *ret_more, struct err *err);
int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err); /* all */
void request_show(struct core *c, struct request *r);
void request_hide(struct core *c, struct request *r); /* no-op when it is not shown */
void request_free(struct core *c, struct request *r);
