/* galaxy: a job of a Galaxy tool, from the tool's XML and the job's parameters, as a request.
 *
 * The command is rendered here, at the submit (template.h says how much of its language is known); the job is
 * one run of a shell that runs it in a folder of its own, and the inputs travel with it. Requirements become
 * a container or a conda environment. What is not supported is an error, or a warning where the job is right
 * without it, with file and line; nothing is left out in silence. Source: Galaxy's tool documentation
 * (docs.galaxyproject.org, "Galaxy Tool XML File", profiles up to 24).
 *
 * Pure: files come through struct form_world.
 */
#pragma once
#include "jdl/condor/condor.h"

enum galaxy_resolve { GALAXY_ANY, GALAXY_CONTAINER, GALAXY_CONDA, GALAXY_NONE };

struct galaxy_job {
        const char *tool, *params; /* files; params may be NULL: {} */
        enum galaxy_resolve
                resolve; /* what its requirements become; ANY: the container if it names one, else conda */
};

/* Fills *ret as condor_parse does, with the lines of `o` added. *ret_command (may be NULL) is the rendered
 * command. 0; or with err: -EINVAL, -E2BIG, or what read_file returned. */
int galaxy_parse(const struct form_world *w, const struct galaxy_job *job, const struct condor_options *o,
                 struct form *ret, struct buf *ret_command, struct err *err);
