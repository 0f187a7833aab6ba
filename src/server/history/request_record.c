#include "server/history/request_record.h"

#include <stdio.h>

struct str request_record_name(char room[REQUEST_RECORD_NAME_MAX], uint64_t request)
{
        int n = snprintf(room, REQUEST_RECORD_NAME_MAX, REQUEST_RECORD_PREFIX "%llu",
                         (unsigned long long)request);

        return str_make(room, (size_t)n);
}

int request_record_get(struct server *s, uint64_t request, struct buf *ret, struct err *err)
{
        char room[REQUEST_RECORD_NAME_MAX];

        return store_blob_get(s->store, request_record_name(room, request), ret, err);
}
