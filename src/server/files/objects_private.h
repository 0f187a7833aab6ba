/* What objects.c and objects_transfer.c share. Private to them. */
#pragma once
#include "base/map.h"
#include "server/files/holdings.h"
#include "server/files/objects.h"
#include "server/files/outputs.h"
#include "spool/spool.h"

struct objects {
        struct spool *spool;
        struct map *owned;   /* "HASH/PRINCIPAL" → struct owned */
        struct map *uploads; /* "ID/PRINCIPAL" → struct owned, what that upload became */
        struct map *stored;  /* "JOB.FENCE/HASH" → this struct */
        struct outputs *outputs;
        struct holdings *holdings;
        int64_t collected_ms;
        bool collecting;
};

/* "JOB.FENCE/HASH" in b, of what an attempt has delivered. */
struct str objects_stored_key(struct buf *b, uint64_t request, uint32_t member, uint32_t fence,
                              const char *hash);
