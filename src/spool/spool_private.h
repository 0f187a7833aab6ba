/* What spool.c and upload.c share. Private to spool/. */
#pragma once
#include <openssl/evp.h>
#include <pthread.h>

#include "base/map.h"
#include "spool/spool.h"

struct holder { /* an owner with uploads under way */
        uint64_t bytes;
        size_t uploads;
};
struct upload {
        char id[UUID_TEXT];
        char *owner;
        struct holder *holder;
        uint64_t size;
        EVP_MD_CTX *sha; /* of its bytes so far; NULL until it is needed after a restart */
        bool busy;       /* a call is working on it */
};

struct spool {
        int dirfd, objects_fd, uploads_fd;
        uint64_t object_max;
        pthread_mutex_t lock;             /* uploads, holders, and busy of each */
        pthread_mutex_t objects_lock;     /* an object's coming in and its going do not overlap */
        struct map *uploads, *holders;    /* by id; by owner */
        unsigned char durable[65536 / 8]; /* a bit for each folder of objects: flushed by us */
};

int spool_uploads_load(struct spool *s, struct err *err);
void spool_uploads_free(struct spool *s);
int spool_fail(int number, struct err *err, const char *what); /* SPOOL_FULL or -number, with text */
/* "ab/cd/abcd…" */
void spool_object_path(const char *hash, char ret[SPOOL_HASH_TEXT + 6]);
