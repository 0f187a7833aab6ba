#include "run/drover/credentials.h"

#include <stdlib.h>

#include "base/system/secret.h"

static void credential_free(struct remote_credential *c)
{
        secret_deinit(&c->data);
        free(c->name);
        free(c->type);
        free(c);
}

void remote_credentials_free(struct remote_credential **list)
{
        while (*list) {
                struct remote_credential *c = *list;

                *list = c->next;
                credential_free(c);
        }
}

void remote_credential_set(struct remote_credential **list, const struct run_credential *from)
{
        struct remote_credential *c = *list;

        while (c && strcmp(c->name, from->name) != 0)
                c = c->next;
        if (c && !strcmp(c->type, from->type) && str_eq(buf_view(&c->data), from->data))
                return;
        if (!c) {
                c = mem_new(struct remote_credential);
                c->name = mem_dupz(from->name);
                c->next = *list;
                *list = c;
        }
        free(c->type);
        c->type = mem_dupz(from->type);
        secret_deinit(&c->data);
        c->data = (struct buf){0};
        buf_str(&c->data, from->data);
        c->fresh = true;
}
