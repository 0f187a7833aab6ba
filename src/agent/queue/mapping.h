/* mapping: an agent that root started, with `users` in its file, before it is root no more.
 *
 * Its folder (--dir) belongs to root: `agent` in it is the agent's own, with key, certificate, journal and
 * cache, closed to everybody else; `jobs` holds the sandboxes, which the shepherd makes and each job's user
 * owns; `users` is the map as the shepherd reads it. The shepherd is started first, as root; then the agent
 * becomes its own user, and only then reads what came from elsewhere.
 */
#pragma once
#include "agent/model/agent.h"

/* Makes the folders, starts the shepherd, enters its own user. After it config.dir is the agent's own folder
 * and a->shepherd_dir the shepherd's. 0, or -errno with err. */
/* The runner's, as far as it follows from the agent; the observer is the caller's. */
struct runner_config mapping_runner(struct agent *a);
int mapping_begin(struct agent *a, struct err *err);
