/* tasks: the numbers of the tasks of a job array: "1-100%5", "0-15:4", "1,3,5-7".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define TASKS_NUMBER_MAX 9999999u /* highest number that a task may have */

struct tasks {
        uint32_t *numbers; /* in order, each once */
        size_t count;
        uint32_t step;    /* constant difference of neighbouring numbers; 0: it differs */
        uint32_t at_once; /* maximum number of active tasks; 0: any number */
};
#define TASKS_CLEANUP __attribute__((cleanup(tasks_deinit)))

/* Reads the text. Returns 0, or -EINVAL with err. *ret is the caller's to deinit after success. */
int tasks_read(struct str text, struct tasks *ret, struct err *err);
void tasks_deinit(struct tasks *t);
/* Appends sorted numbers as text: "1-3,7", or "1-9:2" if there are more than two, at one distance. At most
 * `max` bytes, then "..." after what fits; 0: any number. */
void tasks_write(const uint32_t *numbers, size_t count, size_t max, struct buf *out);
