#include "agent/config/settings.h"

#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/format/quantity.h"
#include "base/mem.h"
#include "place/pull_policy.h"

#define SIZE_BARE_MIN (1 << 20) /* a smaller size needs a unit */

static void *place_of(void *object, const struct setting *s)
{
        return (char *)object + s->at;
}

static bool is_list(enum setting_kind k)
{
        return k == SETTING_LIST || k == SETTING_OWNERS || k == SETTING_WORDS || k == SETTING_GPUS ||
               k == SETTING_RESOURCES;
}

static bool is_text(enum setting_kind k)
{
        return k == SETTING_TEXT || k == SETTING_ATTRIBUTES;
}

const struct setting *settings_find(struct settings t, struct str name)
{
        for (size_t i = 0; i < t.n; i++) {
                const char *z = t.v[i].name;
                size_t n = strlen(z);
                bool same = n == name.n;

                for (size_t k = 0; same && k < n; k++)
                        same = z[k] == (name.p[k] == '-' ? '_' : name.p[k]);
                if (same)
                        return t.v + i;
        }
        return NULL;
}

void settings_clear(void *object, const struct setting *s)
{
        struct config_list *l = place_of(object, s);

        if (is_list(s->kind)) {
                for (size_t i = 0; i < l->n; i++)
                        free(l->v[i]);
                l->n = 0;
        }
}

void settings_deinit(struct settings t, void *object)
{
        for (size_t i = 0; i < t.n; i++) {
                settings_clear(object, &t.v[i]);
                if (is_text(t.v[i].kind))
                        free(*(char **)place_of(object, &t.v[i]));
        }
}

void settings_copy(struct settings t, void *to, const void *from)
{
        for (size_t i = 0; i < t.n; i++) {
                const struct setting *s = &t.v[i];
                void *d = place_of(to, s);
                const void *src = (const char *)from + s->at;

                if (is_text(s->kind)) {
                        const char *text = *(char *const *)src;

                        *(char **)d = text ? mem_dupz(text) : NULL;
                } else if (s->kind == SETTING_GPUS) {
                        continue; /* handled with the resources */
                } else if (is_list(s->kind)) {
                        const struct config_list *l = src;
                        struct config_list *copy = d;

                        settings_clear(to, s); /* two settings may be one list: tag and tags */
                        for (copy->n = 0; copy->n < l->n; copy->n++)
                                copy->v[copy->n] = mem_dupz(l->v[copy->n]);
                } else if (s->kind == SETTING_POLICY) {
                        memcpy(d, src, sizeof(struct pull_policy));
                } else if (s->kind == SETTING_SWITCH) {
                        *(bool *)d = *(const bool *)src;
                } else {
                        *(uint64_t *)d = *(const uint64_t *)src;
                }
        }
}

/* ---- options */

static int list_add(struct config_list *l, const struct setting *s, char *taken, struct err *err)
{
        if (l->n == CONFIG_LIST_MAX) {
                free(taken);
                return err_set(err, -EINVAL, "%s has more than %d parts", s->name, CONFIG_LIST_MAX);
        }
        l->v[l->n++] = taken;
        return 0;
}

static int set_switch(bool *at, struct str value)
{
        if (str_ieqz(value, "auto") || str_ieqz(value, "true") || str_ieqz(value, "yes") ||
            str_ieqz(value, "on"))
                *at = true;
        else if (str_ieqz(value, "off") || str_ieqz(value, "false") || str_ieqz(value, "no"))
                *at = false;
        else
                return -EINVAL;
        return 0;
}

/* Sets a resource's line, which replaces one of the same name. */
static int put_resource(struct config_list *l, const struct setting *s, struct str name, char *line,
                        struct err *err)
{
        for (size_t i = 0; i < l->n; i++)
                if (str_starts(str_of(l->v[i]), name) && strchr(" :", l->v[i][name.n])) {
                        free(l->v[i]);
                        l->v[i] = line;
                        return 0;
                }
        return list_add(l, s, line, err);
}

static int set_resource(struct config_list *l, const struct setting *s, struct str name, struct str value,
                        struct err *err)
{
        struct buf b = {0};

        buf_printf(&b, STR_FMT " " STR_FMT, STR_ARG(name), STR_ARG(value));
        return put_resource(l, s, name, buf_take(&b), err);
}

/* Parses a size and refuses one that was probably meant in larger units, such as "16" for a machine's
 * memory. 0 means none or no limit. */
static int set_size(uint64_t *at, struct str value)
{
        uint64_t n;

        if (str_to_u64(value, &n) == 0 && n > 0 && n < SIZE_BARE_MIN)
                return -EINVAL;
        return quantity_size(value, at);
}

static const char *hint(enum setting_kind k)
{
        return k == SETTING_SIZE     ? ": write a size with its unit, as in 512M or 16G"
               : k == SETTING_TIME   ? ": write a time, as in 90s, 5m, 2h or 1d"
               : k == SETTING_SWITCH ? ": write on or off"
                                     : ": write a number";
}

int settings_set(void *object, const struct setting *s, struct str value, struct err *err)
{
        void *at = place_of(object, s);
        int r = 0;

        switch (s->kind) {
        case SETTING_TEXT:
        case SETTING_ATTRIBUTES:
                free(*(char **)at);
                *(char **)at = str_dupz(value);
                break;
        case SETTING_LIST: return list_add(at, s, str_dupz(value), err);
        case SETTING_GPUS: return set_resource(at, s, STR("GPUs"), value, err);
        case SETTING_CPUS: r = quantity_thousandths(value, at); break;
        case SETTING_SIZE: r = set_size(at, value); break;
        case SETTING_TIME: r = quantity_duration(value, at); break;
        case SETTING_COUNT: r = quantity_count(value, at); break;
        case SETTING_SWITCH: r = set_switch(at, value); break;
        case SETTING_OWNERS:
        case SETTING_WORDS:
        case SETTING_RESOURCES:
                return err_set(err, -EINVAL, "%s is a map in the file: each line beneath it is `name: value`",
                               s->name);
        case SETTING_POLICY: return pull_policy_parse(value, at, err);
        }
        if (r == 0 && s->not_zero && *(uint64_t *)at == 0)
                return err_set(err, -EINVAL,
                               "%s cannot be 0: leave it out for no bound of its own; a queue with "
                               "`closed: on` takes no jobs",
                               s->name);
        return r < 0 ? err_set(err, r, "%s cannot be '" STR_FMT "'%s", s->name, STR_ARG(value), hint(s->kind))
                     : 0;
}

/* ---- nodes of a file */

static int read_owners(struct config_list *l, const struct setting *s, const struct doc *map, struct err *err)
{
        int r = 0;

        for (const struct doc *d = map->first; d && r == 0; d = d->next) {
                struct str owner = d->key, user = d->text;
                struct buf b = {0};

                if (d->kind != DOC_WORD)
                        return err_set(err, -EINVAL, "%s maps owners to users", s->name);
                if (str_find(owner, ' ') >= 0 || str_find(owner, '\n') >= 0 || str_starts(owner, STR("#")) ||
                    str_find(user, '\n') >= 0 || owner.n + user.n > 500)
                        return err_set(err, -EINVAL, "%s cannot map '" STR_FMT "'", s->name, STR_ARG(owner));
                buf_printf(&b, STR_FMT " " STR_FMT, STR_ARG(owner),
                           STR_ARG(str_eqz(user, "same name") ? STR("*") : user));
                r = list_add(l, s, buf_take(&b), err);
        }
        return r;
}

static int read_word(struct config_list *l, const struct setting *s, struct str name, const struct doc *d,
                     struct err *err)
{
        struct buf b = {0};

        if (d->kind != DOC_WORD)
                return err_set(err, -EINVAL, "%s maps names to words, or to lists of them", s->name);
        buf_printf(&b, STR_FMT " " STR_FMT, STR_ARG(name), STR_ARG(d->text));
        return list_add(l, s, buf_take(&b), err);
}

static int read_words(struct config_list *l, const struct setting *s, const struct doc *map, struct err *err)
{
        int r = 0;

        for (const struct doc *d = map->first; d && r == 0; d = d->next) {
                if (d->kind != DOC_LIST)
                        r = read_word(l, s, d->key, d, err);
                for (const struct doc *i = d->kind == DOC_LIST ? d->first : NULL; i && r == 0; i = i->next)
                        r = read_word(l, s, d->key, i, err);
        }
        return r;
}

static int read_resource(struct config_list *l, const struct setting *s, struct str name, const struct doc *d,
                         struct err *err)
{
        if (d->kind == DOC_WORD)
                return set_resource(l, s, name, d->text, err);
        struct buf b = {0};
        buf_printf(&b, STR_FMT ":", STR_ARG(name));
        for (const struct doc *i = d->first; i; i = i->next) {
                if (d->kind != DOC_LIST || i->kind != DOC_WORD) {
                        buf_deinit(&b);
                        return err_set(err, -EINVAL, "%s: a number, or a list of ids", s->name);
                }
                buf_printf(&b, " " STR_FMT, STR_ARG(i->text));
        }
        return put_resource(l, s, name, buf_take(&b), err);
}

static int read_resources(struct config_list *l, const struct setting *s, const struct doc *map,
                          struct err *err)
{
        int r = 0;

        for (const struct doc *d = map->first; d && r == 0; d = d->next)
                r = read_resource(l, s, d->key, d, err);
        return r;
}

static int read_attributes(char **text, const struct setting *s, const struct doc *map, struct err *err)
{
        struct buf b = {0};

        for (const struct doc *d = map->first; d; d = d->next) {
                if (d->kind != DOC_WORD) {
                        buf_deinit(&b);
                        return err_set(err, -EINVAL, "%s maps names to expressions", s->name);
                }
                buf_printf(&b, STR_FMT " = " STR_FMT "; ", STR_ARG(d->key), STR_ARG(d->text));
        }
        free(*text);
        *text = buf_take(&b);
        return 0;
}

static int read_list(void *object, const struct setting *s, const struct doc *d, struct err *err)
{
        int r = 0;

        for (const struct doc *i = d->first; i && r == 0; i = i->next)
                r = i->kind == DOC_WORD ? settings_set(object, s, i->text, err)
                                        : err_set(err, -EINVAL, "%s is a list of words", s->name);
        return r;
}

int settings_read(void *object, const struct setting *s, const struct doc *d, struct err *err)
{
        void *at = place_of(object, s);

        if (d->empty && s->kind == SETTING_RESOURCES)
                return 0;
        if (d->empty && (!is_list(s->kind) || s->kind == SETTING_GPUS))
                return err_set(err, -EINVAL, "%s has no value: write one, or leave the line out", s->name);
        if (s->kind == SETTING_GPUS)
                return read_resource(at, s, STR("GPUs"), d, err);
        if (s->kind == SETTING_RESOURCES && d->kind == DOC_MAP)
                return read_resources(at, s, d, err);
        settings_clear(object, s);
        if (d->empty && is_list(s->kind)) /* for example, only comments */
                return 0;
        if (d->kind == DOC_WORD)
                return settings_set(object, s, d->text, err);
        if (d->kind == DOC_LIST && s->kind == SETTING_LIST)
                return read_list(object, s, d, err);
        if (d->kind == DOC_MAP && s->kind == SETTING_OWNERS)
                return read_owners(at, s, d, err);
        if (d->kind == DOC_MAP && s->kind == SETTING_WORDS)
                return read_words(at, s, d, err);
        if (d->kind == DOC_MAP && s->kind == SETTING_ATTRIBUTES)
                return read_attributes(at, s, d, err);
        return err_set(err, -EINVAL, "%s cannot be a %s: write %s", s->name,
                       d->kind == DOC_LIST ? "list" : "map",
                       s->kind == SETTING_LIST         ? "a word, or a list of words"
                       : is_list(s->kind)              ? "a map: lines `name: value` beneath it"
                       : s->kind == SETTING_ATTRIBUTES ? "a text, or a map"
                                                       : "one value behind the colon");
}
