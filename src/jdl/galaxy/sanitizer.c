/* There are two tables by byte: whether the byte is allowed, and what replaces it otherwise. The defaults
 * are Galaxy's. With a <sanitizer> both start empty and are filled from its content, in order. */
#include "jdl/galaxy/sanitizer.h"

#include <string.h>

#include "jdl/galaxy/tool.h"

static const struct {
        char c;
        const char *by;
} replaced[] = {{'>', "__gt__"},  {'<', "__lt__"},  {'\'', "__sq__"}, {'"', "__dq__"}, {'[', "__ob__"},
                {']', "__cb__"},  {'{', "__oc__"},  {'}', "__cc__"},  {'@', "__at__"}, {'\n', "__cn__"},
                {'\r', "__cr__"}, {'\t', "__tc__"}, {'#', "__pd__"}};

#define LOWER       "abcdefghijklmnopqrstuvwxyz"
#define UPPER       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define LETTERS     LOWER UPPER
#define DIGITS      "0123456789"
#define MARKS       "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
#define WHITE       " \t\n\r\v\f"
#define LET_USUALLY LETTERS DIGITS " -=_.()/+*^,:?!"

/* Returns the characters of a name that Galaxy or Python's module string defines; NULL: unknown name. */
static const char *preset(struct str name)
{
        static const struct {
                const char *name, *chars;
        } all[] = {{"default", LET_USUALLY},         {"none", ""},
                   {"string.letters", LETTERS},      {"string.ascii_letters", LETTERS},
                   {"string.lowercase", LOWER},      {"string.ascii_lowercase", LOWER},
                   {"string.uppercase", UPPER},      {"string.ascii_uppercase", UPPER},
                   {"string.digits", DIGITS},        {"string.hexdigits", DIGITS "abcdefABCDEF"},
                   {"string.octdigits", "01234567"}, {"string.punctuation", MARKS},
                   {"string.whitespace", WHITE},     {"string.printable", DIGITS LETTERS MARKS WHITE}};

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                if (str_eqz(name, all[i].name))
                        return all[i].chars;
        return NULL;
}

struct sanitizer {
        bool valid[256];
        const char *by[256]; /* NULL: `other` */
        const char *other;
};

static void let(struct sanitizer *s, struct str chars, bool through)
{
        for (size_t i = 0; i < chars.n; i++)
                s->valid[(unsigned char)chars.p[i]] = through;
}

/* Reads presets, separated by commas. */
static int let_presets(struct sanitizer *s, const struct xml *x, const char *attribute, bool through,
                       struct err *err)
{
        struct str rest = tool_attribute(x, attribute, "default"), name;

        while (str_cut(&rest, ',', &name)) {
                const char *chars = preset(str_trim(name));

                if (!chars)
                        return tool_fail(x, err, "the sanitizer's %s=\"" STR_FMT "\" is not supported",
                                         attribute, STR_ARG(str_trim(name)));
                let(s, str_of(chars), through);
        }
        return 0;
}

static int set_valid(struct sanitizer *s, const struct xml *valid, struct err *err)
{
        int rc;

        memset(s->valid, 0, sizeof(s->valid));
        rc = let_presets(s, valid, "initial", true, err);
        if (rc != 0)
                return rc;
        for (const struct xml *x = valid->first; x; x = x->next) {
                struct str chars = tool_attribute(x, "value", "");
                bool add = xml_is(x, "add");

                if (!add && !xml_is(x, "remove"))
                        return tool_fail(x, err, "<%s> in a sanitizer is not supported", x->name);
                let(s, chars, add);
                if (!chars.n && xml_get(x, "preset"))
                        rc = let_presets(s, x, "preset", add, err);
                if (rc != 0)
                        return rc;
        }
        return 0;
}

static void map_usually(struct sanitizer *s)
{
        for (size_t i = 0; i < sizeof(replaced) / sizeof(*replaced); i++)
                s->by[(unsigned char)replaced[i].c] = replaced[i].by;
}

static int set_mapping(struct sanitizer *s, const struct xml *mapping, struct err *err)
{
        memset(s->by, 0, sizeof(s->by));
        if (!xml_get(mapping, "initial") || strcmp(xml_get(mapping, "initial"), "none") != 0)
                map_usually(s);
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
        int rc = 0;

        *s = (struct sanitizer){.other = "X"};
        if (!own) {
                let(s, STR(LET_USUALLY), true);
                map_usually(s);
                return 0;
        }
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
                else if ((c & 0xc0) != 0x80) /* one replacement for a character of several bytes */
                        buf_addz(out, s.by[c] ? s.by[c] : s.other);
        }
        return rc;
}
