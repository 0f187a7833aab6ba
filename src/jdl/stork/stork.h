/* stork: reads Stork's descriptions of placement jobs: consecutive ads, each in brackets.
 *
 *      [ dap_type = "transfer"; src_url = "ftp://a/f"; dest_url = "https://b/f"; max_retry = 5; ]
 *
 * The ads are translated to text of the submit language (universe = data) and read by its reader, so that
 * every default and check is the same. Attribute names are keywords of that language; other names become
 * attributes of the job. Jobs are in the order of the ads; ads that differ in their two URLs only share one
 * queue statement.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define STORK_ADS_MAX 1000000u

/* Returns whether a description begins like such ads. */
bool stork_is(struct str text);
/* Appends the submit description of all ads. Returns 0; or -EINVAL with err, and the appended text is
 * incomplete. */
int stork_submit(struct str text, struct buf *out, struct err *err);
