/* outbox: sends messages to the server. While there is a session most messages leave at once; messages about
 * many attempts are gathered over a turn and leave at its end. */
#pragma once
#include "agent/model/attempt.h"
#include "wire/session.h"

void outbox_open(struct agent *a);
void outbox_close(struct agent *a);
/* Sets the session for messages from now on, borrowed; NULL: there is none, and gathered messages are
 * dropped. */
void outbox_session(struct agent *a, struct session *session);
void outbox_send(struct agent *a, Drover__ToServer *m); /* dropped if there is no session */

/* ---- sent at once; texts and checksums (32 bytes) are borrowed for the call */
void outbox_checkpoint(const struct attempt *at); /* sends the present result as a checkpoint */
void outbox_credential_get(struct agent *a, uint64_t request, uint32_t part, const char *name);
void outbox_spool_read(struct agent *a, uint64_t request, const unsigned char *sha256, uint64_t offset,
                       uint32_t length);
void outbox_spool_write(const struct attempt *at, const unsigned char *sha256, uint64_t offset,
                        struct str data, bool last);
/* error: empty for success; again: after an error, a later attempt may succeed. */
void outbox_userlog_written(struct agent *a, uint64_t serial, const char *error, bool again, bool added);

struct streams_answer {      /* to a question about streams, or to a command beside an attempt or its input */
        uint64_t serial;     /* of the question */
        struct str bytes[2]; /* of stdout and stderr */
        uint64_t offset[2];  /* of their first bytes */
        uint64_t input_next; /* offset of the first byte of the input that was not taken */
        bool over;           /* these are the last bytes, or no more input is read */
        bool unknown;        /* the agent does not have the attempt or the command */
        bool signaled;       /* with `over`: the command was ended by a signal */
        int32_t exit_code;   /* with `over`: the command's; or the signal's number */
        const char *error;   /* why a command was not started or has no end of its own; NULL: nothing */
        uint64_t cpu_ms, memory_bytes; /* what the attempt has used so far, and uses now; 0: not known */
};
void outbox_streams(struct agent *a, const struct streams_answer *s);

/* The numbers are the wire's; those of operations on files are enum file_op (file_call.h). */
enum chirp_op {
        CHIRP_NONE,
        CHIRP_GET_ATTRIBUTE,
        CHIRP_SET_ATTRIBUTE,
        CHIRP_LOG,
        CHIRP_LAUNCH,
        CHIRP_LAUNCHED
};
struct chirp_call { /* of a job's program, to its server */
        int op;
        const char *name;
        struct str data;
        uint64_t offset, command, stderr_offset;
        uint32_t length, flags, mode, node;
};
void outbox_chirp(const struct attempt *at, uint64_t serial, const struct chirp_call *c);

struct file_reply {       /* to an operation on a file for a job that runs elsewhere */
        int error;        /* errno; 0: success */
        const char *text; /* why it failed */
        struct str data;
        uint64_t size;
        uint32_t mode;
        int64_t changed; /* Unix seconds */
};
void outbox_file_reply(struct agent *a, uint64_t serial, const struct file_reply *r);

struct attempt_location { /* where an attempt is and what it is doing */
        const struct attempt *at;
        const char *native;      /* the batch system's name for it */
        const char *word, *said; /* the batch system's word for its state, and its reason */
        struct str hops;         /* the same at the servers that it was delegated to: JSON */
        const char *doing;       /* "": nothing that takes time */
        int64_t doing_since_ms;
        uint64_t doing_bytes, doing_bytes_all;
};
void outbox_locations(struct agent *a, const struct attempt_location *v, size_t count);

struct offer {
        const char *queue;
        uint64_t serial;
        const char *ad;
        uint32_t jobs_max;
        char **owners; /* whose jobs are taken; none: everybody's */
        size_t owner_count;
        const unsigned *wishes; /* their numbers: see offer_wish */
        size_t wish_count;
        bool own_users; /* each owner's jobs run as a user of their own */
        bool hands_on;  /* the queue is another server's */
};
void outbox_offer(struct agent *a, const struct offer *o);

struct cached_file { /* kept here */
        uint64_t id, size;
        int kind;         /* enum cached_kind */
        const char *name; /* of an image or environment; else NULL */
};
/* full: the server forgets what it was told before. */
void outbox_cache_delta(struct agent *a, bool full, const struct cached_file *added, size_t added_count,
                        uint64_t *removed, size_t removed_count);

struct store_link {        /* how fast a store is from here */
        const char *store; /* "": the server's spool */
        uint64_t latency_us, bytes_per_s, bytes_per_s_out;
        int64_t down_ms;      /* Unix time since which it has not answered; 0: it answers */
        const char *down_why; /* NULL: no error was seen */
        int64_t measured_ms;  /* Unix time of the newest measurement; 0: there is none */
        bool free_known;
        uint64_t free_bytes;
};
void outbox_links(struct agent *a, const struct store_link *v, size_t count);

/* ---- gathered until the end of the turn */
void outbox_accept(struct attempt *at);
/* `at` may be an attempt that was never set up: only its name is used. */
void outbox_refuse(struct agent *a, const char *queue, const struct attempt *at, bool hold,
                   const char *reason);
void outbox_flush(struct agent *a); /* sends the gathered messages, started attempts and results */

void outbox_inventory(struct agent *a); /* sends the inventory of attempts */
