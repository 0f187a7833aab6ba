/* The state is in memory that both sides share. A side is woken only if it waits (futex(2)), which saves the
 * system calls of a pipe; every wait ends by itself after a while to check whether the other side still
 * lives. */
#include "move/flow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/format/hex.h"
#include "base/mem.h"

#define LOOK_MS 200
#define HOLE    (1u << 20) /* least number of bytes freed on the disk at a time */

struct shared {
        atomic_uint changes; /* counter that both sides wait on */
        atomic_uint waiting;
        atomic_uint beats;
        atomic_uint_fast64_t done, size, sent;
        atomic_bool sized, ended, stopped, taken; /* taken: some byte was given out */
        struct move_answer answer;
        char sums[SUM_MD5 + 1][SUMS_TEXT];
};
struct flow {
        struct shared *s;
        int fd;
        uint64_t window, holes; /* holes: the file has none of its bytes before this one */
};

struct flow *flow_new(int fd, uint64_t window)
{
        struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (s == MAP_FAILED)
                return NULL;
        struct flow *f = mem_new(struct flow);
        *f = (struct flow){.s = s, .fd = fd, .window = window};
        atomic_store(&s->size, MOVE_SIZE_ANY);
        return f;
}

void flow_free(struct flow *f)
{
        if (!f)
                return;
        munmap(f->s, sizeof(*f->s));
        free(f);
}

static void changed(struct flow *f)
{
        atomic_fetch_add(&f->s->changes, 1);
        if (atomic_load(&f->s->waiting))
                syscall(SYS_futex, &f->s->changes, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits until something has changed since `seen` was read, or a while has passed. */
static int wait_for_change(struct flow *f, unsigned seen, flow_alive_fn *alive, void *arg)
{
        struct timespec a_while = {0, LOOK_MS * 1000000L};

        atomic_fetch_add(&f->s->waiting, 1);
        syscall(SYS_futex, &f->s->changes, FUTEX_WAIT, seen, &a_while, NULL, 0);
        atomic_fetch_sub(&f->s->waiting, 1);
        return alive ? alive(arg) : 0;
}

/* ---- the getter */

int flow_wrote(struct flow *f, uint64_t done, uint64_t size, flow_alive_fn *alive, void *arg)
{
        struct shared *s = f->s;

        if (!atomic_load(&s->sized) && size != MOVE_SIZE_ANY) {
                atomic_store(&s->size, size);
                atomic_store(&s->sized, true);
        }
        atomic_store(&s->done, done);
        changed(f);
        for (;;) {
                unsigned seen = atomic_load(&s->changes);

                if (atomic_load(&s->stopped))
                        return -ESTALE;
                if (!atomic_load(&s->sized) || done < atomic_load(&s->sent) + f->window)
                        return 0;
                int r = wait_for_change(f, seen, alive, arg);
                if (r < 0)
                        return r;
        }
}

int flow_restart(struct flow *f)
{
        if (atomic_load(&f->s->taken))
                return -ESTALE;
        atomic_store(&f->s->done, 0);
        return 0;
}

void flow_end(struct flow *f, const struct move_answer *answer, const struct sums *sums)
{
        struct shared *s = f->s;

        s->answer = *answer;
        for (int i = SUM_ADLER32; i <= SUM_MD5; i++)
                if (!sums_read(sums, (enum sum_type)i, s->sums[i]))
                        s->sums[i][0] = 0;
        hex_print(s->sums[SUM_SHA256], answer->sha256, sizeof(answer->sha256));
        if (answer->status == MOVE_DONE) {
                atomic_store(&s->size, answer->size);
                atomic_store(&s->done, answer->size);
        }
        atomic_store(&s->ended, true);
        changed(f);
}

/* ---- the putter */

int flow_size(struct flow *f, uint64_t *ret, flow_alive_fn *alive, void *arg)
{
        for (;;) {
                unsigned seen = atomic_load(&f->s->changes);

                if (atomic_load(&f->s->sized) || atomic_load(&f->s->ended)) {
                        *ret = atomic_load(&f->s->size);
                        return 0;
                }
                int r = wait_for_change(f, seen, alive, arg);
                if (r < 0 && !atomic_load(&f->s->ended)) /* a getter that has ended well is gone, too */
                        return r;
        }
}

long flow_wait(struct flow *f, uint64_t at, uint64_t n, flow_alive_fn *alive, void *arg)
{
        struct shared *s = f->s;

        if (at < f->holes)
                return -ESTALE;
        for (;;) {
                unsigned seen = atomic_load(&s->changes);
                bool ended = atomic_load(&s->ended);
                uint64_t done = atomic_load(&s->done), size = atomic_load(&s->size);

                if (ended && s->answer.status != MOVE_DONE)
                        return -EPIPE;
                if (!ended && done && done >= size)
                        done = size - 1; /* the last byte, when it is known to be good */
                if (done > at) {
                        atomic_store(&s->taken, true);
                        return (long)(done - at < n ? done - at : n);
                }
                if (ended)
                        return 0;
                int r = wait_for_change(f, seen, alive, arg);
                if (r < 0 && !atomic_load(&f->s->ended)) /* a getter that has ended well is gone, too */
                        return r;
        }
}

void flow_sent(struct flow *f, uint64_t at)
{
        uint64_t size = atomic_load(&f->s->size), whole = at / HOLE * HOLE;

        if (at <= atomic_load(&f->s->sent))
                return;
        atomic_store(&f->s->sent, at);
        if (size != MOVE_SIZE_ANY && size > f->window && whole > f->holes) {
                fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)f->holes,
                          (off_t)(whole - f->holes));
                f->holes = whole;
        }
        changed(f);
}

void flow_stop(struct flow *f)
{
        atomic_store(&f->s->stopped, true);
        changed(f);
}

bool flow_ended(const struct flow *f, struct move_answer *ret_answer)
{
        if (!atomic_load(&f->s->ended))
                return false;
        *ret_answer = f->s->answer;
        return true;
}

bool flow_sum(const struct flow *f, enum sum_type type, char ret[SUMS_TEXT])
{
        if (!atomic_load(&f->s->ended) || !f->s->sums[type][0])
                return false;
        memcpy(ret, f->s->sums[type], SUMS_TEXT);
        return true;
}

uint64_t flow_done(const struct flow *f)
{
        return atomic_load(&f->s->done);
}

void flow_beat(struct flow *f)
{
        atomic_fetch_add(&f->s->beats, 1);
}

unsigned flow_beats(const struct flow *f)
{
        return atomic_load(&f->s->beats);
}
