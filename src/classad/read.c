/* The first characters of a text decide its encoding: only "{}" is ambiguous, and is
 * taken as JSON. */
#include "classad/read.h"

#include "classad/lex.h"

struct ad_reader {
        struct symbols *symbols;
        struct str text;
        size_t at;
        enum encoding encoding;
        struct json_reader json;
        struct xml_reader *xml;
        bool in_list, broken;
};

#define BOM STR("\xef\xbb\xbf")

/* The first character behind white space and comments, '\0' at the end; *at is moved to it. */
static char read_peek(struct str text, size_t *at)
{
        struct lex lx = {.p = text.p + *at, .end = text.p + text.n};

        if (*at >= text.n)
                return '\0';
        lex_space(&lx);
        *at = (size_t)(lx.p - text.p);
        return *at < text.n ? text.p[*at] : '\0';
}

enum encoding encoding_of(struct str text)
{
        size_t at = str_starts(text, BOM) ? BOM.n : 0;
        char first = read_peek(text, &at), second;

        at++;
        switch (first) {
        case '<': return ENCODING_XML;
        case '[': return read_peek(text, &at) == '{' ? ENCODING_JSON : ENCODING_NEW;
        case '{':
                second = read_peek(text, &at);
                return second == '"' || second == '}' ? ENCODING_JSON : ENCODING_NEW;
        default: return ENCODING_OLD;
        }
}

struct ad_reader *ad_reader_new(struct symbols *symbols, struct str text, enum encoding encoding)
{
        struct ad_reader *r = mem_new(struct ad_reader);

        if (!text.p)
                text = STR("");
        *r = (struct ad_reader){.symbols = symbols, .text = text};
        r->encoding = encoding == ENCODING_AUTO ? encoding_of(text) : encoding;
        if (str_starts(text, BOM))
                r->at = BOM.n;
        r->json = (struct json_reader){.symbols = symbols, .text = text, .at = r->at};
        if (r->encoding == ENCODING_XML)
                r->xml = xml_reader_new(symbols, str_skip(text, r->at));
        return r;
}

void ad_reader_free(struct ad_reader *r)
{
        if (!r)
                return;
        xml_reader_free(r->xml);
        free(r);
}

static int fail_reading(const struct ad_reader *r, struct err *err, const char *what)
{
        const struct lex lx = {.start = r->text.p};
        unsigned line, column;

        lex_position(&lx, r->text.p + r->at, &line, &column);
        return err_set(err, CLASSAD_SYNTAX, "line %u, column %u: %s", line, column, what);
}

static int next_new(struct ad_reader *r, struct ad **ret_ad, struct err *err)
{
        bool behind_ad = r->in_list; /* between two calls, a list stands behind one of its ads */
        char c;

        while ((c = read_peek(r->text, &r->at)) == (r->in_list ? '}' : '{')) {
                r->in_list = !r->in_list;
                behind_ad = false;
                r->at++;
        }
        if (behind_ad && c == '[')
                return fail_reading(r, err, "',' or '}' should stand between the ads of a list");
        if (behind_ad && c == ',') {
                r->at++;
                c = read_peek(r->text, &r->at);
        }
        if (r->at < r->text.n)
                return ad_parse_part(r->symbols, r->text, &r->at, CLASSAD_NEW, ret_ad, err);
        if (r->in_list)
                return fail_reading(r, err, "the text ends within a list");
        *ret_ad = NULL;
        return 0;
}

/* Lines between ads: empty ones, comments, and those of stars. */
static int next_old(struct ad_reader *r, struct ad **ret_ad, struct err *err)
{
        struct str rest = str_skip(r->text, r->at), line;

        while (rest.p && rest.n) {
                r->at = (size_t)(rest.p - r->text.p);
                str_cut(&rest, '\n', &line);
                line = str_trim(line);
                if (line.n && line.p[0] != '#' && !str_starts(line, STR("***")))
                        return ad_parse_part(r->symbols, r->text, &r->at, CLASSAD_OLD, ret_ad, err);
        }
        r->at = r->text.n;
        *ret_ad = NULL;
        return 0;
}

int ad_reader_next(struct ad_reader *r, struct ad **ret_ad, struct err *err)
{
        int result;

        if (r->broken)
                return err_set(err, CLASSAD_SYNTAX, "nothing can be read behind an error");
        switch (r->encoding) {
        case ENCODING_XML: result = xml_reader_next(r->xml, ret_ad, err); break;
        case ENCODING_JSON: result = json_reader_next(&r->json, ret_ad, err); break;
        case ENCODING_OLD: result = next_old(r, ret_ad, err); break;
        default: result = next_new(r, ret_ad, err); break;
        }
        r->broken = result != 0;
        return result;
}
