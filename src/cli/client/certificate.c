/* DER is walked to the field "validity": Certificate { tbsCertificate { [0] version, serialNumber, signature,
 * issuer, validity { notBefore, notAfter } ... } }. */
#include "cli/client/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/system/fs.h"

#define FILE_MAX         (1u << 20)
#define SEQUENCE         0x30
#define VERSION          0xa0
#define UTC_TIME         0x17
#define GENERALIZED_TIME 0x18

/* The text between the lines of dashes, without them. */
static bool pem_body(struct str text, struct str *ret)
{
        static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
        ptrdiff_t from = str_search(text, str_of(begin));

        if (from < 0)
                return false;
        text = str_skip(text, (size_t)from + strlen(begin));
        ptrdiff_t to = str_search(text, str_of(end));
        if (to < 0)
                return false;
        *ret = str_head(text, (size_t)to);
        return true;
}

static bool base64(struct str text, struct buf *out)
{
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        uint32_t bits = 0;
        unsigned count = 0;

        for (size_t i = 0; i < text.n && text.p[i] != '='; i++) {
                const char *at = text.p[i] ? strchr(digits, text.p[i]) : NULL;

                if (strchr(" \t\r\n", text.p[i]) && text.p[i])
                        continue;
                if (!at)
                        return false;
                bits = bits << 6 | (uint32_t)(at - digits);
                count += 6;
                if (count >= 8) {
                        count -= 8;
                        buf_char(out, (char)(bits >> count & 0xff));
                }
        }
        return true;
}

/* Takes the next element: its tag and its content. */
static bool element(struct str *rest, unsigned char *ret_tag, struct str *ret)
{
        if (rest->n < 2)
                return false;
        size_t n = (unsigned char)rest->p[1], head = 2;

        *ret_tag = (unsigned char)rest->p[0];
        if (n >= 0x80) {
                size_t bytes = n & 0x7f;

                if (bytes == 0 || bytes > 3 || rest->n < 2 + bytes)
                        return false;
                n = 0;
                for (size_t i = 0; i < bytes; i++)
                        n = n << 8 | (unsigned char)rest->p[2 + i];
                head += bytes;
        }
        if (n > rest->n - head)
                return false;
        *ret = str_head(str_skip(*rest, head), n);
        *rest = str_skip(*rest, head + n);
        return true;
}

/* YYMMDDHHMMSSZ, where YY below 50 are years after 2000, or YYYYMMDDHHMMSSZ. */
static bool time_of(struct str *rest, int64_t *ret_ms)
{
        unsigned char tag;
        struct str text;
        int v[7] = {0};

        if (!element(rest, &tag, &text) || (tag != UTC_TIME && tag != GENERALIZED_TIME))
                return false;
        size_t century = tag == GENERALIZED_TIME ? 2 : 0;
        if (text.n != 13 + century || text.p[text.n - 1] != 'Z')
                return false;
        for (size_t i = 0; i < text.n - 1; i++) {
                if (text.p[i] < '0' || text.p[i] > '9')
                        return false;
                v[i / 2] = v[i / 2] * 10 + (text.p[i] - '0');
        }
        int year = century ? v[0] * 100 + v[1] : v[0] < 50 ? 2000 + v[0] : 1900 + v[0];
        const int *f = v + (century ? 2 : 1);
        struct tm tm = {.tm_year = year - 1900,
                        .tm_mon = f[0] - 1,
                        .tm_mday = f[1],
                        .tm_hour = f[2],
                        .tm_min = f[3],
                        .tm_sec = f[4]};
        *ret_ms = (int64_t)timegm(&tm) * 1000;
        return true;
}

static bool validity(struct str der, struct certificate_times *ret)
{
        struct str certificate, tbs, part;
        unsigned char tag;

        if (!element(&der, &tag, &certificate) || tag != SEQUENCE || !element(&certificate, &tag, &tbs) ||
            tag != SEQUENCE || !element(&tbs, &tag, &part))
                return false;
        if (tag == VERSION && !element(&tbs, &tag, &part))
                return false;
        for (int i = 0; i < 3; i++) /* after the serial number: signature, issuer, validity */
                if (!element(&tbs, &tag, &part) || tag != SEQUENCE)
                        return false;
        return time_of(&part, &ret->not_before_ms) && time_of(&part, &ret->not_after_ms);
}

int certificate_read(const char *path, struct certificate_times *ret)
{
        struct buf text BUF_CLEANUP = {0}, der BUF_CLEANUP = {0};
        struct certificate_times t;
        struct str body;
        int rc = fs_read(AT_FDCWD, path, FILE_MAX, &text, NULL);

        if (rc != 0)
                return rc;
        if (!pem_body(buf_view(&text), &body) || !base64(body, &der) || !validity(buf_view(&der), &t))
                return -EBADMSG;
        *ret = t;
        return 0;
}
