/* functions: the built-in functions (private to classad/).
 *
 * The function of symbol SYM_FIRST_FUNCTION + i is functions[i]. A function gets its arguments evaluated,
 * unless it is lazy. Sources: HTCondor manual, "Predefined Functions", and the behaviour of its library 25.x.
 */
#pragma once
#include "classad/run.h"

#define ANY_NUMBER 255

struct call {
        struct run *run;
        const struct node *nd;
        unsigned argc;
        const struct value *args; /* argc of them; NULL for lazy functions */
};

typedef void function_fn(const struct call *c, struct value *ret);
struct function {
        const char *name;
        uint8_t args_min, args_max;
        bool lazy;
        function_fn *fn;
        enum function_uses {
                FUNCTION_USES_NOTHING,
                FUNCTION_USES_TIME,
                FUNCTION_USES_TIME_ALONE, /* when it has no argument */
                FUNCTION_USES_RANDOM,
        } uses;
};

extern const struct function functions[];
extern const unsigned functions_count;

const struct function *function_find(symbol name); /* NULL when there is none */
void function_call(struct run *r, const struct node *nd, struct value *ret);

/* Helpers of the functions. */
static inline const struct node *call_arg_node(const struct call *c, unsigned i)
{
        return node_wide_kid(c->nd, i);
}
void call_eval(const struct call *c, unsigned i, struct value *ret); /* an argument of a lazy function */
/* Returns whether an argument is error or undefined, and puts that into *ret; error wins over undefined. */
bool call_strict(const struct call *c, struct value *ret);
/* call_strict, with undefined winning over error. */
bool call_undefined(const struct call *c, struct value *ret);
/* Converts an argument to text, as string() does; lists and ads as they print. False: *ret is the function's
 * result. */
bool call_text(const struct call *c, unsigned i, struct str *ret_text, struct value *ret);
/* A set of characters, such as the separators of a string list. */
struct charset {
        bool has[256];
};
static inline void charset_init(struct charset *set, struct str members)
{
        *set = (struct charset){{false}};
        for (size_t i = 0; i < members.n; i++)
                set->has[(unsigned char)members.p[i]] = true;
}
static inline bool charset_has(const struct charset *set, char c)
{
        return set->has[(unsigned char)c];
}
/* Converts any value to text; a string is returned as it is. The text is borrowed from the evaluation's
 * arena. */
bool run_value_text(struct run *r, const struct value *v, struct str *ret);
/* Convert a value as real(x) and int(x) do: numbers, times and strings that begin with a number. False: no
 * number. */
bool value_convert_real(const struct value *v, double *ret);
bool value_convert_integer(const struct value *v, int64_t *ret);
/* PCRE2 under the limits of the evaluation: the work of a pattern is counted in steps while it runs. */
struct regexp;
struct regexp *regexp_new(struct run *r, struct str pattern, struct str options); /* NULL: a bad pattern */
void regexp_free(struct regexp *x);                                               /* NULL is fine */
/* Searches the subject for the pattern. 1: it matches; 0: it does not; -1: the search takes too much work. */
int regexp_search(struct regexp *x, struct str subject);

/* All functions: F, lazy ones L, those that read the time T, those that use the random state R. The manual
 * describes each. */
/* clang-format off */
#define FUNCTION_TABLE(F, L, T, R) \
        L(isUndefined, 1, 1) L(isError, 1, 1) L(isString, 1, 1) L(isInteger, 1, 1) \
        L(isReal, 1, 1) L(isList, 1, 1) L(isClassAd, 1, 1) L(isBoolean, 1, 1) \
        L(isAbstime, 1, 1) L(isReltime, 1, 1) F(int, 1, 1) F(real, 1, 1) F(string, 1, 1) \
        F(bool, 1, 1) L(ifThenElse, 3, 3) F(eval, 1, 1) L(unparse, 1, 1) L(unresolved, 1, 2) \
        F(debug, 1, 1) L(evalInEachContext, 2, 2) L(countMatches, 2, 2) \
        F(strcat, 0, ANY_NUMBER) F(join, 1, ANY_NUMBER) F(toUpper, 1, 1) F(toLower, 1, 1) \
        F(substr, 2, 3) F(strcmp, 2, 2) F(stricmp, 2, 2) F(versioncmp, 2, 2) \
        F(versionLE, 2, 2) F(versionLT, 2, 2) F(versionGE, 2, 2) F(versionGT, 2, 2) \
        F(versionEQ, 2, 2) F(version_in_range, 3, 3) F(split, 1, 2) F(splitUserName, 1, 1) \
        F(splitSlotName, 1, 1) F(floor, 1, 1) F(ceil, 1, 1) F(ceiling, 1, 1) F(round, 1, 1) \
        F(pow, 2, 2) F(log, 1, 2) F(quantize, 2, 2) R(random, 0, 1) F(member, 2, 2) \
        F(identicalMember, 2, 2) F(size, 1, 1) F(sum, 1, 1) F(avg, 1, 1) F(min, 1, 1) \
        F(max, 1, 1) F(anyCompare, 3, 3) F(allCompare, 3, 3) F(stringListSize, 1, 2) \
        F(stringListSum, 1, 2) F(stringListAvg, 1, 2) F(stringListMin, 1, 2) \
        F(stringListMax, 1, 2) F(stringListMember, 2, 3) F(stringListIMember, 2, 3) \
        F(stringListsIntersect, 2, 3) F(stringListSubsetMatch, 2, 3) \
        F(stringListISubsetMatch, 2, 3) F(regexp, 2, 3) F(regexpMember, 2, 3) \
        F(regexps, 3, 4) F(replace, 3, 4) F(replaceAll, 3, 4) \
        F(stringList_regexpMember, 2, 4) T(time, 0, 0) F(interval, 1, 1) \
        F(timeZoneOffset, 0, 0) T(dayTime, 0, 0) F(getYear, 1, 1) F(getMonth, 1, 1) \
        F(getDayOfYear, 1, 1) F(getDayOfMonth, 1, 1) F(getDayOfWeek, 1, 1) F(getDays, 1, 1) \
        F(getHours, 1, 1) F(getMinutes, 1, 1) F(getSeconds, 1, 1) F(splitTime, 1, 1) \
        T(formatTime, 0, 2) T(absTime, 0, 2) F(relTime, 1, 1) F(envV1ToV2, 1, 1) \
        F(mergeEnvironment, 0, ANY_NUMBER) F(listToArgs, 1, 2) F(argsToList, 1, 2) \
        F(userHome, 1, 2) F(userMap, 2, 4)
/* clang-format on */

#define FUNCTION_DECLARE(name, min, max) function_fn function_##name;
FUNCTION_TABLE(FUNCTION_DECLARE, FUNCTION_DECLARE, FUNCTION_DECLARE, FUNCTION_DECLARE)
#undef FUNCTION_DECLARE
