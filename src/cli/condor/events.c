#include "cli/condor/events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "classad/read.h"

static bool events_number(struct str *rest, char end, int64_t *ret)
{
        struct str word;

        return str_find(*rest, end) > 0 && str_cut(rest, end, &word) && str_to_i64(word, ret) == 0 &&
               *ret >= 0;
}

static void set_host(struct event *e, struct str host)
{
        host = str_trim(host);
        snprintf(e->host, sizeof(e->host), STR_FMT, STR_ARG(str_head(host, sizeof(e->host) - 1)));
}

/* "005 (0007.000.000) …" */
static int read_head(struct str line, struct event *ret)
{
        static const struct str executing = {.p = "Job executing on host: ", .n = 23};
        ptrdiff_t at = str_search(line, executing);
        int64_t what;

        ret->host[0] = '\0';
        if (at >= 0)
                set_host(ret, str_skip(line, (size_t)at + executing.n));
        if (!events_number(&line, ' ', &what) || what > 999 || line.n == 0 || line.p[0] != '(')
                return -EINVAL;
        line = str_skip(line, 1);
        if (!events_number(&line, '.', &ret->cluster) || !events_number(&line, '.', &ret->proc) ||
            !events_number(&line, ')', &ret->subproc))
                return -EINVAL;
        ret->number = (int)what;
        return 0;
}

static int next_text(struct str *text, struct event *ret, struct err *err)
{
        struct str rest = *text, line, head = STR_NONE;

        while (str_find(rest, '\n') >= 0 && str_cut(&rest, '\n', &line)) {
                if (!head.n) {
                        head = line;
                } else if (str_eqz(str_trim(line), "...")) {
                        ret->text = str_make(text->p, (size_t)(line.p + line.n - text->p) + 1);
                        if (read_head(head, ret) != 0)
                                return err_set(err, -EINVAL,
                                               "\"" STR_FMT
                                               "\" does not begin an event of a job's log in text",
                                               STR_ARG(str_head(head, 80)));
                        *text = str_skip(*text, ret->text.n);
                        return 1;
                }
        }
        return 0;
}

/* The length of the ad that *text begins with; 0: it is not whole. '<' in a string of XML is always &lt;. */
static size_t xml_length(struct str text)
{
        size_t depth = 0;

        for (size_t i = 0; i < text.n; i++) {
                struct str rest = str_skip(text, i);

                if (text.p[i] != '<')
                        continue;
                if (str_starts(rest, STR("<c>")))
                        depth++;
                else if (str_starts(rest, STR("</c>")) && depth && --depth == 0)
                        return i + 4;
        }
        return 0;
}

static size_t json_length(struct str text)
{
        size_t depth = 0;
        bool quoted = false;

        for (size_t i = 0; i < text.n; i++) {
                char c = text.p[i];

                if (quoted && c == '\\')
                        i++;
                else if (c == '"')
                        quoted = !quoted;
                else if (!quoted && (c == '{' || c == '['))
                        depth++;
                else if (!quoted && (c == '}' || c == ']') && depth && --depth == 0)
                        return i + 1;
        }
        return 0;
}

static bool get_integer(const struct ad *ad, const char *name, int64_t *ret)
{
        struct value v;

        if (!ad_literal(ad, symbols_intern(ad_symbols(ad), str_of(name)), &v) || v.type != VALUE_INTEGER ||
            v.integer < 0)
                return false;
        *ret = v.integer;
        return true;
}

static bool from_ad(const struct ad *ad, struct event *ret)
{
        int64_t what = 0;
        struct value v;

        ret->host[0] = '\0';
        if (ad_literal(ad, symbols_intern(ad_symbols(ad), STR("ExecuteHost")), &v) && v.type == VALUE_STRING)
                set_host(ret, v.string);
        ret->subproc = 0;
        get_integer(ad, "Subproc", &ret->subproc);
        if (!get_integer(ad, "EventTypeNumber", &what) || what > 999)
                return false;
        ret->number = (int)what;
        return get_integer(ad, "Cluster", &ret->cluster) && get_integer(ad, "Proc", &ret->proc);
}

static int next_ad(struct str *text, struct event *ret, enum encoding encoding, struct err *err)
{
        size_t n = encoding == ENCODING_XML ? xml_length(*text) : json_length(*text);
        struct err why = {"an event's number and job are not in it"};
        struct symbols *symbols;
        struct ad_reader *reader;
        struct ad *ad = NULL;
        bool good;

        if (n == 0)
                return 0;
        ret->text = str_head(*text, n);
        symbols = symbols_new();
        reader = ad_reader_new(symbols, ret->text, encoding);
        good = ad_reader_next(reader, &ad, &why) == 0 && ad && from_ad(ad, ret);
        if (!good)
                err_set(err, -EINVAL, "\"" STR_FMT "…\" is no event of a job's log: %s",
                        STR_ARG(str_head(ret->text, 40)), why.text);
        ad_free(ad);
        ad_reader_free(reader);
        symbols_free(symbols);
        *text = str_skip(*text, n);
        return good ? 1 : -EINVAL;
}

int event_next(struct str *text, struct event *ret, struct err *err)
{
        ptrdiff_t end;

        for (;;) {
                struct str rest = *text;

                while (rest.n && strchr(" \t\r\n", rest.p[0]) && rest.p[0])
                        rest = str_skip(rest, 1);
                if (rest.n == 0)
                        return 0;
                *text = rest;
                if (rest.p[0] == '{')
                        return next_ad(text, ret, ENCODING_JSON, err);
                if (str_starts(rest, STR("<c>")))
                        return next_ad(text, ret, ENCODING_XML, err);
                if (rest.p[0] != '<')
                        return next_text(text, ret, err);
                end = str_find(rest, '>'); /* <?xml …>, <classads> */
                if (end < 0)
                        return 0;
                *text = str_skip(rest, (size_t)end + 1);
        }
}
