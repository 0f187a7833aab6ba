/* placement: the work of a placement job: a transfer between two URLs, or an operation at one.
 *
 * The bytes of a transfer go from a process that gets them through a file of bounded size to one that puts
 * them (move/flow.h), so that any two back ends can be combined; between two HTTP servers they go directly
 * if both support that. The result is compared with the source by our own checksum, with the checksums that
 * the stores name, and with the one that the author gave.
 *
 * Several ways to the same file (other protocols) are tried in turn. Temporary failures are retried after
 * pauses that double. Of several files some are moved at the same time (move/workers.h).
 */
#pragma once
#include "move/mover.h"
#include "move/workers.h"

#define PLACEMENT_CREDENTIALS_MAX 32u
#define PLACEMENT_WAYS_MAX        64u

enum placement_op {
        PLACEMENT_TRANSFER,
        PLACEMENT_RM,
        PLACEMENT_MKDIR,
        PLACEMENT_STAGE,
        PLACEMENT_VERIFY,
        PLACEMENT_RESERVE, /* only asks whether the store has the space: the server makes the lot */
        PLACEMENT_RELEASE  /* nothing: the server ends the lot */
};
#define PLACEMENT_OPS (PLACEMENT_RELEASE + 1)
extern const char *const placement_op_names[PLACEMENT_OPS]; /* "transfer", ... */

enum placement_third { THIRD_AUTO, THIRD_NEVER, THIRD_ALWAYS };

struct placement_credential {
        char *type, *file; /* type: of move/task.h; file: its last component is the credential's name */
        char *urls; /* URLs that it is used for: prefixes as file_prefix makes them, separated by blanks */
};

struct placement {
        enum placement_op op;
        const char *src;          /* source, or the only URL */
        const char *dest;         /* destination of a transfer */
        const char *alternatives; /* "https-https, ftp-sftp": protocols in place of those of src and dest; may
                                     be NULL */
        struct sum wanted;        /* required checksum of the source */
        /* Most bytes of a transfer, all files together, or those to be reserved; 0: any number. rm: not 0:
         * the sizes of the files are found out before. */
        uint64_t space;
        enum placement_third third;
        bool read_back;    /* the file is read back from its destination */
        uint32_t tries;    /* attempts; 0: 5 */
        uint64_t try_ms;   /* time for one attempt; 0: no limit */
        uint64_t limit_ms; /* time for all attempts; 0: no limit */
        const char *tag;   /* part of temporary names; unique to this writer */
        struct placement_credential credentials[PLACEMENT_CREDENTIALS_MAX];
        size_t credential_count;
        /* Called about once a second with the bytes moved so far, and of how many (MOVE_SIZE_ANY: unknown).
         */
        void (*progress)(void *arg, uint64_t bytes, uint64_t size, uint64_t files, uint64_t files_all);
        void *arg;
};

enum placement_result {
        PLACEMENT_DONE,
        PLACEMENT_FAILED,   /* will not succeed: missing, not allowed, wrong contents */
        PLACEMENT_TEMPORARY /* may succeed later */
};

/* Exit codes of `drover-mover place` besides 0 and 1, as in sysexits.h: may succeed later; may succeed with
 * another credential. */
#define PLACEMENT_EXIT_AGAIN  75
#define PLACEMENT_EXIT_DENIED 77

struct placement_report {
        enum placement_result result;
        uint64_t bytes, files; /* moved to the destination, read, or removed */
        uint32_t tries;
        bool denied; /* with PLACEMENT_FAILED: a store refused the credential, so another one may succeed */
        bool third_party;                           /* the last file went from server to server */
        char sha256[SUMS_TEXT], adler32[SUMS_TEXT]; /* checksums of the last file; "": unknown */
        char way[MOVE_URL_MAX / 8];                 /* URL that it came from, without password */
        char to[MOVE_URL_MAX / 8]; /* URL at which the last file of a transfer is, without password */
        char text[1024];           /* error message */
        int64_t took_ms;
        unsigned streams; /* files that were moved at the same time at the end; 0: one after the other */
        struct workers_tried tried[WORKERS_TRIED];
        unsigned tried_count;
};

void placement_run(const struct mover_config *c, const struct placement *p, struct placement_report *ret);
void placement_deinit(struct placement *p); /* frees the credentials */
