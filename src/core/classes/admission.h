/* admission: loads the submission of a request, shows the request to the parts that keep lists of requests,
 * and hides and frees it when it leaves the queue.
 */
#pragma once
#include "core/model/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Loading of a submission in slices: request_load_begin, then request_load_some until there is no more. */
struct request_loading {
        const struct submission *from; /* borrowed */
        char *room;                    /* space for the items of the next part */
        uint32_t part;
        size_t row_at; /* start of the next row in the part's items */
        uint64_t row;
        bool loaded; /* all parts are */
};
/* Begins to load s into r. Returns 0; CORE_DAMAGED with err: the numbers of jobs differ. */
int request_load_begin(struct core *c, struct request *r, const struct submission *s,
                       struct request_loading *ret, struct err *err);
/* Continues until *budget (as in split.h) is used up. *ret_more: whether there is more to load. Returns 0;
 * -EINVAL with err. */
int request_load_some(struct core *c, struct request *r, struct request_loading *l, uint32_t *budget,
                      bool *ret_more, struct err *err);
/* Loads the whole. */
int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err);
/* Loads the whole from the request's record in the world. In a shadow: no-op. */
int request_load_stored(struct core *c, struct request *r, struct err *err);
/* Frees what request_load_stored keeps for the next request. To be called when the last was loaded. */
void request_load_over(struct core *c);
/* Adds the request to the core's lists, and charges its limits. */
void request_show(struct core *c, struct request *r);
void request_hide(struct core *c, struct request *r); /* no-op if the request is not shown */
void request_free(struct core *c, struct request *r);
