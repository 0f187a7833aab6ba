/* flow: one transfer's bytes on their way from the process that gets them to the one that puts them.
 *
 * Both have the same file. The getter writes it from its beginning and says how far it is; the putter reads
 * behind it. A getter that is more than a window ahead waits; what the putter has read is given back to the
 * disk, but for a file that fits into the window, which can be sent again. The last byte is not given out
 * before the getter has said that all of it is what it should be: so a store that shows a file when all of it
 * has come shows none that is wrong.
 *
 * Made before fork(); each side's calls are for one thread. A side that has died does not hold up the other:
 * waits end when the caller's `alive` says so.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "move/sums.h"
#include "move/task.h"

struct flow;
typedef int flow_alive_fn(void *arg); /* 0, or -errno: the wait ends with it */

/* fd: the file, borrowed. NULL when there is no memory or descriptor. */
struct flow *flow_new(int fd, uint64_t window);
void flow_free(struct flow *f);

/* The getter: `done` bytes are in the file, of `size` (MOVE_SIZE_ANY: not known). 0, after a wait for room;
 * -errno of alive; -ESTALE: the putter has given up. */
int flow_wrote(struct flow *f, uint64_t done, uint64_t size, flow_alive_fn *alive, void *arg);
/* The getter begins anew. 0; -ESTALE: some of it was sent already. */
int flow_restart(struct flow *f);
/* The getter has ended: with this answer, which has the SHA-256, and these
 * checksums of what it has got. */
void flow_end(struct flow *f, const struct move_answer *answer, const struct sums *sums);

/* The putter: waits until the size is known, or the getter has ended. 0 with *ret, MOVE_SIZE_ANY when it
 * failed before; or -errno of alive. */
int flow_size(struct flow *f, uint64_t *ret, flow_alive_fn *alive, void *arg);
/* Waits until bytes from `at` on may be sent. How many, at most n; 0 behind the end; -ESTALE: they are not
 * there any more; -EPIPE: the getter failed; or -errno of alive. */
long flow_wait(struct flow *f, uint64_t at, uint64_t n, flow_alive_fn *alive, void *arg);
/* Everything before `at` was sent, and goes back to the disk. */
void flow_sent(struct flow *f, uint64_t at);
/* The putter has given up: the getter ends at its next step. */
void flow_stop(struct flow *f);
/* Did the getter end? And with what: the answer, and a checksum. */
bool flow_ended(const struct flow *f, struct move_answer *ret_answer);
bool flow_sum(const struct flow *f, enum sum_type type, char ret[SUMS_TEXT]);
uint64_t flow_done(const struct flow *f); /* bytes got so far */
