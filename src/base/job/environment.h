/* environment: names of the Conda and Python environments that an agent makes for jobs from a file.
 *
 * A job names a file (python_env, or a conda_env that is a file). The environment is identified by the
 * checksum of the file's contents, whatever the file is called; server and agents derive the same name from
 * it.
 */
#pragma once
#include "base/buf.h"

enum environment_kind {
        ENVIRONMENT_CONDA,
        ENVIRONMENT_PYTHON, /* a venv */
        ENVIRONMENT_KINDS
};
const char *environment_kind_name(enum environment_kind kind); /* "conda" */

/* Returns whether this value of CondaEnv is a file to make an environment from (*.yml, *.yaml); else the
 * value is the name or the folder of an existing one. */
bool environment_is_file(struct str conda_env);
/* Appends the environment's name in the form of a URL, which base/job/file_id.h turns into a number. */
void environment_url(enum environment_kind kind, const unsigned char sha256[32], struct buf *out);
