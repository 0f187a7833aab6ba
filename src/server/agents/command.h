/* command: one message of an agent, as plain data for the core thread.
 *
 * The I/O thread makes it from a protocol message, and the command owns copies of all data. The member
 * numbers in one message are capped, so that a short message cannot make the core walk over many members. */
#pragma once
#include "server/agents/attempt_location.h"
#include "server/loop/server.h"
#include "wire/drover.pb-c.h"

#define COMMAND_MEMBERS_MAX  2000000u
#define COMMAND_ATTEMPTS_MAX 1000000u
#define COMMAND_REASON_MAX   4096u       /* bytes; a longer text is cut */
#define COMMAND_SCRIPT_MAX   (1u << 20)  /* bytes; a longer text is cut */
#define COMMAND_STREAM_MAX   (64u << 10) /* bytes of one stream; more is cut */
/* bytes of data in a call or an answer; a command with more is refused */
#define COMMAND_CHIRP_MAX  (256u << 10)
#define COMMAND_OWNERS_MAX 1024u /* in one offer */

enum command_kind {
        COMMAND_JOIN,
        COMMAND_HELLO,
        COMMAND_GONE, /* the session has ended */
        COMMAND_OFFER,
        COMMAND_WITHDRAW,
        COMMAND_ACCEPT,
        COMMAND_REFUSE,
        COMMAND_STARTED,
        COMMAND_RESULT,
        COMMAND_RENEW,
        COMMAND_INVENTORY,
        COMMAND_SPOOL_READ,
        COMMAND_SPOOL_WRITE,
        COMMAND_USER_LOG_WRITTEN,
        COMMAND_CACHE_DELTA,
        COMMAND_LINKS,
        COMMAND_LOCATIONS,
        COMMAND_CREDENTIAL_GET,
        COMMAND_CHECKPOINT,
        COMMAND_SCRIPT_TEXT,
        COMMAND_STREAMS,
        COMMAND_CHIRP,
        COMMAND_FILE_REPLY,
        COMMAND_KINDS,
};

struct command_join {
        struct str token, name, csr_pem;
};
struct command_hello {
        struct str cert_serial, hostname, filesystem_domain, program;
        struct str csr_pem;  /* empty: no new certificate is wanted */
        struct str instance; /* id of the agent's folder; empty: not given */
};
struct command_offer {
        struct str queue, ad;
        uint64_t serial;
        uint32_t jobs_max;
        bool own_users; /* the agent runs each job as its owner */
        bool hands_on;  /* the queue hands its jobs on to another server */
        struct str *owners;
        size_t owner_count;
        enum core_wish wishes[CORE_WISHES_MAX];
};
struct command_refuse { /* uses `attempts` */
        struct str reason;
        bool hold;
};
#define COMMAND_STEPS_MAX 64u
struct command_step {
        bool signaled;
        int32_t exit_code; /* or a signal's number */
        int64_t started_ms, ended_ms;
        uint64_t printed[2]; /* bytes that all steps wrote to stdout and stderr */
};
struct command_tails { /* the end of an attempt's stdout and stderr */
        struct str bytes[2];
        uint64_t size[2];
        struct command_step *steps; /* the results of the steps; NULL: the job has one step */
        size_t step_count;
};
struct command_sent_file {
        struct str url;
        uint64_t size;
        unsigned char sha256[32];
};
struct command_sent { /* outputs sent to URLs, as the agent reports */
        struct command_sent_file *files;
        size_t count;
};
struct command_results {
        struct core_result *items;
        struct command_tails *tails; /* one for each result */
        struct command_sent *sent;
        size_t count;
};
struct command_spool_read {
        uint64_t request, offset, length;
        unsigned char sha256[32];
};
struct command_spool_write {
        uint64_t request, offset;
        uint32_t member, fence;
        unsigned char sha256[32]; /* of the complete file */
        struct str data;
        bool last;
};
struct command_log_written { /* lines were appended to a user's log */
        uint64_t serial;
        struct str error; /* empty: the lines are in the file */
        bool again;       /* with an error: the server may try again later */
        bool added;       /* the last line was not in the file before */
};
struct command_cache_delta {
        struct core_file *added;
        size_t added_count;
        uint64_t *gone;
        size_t gone_count;
        bool full; /* no more than `added` is available */
};
struct command_links {
        struct core_link *items;
        size_t count;
};
struct command_locations {
        struct attempt_location *items;
        size_t count;
};
struct command_credential_get {
        uint64_t request;
        uint32_t part;
        struct str name;
};
struct command_script {
        uint64_t serial;
        struct str text, error;
};
struct command_streams { /* stdout and stderr of a running job */
        uint64_t serial, offset[2], input_next;
        struct str bytes[2], error;
        bool over, unknown, signaled;
        int32_t exit_code;
        int64_t cpu_ms, memory_bytes; /* 0: not known */
};

struct command_chirp { /* see Chirp of wire/drover.proto */
        uint64_t serial, request, offset, command, stderr_offset;
        uint32_t member, fence, op, length, flags, mode, node;
        struct str name, data;
};
struct command_chirp_reply {
        uint64_t serial, size;
        uint32_t mode, error;
        int64_t changed;
        struct str data, text;
};

struct agent;
struct command {
        struct task task;
        enum command_kind kind;
        uint64_t session;
        struct str agent; /* common name of the certificate; empty for COMMAND_JOIN */
        struct arena arena;
        struct core_attempts *attempts; /* for accept, refuse, started and inventory */
        size_t attempt_count;
        union { /* by kind; accept, inventory, renew and gone use none */
                struct command_join join;
                struct command_hello hello;
                struct command_offer offer;
                struct str withdraw; /* name of the queue */
                struct command_refuse refuse;
                int64_t started_ms;
                struct command_results results; /* for result and checkpoint */
                struct command_spool_read spool_read;
                struct command_spool_write spool_write;
                struct command_log_written log_written;
                struct command_cache_delta cache_delta;
                struct command_links links;
                struct command_locations locations;
                struct command_credential_get credential_get;
                struct command_script script;
                struct command_streams streams;
                struct command_chirp chirp;
                struct command_chirp_reply chirp_reply;
        };
        struct inflow *inflow; /* the count that includes this command; NULL: none */
        size_t counted;
};

/* Returns the command for a message after Hello, or NULL when an agent may not send the message (err says
 * why). `agent` is copied. */
struct command *command_from(const Drover__ToServer *m, uint64_t session, struct str agent, struct err *err);
struct command *command_new(enum command_kind kind, uint64_t session, struct str agent);
void command_free(struct command *c);
struct str command_text(struct command *c, const char *z); /* copies the text into the command's arena */
/* Adds the command to the count of its session's pending commands. Returns false if reading of the session
 * must pause, see inflow.h. I/O thread. */
bool command_count(struct command *c, struct inflow *f);
/* Returns a command with the contents of `c`, for a handler that continues after it has returned; `c` is
 * then empty. */
struct command *command_take(struct command *c);

/* A handler: runs the command on the core thread, and does not own it. `a` is the agent that sent it; NULL
 * for COMMAND_JOIN and COMMAND_HELLO. */
typedef void command_fn(struct server *s, struct command *c, struct agent *a);
