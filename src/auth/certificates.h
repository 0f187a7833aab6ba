/* certificates: which certificates were issued to agents, and which of them are revoked.
 *
 * The table is in memory, and is kept in the store as blobs "issued/<serial>" and, for a revoked
 * certificate, "revoked/<serial>". TLS refuses an expired certificate, so its entry may then be removed.
 * Serials are hexadecimal, in either case. Changes are also written to a batch that the caller appends.
 * Not thread-safe. */
#pragma once
#include "auth/csr.h"
#include "store/store.h"

struct certificates;
/* Returns 0; -EBADMSG when a record cannot be read (err names it); or the store's error. */
int certificates_load(struct store *s, struct certificates **ret, struct err *err);
void certificates_free(struct certificates *cs); /* accepts NULL */

/* The limits of what an agent may be and do, whatever it claims. They come from the token with which it
 * joined, and are kept through every renewal. Each is a list separated by commas or blanks; an empty text
 * is no limit. */
struct cert_ceiling {
        struct str owners; /* in the form of owners_parse; "any" limits nothing, but was set explicitly */
        struct str tags;   /* the allowed Tags of its ads */
        /* labels of data that it may see, if the settings clear it for them; "none": no label */
        struct str labels;
        /* most that each of its queues may offer, NAME=NUMBER for attributes of the ad: "Cpus=8,Memory=16384"
         */
        struct str most;
};
/* Records an issued certificate. ceiling: NULL is no limit. */
void certificates_add(struct certificates *cs, const struct cert_facts *facts,
                      const struct cert_ceiling *ceiling, struct store_batch *b);
/* Returns whether a certificate that TLS accepts is also known here and not revoked. An unknown one comes
 * from before a restored backup, or was forged with a stolen key. */
bool certificates_believed(const struct certificates *cs, struct str serial);
/* Revokes all certificates of an agent. Returns how many were valid. */
size_t certificates_revoke(struct certificates *cs, struct str name, int64_t now_ms, struct store_batch *b);
/* Limit on the unexpired certificates of one agent, above which none is renewed, because each is kept
 * until it expires. */
#define CERTIFICATES_OF_ONE 64
bool certificates_enough(const struct certificates *cs, struct str name, int64_t now_ms);
/* Removes expired certificates. */
void certificates_prune(struct certificates *cs, int64_t now_ms, struct store_batch *b);

struct certificate {
        const char *name, *serial; /* borrowed until the table changes */
        int64_t from_ms, until_ms;
        int64_t revoked_ms;          /* 0: not revoked */
        struct cert_ceiling ceiling; /* borrowed as well */
};
/* Returns false if the certificate is unknown or was revoked. */
bool certificates_find(const struct certificates *cs, struct str serial, struct certificate *ret);
/* iterates as map_next does */
bool certificates_next(const struct certificates *cs, size_t *at, struct certificate *ret);
