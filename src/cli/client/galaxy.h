/* galaxy: jobs of Galaxy's tools, which drover-galaxy(1) reads for us: a program of its own, started for each
 * submit that needs it. */
#pragma once
#include "jdl/condor/condor.h"

struct galaxy_submit {
        const char *tool, *params; /* files; params may be NULL */
        const char *resolve;       /* what its requirements become: any, container, conda, none */
};
/* Fills *ret as condor_parse does, with the lines of `o`; *ret_command has the tool's command. 0; -errno with
 * err: the program is not there, or has failed; or the tool is wrong. */
int galaxy_read(const struct form_world *w, const struct galaxy_submit *g, const struct condor_options *o,
                struct form *ret, struct buf *ret_command, struct err *err);
