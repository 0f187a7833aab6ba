/* flow: passes one transfer's bytes from the process that gets them to the one that puts them.
 *
 * Both processes have the same file open. The getter writes it from its beginning and reports how far it is;
 * the putter reads behind it. A getter that is more than a window ahead waits. Bytes that the putter has
 * read are freed on the disk, except in a file that fits into the window, which can be sent again. The last
 * byte is not passed on before the getter has verified the whole file, so that a store that shows only
 * complete files never shows a corrupt one.
 *
 * Made before fork(); each side's calls are for one thread. A side that has died does not block the other:
 * waits end when the caller's `alive` says so.
 */
#pragma once
#include <stdint.h>

#include "base/buf.h"
#include "move/sums.h"
#include "move/task.h"

struct flow;
typedef int flow_alive_fn(void *arg); /* 0, or -errno, which ends the wait */

/* fd: the file, borrowed. window: bytes. Returns NULL if there is no memory or descriptor. */
struct flow *flow_new(int fd, uint64_t window);
void flow_free(struct flow *f);

/* Getter: reports that `done` bytes of `size` (MOVE_SIZE_ANY: unknown) are in the file, and waits for room.
 * Returns 0; -errno of alive; -ESTALE: the putter has given up. */
int flow_wrote(struct flow *f, uint64_t done, uint64_t size, flow_alive_fn *alive, void *arg);
/* Getter: begins anew. Returns 0; -ESTALE if bytes were already sent. */
int flow_restart(struct flow *f);
/* Getter: has ended, with this answer, which has the SHA-256, and these checksums of the bytes. */
void flow_end(struct flow *f, const struct move_answer *answer, const struct sums *sums);

/* Putter: waits until the size is known or the getter has ended. Returns 0 with *ret, MOVE_SIZE_ANY if the
 * getter failed before; or -errno of alive. */
int flow_size(struct flow *f, uint64_t *ret, flow_alive_fn *alive, void *arg);
/* Putter: waits until bytes from `at` on may be sent. Returns their number, at most n; 0 at the end;
 * -ESTALE: they were freed; -EPIPE: the getter failed; or -errno of alive. */
long flow_wait(struct flow *f, uint64_t at, uint64_t n, flow_alive_fn *alive, void *arg);
/* Putter: everything before `at` was sent and may be freed on the disk. */
void flow_sent(struct flow *f, uint64_t at);
/* Putter: gives up; the getter's next call fails. */
void flow_stop(struct flow *f);
/* flow_ended: returns whether the getter has ended, and its answer. flow_sum: one of its checksums. */
bool flow_ended(const struct flow *f, struct move_answer *ret_answer);
bool flow_sum(const struct flow *f, enum sum_type type, char ret[SUMS_TEXT]);
uint64_t flow_done(const struct flow *f); /* bytes that the getter has written so far */
/* flow_beat: the getter's sign of life, at least about every second, also while its store is silent.
 * flow_beats: their number, which the putter compares with the last one. */
void flow_beat(struct flow *f);
unsigned flow_beats(const struct flow *f);
