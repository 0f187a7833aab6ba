/* spool: objects of the server's spool, in chunks: what was shipped with a submit, and outputs of jobs whose
 * submitter's folders are not ours. */
#pragma once
#include "agent/model/attempt.h"

struct fetch;
void spool_fetch(struct agent *a, struct fetch *f);
struct spool_piece {                  /* of an object, from the server */
        const unsigned char *sha256;  /* the object's, 32 bytes; NULL: it named none */
        uint64_t offset, object_size; /* bytes */
        struct str data;
        const char *error; /* empty: none */
};
void spool_data(struct agent *a, const struct spool_piece *p);
/* The server has so much of an object, or (error, if it isn't empty) why not; full: its disk has no room for
 * it now. */
void spool_stored(struct agent *a, const unsigned char *sha256, uint64_t stored, bool complete, bool full,
                  const char *error);
void spool_session_lost(struct agent *a);
void spool_session_ready(struct agent *a);
void spool_open(struct agent *a);
void spool_close(struct agent *a);
void spool_forget(struct attempt *at); /* uploads */
/* Sends the files named in at->result.outputs, and then calls news->delivered. They are read from `paths`
 * (taken); or, when `data` (taken) is no -1, from there, each from where its `at` says. */
void spool_upload(struct attempt *at, char **paths, int data);
