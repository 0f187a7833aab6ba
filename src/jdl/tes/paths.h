/* paths: what of a container is in the sandbox: folders and files that are mounted, and none twice.
 *
 * What lies below a folder that is mounted is there with it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct tes_path {
        char *path; /* absolute, without a slash at the end */
        bool folder;
};
struct tes_paths {
        struct tes_path *v;
        size_t count, cap;
};
void tes_paths_deinit(struct tes_paths *p);
/* Gives the path without slashes at its end. Returns 0; -EINVAL with err: the path is not absolute, has
 * empty parts, "." or "..", or characters that cannot be passed to a container engine or a list of files: ,
 * ; : = " a backslash, control characters. */
int tes_path_check(struct str path, struct str *ret, struct err *err);
struct str tes_path_folder(struct str path); /* "/a" of "/a/b", "/" of "/a" */
/* Adds a path. Returns 0; -EINVAL with err: it cannot be mounted in a container. */
int tes_paths_add(struct tes_paths *p, struct str path, bool folder, struct err *err);
/* Removes paths that are below others. */
void tes_paths_reduce(struct tes_paths *p);
