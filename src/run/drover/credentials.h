/* credentials: those of a task or of a request, in memory only. */
#pragma once
#include "run/runner.h"

struct remote_credential { /* kept in memory only */
        struct remote_credential *next;
        char *name, *type;
        struct buf data;
        bool fresh; /* the remote server does not have it so */
};

void remote_credential_set(struct remote_credential **list, const struct run_credential *c); /* replaces */
void remote_credentials_free(struct remote_credential **list);
