/* macro: $(name) references in text.
 *
 * One expander for the readers of job descriptions, which know all macros, and for the agent and the server,
 * which fill in what belongs to one job. Forms (HTCondor manual, "Submitting a job", "Function macros"):
 *
 *   $(name)  $(name:default)  $(DOLLAR) → $  $ENV(name[:default])
 *   $F[fpduwnxbqa…](name)  $BASENAME(name[,suffix])  $DIRNAME(name)  $SUBSTR(name,from[,len])
 *   $INT(name[,format])  $REAL(name[,format])  $STRING(expression)  $EVAL(expression)
 *   $CHOICE(index,list…)  $RANDOM_CHOICE(a,b,…)  $RANDOM_INTEGER(min,max[,step])
 *
 * $$(…) and $$([…]) are left as they are, and so is what only looks like a reference: $(date +%s), $5,
 * $OTHER(x). Names are case-insensitive, names of functions are not. Values are expanded again, to a bounded
 * depth. The first argument of a function is the name of a macro, or else text. $INT and $REAL know the
 * arithmetic of base/arith.h. In a late reference all that is known is filled in: with n = $(Process)+1,
 * $INT(n) becomes $INT($(Process)+1).
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define MACRO_DEPTH_MAX 32
#define MACRO_TEXT_MAX  (16u << 20) /* bytes of one expansion */
#define MACRO_WORK_MAX  (64u << 20) /* bytes looked at for one expansion */

enum macro_found {
        MACRO_UNKNOWN, /* no such name: the default if there is one, else `missing` decides */
        MACRO_VALUE,   /* the value was appended to out; it is expanded again */
        MACRO_FINAL,   /* appended; not expanded again */
        MACRO_LATE, /* cannot be known yet: the whole reference stays in the text as it is, and *late is set
                     */
};
/* What a lookup returns for an item variable: the value is appended to out, and expanded again if there is
 * anything in it to expand. */
enum macro_found macro_item(struct str value, struct buf *out);
struct macro_world {
        void *arg;
        enum macro_found (*lookup)(void *arg, struct str name, struct buf *out);
        const char *(*getenv)(void *arg, const char *name); /* NULL: $ENV is an error */
        uint64_t *random;                                   /* state for $RANDOM_*; NULL: an error */
        bool random_late; /* $RANDOM_* are left to each job: they become $JOB_CHOICE and $JOB_INTEGER, late */
        /* The value of a ClassAd expression as text, for $EVAL and $STRING; 0 or -EINVAL with err. NULL: an
         * error. */
        int (*evaluate)(void *arg, struct str expression, struct buf *out, struct err *err);
        bool keep_dollar; /* the text will be expanded once more: $(DOLLAR) stays, also without late ones */
        bool missing_is_error; /* an unknown name without default: an error, or the empty string */
        const char *cwd;       /* what $Ff() puts before a relative path; NULL: an error */
        /* Bytes that may still be looked at, by all the expansions that share this; each takes from it what
         * it looked at. NULL: MACRO_WORK_MAX for each. */
        size_t *work;
        /* Told of each unknown name without default that became the empty string; NULL: nobody asks. */
        void (*missing)(void *arg, struct str name);
};
/* Appends the expansion to out. *ret_late (may be NULL) says whether late references are left.
 * 0, or with err and out unchanged: -EINVAL malformed reference, unknown name, too deep; -EMSGSIZE out is
 * full or one of the limits above was passed. */
int macro_expand(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                 struct err *err);
/* The same in the text of a ClassAd expression: what comes into a string literal is written there as a string
 * holds it, so that a value with a quote or a backslash stays inside. */
int macro_expand_expression(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                            struct err *err);
/* Where $JOB_CHOICE and $JOB_INTEGER of a job begin, so that everybody who expands a text comes to the same.
 */
uint64_t macro_job_seed(uint64_t request, uint32_t member);
bool macro_present(struct str text); /* there is a $( or $FUNCTION( in it, other than $$( */
/* The next element of a list, trimmed, and *rest behind its separator; one inside $(…), $$(…) or $FUNCTION(…)
 * parts nothing. As str_cut: false, with nothing changed, when *rest is used up. */
bool macro_cut(struct str *rest, char sep, struct str *ret_element);
bool macro_is_name(struct str name); /* letters, digits, '_' and '.', at least one */
