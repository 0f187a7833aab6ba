/* dataset_wait: a job of a dataset whose files are on the disks of certain hosts: which hosts, and which
 * files wait for them. For `why`.
 *
 * The reader of submit files writes the hosts as a condition of the job's row, TARGET.Machine == "h" ||
 * TARGET.AgentName == "h" (jdl/condor/dataset.c). The names of the files are in a list in the spool. */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"
#include "spool/spool.h"

struct dataset_wait {
        struct buf hosts; /* "n1", "n1 or n2" */
        char hash[SPOOL_HASH_TEXT];
        uint64_t first, count; /* lines of the list; first counts from 1 */
        struct buf files;      /* the first of them, one a line; empty: not known */
        unsigned listed;
};
void dataset_wait_deinit(struct dataset_wait *w); /* may be all zero */

/* Appends the hosts of a condition; false: it is none of a dataset's. */
bool dataset_wait_hosts(struct str clause, struct buf *out);
/* Core thread: looks the job up. Returns whether its files are on hosts' own disks. */
bool dataset_wait_find(struct server *s, uint64_t request, uint32_t member, struct dataset_wait *ret);
/* Reader thread: reads the names of the files, as far as they are shown. Those of a very large list are not
 * read. */
void dataset_wait_read(struct server *s, struct dataset_wait *w);
/* Writes a sentence. `connected`: whether such a host has a queue. */
void dataset_wait_say(struct json *j, const struct dataset_wait *w, bool connected);
/* Writes the object that the API describes. */
void dataset_wait_write(struct json *j, const struct dataset_wait *w, bool connected);
