/* upload: sends bytes to the server's spool, in pieces. A piece whose answer was lost is sent again. */
#pragma once
#include "cli/client/api.h"

#define UPLOAD_PIECE (4u << 20)

struct upload {
        char id[64];
        char sha256[65]; /* digest computed by the server */
        uint64_t size;
};
/* Upload a file or bytes under a name. Errors are printed. Return an exit code. */
int upload_file(struct cli *cli, const char *path, const char *name, struct upload *ret);
int upload_bytes(struct cli *cli, struct str bytes, const char *name, struct upload *ret);
