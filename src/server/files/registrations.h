/* registrations: what jobs with register_outputs have sent to URLs, on its way into the catalog.
 *
 * A result names the URLs that its agent has sent outputs to, with sizes and checksums that the agent has
 * taken itself. The server believes the URLs only as far as the request's own description says where its
 * outputs go. What is left is a blob "register/REQUEST.MEMBER.FENCE", in the commit of the result; once that
 * is durable the catalog's thread adds the files, and then the blob goes. After a crash the blobs that are
 * there are done again, which changes nothing of a file that is in the catalog already.
 *
 * The value of RegisterOutputs is metadata for the files, "KEY=VALUE,KEY=VALUE", or "true"; "false" or empty:
 * nothing is registered. The server adds the keys `owner` and `request`. A file's name in the catalog is the
 * path of its URL; where another file has that name, the URL.
 */
#pragma once
#include "core/core.h"
#include "server/agents/command.h"
#include "server/calls/call.h"

struct submission;
struct registrations;
/* Core thread, once the catalog's thread runs: goes on with what is in the store. 0 or an error with err. */
int registrations_open(struct server *s, struct err *err);
void registrations_free(struct registrations *r); /* NULL is fine */

/* Does a submission ask for it in a way that can be done, and may the caller write to the catalog? 0; -EACCES
 * or -EINVAL with err. */
int registrations_check(struct server *s, const struct call *c, const struct submission *sub,
                        struct err *err);
/* Core, in a turn, while the job has this attempt: a result that says what was sent. */
void registrations_take(struct server *s, const struct core_result *r, const struct command_sent *sent);
void registrations_flush(struct server *s); /* at the end of each turn */
void registrations_tick(struct server *s);  /* tries again what found the disk full, or the catalog damaged */

/* Catalog thread: opens the catalog, the first time. 0, or what catalog_open returned, with err. */
int registrations_catalog(struct server *s, struct err *err);
/* Catalog thread: is there room on the disk for more, beside what the server's log needs? */
bool registrations_room(struct server *s);
