/* macro: $(name) references in text.
 *
 * One expander serves the readers of job descriptions, which know all macros, and the agent and the server,
 * which expand the references that depend on the single job. Forms (HTCondor manual, "Submitting a job",
 * "Function macros"):
 *
 *   $(name)  $(name:default)  $(DOLLAR) → $  $ENV(name[:default])
 *   $F[fpduwnxbqa…](name)  $BASENAME(name[,suffix])  $DIRNAME(name)  $SUBSTR(name,from[,len])
 *   $INT(name[,format])  $REAL(name[,format])  $STRING(expression)  $STRING(name,format)  $EVAL(expression)
 *   $CHOICE(index,list…)  $RANDOM_CHOICE(a,b,…)  $RANDOM_INTEGER(min,max[,step])
 *
 * $$(…) and $$([…]) are left as they are, and so is what only looks like a reference: $(date +%s), $5,
 * $OTHER(x). Names are case-insensitive, names of functions are not. Values are expanded again, to a bounded
 * depth. The first argument of a function is the name of a macro, or else text. $INT and $REAL know the
 * arithmetic of base/job/arith.h. A late reference cannot be expanded yet; the parts of it that are known
 * are: with n = $(Process)+1, $INT(n) becomes $INT($(Process)+1).
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
/* Appends the value of an item variable. Returns the result for a lookup: MACRO_VALUE if the value has a '$',
 * else MACRO_FINAL. */
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
        const char *cwd;       /* folder that $Ff() puts before a relative path; NULL: an error */
        /* Budget of bytes to scan, shared by several expansions; each subtracts the bytes that it scanned.
         * NULL: each has MACRO_WORK_MAX. */
        size_t *work;
        /* Called for each unknown name without default that became the empty string; may be NULL. */
        void (*missing)(void *arg, struct str name);
};
/* Appends the expansion to out. *ret_late (may be NULL) says whether late references are left.
 * 0, or with err and out unchanged: -EINVAL malformed reference, unknown name, too deep; -EMSGSIZE out is
 * full or one of the limits above was passed. */
int macro_expand(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                 struct err *err);
/* Expands references in the text of a ClassAd expression: a value inside a string literal is escaped,
 * so that its quotes and backslashes do not end the literal. */
int macro_expand_expression(const struct macro_world *w, struct str text, struct buf *out, bool *ret_late,
                            struct err *err);
/* Returns the random seed of a job's $JOB_CHOICE and $JOB_INTEGER, so that every process expands a text
 * alike. */
uint64_t macro_job_seed(uint64_t request, uint32_t member);
bool macro_present(struct str text); /* whether the text has a $( or $FUNCTION( other than $$( */
/* Takes the next element of a list, trimmed, from *rest; a separator inside $(…), $$(…) or $FUNCTION(…)
 * does not count. False, with nothing changed, when *rest is used up, as in str_cut. */
bool macro_cut(struct str *rest, char sep, struct str *ret_element);
bool macro_is_name(struct str name); /* letters, digits, '_' and '.', at least one */
