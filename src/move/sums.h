/* sums: checksums of bytes that pass by, in the order in which they stand in a file.
 *
 * Adler-32 (RFC 1950), which most stores of the grid know, is always taken; SHA-256 and MD5 when they are
 * asked for. Checksums are lower-case hexadecimal text. For one thread at a time.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

#define SUMS_TEXT 65 /* room for any checksum with its null byte */

enum sum_type { SUM_NONE, SUM_SHA256, SUM_ADLER32, SUM_MD5 };

struct sum {                /* a checksum that something shall have */
        enum sum_type type; /* SUM_NONE: any */
        char hex[SUMS_TEXT];
};

struct sums;
struct sums *sums_new(bool sha256, bool md5);
void sums_free(struct sums *s);
void sums_restart(struct sums *s); /* no byte has passed */
void sums_add(struct sums *s, const void *p, size_t n);
/* The checksum of all that has passed; more may be added after it. False: this one is not taken. */
bool sums_read(const struct sums *s, enum sum_type type, char ret[SUMS_TEXT]);

const char *sum_name(enum sum_type type); /* "sha256", "adler32", "md5", "" */
/* sha256:HEX, adler32:HEX or md5:HEX; also with '=', and with names as RFC 3230 has them (SHA-256). False,
 * with *ret unchanged: it is none. */
bool sum_parse(struct str text, struct sum *ret);
