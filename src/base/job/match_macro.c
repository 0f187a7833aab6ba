#include "base/job/match_macro.h"

#include "base/job/macro.h"

#define DOLLARS "DOLLARDOLLAR"

bool match_macro_present(struct str text)
{
        return text.n && str_search(text, STR("$$(")) >= 0;
}

/* Returns the index of the ')' whose '(' stood before s; -1: there is none. Parentheses in the string
 * literals of an expression do not count. */
static ptrdiff_t find_close(struct str s)
{
        bool expression = str_starts(s, STR("[")), quoted = false;
        unsigned depth = 1;

        for (size_t i = 0; i < s.n; i++) {
                if (quoted && s.p[i] == '\\')
                        i++;
                else if (expression && s.p[i] == '"')
                        quoted = !quoted;
                else if (!quoted && s.p[i] == '(')
                        depth++;
                else if (!quoted && s.p[i] == ')' && --depth == 0)
                        return (ptrdiff_t)i;
        }
        return -1;
}

static bool split(struct str inside, struct match_macro *ret)
{
        ptrdiff_t colon;

        *ret = (struct match_macro){.inside = inside};
        if (str_starts(inside, STR("["))) {
                ret->expression = str_trim(str_make(inside.p + 1, inside.n - 2));
                return inside.n > 2 && str_ends(inside, STR("]")) && ret->expression.n > 0;
        }
        colon = str_find(inside, ':');
        ret->name = str_trim(colon < 0 ? inside : str_head(inside, (size_t)colon));
        if (colon >= 0)
                ret->otherwise = str_skip(inside, (size_t)colon + 1);
        return macro_is_name(ret->name) && !(ret->name.p[0] >= '0' && ret->name.p[0] <= '9');
}

enum match_macro_found match_macro_next(struct str *rest, struct str *ret_before, struct match_macro *ret)
{
        ptrdiff_t at = rest->n ? str_search(*rest, STR("$$(")) : -1, end;
        struct str inside;

        *ret_before = at < 0 ? *rest : str_head(*rest, (size_t)at);
        if (at < 0) {
                *rest = str_skip(*rest, rest->n);
                return MATCH_MACRO_NONE;
        }
        inside = str_skip(*rest, (size_t)at + 3);
        end = find_close(inside);
        if (end < 0 || !split(str_head(inside, (size_t)end), ret)) {
                *ret_before = str_skip(*rest, (size_t)at);
                return MATCH_MACRO_BAD;
        }
        *rest = str_skip(inside, (size_t)end + 1);
        return MATCH_MACRO_ONE;
}

void match_macro_fill(struct str text, bool (*value)(void *arg, struct str inside, struct buf *out),
                      void *arg, struct buf *out)
{
        struct match_macro m;
        struct str before;

        for (;;) {
                enum match_macro_found found = match_macro_next(&text, &before, &m);

                buf_str(out, before);
                if (found != MATCH_MACRO_ONE)
                        return;
                if (str_ieqz(m.name, DOLLARS))
                        buf_addz(out, "$$");
                else if (!value(arg, m.inside, out))
                        buf_printf(out, "$$(" STR_FMT ")", STR_ARG(m.inside));
        }
}
