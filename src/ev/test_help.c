#include "ev/test_help.h"

#include <ftw.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

static void help_stuck(void *arg)
{
        (void)arg;
        fprintf(stderr, "the test waited too long\n");
        abort();
}

static void help_stop(void *arg)
{
        loop_stop(arg);
}

void help_run(struct loop *l)
{
        struct timer *t = timer_new(l, help_stuck, NULL);

        timer_start(t, STUCK_MS);
        loop_run(l);
        timer_free(t);
}

void help_run_ms(struct loop *l, int64_t ms)
{
        struct timer *t = timer_new(l, help_stop, l);

        timer_start(t, ms);
        loop_run(l);
        timer_free(t);
}

char *help_folder(void)
{
        const char *base = getenv("TMPDIR");
        BUF_CLEANUP struct buf path = {0};

        buf_printf(&path, "%s/drover-test-XXXXXX", base && *base ? base : "/tmp");
        assert_non_null(mkdtemp((char *)buf_z(&path)));
        return buf_take(&path);
}

static int help_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        (void)st;
        (void)type;
        (void)ftw;
        return remove(path);
}

void help_folder_remove(char *path)
{
        nftw(path, help_remove, 16, FTW_DEPTH | FTW_PHYS);
        free(path);
}

static void help_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
        X509V3_CTX ctx;
        X509_EXTENSION *e;

        X509V3_set_ctx_nodb(&ctx);
        X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
        e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
        assert_non_null(e);
        X509_add_ext(cert, e, -1);
        X509_EXTENSION_free(e);
}

static char *help_bio_text(BIO *bio)
{
        char *p = NULL;
        long n = BIO_get_mem_data(bio, &p);
        char *text = mem_dup(p, n);

        BIO_free(bio);
        return text;
}

void help_cert_make(struct help_cert *ret, const struct help_cert *ca, const char *common_name, int serial,
                    long from_s, long until_s)
{
        help_cert_make_for(ret, ca, common_name, serial, from_s, until_s, NULL);
}

void help_cert_make_for(struct help_cert *ret, const struct help_cert *ca, const char *common_name,
                        int serial, long from_s, long until_s, const char *usage)
{
        EVP_PKEY *key = EVP_EC_gen("P-256");
        X509 *cert = X509_new();
        X509 *issuer = ca ? ca->x509 : cert;
        unsigned char hash[32];
        BIO *bio;

        X509_set_version(cert, 2);
        ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
        X509_gmtime_adj(X509_getm_notBefore(cert), from_s);
        X509_gmtime_adj(X509_getm_notAfter(cert), until_s);
        X509_set_pubkey(cert, key);
        X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
                                   (const unsigned char *)common_name, -1, -1, 0);
        X509_set_issuer_name(cert, X509_get_subject_name(issuer));
        if (!ca) {
                help_extension(cert, issuer, NID_basic_constraints, "critical,CA:TRUE");
                help_extension(cert, issuer, NID_key_usage, "critical,keyCertSign,cRLSign");
        } else {
                BUF_CLEANUP struct buf names = {0};

                buf_printf(&names, "DNS:%s", common_name);
                help_extension(cert, issuer, NID_subject_alt_name, buf_z(&names));
                if (usage)
                        help_extension(cert, issuer, NID_ext_key_usage, usage);
        }
        assert_true(X509_sign(cert, ca ? ca->key : key, EVP_sha256()) > 0);
        X509_digest(cert, EVP_sha256(), hash, NULL);
        for (int i = 0; i < 32; i++)
                snprintf(ret->fingerprint + 2 * i, 3, "%02x", hash[i]);
        bio = BIO_new(BIO_s_mem());
        PEM_write_bio_X509(bio, cert);
        ret->cert_pem = help_bio_text(bio);
        bio = BIO_new(BIO_s_mem());
        PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
        ret->key_pem = help_bio_text(bio);
        ret->x509 = cert;
        ret->key = key;
}

void help_cert_free(struct help_cert *c)
{
        free(c->cert_pem);
        free(c->key_pem);
        X509_free(c->x509);
        EVP_PKEY_free(c->key);
        *c = (struct help_cert){0};
}
