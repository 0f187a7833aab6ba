/* mapping: starts an agent that root runs with `users` in its file, and gives up root's rights.
 *
 * The folder (--dir) belongs to root: `agent` in it is the agent's own, with key, certificate, journal and
 * cache, closed to everybody else; `jobs` holds the sandboxes, which the shepherd makes and each job's user
 * owns; `users` is the shepherd's map. The shepherd is started first, as root; then the agent becomes its
 * own user, and only then reads data from elsewhere.
 */
#pragma once
#include "agent/model/agent.h"

/* Returns the process runner's configuration; the caller fills in the observer. */
struct runner_config mapping_runner(struct agent *a);
/* Makes the folders, starts the shepherd and becomes the agent's own user. Afterwards config.dir is the
 * agent's own folder and a->shepherd_dir the shepherd's. Returns 0, or -errno with err. */
int mapping_begin(struct agent *a, struct err *err);
