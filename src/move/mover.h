/* mover: how bytes get from a URL into a file, and back.
 *
 * A back end is one struct of functions, struct mover_kind: curl knows http, https, ftp, ftps, sftp and file;
 * exec hands a scheme that nobody foresaw to a small program (the contract is in drover-mover(8)). It does
 * one attempt; transfer.c, above it, tries again, sums, compares, and tells. Back ends may block, and may
 * crash: they live in drover-mover, a process of its own that the agent starts and ends.
 *
 * The conformance suite (test_transfer.c) runs unchanged on every back end.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/hidden.h"
#include "move/flow.h"
#include "move/sums.h"
#include "move/task.h"

/* One attempt's view of its transfer. The file's descriptor is open for reading and writing (GET) or for
 * reading (PUT). */
struct transfer {
        const struct move_task *task;
        const struct mover_config *config;
        int fd;
        int64_t deadline_ms; /* CLOCK_MONOTONIC; INT64_MAX: none */
        uint64_t done;       /* GET: bytes in the file that are good: a back end may go on behind them */
        bool resumable;      /* GET: `piece` says what these bytes are the beginning of */
        struct move_facts piece;
        void *sum;               /* of these bytes */
        struct move_facts found; /* what the store said last */
        struct sum named;        /* and which checksum it names */
        char *digest;            /* GET: SHA-256 that the store names, in base64; NULL: it names none */
        uint64_t moved;          /* over all attempts */
        uint64_t latency_us;     /* until the first answer */
        const void *shown;       /* the back end's own, of the task's credential */
};

struct mover_exec { /* a program for a scheme */
        char *scheme, *program;
};
struct mover_config {
        struct mover_exec *execs;
        size_t exec_count, exec_cap;
        char *ca_file;           /* NULL: the system's */
        char *known_hosts;       /* of sftp; NULL: the user's, else the system's */
        struct hidden *hidden;   /* folders that no URL of a file may lead into; NULL: none */
        uint64_t stall_ms;       /* nothing moves for so long: given up, and tried again; 0: 60 s */
        uint64_t retry_ms;       /* before the second attempt; doubles up to a minute; 0: 1 s */
        struct flow *flow;       /* GET and PUT: who has the other end of the transfer; NULL: nobody */
        struct sums *sums;       /* GET: taken of what comes; NULL: none */
        struct sum wanted;       /* GET, with sums: what has to come of it */
        int (*alive)(void *arg); /* called at least every second or so: 0, or -ECANCELED: stop. May be NULL */
        void *arg;
};

/* What an attempt came to, besides 0 (done) and -errno (here: the file cannot be read or written). The
 * sentence in err begins with what happened; the URL is put before it by who calls. */
enum mover_outcome {
        MOVER_UNCHANGED = 1, /* GET with facts known before: it is still that */
        MOVER_AGAIN,         /* it may work later: no answer, cut off, too busy */
        MOVER_REFUSED,       /* it will not: not there, not understood */
        MOVER_DENIED         /* it will not: not allowed to whom the store sees (the task's credential) */
};

typedef void mover_listed_fn(void *arg, struct str name, bool folder); /* one that a folder has */
typedef void mover_moved_fn(void *arg, uint64_t bytes);                /* so many bytes have been copied */

struct mover_pull {
        const char *source, *header; /* header: a value of Authorization to show there; NULL: none */
        uint64_t size;               /* of what is there */
        struct sum sum;              /* and its checksum */
        mover_moved_fn *told;
        void *arg;
};

struct mover_kind {
        const char *name;
        bool (*handles)(const struct mover_config *c, struct str scheme);
        /* Fills the file by transfer_write, after transfer_restart unless it goes on at t->done. Sets
         * t->found.
         */
        int (*get)(struct transfer *t, struct err *err);
        /* Sends the task's part of the file, so that it is seen at the URL only when it is whole. */
        int (*put)(struct transfer *t, struct err *err);
        /* Asks the store for a sign of life as cheaply as it can; the answer's contents don't matter. Sets
         * t->latency_us; when it fails, only if there was a connection and then silence. */
        int (*probe)(struct transfer *t, struct err *err);

        /* What placements need besides (move/placement.h). All but handles may be NULL. */

        /* What is at the URL: t->found and t->named. MOVER_REFUSED: nothing. */
        int (*look)(struct transfer *t, struct err *err);
        /* What is not there afterwards was removed. */
        int (*remove)(struct transfer *t, struct err *err);
        /* The folder and those above it are there afterwards. */
        int (*make_folder)(struct transfer *t, struct err *err);
        int (*list)(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err);
        /* The store of the task's URL gets the file from another one by itself, and shows it when it is what
         * it should be, as far as it says. */
        int (*pull)(struct transfer *t, const struct mover_pull *p, struct err *err);
};
extern const struct mover_kind mover_curl, mover_exec;

/* For back ends. */
int transfer_restart(struct transfer *t); /* the file is empty again: 0 or -errno */
int transfer_write(struct transfer *t, const void *p, size_t n);
/* The next bytes of what is sent, from `at` on: as many, 0 at the end, or -errno. */
long transfer_read(struct transfer *t, uint64_t at, void *p, size_t n);
int transfer_alive(struct transfer *t); /* 0; -ECANCELED, -ETIMEDOUT: stop now */
/* Sums what a program has written into the file itself. 0 or -errno. */
int transfer_look(struct transfer *t);

/* One call of a back end's about the task's URL; `call` is told the transfer. As `call`, or MOVER_REFUSED
 * with err when no back end knows the scheme. */
int transfer_with(const struct mover_config *c, const struct move_task *task, struct transfer *t,
                  int (*call)(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err),
                  void *arg, struct err *err);
/* Does the URL's back end read what it puts while that is still coming? */
bool transfer_streams(const struct mover_config *c, const char *url);
/* Does the task, with every attempt it may have. Fills *answer. `fd` is the local file; -1 for a PROBE. */
void transfer_run(const struct mover_config *c, const struct move_task *task, int fd,
                  struct move_answer *answer);
void mover_config_deinit(struct mover_config *c);
/* scheme=program; false when it isn't of that form. */
bool mover_config_exec(struct mover_config *c, const char *text);
struct str mover_scheme(struct str url); /* empty: there is none */
