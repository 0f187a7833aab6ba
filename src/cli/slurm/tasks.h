/* tasks: the numbers of the tasks of a job array: "1-100%5", "0-15:4", "1,3,5-7".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define TASKS_NUMBER_MAX 9999999u /* the highest number of a task */

struct tasks {
        uint32_t *numbers; /* in order, each once */
        size_t count;
        uint32_t step;    /* between each and the next one, where that is always the same; 0: it is not */
        uint32_t at_once; /* how many may be under way at a time; 0: any number */
};
#define TASKS_CLEANUP __attribute__((cleanup(tasks_deinit)))

/* 0, or -EINVAL with err. *ret is the caller's to deinit after success. */
int tasks_read(struct str text, struct tasks *ret, struct err *err);
void tasks_deinit(struct tasks *t);
/* Numbers in order as text: "1-3,7", or "1-9:2" when all of more than two have one step. At most `max` bytes,
 * with "..." behind what fits; 0: any number. */
void tasks_write(const uint32_t *numbers, size_t count, size_t max, struct buf *out);
