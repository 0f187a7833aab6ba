/* devices: resources of a machine that one job at a time can use: GPUs, and any other countable devices.
 *
 * A device is identified by its resource's name (GPUs, Licence) and its own id (0, GPU-5c1e, left). It
 * belongs to the machine: if two queues name it, it is still given to one job at a time. This module only
 * keeps the books; the attempt remembers which devices it holds.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

#define DEVICES_MAX 4096

struct devices; /* devices of a machine */
struct devices *devices_new(void);
void devices_free(struct devices *d);

/* Devices that a queue may give to its jobs. */
struct device_set {
        size_t *v; /* indexes of devices */
        size_t n, cap;
};
void device_set_deinit(struct device_set *s);
/* Adds the devices of one line of a configuration: "NAME number" (ids 0, 1, …), or "NAME: id id". Returns 0,
 * or -EINVAL with err: invalid attribute name, invalid id, duplicate, too many. */
int devices_add(struct devices *d, struct device_set *s, struct str line, struct err *err);

size_t devices_total(const struct devices *d, const struct device_set *s, const char *name);
size_t devices_available(const struct devices *d, const struct device_set *s, const char *name);
/* Appends "GPUs = 1; TotalGPUs = 2; " for each resource of the set. wanted: returns the number of devices of
 * a name that waiting jobs will take, which is subtracted. */
void devices_advertise(const struct devices *d, const struct device_set *s,
                       size_t (*wanted)(const void *arg, const char *name), const void *arg, struct buf *out);
/* Takes `count` devices, the lowest first, and appends "NAME=id,id;" to out. Returns false, and takes
 * nothing, if there are fewer. */
bool devices_take(struct devices *d, const struct device_set *s, const char *name, size_t count,
                  struct buf *out);
/* Marks the devices of a text made by devices_take as taken or free; unknown devices are skipped. */
void devices_mark(struct devices *d, struct str text, bool taken);
/* Calls fn with the name and ids ("0,1") of each resource of such a text. */
void devices_each(struct str text, void (*fn)(void *arg, struct str name, struct str ids), void *arg);
