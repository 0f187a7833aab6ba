/* credential: a user's proxies, tokens and keys on their way to the server, where his jobs get them from. */
#pragma once
#include "cli/client/api.h"
#include "cli/terminal/options.h"
#include "jdl/form.h"

/* Where one of this type usually is: what the environment names, else the file that its tools make. */
void credential_usual_file(const char *type, struct buf *out);
/* Can it be the name of one, as far as a URL goes (the server looks closer)? If not, it has been said. */
bool credential_name_fits(const char *name);
/* Reads the file ("-": standard input) and stores it under the name. `options`: those of --for say what it is
 * for; NULL, or none given: what the one that it replaces was for. 0, or an exit code, and it has been said
 * why. */
int credential_send(struct cli *cli, const char *name, const char *type, const char *path,
                    const struct options *options, struct api_answer *ret);
/* What a description says in HTCondor's words (x509userproxy and the like): those files are stored, and the
 * jobs ask for them by name. 0, or an exit code, and it has been said why. */
int credential_of_form(struct cli *cli, struct form *f);
