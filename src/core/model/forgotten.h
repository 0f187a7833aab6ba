/* forgotten: uuids of requests that the core has forgotten, so that a submit that is sent once more is known.
 *
 * Of each request that is purged the uuid, the owner, the number and a digest of what was submitted are kept
 * for FORGOTTEN_MS, at most FORGOTTEN_MAX for one owner: the oldest of his own go first. All of it comes from
 * events and is in snapshots; the time is that of the events. For the files of core/ only.
 */
#pragma once
#include "base/err.h"
#include "base/pack.h"

#define FORGOTTEN_MS  (7 * 86400000ll)
#define FORGOTTEN_MAX 100000u

struct forgotten;
struct forgotten_request {
        unsigned char uuid[16];
        uint64_t id, digest; /* submission_digest; 0: not known */
        struct str owner;
};

struct forgotten *forgotten_new(void);
void forgotten_free(struct forgotten *f); /* NULL is fine */
/* Takes a copy. What is too old at that time is dropped. A uuid that is there already has this request now.
 */
void forgotten_add(struct forgotten *f, const struct forgotten_request *r, int64_t at_ms);
/* False: not there. *ret borrows until the next forgotten_add. */
bool forgotten_find(const struct forgotten *f, const unsigned char uuid[16], struct forgotten_request *ret);
size_t forgotten_count(const struct forgotten *f);

/* Packed as the `values` of an event. */
void forgotten_pack_one(struct buf *out, const struct forgotten_request *r);
/* Borrows the owner. 0, -EBADMSG. The number is not in it. */
int forgotten_unpack_one(struct str values, struct forgotten_request *ret);
void forgotten_pack(const struct forgotten *f, struct buf *out);
void forgotten_unpack(struct forgotten *f, struct unpack *u); /* of an empty one; u->bad: damaged */
