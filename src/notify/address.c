#include "notify/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- mail */

static bool all_of(struct str s, const char *marks)
{
        for (size_t i = 0; i < s.n; i++)
                if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= 'A' && s.p[i] <= 'Z') &&
                    !(s.p[i] >= '0' && s.p[i] <= '9') && (!s.p[i] || !strchr(marks, s.p[i])))
                        return false;
        return true;
}

int address_mail_check(struct str text, struct err *err)
{
        ptrdiff_t at = str_find(text, '@');
        struct str name = at < 0 ? text : str_head(text, (size_t)at);
        struct str host = at < 0 ? STR_NONE : str_skip(text, (size_t)at + 1);

        if (text.n > ADDRESS_MAIL_MAX)
                return err_set(err, -EINVAL, "a mail address of more than %d bytes", ADDRESS_MAIL_MAX);
        if (name.n == 0 || name.n > 64 || !all_of(name, ".+-_=") || strchr("-.+=", name.p[0]) ||
            (at >= 0 && (host.n == 0 || !all_of(host, ".-") || strchr("-.", host.p[0]))))
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a mail address: write name@host",
                               STR_ARG(text));
        return 0;
}

/* ---- web */

static void free_part(char **p)
{
        curl_free(*p);
}
#define PART_CLEANUP __attribute__((cleanup(free_part)))

static int read_url(CURLU *u, struct str text, struct address_url *ret, struct err *err)
{
        PART_CLEANUP char *scheme = NULL, *host = NULL, *port = NULL, *extra = NULL;
        MEM_CLEANUP char *z = str_dupz(text);

        if (curl_url_set(u, CURLUPART_URL, z, CURLU_DISALLOW_USER) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
            curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK)
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a web address",
                               STR_ARG(str_head(text, 200)));
        ret->tls = strcmp(scheme, "https") == 0;
        if (!ret->tls && strcmp(scheme, "http") != 0)
                return err_set(err, -EINVAL, "'" STR_FMT "' begins with neither https:// nor http://",
                               STR_ARG(str_head(text, 200)));
        if (curl_url_get(u, CURLUPART_FRAGMENT, &extra, 0) == CURLUE_OK || strlen(host) > ADDRESS_HOST_MAX)
                return err_set(err, -EINVAL, "'" STR_FMT "' has a fragment, or its host is too long",
                               STR_ARG(str_head(text, 200)));
        for (size_t i = 0; i <= strlen(host); i++)
                ret->host[i] = (char)tolower((unsigned char)host[i]);
        ret->port = (unsigned)strtoul(port, NULL, 10);
        return 0;
}

int address_url_parse(struct str text, struct address_url *ret, struct err *err)
{
        CURLU *u;
        int r;

        for (size_t i = 0; i < text.n; i++)
                if ((unsigned char)text.p[i] <= ' ' || (unsigned char)text.p[i] >= 0x7f || text.p[i] == '\\')
                        return err_set(
                                err, -EINVAL,
                                "a web address has no blanks, backslashes or characters outside ASCII");
        if (text.n > ADDRESS_URL_MAX)
                return err_set(err, -EINVAL, "a web address of more than %d bytes", ADDRESS_URL_MAX);
        u = curl_url();
        if (!u)
                return -ENOMEM;
        r = read_url(u, text, ret, err);
        curl_url_cleanup(u);
        return r;
}

int address_entry_parse(struct str text, struct address_entry *ret, struct err *err)
{
        ptrdiff_t colon = str_rfind(text, ':'), bracket = str_rfind(text, ']');
        struct str host = text;
        uint64_t port = 443;
        bool good = true;

        if (colon > bracket) {
                host = str_head(text, (size_t)colon);
                good = str_to_u64(str_skip(text, (size_t)colon + 1), &port) == 0 && port > 0 && port < 65536;
        }
        if (!good || host.n == 0 || host.n > ADDRESS_HOST_MAX ||
            !(host.p[0] == '[' ? host.p[host.n - 1] == ']' && all_of(host, "[]:.") : all_of(host, ".-_")))
                return err_set(err, -EINVAL, "'" STR_FMT "' is not a host: write host or host:port",
                               STR_ARG(str_head(text, 100)));
        for (size_t i = 0; i < host.n; i++)
                ret->host[i] = (char)tolower((unsigned char)host.p[i]);
        ret->host[host.n] = '\0';
        ret->port = (unsigned)port;
        ret->any_scheme = colon > bracket;
        return 0;
}

bool address_entry_permits(const struct address_entry *e, const struct address_url *url)
{
        return e->port == url->port && (e->any_scheme || url->tls) && strcmp(e->host, url->host) == 0;
}

bool address_entry_is(const struct address_entry *e, const struct sockaddr *to)
{
        char text[INET6_ADDRSTRLEN + 2] = "[";
        struct in6_addr six;

        if (to->sa_family == AF_INET) {
                const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)to;

                return inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text)) && strcmp(text, e->host) == 0 &&
                       ntohs(v4->sin_port) == e->port;
        }
        if (to->sa_family == AF_INET6 && e->host[0] == '[') {
                const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)to;

                snprintf(text, sizeof(text), "%.*s", (int)(strlen(e->host) - 2), e->host + 1);
                return inet_pton(AF_INET6, text, &six) == 1 &&
                       memcmp(&six, &v6->sin6_addr, sizeof(six)) == 0 && ntohs(v6->sin6_port) == e->port;
        }
        return false;
}

/* ---- public addresses */

struct net {
        unsigned char prefix[16];
        unsigned bits;
};

static bool within(const unsigned char *address, const struct net *n)
{
        unsigned whole = n->bits / 8, rest = n->bits % 8;

        return memcmp(address, n->prefix, whole) == 0 &&
               (rest == 0 || (address[whole] ^ n->prefix[whole]) >> (8 - rest) == 0);
}

static bool public_v4(const unsigned char *a)
{
        static const struct net special[] = {
                {{0}, 8},
                {{10}, 8},
                {{100, 64}, 10},
                {{127}, 8},
                {{169, 254}, 16},
                {{172, 16}, 12},
                {{192, 0, 0}, 24},
                {{192, 0, 2}, 24},
                {{192, 88, 99}, 24},
                {{192, 168}, 16},
                {{198, 18}, 15},
                {{198, 51, 100}, 24},
                {{203, 0, 113}, 24},
                {{224}, 4},
                {{240}, 4},
        };

        for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
                if (within(a, &special[i]))
                        return false;
        return true;
}

static bool public_v6(const unsigned char *a)
{
        static const struct net global = {{0x20}, 3}, six_to_four = {{0x20, 0x02}, 16},
                                mapped = {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96},
                                nat64 = {{0, 0x64, 0xff, 0x9b}, 96};
        static const struct net special[] = {
                {{0x20, 0x01, 0x00}, 23}, /* IETF protocol assignments, which include Teredo */
                {{0x20, 0x01, 0x0d, 0xb8}, 32},
                {{0x3f, 0xff}, 20},
        };

        if (within(a, &mapped) || within(a, &nat64))
                return public_v4(a + 12);
        if (within(a, &six_to_four))
                return public_v4(a + 2);
        for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
                if (within(a, &special[i]))
                        return false;
        return within(a, &global);
}

bool address_is_public(const struct sockaddr *to)
{
        if (to->sa_family == AF_INET)
                return public_v4(
                        (const unsigned char *)&((const struct sockaddr_in *)(const void *)to)->sin_addr);
        if (to->sa_family == AF_INET6)
                return public_v6(
                        (const unsigned char *)&((const struct sockaddr_in6 *)(const void *)to)->sin6_addr);
        return false;
}
