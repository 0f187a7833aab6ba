#include "base/sha256.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "base/hex.h"

static __typeof__(EVP_Digest) *digest;
static __typeof__(EVP_sha256) *sha256;

static int libcrypto_open(struct err *err)
{
        void *library;

        if (digest && sha256)
                return 0;
        library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return err_set(err, -ENOSYS, "checksums need libcrypto, which is not there: %s", dlerror());
        digest = (__typeof__(digest))dlsym(library, "EVP_Digest");
        sha256 = (__typeof__(sha256))dlsym(library, "EVP_sha256");
        return digest && sha256 ? 0 : err_set(err, -ENOSYS, "the libcrypto that was found has no SHA-256");
}

int sha256_hex(struct str text, char ret[SHA256_HEX], struct err *err)
{
        unsigned char sum[EVP_MAX_MD_SIZE];
        unsigned size = 0;
        int r = libcrypto_open(err);

        if (r)
                return r;
        if (!digest(text.p, text.n, sum, &size, sha256(), NULL) || size != (SHA256_HEX - 1) / 2)
                return err_set(err, -ENOSYS, "libcrypto made no SHA-256");
        hex_print(ret, sum, size);
        return 0;
}
