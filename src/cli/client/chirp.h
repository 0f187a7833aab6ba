/* chirp: calls by a program of a running job to the job's server, through the socket in its sandbox that
 * DROVER_CHIRP names (drover-chirp(1)). */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define CHIRP_DATA_MAX (256u << 10) /* maximum data bytes of one call */
enum { CHIRP_CREATE = 1, CHIRP_EMPTY = 2, CHIRP_NEW = 4, CHIRP_APPEND = 8 };

struct chirp_call {
        const char *op; /* name of the operation in the protocol */
        struct str name, data;
        uint64_t offset;
        uint32_t length, flags, mode;
        uint32_t node;                   /* of launch and launched */
        uint64_t command, stderr_offset; /* of launched */
};
struct chirp_reply {
        struct buf data;
        uint64_t size;
        uint32_t mode;             /* type and permissions, as stat(2) has them */
        int64_t changed;           /* Unix seconds */
        uint64_t command;          /* of launch: number of the program */
        struct buf stderr_data;    /* of launched, as is all that follows */
        bool over;                 /* the program has ended */
        int32_t exit_code, signal; /* signal: that ended it; 0: none */
};
void chirp_reply_deinit(struct chirp_reply *r);

struct chirp_client;
/* Connects. Returns 0; or -errno with err: the socket does not exist, or nobody listens on it. */
int chirp_connect(struct chirp_client **ret, struct err *err);
void chirp_disconnect(struct chirp_client *c); /* NULL is fine */
/* Makes the call and waits for its answer, whose data replaces the content of ret->data. A call that is safe
 * to repeat is tried again for up to a minute if a later answer may differ. Returns 0; or -errno with err:
 * the other side's error, or a lost connection. */
int chirp_call(struct chirp_client *c, const struct chirp_call *call, struct chirp_reply *ret,
               struct err *err);
/* Copies a whole remote file to a descriptor, or a descriptor to a remote file, which gets its name only
 * when it is complete. Return 0, or -errno with err. */
int chirp_fetch(struct chirp_client *c, struct str name, int fd, struct err *err);
int chirp_put(struct chirp_client *c, int fd, struct str name, uint32_t mode, struct err *err);
/* Like chirp_put, but writes into the named file directly; flags are CHIRP_ constants. */
int chirp_put_by(struct chirp_client *c, int fd, struct str name, uint32_t flags, uint32_t mode,
                 struct err *err);
