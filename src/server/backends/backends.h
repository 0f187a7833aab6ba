/* backends: hands jobs on to the other servers of the setting `backends`.
 *
 * Each back end is an agent whose only queue has the runner `drover`: one process beside the server, which
 * keeps it running and writes its settings. The agent is an ordinary one (it joins with a token, and its
 * certificate limits what it may do), and its errors do not affect the server. Its state is in
 * DIR/backends/NAME, so that it finds its jobs again after a restart of either.
 *
 * The life of a back end:
 *
 *   in the settings -> a token for this start is durable -> token and agent.yaml are written -> the agent
 * runs
 *     -> the agent ends: the same again after a pause
 *     -> its settings change: the agent ends, and starts with the new ones; its jobs stay where they are
 *   no longer in the settings -> its node drains; what runs there ends there -> no attempt is left
 *     -> the agent ends, the node retires, its certificates are revoked, and its folder is removed
 *
 * A folder without a back end in the settings is one that leaves, also after a restart.
 *
 * Core thread. */
#pragma once
#include "base/format/json.h"
#include "server/loop/server.h"

struct backends;
/* Starts the agents; the sockets for agents must be open. Returns 0; -ENOENT with err: the settings name back
 * ends, and drover-agent is not installed. */
int backends_open(struct server *s, struct err *err);
void backends_free(struct backends *b); /* accepts NULL; ends the agents, whose jobs go on */
/* The settings were read again; outside a turn. */
void backends_reload(struct server *s);
void backends_tick(struct server *s); /* within a turn, about once a second */
/* Writes an array: each back end, with its state and its jobs. */
void backends_write(struct server *s, struct json *j);
