/* sha256: the checksum of bytes that are in memory (FIPS 180-4), for the folders that use no library.
 *
 * Files are summed with OpenSSL, which is faster; this is for names and other short texts.
 */
#pragma once
#include "base/str.h"

#define SHA256_BYTES 32

void sha256(struct str bytes, unsigned char ret[SHA256_BYTES]);
