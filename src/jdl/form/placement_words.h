/* placement_words: the vocabulary of placement jobs, in descriptions and in orders to the mover. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* Returns the type of a placement job by its name, in any case of letters: "transfer", "rm", "mkdir",
 * "stage", "verify", "reserve", "release"; NULL: unknown. */
const char *placement_type(struct str name);
/* Gives the seconds of "7200", "90 minutes", "2 hours" or "1 day". Returns false for other text. */
bool placement_seconds(struct str text, uint64_t *ret);
/* Returns whether the text is a list of pairs of protocols, "gsiftp-gsiftp, https-ftp". */
bool placement_alternatives(struct str text);
/* Returns whether the text is sha256:HEX, adler32:HEX or md5:HEX. */
bool placement_checksum(struct str text);
