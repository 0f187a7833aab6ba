/* One SSL_CTX per context. Who the peer may be is decided in one place, tls_verify(), after OpenSSL has
 * checked signatures and dates against our CA (never against the system's). No ticket is sent by itself: who
 * joins, or is refused, needs none, and a peer that closes early would be sent bytes that it does not read.
 *
 * Pinning (to join): no CA is known yet, only the SHA-256 of its certificate. The server sends its whole
 * chain; the certificate with that hash is taken out of it, and the chain is verified against that one alone.
 */
#include "ev/tls.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "ev/private.h"
#include "ev/ticket.h"

#define TLS_MAGIC 0x746c7363u

struct tls_context {
        unsigned magic;
        atomic_uint refs;
        bool server, pinned, tickets;
        SSL_CTX *ctx;
        unsigned char fingerprint[32];
        char *server_name;
        unsigned char ticket_secret[TLS_SECRET_BYTES]; /* servers */
        SSL_SESSION *ticket;                           /* clients: the last one, or NULL */
};
static_assert(TLS_SECRET_BYTES == TICKET_SECRET_BYTES, "one secret");

static int tls_fail(struct err *err, const char *what)
{
        unsigned long code = ERR_peek_last_error();
        const char *reason = code ? ERR_reason_error_string(code) : NULL;

        ERR_clear_error();
        return err_set(err, -EINVAL, "%s: %s", what, reason ? reason : "not understood");
}

static int tls_no_password(char *room, int size, int writing, void *arg)
{
        (void)room;
        (void)size;
        (void)writing;
        (void)arg;
        return -1;
}

/* Adds the CA certificates in the text to the ones we believe; there must be at least one. */
static int tls_use_ca(SSL_CTX *ctx, struct str pem, bool server, struct err *err)
{
        BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
        X509_STORE *store = SSL_CTX_get_cert_store(ctx);
        int count = 0;
        X509 *cert;

        while ((cert = PEM_read_bio_X509(bio, NULL, tls_no_password, NULL))) {
                X509_STORE_add_cert(store, cert);
                if (server)
                        SSL_CTX_add_client_CA(ctx, cert);
                X509_free(cert);
                count++;
        }
        BIO_free(bio);
        if (!count)
                return tls_fail(err, "CA certificate");
        ERR_clear_error();
        return 0;
}

/* Our certificate, and behind it those that lead to the CA (a pinning client needs the CA's own among them).
 */
static int tls_use_cert(SSL_CTX *ctx, struct str cert_pem, struct str key_pem, struct err *err)
{
        BIO *bio = BIO_new_mem_buf(cert_pem.p, (int)cert_pem.n);
        X509 *cert = PEM_read_bio_X509(bio, NULL, tls_no_password, NULL);
        EVP_PKEY *key;
        bool good;

        good = cert && SSL_CTX_use_certificate(ctx, cert) == 1;
        X509_free(cert);
        while (good && (cert = PEM_read_bio_X509(bio, NULL, tls_no_password, NULL)))
                if (SSL_CTX_add0_chain_cert(ctx, cert) != 1)
                        X509_free(cert);
        BIO_free(bio);
        if (!good)
                return tls_fail(err, "certificate");
        ERR_clear_error();
        bio = BIO_new_mem_buf(key_pem.p, (int)key_pem.n);
        key = PEM_read_bio_PrivateKey(bio, NULL, tls_no_password, NULL);
        BIO_free(bio);
        good = key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
        EVP_PKEY_free(key);
        return good ? 0 : tls_fail(err, "private key");
}

static int tls_parse_fingerprint(struct str text, unsigned char *ret)
{
        if (text.n != 64)
                return -EINVAL;
        for (size_t i = 0; i < 64; i++) {
                int digit = OPENSSL_hexchar2int((unsigned char)text.p[i]);

                if (digit < 0)
                        return -EINVAL;
                ret[i / 2] = (unsigned char)(i % 2 ? ret[i / 2] | digit : digit << 4);
        }
        return 0;
}

/* The pinned certificate in the chain the server sent, or NULL. */
static X509 *tls_find_pinned(const struct tls_context *t, STACK_OF(X509) * chain)
{
        for (int i = 0; i < sk_X509_num(chain); i++) {
                unsigned char hash[EVP_MAX_MD_SIZE];
                unsigned size = 0;
                X509 *cert = sk_X509_value(chain, i);

                if (X509_digest(cert, EVP_sha256(), hash, &size) == 1 && size == 32 &&
                    CRYPTO_memcmp(hash, t->fingerprint, 32) == 0)
                        return cert;
        }
        return NULL;
}

static int tls_verify(X509_STORE_CTX *store, void *arg)
{
        struct tls_context *t = arg;

        if (t->pinned) {
                STACK_OF(X509) * trusted;
                X509 *ca = tls_find_pinned(t, X509_STORE_CTX_get0_untrusted(store));
                int good;

                if (!ca) {
                        X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
                        return 0;
                }
                trusted = sk_X509_new_null();
                sk_X509_push(trusted, ca);
                X509_STORE_CTX_set0_trusted_stack(store, trusted);
                good = X509_verify_cert(store);
                X509_STORE_CTX_set0_trusted_stack(store, NULL);
                sk_X509_free(trusted);
                return good == 1;
        }
        return X509_verify_cert(store) == 1;
}

/* Accepts certificates that begin in the future: the CA's clock was ahead when they were made. A
 * certificate's beginning protects nothing, since the CA trusts its key; its end and revocations limit it. */
static int tls_tolerate(int good, X509_STORE_CTX *store)
{
        if (good || X509_STORE_CTX_get_error(store) != X509_V_ERR_CERT_NOT_YET_VALID)
                return good;
        X509_STORE_CTX_set_error(store, X509_V_OK);
        return 1;
}

/* Sets the protocol version and the verification of the peer. */
static void tls_rules(struct tls_context *t, SSL_CTX *ctx, int mode)
{
        SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION);
        SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION);
        SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
        /* one record a read, whatever is in it: key updates without end leave the thread to the others */
        SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
        SSL_CTX_set_max_cert_list(ctx, 32768);
        SSL_CTX_set_verify(ctx, mode, tls_tolerate);
        SSL_CTX_set_cert_verify_callback(ctx, tls_verify, t);
}

void tls_client_rules(struct tls_context *t, SSL_CTX *ctx)
{
        assert(t->magic == TLS_MAGIC && t->pinned && !t->server_name && !SSL_CTX_get0_certificate(t->ctx));
        tls_rules(t, ctx, SSL_VERIFY_PEER);
}

static int tls_setup(struct tls_context *t, const struct tls_config *c, struct err *err)
{
        int r, mode = SSL_VERIFY_NONE;

        if (!t->ctx)
                return tls_fail(err, "TLS");
        SSL_CTX_set_num_tickets(t->ctx, 0);
        SSL_CTX_set_mode(t->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                         SSL_MODE_RELEASE_BUFFERS);
        if (c->ca_pem.n && (r = tls_use_ca(t->ctx, c->ca_pem, t->server, err)) < 0)
                return r;
        if (c->cert_pem.n && (r = tls_use_cert(t->ctx, c->cert_pem, c->key_pem, err)) < 0)
                return r;
        if (c->ca_fingerprint.n) {
                if (tls_parse_fingerprint(c->ca_fingerprint, t->fingerprint) < 0)
                        return err_set(err, -EINVAL, "a CA fingerprint has 64 hexadecimal digits");
                t->pinned = true;
        }
        if (t->server ? c->ask_client : true)
                mode = SSL_VERIFY_PEER; /* a server without FAIL_IF_NO_PEER_CERT: none is allowed */
        if (mode != SSL_VERIFY_NONE && !c->ca_pem.n && !t->pinned)
                return err_set(err, -EINVAL, "TLS: neither a CA nor a fingerprint says whom to believe");
        tls_rules(t, t->ctx, mode);
        if (!t->server) {
                ticket_keep(t->ctx, &t->ticket);
        } else if (c->ticket_secret) {
                t->tickets = true;
                memcpy(t->ticket_secret, c->ticket_secret, sizeof(t->ticket_secret));
                ticket_serve(t->ctx, t->ticket_secret, c->ca_pem);
        }
        if (c->server_name)
                t->server_name = mem_dupz(c->server_name);
        return 0;
}

static int tls_new(const struct tls_config *c, bool server, struct tls_context **ret, struct err *err)
{
        struct tls_context *t = mem_new(struct tls_context);
        int r;

        t->magic = TLS_MAGIC;
        t->refs = 1;
        t->server = server;
        t->ctx = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
        r = tls_setup(t, c, err);
        if (r < 0) {
                tls_unref(t);
                return r;
        }
        *ret = t;
        return 0;
}

int tls_server_new(const struct tls_config *c, struct tls_context **ret, struct err *err)
{
        if (!c->cert_pem.n)
                return err_set(err, -EINVAL, "TLS: a server needs a certificate");
        return tls_new(c, true, ret, err);
}

int tls_server_renew(struct tls_context *t, struct str cert_pem, struct str key_pem, struct err *err)
{
        struct tls_config c = {.cert_pem = cert_pem, .key_pem = key_pem};
        struct tls_context *fresh;
        int r = tls_server_new(&c, &fresh, err); /* all of it is good, or nothing changes */

        if (r < 0)
                return r;
        tls_unref(fresh);
        SSL_CTX_clear_chain_certs(t->ctx);
        return tls_use_cert(t->ctx, cert_pem, key_pem, err);
}

int tls_client_new(const struct tls_config *c, struct tls_context **ret, struct err *err)
{
        return tls_new(c, false, ret, err);
}

void tls_ref(struct tls_context *t)
{
        atomic_fetch_add(&t->refs, 1);
}

void tls_unref(struct tls_context *t)
{
        if (!t)
                return;
        assert(t->magic == TLS_MAGIC);
        if (atomic_fetch_sub(&t->refs, 1) != 1)
                return;
        SSL_CTX_free(t->ctx);
        SSL_SESSION_free(t->ticket);
        OPENSSL_cleanse(t->ticket_secret, sizeof(t->ticket_secret));
        free(t->server_name);
        t->magic = 0;
        free(t);
}

bool tls_is_server(const struct tls_context *t)
{
        return t->server;
}

bool tls_gives_tickets(const struct tls_context *t)
{
        return t->tickets;
}

SSL *tls_connection(struct tls_context *t, int fd)
{
        SSL *ssl = SSL_new(t->ctx);

        assert(t->magic == TLS_MAGIC && ssl);
        if (SSL_set_fd(ssl, fd) != 1)
                abort();
        if (t->server) {
                SSL_set_accept_state(ssl);
                return ssl;
        }
        SSL_set_connect_state(ssl);
        ticket_offer(ssl, t->ticket);
        if (t->server_name) {
                SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
                if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), t->server_name) != 1) {
                        SSL_set_tlsext_host_name(ssl, t->server_name);
                        SSL_set1_host(ssl, t->server_name);
                }
                ERR_clear_error();
        }
        return ssl;
}

void tls_verdict(long verdict, struct err *why)
{
        if (verdict == X509_V_ERR_CERT_REJECTED)
                err_set(why, 0, "the server's CA is not the one that was named by its fingerprint");
        else
                err_set(why, 0, "the peer's certificate is refused: %s",
                        X509_verify_cert_error_string(verdict));
}

void tls_explain(SSL *ssl, int error, struct err *why)
{
        unsigned long code = ERR_peek_last_error(); /* earlier errors are its causes in lower layers */
        const char *reason = code ? ERR_reason_error_string(code) : NULL;
        int number = code && ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
        long verdict = SSL_get_verify_result(ssl);

        ERR_clear_error();
        if (number == SSL_R_CERTIFICATE_VERIFY_FAILED)
                tls_verdict(verdict, why);
        else if (number == SSL_R_UNEXPECTED_EOF_WHILE_READING || (!code && !error))
                err_set(why, 0, "the peer closed the connection");
        else if (number >= SSL_AD_REASON_OFFSET && reason)
                err_set(why, 0, "the peer says: %s", reason);
        else
                err_set(why, 0, "%s", reason ? reason : error ? strerror(error) : "a TLS error");
}

void tls_peer(SSL *ssl, struct buf *name, struct buf *serial)
{
        X509 *cert = SSL_get0_peer_certificate(ssl);
        const ASN1_STRING *text = NULL;
        unsigned char *utf8 = NULL;
        BIGNUM *number;
        char *hex;
        int at, n;

        if (!cert || SSL_get_verify_result(ssl) != X509_V_OK)
                return;
        at = X509_NAME_get_index_by_NID(X509_get_subject_name(cert), NID_commonName, -1);
        if (at >= 0)
                text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(X509_get_subject_name(cert), at));
        n = text ? ASN1_STRING_to_UTF8(&utf8, text) : -1;
        if (n > 0 && !memchr(utf8, 0, n))
                buf_add(name, utf8, n);
        OPENSSL_free(utf8);
        number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(cert), NULL);
        hex = number ? BN_bn2hex(number) : NULL;
        if (hex)
                buf_addz(serial, hex);
        OPENSSL_free(hex);
        BN_free(number);
}
