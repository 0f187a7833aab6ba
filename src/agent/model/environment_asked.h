/* environment_asked: the software environment that a job asks for by a file from which one is made
 * (python_env; conda_env, if it is *.yml). */
#pragma once
#include "agent/model/attempt.h"
#include "base/job/environment.h"

/* Returns whether a step of the attempt runs in such an environment. */
bool environment_asked(const struct attempt *at);
/* Returns the job's name for the file; NULL: none. */
const char *environment_path_asked(const struct attempt *at, enum environment_kind *ret_kind);
/* Returns the file; NULL: it was not shipped with the request. */
const struct spool_ref *environment_file(const struct attempt *at, enum environment_kind *ret_kind);
