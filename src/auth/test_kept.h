/* test_kept: a store in memory and the batch that a table writes to, for tests of tables that are kept there.
 */
#pragma once
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store.h"

struct kept {
        struct store *store;
        struct store_batch *batch;
        uint64_t term;
};

static inline void kept_init(struct kept *k)
{
        assert_int_equal(store_open("memory:", &k->store, NULL, NULL), 0);
        assert_int_equal(store_term_take(k->store, &k->term, NULL), 0);
        k->batch = store_batch_new();
}

static inline void kept_deinit(struct kept *k)
{
        store_batch_free(k->batch);
        store_close(k->store);
}

static inline void kept_committed(void *arg, int result, uint64_t last_seq, struct store_batch *batch,
                                  const struct err *err)
{
        (void)last_seq, (void)batch, (void)err;
        assert_int_equal(result, STORE_DURABLE);
        sem_post(arg);
}

/* Waits until the batch is in the store; the next one is empty. */
static inline void kept_commit(struct kept *k)
{
        sem_t done;

        sem_init(&done, 0, 0);
        store_append(k->store, k->term, k->batch, kept_committed, &done);
        sem_wait(&done);
        sem_destroy(&done);
        k->batch = store_batch_new();
}
