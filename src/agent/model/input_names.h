/* input_names: what the inputs of a job are called, and which of the files that came along with a request one
 * of its jobs gets.
 *
 * A request's files are those of all its jobs; a job gets the ones that it names: its program, its standard
 * input, and what its list of inputs names, a folder with all that is in it. An entry "folder/" stands for
 * files whose names can't be told from here: then the job gets all. (See also the submitter's side,
 * cli/client/ship.c.) */
#pragma once
#include "agent/model/attempt.h"

struct shipped {
        struct map *wanted; /* files and folders that the job names */
        struct map *here;   /* and that came along; both sets of names without a slash */
        bool all;
};
void shipped_read(const struct attempt *at, struct shipped *ret);
void shipped_deinit(struct shipped *s);
bool shipped_wants(const struct shipped *s, const char *name);
/* Did a file or folder of this name, which has no slash, come along? */
bool shipped_has(const struct shipped *s, struct str name);
/* A name in the sandbox: relative, without empty, "." and ".." parts. */
bool shipped_name_valid(const char *name);

/* One of input_files at a time, expanded: calls fn with each element. 0, or what fn or the expansion said. */
int inputs_each(const struct attempt *at, int (*fn)(void *arg, struct str element, struct err *err),
                void *arg, struct err *err);
/* A URL other than file://: what movers fetch. The path of a file:// URL, or of none, in *ret_path (the
 * caller's to free). */
bool inputs_is_url(struct str element, char **ret_path);
struct str inputs_name(struct str element); /* its name in the sandbox; empty: it has none */
