/* command: what an agent said, as plain data for the core thread.
 *
 * Made on the I/O thread from a protocol message, which it does not refer to any more. Everything in it is
 * owned by it. Member numbers in one message are capped, so that a short message cannot make the core walk
 * far.
 */
#pragma once
#include "server/agents/whereabouts.h"
#include "server/loop/server.h"
#include "wire/drover.pb-c.h"

#define COMMAND_MEMBERS_MAX  2000000u
#define COMMAND_ATTEMPTS_MAX 1000000u
#define COMMAND_REASON_MAX   4096u      /* bytes; more is cut */
#define COMMAND_SCRIPT_MAX   (1u << 20) /* likewise */
#define COMMAND_OWNERS_MAX   1024u      /* of an offer */

enum command_kind {
        COMMAND_JOIN,
        COMMAND_HELLO,
        COMMAND_GONE, /* the session is over */
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
        COMMAND_WHEREABOUTS,
        COMMAND_CREDENTIAL_GET,
        COMMAND_CHECKPOINT,
        COMMAND_SCRIPT_TEXT,
        COMMAND_KINDS,
};

struct agent;
struct command {
        struct task task;
        enum command_kind kind;
        uint64_t session;
        struct str agent; /* the certificate's name; empty for COMMAND_JOIN */
        struct str cert_serial;
        struct arena arena;
        /* by kind */
        struct core_attempts *attempts;
        size_t attempt_count;
        struct core_result *results;
        size_t result_count;
        struct str text[6]; /* see the table in command.c */
        struct str *owners;
        size_t owner_count;
        enum core_wish wishes[CORE_WISHES_MAX];
        struct core_file *files; /* cache delta: added; flag: they are all */
        size_t file_count;
        uint64_t *gone;
        size_t gone_count;
        struct core_link *links;
        size_t link_count;
        struct whereabout *wheres;
        size_t where_count;
        uint64_t number[4];
        bool flag;
        unsigned char sha256[32];
        struct inflow *inflow; /* that it is counted in; NULL: none */
        size_t counted;
};

/* What is in text[] and number[]. */
enum { COMMAND_TOKEN, COMMAND_NAME, COMMAND_CSR }; /* join, hello (csr) */
enum { COMMAND_HOSTNAME, COMMAND_DOMAIN, COMMAND_CSR_AGAIN, COMMAND_PROGRAM, COMMAND_INSTANCE }; /* hello */
enum { COMMAND_QUEUE, COMMAND_AD, COMMAND_REASON }; /* offer…refuse; user log */
enum { COMMAND_SERIAL, COMMAND_JOBS_MAX };          /* offer, withdraw, renew */
enum { COMMAND_ADDED = 1 };                         /* user log, with serial */
enum { COMMAND_REQUEST, COMMAND_OFFSET, COMMAND_FENCE, COMMAND_MEMBER_OR_LENGTH }; /* spool */
enum { COMMAND_SCRIPT = 0 };                       /* script, with serial and reason */
enum { COMMAND_PART = 1, COMMAND_CREDENTIAL = 0 }; /* credential, with request; its name */

/* The command for a message after Hello, or NULL when it is none that an agent may send (err says what).
 * `agent` and `cert_serial` are copied. */
struct command *command_from(const Drover__ToServer *m, uint64_t session, struct str agent, struct err *err);
struct command *command_new(enum command_kind kind, uint64_t session, struct str agent);
void command_free(struct command *c);
struct str command_text(struct command *c, const char *z); /* a copy in its arena */
/* Counts it among what its session has said and the core has not done. False: the session is to be read no
 * further for now, see inflow.h. I/O thread. */
bool command_count(struct command *c, struct inflow *f);
/* `to` is counted in the place of `from`, of the same session, which goes before it. */
void command_count_as(struct command *to, struct command *from);

/* Does it, on the core thread; does not own it. `a`: its agent; NULL: of COMMAND_JOIN and COMMAND_HELLO. */
typedef void command_fn(struct server *s, struct command *c, struct agent *a);
