/* provision: machines that are started and stopped for the queue, through the provisioners of the settings
 * (provision/provisioner.h), as the wishlist says (core/wishlist/wishlist.h).
 *
 * The life of one:
 *
 *   wished -> its node's record boots, and a token is made for this boot: one commit
 *          -> durable: the provisioner is asked to start it, with a tag that names server, node and boot
 *          -> its agent joins with the token, the node is up, jobs come
 *          -> nothing to do at the end of what is paid for: draining -> drained -> retired, one commit
 *          -> the provisioner is asked to stop it, until a list does not have it any more
 *
 * What is decided is in the log before anything is done, and what is there is what lists say: after kill -9
 * at any step a machine of ours that no record wants is stopped (its start was answered to nobody, or its
 * node is retired), and a record whose machine is in no list goes. No answer is believed against an agent
 * that is connected. A retired node's certificate and token are void.
 *
 * Core thread.
 */
#pragma once
#include "core/wishlist/wishlist.h"
#include "server/loop/server.h"

struct provision;
/* 0, also when the settings name no provisioner (s->provision stays NULL); or an error with err. */
int provision_open(struct server *s, struct err *err);
void provision_free(struct provision *p); /* NULL is fine; calls under way are given up */
void provision_tick(struct server *s);    /* in a turn; at least once a second */

/* For people. */
struct provision_status {
        const char *name, *kind;
        bool listed;       /* since the start */
        size_t instances;  /* in the last list */
        size_t unwanted;   /* of these, those that are being stopped */
        const char *error; /* of the last call that failed, if none succeeded since; NULL: none */
};
size_t provision_count(const struct server *s); /* of provisioners; 0: there are none */
void provision_status_get(const struct server *s, size_t n, struct provision_status *ret);
/* The wishlist's answer now; the caller's, wishlist_deinit before the core changes. *ret_settings is
 * borrowed. Not without provisioners. */
void provision_wishlist(struct server *s, struct wishlist *ret,
                        const struct wishlist_settings **ret_settings);
