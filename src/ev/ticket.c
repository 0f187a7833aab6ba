#include "ev/ticket.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <string.h>
#include <time.h>

#define NAME_BYTES 16 /* of a key, in front of the ticket: given by OpenSSL */
#define KEY_BYTES  32

struct ticket_keys {
        unsigned char name[KEY_BYTES], encrypt[KEY_BYTES], sign[KEY_BYTES];
};

static bool derive(const unsigned char *secret, char use, int64_t day, unsigned char ret[KEY_BYTES])
{
        unsigned char said[16] = "ticket ";

        said[7] = (unsigned char)use;
        for (int i = 0; i < 8; i++)
                said[8 + i] = (unsigned char)((uint64_t)day >> (8 * i));
        return HMAC(EVP_sha256(), secret, TICKET_SECRET_BYTES, said, sizeof(said), ret, NULL) != NULL;
}

static bool ticket_keys_of(const unsigned char *secret, int64_t day, struct ticket_keys *ret)
{
        return derive(secret, 'n', day, ret->name) && derive(secret, 'e', day, ret->encrypt) &&
               derive(secret, 's', day, ret->sign);
}

static bool ticket_sign_with(EVP_MAC_CTX *mac, struct ticket_keys *k)
{
        OSSL_PARAM params[] = {
                OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, k->sign, KEY_BYTES),
                OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0),
                OSSL_PARAM_construct_end(),
        };

        return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* See SSL_CTX_set_tlsext_ticket_key_evp_cb(3). -1: error; 0: no key of ours; 1. */
static int ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                      EVP_MAC_CTX *mac, int encrypt)
{
        const unsigned char *secret = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
        const EVP_CIPHER *aes = EVP_aes_256_cbc();
        int64_t today = (int64_t)time(NULL) / TICKET_LIFE_S;
        struct ticket_keys k;
        int r = 0;

        if (encrypt) {
                bool good = ticket_keys_of(secret, today, &k) &&
                            RAND_bytes(iv, EVP_CIPHER_get_iv_length(aes)) == 1 &&
                            EVP_EncryptInit_ex(cipher, aes, NULL, k.encrypt, iv) == 1 &&
                            ticket_sign_with(mac, &k);

                memcpy(name, k.name, NAME_BYTES);
                OPENSSL_cleanse(&k, sizeof(k));
                return good ? 1 : -1;
        }
        for (int64_t day = today; day >= today - 1 && r == 0; day--) {
                if (!ticket_keys_of(secret, day, &k))
                        r = -1;
                else if (CRYPTO_memcmp(name, k.name, NAME_BYTES) == 0)
                        r = EVP_DecryptInit_ex(cipher, aes, NULL, k.encrypt, iv) == 1 &&
                                            ticket_sign_with(mac, &k)
                                    ? 1
                                    : -1;
                OPENSSL_cleanse(&k, sizeof(k));
        }
        return r;
}

/* OpenSSL does not look at the certificate in a ticket again. */
static SSL_TICKET_RETURN ticket_decrypted(SSL *ssl, SSL_SESSION *session, const unsigned char *name, size_t n,
                                          SSL_TICKET_STATUS status, void *arg)
{
        X509 *cert;

        (void)ssl, (void)name, (void)n, (void)arg;
        if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
                return SSL_TICKET_RETURN_IGNORE;
        cert = SSL_SESSION_get0_peer(session);
        if (!cert || X509_cmp_current_time(X509_get0_notAfter(cert)) <= 0)
                return SSL_TICKET_RETURN_IGNORE;
        return SSL_TICKET_RETURN_USE;
}

void ticket_serve(SSL_CTX *ctx, const unsigned char *secret, struct str ca_pem)
{
        unsigned char ca[SHA256_DIGEST_LENGTH];

        SSL_CTX_set_app_data(ctx, (void *)secret);
        SHA256((const unsigned char *)ca_pem.p, ca_pem.n, ca);
        SSL_CTX_set_session_id_context(ctx, ca, sizeof(ca));
        SSL_CTX_set_timeout(ctx, TICKET_LIFE_S);
        SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, ticket_key);
        SSL_CTX_set_session_ticket_cb(ctx, NULL, ticket_decrypted, NULL);
}

void ticket_send(SSL *ssl)
{
        SSL_new_session_ticket(ssl);
}

/* A copy: OpenSSL marks the session of a connection that ends without a goodbye, as that of a killed server
 * does, as not to be resumed. */
static int ticket_came(SSL *ssl, SSL_SESSION *session)
{
        SSL_SESSION **kept = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
        SSL_SESSION *copy = SSL_SESSION_dup(session);

        if (copy) {
                SSL_SESSION_free(*kept);
                *kept = copy;
        }
        return 0;
}

void ticket_keep(SSL_CTX *ctx, SSL_SESSION **kept)
{
        SSL_CTX_set_app_data(ctx, kept);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
        SSL_CTX_sess_set_new_cb(ctx, ticket_came);
}

void ticket_offer(SSL *ssl, SSL_SESSION *kept)
{
        SSL_SESSION *copy = kept ? SSL_SESSION_dup(kept) : NULL;

        if (copy)
                SSL_set_session(ssl, copy);
        SSL_SESSION_free(copy);
}
