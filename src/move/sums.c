#include "move/sums.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/format/hex.h"
#include "base/mem.h"

#define ADLER_MODULO 65521u
#define ADLER_STEP   5552u /* number of bytes that cannot overflow the second sum (RFC 1950, 9) */

struct sums {
        EVP_MD_CTX *sha256, *md5;
        uint32_t low, high; /* the two sums of Adler-32 */
};

static const struct {
        const char *name, *other;
        size_t digits;
} types[] = {[SUM_NONE] = {"", "", 0},
             [SUM_SHA256] = {"sha256", "sha-256", 64},
             [SUM_ADLER32] = {"adler32", "adler-32", 8},
             [SUM_MD5] = {"md5", "md-5", 32}};

struct sums *sums_new(bool sha256, bool md5)
{
        struct sums *s = mem_new(struct sums);

        s->sha256 = sha256 ? EVP_MD_CTX_new() : NULL;
        s->md5 = md5 ? EVP_MD_CTX_new() : NULL;
        sums_restart(s);
        return s;
}

void sums_free(struct sums *s)
{
        if (!s)
                return;
        EVP_MD_CTX_free(s->sha256);
        EVP_MD_CTX_free(s->md5);
        free(s);
}

void sums_restart(struct sums *s)
{
        if (s->sha256)
                EVP_DigestInit_ex(s->sha256, EVP_sha256(), NULL);
        if (s->md5)
                EVP_DigestInit_ex(s->md5, EVP_md5(), NULL);
        s->low = 1;
        s->high = 0;
}

static void adler_add(struct sums *s, const unsigned char *p, size_t n)
{
        uint32_t low = s->low, high = s->high;

        while (n > 0) {
                size_t step = n < ADLER_STEP ? n : ADLER_STEP;

                n -= step;
                while (step-- > 0) {
                        low += *p++;
                        high += low;
                }
                low %= ADLER_MODULO;
                high %= ADLER_MODULO;
        }
        s->low = low;
        s->high = high;
}

void sums_add(struct sums *s, const void *p, size_t n)
{
        if (s->sha256)
                EVP_DigestUpdate(s->sha256, p, n);
        if (s->md5)
                EVP_DigestUpdate(s->md5, p, n);
        adler_add(s, p, n);
}

static void digest_so_far(const EVP_MD_CTX *of, unsigned bytes, char ret[SUMS_TEXT])
{
        unsigned char out[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *copy = EVP_MD_CTX_new();

        EVP_MD_CTX_copy_ex(copy, of);
        EVP_DigestFinal_ex(copy, out, NULL);
        EVP_MD_CTX_free(copy);
        hex_print(ret, out, bytes);
}

bool sums_read(const struct sums *s, enum sum_type type, char ret[SUMS_TEXT])
{
        switch (type) {
        case SUM_SHA256:
                if (s->sha256)
                        digest_so_far(s->sha256, 32, ret);
                return s->sha256 != NULL;
        case SUM_ADLER32: snprintf(ret, SUMS_TEXT, "%04x%04x", s->high, s->low); return true;
        case SUM_MD5:
                if (s->md5)
                        digest_so_far(s->md5, 16, ret);
                return s->md5 != NULL;
        case SUM_NONE: break;
        }
        return false;
}

const char *sum_name(enum sum_type type)
{
        return types[type].name;
}

bool sum_parse(struct str text, struct sum *ret)
{
        struct str hex = str_trim(text), name;
        struct sum s = {SUM_NONE, ""};

        if (!str_cut(&hex, str_find(hex, ':') >= 0 ? ':' : '=', &name))
                return false;
        for (size_t i = SUM_SHA256; i < sizeof(types) / sizeof(*types); i++)
                if (str_ieqz(name, types[i].name) || str_ieqz(name, types[i].other))
                        s.type = (enum sum_type)i;
        if (s.type == SUM_NONE || hex.n > types[s.type].digits || hex.n == 0 ||
            (hex.n < types[s.type].digits && s.type != SUM_ADLER32)) /* some stores omit its leading zeros */
                return false;
        memset(s.hex, '0', types[s.type].digits - hex.n);
        for (size_t i = 0; i < hex.n; i++) {
                if (!isxdigit((unsigned char)hex.p[i]))
                        return false;
                s.hex[types[s.type].digits - hex.n + i] = (char)tolower((unsigned char)hex.p[i]);
        }
        *ret = s;
        return true;
}
