/* numbered: a SQLite store whose content follows from how many batches it has, so that it can be checked
 * without knowing what was done.
 *
 * Batch i is 1 + i % 5 records "<i> <number in the batch> …", a history row of member i, and the blob "last",
 * which is i. A snapshot of record n is 100,000 bytes or more, each the letter 'a' + n % 26.
 */
#pragma once
#include "store/store.h"

struct fixture {
        char *folder, *path, *address;
};
int numbered_setup(void **state); /* cmocka's: *state is a fixture, in a folder of its own */
int numbered_teardown(void **state);
void numbered_begin_again(struct fixture *f); /* the folder, empty */

struct store_batch *numbered_batch(unsigned i, size_t padding); /* records are so long at least */
uint64_t seq_after(unsigned batches); /* number of the last record of so many batches */

struct store *open_store(const struct fixture *f, uint64_t *ret_term);
/* Everything is whole, nothing acknowledged is missing. How many batches there are. */
unsigned check_store(struct store *s, uint64_t acknowledged);
/* The same for a store that is not open; and it takes another batch. */
void check_reopened(const struct fixture *f, uint64_t acknowledged);
