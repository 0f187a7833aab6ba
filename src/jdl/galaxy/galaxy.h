/* galaxy: translates a job of a Galaxy tool, from the tool's XML and the job's parameters, to a submit
 * file and a script.
 *
 * The command is rendered when the job is submitted (template.h says which part of the language is
 * supported). The job is one run of a shell that executes the command in its own folder; the inputs are
 * sent with it. Requirements become a container or a conda environment. What is not supported is an error,
 * or a warning if the job is right without it, with file and line; nothing is dropped silently. Source:
 * Galaxy's tool documentation (docs.galaxyproject.org, "Galaxy Tool XML File", profiles up to 24).
 *
 * Pure: files come through struct form_world. */
#pragma once
#include "jdl/form/form.h"

enum galaxy_resolve { GALAXY_ANY, GALAXY_CONTAINER, GALAXY_CONDA, GALAXY_NONE };

struct galaxy_job {
        const char *tool, *params; /* files; params may be NULL: {} */
        const char *tables; /* file that lists the files of data tables; NULL: the one beside the tool */
        enum galaxy_resolve resolve; /* how the tool's requirements are met; ANY: the container if it names
                                        one, else conda */
};

/* Rendered job: script_job (jdl/script.h) makes the request from the first two members. {0} at first. */
struct galaxy_rendered {
        struct buf description; /* lines of the submit language, without a queue statement */
        struct buf script;
        struct buf command;   /* command of the tool alone, for people */
        struct form warnings; /* has warnings only, no parts */
};

/* Renders a job. Returns 0; or with err: -EINVAL, -E2BIG, or the error of read_file, and the warnings up to
 * then are in *ret. */
int galaxy_render(const struct form_world *w, const struct galaxy_job *job, struct galaxy_rendered *ret,
                  struct err *err);
void galaxy_rendered_deinit(struct galaxy_rendered *r);
