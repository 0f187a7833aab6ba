/* runner: the verbs of a batch system's runner_kind, of which only `open` is its own.
 *
 * Each is the call of struct runner_kind (runner.h) of that name, whose contract is there; `r` is what
 * batch_open made.
 */
#pragma once
#include "run/batch/batch.h"

/* runner_kind.open, of this system. 0 and *ret, the caller's until `close`; or -EINVAL, -errno with err.
 * `kind` and `system` are static. */
int batch_open(const struct runner_kind *kind, const struct batch_system *system,
               const struct runner_config *c, struct runner **ret, struct err *err);
void batch_close(struct runner *r, bool kill_all);
void batch_flush(struct runner *r);
void batch_submit(struct runner *r, const struct run_spec *spec);
void batch_kill(struct runner *r, struct run_id id, uint64_t grace_ms);
void batch_suspend(struct runner *r, struct run_id id);
void batch_resume(struct runner *r, struct run_id id);
void batch_hold(struct runner *r, struct run_id id);
void batch_release(struct runner *r, struct run_id id);
void batch_signal(struct runner *r, struct run_id id, int signal);
void batch_when(struct runner *r, const struct run_spec *spec); /* quote */
void batch_status(struct runner *r, const struct run_id *ids, size_t count);
void batch_forget(struct runner *r, struct run_id id);
void batch_lease(struct runner *r, int64_t until_boot_ms);
void batch_capacity(struct runner *r, struct run_capacity *ret);
int batch_script_of(struct runner *r, struct run_id id, struct buf *out);
void batch_reserve(struct runner *r, const struct run_reservation *all, size_t count);
int batch_where(struct runner *r, struct run_id id, struct run_where *ret);

#define BATCH_VERBS                                                                                          \
        .close = batch_close, .flush = batch_flush, .submit = batch_submit, .kill = batch_kill,              \
        .suspend = batch_suspend, .resume = batch_resume, .hold = batch_hold, .release = batch_release,      \
        .signal = batch_signal, .quote = batch_when, .status = batch_status, .forget = batch_forget,         \
        .lease = batch_lease, .capacity = batch_capacity, .where = batch_where, .script = batch_script_of,   \
        .reserve = batch_reserve
