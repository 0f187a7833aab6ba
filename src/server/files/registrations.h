/* registrations: adds outputs that jobs with register_outputs have sent to URLs to the catalog.
 *
 * A result names the URLs that its agent has sent outputs to, with sizes and checksums that the agent has
 * computed. The server accepts only URLs to which the request's own description sends outputs. They are
 * stored as a blob "register/REQUEST.MEMBER.FENCE", in the commit of the result. When that is durable the
 * catalog's thread adds the files, and then the blob is deleted. After a crash the remaining blobs are
 * processed again; a file that is in the catalog already does not change.
 *
 * The value of RegisterOutputs is metadata for the files, "KEY=VALUE,KEY=VALUE", or "true"; with "false"
 * or an empty value nothing is registered. The server adds the keys `owner` and `request`. A file's name
 * in the catalog is the path of its URL, or the URL if another file has that name. */
#pragma once
#include "core/core.h"
#include "server/agents/command.h"
#include "server/calls/call.h"

struct submission;
struct registrations;
/* Core thread, when the catalog's thread runs: continues with the blobs in the store. Returns 0, or an
 * error with err. */
int registrations_open(struct server *s, struct err *err);
void registrations_free(struct registrations *r); /* accepts NULL */

/* Checks the RegisterOutputs of a submission, and whether the caller may write to the catalog. Returns 0;
 * -EACCES or -EINVAL with err. */
int registrations_check(struct server *s, const struct call *c, const struct submission *sub,
                        struct err *err);
/* Core thread, within a turn, while the attempt is current: takes a result that names the outputs sent to
 * URLs. */
void registrations_take(struct server *s, const struct core_result *r, const struct command_sent *sent);
void registrations_flush(struct server *s); /* at the end of each turn */
void registrations_tick(struct server *s);  /* tries again after a full disk or a damaged catalog */
