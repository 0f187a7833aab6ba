/* devices: things of a machine that one job has alone: GPUs, and whatever else is counted.
 *
 * A device is known by its resource's name (GPUs, Licence) and its own (0, GPU-5c1e, left). It belongs to the
 * machine: two queues may both name it, and it goes to one job at a time. Pure bookkeeping; what a job holds
 * is the attempt's to remember.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define DEVICES_MAX 4096

struct devices; /* of a machine */
struct devices *devices_new(void);
void devices_free(struct devices *d);

/* The part of them that a queue may give out. */
struct device_set {
        size_t *v; /* numbers of devices */
        size_t n, cap;
};
void device_set_deinit(struct device_set *s);
/* Adds what one line of a configuration says: "NAME number" (ids 0, 1, …), or "NAME: id id". 0, or -EINVAL
 * with err: no name for an attribute, no id, one twice, too many. */
int devices_add(struct devices *d, struct device_set *s, struct str line, struct err *err);

size_t devices_total(const struct devices *d, const struct device_set *s, const char *name);
size_t devices_available(const struct devices *d, const struct device_set *s, const char *name);
/* "GPUs = 1; TotalGPUs = 2; " for each resource of the set, less what `wanted` (a call for each name) says is
 * spoken for. */
void devices_advertise(const struct devices *d, const struct device_set *s,
                       size_t (*wanted)(const void *arg, const char *name), const void *arg, struct buf *out);
/* Takes so many, the lowest first, and appends "NAME=id,id;" to out. False, and nothing is taken: there are
 * not so many. */
bool devices_take(struct devices *d, const struct device_set *s, const char *name, size_t count,
                  struct buf *out);
/* Marks those of a text that devices_take made as taken, or free; what it names and is not there any more is
 * passed over. */
void devices_mark(struct devices *d, struct str text, bool taken);
/* Calls fn with the name and ids ("0,1") of each resource of such a text. */
void devices_each(struct str text, void (*fn)(void *arg, struct str name, struct str ids), void *arg);
