/* key_file: a secret of random bytes in a file that only its user may read. */
#pragma once
#include "base/err.h"

#define KEY_FILE_BYTES 32

/* Reads the file, or makes it (mode 0600, durable) when there is none. remedy: what to do when it is damaged,
 * for the message. 0; -EINVAL when it has another length; -EIO when there are no random numbers; or -errno.
 * With any of these err is set. */
int key_file_open(const char *path, const char *remedy, unsigned char ret[KEY_FILE_BYTES], struct err *err);
