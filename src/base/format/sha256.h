/* sha256: SHA-256 for programs that seldom need it: libcrypto is opened at the first call, since
 * loading it takes as long as the rest of a short command. Programs that hash much link libcrypto. */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define SHA256_HEX 65 /* with the zero behind it */

/* Computes the SHA-256 (FIPS 180-4) of the text, in lower-case hexadecimal digits. 0; -ENOSYS with err: this
 * machine has no libcrypto. Not thread-safe. */
int sha256_hex(struct str text, char ret[SHA256_HEX], struct err *err);
/* Computes the SHA-256 of all bytes that can be read from a descriptor. Returns as sha256_hex, or -errno of a
 * read, with err. */
int sha256_fd(int fd, char ret[SHA256_HEX], struct err *err);
