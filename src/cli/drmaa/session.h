/* session: the jobs that this process has submitted since drmaa_init, and the calls of the server's API for
 * them.
 *
 * All calls return a DRMAA_ERRNO_..., with err, and may be made by several threads. A job is open until the
 * server reports its end, then ended until it is waited for, then reaped.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct job_template;
struct bulk;

/* Encoding of a job's end in one number: *stat of drmaa_wait. */
enum { STAT_CODE_SHIFT = 8, STAT_SIGNAL_MASK = 0x7f, STAT_ABORTED = 0x10000 };

struct job_id {
        uint64_t request;
        uint32_t member;
};
#define JOB_ID_TEXT 32
bool job_id_read(const char *text, struct job_id *ret);
void job_id_text(struct job_id id, char ret[JOB_ID_TEXT]);

int session_open(const char *contact, struct err *err);
int session_close(struct err *err);
/* Gives the contact that the session was opened with; "" without a session or a contact. */
void session_contact(char *ret, size_t n);

/* Submits a template. The jobs are members 0 to bulk->count - 1 of request *ret. */
int session_submit(const struct job_template *t, const struct bulk *bulk, uint64_t *ret, struct err *err);
/* Waits for the end of a job; id NULL: any job of the session. timeout_s negative: no limit. */
int session_wait(const struct job_id *id, int64_t timeout_s, struct job_id *ret, int *ret_stat,
                 struct err *err);
/* Waits for the end of `count` jobs; ids NULL: of all jobs of the session that are not reaped. */
int session_synchronize(const struct job_id *ids, size_t count, int64_t timeout_s, bool dispose,
                        struct err *err);
/* Acts on a job. action: DRMAA_CONTROL_...; id NULL: all jobs of the session to which the action applies. */
int session_control(const struct job_id *id, int action, struct err *err);
/* Gives the state of a job. *ret: DRMAA_PS_... */
int session_state(struct job_id id, int *ret, struct err *err);

/* Usage of an ended job. Times in milliseconds since 1970, 0: not known. */
struct job_usage {
        int64_t submitted_ms, started_ms, ended_ms;
        double cpu_s; /* negative: not known */
};
int session_usage(struct job_id id, struct job_usage *ret, struct err *err);
