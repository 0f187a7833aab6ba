/* certificate: from when until when one in a file is valid (RFC 5280, RFC 7468). Nothing else of it is looked
 * at, and no library of cryptography is needed. */
#pragma once
#include <stdint.h>

struct certificate_times {
        int64_t not_before_ms, not_after_ms; /* Unix */
};
/* Of the first certificate in the file, which is PEM. 0; -ENOENT: there is no such file; -EBADMSG: there is
 * no certificate in it that can be read; or another -errno. */
int certificate_read(const char *path, struct certificate_times *ret);
