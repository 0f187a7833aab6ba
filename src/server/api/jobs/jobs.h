/* jobs: what the routes about jobs share. */
#pragma once
#include "server/history/past.h"

struct jobs_past {
        struct past *past;
        struct arena *arena;
        bool whole, found;
        struct str names;
        struct row *row;
};
/* Reader thread: the row of a finished job from history (request and member are set). False: there is none.
 */
bool jobs_fill_past(struct server *s, struct arena *a, struct row *r, bool whole, struct str names);
