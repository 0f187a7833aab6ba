/* trace_outages: outages of agents from a file: failures and maintenance as a system has recorded them.
 *
 * Each line is "PLACE FROM TO": a cluster of the site, which means all its agents, or one of its agents by
 * its number from 0, as in "north-3"; then the times at which the outage begins and ends, in seconds since
 * the start of the simulation. Further words are ignored, as are empty lines, and what follows a # or ;.
 */
#pragma once
#include "sim/site.h"

#define SIM_OUTAGES_MAX 1000000u /* lines of a file that are outages */

/* Adds the outages to the clusters of the site. Returns 0; -EINVAL with err "NAME:LINE: ...". */
int sim_outages_read(struct sim_site *s, const char *name, struct str text, struct err *err);
