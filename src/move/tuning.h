/* tuning: how transfers over a link are done, as an administrator says for the URLs at its other end. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define TUNING_STREAMS_MAX 64u

struct tuning {           /* 0: not said */
        char *prefix;     /* of the URLs */
        unsigned streams; /* placements: files moved at the same time, at most TUNING_STREAMS_MAX */
        uint64_t buffer;  /* bytes of a connection's buffers in the kernel, which otherwise chooses them */
        uint64_t block;   /* bytes that are read or written at a time */
};

/* Reads "PREFIX streams=8 buffer=4M block=1M", of which each word may be missing. Returns false, with *ret
 * unchanged, if it is malformed. ret->prefix is the caller's to free. */
bool tuning_parse(struct str text, struct tuning *ret);
/* Returns the one with the longest prefix of the URL; NULL: none. Case does not matter. */
const struct tuning *tuning_of(const struct tuning *list, size_t count, struct str url);
