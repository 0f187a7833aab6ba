/* origin: the part of a submit from another server that describes the path of its jobs: the servers that they
 * have passed and those where they should go.
 *
 * A server that hands a job on lists in `origin` the servers that the job has passed. This server refuses a
 * job that has passed it before, or has passed too many servers. It adds the rest to the jobs' ads: the label
 * becomes DataLabels, so that only cleared places get the job; the servers passed and the fixed path become
 * clauses of Requirements.
 *
 * A path is a list of "agent/queue", "agent" or "*", one for each following hop, separated by blanks or
 * commas. A user sets the path of a job by DroverPath.
 */
#pragma once
#include "base/arena.h"
#include "base/format/json_read.h"
#include "core/model/submission.h"

#define ORIGIN_HOPS_DEFAULT 8u
/* The attribute that keeps the author's Requirements where this server has added clauses. */
#define ORIGIN_OWN_REQUIREMENTS "DroverOwnRequirements"
/* The attribute that keeps the trace of a job from another server, which is a text of that server's: see
 * Origin in wire/drover.proto. */
#define ORIGIN_TRACE        "DroverTrace"
#define ORIGIN_TRACE_MAX    120u
#define ORIGIN_LEASE_MIN_MS 1000u
#define ORIGIN_LEASE_MAX_MS (30 * 86400000ull)

/* Reads lease_ms, hold_results and origin of a submit's document. The result borrows from the document.
 * Returns 0, or -EINVAL with err. */
int origin_read(const json_t *doc, struct submission *s, struct err *err);

enum origin_error { ORIGIN_LOOP = 1, ORIGIN_TOO_LONG };
/* Checks that the submission may come to the server with this uuid, and adds the clauses that follow from
 * its origin to its parts; the added texts are in the arena. Returns 0; an origin_error, or -EINVAL, with
 * err. */
int origin_apply(struct submission *s, const char *server_uuid, struct arena *arena, struct err *err);

/* Cuts the first element off a path. Returns false if the path is empty. */
bool origin_path_cut(struct str *path, struct str *ret_element);
