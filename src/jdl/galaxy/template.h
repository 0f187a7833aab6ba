/* template: renders the text of a Galaxy tool's command, in a subset of Cheetah's language.
 *
 * Supported are $name ${expression} $name.attribute[index].method(…); #if #elif #else #end if, also in one
 * line with then and else; #unless; #for … #end for with #break and #continue; #set, also of several targets
 * and of elements; #silent; #echo; #slurp; #raw; #import; #from; #assert; functions by #def and #return; the
 * comments ## and #* *#; and \$ and \# for the characters themselves. A directive ends with its line or with
 * #; one that is alone on its line removes the line. Everything else of Cheetah (#while, #try, …) is refused
 * by name, with file and line. expression.h describes expressions. */
#pragma once
#include "jdl/galaxy/expression.h"

#define TEMPLATE_OUT_MAX   (1u << 20)
#define TEMPLATE_DEPTH_MAX 32u

/* Renders a text; `line` is the line of its first character. Variables that #set makes stay in x->names.
 * Returns 0; -EINVAL or -E2BIG with err "FILE:LINE: …". */
int template_render(struct expressions *x, const char *file, unsigned line, struct str text, struct buf *out,
                    struct err *err);
