/* link_file: measured speeds of the links to stores, kept in the agent's folder, so that a restarted agent
 * knows them before it has transferred anything.
 *
 * A store is identified by its name and its first prefix: a store of the same name at another place is
 * another link. Ages are kept by the wall clock because the machine may have been rebooted; estimates older
 * than LINK_FILE_DAYS are forgotten. A missing or damaged file counts as empty.
 */
#pragma once
#include "base/str.h"
#include "place/probe_estimate.h"

#define LINK_FILE      "links"
#define LINK_FILE_DAYS 30

struct link_kept {
        char *name, *prefix; /* owned; both empty: the server's spool */
        struct probe_estimate estimate;
};
struct link_file {
        struct link_kept *v;
        size_t count;
};

/* Reads the file. boot_ms: now, on the clock of the estimates' times; wall_ms: now, Unix milliseconds. */
void link_file_read(struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms);
/* Writes the file. Returns 0 or -errno. */
int link_file_write(const struct link_file *l, int dirfd, int64_t boot_ms, int64_t wall_ms);
/* Returns the estimate for the store, borrowed; NULL: none is known. */
const struct probe_estimate *link_file_find(const struct link_file *l, const char *name, struct str prefix);
void link_file_add(struct link_file *l, const char *name, struct str prefix, const struct probe_estimate *e);
void link_file_deinit(struct link_file *l);
