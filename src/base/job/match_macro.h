/* match_macro: $$(name) references in text, which take their values from the place that a job was given to.
 *
 * Forms (HTCondor manual, "Submitting a job", "Substitution macros"): $$(name), an attribute of the place;
 * $$(name:default); $$([expression]), a ClassAd expression over the job (MY) and the place (TARGET);
 * $$(DOLLARDOLLAR), which is $$. Expansion of macros (macro.h) leaves them as they are. The text
 * between the parentheses is called the reference's inside; values are stored and looked up by it.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct match_macro {
        struct str inside; /* all of it */
        struct str name;   /* of an attribute; empty: the reference is an expression */
        struct str expression;
        struct str otherwise; /* the default; NULL-p: there is none */
};
enum match_macro_found { MATCH_MACRO_NONE, MATCH_MACRO_ONE, MATCH_MACRO_BAD };

bool match_macro_present(struct str text); /* whether the text has a $$( */
/* Takes the text up to and including the next reference from *rest. *ret_before is the text before the
 * reference; with NONE, all that was left. BAD: the reference is not closed, or its inside is neither a name
 * nor an [expression]; *ret_before begins with it. References to DOLLARDOLLAR are returned like others, with
 * that name. */
enum match_macro_found match_macro_next(struct str *rest, struct str *ret_before, struct match_macro *ret);
/* Appends the text with its references replaced by values. `value` appends one value; if it returns false,
 * the reference is left as it is. Values are not expanded again. */
void match_macro_fill(struct str text, bool (*value)(void *arg, struct str inside, struct buf *out),
                      void *arg, struct buf *out);
