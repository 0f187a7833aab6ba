/* input_names: the names of a job's inputs, and which of the files shipped with a request one of its jobs
 * gets.
 *
 * A request's files belong to all its jobs; a job gets those that it names: its program, its standard input,
 * and the entries of its list of inputs (a folder with its contents). An entry "folder/" stands for files
 * whose names are not known here, so the job gets all files. The submitter's side is cli/client/ship.c.
 */
#pragma once
#include "agent/model/attempt.h"

struct shipped {
        struct map *wanted; /* names, without a slash, of files and folders that the job uses */
        struct map *here;   /* names, without a slash, of files and folders that were shipped */
        bool all;
};
void shipped_read(const struct attempt *at, struct shipped *ret);
void shipped_deinit(struct shipped *s);
bool shipped_wants(const struct shipped *s, const char *name);
/* Returns whether a file or folder of this name, which has no slash, was shipped. */
bool shipped_has(const struct shipped *s, struct str name);
/* Returns whether the name is valid in the sandbox: relative, without empty, "." and ".." parts. */
bool shipped_name_valid(const char *name);

/* Calls fn with each expanded element of input_files. Returns 0, or the error of fn or of the expansion. */
int inputs_each(const struct attempt *at, int (*fn)(void *arg, struct str element, struct err *err),
                void *arg, struct err *err);
/* Returns whether the element is a URL for movers, that is, any but file://. Otherwise *ret_path is the
 * path, which the caller frees. */
bool inputs_is_url(struct str element, char **ret_path);
/* Returns the element's name in the sandbox: the last component, or the part after "#name=" at the end of a
 * URL, which may have folders. Empty: it has no name. */
struct str inputs_name(struct str element);
