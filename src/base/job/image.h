/* image: one name for a container image, however it is written.
 *
 * As docker reads it: "busybox" is docker.io/library/busybox:latest, "me/tool:2" is docker.io/me/tool:2; a
 * first part with a dot or a colon in it, or "localhost", is a registry. docker:// before it changes nothing.
 */
#pragma once
#include "base/buf.h"

enum image_kind {
        IMAGE_NAME, /* of a registry */
        IMAGE_FILE, /* a path */
        IMAGE_URL   /* of another kind: oras://, library:// */
};

/* Appends the image's full name; a path or another URL is appended as it is written. */
enum image_kind image_name(struct str image, struct buf *out);
/* Appends the URL under which agents and server track an image like a file (base/job/file_id.h): for a name,
 * docker:// and the full name. */
void image_url(struct str image, struct buf *out);
