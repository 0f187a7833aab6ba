/* server: what all parts of the daemon share, and how its threads talk.
 *
 * Four threads with a loop each, and the store's own:
 *   core    the main thread. It alone touches the core, the turn and what hangs on them (agents, waits).
 *   I/O     all sockets: agents' sessions and HTTP, and the reading and writing of JSON.
 *   reader  what may block on the disk but changes no state of the core: history, events, the spool.
 *   catalog the catalog of files: imports and queries.
 * A thread never touches what is another's: it posts a task, a struct with plain data and a function, which
 * the other's loop calls. Tasks of one thread to another arrive in order.
 *
 * Each member of struct server belongs to the part that is named like it; daemon/ makes and frees all of
 * them.
 */
#pragma once
#include <stdatomic.h>

#include "base/arena.h"
#include "base/system/uuid.h"
#include "core/core.h"
#include "ev/loop.h"
#include "ev/mailbox.h"
#include "server/config/config.h"
#include "server/config/paths.h"
#include "store/store.h"

struct server;
struct task {
        struct mail mail;
        void (*run)(struct server *s, struct task *t); /* on the thread it was posted to; owns the task */
        void (*drop)(struct task *t); /* instead of run, when the thread has ended; NULL: free() */
};

struct server {
        struct config config;                    /* as it was at the start: see server_settings */
        _Atomic(const struct config *) settings; /* NULL: config */
        struct paths paths;
        char uuid[UUID_TEXT];
        bool remote_agents;  /* agents may come over TCP */
        struct store *store; /* reading calls: any thread */
        uint64_t term;
        atomic_uint_least64_t durable_seq; /* last record that is on disk */
        atomic_bool stopping;
        struct mailbox *core_mail, *io_mail, *reader_mail, *catalog_mail; /* any thread: see server_to_core */
        struct fair *core_fair, *reader_fair, *catalog_fair;              /* any thread: calls/fair.h */
        struct leases *leases;                                            /* any thread */

        /* core thread */
        struct loop *loop;
        struct core *core;
        struct turn *turn;
        struct agents *agents;
        struct waits *waits;
        struct core_quoting *quoting; /* the quote under way (api/submit.c); NULL: none */
        bool drafting;                /* a large submit is being made (api/submit.c) */
        atomic_uint large_calls;      /* submits that may have hundreds of MiB in memory (api/submit.c) */
        struct attempt_locations *attempt_locations;
        struct scripts *scripts;
        struct streams *streams;
        struct chirps *chirps;
        struct tails *tails;
        struct userlog *userlog;
        struct notices *notices;
        struct prune *prune;
        struct snapshots *snapshots;
        struct ledger *ledger;
        struct usage_pages *usage; /* history/usage.h: what attempts used that have ended in this turn */
        struct access *access;
        struct provision *provision;         /* NULL: the settings name no provisioner */
        struct sources *sources;             /* NULL: the settings name none */
        struct objects *objects;             /* see objects.h */
        struct registrations *registrations; /* NULL: there was none yet */
        int64_t lease_ms, renew_ms;
        int64_t grants_due_ms;  /* boot clock: see grants_tick */
        int64_t learned_due_ms; /* learned.h's */
        uint64_t learned_count;
        int exit_code;

        struct metrics *metrics; /* each part of it has its thread, see metrics.h */

        struct agent_sessions *agent_sessions; /* I/O thread */
        struct past *past;                     /* reader thread */
        struct catalog *catalog;               /* catalog thread; NULL until it is needed */

        /* daemon.c's */
        struct io_thread *io_thread;
        struct thread *reader, *catalog_thread;
        struct reread *rereads; /* the configurations that were read on SIGHUP, newest first */
};

/* Any thread. The settings that hold from when SIGHUP was received, which are admins, operators,
 * agent_certificate and keep. The object stays as it is until the server is closed. */
const struct config *server_settings(const struct server *s);
/* Post a task to a thread, from any thread. Each takes the task. */
void server_to_core(struct server *s, struct task *t);
void server_to_io(struct server *s, struct task *t); /* before there is an I/O thread the task is dropped */
void server_to_reader(struct server *s, struct task *t);
void server_to_catalog(struct server *s, struct task *t);
void task_drop(struct task *t);
/* Core thread: logs why, and stops at once without a snapshot; the exit code is 1. */
void server_fatal(struct server *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
