/* paths: the folders and files of a container that are mounted from the sandbox, each once. A mounted
 * folder includes everything below it. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

struct tes_path {
        char *path; /* absolute, without a trailing slash */
        bool folder;
};
struct tes_paths {
        struct tes_path *v;
        size_t count, cap;
};
void tes_paths_deinit(struct tes_paths *p);
/* Returns the path without trailing slashes in *ret. Returns 0; -EINVAL with err: the path is not
 * absolute, has empty parts, "." or "..", or characters that cannot be passed to a container engine or a
 * list of files: , ; : = " a backslash, control characters. */
int tes_path_check(struct str path, struct str *ret, struct err *err);
struct str tes_path_folder(struct str path); /* returns "/a" for "/a/b", "/" for "/a" */
/* Adds a path. Returns 0; -EINVAL with err: it cannot be mounted in a container. */
int tes_paths_add(struct tes_paths *p, struct str path, bool folder, struct err *err);
/* Removes paths that are below others. */
void tes_paths_reduce(struct tes_paths *p);
