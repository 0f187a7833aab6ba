/* forgotten: uuids of purged requests, so that a repeated submit is recognised.
 *
 * For each purged request the uuid, the owner, the number and a digest of the submission are kept for
 * FORGOTTEN_MS, at most FORGOTTEN_MAX per owner: the owner's oldest are dropped first. All of this comes from
 * events and is in snapshots; time is the time of events. For the files of core/ only.
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
/* Adds a copy, and drops entries that are too old at at_ms. */
void forgotten_add(struct forgotten *f, const struct forgotten_request *r, int64_t at_ms);
/* Finds the owner's request with this uuid. Returns false if there is none. *ret borrows until the next
 * forgotten_add. */
bool forgotten_find(const struct forgotten *f, const unsigned char uuid[16], struct str owner,
                    struct forgotten_request *ret);
size_t forgotten_count(const struct forgotten *f);

/* Packs one request as the `values` of EVENT_PURGED. */
void forgotten_pack_one(struct buf *out, const struct forgotten_request *r);
/* Reads what forgotten_pack_one wrote, which does not include the number. The owner is borrowed. Returns 0,
 * or -EBADMSG. */
int forgotten_unpack_one(struct str values, struct forgotten_request *ret);
/* Appends all entries, for a snapshot. */
void forgotten_pack(const struct forgotten *f, struct buf *out);
/* Reads a snapshot into an empty `f`; sets u->bad on damaged data. */
void forgotten_unpack(struct forgotten *f, struct unpack *u);
