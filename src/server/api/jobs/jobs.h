/* jobs: shared by the routes about jobs. */
#pragma once
#include "server/history/past.h"

struct jobs_past {
        struct past *past;
        struct arena *arena;
        bool whole, found;
        struct str names;
        struct row *row;
};
/* Reader thread: fills the row of a finished job from history; its request and member must be set. Returns
 * false if there is none. */
bool jobs_fill_past(struct server *s, struct arena *a, struct row *r, bool whole, struct str names);
