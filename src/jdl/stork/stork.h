/* stork: descriptions of placement jobs as Stork had them: ads one behind the other, each in brackets.
 *
 *      [ dap_type = "transfer"; src_url = "ftp://a/f"; dest_url = "https://b/f"; max_retry = 5; ]
 *
 * They become text of the submit language (universe = data), read by its reader, so that every default and
 * check is the same. Names of attributes are those of its keywords; what is none becomes an attribute of the
 * job. Jobs are in the order of the ads; ads that differ in their two URLs only share one queue statement.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define STORK_ADS_MAX 1000000u

/* Does a description begin as such ads do? */
bool stork_is(struct str text);
/* Appends the submit description of all ads. 0; or -EINVAL with err, and what was appended is of no use. */
int stork_submit(struct str text, struct buf *out, struct err *err);
