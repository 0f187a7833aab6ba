/* placement: what a placement job does, from its beginning to its end: a transfer between two URLs, or
 * something done at one.
 *
 * The bytes of a transfer go from a process that gets them through a file of a bounded size to one that puts
 * them (move/flow.h), so any two back ends can be joined; between two servers of HTTP they go directly where
 * both can. What is at the end is compared with what was got, by our own checksum, with what the stores name,
 * and with what the author has said.
 *
 * Several ways to the same file (other protocols) are tried in turn. What may work later is tried again, with
 * pauses that double.
 */
#pragma once
#include "move/mover.h"

#define PLACEMENT_CREDENTIALS_MAX 32u
#define PLACEMENT_WAYS_MAX        64u

enum placement_op { PLACEMENT_TRANSFER, PLACEMENT_RM, PLACEMENT_MKDIR, PLACEMENT_STAGE, PLACEMENT_VERIFY };
#define PLACEMENT_OPS (PLACEMENT_VERIFY + 1)
extern const char *const placement_op_names[PLACEMENT_OPS]; /* "transfer", ... */

enum placement_third { THIRD_AUTO, THIRD_NEVER, THIRD_ALWAYS };

struct placement_credential {
        char *type, *file; /* of move/task.h; the file's last part is its name */
        char *urls;        /* what it is shown to: prefixes as file_prefix makes them, parted by blanks */
};

struct placement {
        enum placement_op op;
        const char *src;          /* or the only URL */
        const char *dest;         /* of a transfer */
        const char *alternatives; /* "https-https, ftp-sftp": protocols in place of those of src and dest; may
                                     be NULL */
        struct sum wanted;        /* of what is read */
        enum placement_third third;
        bool read_back;    /* the file is read from where it was put, and compared */
        uint32_t tries;    /* of the whole; 0: 5 */
        uint64_t try_ms;   /* for one of them; 0: no limit */
        uint64_t limit_ms; /* for all; 0: no limit */
        const char *tag;   /* of temporary names: no other writer has it */
        struct placement_credential credentials[PLACEMENT_CREDENTIALS_MAX];
        size_t credential_count;
        /* Called once a second or so with what was moved so far, and of how much (MOVE_SIZE_ANY: not known).
         */
        void (*progress)(void *arg, uint64_t bytes, uint64_t size, uint64_t files, uint64_t files_all);
        void *arg;
};

enum placement_result {
        PLACEMENT_DONE,
        PLACEMENT_FAILED,   /* it will not work: not there, not allowed, not what it should be */
        PLACEMENT_TEMPORARY /* it may work later */
};

struct placement_report {
        enum placement_result result;
        uint64_t bytes, files; /* that are at the end now, or were read */
        uint32_t tries;
        bool third_party;                           /* bytes went from server to server, of the last file */
        char sha256[SUMS_TEXT], adler32[SUMS_TEXT]; /* of the last file; "": not known */
        char way[MOVE_URL_MAX / 8];                 /* the URL it came from, without a password */
        char text[1024];                            /* why it failed */
        int64_t took_ms;
};

void placement_run(const struct mover_config *c, const struct placement *p, struct placement_report *ret);
void placement_deinit(struct placement *p); /* its credentials */
