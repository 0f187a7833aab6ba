/* certificate: the period of validity of a certificate in a file (RFC 5280, RFC 7468). Nothing else of the
 * certificate is read, and no library of cryptography is needed. */
#pragma once
#include <stdint.h>

struct certificate_times {
        int64_t not_before_ms, not_after_ms; /* Unix time */
};
/* Reads the times of the first certificate in the PEM file. Returns 0; -ENOENT: no such file; -EBADMSG: the
 * file has no readable certificate; or another -errno. */
int certificate_read(const char *path, struct certificate_times *ret);
