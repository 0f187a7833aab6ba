/* users: the map of owners to the local users that their jobs run as, for an agent started by root.
 *
 * The map is `users` of the configuration file: an owner (name@domain) and a local user; or *@domain and
 * "*", which maps everybody there to the user of the same name. An owner's own line comes before one with a
 * *. Nobody is mapped to uid 0, a user of group 0 or below min_uid, or the agent's own user. The shepherd
 * checks the map again.
 */
#pragma once
#include <sys/types.h>

#include "agent/config/config.h"

struct users_entry {
        char name[64], home[256]; /* name and home of the local user */
};

/* Finds the user that this owner's jobs run as. Returns 0; or -EPERM, with the reason in err. */
int users_find(const struct config *c, const char *owner, struct users_entry *ret, struct err *err);
/* Returns an owner whose jobs run as this user, which the caller frees; NULL: there is none. */
char *users_owner(const struct config *c, uid_t uid);
/* Appends the map in the shepherd's format. */
void users_print(const struct config *c, struct buf *out);
/* Finds the agent's own user and checks the map; sets c->owners to the map's. Returns 0, or -EINVAL with
 * err. */
int users_check(struct config *c, struct err *err);
/* Returns whether this owner's jobs may run here. */
bool users_own(const struct config *c, const char *owner);
