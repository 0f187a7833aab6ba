/* credentials: credentials of a task or request, kept in memory only. */
#pragma once
#include "run/runner.h"

struct remote_credential { /* a list; never written to disk */
        struct remote_credential *next;
        char *name, *type;
        struct buf data;
        bool fresh; /* the other server does not have this value yet */
};

/* Adds a copy, or replaces one of that name. */
void remote_credential_set(struct remote_credential **list, const struct run_credential *c);
void remote_credentials_free(struct remote_credential **list);
