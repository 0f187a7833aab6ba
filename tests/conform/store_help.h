/* store_help: what the tests of the store share: a folder of their own, and appends that wait. */
#pragma once
#include <pthread.h>

#include "store/store.h"

/* Results of appended batches, counted and in order. */
struct waiter {
        pthread_mutex_t lock;
        pthread_cond_t moved;
        unsigned appended, finished;
        int result;        /* of the last */
        uint64_t last_seq; /* of the last */
        bool disorder;     /* a durable callback's number was below the one before it */
        struct err err;
        struct store_batch *returned[64]; /* those that came back STORE_FULL, in order */
        unsigned returned_count;
};
void waiter_init(struct waiter *w);
void waiter_deinit(struct waiter *w);
void waiter_append(struct waiter *w, struct store *s, uint64_t term, struct store_batch *b);
void waiter_wait(struct waiter *w); /* for all that was appended; fails the test after a minute */

/* Appends and waits; the result of the callback. */
int append_now(struct store *s, uint64_t term, struct store_batch *b, uint64_t *ret_last_seq,
               struct err *err);
/* A batch of `count` records; record i says "<word> <first + i>". */
struct store_batch *batch_of(const char *word, uint64_t first, unsigned count);

char *temp_folder(void);               /* the caller frees; removed by temp_folder_remove */
void temp_folder_remove(char *folder); /* and frees it */
