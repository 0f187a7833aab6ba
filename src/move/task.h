/* task: what a mover is asked to do, and what it answers, as values and as packets.
 *
 * Agent and mover are joined by a pair of connected sockets that keep packets whole (SOCK_SEQPACKET). A
 * packet is a task (agent to mover, the file's descriptor with it), an answer, or a sign of life. A mover
 * does one task at a time; closing the socket ends it.
 *
 * A mover that runs as a job's user may be stopped, killed and answered for by any other process of that
 * user, so its answers are claims of that user. The agent believes of them no checksum, size or time, and
 * takes a file from such a mover by MOVE_COPY, which a mover of the agent's own does.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define MOVE_URL_MAX        8192u
#define MOVE_CREDENTIAL_MAX 65536u
#define MOVE_PACKET_MAX     98304u /* a task with its credential, which may have 64 KiB */
#define MOVE_ANSWER_MAX     2048u  /* an answer, with all its texts */
#define MOVE_SIZE_ANY       UINT64_MAX

enum move_op {
        MOVE_GET,   /* from the URL into the file */
        MOVE_PUT,   /* the part [at, at + size) of the file to the URL */
        MOVE_PROBE, /* how far is it? */
        MOVE_CHECK, /* the checksum of the file; no URL */
        MOVE_COPY   /* `size` bytes of the file `from` into the file, and their checksum; no URL */
};
static const char *const move_op_names[] = {"get", "put", "probe", "check", "copy"};

struct move_facts {         /* what tells one version at a URL from another */
        uint64_t size;      /* MOVE_SIZE_ANY: not known */
        int64_t modified_s; /* Unix time; 0: not known */
        char etag[256];     /* "": none */
};

/* What the store is shown in the name of a job's owner. The types are those of auth/credential.h: "token"
 * goes to https as a bearer token, "proxy" to https and ftps as the client's certificate, "s3" signs requests
 * of s3 and http(s), "file" is the private key of sftp. */
struct move_credential {
        char *type; /* NULL: none */
        char *name; /* for people */
        struct buf data;
};

struct move_task {
        enum move_op op;
        char *url;
        uint64_t at, size; /* PUT, COPY; GET: size is what it must have, or MOVE_SIZE_ANY */
        int from;          /* COPY: the other file, open for reading, borrowed; -1: none */
        bool scratch;      /* GET: the file is copied by who asked for it, so it need not reach the disk */
        bool known;        /* GET: these facts are of a copy that is here: perhaps it is unchanged */
        struct move_facts facts;
        bool summed; /* GET: it must have this checksum */
        unsigned char sha256[32];
        uint32_t tries;    /* attempts; 0: 5 */
        uint64_t limit_ms; /* for all of it; 0: none */
        char tag[32];      /* in temporary names: no other writer has it */
        struct move_credential credential;
};

enum move_status {
        MOVE_DONE,
        MOVE_UNCHANGED,
        MOVE_FAILED /* text says why; error is an errno that fits: EACCES when it is not allowed */
};
struct move_answer {
        enum move_status status;
        int error; /* positive errno */
        uint32_t tries;
        struct move_facts facts;  /* GET */
        unsigned char sha256[32]; /* GET, CHECK, COPY */
        uint64_t size;            /* of the whole: GET, PUT, CHECK, COPY */
        uint64_t moved, took_us;  /* bytes that crossed the wire, and in how long; both of all attempts */
        uint64_t latency_us;      /* until the first answer; 0: not measured */
        char text[512];           /* without control characters, whatever the mover has sent */
};

/* A private file in memory, without a name, that has its contents: for libraries and programs that read
 * files. A descriptor, the caller's, or -errno. */
int move_credential_file(const struct move_credential *c);

/* A URL for people and logs: without the user and password that may stand in it. The caller's. */
char *move_url_shown(const char *url);

void move_task_init(struct move_task *t, enum move_op op);
void move_task_deinit(struct move_task *t);
void move_task_copy(struct move_task *to, const struct move_task *from);
/* All is copied; in place of one that it has. */
void move_task_credential(struct move_task *t, const char *type, const char *name, struct str data);

/* 0; or -errno: the other side is gone, or -EPROTO: what came is no such packet. They wait. */
int move_send_task(int socket, const struct move_task *t, int fd); /* fd -1: none */
int move_send_answer(int socket, const struct move_answer *a);
int move_send_sign(int socket); /* never waits */
/* *ret_fd and ret->from are the caller's, -1: none came. -ENOTCONN: the other side has closed. */
int move_receive_task(int socket, struct move_task *ret, int *ret_fd);
/* 1: an answer; 0: a sign of life; -EAGAIN: nothing is there (with MSG_DONTWAIT in flags). Descriptors that
 * come along are dropped. */
int move_receive_answer(int socket, int flags, struct move_answer *ret);

/* For the tests of both. */
void move_pack_task(const struct move_task *t, struct buf *out);
bool move_unpack_task(struct str bytes, struct move_task *ret);
void move_pack_answer(const struct move_answer *a, struct buf *out);
bool move_unpack_answer(struct str bytes, struct move_answer *ret);
