/* sums: checksums of a stream of bytes, in file order.
 *
 * Adler-32 (RFC 1950), which most grid stores know, is always computed; SHA-256 and MD5 on request.
 * Checksums are lower-case hexadecimal text. For one thread at a time.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define SUMS_TEXT 65 /* room for any checksum with its null byte */

enum sum_type { SUM_NONE, SUM_SHA256, SUM_ADLER32, SUM_MD5 };

struct sum {                /* a required checksum */
        enum sum_type type; /* SUM_NONE: any */
        char hex[SUMS_TEXT];
};

struct sums;
struct sums *sums_new(bool sha256, bool md5);
void sums_free(struct sums *s);
void sums_restart(struct sums *s); /* forgets all bytes */
void sums_add(struct sums *s, const void *p, size_t n);
/* Writes the checksum of all bytes added so far; more may be added afterwards. Returns false if this type is
 * not computed. */
bool sums_read(const struct sums *s, enum sum_type type, char ret[SUMS_TEXT]);

const char *sum_name(enum sum_type type); /* "sha256", "adler32", "md5", "" */
/* Parses sha256:HEX, adler32:HEX or md5:HEX, also with '=' and with names of RFC 3230 (SHA-256). Returns
 * false, with *ret unchanged, if malformed. */
bool sum_parse(struct str text, struct sum *ret);
