/* mirror: the section "mirror" of the settings: the other server that keeps a copy of this one's queue. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct doc;
struct config_mirror {
        char *listen, *peer; /* host:port, where the two speak with each other; NULL: no mirror */
        int64_t lease_ms;
        bool manual; /* the other server takes over only when it is promoted */
        bool all;    /* every submit needs the mirror, as if it had mirror = yes */
};
/* `place` is a struct config_mirror. Returns 0, or -EINVAL with err that names file and line. */
int config_mirror_read(void *place, const struct doc *d, struct err *err);
void config_mirror_deinit(struct config_mirror *c);
