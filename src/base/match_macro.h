/* match_macro: $$(name) references in text, which take their values from the place that a job was given to.
 *
 * Forms (HTCondor manual, "Submitting a job", "Substitution macros"): $$(name), an attribute of the place;
 * $$(name:default); $$([expression]), a ClassAd expression over the job (MY) and the place (TARGET);
 * $$(DOLLARDOLLAR), which is $$. They are what is left when macros (macro.h) were expanded. What stands
 * between the parentheses is called the reference's inside; who knows the place keeps values by it.
 */
#pragma once
#include "base/buf.h"
#include "base/str.h"

struct match_macro {
        struct str inside; /* all of it */
        struct str name;   /* of an attribute; empty: it is an expression */
        struct str expression;
        struct str otherwise; /* the default; NULL-p: there is none */
};
enum match_macro_found { MATCH_MACRO_NONE, MATCH_MACRO_ONE, MATCH_MACRO_BAD };

bool match_macro_present(struct str text); /* there is a $$( in it */
/* Takes the text up to and with the next reference off *rest. *ret_before is what stands before it; with
 * NONE, all that was left. BAD: it is never closed, or its inside is no name and no [expression]; *ret_before
 * begins with it. References to DOLLARDOLLAR are met like others, with that name. */
enum match_macro_found match_macro_next(struct str *rest, struct str *ret_before, struct match_macro *ret);
/* The text with the values in it, appended. `value` appends one; false: it knows none, and the reference is
 * left as it is. Values are not looked at again. */
void match_macro_fill(struct str text, bool (*value)(void *arg, struct str inside, struct buf *out),
                      void *arg, struct buf *out);
