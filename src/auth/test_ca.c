#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include "auth/ca.h"
#include "auth/openssl.h"
#include "base/system/fs.h"

#define NOW_MS 1800000000000LL

static char top[64], folder[96];

static int setup(void **state)
{
        (void)state;
        strncpy(top, "/tmp/drover-ca-XXXXXX", sizeof(top) - 1);
        if (!mkdtemp(top))
                return 1;
        snprintf(folder, sizeof(folder), "%s/deep/ca", top);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        return fs_remove_tree(AT_FDCWD, top);
}

static struct ca *opened(void)
{
        struct err err = {0};
        struct ca *ca = NULL;
        int r = ca_open(folder, STR("Drover test"), NOW_MS, &ca, &err);

        if (r)
                fail_msg("%d %s", r, err.text);
        return ca;
}

static void expect_refused(int result, const char *text)
{
        struct err err = {0};
        struct ca *ca = NULL;

        assert_int_equal(ca_open(folder, STR("x"), NOW_MS, &ca, &err), result);
        assert_null(ca);
        if (!strstr(err.text, text) || !strstr(err.text, folder))
                fail_msg("\"%s\" does not say \"%s\"", err.text, text);
}

static const char *file(const char *name)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void overwrite(const char *name, const char *text)
{
        int fd = open(file(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        close(fd);
}

static void is_made_once(void **state)
{
        struct ca *ca = opened(), *again;
        struct cert_facts facts;
        struct stat st;

        (void)state;
        assert_int_equal(strlen(ca_fingerprint(ca)), 64);
        assert_int_equal(cert_facts(ca_cert_pem(ca), &facts, NULL), 0);
        assert_string_equal(facts.fingerprint, ca_fingerprint(ca));
        assert_string_equal(facts.name, "Drover test");
        assert_true(facts.from_ms <= NOW_MS && facts.until_ms > NOW_MS + 10LL * 365 * 86400 * 1000);
        assert_int_equal(stat(file("ca.key"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(stat(folder, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        again = opened();
        assert_string_equal(ca_fingerprint(again), ca_fingerprint(ca));
        ca_free(again);
        ca_free(ca);
        ca_free(NULL);
}

static void damage_is_named(void **state)
{
        struct ca *ca = opened(), *again;
        BUF_CLEANUP struct buf csr = {0};
        BUF_CLEANUP struct buf key = {0};

        (void)state;
        assert_int_equal(chmod(file("ca.key"), 0640), 0);
        expect_refused(-EACCES, "chmod 600");
        assert_int_equal(chmod(file("ca.key"), 0600), 0);
        overwrite("ca.crt", "not a certificate");
        expect_refused(-EINVAL, "ca.crt is damaged");
        overwrite("ca.crt", "");
        expect_refused(-EINVAL, "ca.crt is damaged");
        /* What a crash between the two files leaves. */
        assert_int_equal(unlink(file("ca.crt")), 0);
        again = opened();
        ca_free(again);
        /* Another's key. */
        assert_int_equal(csr_make(STR("x"), &key, &csr, NULL), 0);
        overwrite("ca.key", buf_z(&key));
        expect_refused(-EINVAL, "not the key of ca.crt");
        overwrite("ca.key", "not a key");
        expect_refused(-EINVAL, "ca.key is damaged");
        assert_int_equal(unlink(file("ca.key")), 0);
        expect_refused(-ENOENT, "but not ca.key");
        ca_free(ca);
}

static void end_is_noticed(void **state)
{
        struct err err = {0};
        struct ca *ca;

        (void)state;
        ca_free(opened());
        assert_int_equal(ca_open(folder, STR("x"), NOW_MS + 21LL * 365 * 86400 * 1000, &ca, &err), -EINVAL);
        assert_non_null(strstr(err.text, "has expired"));
}

/* What a TLS peer would say of the certificate. */
static int verify(const struct ca *ca, struct str cert_pem, int purpose, const char *host, int64_t at_ms)
{
        X509_STORE *trust = X509_STORE_new();
        X509_STORE_CTX *ctx = X509_STORE_CTX_new();
        CERT_CLEANUP X509 *root = openssl_cert_read(ca_cert_pem(ca));
        CERT_CLEANUP X509 *cert = openssl_cert_read(cert_pem);
        int r = -1;

        assert_non_null(root);
        assert_non_null(cert);
        assert_int_equal(X509_STORE_add_cert(trust, root), 1);
        assert_int_equal(X509_STORE_CTX_init(ctx, trust, cert, NULL), 1);
        X509_STORE_CTX_set_purpose(ctx, purpose);
        X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)(at_ms / 1000));
        X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
        if (X509_verify_cert(ctx) != 1)
                r = X509_STORE_CTX_get_error(ctx);
        else if (!host)
                r = 0;
        else if (X509_check_ip_asc(cert, host, 0) == 1 || X509_check_host(cert, host, 0, 0, NULL) == 1)
                r = 0;
        X509_STORE_CTX_free(ctx);
        X509_STORE_free(trust);
        return r;
}

static void agents_get_certificates(void **state)
{
        struct ca *ca = opened();
        BUF_CLEANUP struct buf key = {0};
        BUF_CLEANUP struct buf csr = {0};
        BUF_CLEANUP struct buf cert = {0};
        BUF_CLEANUP struct buf second = {0};
        struct cert_facts facts, other;
        struct err err = {0};
        X509 *x;

        (void)state;
        assert_int_equal(csr_make(STR("wish"), &key, &csr, &err), 0);
        assert_int_equal(ca_issue_agent(ca, buf_view(&csr), STR("n1"), NOW_MS, 3600, &cert, &facts, &err), 0);
        assert_string_equal(facts.name, "n1"); /* as the server says, not as was wished */
        assert_int_equal(facts.until_ms, NOW_MS + 3600 * 1000);
        assert_int_equal(facts.from_ms, NOW_MS - CA_SKEW_S * 1000);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_CLIENT, NULL, NOW_MS), 0);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, NULL, NOW_MS),
                         X509_V_ERR_INVALID_PURPOSE);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_CLIENT, NULL, NOW_MS + 3601000),
                         X509_V_ERR_CERT_HAS_EXPIRED);
        x = openssl_cert_read(buf_view(&cert));
        assert_int_equal(X509_check_ca(x), 0);
        X509_free(x);
        /* Renewing with the same key: another serial. */
        buf_reset(&csr);
        assert_int_equal(csr_renew(STR("n1"), buf_view(&key), &csr, &err), 0);
        assert_int_equal(ca_issue_agent(ca, buf_view(&csr), STR("n1"), NOW_MS, 3600, &second, &other, &err),
                         0);
        assert_string_not_equal(facts.serial, other.serial);
        assert_int_equal(strlen(facts.serial), 32);
        ca_free(ca);
}

static void another_authority_is_not_believed(void **state)
{
        struct ca *ca = opened(), *other = NULL;
        BUF_CLEANUP struct buf key = {0};
        BUF_CLEANUP struct buf csr = {0};
        BUF_CLEANUP struct buf cert = {0};

        (void)state;
        snprintf(folder, sizeof(folder), "%s/other", top);
        other = opened();
        assert_string_not_equal(ca_fingerprint(ca), ca_fingerprint(other));
        assert_int_equal(csr_make(STR("n1"), &key, &csr, NULL), 0);
        assert_int_equal(ca_issue_agent(other, buf_view(&csr), STR("n1"), NOW_MS, 3600, &cert, NULL, NULL),
                         0);
        assert_int_not_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_CLIENT, NULL, NOW_MS), 0);
        ca_free(other);
        ca_free(ca);
}

static void weak_csr(struct buf *out)
{
        KEY_CLEANUP EVP_PKEY *key = EVP_RSA_gen(1024);
        CSR_CLEANUP X509_REQ *csr = X509_REQ_new();

        assert_int_equal(X509_REQ_set_pubkey(csr, key), 1);
        assert_true(X509_REQ_sign(csr, key, EVP_sha256()) > 0);
        assert_true(openssl_csr_write(csr, out));
}

/* A request for a key that the asker does not hold: another's public key, signed with his own. */
static void stolen_csr(struct buf *out)
{
        KEY_CLEANUP EVP_PKEY *theirs = openssl_key_new();
        KEY_CLEANUP EVP_PKEY *ours = openssl_key_new();
        CSR_CLEANUP X509_REQ *csr = X509_REQ_new();

        assert_int_equal(X509_REQ_set_pubkey(csr, theirs), 1);
        assert_true(X509_REQ_sign(csr, ours, EVP_sha256()) > 0);
        assert_true(openssl_csr_write(csr, out));
}

static void bad_requests_are_refused(void **state)
{
        struct ca *ca = opened();
        BUF_CLEANUP struct buf key = {0};
        BUF_CLEANUP struct buf csr = {0};
        BUF_CLEANUP struct buf weak = {0};
        BUF_CLEANUP struct buf stolen = {0};
        BUF_CLEANUP struct buf cert = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(csr_make(STR("n1"), &key, &csr, &err), 0);
        weak_csr(&weak);
        stolen_csr(&stolen);
        assert_int_equal(ca_issue_agent(ca, STR("rubbish"), STR("n1"), NOW_MS, 60, &cert, NULL, &err),
                         -EINVAL);
        assert_int_equal(ca_issue_agent(ca, STR_NONE, STR("n1"), NOW_MS, 60, &cert, NULL, &err), -EINVAL);
        assert_int_equal(ca_issue_agent(ca, buf_view(&key), STR("n1"), NOW_MS, 60, &cert, NULL, &err),
                         -EINVAL);
        assert_int_equal(ca_issue_agent(ca, buf_view(&weak), STR("n1"), NOW_MS, 60, &cert, NULL, &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "P-256"));
        assert_int_equal(ca_issue_agent(ca, buf_view(&stolen), STR("n1"), NOW_MS, 60, &cert, NULL, &err),
                         -EINVAL);
        assert_non_null(strstr(err.text, "not signed with its key"));
        assert_int_equal(ca_issue_agent(ca, buf_view(&csr), STR("../n1"), NOW_MS, 60, &cert, NULL, &err),
                         -EINVAL);
        assert_int_equal(cert.n, 0);
        assert_int_equal(csr_make(STR(""), &key, &csr, &err), -EINVAL);
        assert_int_equal(csr_make(STR("a b"), &key, &csr, &err), -EINVAL);
        assert_int_equal(csr_renew(STR("n1"), STR("not a key"), &csr, &err), -EINVAL);
        ca_free(ca);
}

static void servers_have_names(void **state)
{
        struct ca *ca = opened();
        const struct str names[] = {STR("host.example.org"), STR("10.1.2.3"), STR("::1")};
        const struct str bad[] = {STR("a,DNS:b")};
        BUF_CLEANUP struct buf key = {0};
        BUF_CLEANUP struct buf cert = {0};
        struct err err = {0};

        (void)state;
        assert_int_equal(ca_issue_server(ca, names, 3, NOW_MS, 86400, &cert, &key, &err), 0);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, "droverd", NOW_MS), 0);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, "host.example.org", NOW_MS), 0);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, "10.1.2.3", NOW_MS), 0);
        assert_int_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, "::1", NOW_MS), 0);
        assert_int_not_equal(
                verify(ca, buf_view(&cert), X509_PURPOSE_SSL_SERVER, "other.example.org", NOW_MS), 0);
        assert_int_not_equal(verify(ca, buf_view(&cert), X509_PURPOSE_SSL_CLIENT, NULL, NOW_MS), 0);
        assert_int_equal(ca_issue_server(ca, bad, 1, NOW_MS, 86400, &cert, &key, &err), -EINVAL);
        assert_non_null(strstr(err.text, "a,DNS:b"));
        ca_free(ca);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
        const struct CMUnitTest tests[] = {
                T(is_made_once),
                T(damage_is_named),
                T(end_is_noticed),
                T(agents_get_certificates),
                T(another_authority_is_not_believed),
                T(bad_requests_are_refused),
                T(servers_have_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
