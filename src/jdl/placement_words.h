/* placement_words: the words of placement jobs, as descriptions have them and as the mover is told them. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* The type of a placement job by its name, in any case of letters: "transfer", "rm", "mkdir", "stage",
 * "verify"; NULL: it is none. */
const char *placement_type(struct str name);
/* Seconds of "7200", "90 minutes", "2 hours" or "1 day". False: it is no time. */
bool placement_seconds(struct str text, uint64_t *ret);
/* Is it a list of pairs of protocols, "gsiftp-gsiftp, https-ftp"? */
bool placement_alternatives(struct str text);
/* Is it sha256:HEX, adler32:HEX or md5:HEX? */
bool placement_checksum(struct str text);
