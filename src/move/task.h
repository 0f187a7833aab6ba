/* task: tasks for a mover and its answers, as values and as packets.
 *
 * Agent and mover are connected by a pair of sockets that preserve packets (SOCK_SEQPACKET). A packet is a
 * task (agent to mover, with the file's descriptor), an answer, or a sign of life. A mover does one task at
 * a time; closing the socket ends it.
 *
 * A mover that runs as a job's user may be stopped, killed and impersonated by any other process of that
 * user, so its answers are claims of that user. The agent relies on no checksum, size or time in them, and
 * takes a file from such a mover by MOVE_COPY, which a mover of the agent's own does.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define MOVE_URL_MAX        8192u
#define MOVE_CREDENTIAL_MAX 65536u
#define MOVE_PACKET_MAX     98304u /* a task with a credential of up to 64 KiB */
#define MOVE_ANSWER_MAX     2048u  /* an answer with all its texts */
#define MOVE_SIZE_ANY       UINT64_MAX

enum move_op {
        MOVE_GET,   /* copies the URL into the file */
        MOVE_PUT,   /* sends the part [at, at + size) of the file to the URL */
        MOVE_PROBE, /* measures the latency of the store */
        MOVE_CHECK, /* computes the checksum of the file, or of its part [at, at + size) if a size is given;
                       no URL */
        MOVE_COPY /* copies `size` bytes of the file `from` into the file, and computes their checksum; no URL
                   */
};
static const char *const move_op_names[] = {"get", "put", "probe", "check", "copy"};

struct move_facts {         /* identify a version of the file at a URL */
        uint64_t size;      /* MOVE_SIZE_ANY: not known */
        int64_t modified_s; /* Unix time; 0: not known */
        char etag[256];     /* "": unknown */
};

/* A credential of a job's owner for the store. The types are those of auth/credential.h: "token" goes to
 * https as a bearer token, "proxy" to https and ftps as the client certificate, "s3" signs requests of s3
 * and http(s), "file" is the private key of sftp. */
struct move_credential {
        char *type; /* NULL: none */
        char *name; /* name for people */
        struct buf data;
};

struct move_task {
        enum move_op op;
        char *url;
        uint64_t at,
                size; /* for PUT, COPY, CHECK; GET: size is the required size; MOVE_SIZE_ANY: any, or all */
        int from;     /* COPY: the source, open for reading, borrowed; -1: none */
        bool scratch; /* GET: the caller copies the file, so it need not be flushed to the disk */
        bool known;   /* GET: `facts` are those of a local copy, which may be up to date */
        struct move_facts facts;
        bool space;  /* PROBE: the store is asked for its free space, too */
        bool summed; /* GET: sha256 is the required checksum */
        unsigned char sha256[32];
        uint32_t tries;    /* attempts; 0: 5 */
        uint64_t limit_ms; /* time for all attempts; 0: no limit */
        char tag[32];      /* part of temporary names; unique to this writer */
        struct move_credential credential;
};

enum move_status {
        MOVE_DONE,
        MOVE_UNCHANGED,
        MOVE_FAILED /* text is the error message; error is a matching errno */
};
struct move_answer {
        enum move_status status;
        int error; /* positive errno */
        uint32_t tries;
        struct move_facts facts;  /* GET */
        unsigned char sha256[32]; /* GET, CHECK, COPY */
        uint64_t size;            /* size of the whole: GET, PUT, CHECK, COPY */
        uint64_t moved, took_us;  /* bytes transferred and time taken, in all attempts */
        uint64_t latency_us;      /* time until the first answer; 0: not measured */
        uint64_t free_bytes;      /* PROBE: free space of the store; MOVE_SIZE_ANY: not known */
        char text[512];           /* without control characters, whatever the mover has sent */
};

/* Makes an unnamed file in memory with the credential's contents, for libraries and programs that read
 * files. Returns a descriptor, which the caller closes, or -errno. */
int move_credential_file(const struct move_credential *c);

/* Returns a URL for people and logs, without a user and password. The caller frees it. */
char *move_url_shown(const char *url);

void move_task_init(struct move_task *t, enum move_op op);
void move_task_deinit(struct move_task *t);
void move_task_copy(struct move_task *to, const struct move_task *from);
/* Sets the task's credential to a copy of these values. */
void move_task_credential(struct move_task *t, const char *type, const char *name, struct str data);

/* Send and receive packets; they wait. Return 0; or -errno: the other side is gone, or -EPROTO: the packet
 * is malformed. */
int move_send_task(int socket, const struct move_task *t, int fd); /* fd -1: none */
int move_send_answer(int socket, const struct move_answer *a);
int move_send_sign(int socket); /* never waits */
/* *ret_fd and ret->from are owned by the caller, -1: none. -ENOTCONN: the other side has closed. */
int move_receive_task(int socket, struct move_task *ret, int *ret_fd);
/* Returns 1: an answer; 0: a sign of life; -EAGAIN: nothing arrived (with MSG_DONTWAIT in flags).
 * Descriptors in the packet are closed. */
int move_receive_answer(int socket, int flags, struct move_answer *ret);

/* For the tests of both. */
void move_pack_task(const struct move_task *t, struct buf *out);
bool move_unpack_task(struct str bytes, struct move_task *ret);
void move_pack_answer(const struct move_answer *a, struct buf *out);
bool move_unpack_answer(struct str bytes, struct move_answer *ret);
