/* Functions on strings. What is not a string is taken as string() writes it; undefined gives undefined. */
#include "classad/functions.h"

static void give_text(const struct call *c, struct buf *out, struct value *ret)
{
        if (out->overflow)
                run_limit(c->run, "memory");
        else
                run_text(c->run, buf_view(out), ret);
}

void function_strcat(const struct call *c, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};
        struct str s;

        for (unsigned i = 0; i < c->argc; i++) { /* an undefined argument hides errors behind it */
                if (!call_text(c, i, &s, ret))
                        return;
                buf_str(&out, s);
        }
        give_text(c, &out, ret);
}

/* Adds one member; undefined ones are left out, and empty ones in front take no separator. False for an
 * error. */
static bool join_one(struct run *r, struct buf *out, struct str separator, bool *defined,
                     const struct value *v)
{
        struct str s;

        if (v->type == VALUE_UNDEFINED)
                return true;
        if (v->type == VALUE_ERROR || !run_value_text(r, v, &s) || !run_bytes(r, s.n))
                return false;
        if (out->n)
                buf_str(out, separator);
        *defined = true;
        buf_str(out, s);
        return true;
}

void function_join(const struct call *c, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};
        const struct value *last = &c->args[c->argc - 1];
        struct str separator = STR_NONE;
        bool list = c->argc <= 2 && last->type == VALUE_LIST, defined = false, any;
        struct value v = c->args[0];

        any = c->argc == 1 && !list && v.type != VALUE_UNDEFINED; /* no members, only a separator */
        if ((c->argc > 1 || !list) && v.type != VALUE_UNDEFINED && !call_text(c, 0, &separator, ret))
                return;
        *ret = value_error();
        if (list) {
                any = last->list->n == 0 && (c->argc == 1 || v.type != VALUE_UNDEFINED);
                for (uint32_t i = 0; i < last->list->n; i++) {
                        run_item(c->run, last->list, i, &v);
                        if (!join_one(c->run, &out, separator, &defined, &v))
                                return;
                }
        } else {
                for (unsigned i = 1; i < c->argc; i++)
                        if (!join_one(c->run, &out, separator, &defined, &c->args[i]))
                                return;
        }
        if (defined || any)
                give_text(c, &out, ret);
        else
                *ret = value_undefined();
}

static void change_case(const struct call *c, char from, struct value *ret)
{
        struct str s;
        char *p;

        if (!call_text(c, 0, &s, ret) || !run_text(c->run, s, ret))
                return;
        p = (char *)ret->string.p;
        for (size_t i = 0; i < s.n; i++)
                if (p[i] >= from && p[i] <= from + 25)
                        p[i] ^= 0x20;
}

void function_toUpper(const struct call *c, struct value *ret)
{
        change_case(c, 'a', ret);
}

void function_toLower(const struct call *c, struct value *ret)
{
        change_case(c, 'A', ret);
}

void function_substr(const struct call *c, struct value *ret)
{
        int64_t offset, length, n;
        struct str s;

        if (call_undefined(c, ret) || c->args[0].type != VALUE_STRING || c->args[1].type != VALUE_INTEGER ||
            (c->argc == 3 && c->args[2].type != VALUE_INTEGER))
                return;
        s = c->args[0].string;
        n = (int64_t)s.n;
        offset = c->args[1].integer;
        if (offset < 0)
                offset = offset < -n ? 0 : n + offset;
        if (offset > n)
                offset = n;
        length = c->argc == 3 ? c->args[2].integer : n;
        if (length < 0)
                length = length < -(n - offset) ? 0 : n - offset + length;
        if (length > n - offset)
                length = n - offset;
        *ret = value_string(str_make(s.p + offset, (size_t)length));
}

static bool two_texts(const struct call *c, struct str *a, struct str *b, struct value *ret)
{
        return !call_undefined(c, ret) && call_text(c, 0, a, ret) && call_text(c, 1, b, ret);
}

void function_strcmp(const struct call *c, struct value *ret)
{
        struct str a, b;

        if (two_texts(c, &a, &b, ret)) {
                int r = str_cmp(a, b);

                *ret = value_integer((r > 0) - (r < 0));
        }
}

void function_stricmp(const struct call *c, struct value *ret)
{
        struct str a, b;

        if (two_texts(c, &a, &b, ret)) {
                int r = str_icmp(a, b);

                *ret = value_integer((r > 0) - (r < 0));
        }
}

static bool is_digit(struct str s, size_t i)
{
        return i < s.n && s.p[i] >= '0' && s.p[i] <= '9';
}

/* Compares as glibc's strverscmp: by bytes, but where the first difference is in a number, by its value; a
 * number with leading zeros is a fraction, and the more zeros the smaller. */
static int version_compare(struct str a, struct str b)
{
        size_t i = 0, start, na, nb;
        int zero, bytes;

        while (i < a.n && i < b.n && a.p[i] == b.p[i])
                i++;
        if (i == a.n && i == b.n)
                return 0;
        for (start = i; start > 0 && is_digit(a, start - 1);)
                start--;
        bytes = (i < a.n ? (unsigned char)a.p[i] : -1) - (i < b.n ? (unsigned char)b.p[i] : -1);
        if (!is_digit(a, start) && !is_digit(b, start))
                return bytes;
        zero = is_digit(a, start) && is_digit(b, start) && a.p[start] == '0' && b.p[start] == '0';
        if (start == i) { /* the number begins with the difference: a leading zero makes a fraction */
                if (!is_digit(a, i) || !is_digit(b, i))
                        return bytes;
                if (a.p[i] == '0' || b.p[i] == '0')
                        return bytes;
        } else if (zero) {
                bool zeros = true;

                for (size_t k = start; k < i; k++)
                        zeros = zeros && a.p[k] == '0';
                if (!zeros)
                        return bytes;
                /* only zeros are common: the one that goes on with a zero, or with digits at all, is smaller
                 */
                if (is_digit(a, i) != is_digit(b, i))
                        return is_digit(a, i) ? -1 : 1;
                return bytes;
        }
        for (na = i; is_digit(a, na);)
                na++;
        for (nb = i; is_digit(b, nb);)
                nb++;
        return na != nb ? (na > nb ? 1 : -1) : bytes;
}

static bool versions(const struct call *c, int *ret_order, struct value *ret)
{
        struct str a, b;

        if (!two_texts(c, &a, &b, ret))
                return false;
        *ret_order = version_compare(a, b);
        return true;
}

void function_versioncmp(const struct call *c, struct value *ret)
{
        int order;

        if (versions(c, &order, ret))
                *ret = value_integer((order > 0) - (order < 0));
}

#define VERSION_TEST(name, test)                                                                             \
        void function_##name(const struct call *c, struct value *ret)                                        \
        {                                                                                                    \
                int order;                                                                                   \
                if (versions(c, &order, ret))                                                                \
                        *ret = value_boolean(order test 0);                                                  \
        }
VERSION_TEST(versionLE, <=)
VERSION_TEST(versionLT, <)
VERSION_TEST(versionGE, >=)
VERSION_TEST(versionGT, >)
VERSION_TEST(versionEQ, ==)

void function_version_in_range(const struct call *c, struct value *ret)
{
        struct str version, low, high;

        if (c->args[1].type == VALUE_UNDEFINED || c->args[2].type == VALUE_UNDEFINED)
                *ret = value_undefined();
        else if (c->args[0].type != VALUE_UNDEFINED && call_text(c, 0, &version, ret) &&
                 call_text(c, 1, &low, ret) && call_text(c, 2, &high, ret))
                *ret = value_boolean(version_compare(low, version) <= 0 &&
                                     version_compare(version, high) <= 0);
}

static bool is_space(char ch)
{
        return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* An empty text counts where it ends with a separator that is no white space and is the same as the last such
 * one, as in "a,,b" and, by the library's rule, in "a, b ,c". Other empty texts are left out. */
static uint32_t split_text(struct str s, const struct charset *separators, struct value *items)
{
        uint32_t n = 0;
        size_t from = 0;
        char last = ' ';

        for (size_t i = 0; i <= s.n; i++) {
                bool end = i == s.n, again;

                if (!end && !charset_has(separators, s.p[i]))
                        continue;
                again = !end && !is_space(s.p[i]) && s.p[i] == last;
                if (i > from || again) {
                        if (items)
                                items[n] = value_string(str_make(s.p + from, i - from));
                        n++;
                }
                if (!end && !is_space(s.p[i]))
                        last = s.p[i];
                from = i + 1;
        }
        return n;
}

void function_split(const struct call *c, struct value *ret)
{
        struct charset set;
        struct str s;
        struct value *items;
        struct value_list *list;

        if (c->args[0].type != VALUE_STRING || (c->argc == 2 && c->args[1].type != VALUE_STRING))
                return;
        s = c->args[0].string;
        charset_init(&set, c->argc == 2 ? c->args[1].string : STR(", \t"));
        if (!run_steps(c->run, (s.n + (c->argc == 2 ? c->args[1].string.n : 0)) / 64) ||
            !(list = run_list(c->run, split_text(s, &set, NULL), &items)))
                return;
        split_text(s, &set, items);
        *ret = (struct value){.type = VALUE_LIST, .list = list};
}

static void split_at(const struct call *c, bool whole_first, struct value *ret)
{
        struct value *items;
        struct value_list *list;
        struct str s;
        ptrdiff_t at;

        if (c->args[0].type != VALUE_STRING || !(list = run_list(c->run, 2, &items)))
                return;
        s = c->args[0].string;
        at = str_find(s, '@');
        items[0] = value_string(at >= 0 ? str_head(s, (size_t)at) : whole_first ? s : STR(""));
        items[1] = value_string(at >= 0 ? str_skip(s, (size_t)at + 1) : whole_first ? STR("") : s);
        *ret = (struct value){.type = VALUE_LIST, .list = list};
}

void function_splitUserName(const struct call *c, struct value *ret)
{
        split_at(c, true, ret);
}

void function_splitSlotName(const struct call *c, struct value *ret)
{
        split_at(c, false, ret);
}
