/* file_requests: file operations for jobs that run elsewhere, in folders that they were submitted from and
 * that this agent can access.
 *
 * An operation has the rights by which the owner's jobs run here, like the writing of user logs. The server
 * is trusted to name the job's owner and the folder of the submit.
 */
#pragma once
#include "agent/model/agent.h"
#include "agent/transfer/file_call.h"

struct stage_work;
struct file_request {
        uint64_t serial; /* serial number that the answer repeats */
        const char *owner, *folder;
        struct file_call call;
};
void file_request_begin(struct agent *a,
                        const struct file_request *m); /* starts the operation; *m is borrowed for the call */
void file_request_done(struct agent *a, uint64_t serial,
                       const struct stage_work *w); /* sends the answer to the server */
