/* origin: what a submit says of the way that its jobs have come and shall go.
 *
 * A server that hands a job on says in `origin` which servers it has passed. This server refuses what has
 * been here before, or has come too far, and puts the rest into the jobs' ads, where it acts by itself: the
 * label becomes DataLabels, which only cleared places get; the servers passed and the fixed path become
 * clauses of Requirements.
 *
 * A path is a list of "agent/queue", "agent" or "*", one for each hop from here on, parted by blanks or
 * commas. A user's own job gives it as DroverPath.
 */
#pragma once
#include "base/arena.h"
#include "base/format/json_read.h"
#include "core/model/submission.h"

#define ORIGIN_HOPS_DEFAULT 8u
/* The attribute with what the author requires, where this server has added clauses of its own. */
#define ORIGIN_OWN_REQUIREMENTS "DroverOwnRequirements"
#define ORIGIN_LEASE_MIN_MS     1000u
#define ORIGIN_LEASE_MAX_MS     (30 * 86400000ull)

/* Reads lease_ms, hold_results and origin of a submit's document, from which it borrows. 0, or -EINVAL with
 * err. */
int origin_read(const json_t *doc, struct submission *s, struct err *err);

enum origin_error { ORIGIN_LOOP = 1, ORIGIN_TOO_LONG };
/* Checks that the submission may come to the server of this uuid, and adds to its parts what follows from its
 * origin; the additions are in the arena. 0; an origin_error, or -EINVAL, with err. */
int origin_apply(struct submission *s, const char *server_uuid, struct arena *arena, struct err *err);

/* Cuts the first element off a path. False: there is none left. */
bool origin_path_cut(struct str *path, struct str *ret_element);
