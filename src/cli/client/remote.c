/* With libcurl (base/system/libcurl.h) comes OpenSSL, whose few calls for the check of the CA are taken
 * from libcrypto as libcurl loaded it. The calls have the types of the headers, so a mistake in their use
 * shows when building.
 *
 * Belief: libcurl's own check is off, and in its place the handshake's certificate check is ours
 * (accept_chain): the chain that the server sent must hold a certificate with the fingerprint of the token,
 * and the server's own must be signed by it, in time, and for use by a server, as X509_verify_cert with that
 * one trusted certificate says.
 */
#include "cli/client/remote.h"

#include <dlfcn.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/mem.h"
#include "base/system/libcurl.h"

#define CRYPTO_CALLS(X)                                                                                      \
        X(X509_STORE_CTX_get0_untrusted)                                                                     \
        X(X509_STORE_CTX_set0_trusted_stack)                                                                 \
        X(X509_STORE_CTX_set_error)                                                                          \
        X(X509_verify_cert)                                                                                  \
        X(X509_digest)                                                                                       \
        X(EVP_sha256)                                                                                        \
        X(OPENSSL_sk_num)                                                                                    \
        X(OPENSSL_sk_value)                                                                                  \
        X(OPENSSL_sk_new_null)                                                                               \
        X(OPENSSL_sk_push)                                                                                   \
        X(OPENSSL_sk_free)
#define SSL_CALLS(X)  X(SSL_CTX_set_cert_verify_callback)
#define DECLARE(name) __typeof__(&(name)) p_##name;

struct remote {
        CURL *curl;
        struct curl_slist *headers; /* of every call: the token */
        char *address;              /* without a slash at the end */
        unsigned char fingerprint[32];
        bool distrusted; /* accept_chain said no in this call */
        CRYPTO_CALLS(DECLARE)
        SSL_CALLS(DECLARE)
};

#define TAKE(name)                                                                                           \
        r->p_##name = (__typeof__(r->p_##name))dlsym(library, #name);                                        \
        if (!r->p_##name)                                                                                    \
                return err_set(err, API_BROKEN, "%s is not in the library that was found: %s", #name,        \
                               dlerror());

static int remote_load(struct remote *r, struct err *err)
{
        void *library;

        if (libcurl_open(err) < 0)
                return API_BROKEN;
        library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return err_set(err, API_BROKEN, "%s", dlerror());
        CRYPTO_CALLS(TAKE)
        library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
        if (!library)
                return err_set(err, API_BROKEN, "%s", dlerror());
        SSL_CALLS(TAKE)
        return 0;
}

/* drover-user-token.v1.<fingerprint>.<id>.<secret> */
static int read_token(struct remote *r, struct str token, struct err *err)
{
        struct str rest = token, kind = STR_NONE, version = STR_NONE, fingerprint = STR_NONE;

        str_cut(&rest, '.', &kind);
        str_cut(&rest, '.', &version);
        str_cut(&rest, '.', &fingerprint);
        if (!str_eqz(kind, "drover-user-token") || !str_eqz(version, "v1") || str_find(token, '\n') >= 0 ||
            hex_read(fingerprint, r->fingerprint, 32) != 0)
                return err_set(err, API_BROKEN, "the token is not one of `drover token user`");
        return 0;
}

static X509 *find_ca(struct remote *r, const STACK_OF(X509) * chain)
{
        for (int i = 0; i < r->p_OPENSSL_sk_num((const OPENSSL_STACK *)chain); i++) {
                X509 *cert = r->p_OPENSSL_sk_value((const OPENSSL_STACK *)chain, i);
                unsigned char digest[EVP_MAX_MD_SIZE];
                unsigned n = 0;

                if (r->p_X509_digest(cert, r->p_EVP_sha256(), digest, &n) == 1 &&
                    n == sizeof(r->fingerprint) && memcmp(digest, r->fingerprint, n) == 0)
                        return cert;
        }
        return NULL;
}

static int accept_chain(X509_STORE_CTX *ctx, void *arg)
{
        struct remote *r = arg;
        X509 *ca = find_ca(r, r->p_X509_STORE_CTX_get0_untrusted(ctx));
        OPENSSL_STACK *trusted = r->p_OPENSSL_sk_new_null();
        int good = 0;

        if (ca && trusted && r->p_OPENSSL_sk_push(trusted, ca) > 0) {
                r->p_X509_STORE_CTX_set0_trusted_stack(ctx, (STACK_OF(X509) *)trusted);
                good = r->p_X509_verify_cert(ctx) == 1;
                /* The handshake looks at the context again; it must not find our stack. */
                r->p_X509_STORE_CTX_set0_trusted_stack(ctx, NULL);
        } else {
                r->p_X509_STORE_CTX_set_error(ctx, X509_V_ERR_CERT_UNTRUSTED);
        }
        r->p_OPENSSL_sk_free(trusted);
        r->distrusted = !good;
        return good;
}

static CURLcode prepare_tls(CURL *curl, void *ssl_context, void *arg)
{
        struct remote *r = arg;

        (void)curl;
        r->p_SSL_CTX_set_cert_verify_callback(ssl_context, accept_chain, r);
        return CURLE_OK;
}

int remote_new(const char *address, const char *token, struct remote **ret, struct err *err)
{
        struct remote *r;
        struct buf header BUF_CLEANUP = {0};
        int rc;

        r = mem_new(struct remote);
        rc = read_token(r, str_of(token), err);
        if (rc == 0)
                rc = remote_load(r, err);
        if (rc == 0 && !(r->curl = libcurl.p_curl_easy_init()))
                rc = err_set(err, API_BROKEN, "libcurl doesn't start");
        if (rc != 0) {
                free(r);
                return rc;
        }
        r->address = mem_dupz(address);
        while (str_ends(str_of(r->address), STR("/")))
                r->address[strlen(r->address) - 1] = '\0';
        buf_printf(&header, "Authorization: Bearer %s", token);
        r->headers = libcurl.p_curl_slist_append(NULL, buf_z(&header));
        *ret = r;
        return 0;
}

void remote_free(struct remote *r)
{
        if (!r)
                return;
        libcurl.p_curl_slist_free_all(r->headers);
        libcurl.p_curl_easy_cleanup(r->curl);
        free(r->address);
        free(r);
}

struct sink {
        struct remote *r;
        const struct api_request *request;
        struct api_answer *answer;
        int error; /* writing to the file */
};

static size_t take_head(char *p, size_t size, size_t count, void *arg)
{
        struct sink *s = arg;
        struct str value = str_make(p, size * count), name;

        str_cut(&value, ':', &name);
        if (str_ieqz(name, "Drover-Standby") && str_to_i64(str_trim(value), &s->answer->standby_ms) != 0)
                s->answer->standby_ms = -1;
        return size * count;
}

static size_t take_body(char *p, size_t size, size_t count, void *arg)
{
        struct sink *s = arg;
        size_t n = size * count, at = 0;
        long status = 0;

        libcurl.p_curl_easy_getinfo(s->r->curl, CURLINFO_RESPONSE_CODE, &status);
        if (!s->request->to_file || status / 100 != 2) {
                buf_add(&s->answer->body, p, n);
                return s->answer->body.overflow ? 0 : n;
        }
        while (at < n) {
                ssize_t w = write(s->request->fd, p + at, n - at);

                if (w < 0 && errno == EINTR)
                        continue;
                if (w < 0) {
                        s->error = errno;
                        return 0;
                }
                at += (size_t)w;
        }
        s->answer->written += n;
        return n;
}

/* Options that a call sets are all set again for the next: nothing of the last one is left. */
static void prepare_call(struct remote *r, const struct api_request *request, struct sink *sink,
                         const char *url, struct curl_slist *headers)
{
        const char *method = request->method ? request->method : "GET";

        libcurl.p_curl_easy_reset(r->curl);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_URL, url);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "https");
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_NOPROXY, "*");
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, headers);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
        /* Verification must be asked for, else the handshake's callback isn't asked; the name plays no part.
         */
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_SSL_VERIFYPEER, 1L);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_SSL_VERIFYHOST, 0L);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_CAINFO, NULL);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_CAPATH, NULL);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_SSL_CTX_FUNCTION, prepare_tls);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_SSL_CTX_DATA, r);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT_MS, 20000L);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS,
                                   (long)(request->timeout_ms ? request->timeout_ms : 60000));
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, take_body);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, sink);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, take_head);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, sink);
        if (strcmp(method, "GET") == 0)
                return;
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_CUSTOMREQUEST, method);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.n);
        libcurl.p_curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, request->body.p ? request->body.p : "");
}

static int failure(struct remote *r, CURLcode rc, const struct sink *sink, struct err *err)
{
        if (sink->error)
                return err_set(err, API_BROKEN, "%s", strerror(sink->error));
        if (r->distrusted)
                return err_set(
                        err, API_NO_SERVER,
                        "%s is not the server that the token is for: its certificate is not signed by that "
                        "server's CA",
                        r->address);
        switch (rc) {
        case CURLE_COULDNT_RESOLVE_HOST:
        case CURLE_COULDNT_CONNECT:
        case CURLE_SSL_CONNECT_ERROR:
                return err_set(err, API_NO_SERVER, "no Drover server answers at %s: %s", r->address,
                               libcurl.p_curl_easy_strerror(rc));
        case CURLE_GOT_NOTHING:
                return err_set(err, API_LOST,
                               "%s: %s: is that the address of --api-listen, and not the one for agents?",
                               r->address, libcurl.p_curl_easy_strerror(rc));
        case CURLE_WRITE_ERROR: return err_set(err, API_BROKEN, "the server's answer is too big");
        case CURLE_URL_MALFORMAT: return err_set(err, API_BROKEN, "%s is not an address", r->address);
        default: return err_set(err, API_LOST, "%s: %s", r->address, libcurl.p_curl_easy_strerror(rc));
        }
}

int remote_call(struct remote *r, const struct api_request *request, struct api_answer *ret, struct err *err)
{
        struct sink sink = {.r = r, .request = request, .answer = ret};
        struct buf url BUF_CLEANUP = {0}, type BUF_CLEANUP = {0};
        struct curl_slist own = {0}, *headers = r->headers;
        long status = 0;
        CURLcode rc;

        ret->body.max = 1u << 30;
        r->distrusted = false;
        buf_printf(&url, "%s%s", r->address, request->path);
        if (request->method && strcmp(request->method, "GET") != 0) {
                buf_printf(&type, "Content-Type: %s", request->type ? request->type : "application/json");
                buf_z(&type);
                own = (struct curl_slist){.data = type.p, .next = r->headers};
                headers = &own;
        }
        prepare_call(r, request, &sink, buf_z(&url), headers);
        rc = libcurl.p_curl_easy_perform(r->curl);
        if (rc != CURLE_OK)
                return failure(r, rc, &sink, err);
        libcurl.p_curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
        ret->status = (int)status;
        return 0;
}
