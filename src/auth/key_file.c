#include "auth/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <string.h>

#include "base/system/fs.h"

int key_file_open(const char *path, const char *remedy, unsigned char ret[KEY_FILE_BYTES], struct err *err)
{
        unsigned char key[KEY_FILE_BYTES];
        BUF_CLEANUP struct buf text = {0};
        int r = fs_read(AT_FDCWD, path, KEY_FILE_BYTES + 1, &text, NULL);

        if (r == -ENOENT) {
                if (RAND_bytes(key, KEY_FILE_BYTES) != 1)
                        return err_set(err, -EIO, "there are no random numbers");
                r = fs_write(AT_FDCWD, path, str_make((const char *)key, KEY_FILE_BYTES), 0600, true, err);
                if (r == 0)
                        memcpy(ret, key, KEY_FILE_BYTES);
                explicit_bzero(key, sizeof(key));
                return r;
        }
        if (r < 0 && r != -EFBIG)
                return err_set(err, r, "%s cannot be read: %s", path, strerror(-r));
        if (r < 0 || text.n != KEY_FILE_BYTES)
                r = err_set(err, -EINVAL, "%s is not a key of %d bytes: %s", path, KEY_FILE_BYTES, remedy);
        else
                memcpy(ret, text.p, KEY_FILE_BYTES);
        if (text.n)
                explicit_bzero(text.p, text.n);
        return r;
}
