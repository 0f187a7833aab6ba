#include "auth/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

int openssl_fail(struct err *err, int code, const char *what)
{
        char text[256] = "no reason given";
        unsigned long number = ERR_get_error();

        if (number)
                ERR_error_string_n(number, text, sizeof(text));
        ERR_clear_error();
        return err_set(err, code, "%s: %s", what, text);
}

EVP_PKEY *openssl_key_new(void)
{
        return EVP_EC_gen("P-256");
}

/* Our keys have no passphrase. Without this callback OpenSSL would ask for one on the terminal. */
static int no_passphrase(char *room, int size, int writing, void *arg)
{
        (void)room;
        (void)size;
        (void)writing;
        (void)arg;
        return -1;
}

#define PEM_BYTES_MAX (1 << 20)

#define READ(type, name, call)                                                                               \
        type *name(struct str pem)                                                                           \
        {                                                                                                    \
                BIO *in;                                                                                     \
                type *thing;                                                                                 \
                                                                                                             \
                if (pem.n == 0 || pem.n > PEM_BYTES_MAX)                                                     \
                        return NULL;                                                                         \
                in = BIO_new_mem_buf(pem.p, (int)pem.n);                                                     \
                thing = in ? call(in, NULL, no_passphrase, NULL) : NULL;                                     \
                BIO_free(in);                                                                                \
                return thing;                                                                                \
        }
READ(EVP_PKEY, openssl_key_read, PEM_read_bio_PrivateKey)
READ(X509, openssl_cert_read, PEM_read_bio_X509)
READ(X509_REQ, openssl_csr_read, PEM_read_bio_X509_REQ)

static bool drain(BIO *from, bool good, struct buf *out)
{
        char *p = NULL;
        long n = good ? BIO_get_mem_data(from, &p) : 0;

        if (n > 0)
                buf_add(out, p, (size_t)n);
        BIO_free(from);
        return n > 0;
}

bool openssl_key_write(EVP_PKEY *key, struct buf *out)
{
        BIO *to = BIO_new(BIO_s_secmem());

        return to && drain(to, PEM_write_bio_PKCS8PrivateKey(to, key, NULL, NULL, 0, NULL, NULL) == 1, out);
}

bool openssl_cert_write(X509 *cert, struct buf *out)
{
        BIO *to = BIO_new(BIO_s_mem());

        return to && drain(to, PEM_write_bio_X509(to, cert) == 1, out);
}

bool openssl_csr_write(X509_REQ *csr, struct buf *out)
{
        BIO *to = BIO_new(BIO_s_mem());

        return to && drain(to, PEM_write_bio_X509_REQ(to, csr) == 1, out);
}

static void hex(const unsigned char *p, size_t n, char *ret)
{
        for (size_t i = 0; i < n; i++) {
                ret[2 * i] = "0123456789abcdef"[p[i] >> 4];
                ret[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
        }
        ret[2 * n] = '\0';
}

bool openssl_fingerprint(X509 *cert, char ret[65])
{
        unsigned char digest[EVP_MAX_MD_SIZE];
        unsigned n = 0;

        if (X509_digest(cert, EVP_sha256(), digest, &n) != 1 || n != 32)
                return false;
        hex(digest, n, ret);
        return true;
}

bool openssl_serial(X509 *cert, char ret[41])
{
        const ASN1_INTEGER *serial = X509_get0_serialNumber(cert);

        if (!serial || ASN1_STRING_length(serial) > 20)
                return false;
        hex(ASN1_STRING_get0_data(serial), (size_t)ASN1_STRING_length(serial), ret);
        return true;
}
