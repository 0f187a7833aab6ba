/* Regular expressions by PCRE2, with limits on backtracking and depth, so that no pattern holds the server. A
 * pattern is compiled each time; the last one is kept within one call over many subjects. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "classad/functions.h"

#define MATCH_LIMIT    20000
#define DEPTH_LIMIT    1000
#define HEAP_LIMIT_KIB 16384
#define SEARCH_STEPS   200 /* of the evaluation: what a search under these limits may take */
#define PATTERN_MAX    65536
#define CAPTURES_MAX   10

struct regexp {
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *context;
        int groups; /* of the last match: up to the last one that took part in it, the whole included */
};

static void regexp_deinit(struct regexp *x)
{
        pcre2_match_context_free(x->context);
        pcre2_match_data_free(x->data);
        pcre2_code_free(x->code);
}
#define REGEXP_CLEANUP __attribute__((cleanup(regexp_deinit)))

static bool has_option(struct str options, char lower)
{
        for (size_t i = 0; i < options.n; i++)
                if ((options.p[i] | 0x20) == lower)
                        return true;
        return false;
}

static bool regexp_init(struct regexp *x, struct run *r, struct str pattern, struct str options)
{
        uint32_t flags = 0;
        PCRE2_SIZE at;
        int error;

        *x = (struct regexp){0};
        if (pattern.n > PATTERN_MAX || !run_steps(r, 16 + pattern.n / 8))
                return false;
        flags |= has_option(options, 'i') ? PCRE2_CASELESS : 0;
        flags |= has_option(options, 'm') ? PCRE2_MULTILINE : 0;
        flags |= has_option(options, 's') ? PCRE2_DOTALL : 0;
        flags |= has_option(options, 'x') ? PCRE2_EXTENDED : 0;
        x->code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
                                flags | PCRE2_NEVER_BACKSLASH_C, &error, &at, NULL);
        if (!x->code)
                return false;
        x->data = pcre2_match_data_create(CAPTURES_MAX, NULL);
        x->context = pcre2_match_context_create(NULL);
        if (!x->data || !x->context)
                return false;
        pcre2_set_match_limit(x->context, MATCH_LIMIT);
        pcre2_set_depth_limit(x->context, DEPTH_LIMIT);
        pcre2_set_heap_limit(x->context, HEAP_LIMIT_KIB);
        return true;
}

/* 1 with the places of the match, 0, or -1. */
static int regexp_search(struct regexp *x, struct run *r, struct str subject, size_t from, uint32_t flags)
{
        int n;

        if (!run_steps(r, SEARCH_STEPS + (subject.n - from) / 16))
                return -1;
        n = pcre2_match(x->code, (PCRE2_SPTR)(subject.p ? subject.p : ""), subject.n, from, flags, x->data,
                        x->context);
        if (n == PCRE2_ERROR_NOMATCH)
                return 0;
        x->groups = n;
        return n < 0 ? -1 : 1;
}

int regexp_matches(struct run *r, struct str pattern, struct str subject, struct str options)
{
        struct regexp x REGEXP_CLEANUP = {0};

        return regexp_init(&x, r, pattern, options) ? regexp_search(&x, r, subject, 0, 0) : -1;
}

/* The options when there is such an argument; false when one of the first n arguments is no string. */
static bool strings(const struct call *c, unsigned n, struct str *ret_options, struct value *ret)
{
        if (call_strict(c, ret))
                return false;
        for (unsigned i = 0; i < c->argc; i++)
                if (c->args[i].type != VALUE_STRING)
                        return false;
        *ret_options = c->argc > n ? c->args[n].string : STR("");
        return true;
}

void function_regexp(const struct call *c, struct value *ret)
{
        struct str options;
        int r;

        if (!strings(c, 2, &options, ret))
                return;
        r = regexp_matches(c->run, c->args[0].string, c->args[1].string, options);
        if (r >= 0)
                *ret = value_boolean(r);
}

void function_regexpMember(const struct call *c, struct value *ret)
{
        struct regexp x REGEXP_CLEANUP = {0};
        struct value member;
        bool undefined = false;
        int r;

        if (call_strict(c, ret) || c->args[0].type != VALUE_STRING || c->args[1].type != VALUE_LIST ||
            (c->argc == 3 && c->args[2].type != VALUE_STRING) ||
            !regexp_init(&x, c->run, c->args[0].string, c->argc == 3 ? c->args[2].string : STR("")))
                return;
        for (uint32_t i = 0; i < c->args[1].list->n; i++) {
                run_item(c->run, c->args[1].list, i, &member);
                if (member.type == VALUE_UNDEFINED) {
                        undefined = true;
                        continue;
                }
                if (member.type != VALUE_STRING || (r = regexp_search(&x, c->run, member.string, 0, 0)) < 0)
                        return;
                if (r) {
                        *ret = value_boolean(true);
                        return;
                }
        }
        *ret = undefined ? value_undefined() : value_boolean(false);
}

/* The substitute with \0..\9 replaced by what was captured. False: one of them is behind the last group that
 * took part in the match. */
static bool expand(const struct regexp *x, struct str subject, struct str substitute, struct buf *out)
{
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(x->data);

        for (size_t i = 0; i < substitute.n; i++) {
                char ch = substitute.p[i], d = i + 1 < substitute.n ? substitute.p[i + 1] : 0;
                int k = d - '0';

                if (ch != '\\' || k < 0 || k > 9) {
                        buf_char(out, ch);
                        continue;
                }
                if (k >= x->groups)
                        return false;
                if (at[2 * k] != PCRE2_UNSET)
                        buf_add(out, subject.p + at[2 * k], at[2 * k + 1] - at[2 * k]);
                i++;
        }
        return true;
}

static void substitute_in(const struct call *c, bool full, bool global, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};
        struct regexp x REGEXP_CLEANUP = {0};
        struct str options, subject;
        size_t from = 0, copied = 0;
        int r;

        if (!strings(c, 3, &options, ret))
                return;
        full = full || has_option(options, 'f');
        global = global || has_option(options, 'g');
        subject = c->args[1].string;
        if (!regexp_init(&x, c->run, c->args[0].string, options))
                return;
        do {
                const PCRE2_SIZE *at;

                r = regexp_search(&x, c->run, subject, from, 0);
                if (r < 0)
                        return;
                if (r == 0)
                        break;
                at = pcre2_get_ovector_pointer(x.data);
                if (at[0] < copied || at[1] < at[0])
                        return; /* \K looked behind: nothing sensible to replace */
                if (full)
                        buf_add(&out, subject.p + copied, at[0] - copied);
                if (!expand(&x, subject, c->args[2].string, &out))
                        return;
                copied = at[1];
                from = at[1];
                if (at[1] == at[0]) { /* an empty match: go on behind the next character */
                        if (from >= subject.n)
                                break;
                        if (full)
                                buf_char(&out, subject.p[from]);
                        copied = ++from;
                }
        } while (global && from <= subject.n && !out.overflow);
        if (full && copied < subject.n)
                buf_add(&out, subject.p + copied, subject.n - copied);
        if (out.overflow)
                run_limit(c->run, "memory");
        else
                run_text(c->run, buf_view(&out), ret);
}

void function_regexps(const struct call *c, struct value *ret)
{
        substitute_in(c, false, false, ret);
}

void function_replace(const struct call *c, struct value *ret)
{
        substitute_in(c, true, false, ret);
}

void function_replaceAll(const struct call *c, struct value *ret)
{
        substitute_in(c, true, true, ret);
}
