/* open: opens and closes a queue that is another Drover server. */
#pragma once
#include "run/runner.h"

struct remote;
struct remote_user;

#define REMOTE_OWNER "owner" /* name of a file with the user's name@domain */

/* Opens a queue, as open() of struct runner_kind does; the caller sets the runner's kind. user: NULL, or
 * taken, even on error.
 */
int remote_open(const struct runner_config *c, struct remote_user *user, struct remote **ret,
                struct err *err);
const char *remote_setting(const struct runner_config *c, const char *name); /* NULL: it is not set */
void remote_close(struct remote *f); /* closes and frees f, which may be half open */
