/* past: reads finished jobs from their history rows.
 *
 * A row has what was specific to the job; the rest is in the template of its part, in the request's
 * record. The templates of recently read requests are cached. Reader thread only. */
#pragma once
#include "classad/ad.h"
#include "server/history/row.h"
#include "server/loop/expressions.h"

struct past;
struct past *past_new(struct server *s);
void past_free(struct past *p); /* accepts NULL */

/* Returns the names used in all the ads. */
struct symbols *past_symbols(struct past *p);

/* Fills a row; its strings are in the arena. `whole`: includes the whole ad as JSON; otherwise `names` are
 * the wanted attributes (may be empty). Returns false when the history row cannot be read, or the ad does
 * not meet the constraint (may be NULL; it uses the same symbols). */
bool past_row(struct past *p, const struct past_job *h, struct constraint *filter, struct arena *a,
              bool whole, struct str names, struct row *ret);
