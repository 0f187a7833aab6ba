/* spool: transfers objects from and to the server's spool, in chunks: files that were shipped with a submit,
 * and outputs of jobs whose submit folders are not accessible here. */
#pragma once
#include "agent/model/attempt.h"

struct fetch;
void spool_fetch(struct agent *a, struct fetch *f);
struct spool_piece {                  /* a chunk of an object, from the server */
        const unsigned char *sha256;  /* the object's, 32 bytes; NULL: it named none */
        uint64_t offset, object_size; /* bytes */
        struct str data;
        const char *error; /* empty: none */
};
void spool_data(struct agent *a, const struct spool_piece *p);
/* Handles the server's answer to a write: `stored` bytes of the object are there, or `error` (not empty)
 * says why not. full: the server's disk has no room now. */
void spool_stored(struct agent *a, const unsigned char *sha256, uint64_t stored, bool complete, bool full,
                  const char *error);
void spool_session_lost(struct agent *a);
void spool_session_ready(struct agent *a);
void spool_open(struct agent *a);
void spool_close(struct agent *a);
void spool_forget(struct attempt *at); /* ends its uploads */
/* Sends the files named in at->result.outputs and then calls news->delivered. Contents are read from `paths`
 * (taken) or, if `data` (taken) is not -1, from that file at each output's `at`. */
void spool_upload(struct attempt *at, char **paths, int data);
