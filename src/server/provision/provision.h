/* provision: starts and stops instances for the queue, through the provisioners of the settings
 * (provision/provisioner.h), as the wishlist decides (core/wishlist/wishlist.h).
 *
 * The life of an instance:
 *
 *   wished -> the record of its node is "booting", and a token is made for this boot: one commit
 *          -> when that is durable the provisioner is asked to start it, with a tag that names server,
 *             node and boot
 *          -> its agent joins with the token, the node is up, jobs run
 *          -> if it is idle at the end of the paid time: draining -> drained -> retired, one commit
 *          -> the provisioner is asked to stop it, until a list no longer shows it
 *
 * Every decision is in the log before it is carried out, and the provider's lists say what exists. After
 * kill -9 at any step, an instance of ours that no record wants is stopped (the answer to its start was
 * lost, or its node is retired), and a record whose instance is in no list is retired. A connected agent
 * counts more than any answer of a provider. The certificate and the token of a retired node are void.
 *
 * Core thread. */
#pragma once
#include "core/wishlist/wishlist.h"
#include "server/loop/server.h"

struct provision;
/* Returns 0, also when the settings name no provisioner (s->provision stays NULL); or an error with err. */
int provision_open(struct server *s, struct err *err);
void provision_free(struct provision *p); /* accepts NULL; abandons pending calls */
void provision_tick(struct server *s);    /* within a turn, at least once a second */

/* The state of a provisioner, as people see it. */
struct provision_status {
        const char *name, *kind;
        bool listed;       /* at least once since the start */
        size_t instances;  /* in the last list */
        size_t unwanted;   /* the part of them that is being stopped */
        const char *error; /* error of the last call, if it failed; NULL: none */
};
size_t provision_count(const struct server *s); /* number of provisioners, which may be 0 */
void provision_status_get(const struct server *s, size_t n, struct provision_status *ret);
/* Computes what the wishlist decides at this moment. The caller must free it with wishlist_deinit before
 * the core changes. *ret_settings is borrowed. There must be a provisioner. */
void provision_wishlist(struct server *s, struct wishlist *ret,
                        const struct wishlist_settings **ret_settings);
