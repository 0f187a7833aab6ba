/* certificates: which certificates were issued to agents, and which of them are believed no more.
 *
 * One table in memory, kept in the store as blobs "issued/<serial>" and, when one is revoked,
 * "revoked/<serial>". A certificate that is past its end is refused by TLS, so its entry may then be
 * forgotten. Serials are hexadecimal, in either case. As with tokens, what changes the table goes into a
 * batch that the caller appends; not thread-safe.
 */
#pragma once
#include "auth/csr.h"
#include "store/store.h"

struct certificates;
/* 0; -EBADMSG when a record cannot be read (err names it); or what the store returned. */
int certificates_load(struct store *s, struct certificates **ret, struct err *err);
void certificates_free(struct certificates *cs); /* NULL is fine */

/* What an agent may be and do at most, whatever it says: the token that it joined with had this, and so has
 * every certificate that follows from it. Words parted by commas or blanks; an empty text is no bound. */
struct cert_ceiling {
        struct str owners; /* as owners_parse has them; "any" bounds nothing, but somebody said so */
        struct str tags;   /* of its ads' Tags */
        struct str labels; /* of data that it may see, if the settings clear it for them; "none": no label */
};
/* Records one that was issued. ceiling: NULL is no bound. */
void certificates_add(struct certificates *cs, const struct cert_facts *facts,
                      const struct cert_ceiling *ceiling, struct store_batch *b);
/* What TLS's checks do not tell: one that we do not know of (from before a restored backup, or forged with a
 * stolen key) is not believed either. */
bool certificates_believed(const struct certificates *cs, struct str serial);
/* Revokes all of an agent. How many there were that were believed. */
size_t certificates_revoke(struct certificates *cs, struct str name, int64_t now_ms, struct store_batch *b);
/* Has the agent so many that have not ended that none of them is renewed? Each is kept until its end. */
#define CERTIFICATES_OF_ONE 64
bool certificates_enough(const struct certificates *cs, struct str name, int64_t now_ms);
/* Forgets those whose end is past. */
void certificates_prune(struct certificates *cs, int64_t now_ms, struct store_batch *b);

struct certificate {
        const char *name, *serial; /* borrowed until the table changes */
        int64_t from_ms, until_ms;
        int64_t revoked_ms;          /* 0: not */
        struct cert_ceiling ceiling; /* borrowed, too */
};
/* False: it is not known, or was revoked. */
bool certificates_find(const struct certificates *cs, struct str serial, struct certificate *ret);
bool certificates_next(const struct certificates *cs, size_t *at, struct certificate *ret); /* as map_next */
