/* paths: the paths within an instance's folder.
 *
 * Socket paths that are too long for the kernel move to $XDG_RUNTIME_DIR/drover-HASH or
 * /tmp/drover-UID-HASH (0700, owner checked). A client needs only server.json, which has the addresses and
 * exists while the server is ready. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct paths {
        char *dir, *catalog, *spool, *ca, *credential_key, *ticket_key, *mirror, *standby, *lock,
                *ready;    /* ready: server.json; standby: standby.json, of a server that does not lead */
        char *store;       /* the SQLite file */
        char *postgres;    /* base name of an instance's files when it uses PostgreSQL: see store_place */
        char *postgres_id; /* exists if the instance has used PostgreSQL */
        /* sockets, as addresses: "unix:/…"; reads: of the reads that a standby answers */
        char *api, *agents, *reads;
};
/* Makes the folder (0700) if it does not exist. Returns 0, or -errno with err. */
int paths_init(struct paths *p, const char *dir, struct err *err);
void paths_deinit(struct paths *p);

/* Locks the instance for this process, as long as *ret_fd is open. Waits up to 3 s for what a server that
 * has ended left. Returns -EBUSY with an err that names the other's process id. */
int paths_lock(const struct paths *p, int *ret_fd, struct err *err);

struct paths_ready {
        const char *uuid, *api_tls; /* api_tls: host:port or NULL */
        const char *const *agents;  /* addresses */
        size_t agent_count;
};
/* Writes server.json atomically. Returns 0, or -errno with err. */
int paths_write_ready(const struct paths *p, const struct paths_ready *r, struct err *err);
/* Writes standby.json, which tells the command line where to ask a server that does not lead, and with
 * `reads` where its reads are answered; removed like the other. Returns 0, or -errno with err. */
int paths_write_standby(const struct paths *p, bool reads, struct err *err);
void paths_remove_standby(const struct paths *p);
/* Removes temporary files of a killed server. The instance must be locked. */
void paths_sweep(const struct paths *p);
void paths_remove_ready(const struct paths *p);
