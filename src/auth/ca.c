/* The key is written and flushed first, then the certificate. A certificate without its key therefore
 * means that somebody lost or moved the key, and is refused. A key without its certificate is left by a
 * crash in between, and gets a new certificate. (If the certificate was lost instead, agents' certificates
 * still match the new one, because its name and key are the same; only tokens with the old fingerprint are
 * void.) */
#include "auth/ca.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/openssl.h"
#include "base/system/fs.h"

#define CA_YEARS_S  (20LL * 365 * 86400)
#define CA_BEFORE_S (10LL * 365 * 86400) /* its own certificate begins this much earlier */
#define NAMES_MAX   64
#define CA_FILE_MAX (64 << 10)

struct ca {
        X509 *cert;
        EVP_PKEY *key;
        struct buf pem;
        char fingerprint[65];
};

enum profile { PROFILE_CA, PROFILE_SERVER, PROFILE_AGENT };

static const struct {
        const char *organisation;
        const char *basic, *usage, *extended;
} profiles[] = {
        [PROFILE_CA] = {"Drover", "critical,CA:TRUE,pathlen:0", "critical,keyCertSign,cRLSign", NULL},
        [PROFILE_SERVER] = {"server", "critical,CA:FALSE", "critical,digitalSignature", "serverAuth"},
        [PROFILE_AGENT] = {"agent", "critical,CA:FALSE", "critical,digitalSignature", "clientAuth"},
};

static bool extend(X509V3_CTX *ctx, X509 *cert, int nid, const char *value)
{
        X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, ctx, nid, value);
        bool good = ext && X509_add_ext(cert, ext, -1) == 1;

        X509_EXTENSION_free(ext);
        return good;
}

/* Sets a serial of 16 bytes with 126 random bits and no leading zero, so that it has one textual form. */
static bool set_serial(X509 *cert)
{
        unsigned char bytes[16];
        BIGNUM *number;
        bool good;

        if (RAND_bytes(bytes, sizeof(bytes)) != 1)
                return false;
        bytes[0] = (unsigned char)((bytes[0] & 0x3f) | 0x40);
        number = BN_bin2bn(bytes, sizeof(bytes), NULL);
        good = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
        BN_free(number);
        return good;
}

static bool set_name(X509 *cert, const char *organisation, struct str name)
{
        X509_NAME *subject = X509_get_subject_name(cert);

        return X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_ASC, (const unsigned char *)organisation, -1,
                                          -1, 0) == 1 &&
               X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name.p,
                                          (int)name.n, -1, 0) == 1;
}

/* Returns a signed certificate for key, or NULL on failure. issuer NULL: self-signed. */
static X509 *certify(enum profile profile, struct str name, const char *alternatives, EVP_PKEY *key,
                     X509 *issuer, EVP_PKEY *issuer_key, int64_t now_ms, int64_t valid_s)
{
        X509 *cert = X509_new();
        time_t now = (time_t)(now_ms / 1000);
        X509V3_CTX ctx;

        if (!cert)
                return NULL;
        X509V3_set_ctx(&ctx, issuer ? issuer : cert, cert, NULL, NULL, 0);
        if (X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
            set_name(cert, profiles[profile].organisation, name) &&
            X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert)) == 1 &&
            ASN1_TIME_set(X509_getm_notBefore(cert), now - (issuer ? CA_SKEW_S : CA_BEFORE_S)) &&
            ASN1_TIME_set(X509_getm_notAfter(cert), now + (time_t)valid_s) &&
            X509_set_pubkey(cert, key) == 1 &&
            extend(&ctx, cert, NID_basic_constraints, profiles[profile].basic) &&
            extend(&ctx, cert, NID_key_usage, profiles[profile].usage) &&
            (!profiles[profile].extended ||
             extend(&ctx, cert, NID_ext_key_usage, profiles[profile].extended)) &&
            extend(&ctx, cert, NID_subject_key_identifier, "hash") &&
            (!issuer || extend(&ctx, cert, NID_authority_key_identifier, "keyid:always")) &&
            (!alternatives || extend(&ctx, cert, NID_subject_alt_name, alternatives)) &&
            X509_sign(cert, issuer_key, EVP_sha256()) > 0)
                return cert;
        X509_free(cert);
        return NULL;
}

/* ---- opening */

static int make_key(int dirfd, struct ca *ca, struct err *err)
{
        BUF_CLEANUP struct buf pem = {0};
        int r;

        ca->key = openssl_key_new();
        if (!ca->key || !openssl_key_write(ca->key, &pem))
                return openssl_fail(err, -EIO, "cannot make a key");
        r = fs_write(dirfd, "ca.key", buf_view(&pem), 0600, true, err);
        OPENSSL_cleanse(pem.p, pem.n);
        return r;
}

static int load_key(int dirfd, struct ca *ca, struct err *err)
{
        BUF_CLEANUP struct buf pem = {0};
        struct stat st;
        int r;

        if (fstatat(dirfd, "ca.key", &st, AT_SYMLINK_NOFOLLOW))
                return -errno;
        if (st.st_mode & 077)
                return err_set(err, -EACCES,
                               "ca.key may be read by others: chmod 600 it, and if that was so for long, "
                               "begin a new one");
        r = fs_read(dirfd, "ca.key", CA_FILE_MAX, &pem, err);
        if (r)
                return r;
        ca->key = openssl_key_read(buf_view(&pem));
        OPENSSL_cleanse(pem.p, pem.n);
        return ca->key ? 0 : openssl_fail(err, -EINVAL, "ca.key is damaged, put back a backup");
}

static int make_cert(int dirfd, struct ca *ca, struct str title, int64_t now_ms, struct err *err)
{
        BUF_CLEANUP struct buf pem = {0};

        ca->cert = certify(PROFILE_CA, str_head(title, CSR_NAME_MAX), NULL, ca->key, NULL, ca->key, now_ms,
                           CA_YEARS_S);
        if (!ca->cert || !openssl_cert_write(ca->cert, &pem))
                return openssl_fail(err, -EIO, "cannot make the authority's certificate");
        return fs_write(dirfd, "ca.crt", buf_view(&pem), 0644, true, err);
}

static int load_cert(struct ca *ca, struct str pem, int64_t now_ms, struct err *err)
{
        time_t now = (time_t)(now_ms / 1000);

        ca->cert = openssl_cert_read(pem);
        if (!ca->cert)
                return openssl_fail(err, -EINVAL, "ca.crt is damaged, put back a backup");
        if (X509_check_private_key(ca->cert, ca->key) != 1)
                return openssl_fail(err, -EINVAL, "ca.key is not the key of ca.crt");
        if (X509_check_ca(ca->cert) != 1)
                return err_set(err, -EINVAL, "ca.crt is not the certificate of an authority");
        if (X509_cmp_time(X509_get0_notAfter(ca->cert), &now) < 0)
                return err_set(err, -EINVAL,
                               "ca.crt has expired: remove both ca.crt and ca.key to begin a new "
                               "authority (agents then join again)");
        return 0;
}

static int open_in(int dirfd, struct ca *ca, struct str title, int64_t now_ms, struct err *err)
{
        BUF_CLEANUP struct buf pem = {0};
        int key = load_key(dirfd, ca, err);
        int cert, r;

        if (key && key != -ENOENT)
                return key;
        cert = fs_read(dirfd, "ca.crt", CA_FILE_MAX, &pem, err);
        if (cert && cert != -ENOENT)
                return cert;
        if (key && cert == 0)
                return err_set(err, -ENOENT,
                               "ca.crt is there but not ca.key: put back a backup of it, or remove ca.crt "
                               "to begin a new authority (agents then join again)");
        r = key ? make_key(dirfd, ca, err) : 0;
        if (r == 0)
                r = cert ? make_cert(dirfd, ca, title, now_ms, err)
                         : load_cert(ca, buf_view(&pem), now_ms, err);
        if (r)
                return r;
        if (!openssl_cert_write(ca->cert, &ca->pem) || !openssl_fingerprint(ca->cert, ca->fingerprint))
                return openssl_fail(err, -EIO, "cannot read the authority's certificate");
        return 0;
}

int ca_open(const char *folder, struct str title, int64_t now_ms, struct ca **ret, struct err *err)
{
        struct ca *ca;
        int dirfd, r;

        r = fs_mkdirs(folder, 0700);
        if (r)
                return err_set(err, r, "cannot make %s: %s", folder, strerror(-r));
        dirfd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dirfd < 0)
                return err_set(err, -errno, "cannot open %s: %s", folder, strerror(errno));
        ca = mem_new(struct ca);
        r = open_in(dirfd, ca, title.n ? title : STR("Drover"), now_ms, err);
        close(dirfd);
        if (r) {
                ca_free(ca);
                return err_prefix(err, r, "%s", folder);
        }
        *ret = ca;
        return 0;
}

void ca_free(struct ca *ca)
{
        if (!ca)
                return;
        X509_free(ca->cert);
        EVP_PKEY_free(ca->key);
        buf_deinit(&ca->pem);
        free(ca);
}

struct str ca_cert_pem(const struct ca *ca)
{
        return buf_view(&ca->pem);
}

const char *ca_fingerprint(const struct ca *ca)
{
        return ca->fingerprint;
}

int ca_sign(const struct ca *ca, struct str text, struct buf *ret, struct err *err)
{
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        size_t size = (size_t)EVP_PKEY_get_size(ca->key);
        void *room = buf_room(ret, size);
        bool good = context && room && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, ca->key) == 1 &&
                    EVP_DigestSign(context, room, &size, (const unsigned char *)text.p, text.n) == 1;

        EVP_MD_CTX_free(context);
        if (!good)
                return openssl_fail(err, -EIO, "cannot sign with the authority's key");
        ret->n += size;
        return 0;
}

/* ---- issuing */

/* Appends "DNS:host," or "IP:address,". A host name may begin with "*.". */
static bool add_alternative(struct buf *out, struct str name)
{
        char text[254];
        unsigned char address[16];

        if (name.n == 0 || name.n >= sizeof(text))
                return false;
        memcpy(text, name.p, name.n);
        text[name.n] = '\0';
        if (inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1) {
                buf_printf(out, "IP:%s,", text);
                return true;
        }
        if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_*") != name.n)
                return false;
        buf_printf(out, "DNS:%s,", text);
        return true;
}

int ca_issue_server(const struct ca *ca, const struct str *names, size_t count, int64_t now_ms,
                    int64_t valid_s, struct buf *ret_cert_pem, struct buf *ret_key_pem, struct err *err)
{
        BUF_CLEANUP struct buf alternatives = {0};
        KEY_CLEANUP EVP_PKEY *key = NULL;
        CERT_CLEANUP X509 *cert = NULL;

        if (count > NAMES_MAX)
                return err_set(err, -EINVAL, "more than %d names for the server", NAMES_MAX);
        for (size_t i = 0; i < count; i++)
                if (!add_alternative(&alternatives, names[i]))
                        return err_set(err, -EINVAL, "\"" STR_FMT "\" is neither a host name nor an address",
                                       STR_ARG(names[i]));
        buf_addz(&alternatives, "DNS:droverd");
        key = openssl_key_new();
        if (key)
                cert = certify(PROFILE_SERVER, STR("droverd"), buf_z(&alternatives), key, ca->cert, ca->key,
                               now_ms, valid_s);
        if (!cert || !openssl_cert_write(cert, ret_cert_pem) || !openssl_key_write(key, ret_key_pem))
                return openssl_fail(err, -EIO, "cannot make the server's certificate");
        return 0;
}

static bool key_strong(EVP_PKEY *key)
{
        return key &&
               ((EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_bits(key) >= 256) || EVP_PKEY_is_a(key, "ED25519"));
}

int ca_issue_agent(const struct ca *ca, struct str csr_pem, struct str name, int64_t now_ms, int64_t valid_s,
                   struct buf *ret_cert_pem, struct cert_facts *ret_facts, struct err *err)
{
        CSR_CLEANUP X509_REQ *csr = NULL;
        CERT_CLEANUP X509 *cert = NULL;
        BUF_CLEANUP struct buf pem = {0};
        struct cert_facts facts;
        EVP_PKEY *key;

        if (!csr_name_valid(name))
                return err_set(err, -EINVAL, "\"" STR_FMT "\" cannot be an agent's name", STR_ARG(name));
        if (csr_pem.n <= CA_CSR_BYTES_MAX)
                csr = openssl_csr_read(csr_pem);
        if (!csr)
                return openssl_fail(err, -EINVAL, "this is not a certificate request");
        key = X509_REQ_get0_pubkey(csr);
        if (!key_strong(key))
                return err_set(err, -EINVAL, "the key of the certificate request is not EC P-256 or better");
        if (X509_REQ_verify(csr, key) != 1)
                return openssl_fail(err, -EINVAL, "the certificate request is not signed with its key");
        cert = certify(PROFILE_AGENT, name, NULL, key, ca->cert, ca->key, now_ms, valid_s);
        if (!cert || !openssl_cert_write(cert, &pem) || cert_facts(buf_view(&pem), &facts, err))
                return openssl_fail(err, -EIO, "cannot make the agent's certificate");
        buf_str(ret_cert_pem, buf_view(&pem));
        if (ret_facts)
                *ret_facts = facts;
        return 0;
}
