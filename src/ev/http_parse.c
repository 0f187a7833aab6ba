#include "ev/http_parse.h"

#include <errno.h>

#include "base/format/hex.h"

#define CHUNK_LINE_MAX 256u /* a size with its extensions */
#define TRAILER_MAX    4096u

static const struct {
        const char *name;
        enum http_method method;
} methods[] = {
        {"GET", HTTP_GET},     {"HEAD", HTTP_HEAD},     {"POST", HTTP_POST},       {"PUT", HTTP_PUT},
        {"PATCH", HTTP_PATCH}, {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS},
};

const char *http_method_name(enum http_method m)
{
        for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
                if (methods[i].method == m)
                        return methods[i].name;
        return "?";
}

size_t http_head_size(struct str text)
{
        ptrdiff_t at = str_search(text, STR("\r\n\r\n"));

        return at < 0 ? 0 : (size_t)at + 4;
}

/* RFC 9110 5.6.2 */
static bool is_token(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                unsigned char c = s.p[i];

                if (c <= ' ' || c >= 127 || strchr("\"(),/:;<=>?@[\\]{}", c))
                        return false;
        }
        return s.n > 0;
}

int http_decode(struct arena *a, struct str text, bool plus, struct str *ret)
{
        char *p = arena_alloc(a, text.n + 1);
        size_t n = 0;

        if (!p)
                return -EINVAL;
        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];

                if (c == '%') {
                        int high = i + 2 < text.n ? hex_digit(text.p[i + 1]) : -1;
                        int low = i + 2 < text.n ? hex_digit(text.p[i + 2]) : -1;

                        if (high < 0 || low < 0 || !(high | low))
                                return -EINVAL;
                        c = (char)(high << 4 | low);
                        i += 2;
                } else if (c == '+' && plus) {
                        c = ' ';
                }
                p[n++] = c;
        }
        p[n] = '\0';
        *ret = str_make(p, n);
        return 0;
}

/* Takes a line without its CRLF; a lone CR or LF is refused by whoever looks at the characters. */
static bool cut_line(struct str *rest, struct str *ret)
{
        ptrdiff_t at = str_search(*rest, STR("\r\n"));

        if (at < 0)
                return false;
        *ret = str_head(*rest, at);
        *rest = str_skip(*rest, at + 2);
        return true;
}

static int parse_target(struct arena *a, struct str target, struct http_head *ret, struct err *err)
{
        struct str query;
        ptrdiff_t mark;

        for (size_t i = 0; i < target.n; i++)
                if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 127)
                        return err_set(err, 400, "malformed request target");
        if (str_istarts(target, STR("http://")) || str_istarts(target, STR("https://"))) {
                target = str_skip(target, str_search(target, STR("://")) + 3);
                mark = str_find(target, '/');
                target = mark < 0 ? STR("/") : str_skip(target, mark);
        }
        mark = str_find(target, '#');
        if (mark >= 0)
                target = str_head(target, mark);
        mark = str_find(target, '?');
        ret->query = mark < 0 ? STR_NONE : str_skip(target, mark + 1);
        if (mark >= 0)
                target = str_head(target, mark);
        if (!(target.n && target.p[0] == '/') && !(ret->method == HTTP_OPTIONS && str_eqz(target, "*")))
                return err_set(err, 400, "malformed request target");
        if (http_decode(a, target, false, &ret->path) < 0)
                return err_set(err, 400, "malformed %%-escape in the path");
        if (http_decode(a, ret->query, true, &query) < 0)
                return err_set(err, 400, "malformed %%-escape in the query");
        return 0;
}

static int parse_request_line(struct arena *a, struct str line, struct http_head *ret, struct err *err)
{
        struct str method, target;
        bool known = false;

        if (!str_cut(&line, ' ', &method) || !is_token(method) || !str_cut(&line, ' ', &target))
                return err_set(err, 400, "malformed request line");
        if (str_eqz(line, "HTTP/1.0"))
                ret->old = true;
        else if (str_starts(line, STR("HTTP/")) && !str_starts(line, STR("HTTP/1.")))
                return err_set(err, 505, "only HTTP/1.1 is spoken here");
        else if (!str_eqz(line, "HTTP/1.1"))
                return err_set(err, 400, "malformed request line");
        for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
                if (str_eqz(method, methods[i].name)) {
                        ret->method = methods[i].method;
                        known = true;
                }
        }
        if (!known)
                return err_set(err, 501, "method " STR_FMT " is not known here",
                               STR_ARG(str_head(method, 32)));
        return parse_target(a, target, ret, err);
}

static int parse_field(struct str line, struct http_head *ret, struct err *err)
{
        struct http_field *f = &ret->fields[ret->n_fields];

        if (ret->n_fields == HTTP_FIELDS_MAX)
                return err_set(err, 431, "more than %d header fields", HTTP_FIELDS_MAX);
        if (!str_cut(&line, ':', &f->name) || !line.p || !is_token(f->name))
                return err_set(err, 400, "malformed header field");
        f->value = str_trim(line);
        for (size_t i = 0; i < f->value.n; i++) {
                unsigned char c = f->value.p[i];

                if ((c < ' ' && c != '\t') || c == 127)
                        return err_set(err, 400, "control characters in a header field");
        }
        ret->n_fields++;
        return 0;
}

struct str http_head_field(const struct http_head *h, const char *name)
{
        for (size_t i = 0; i < h->n_fields; i++)
                if (str_ieqz(h->fields[i].name, name))
                        return h->fields[i].value;
        return STR_NONE;
}

static bool list_has(struct str list, const char *word)
{
        struct str item;

        while (str_cut(&list, ',', &item))
                if (str_ieqz(str_trim(item), word))
                        return true;
        return false;
}

/* Parses the fields about the connection and the body: RFC 9112 6 and 9.3. */
static int parse_framing(struct http_head *ret, struct err *err)
{
        unsigned lengths = 0, codings = 0, hosts = 0;
        bool close = false, keep = false;

        for (size_t i = 0; i < ret->n_fields; i++) {
                struct str name = ret->fields[i].name, value = ret->fields[i].value;
                uint64_t n;

                if (str_ieqz(name, "content-length")) {
                        int r = value.n && value.p[0] >= '0' && value.p[0] <= '9' ? str_to_u64(value, &n)
                                                                                  : -EINVAL;

                        if (r == -ERANGE || (r == 0 && n > HTTP_BODY_MAX))
                                return err_set(err, 413, "a body may have %u bytes", HTTP_BODY_MAX);
                        if (r < 0 || (lengths++ && n != ret->length))
                                return err_set(err, 400, "malformed Content-Length");
                        ret->length = n;
                } else if (str_ieqz(name, "transfer-encoding")) {
                        if (codings++ || !str_ieqz(value, "chunked"))
                                return err_set(err, 501, "the only transfer coding known here is chunked");
                        ret->chunked = true;
                } else if (str_ieqz(name, "connection")) {
                        close = close || list_has(value, "close");
                        keep = keep || list_has(value, "keep-alive");
                } else if (str_ieqz(name, "expect")) {
                        ret->expect_continue = str_ieqz(value, "100-continue");
                } else if (str_ieqz(name, "host")) {
                        hosts++;
                }
        }
        if (ret->chunked && (lengths || ret->old))
                return err_set(err, 400, "a body has a length or chunks, not both");
        if (hosts > 1 || (!hosts && !ret->old))
                return err_set(err, 400, "there must be one Host field");
        ret->keep_alive = ret->old ? keep && !close : !close;
        return 0;
}

int http_head_parse(struct arena *a, struct str text, struct http_head *ret, struct err *err)
{
        struct str line;
        int r;

        *ret = (struct http_head){0};
        if (!cut_line(&text, &line))
                return err_set(err, 400, "malformed request line");
        r = parse_request_line(a, line, ret, err);
        while (!r && cut_line(&text, &line) && line.n)
                r = parse_field(line, ret, err);
        return r ? r : parse_framing(ret, err);
}

/* The line that begins a chunk; 0 or a status; *ret_used stays 0 when it isn't all there. */
static int chunk_size(struct http_chunks *c, struct str text, size_t *ret_used, struct err *err)
{
        ptrdiff_t end = str_search(str_head(text, CHUNK_LINE_MAX), STR("\r\n"));
        size_t n = 0, i = 0;

        if (end < 0)
                return text.n < CHUNK_LINE_MAX ? 0 : err_set(err, 400, "malformed chunk");
        for (; i < (size_t)end && hex_digit(text.p[i]) >= 0; i++) {
                n = n << 4 | (size_t)hex_digit(text.p[i]);
                if (n > HTTP_BODY_MAX)
                        return err_set(err, 413, "a body may have %u bytes", HTTP_BODY_MAX);
        }
        if (!i || (i < (size_t)end && text.p[i] != ';' && text.p[i] != ' ' && text.p[i] != '\t'))
                return err_set(err, 400, "malformed chunk");
        c->left = n;
        c->state = n ? CHUNK_DATA : CHUNK_TRAILER;
        *ret_used = (size_t)end + 2;
        return 0;
}

int http_chunks_take(struct http_chunks *c, struct str text, size_t *ret_used, struct buf *body,
                     struct err *err)
{
        size_t at = 0;

        while (c->state != CHUNK_DONE && at < text.n) {
                struct str rest = str_skip(text, at);
                size_t used = 0;
                ptrdiff_t end;
                int r;

                switch (c->state) {
                case CHUNK_SIZE:
                        r = chunk_size(c, rest, &used, err);
                        if (r)
                                return r;
                        if (body->n + c->left > HTTP_BODY_MAX)
                                return err_set(err, 413, "a body may have %u bytes", HTTP_BODY_MAX);
                        break;
                case CHUNK_DATA:
                        used = rest.n < c->left ? rest.n : c->left;
                        buf_add(body, rest.p, used);
                        c->left -= used;
                        if (!c->left)
                                c->state = CHUNK_END;
                        break;
                case CHUNK_END:
                        if (rest.n < 2)
                                break;
                        if (!str_starts(rest, STR("\r\n")))
                                return err_set(err, 400, "malformed chunk");
                        used = 2;
                        c->state = CHUNK_SIZE;
                        break;
                case CHUNK_TRAILER:
                        end = str_search(rest, STR("\r\n"));
                        used = end < 0 ? 0 : (size_t)end + 2;
                        c->trailer += used;
                        if (c->trailer > TRAILER_MAX || (end < 0 && rest.n > TRAILER_MAX))
                                return err_set(err, 400, "the trailer is too long");
                        if (end == 0)
                                c->state = CHUNK_DONE;
                        break;
                default: break;
                }
                if (!used)
                        break;
                at += used;
        }
        *ret_used = at;
        return 0;
}
