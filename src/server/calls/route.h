/* route: one entry of the API's table: a method, a pattern of paths, and the first step of its calls. */
#pragma once
#include "server/calls/call.h"

struct route {
        enum http_method method;
        const char *path; /* "/v1/jobs/{id}": {…} is one segment; a final "{…+}" is the rest of the path */
        call_fn *start;   /* on the I/O thread */
        bool anybody;     /* callers need no credentials: `who` is NULL */
        bool standby;     /* also answered by a server that follows another: it only reads core and store */
};
/* Returns the route of a table that matches, or NULL; then *ret_path_known says whether another method has
 * this path. param[] are views of path. */
const struct route *route_find(const struct route *routes, size_t count, enum http_method method,
                               struct str path, struct str param[2], bool *ret_path_known);
bool route_match(const char *pattern, struct str path, struct str param[2]);
