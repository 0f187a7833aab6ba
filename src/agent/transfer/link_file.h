/* link_file: what was measured of links to stores, kept in the agent's folder, so that an agent that is
 * started again knows how far its stores are before it has moved anything.
 *
 * A store is known by its name and its first prefix: one that is elsewhere now, under the old name, is
 * another link. Ages are kept by the wall clock, for the machine may have been started again meanwhile; what
 * is older than LINK_FILE_DAYS is forgotten. A file that is missing or damaged says nothing.
 */
#pragma once
#include "base/str.h"
#include "place/probe_estimate.h"

#define LINK_FILE      "links"
#define LINK_FILE_DAYS 30

struct link_kept {
        char *name, *prefix; /* owned; the server's spool: both empty */
        struct probe_estimate estimate;
};
struct link_file {
        struct link_kept *v;
        size_t count;
};

/* Times in estimates are of a clock that says boot_ms now, by the wall clock wall_ms; Unix milliseconds. */
void link_file_read(struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms);
/* 0 or -errno. */
int link_file_write(const struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms);
/* Of the store; NULL: nothing is known. Borrowed. */
const struct probe_estimate *link_file_find(const struct link_file *l, const char *name, struct str prefix);
void link_file_add(struct link_file *l, const char *name, struct str prefix, const struct probe_estimate *e);
void link_file_deinit(struct link_file *l);
