/* left: kills containers that podman has lost.
 *
 * A container is started by a monitor, conmon, which outlives the command. If the command is killed before
 * it has recorded that the container was made, `podman rm` removes only its record: monitor and runtime wait
 * for ever, without the job's marker in their environment. The monitor has the container's name among its
 * arguments.
 */
#pragma once

/* Kills the processes that this container's monitor has started; the monitor then ends. Does nothing if
 * there is no such monitor. */
void container_left_kill(const char *name);
