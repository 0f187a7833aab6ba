/* galaxy: jobs of Galaxy tools. drover-galaxy(1), a separate program, is started to read the tool for each
 * submit that needs it. */
#pragma once
#include "jdl/condor/condor.h"

struct galaxy_submit {
        const char *tool, *params; /* files; params may be NULL */
        const char *tables;        /* file that names those of data tables, or NULL */
        const char *resolve;       /* how the tool's requirements are met: any, container, conda, none */
};
/* Fills *ret as condor_parse does, with the lines of `o`; *ret_command gets the tool's command. Returns 0;
 * or -errno with err: the program is missing or has failed, or the tool is wrong. */
int galaxy_read(const struct form_world *w, const struct galaxy_submit *g, const struct condor_options *o,
                struct form *ret, struct buf *ret_command, struct err *err);
