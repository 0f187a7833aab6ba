/* galaxy: a job of a Galaxy tool, from the tool's XML and the job's parameters, as a submit file and a
 * script.
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
#include "jdl/form.h"

enum galaxy_resolve { GALAXY_ANY, GALAXY_CONTAINER, GALAXY_CONDA, GALAXY_NONE };

struct galaxy_job {
        const char *tool, *params; /* files; params may be NULL: {} */
        enum galaxy_resolve
                resolve; /* what its requirements become; ANY: the container if it names one, else conda */
};

/* Made of it: script_job (jdl/script.h) makes the request of the first two. {0} at first. */
struct galaxy_rendered {
        struct buf description; /* lines of the submit language, without a queue statement */
        struct buf script;
        struct buf command;   /* the tool's alone, for people */
        struct form warnings; /* of which there are no parts */
};

/* 0; or with err: -EINVAL, -E2BIG, or what read_file returned; the warnings until then are there. */
int galaxy_render(const struct form_world *w, const struct galaxy_job *job, struct galaxy_rendered *ret,
                  struct err *err);
void galaxy_rendered_deinit(struct galaxy_rendered *r);
