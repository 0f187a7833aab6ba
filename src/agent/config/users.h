/* users: whose jobs run as which local user, when the agent was started by root.
 *
 * The map is `users` of the configuration file: an owner (name@domain) and a local user; or *@domain and "*",
 * everybody there as the user of the same name. An owner's own line comes before one with a *. Nobody becomes
 * uid 0, a user of group 0 or below min_uid, or the agent's own user. The shepherd asks the same again.
 */
#pragma once
#include <sys/types.h>

#include "agent/config/config.h"

struct users_entry {
        char name[64], home[256]; /* of the local user */
};

/* Whom this owner's jobs run as; *ret. 0; or -EPERM, and err says why they don't run here. */
int users_find(const struct config *c, const char *owner, struct users_entry *ret, struct err *err);
/* An owner whose jobs run as this user; the caller's, NULL: there is none. */
char *users_owner(const struct config *c, uid_t uid);
/* The shepherd's form of the map. */
void users_print(const struct config *c, struct buf *out);
/* Finds the agent's own user, and checks the map; c->owners become the map's. 0, or -EINVAL with err. */
int users_check(struct config *c, struct err *err);
/* May we run this owner's jobs? */
bool users_own(const struct config *c, const char *owner);
