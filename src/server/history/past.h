/* past: finished jobs, from their history rows.
 *
 * A row holds what was the job's own; the rest is in the template of its part, in the request's record.
 * Templates of the requests that were looked at last are kept. Reader thread only.
 */
#pragma once
#include "classad/ad.h"
#include "server/history/row.h"
#include "server/loop/expressions.h"

struct past;
struct past *past_new(struct server *s);
void past_free(struct past *p); /* NULL is fine */

/* The names in all the ads. */
struct symbols *past_symbols(struct past *p);

/* Fills a row; its strings are in the arena. `whole`: with the whole ad, as JSON; else `names`, symbols of
 * attributes that are wanted (may be none). False when the history row cannot be read, or the constraint (may
 * be NULL), of the same symbols, does not hold for the ad. */
bool past_row(struct past *p, const struct past_job *h, struct constraint *filter, struct arena *a,
              bool whole, struct str names, struct row *ret);
