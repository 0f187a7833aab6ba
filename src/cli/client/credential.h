/* credential: sends a user's proxies, tokens and keys to the server, from which his jobs get them. */
#pragma once
#include "cli/client/api.h"
#include "cli/terminal/options.h"
#include "jdl/form/form.h"

/* Appends the usual path of a credential of this type: the one that the environment names, else the file
 * that the type's tools write. */
void credential_usual_file(const char *type, struct buf *out);
/* Returns whether a credential may have this name, as far as URLs are concerned (the server checks more
 * strictly); if not, prints an error. */
bool credential_name_fits(const char *name);
/* Reads the file ("-": standard input) and stores it under the name. The values of --for in `options` say
 * what the credential may be used for; if options is NULL or has none, the uses of the credential that it
 * replaces are kept. Returns 0, or an exit code after an error was printed. */
int credential_send(struct cli *cli, const char *name, const char *type, const char *path,
                    const struct options *options, struct api_answer *ret);
/* Stores the credential files that a description names by HTCondor's keywords (x509userproxy and the like),
 * and makes its jobs ask for them by name. Returns 0, or an exit code after an error was printed. */
int credential_of_form(struct cli *cli, struct form *f);
