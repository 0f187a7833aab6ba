/* A blob has a version, the type, times, a nonce, the ciphertext with its tag, and the URLs it is for. The
 * blob's name is authenticated with the data, followed by a zero and the URLs if there are any; version 1
 * had no URLs. */
#include "auth/credentials.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "auth/key_file.h"
#include "base/job/file_id.h"
#include "base/map.h"
#include "base/pack.h"

#define PREFIX  "credential/"
#define VERSION 2
#define KEY     KEY_FILE_BYTES
#define NONCE   12
#define TAG     16

struct entry {
        struct credential c;
        char *owner, *name, *urls;
        unsigned char nonce[NONCE];
        char *sealed; /* ciphertext, then tag */
        size_t sealed_n;
};
struct credentials {
        unsigned char key[KEY];
        struct map *all; /* blob name -> entry */
};

static void credentials_entry_free(struct entry *e)
{
        if (!e)
                return;
        free(e->owner);
        free(e->name);
        free(e->urls);
        free(e->sealed);
        free(e);
}

static void credentials_blob_name(struct buf *out, struct str owner, struct str name)
{
        buf_printf(out, PREFIX STR_FMT "/" STR_FMT, STR_ARG(owner), STR_ARG(name));
}

/* ---- encryption */

static void authenticated(struct buf *out, struct str name, const struct entry *e)
{
        buf_str(out, name);
        if (*e->c.urls) {
                buf_char(out, 0);
                buf_addz(out, e->c.urls);
        }
}

static bool seal(const struct credentials *cs, struct str name, struct str data, struct entry *e)
{
        BUF_CLEANUP struct buf with = {0};
        EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
        int n = 0, last = 0;
        bool good;

        authenticated(&with, name, e);
        e->sealed_n = data.n + TAG;
        e->sealed = mem_alloc(e->sealed_n);
        good = x && RAND_bytes(e->nonce, NONCE) == 1 &&
               EVP_EncryptInit_ex(x, EVP_aes_256_gcm(), NULL, cs->key, e->nonce) == 1 &&
               EVP_EncryptUpdate(x, NULL, &n, (const unsigned char *)with.p, (int)with.n) == 1 &&
               EVP_EncryptUpdate(x, (unsigned char *)e->sealed, &n, (const unsigned char *)data.p,
                                 (int)data.n) == 1 &&
               EVP_EncryptFinal_ex(x, (unsigned char *)e->sealed + n, &last) == 1 &&
               EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_GET_TAG, TAG, e->sealed + data.n) == 1;
        EVP_CIPHER_CTX_free(x);
        return good;
}

static bool unseal(const struct credentials *cs, struct str name, const struct entry *e, char *room)
{
        BUF_CLEANUP struct buf with = {0};
        EVP_CIPHER_CTX *x = EVP_CIPHER_CTX_new();
        size_t size = e->sealed_n - TAG;
        int n = 0, last = 0;

        authenticated(&with, name, e);
        bool good = x && EVP_DecryptInit_ex(x, EVP_aes_256_gcm(), NULL, cs->key, e->nonce) == 1 &&
                    EVP_DecryptUpdate(x, NULL, &n, (const unsigned char *)with.p, (int)with.n) == 1 &&
                    EVP_DecryptUpdate(x, (unsigned char *)room, &n, (const unsigned char *)e->sealed,
                                      (int)size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(x, EVP_CTRL_GCM_SET_TAG, TAG, e->sealed + size) == 1 &&
                    EVP_DecryptFinal_ex(x, (unsigned char *)room + n, &last) == 1;

        EVP_CIPHER_CTX_free(x);
        return good;
}

/* ---- the table */

static struct entry *credentials_entry_new(struct str owner, struct str name, struct str urls)
{
        struct entry *e = mem_new(struct entry);

        e->c.urls = e->urls = str_dupz(urls);
        e->c.owner = e->owner = str_dupz(owner);
        e->c.name = e->name = str_dupz(name);
        return e;
}

static unsigned credentials_count_of(const struct credentials *cs, struct str owner)
{
        const struct credential *c;
        unsigned n = 0;

        for (size_t at = 0; credentials_next(cs, &at, &c);)
                n += str_eqz(owner, c->owner);
        return n;
}

static void pack_entry(struct buf *out, const struct entry *e)
{
        pack_u64(out, VERSION);
        pack_u64(out, e->c.type);
        pack_i64(out, e->c.updated_ms);
        pack_i64(out, e->c.expires_ms);
        pack_str(out, str_make((const char *)e->nonce, NONCE));
        pack_str(out, str_make(e->sealed, e->sealed_n));
        pack_str(out, str_of(e->urls));
}

/* Converts the URLs to the stored form. Returns 0, -EINVAL or -E2BIG. */
static int read_urls(const struct credential_new *what, struct buf *out, struct err *err)
{
        if (what->url_count > CREDENTIAL_URLS_MAX)
                return err_set(err, -E2BIG, "a credential is for %u URLs at most", CREDENTIAL_URLS_MAX);
        for (size_t i = 0; i < what->url_count; i++) {
                BUF_CLEANUP struct buf one = {0};
                struct str url = what->urls[i];

                if (str_search(url, STR("://")) <= 0 || str_find(url, ' ') >= 0 || !file_prefix(url, &one))
                        return err_set(err, -EINVAL, "what it is for, " STR_FMT ", is no URL", STR_ARG(url));
                if (what->type == CREDENTIAL_TOKEN && str_starts(buf_view(&one), STR("http://")))
                        return err_set(err, -EINVAL, STR_FMT ": a token goes over https only", STR_ARG(url));
                if (out->n)
                        buf_char(out, ' ');
                buf_str(out, buf_view(&one));
        }
        return 0;
}

int credentials_put(struct credentials *cs, struct str owner, struct str name,
                    const struct credential_new *what, int64_t now_ms, struct store_batch *batch,
                    struct err *err)
{
        BUF_CLEANUP struct buf key = {0}, value = {0}, urls = {0};
        int64_t expires_ms = 0;
        const struct credential *before = credentials_find(cs, owner, name);
        struct entry *e;
        int r;

        if (!credential_name_ok(name))
                return err_set(err, -EINVAL, "a name has up to %u letters, digits and '_', '-', '.', '@'",
                               CREDENTIAL_NAME_MAX);
        r = credential_look(what->type, what->data, &expires_ms, err);
        if (r == 0)
                r = read_urls(what, &urls, err);
        if (r < 0)
                return r;
        if (what->keep_urls && before)
                buf_addz(&urls, before->urls);
        credentials_blob_name(&key, owner, name);
        if (!before && (map_count(cs->all) >= CREDENTIALS_MAX ||
                        credentials_count_of(cs, owner) >= CREDENTIALS_OF_ONE_MAX))
                return err_set(err, -E2BIG, "a user may have %u credentials, and all together %u",
                               CREDENTIALS_OF_ONE_MAX, CREDENTIALS_MAX);
        e = credentials_entry_new(owner, name, buf_view(&urls));
        e->c.type = what->type;
        e->c.updated_ms = now_ms;
        e->c.expires_ms = expires_ms;
        if (!seal(cs, buf_view(&key), what->data, e)) {
                credentials_entry_free(e);
                return err_set(err, -EIO, "it cannot be encrypted");
        }
        pack_entry(&value, e);
        store_batch_blob_put(batch, buf_view(&key), buf_view(&value));
        credentials_entry_free(map_put(cs->all, buf_view(&key), e));
        return 0;
}

bool credentials_remove(struct credentials *cs, struct str owner, struct str name, struct store_batch *batch)
{
        BUF_CLEANUP struct buf key = {0};
        struct entry *e;

        credentials_blob_name(&key, owner, name);
        e = map_take(cs->all, buf_view(&key));
        if (!e)
                return false;
        store_batch_blob_delete(batch, buf_view(&key));
        credentials_entry_free(e);
        return true;
}

const struct credential *credentials_find(const struct credentials *cs, struct str owner, struct str name)
{
        BUF_CLEANUP struct buf key = {0};
        const struct entry *e;

        credentials_blob_name(&key, owner, name);
        e = map_get(cs->all, buf_view(&key));
        return e ? &e->c : NULL;
}

bool credentials_next(const struct credentials *cs, size_t *at, const struct credential **ret)
{
        void *v;

        if (!map_next(cs->all, at, NULL, &v))
                return false;
        *ret = &((struct entry *)v)->c;
        return true;
}

int credentials_read(const struct credentials *cs, const struct credential *c, struct buf *ret_data)
{
        const struct entry *e = (const struct entry *)(const void *)c;
        BUF_CLEANUP struct buf key = {0};
        size_t n = e->sealed_n - TAG;
        char *room = buf_room(ret_data, n);

        credentials_blob_name(&key, str_of(c->owner), str_of(c->name));
        if (!unseal(cs, buf_view(&key), e, room)) {
                explicit_bzero(room, n);
                return -EBADMSG;
        }
        ret_data->n += n;
        return 0;
}

/* ---- opening */

struct loading {
        struct credentials *cs;
        struct store *store;
};

static int on_blob(void *arg, struct str key)
{
        struct loading *l = arg;
        BUF_CLEANUP struct buf value = {0};
        struct str owner, name = str_skip(key, sizeof(PREFIX) - 1);
        struct entry *e;

        if (!str_cut(&name, '/', &owner) || store_blob_get(l->store, key, &value, NULL) != 0)
                return 0;
        struct unpack u = unpack_from(buf_view(&value));
        uint64_t version = unpack_u64(&u);
        enum credential_type type = (enum credential_type)unpack_max(&u, CREDENTIAL_FILE);
        int64_t updated_ms = unpack_i64(&u), expires_ms = unpack_i64(&u);
        struct str nonce = unpack_str(&u), sealed = unpack_str(&u), urls = STR_NONE;
        if (version > 1)
                urls = unpack_str(&u);
        if (version == 0 || version > VERSION || !unpack_done(&u) || nonce.n != NONCE || sealed.n <= TAG)
                return 0;
        e = credentials_entry_new(owner, name, urls);
        e->c.type = type;
        e->c.updated_ms = updated_ms;
        e->c.expires_ms = expires_ms;
        memcpy(e->nonce, nonce.p, NONCE);
        e->sealed = mem_dup(sealed.p, sealed.n);
        e->sealed_n = sealed.n;
        credentials_entry_free(map_put(l->cs->all, key, e));
        return 0;
}

int credentials_open(struct store *s, const char *key_path, struct credentials **ret, struct err *err)
{
        struct credentials *cs = mem_new(struct credentials);
        struct loading l = {cs, s};
        int r;

        cs->all = map_new();
        *ret = cs;
        r = key_file_open(
                key_path,
                "put the right one back, or remove it and have the users add their credentials again",
                cs->key, err);
        return r < 0 ? r : store_blob_list(s, STR(PREFIX), on_blob, &l, err);
}

void credentials_free(struct credentials *cs)
{
        void *v;

        if (!cs)
                return;
        for (size_t at = 0; map_next(cs->all, &at, NULL, &v);)
                credentials_entry_free(v);
        map_free(cs->all);
        explicit_bzero(cs->key, KEY);
        free(cs);
}
