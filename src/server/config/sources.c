#include "server/config/sources.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "auth/principal.h"
#include "base/mem.h"

#define NAME_MAX_ 64u
#define MOST_MAX  500u /* the limit of `drover source` */

void config_sources_deinit(struct config_sources *c)
{
        for (size_t i = 0; i < c->count; i++) {
                free(c->items[i].name);
                free(c->items[i].owner);
                args_deinit(&c->items[i].command);
        }
        *c = (struct config_sources){0};
}

static bool sources_name_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '_' && s.p[i] != '-')
                        return false;
        return s.n > 0 && s.n <= NAME_MAX_;
}

static int read_owner(const struct doc *map, struct config_source *c, struct err *err)
{
        const struct doc *d = doc_get(map, "owner");
        struct str text, name, domain;
        int r = d ? doc_text(d, &text, err)
                  : doc_refuse(map, err, "needs owner: NAME@DOMAIN, whose requests they are");

        if (r == 0 && principal_split(text, &name, &domain) != 0)
                r = doc_refuse(d, err, "must be NAME@DOMAIN");
        if (r == 0)
                c->owner = str_dupz(text);
        return r;
}

static int read_source(struct config_sources *all, const struct doc *d, struct err *err)
{
        static const char *const keys[] = {"command", "owner", "most", NULL};
        const struct doc *command = doc_get(d, "command"), *most = doc_get(d, "most");
        struct config_source *c = &all->items[all->count];
        int r = 0;

        if (!sources_name_valid(d->key))
                r = doc_refuse(d, err, "is not a name here: up to 64 letters, digits, - and _");
        else if (d->kind != DOC_MAP)
                r = doc_refuse(d, err, "must be a map");
        else if (all->count == CONFIG_SOURCES_MAX)
                r = doc_refuse(d, err, "is one source too many: there may be 16");
        if (r == 0)
                r = doc_only(d, keys, err);
        if (r != 0)
                return r;
        all->count++;
        c->name = str_dupz(d->key);
        r = read_owner(d, c, err);
        if (r == 0)
                r = command ? doc_words(command, args_add_word, &c->command, err)
                            : doc_refuse(d, err, "needs command: the program that offers requests");
        if (r == 0 && c->command.n == 0)
                r = doc_refuse(command, err, "must name a program");
        if (r == 0 && most)
                r = doc_count(most, &c->most, err);
        if (r == 0 && most && (c->most < 1 || c->most > MOST_MAX))
                r = doc_refuse(most, err, "must be from 1 to 500");
        return r;
}

int config_sources_read(void *place, const struct doc *d, struct err *err)
{
        if (d->kind != DOC_MAP)
                return doc_refuse(d, err, "must be a map: NAME: {command: [...], owner: NAME@DOMAIN}");
        for (const struct doc *x = d->first; x; x = x->next) {
                int r = read_source(place, x, err);

                if (r != 0)
                        return r;
        }
        return 0;
}
