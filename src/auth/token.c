#include "auth/token.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include "auth/csr.h"
#include "base/pack.h"

#define RECORD_VERSION 3 /* version 1 had no labels, version 2 no `most` */

static const char *const kind_names[] = {[TOKEN_AGENT] = "agent", [TOKEN_USER] = "user"};

const char *token_kind_name(enum token_kind k)
{
        return kind_names[k];
}

int token_kind_parse(struct str text, enum token_kind *ret)
{
        for (int i = 0; i < 2; i++)
                if (str_eqz(text, kind_names[i])) {
                        *ret = (enum token_kind)i;
                        return 0;
                }
        return -EINVAL;
}

const char *token_error_text(int code)
{
        switch ((enum token_error)code) {
        case TOKEN_UNKNOWN: return "this token is not known here: ask for a new one";
        case TOKEN_EXPIRED: return "this token has expired: ask for a new one";
        case TOKEN_USED_UP: return "this token was already used as often as it may be: ask for a new one";
        case TOKEN_OTHER_KIND: return "this token is for another purpose";
        case TOKEN_OTHER_CA: return "this token was made by another server";
        }
        return "this token is not valid";
}

static bool is_hex(struct str s, size_t n)
{
        if (s.n != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
                        return false;
        return true;
}

int token_text_parse(struct str text, struct token_text *ret)
{
        struct token_text t = {0};
        struct str rest = text, word, version;

        if (text.n > TOKEN_TEXT_MAX || !str_cut(&rest, '.', &word) || !str_cut(&rest, '.', &version) ||
            !str_cut(&rest, '.', &t.fingerprint) || !str_cut(&rest, '.', &t.id))
                return -EINVAL;
        t.secret = rest;
        if (str_eqz(word, "drover-agent-token"))
                t.kind = TOKEN_AGENT;
        else if (str_eqz(word, "drover-user-token"))
                t.kind = TOKEN_USER;
        else
                return -EINVAL;
        if (!str_eqz(version, "v1") || !is_hex(t.fingerprint, 64) || !is_hex(t.id, TOKEN_ID_TEXT - 1) ||
            !is_hex(t.secret, TOKEN_SECRET_TEXT - 1))
                return -EINVAL;
        *ret = t;
        return 0;
}

static void random_hex(char *ret, size_t bytes)
{
        unsigned char raw[32];

        if (bytes > sizeof(raw) || RAND_bytes(raw, (int)bytes) != 1)
                abort(); /* without random numbers no secret can be made */
        for (size_t i = 0; i < bytes; i++) {
                ret[2 * i] = "0123456789abcdef"[raw[i] >> 4];
                ret[2 * i + 1] = "0123456789abcdef"[raw[i] & 15];
        }
        ret[2 * bytes] = '\0';
        OPENSSL_cleanse(raw, sizeof(raw));
}

void token_random(char ret[TOKEN_SECRET_TEXT])
{
        random_hex(ret, (TOKEN_SECRET_TEXT - 1) / 2);
}

static void hash_secret(struct str secret, unsigned char ret[32])
{
        SHA256((const unsigned char *)secret.p, secret.n, ret);
}

void token_make(struct token *t, struct str fingerprint, struct buf *ret_text)
{
        char secret[TOKEN_SECRET_TEXT];

        random_hex(t->id, (TOKEN_ID_TEXT - 1) / 2);
        token_random(secret);
        hash_secret(str_of(secret), t->hash);
        buf_printf(ret_text, "drover-%s-token.v1." STR_FMT ".%s.%s", kind_names[t->kind],
                   STR_ARG(fingerprint), t->id, secret);
        OPENSSL_cleanse(secret, sizeof(secret));
}

void token_pack(struct buf *to, const struct token *t)
{
        pack_u64(to, t->most.n ? RECORD_VERSION : RECORD_VERSION - 1); /* an older server reads it */
        pack_str(to, str_make((const char *)t->hash, sizeof(t->hash)));
        pack_u64(to, t->kind);
        pack_u64(to, t->role);
        pack_u64(to, t->limited);
        pack_u64(to, t->uses_left);
        pack_i64(to, t->created_ms);
        pack_i64(to, t->expires_ms);
        pack_str(to, t->name);
        pack_str(to, t->created_by);
        pack_str(to, t->tags);
        pack_str(to, t->owners);
        pack_str(to, t->labels);
        if (t->most.n)
                pack_str(to, t->most);
}

int token_unpack(struct token *t, struct str id, struct str record)
{
        struct unpack u = unpack_from(record);
        struct token got = {0};
        uint64_t version = unpack_u64(&u);
        struct str hash;

        if (version == 0 || version > RECORD_VERSION || !is_hex(id, TOKEN_ID_TEXT - 1))
                return -EBADMSG;
        memcpy(got.id, id.p, id.n);
        hash = unpack_str(&u);
        got.kind = (enum token_kind)unpack_max(&u, TOKEN_USER);
        got.role = (enum role)unpack_max(&u, ROLE_ADMIN);
        got.limited = unpack_max(&u, 1);
        got.uses_left = (uint32_t)unpack_max(&u, UINT32_MAX);
        got.created_ms = unpack_i64(&u);
        got.expires_ms = unpack_i64(&u);
        got.name = unpack_str(&u);
        got.created_by = unpack_str(&u);
        got.tags = unpack_str(&u);
        got.owners = unpack_str(&u);
        if (version > 1)
                got.labels = unpack_str(&u);
        if (version > 2)
                got.most = unpack_str(&u);
        if (!unpack_done(&u) || hash.n != sizeof(got.hash))
                return -EBADMSG;
        memcpy(got.hash, hash.p, hash.n);
        *t = got;
        return 0;
}

int token_check(const struct token *t, const struct token_text *text, enum token_kind wanted, int64_t now_ms)
{
        unsigned char hash[32];

        hash_secret(text->secret, hash);
        if (CRYPTO_memcmp(hash, t->hash, sizeof(hash)) != 0)
                return TOKEN_UNKNOWN;
        if (t->kind != text->kind || t->kind != wanted)
                return TOKEN_OTHER_KIND;
        if (t->expires_ms && now_ms >= t->expires_ms)
                return TOKEN_EXPIRED;
        return t->limited && t->uses_left == 0 ? TOKEN_USED_UP : 0;
}
