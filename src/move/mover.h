/* mover: copies bytes from a URL into a file, and back.
 *
 * A back end is one struct of functions, struct mover_kind: curl knows http, https, ftp, ftps, sftp and
 * file; exec runs a site's program for any other scheme (the contract is in drover-mover(8)). A back end
 * makes one attempt; transfer.c, above it, retries, sums, compares and reports. Back ends may block and may
 * crash: they run in drover-mover, a process of its own that the agent starts and ends.
 *
 * The conformance suite (test_transfer.c) runs unchanged on every back end.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "base/system/hidden.h"
#include "move/flow.h"
#include "move/sums.h"
#include "move/task.h"
#include "move/tuning.h"

/* One attempt's view of its transfer. The file's descriptor is open for reading and writing (GET) or for
 * reading (PUT). */
struct transfer {
        const struct move_task *task;
        const struct mover_config *config;
        int fd;
        int64_t deadline_ms; /* CLOCK_MONOTONIC; INT64_MAX: none */
        uint64_t done;       /* GET: valid bytes in the file; a back end may continue after them */
        bool resumable;      /* GET: `piece` identifies the version that these bytes are the beginning of */
        struct move_facts piece;
        void *sum;               /* checksum of these bytes */
        struct move_facts found; /* facts of the store's last answer */
        struct sum named;        /* checksum that the store names */
        char *digest;            /* GET: SHA-256 that the store names, in base64; NULL: none */
        uint64_t moved;          /* bytes moved in all attempts */
        uint64_t latency_us;     /* time until the first answer */
        const void *shown;       /* the back end's form of the task's credential */
};

struct mover_exec { /* program for a scheme */
        char *scheme, *program;
};
struct mover_sent {
        bool looked;   /* the store was asked */
        uint64_t size; /* MOVE_SIZE_ANY: it does not say */
        struct sum named;
};
struct mover_config {
        struct mover_exec *execs;
        size_t exec_count, exec_cap;
        char *ca_file;         /* NULL: the system's */
        char *known_hosts;     /* for sftp; NULL: the user's, else the system's */
        struct hidden *hidden; /* folders that no file URL may lead into; NULL: none */
        uint64_t
                stall_ms; /* time without progress after which an attempt is given up and repeated; 0: 60 s */
        uint64_t retry_ms;       /* pause before the second attempt; doubles up to a minute; 0: 1 s */
        struct flow *flow;       /* GET and PUT: the other end of the transfer */
        struct mover_sent *sent; /* PUT: what the store says of the sent file; may be NULL */
        bool whole; /* PUT: no incomplete file is shown, even if this process dies; so with `flow` */
        struct tuning *tunings;
        size_t tuning_count, tuning_cap;
        struct sums *sums;       /* GET: checksums taken of the received bytes; NULL: none */
        struct sum wanted;       /* GET, with sums: required checksum */
        int (*alive)(void *arg); /* called at least about every second; returns 0, or -ECANCELED to stop. May
                                    be NULL */
        void *arg;
};

/* Outcomes of an attempt, besides 0 (done) and -errno (the local file cannot be read or written). The
 * sentence in err begins with what happened; the caller puts the URL before it. */
enum mover_outcome {
        MOVER_UNCHANGED = 1, /* GET with known facts: the file at the URL is unchanged */
        MOVER_AGAIN,         /* may succeed later: no answer, connection lost, server busy */
        MOVER_REFUSED,       /* will not succeed: missing, not understood */
        MOVER_DENIED         /* will not succeed: not allowed with the task's credential */
};

/* An entry of a folder. size: of a file; MOVE_SIZE_ANY: not told. */
typedef void mover_listed_fn(void *arg, struct str name, bool folder, uint64_t size);
typedef void mover_moved_fn(void *arg, uint64_t bytes); /* progress: bytes copied so far */

struct mover_pull {
        const char *source, *header; /* header: value of Authorization for the source */
        uint64_t size;               /* size at the source */
        struct sum sum;              /* checksum at the source */
        mover_moved_fn *told;
        void *arg;
};

struct mover_kind {
        const char *name;
        bool (*handles)(const struct mover_config *c, struct str scheme);
        /* Fills the file by transfer_write, after transfer_restart unless it continues at t->done. Sets
         * t->found. */
        int (*get)(struct transfer *t, struct err *err);
        /* Sends the task's part of the file, so that the URL shows it only when it is complete. */
        int (*put)(struct transfer *t, struct err *err);
        /* Asks the store for the cheapest answer. Sets t->latency_us; on failure, only if there was a
         * connection and then silence. */
        int (*probe)(struct transfer *t, struct err *err);

        /* For placements (move/placement.h). All but handles may be NULL. */

        /* Sets t->found and t->named for the file at the URL. MOVER_REFUSED: there is none. */
        int (*look)(struct transfer *t, struct err *err);
        /* Removes the file. A missing file counts as removed. */
        int (*remove)(struct transfer *t, struct err *err);
        /* Makes the folder and missing parents. An existing folder is accepted. */
        int (*make_folder)(struct transfer *t, struct err *err);
        int (*list)(struct transfer *t, mover_listed_fn *fn, void *arg, struct err *err);
        /* Has the store of the task's URL fetch the file from another store, and shows it there only if it
         * is correct, as far as it says. */
        int (*pull)(struct transfer *t, const struct mover_pull *p, struct err *err);
        /* Asks how many bytes may still be written at the URL. MOVER_REFUSED: the store does not say. */
        int (*space)(struct transfer *t, uint64_t *ret_free, struct err *err);
};
extern const struct mover_kind mover_curl, mover_exec;

/* For back ends. */
int transfer_restart(struct transfer *t); /* empties the file; 0 or -errno */
int transfer_write(struct transfer *t, const void *p, size_t n);
/* Takes bytes that are in the file already, up to `upto`, as if they had been written by transfer_write. */
int transfer_take(struct transfer *t, uint64_t upto);
/* Reads the next bytes to send, from `at` on. Returns their number, 0 at the end, or -errno. */
long transfer_read(struct transfer *t, uint64_t at, void *p, size_t n);
int transfer_alive(struct transfer *t); /* 0; -ECANCELED, -ETIMEDOUT: stop now */
/* Compares what a store says of the copy (t->found, t->named) with the file that was to be copied, as far as
 * the two name checksums of one type. Returns 0, or MOVER_AGAIN with err. */
int transfer_compare_copy(const struct transfer *t, const struct mover_pull *p, struct err *err);
/* Waits until the file's bytes are on its disk. That of large files may take minutes, in which t is still
 * alive and keeps to its time. Returns 0 or -errno. */
int transfer_sync(struct transfer *t, int fd, uint64_t size);
/* Sums bytes that a program has written into the file directly. Returns 0 or -errno. */
int transfer_look(struct transfer *t);

/* Calls `call` with the transfer and the back end for the task's URL. Returns the result of `call`, or
 * MOVER_REFUSED with err if no back end knows the scheme. */
int transfer_with(const struct mover_config *c, const struct move_task *task, struct transfer *t,
                  int (*call)(struct transfer *t, const struct mover_kind *k, void *arg, struct err *err),
                  void *arg, struct err *err);
/* Returns whether the URL's back end can send a file that is still growing. */
bool transfer_streams(const struct mover_config *c, const char *url);
/* Does the task, with all its attempts, and fills in *answer. fd: the local file; -1 for a PROBE. */
void transfer_run(const struct mover_config *c, const struct move_task *task, int fd,
                  struct move_answer *answer);
void mover_config_deinit(struct mover_config *c);
/* Adds a program from the text "scheme=program"; returns false if the text is malformed. */
bool mover_config_exec(struct mover_config *c, const char *text);
/* Adds a text as of move/tuning.h; returns false if it is malformed. */
bool mover_config_tune(struct mover_config *c, const char *text);
struct str mover_scheme(struct str url); /* empty: there is none */
/* Returns the program for a scheme, borrowed; NULL: none. */
const char *mover_program_of(const struct mover_config *c, struct str scheme);
