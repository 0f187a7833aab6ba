/* environment_asked: the environment of programs that a job asks for, where it names a file that one is made
 * of (python_env; conda_env, when it is *.yml). */
#pragma once
#include "agent/model/attempt.h"
#include "base/environment.h"

/* Does one of the attempt's steps run in such an environment? */
bool environment_asked(const struct attempt *at);
/* The file as the job names it; NULL: none. */
const char *environment_path_asked(const struct attempt *at, enum environment_kind *ret_kind);
/* The file that it is made of; NULL: none came along with the request. */
const struct spool_ref *environment_file(const struct attempt *at, enum environment_kind *ret_kind);
