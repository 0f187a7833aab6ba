#include "base/format/sha256.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/mem.h"

#define PIECE (1u << 18)

static __typeof__(EVP_Digest) *digest;
static __typeof__(EVP_sha256) *sha256;
static __typeof__(EVP_MD_CTX_new) *ctx_new;
static __typeof__(EVP_MD_CTX_free) *ctx_free;
static __typeof__(EVP_DigestInit_ex) *digest_init;
static __typeof__(EVP_DigestUpdate) *digest_update;
static __typeof__(EVP_DigestFinal_ex) *digest_final;

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
        ctx_new = (__typeof__(ctx_new))dlsym(library, "EVP_MD_CTX_new");
        ctx_free = (__typeof__(ctx_free))dlsym(library, "EVP_MD_CTX_free");
        digest_init = (__typeof__(digest_init))dlsym(library, "EVP_DigestInit_ex");
        digest_update = (__typeof__(digest_update))dlsym(library, "EVP_DigestUpdate");
        digest_final = (__typeof__(digest_final))dlsym(library, "EVP_DigestFinal_ex");
        return digest && sha256 && ctx_new && ctx_free && digest_init && digest_update && digest_final
                       ? 0
                       : err_set(err, -ENOSYS, "the libcrypto that was found has no SHA-256");
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

int sha256_fd(int fd, char ret[SHA256_HEX], struct err *err)
{
        unsigned char sum[EVP_MAX_MD_SIZE];
        MEM_CLEANUP char *piece = NULL;
        EVP_MD_CTX *ctx;
        unsigned size = 0;
        ssize_t n;
        int r = libcrypto_open(err);

        if (r)
                return r;
        piece = mem_alloc(PIECE);
        ctx = ctx_new();
        if (!ctx || digest_init(ctx, sha256(), NULL) != 1)
                r = -ENOSYS;
        while (r == 0 && (n = read(fd, piece, PIECE)) != 0)
                if (n < 0)
                        r = errno == EINTR ? 0 : -errno;
                else if (digest_update(ctx, piece, (size_t)n) != 1)
                        r = -ENOSYS;
        if (r == 0 && (digest_final(ctx, sum, &size) != 1 || size != (SHA256_HEX - 1) / 2))
                r = -ENOSYS;
        ctx_free(ctx);
        if (r != 0)
                return err_set(err, r, "no SHA-256 could be made: %s", strerror(-r));
        hex_print(ret, sum, size);
        return 0;
}
