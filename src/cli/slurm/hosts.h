/* hosts: lists of node names as Slurm writes them: "n1,n[03-05,9]x".
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

#define HOSTS_MAX 10000 /* maximum number of names in a list */

/* Appends all names, separated by commas. Returns 0, or -EINVAL with err. */
int hosts_expand(struct str list, struct buf *out, struct err *err);
