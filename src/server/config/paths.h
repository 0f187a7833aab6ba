/* paths: the instance's folder and what is where in it.
 *
 * Socket paths that are too long for the kernel move to $XDG_RUNTIME_DIR/drover-HASH or /tmp/drover-UID-HASH
 * (0700, owner checked). A client needs only server.json, which says where everything is, and is there while
 * the server is ready.
 */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct paths {
        char *dir, *catalog, *spool, *ca, *credential_key, *ticket_key, *lock,
                *ready;     /* ready: server.json */
        char *store;        /* the file of SQLite */
        char *postgres;     /* beside it is what an instance with PostgreSQL has of it: see store_place */
        char *postgres_id;  /* there: the instance has used PostgreSQL */
        char *api, *agents; /* sockets, as addresses: "unix:/…" */
};
/* Makes the folder (0700) when it is not there. 0 or -errno with err. */
int paths_init(struct paths *p, const char *dir, struct err *err);
void paths_deinit(struct paths *p);

/* Locks the instance for this process. *ret_fd keeps it. -EBUSY with err, which names the other's pid. */
int paths_lock(const struct paths *p, int *ret_fd, struct err *err);

struct paths_ready {
        const char *uuid, *api_tls; /* api_tls: host:port or NULL */
        const char *const *agents;  /* addresses */
        size_t agent_count;
};
/* Writes server.json, whole or not at all. 0 or -errno with err. */
int paths_write_ready(const struct paths *p, const struct paths_ready *r, struct err *err);
/* Removes what a killed server has left. The instance must be locked. */
void paths_sweep(const struct paths *p);
void paths_remove_ready(const struct paths *p);
