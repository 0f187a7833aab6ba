/* macro_function: the $NAME(…) forms of macro.h. Only macro.c includes this. */
#pragma once
#include "base/job/macro.h"

/* State of a macro_expand under way. */
struct macro_run {
        const struct macro_world *world;
        struct err *err;
        unsigned depth;
        size_t work;      /* bytes looked at so far */
        size_t work_max;  /* MACRO_WORK_MAX, or less */
        bool keep_dollar; /* $(DOLLAR) stays */
        bool saw_dollar;
};

/* Defined in macro.c. Each call appends to out, sets *late when something late is left, and returns 0 or as
 * macro_expand. */
int macro_spend(struct macro_run *r, size_t n); /* counts n scanned bytes: 0, or -EMSGSIZE */
int macro_run(struct macro_run *r, struct str text, struct buf *out, bool *late);
int macro_deeper(struct macro_run *r, struct str text, struct buf *out,
                 bool *late); /* macro_run, one level deeper */
int macro_value(struct macro_run *r, struct str name, struct buf *out, bool *late, enum macro_found *found);
void macro_final(struct macro_run *r, struct str text, struct buf *out);

bool macro_function_known(struct str name);
int macro_function_call(struct macro_run *r, struct str name, struct str body, struct buf *out, bool *late);
