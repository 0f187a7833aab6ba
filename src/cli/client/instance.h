/* instance: the folder of an instance, and where its server can be reached. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cli/terminal/view.h"

#define INSTANCE_PATH_MAX 4096
/* The instance of the machine's service, droverd.service (dist/systemd). */
#define INSTANCE_SYSTEM_DIR "/var/lib/drover"

/* Gives the absolute path of the instance's folder: `given` (may be NULL), else $DROVER_DIR, else
 * $XDG_STATE_HOME/drover, else ~/.local/state/drover. Returns 0, or -errno with err. */
int instance_dir(const char *given, struct buf *ret, struct err *err);
/* Reads DIR/server.json; *ret borrows from text. Returns 0, or -errno without a message (-ENOENT: no server
 * was started there). */
int instance_read(struct str dir, struct buf *text, struct view *ret);
/* Returns the path of an address "unix:/…"; an empty str if the address has another form. */
struct str instance_socket(struct view address, struct buf *room);
/* Gives the first line of a small file, trimmed. Returns 0 or -errno. */
int instance_line(const char *path, struct buf *ret);
