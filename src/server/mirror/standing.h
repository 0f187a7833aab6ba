/* standing: the API's socket of a server that does not lead. It answers GET /v1/server/status and POST
 * /v1/server/promote, and all other calls with 503 and the address of the leader. standby.json contains the
 * socket's path for the command line.
 */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

struct standing_ops {
        void (*write)(void *arg, struct json *j); /* members of the status, into an open object */
        /* Returns 0, or another value with err, which the caller is told. */
        int (*promote)(void *arg, bool force, struct err *err);
        const char *leader; /* ends the sentence "this server does not lead: ask " */
};

struct standing;
/* ops: borrowed. On the loop's thread, or before it runs. With the setting standby_reads it also keeps the
 * process running that answers reads (daemon/follow.h), and starts it anew on SIGHUP. Returns 0, or -errno
 * with err. */
int standing_new(struct loop *l, struct server *server, const struct standing_ops *ops, void *arg,
                 struct standing **ret, struct err *err);
/* Waits until that process has ended: its port is free then. Accepts NULL. */
void standing_free(struct standing *s);
