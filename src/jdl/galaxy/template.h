/* template: the text of a Galaxy tool's command, a part of Cheetah's language.
 *
 * $name ${expression} $name.attribute[index].method(…); #if #elif #else #end if, also in one line with then
 * and else; #unless; #for … #end for with #break and #continue; #set; #silent; #echo; #slurp; #raw; comments
 * ## and #* *#; \$ and
 * \# for the characters themselves. A directive ends with its line or with #; one alone on its line takes the
 * line with it. Everything else of Cheetah (#def, #import, #while, #try, …) is refused by name, with file and
 * line. Expressions: expression.h.
 */
#pragma once
#include "jdl/galaxy/expression.h"

#define TEMPLATE_OUT_MAX   (1u << 20)
#define TEMPLATE_DEPTH_MAX 32u

/* Renders; `line` is that of the text's first character. Variables that #set makes stay in x->names. 0;
 * -EINVAL or -E2BIG with err "FILE:LINE: …". */
int template_render(struct expressions *x, const char *file, unsigned line, struct str text, struct buf *out,
                    struct err *err);
