/* sha256: a checksum for programs that seldom need one: libcrypto is opened when it is first asked for, since
 * loading it takes as long as the rest of a short command. Who hashes much links libcrypto. */
#pragma once
#include "base/err.h"
#include "base/str.h"

#define SHA256_HEX 65 /* with the zero behind it */

/* The SHA-256 (FIPS 180-4) of the text, in lower-case hexadecimal digits. 0; -ENOSYS with err: libcrypto is
 * not on this machine. For one thread. */
int sha256_hex(struct str text, char ret[SHA256_HEX], struct err *err);
/* The same of all that can be read from a descriptor. Or -errno of a read, with err. */
int sha256_fd(int fd, char ret[SHA256_HEX], struct err *err);
