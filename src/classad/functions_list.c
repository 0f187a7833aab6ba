/* Functions on lists, and on strings that hold lists. */
#include <math.h>

#include "classad/functions.h"
#include "classad/operators.h"

/* The first argument is a value to compare with the members, and for `is` undefined and error are values. */
static void find_member(const struct call *c, enum op op, struct value *ret)
{
        const struct value *x = &c->args[0], *list = &c->args[1];
        struct value member, same;

        if (list->type == VALUE_UNDEFINED || (op == OP_EQUAL && x->type == VALUE_UNDEFINED)) {
                *ret = value_undefined();
                return;
        }
        if (list->type != VALUE_LIST || x->type >= VALUE_LIST || (op == OP_EQUAL && x->type == VALUE_ERROR))
                return;
        for (uint32_t i = 0; i < list->list->n; i++) {
                run_item(c->run, list->list, i, &member);
                if (c->run->ev->limit_hit)
                        return;
                run_binary(c->run, op, &member, x, &same);
                if (value_is_true(&same)) {
                        *ret = value_boolean(true);
                        return;
                }
        }
        *ret = value_boolean(false);
}

void function_member(const struct call *c, struct value *ret)
{
        find_member(c, OP_EQUAL, ret);
}

void function_identicalMember(const struct call *c, struct value *ret)
{
        find_member(c, OP_IS, ret);
}

void function_size(const struct call *c, struct value *ret)
{
        const struct value *v = &c->args[0];

        if (call_strict(c, ret))
                return;
        if (v->type == VALUE_STRING)
                *ret = value_integer((int64_t)v->string.n);
        else if (v->type == VALUE_LIST)
                *ret = value_integer(v->list->n);
        else if (v->type == VALUE_AD)
                *ret = value_integer((int64_t)ad_count(v->ad));
}

/* Walks the numbers of a list: op adds, or keeps the one for which `member op best` holds. Undefined members
 * are passed over; a boolean counts as an integer beside others. Returns how many numbers there were, or -1
 * for anything else among them. */
static int64_t reduce(const struct call *c, enum op op, struct value *ret_all)
{
        const struct value_list *list = c->args[0].list;
        struct value member, all = value_undefined(), r;
        int64_t n = 0;
        double d;

        for (uint32_t i = 0; i < list->n; i++) {
                run_item(c->run, list, i, &member);
                if (c->run->ev->limit_hit)
                        return -1;
                if (member.type == VALUE_UNDEFINED)
                        continue;
                if (!value_to_double(&member, &d))
                        return -1;
                if (n++ == 0) {
                        all = member;
                        continue;
                }
                if (all.type == VALUE_BOOLEAN)
                        all = value_integer(all.boolean);
                if (member.type == VALUE_BOOLEAN)
                        member = value_integer(member.boolean);
                operator_binary(op, &member, &all, &r);
                if (op == OP_ADD) {
                        all = r;
                } else {
                        bool real = all.type == VALUE_REAL || member.type == VALUE_REAL;

                        if (value_is_true(&r))
                                all = member;
                        if (real && value_to_double(&all, &d))
                                all = value_real(d);
                }
        }
        *ret_all = all;
        return n;
}

static bool reducible(const struct call *c, struct value *ret)
{
        return !call_strict(c, ret) && c->args[0].type == VALUE_LIST;
}

void function_sum(const struct call *c, struct value *ret)
{
        struct value all;

        if (reducible(c, ret) && reduce(c, OP_ADD, &all) >= 0)
                *ret = all.type == VALUE_UNDEFINED ? value_integer(0) : all;
}

void function_avg(const struct call *c, struct value *ret)
{
        struct value all;
        int64_t n;
        double d;

        if (!reducible(c, ret) || (n = reduce(c, OP_ADD, &all)) < 0)
                return;
        if (n > 0 && value_to_double(&all, &d))
                *ret = value_real(d / (double)n);
        else
                *ret = value_integer(0);
}

void function_min(const struct call *c, struct value *ret)
{
        struct value all;

        if (reducible(c, ret) && reduce(c, OP_LESS, &all) >= 0)
                *ret = all;
}

void function_max(const struct call *c, struct value *ret)
{
        struct value all;

        if (reducible(c, ret) && reduce(c, OP_GREATER, &all) >= 0)
                *ret = all;
}

static bool comparison(struct str name, enum op *ret)
{
        static const struct {
                const char *name;
                enum op op;
        } all[] = {{"<", OP_LESS},    {"<=", OP_LESS_EQUAL},    {"==", OP_EQUAL}, {"!=", OP_NOT_EQUAL},
                   {">", OP_GREATER}, {">=", OP_GREATER_EQUAL}, {"is", OP_IS},    {"isnt", OP_ISNT}};

        for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
                if (str_ieqz(name, all[i].name)) {
                        *ret = all[i].op;
                        return true;
                }
        return false;
}

static void compare_all(const struct call *c, bool any, struct value *ret)
{
        const struct value *list = &c->args[1], *x = &c->args[2];
        struct value member, same;
        enum op op;

        if (c->args[0].type == VALUE_UNDEFINED)
                *ret = value_undefined();
        if (c->args[0].type != VALUE_STRING || !comparison(c->args[0].string, &op))
                return;
        if (list->type == VALUE_UNDEFINED)
                *ret = value_undefined();
        if (list->type != VALUE_LIST)
                return;
        for (uint32_t i = 0; i < list->list->n; i++) {
                run_item(c->run, list->list, i, &member);
                if (c->run->ev->limit_hit)
                        return;
                run_binary(c->run, op, &member, x, &same);
                if (same.type == VALUE_BOOLEAN && same.boolean != any)
                        continue;
                /* a comparison that is undefined ends it, as false; an error is one of the whole */
                *ret = same.type == VALUE_UNDEFINED ? value_boolean(false) : same;
                return;
        }
        *ret = value_boolean(!any);
}

void function_anyCompare(const struct call *c, struct value *ret)
{
        compare_all(c, true, ret);
}

void function_allCompare(const struct call *c, struct value *ret)
{
        compare_all(c, false, ret);
}

/* String lists: items between any of the delimiters, without the white space around them; empty ones don't
 * count. */
struct items {
        struct str rest;
        const struct charset *delimiters;
};

static bool next_item(struct items *it, struct str *ret)
{
        while (it->rest.n) {
                size_t n = 0;

                while (n < it->rest.n && !charset_has(it->delimiters, it->rest.p[n]))
                        n++;
                *ret = str_trim(str_head(it->rest, n));
                it->rest = str_skip(it->rest, n < it->rest.n ? n + 1 : n);
                if (ret->n)
                        return true;
        }
        return false;
}

/* Checks that all arguments are strings; the one at `delimiters` may be missing. */
static bool string_args(const struct call *c, unsigned delimiters, struct charset *ret_delimiters)
{
        for (unsigned i = 0; i < c->argc; i++)
                if (c->args[i].type != VALUE_STRING || !run_steps(c->run, c->args[i].string.n / 64))
                        return false;
        charset_init(ret_delimiters, c->argc > delimiters ? c->args[delimiters].string : STR(" ,"));
        return true;
}

void function_stringListSize(const struct call *c, struct value *ret)
{
        struct charset set;
        struct items it = {.delimiters = &set};
        struct str item;
        int64_t n = 0;

        if (!string_args(c, 1, &set))
                return;
        it.rest = c->args[0].string;
        while (next_item(&it, &item))
                n++;
        *ret = value_integer(n);
}

/* reduce() over the numbers of a string list. */
static int64_t reduce_text(const struct call *c, enum op op, struct value *ret_all)
{
        struct charset set;
        struct items it = {.delimiters = &set};
        struct str item;
        int64_t n = 0, i;
        struct value all = value_undefined(), member, r;
        double d;
        bool real = false;

        /* reading numbers takes longer than looking for where they end */
        if (!string_args(c, 1, &set) || !run_steps(c->run, c->args[0].string.n / 8))
                return -1;
        it.rest = c->args[0].string;
        while (next_item(&it, &item)) {
                if (!str_to_i64(item, &i))
                        member = value_integer(i);
                else if (!str_to_double(item, &d))
                        member = value_real(d);
                else
                        return -1;
                real = real || member.type == VALUE_REAL;
                if (n++ == 0) {
                        all = member;
                        continue;
                }
                operator_binary(op, &member, &all, &r);
                if (op == OP_ADD)
                        all = r;
                else if (value_is_true(&r))
                        all = member;
        }
        if (real && value_to_double(&all, &d))
                all = value_real(d);
        *ret_all = all;
        return n;
}

void function_stringListSum(const struct call *c, struct value *ret)
{
        struct value all;
        int64_t n = reduce_text(c, OP_ADD, &all);

        if (n >= 0)
                *ret = n ? all : value_real(0);
}

void function_stringListAvg(const struct call *c, struct value *ret)
{
        struct value all;
        int64_t n = reduce_text(c, OP_ADD, &all);
        double d = 0;

        if (n > 0)
                value_to_double(&all, &d);
        if (n >= 0)
                *ret = value_real(n ? d / (double)n : 0);
}

void function_stringListMin(const struct call *c, struct value *ret)
{
        struct value all;

        if (reduce_text(c, OP_LESS, &all) >= 0)
                *ret = all;
}

void function_stringListMax(const struct call *c, struct value *ret)
{
        struct value all;

        if (reduce_text(c, OP_GREATER, &all) >= 0)
                *ret = all;
}

static bool has_item(struct run *r, struct str list, const struct charset *delimiters, struct str x,
                     bool nocase)
{
        struct items it = {list, delimiters};
        struct str item;

        if (!run_steps(r, 1 + list.n / 16))
                return false;
        while (next_item(&it, &item))
                if (nocase ? str_ieq(item, x) : str_eq(item, x))
                        return true;
        return false;
}

/* The arguments of stringListMember and stringListSubsetMatch: strings, or undefined, which counts as an
 * empty string and as the usual delimiters. False: *ret is what to answer. */
static bool membership_args(const struct call *c, struct str *ret_x, struct str *ret_list,
                            struct charset *ret_delimiters, struct value *ret)
{
        struct str texts[3] = {STR(""), STR(""), STR(", \t\r\n")};

        for (unsigned i = 0; i < c->argc; i++) {
                if (c->args[i].type == VALUE_UNDEFINED)
                        continue;
                if (c->args[i].type != VALUE_STRING || !run_steps(c->run, c->args[i].string.n / 64))
                        return false;
                texts[i] = c->args[i].string;
        }
        if (c->args[0].type == VALUE_UNDEFINED && c->args[1].type == VALUE_UNDEFINED) {
                *ret = value_undefined();
                return false;
        }
        *ret_x = texts[0];
        *ret_list = texts[1];
        charset_init(ret_delimiters, texts[2]);
        return true;
}

static void text_member(const struct call *c, bool nocase, struct value *ret)
{
        struct charset delimiters;
        struct str x, list;

        if (membership_args(c, &x, &list, &delimiters, ret))
                *ret = value_boolean(has_item(c->run, list, &delimiters, x, nocase));
}

void function_stringListMember(const struct call *c, struct value *ret)
{
        text_member(c, false, ret);
}

void function_stringListIMember(const struct call *c, struct value *ret)
{
        text_member(c, true, ret);
}

/* Counts the items of one list that are in another, and all its items. */
static void common(struct run *r, struct str items, struct str list, const struct charset *delimiters,
                   bool nocase, size_t *ret_common, size_t *ret_all)
{
        struct items it = {items, delimiters};
        struct str item;

        *ret_common = *ret_all = 0;
        while (next_item(&it, &item)) {
                ++*ret_all;
                *ret_common += has_item(r, list, delimiters, item, nocase);
        }
}

void function_stringListsIntersect(const struct call *c, struct value *ret)
{
        struct charset delimiters;
        size_t shared, all;

        if (call_strict(c, ret) || !string_args(c, 2, &delimiters))
                return;
        common(c->run, c->args[0].string, c->args[1].string, &delimiters, false, &shared, &all);
        *ret = value_boolean(shared > 0);
}

static void subset(const struct call *c, bool nocase, struct value *ret)
{
        struct charset delimiters;
        struct str items, list;
        size_t shared, all;

        if (!membership_args(c, &items, &list, &delimiters, ret))
                return;
        common(c->run, items, list, &delimiters, nocase, &shared, &all);
        *ret = value_boolean(shared == all);
}

void function_stringListSubsetMatch(const struct call *c, struct value *ret)
{
        subset(c, false, ret);
}

void function_stringListISubsetMatch(const struct call *c, struct value *ret)
{
        subset(c, true, ret);
}

void function_stringList_regexpMember(const struct call *c, struct value *ret)
{
        struct charset set;
        struct items it = {.delimiters = &set};
        struct str item,
                options = c->argc > 3 && c->args[3].type == VALUE_STRING ? c->args[3].string : STR("");
        struct regexp *x;
        int r = 0;

        if (!string_args(c, 2, &set))
                return;
        x = regexp_new(c->run, c->args[0].string, options);
        it.rest = c->args[1].string;
        while (x && r == 0 && next_item(&it, &item))
                r = regexp_search(x, item);
        if (x && r >= 0)
                *ret = value_boolean(r > 0);
        regexp_free(x);
}
