/* upload: bring bytes into the server's spool, in pieces. A piece whose answer got lost is sent again. */
#pragma once
#include "cli/client/api.h"

#define UPLOAD_PIECE (4u << 20)

struct upload {
        char id[64];
        char sha256[65]; /* as the server has it */
        uint64_t size;
};
/* Print what goes wrong; return an exit code. */
int upload_file(struct cli *cli, const char *path, const char *name, struct upload *ret);
int upload_bytes(struct cli *cli, struct str bytes, const char *name, struct upload *ret);
