/* Two tables by byte: is it let through, and what is written for it otherwise. They begin as Galaxy's own and
 * are changed by what stands in the <sanitizer>, in its order. */
#include "jdl/galaxy/sanitizer.h"

#include <string.h>

#include "jdl/galaxy/tool.h"

static const struct {
        char c;
        const char *by;
} replaced[] = {{'>', "__gt__"},  {'<', "__lt__"},  {'\'', "__sq__"}, {'"', "__dq__"}, {'[', "__ob__"},
                {']', "__cb__"},  {'{', "__oc__"},  {'}', "__cc__"},  {'@', "__at__"}, {'\n', "__cn__"},
                {'\r', "__cr__"}, {'\t', "__tc__"}, {'#', "__pd__"}};

/* The characters that Galaxy knows by this name, NULL for those it lets through; empty: it is no such name.
 */
static struct str preset(const char *name)
{
        static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        static const char printable[] =
                "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!\"#$%&'()*+,-./:;<=>?@["
                "\\]^_`{|}~ \t\n\r\v\f";
        static const char usual[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -=_.()/+*^,:?!";

        if (!name || strcmp(name, "default") == 0)
                return str_of(usual);
        if (strcmp(name, "string.printable") == 0)
                return str_of(printable);
        if (strcmp(name, "string.letters") == 0 || strcmp(name, "string.ascii_letters") == 0)
                return str_of(letters);
        if (strcmp(name, "string.digits") == 0)
                return str_head(str_of(printable), 10);
        return STR_NONE;
}

struct sanitizer {
        bool valid[256];
        const char *by[256]; /* NULL: `other` */
        const char *other;
};

static int set_valid(struct sanitizer *s, const struct xml *valid, struct err *err)
{
        struct str initial = preset(xml_get(valid, "initial"));

        if (!initial.n && !str_eqz(tool_attribute(valid, "initial", ""), "none") && xml_get(valid, "initial"))
                return tool_fail(valid, err, "the sanitizer's initial=\"%s\" is not supported",
                                 xml_get(valid, "initial"));
        memset(s->valid, 0, sizeof(s->valid));
        for (size_t i = 0; i < initial.n; i++)
                s->valid[(unsigned char)initial.p[i]] = true;
        for (const struct xml *x = valid->first; x; x = x->next) {
                struct str chars = tool_attribute(x, "value", "");
                bool add = xml_is(x, "add");

                if (!add && !xml_is(x, "remove"))
                        return tool_fail(x, err, "<%s> in a sanitizer is not supported", x->name);
                if (!chars.n && xml_get(x, "preset"))
                        chars = preset(xml_get(x, "preset"));
                for (size_t i = 0; i < chars.n; i++)
                        s->valid[(unsigned char)chars.p[i]] = add;
        }
        return 0;
}

static int set_mapping(struct sanitizer *s, const struct xml *mapping, struct err *err)
{
        if (xml_get(mapping, "initial") && strcmp(xml_get(mapping, "initial"), "none") == 0)
                memset(s->by, 0, sizeof(s->by));
        for (const struct xml *x = mapping->first; x; x = x->next) {
                struct str source = tool_attribute(x, "source", "");

                if (!xml_is(x, "add") || source.n != 1)
                        return tool_fail(x, err, "<%s> in a sanitizer's mapping is not supported", x->name);
                s->by[(unsigned char)source.p[0]] = xml_get(x, "target") ? xml_get(x, "target") : "";
        }
        return 0;
}

static int sanitizer_read(struct sanitizer *s, const struct xml *own, struct err *err)
{
        struct str usual = preset(NULL);
        int rc = 0;

        *s = (struct sanitizer){.other = "X"};
        for (size_t i = 0; i < usual.n; i++)
                s->valid[(unsigned char)usual.p[i]] = true;
        for (size_t i = 0; i < sizeof(replaced) / sizeof(*replaced); i++)
                s->by[(unsigned char)replaced[i].c] = replaced[i].by;
        if (!own)
                return 0;
        if (xml_get(own, "invalid_char"))
                s->other = xml_get(own, "invalid_char");
        for (const struct xml *x = own->first; x && rc == 0; x = x->next) {
                if (xml_is(x, "valid"))
                        rc = set_valid(s, x, err);
                else if (xml_is(x, "mapping"))
                        rc = set_mapping(s, x, err);
                else
                        rc = tool_fail(x, err, "<%s> in a sanitizer is not supported", x->name);
        }
        return rc;
}

int sanitizer_apply(const struct xml *param, struct str text, struct buf *out, struct err *err)
{
        const struct xml *own = xml_child(param, "sanitizer");
        struct sanitizer s;
        int rc;

        if (own && xml_get(own, "sanitize") && !tool_says(own, "sanitize")) {
                buf_str(out, text);
                return 0;
        }
        rc = sanitizer_read(&s, own, err);
        for (size_t i = 0; i < text.n && rc == 0; i++) {
                unsigned char c = (unsigned char)text.p[i];

                if (s.valid[c])
                        buf_char(out, (char)c);
                else if ((c & 0xc0) != 0x80) /* one for a character of several bytes */
                        buf_addz(out, s.by[c] ? s.by[c] : s.other);
        }
        return rc;
}
