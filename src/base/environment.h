/* environment: folders of programs that an agent makes for jobs from a file, by what they are known.
 *
 * A job names a file (python_env, or a conda_env that is a file); what is in it, by its checksum, says which
 * environment is meant, whatever the file is called. Server and agents must agree about the name of one.
 */
#pragma once
#include "base/buf.h"

enum environment_kind {
        ENVIRONMENT_CONDA,
        ENVIRONMENT_PYTHON, /* a venv */
        ENVIRONMENT_KINDS
};
const char *environment_kind_name(enum environment_kind kind); /* "conda" */

/* Is this value of CondaEnv a file to make one from (*.yml, *.yaml)? If not, it is a name or a folder. */
bool environment_is_file(struct str conda_env);
/* Its name in the form of a URL (base/file_id.h makes its number of it). Appended. */
void environment_url(enum environment_kind kind, const unsigned char sha256[32], struct buf *out);
