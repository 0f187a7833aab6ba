#include "base/job/file_id.h"

#include <openssl/evp.h>
#include <stdlib.h>

#include "base/format/hex.h"
#include "base/format/url.h"

static const struct {
        struct str scheme, port;
} default_ports[] = {
        {{"http", 4}, {"80", 2}},   {{"https", 5}, {"443", 3}},   {{"ftp", 3}, {"21", 2}},
        {{"root", 4}, {"1094", 4}}, {{"xroot", 5}, {"1094", 4}},  {{"sftp", 4}, {"22", 2}},
        {{"davs", 4}, {"443", 3}},  {{"gsiftp", 6}, {"2811", 4}}, {{"dav", 3}, {"80", 2}},
};

static char lower(char c)
{
        return c >= 'A' && c <= 'Z' ? (char)(c | 32) : c;
}

static void add_lower(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                buf_char(out, lower(s.p[i]));
}

static bool scheme_ok(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = lower(s.p[i]);

                if (!((c >= 'a' && c <= 'z') ||
                      (i && ((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.'))))
                        return false;
        }
        return s.n > 0 && s.n <= 32;
}

static bool all_digits(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] < '0' || s.p[i] > '9')
                        return false;
        return true;
}

/* host[:port] without the user, and without the port that the scheme has anyway. False: it is none. */
static bool add_authority(struct buf *out, struct str scheme, struct str authority)
{
        ptrdiff_t at = str_rfind(authority, '@'), colon;
        struct str port = STR_NONE, host = at >= 0 ? str_skip(authority, (size_t)at + 1) : authority;

        colon = str_rfind(host, ':');
        if (colon >= 0 && str_rfind(host, ']') < colon) { /* not inside [::1] */
                port = str_skip(host, (size_t)colon + 1);
                host = str_head(host, (size_t)colon);
        }
        if (!all_digits(port) ||
            (str_find(host, ':') >= 0 && !(host.p[0] == '[' && str_ends(host, STR("]")))))
                return false;
        for (size_t i = 0; i < sizeof(default_ports) / sizeof(default_ports[0]); i++)
                if (str_ieq(scheme, default_ports[i].scheme) && str_eq(port, default_ports[i].port))
                        port = STR_NONE;
        add_lower(out, host);
        if (port.n) {
                buf_char(out, ':');
                buf_str(out, port);
        }
        return true;
}

static void add_unescaped(struct buf *out, struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                int high = s.p[i] == '%' && i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
                int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;

                if (low < 0) { /* a percent sign that begins nothing is one */
                        buf_str(out, s.p[i] == '%' ? STR("%25") : str_make(s.p + i, 1));
                        continue;
                }
                if (url_unreserved((unsigned char)(high * 16 + low)))
                        buf_char(out, (char)(high * 16 + low));
                else
                        buf_printf(out, "%%%02X", (unsigned)(high * 16 + low));
                i += 2;
        }
}

/* Takes "." and ".." out of a path that begins with '/'; ".." of the root is the root. */
static void add_path(struct buf *out, struct str path)
{
        size_t root = out->n;
        struct str segment;

        path = str_skip(path, 1);
        if (path.n == 0)
                buf_char(out, '/');
        for (bool more = path.n > 0; more;) {
                str_cut(&path, '/', &segment);
                more = path.p != NULL;
                if (str_eqz(segment, "..")) {
                        while (out->n > root && out->p[out->n - 1] != '/')
                                buf_truncate(out, out->n - 1);
                        if (out->n > root)
                                buf_truncate(out, out->n - 1);
                }
                if (!str_eqz(segment, ".") && !str_eqz(segment, "..")) {
                        buf_char(out, '/');
                        buf_str(out, segment);
                } else if (!more) {
                        buf_char(out, '/');
                }
        }
}

static void add_file(struct buf *out, struct str path)
{
        buf_addz(out, "file://");
        add_path(out, path);
}

static bool canonical(struct str url, struct buf *out)
{
        ptrdiff_t colon = str_search(url, STR("://")), end;
        BUF_CLEANUP struct buf path = {0};
        struct str scheme, rest;
        size_t n = 0, host;

        if (url.n == 0 || url.n > FILE_URL_MAX)
                return false;
        if (url.p[0] == '/') { /* as it is: # ? % are letters there */
                add_file(out, url);
                return true;
        }
        if (colon <= 0)
                return false;
        scheme = str_head(url, (size_t)colon);
        rest = str_skip(url, (size_t)colon + 3);
        if (!scheme_ok(scheme) || rest.n == 0)
                return false;
        while (n < rest.n && !strchr("/?#", rest.p[n]))
                n++;
        if (str_ieqz(scheme, "file")) {
                if (n && !str_ieqz(str_head(rest, n), "localhost"))
                        return false;
                add_file(out, str_skip(rest, n));
                return true;
        }
        add_lower(out, scheme);
        buf_addz(out, "://");
        host = out->n;
        if (!add_authority(out, scheme, str_head(rest, n)))
                return false;
        rest = str_skip(rest, n);
        if (out->n == host && (rest.n == 0 || rest.p[0] != '/'))
                return false;
        if ((end = str_find(rest, '#')) >= 0)
                rest = str_head(rest, (size_t)end);
        end = str_find(rest, '?');
        add_unescaped(&path, end >= 0 ? str_head(rest, (size_t)end) : rest);
        if (path.n)
                add_path(out, buf_view(&path));
        if (end >= 0)
                buf_str(out, str_skip(rest, (size_t)end));
        return true;
}

/* Returns the number of bytes of `name` that the prefix matches, several slashes in a row counting as one; 0:
 * no match. */
static size_t prefix_length(struct str name, struct str prefix)
{
        size_t scheme = (size_t)str_search(prefix, STR("://")) + 3, n = 0;

        for (size_t i = 0; i < prefix.n; i++) {
                if (n == name.n || name.p[n] != prefix.p[i])
                        return 0;
                n++;
                while (i >= scheme && prefix.p[i] == '/' && n < name.n && name.p[n] == '/')
                        n++;
        }
        return n;
}

bool file_is_below(struct str canonical, struct str prefix)
{
        return prefix_length(canonical, prefix) > 0;
}

bool file_prefix(struct str prefix, struct buf *out)
{
        BUF_CLEANUP struct buf name = {0};
        size_t path;

        if (!canonical(prefix, &name))
                return false;
        buf_char(&name, '/');
        path = (size_t)str_search(buf_view(&name), STR("://")) + 3;
        for (size_t i = 0; i < name.n; i++) /* several slashes are one, as prefix_length has it */
                if (i < path || name.p[i] != '/' || i == path || name.p[i - 1] != '/')
                        buf_char(out, name.p[i]);
        return true;
}

static bool is_path(struct str name)
{
        return str_starts(name, STR("file://"));
}

/* Appends the text behind the prefix. In a path, # ? and % are ordinary characters; in a URL they are
 * special, unless written as %23 etc. */
static void add_rest(struct buf *out, struct str rest, bool from_path, bool to_path)
{
        for (size_t i = 0; i < rest.n; i++) {
                char c = rest.p[i];
                int high = c == '%' && i + 2 < rest.n ? hex_digit(rest.p[i + 1]) : -1;
                int low = high >= 0 ? hex_digit(rest.p[i + 2]) : -1;

                if (from_path && !to_path && (c == '#' || c == '?' || c == '%' || c == ' ')) {
                        buf_printf(out, "%%%02X", (unsigned)c);
                } else if (!from_path && to_path && low >= 0 && high * 16 + low != '/' && high + low > 0) {
                        buf_char(out, (char)(high * 16 + low));
                        i += 2;
                } else {
                        buf_char(out, c);
                }
        }
}

bool file_url(struct str url, const struct store_urls *stores, size_t count, struct buf *out,
              size_t *ret_store)
{
        BUF_CLEANUP struct buf name = {0};
        size_t best = 0, used = 0, found = FILE_STORE_NONE;

        if (!canonical(url, &name))
                return false;
        for (size_t i = 0; i < count; i++)
                for (size_t k = 0; k < stores[i].prefix_count; k++) {
                        struct str p = stores[i].prefixes[k];
                        size_t n = p.n > best ? prefix_length(buf_view(&name), p) : 0;

                        if (n) {
                                best = p.n;
                                used = n;
                                found = i;
                        }
                }
        if (found != FILE_STORE_NONE)
                buf_str(out, stores[found].prefixes[0]);
        add_rest(out, str_skip(buf_view(&name), used), is_path(buf_view(&name)),
                 found != FILE_STORE_NONE ? is_path(stores[found].prefixes[0]) : is_path(buf_view(&name)));
        if (ret_store)
                *ret_store = found;
        return true;
}

uint64_t file_id_of_content(const unsigned char sum[32])
{
        uint64_t id = 0;

        for (int i = 0; i < 8; i++)
                id = id << 8 | sum[i];
        return id;
}

uint64_t file_id(struct str name)
{
        unsigned char sum[32];

        if (!EVP_Digest(name.p, name.n, sum, NULL, EVP_sha256(), NULL))
                abort(); /* only without memory, or without a library */
        return file_id_of_content(sum);
}
