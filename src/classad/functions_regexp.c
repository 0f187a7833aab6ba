/* Regular expressions by PCRE2. How long a search takes is the user's choice, and PCRE2's own limit on moves
 * counts anew from each place where a match could begin. So patterns are compiled with a callout before each
 * item: each takes its part of a step, and what was passed over since the last one counts by its bytes. A
 * search ends with the evaluation's steps, or its time, whatever the pattern is. An item that can look at
 * many bytes and then fail without a callout ("a{500}", a reference back) makes each callout cost what that
 * may take, and so do many groups, whose places PCRE2 copies at each move.
 *
 * A pattern is compiled for each call of a function, once for all the subjects of that call. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/mem.h"
#include "classad/functions.h"

#define MATCH_LIMIT    10000000 /* the steps end a search long before */
#define DEPTH_LIMIT    1000
#define HEAP_LIMIT_KIB 16384
#define PATTERN_MAX    8192
#define SUBJECT_MAX    65536 /* an item may look at all of it between two looks at the clock */
#define CAPTURES_MAX   10

/* Limits of a search's work: */
#define STEP_UNITS      16  /* in a step */
#define UNIT_BYTES      16  /* of the subject that are passed over */
#define UNIT_FRAME      256 /* bytes of places of groups that are copied */
#define COMPILE_STEPS   16
#define COMPILE_REPEATS 512 /* steps: repeated groups can make a short pattern compile to much code */

struct regexp {
        struct run *run;
        pcre2_code *code;
        pcre2_match_data *data;
        pcre2_match_context *context;
        size_t blind;    /* bytes that an item may look at before it fails without a callout */
        size_t per_call; /* units */
        size_t units;    /* not charged yet */
        size_t last;     /* where the last callout was */
        bool utf;
        int groups; /* of the last match: up to the last one that took part in it, the whole included */
};

static bool has_option(struct str options, char lower)
{
        for (size_t i = 0; i < options.n; i++)
                if ((options.p[i] | 0x20) == lower)
                        return true;
        return false;
}

static bool work(struct regexp *x, size_t units)
{
        size_t steps = (x->units += units) / STEP_UNITS;

        x->units %= STEP_UNITS;
        return steps == 0 || run_steps(x->run, steps);
}

static int on_item(pcre2_callout_block *at, void *arg)
{
        struct regexp *x = arg;
        size_t now = at->current_position, passed = now > x->last ? now - x->last : x->last - now;

        x->last = now;
        return work(x, x->per_call + passed / UNIT_BYTES) ? 0 : PCRE2_ERROR_CALLOUT;
}

/* The largest number behind a brace; all there is, if groups may be referred to. */
static size_t blind_bytes(struct str pattern)
{
        size_t most = 0, n;

        for (size_t i = 0; i < pattern.n; i++) {
                char next = i + 1 < pattern.n ? pattern.p[i + 1] : 0;

                if ((pattern.p[i] == '\\' && ((next >= '1' && next <= '9') || next == 'k' || next == 'g')) ||
                    (pattern.p[i] == 'P' && next == '='))
                        return SUBJECT_MAX;
                for (n = 0; pattern.p[i] == '{' && i + 1 < pattern.n && pattern.p[i + 1] >= '0' &&
                            pattern.p[i + 1] <= '9' && n < SUBJECT_MAX;) {
                        n = n * 10 + (size_t)(pattern.p[i + 1] - '0');
                        pattern = str_skip(pattern, 1);
                }
                most = n > most ? n : most;
        }
        return most;
}

static bool compile(struct regexp *x, struct str pattern, uint32_t flags)
{
        uint32_t options = 0;
        PCRE2_SIZE at, frame = 0;
        int error;

        x->code = pcre2_compile((PCRE2_SPTR)(pattern.p ? pattern.p : ""), pattern.n,
                                flags | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT, &error, &at, NULL);
        if (!x->code)
                return false;
        x->data = pcre2_match_data_create(CAPTURES_MAX, NULL);
        x->context = pcre2_match_context_create(NULL);
        if (!x->data || !x->context)
                return false;
        pcre2_set_match_limit(x->context, MATCH_LIMIT);
        pcre2_set_depth_limit(x->context, DEPTH_LIMIT);
        pcre2_set_heap_limit(x->context, HEAP_LIMIT_KIB);
        pcre2_set_callout(x->context, on_item, x);
        pcre2_pattern_info(x->code, PCRE2_INFO_ALLOPTIONS, &options);
        pcre2_pattern_info(x->code, PCRE2_INFO_FRAMESIZE, &frame);
        x->utf = options & PCRE2_UTF;
        x->per_call = 1 + frame / UNIT_FRAME;
        x->blind = blind_bytes(pattern);
        return true;
}

struct regexp *regexp_new(struct run *r, struct str pattern, struct str options)
{
        bool repeats = str_find(pattern, '{') >= 0;
        struct regexp *x;
        uint32_t flags = 0;

        if (pattern.n > PATTERN_MAX ||
            !run_steps(r, COMPILE_STEPS + pattern.n / 2 + (repeats ? COMPILE_REPEATS : 0)))
                return NULL;
        flags |= has_option(options, 'i') ? PCRE2_CASELESS : 0;
        flags |= has_option(options, 'm') ? PCRE2_MULTILINE : 0;
        flags |= has_option(options, 's') ? PCRE2_DOTALL : 0;
        flags |= has_option(options, 'x') ? PCRE2_EXTENDED : 0;
        x = mem_new(struct regexp);
        x->run = r;
        if (!compile(x, pattern, flags)) {
                regexp_free(x);
                return NULL;
        }
        return x;
}

void regexp_free(struct regexp *x)
{
        if (!x)
                return;
        pcre2_match_context_free(x->context);
        pcre2_match_data_free(x->data);
        pcre2_code_free(x->code);
        free(x);
}

static void regexp_cleanup(struct regexp **x)
{
        regexp_free(*x);
}
#define REGEXP_CLEANUP __attribute__((cleanup(regexp_cleanup)))

/* 1 with the places of the match, 0, or -1. */
static int search_from(struct regexp *x, struct str subject, size_t from)
{
        size_t per_call = x->per_call, looked;
        int n;

        if (subject.n > SUBJECT_MAX || !run_steps(x->run, 1 + (x->utf ? subject.n / RUN_TEXT : 0)))
                return -1;
        x->per_call += (x->blind < subject.n ? x->blind : subject.n) / UNIT_BYTES;
        x->last = from;
        n = pcre2_match(x->code, (PCRE2_SPTR)(subject.p ? subject.p : ""), subject.n, from, 0, x->data,
                        x->context);
        x->per_call = per_call;
        /* where it could begin was looked for, too */
        looked = n > 0 ? pcre2_get_ovector_pointer(x->data)[1] : subject.n;
        if (!work(x, per_call + (looked > from ? looked - from : 0) / UNIT_BYTES))
                return -1;
        if (n == PCRE2_ERROR_NOMATCH)
                return 0;
        x->groups = n;
        return n < 0 ? -1 : 1;
}

int regexp_search(struct regexp *x, struct str subject)
{
        return search_from(x, subject, 0);
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
        struct regexp *x REGEXP_CLEANUP = NULL;
        struct str options;
        int r;

        if (!strings(c, 2, &options, ret) || !(x = regexp_new(c->run, c->args[0].string, options)))
                return;
        r = regexp_search(x, c->args[1].string);
        if (r >= 0)
                *ret = value_boolean(r);
}

void function_regexpMember(const struct call *c, struct value *ret)
{
        struct regexp *x REGEXP_CLEANUP = NULL;
        struct value member;
        bool undefined = false;
        int r;

        if (call_strict(c, ret) || c->args[0].type != VALUE_STRING || c->args[1].type != VALUE_LIST ||
            (c->argc == 3 && c->args[2].type != VALUE_STRING) ||
            !(x = regexp_new(c->run, c->args[0].string, c->argc == 3 ? c->args[2].string : STR(""))))
                return;
        for (uint32_t i = 0; i < c->args[1].list->n; i++) {
                run_item(c->run, c->args[1].list, i, &member);
                if (member.type == VALUE_UNDEFINED) {
                        undefined = true;
                        continue;
                }
                if (member.type != VALUE_STRING || (r = regexp_search(x, member.string)) < 0)
                        return;
                if (r) {
                        *ret = value_boolean(true);
                        return;
                }
        }
        *ret = undefined ? value_undefined() : value_boolean(false);
}

/* Appends the substitute with \0..\9 replaced by the captured text. False: one of them is behind the last
 * group that took part in the match, or there are no steps left. */
static bool expand(struct regexp *x, struct str subject, struct str substitute, struct buf *out)
{
        const PCRE2_SIZE *at = pcre2_get_ovector_pointer(x->data);

        if (!work(x, substitute.n / UNIT_BYTES))
                return false;
        for (size_t i = 0; i < substitute.n; i++) {
                char ch = substitute.p[i], d = i + 1 < substitute.n ? substitute.p[i + 1] : 0;
                int k = d - '0';

                if (ch != '\\' || k < 0 || k > 9) {
                        buf_char(out, ch);
                        continue;
                }
                if (k >= x->groups)
                        return false;
                if (at[2 * k] != PCRE2_UNSET) {
                        if (!work(x, 1 + (at[2 * k + 1] - at[2 * k]) / UNIT_BYTES))
                                return false;
                        buf_add(out, subject.p + at[2 * k], at[2 * k + 1] - at[2 * k]);
                }
                i++;
        }
        return true;
}

static void substitute_in(const struct call *c, bool full, bool global, struct value *ret)
{
        struct buf out BUF_CLEANUP = {.max = c->run->ev->bytes_max};
        struct regexp *x REGEXP_CLEANUP = NULL;
        struct str options, subject;
        size_t from = 0, copied = 0;
        int r;

        if (!strings(c, 3, &options, ret))
                return;
        full = full || has_option(options, 'f');
        global = global || has_option(options, 'g');
        subject = c->args[1].string;
        if (!(x = regexp_new(c->run, c->args[0].string, options)))
                return;
        do {
                const PCRE2_SIZE *at;

                r = search_from(x, subject, from);
                if (r < 0)
                        return;
                if (r == 0)
                        break;
                at = pcre2_get_ovector_pointer(x->data);
                if (at[0] < copied || at[1] < at[0])
                        return; /* \K looked behind: nothing sensible to replace */
                if (full)
                        buf_add(&out, subject.p + copied, at[0] - copied);
                if (!expand(x, subject, c->args[2].string, &out))
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
