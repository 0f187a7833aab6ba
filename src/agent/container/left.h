/* left: what podman forgets.
 *
 * A container is started by a monitor, conmon, which outlives the command. When the command is killed before
 * it has written down that the container was made, `podman rm` removes its record only: monitor and runtime
 * wait for ever, without the job's marker in their environment. The monitor has the container's name among
 * its words.
 */
#pragma once

/* Kills what the monitor of this container has started; the monitor then ends. Nothing, if there is none. */
void container_left_kill(const char *name);
