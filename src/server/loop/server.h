/* server: what all parts of the daemon share, and how its threads communicate.
 *
 * These threads have a loop each:
 *   core    the main thread. Only it touches the core, the turn, and what belongs to them (agents, waits).
 *   I/O     all sockets: agents' sessions and HTTP, and the reading and writing of JSON.
 *   reader  whatever may block on the disk and does not change the core: history, events, the spool.
 *   catalog the catalog of files: imports and queries.
 *   mirror  messages of the two servers of a mirror; only with a mirror.
 *   standby answers who leads; only before this server leads itself (daemon/recover.c).
 * The store's thread has none; ARCHITECTURE.md lists all threads.
 *
 * A thread never touches another thread's data. It posts a task, which is a struct of plain data with a
 * function, and the other thread's loop calls that function. Tasks from one thread to another arrive in
 * order.
 *
 * Each member of struct server belongs to the part with the same name; daemon/ makes and frees all of
 * them. */
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
        /* runs on the thread that the task was posted to; owns the task */
        void (*run)(struct server *s, struct task *t);
        void (*drop)(struct task *t); /* called instead of run when the thread has ended; NULL: free() */
};

struct server {
        struct config config; /* as read at the start; server_settings has the current one */
        _Atomic(const struct config *) settings; /* the current settings after SIGHUP; NULL: config */
        struct paths paths;
        char uuid[UUID_TEXT];
        bool remote_agents;  /* agents may connect over TCP */
        struct store *store; /* any thread may make the calls that only read */
        uint64_t term;
        atomic_uint_least64_t durable_seq; /* number of the last durable record */
        atomic_bool stopping;
        atomic_bool hung_up; /* SIGHUP came while another server led */
        /* may be posted to from any thread: see server_to_core */
        struct mailbox *core_mail, *io_mail, *reader_mail, *catalog_mail;
        struct fair *core_fair, *reader_fair, *catalog_fair; /* any thread; see calls/fair.h */
        struct mirror *mirror;                               /* NULL: the settings name none; any thread */
        struct leases *leases;                               /* any thread */
        struct following *following; /* NULL: this server does not follow another (loop/following.h) */

        /* core thread */
        struct loop *loop;
        struct core *core;
        struct turn *turn;
        struct settled *settled; /* see settled.h */
        struct agents *agents;
        struct waits *waits;
        struct core_quoting *quoting; /* the quote in progress (api/submit/submit.c); NULL: none */
        bool drafting;                /* a large submit is being read (api/submit/submit.c) */
        atomic_uint large_calls;      /* calls that may hold hundreds of MiB each (api/submit/submit.c) */
        struct attempt_locations *attempt_locations;
        struct scripts *scripts;
        struct streams *streams;
        struct chirps *chirps;
        struct launches *launches;
        struct tails *tails;
        struct userlog *userlog;
        struct notices *notices;
        struct prune *prune;
        struct snapshots *snapshots;
        struct ledger *ledger;
        struct keywords *keywords; /* history/keywords.h */
        struct {
                bool changed; /* in this turn */
                uint64_t fingerprint;
        } reserved;                /* agents/reserved.h */
        struct usage_pages *usage; /* usage of the attempts that ended in this turn (history/usage.h) */
        struct access *access;
        struct provision *provision;         /* NULL: the settings name no provisioner */
        struct sources *sources;             /* NULL: the settings name none */
        struct backends *backends;           /* NULL: there have been none since the start */
        struct objects *objects;             /* see objects.h */
        struct catalog_log *catalog_log;     /* any thread; see files/catalog_log.h */
        struct registrations *registrations; /* made with the first registration; NULL before */
        int64_t lease_ms, renew_ms;
        int64_t grants_due_ms;  /* boot clock: see grants_tick */
        int64_t learned_due_ms; /* of learned.h */
        uint64_t learned_count, keywords_kept;
        int exit_code;
        bool drained; /* stops so that another server leads, and is to be started again */

        struct metrics *metrics; /* metrics.h says which thread owns which part */

        struct agent_sessions *agent_sessions; /* I/O thread */
        struct openid *openid;                 /* I/O thread; NULL: the settings name no provider */
        struct past *past;                     /* reader thread */
        struct xml_schema *sssrmap;            /* of messages; reader thread; NULL: SSSRMAP is not enabled */
        struct catalog *catalog;               /* catalog thread; opened at first use, NULL before */

        /* of daemon.c */
        struct io_thread *io_thread;
        struct thread *reader, *catalog_thread;
        struct reread *rereads; /* the settings that were read on SIGHUP, newest first */
};

/* Returns the settings as they were read last. Those that `reloads` (config.c) hold from then on, all others
 * as at the start. The object lives until the server is closed. Any thread. */
const struct config *server_settings(const struct server *s);
/* Post a task to a thread, from any thread. The call takes the task. */
void server_to_core(struct server *s, struct task *t);
void server_to_io(struct server *s, struct task *t); /* drops the task if the I/O thread has not started */
/* The same with priority over the others (ev/mailbox.h), for calls of the API: they do not wait for all that
 * thousands of agents have to say. */
void server_to_core_priority(struct server *s, struct task *t);
void server_to_io_priority(struct server *s, struct task *t);
void server_to_reader(struct server *s, struct task *t);
void server_to_catalog(struct server *s, struct task *t);
void task_drop(struct task *t);
/* Core thread: logs the reason and stops at once, without a snapshot; the exit code is 1. */
void server_fatal(struct server *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
