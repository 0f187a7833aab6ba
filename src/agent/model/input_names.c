#include "agent/model/input_names.h"

#include <stdlib.h>

#include "agent/model/environment_asked.h"
#include "agent/model/expand.h"
#include "base/map.h"

static struct str input_names_base_name(struct str path)
{
        return str_skip(path, (size_t)(str_rfind(path, '/') + 1));
}

/* The file itself, or the folder that it is in. */
static struct str first_part(const char *name)
{
        struct str rest = str_of(name), first;

        str_cut(&rest, '/', &first);
        return first;
}

static void set_add(struct map *set, struct str name)
{
        if (name.n)
                map_put(set, name, set);
}

bool shipped_has(const struct shipped *s, struct str name)
{
        return map_get(s->here, name);
}

static void shipped_add(const struct attempt *at, const char *text, struct shipped *s)
{
        BUF_CLEANUP struct buf b = {.max = 1 << 20};

        if (expand_text(at, text, &b, NULL) < 0)
                return; /* the error is reported where the name is used */
        struct str rest = buf_view(&b), path;
        while (rest.n && str_cut(&rest, ',', &path)) {
                path = str_trim(path);
                if (inputs_is_url(path, NULL))
                        continue;
                s->all |= path.n > 1 && path.p[path.n - 1] == '/';
                set_add(s->wanted, input_names_base_name(path));
        }
}

void shipped_read(const struct attempt *at, struct shipped *ret)
{
        const struct job_template *m = at->t->m;

        *ret = (struct shipped){.wanted = map_new(), .here = map_new()};
        for (size_t i = 0; i < m->spooled_count; i++)
                set_add(ret->here, first_part(m->spooled[i].name));
        for (size_t i = 0; i < m->step_count; i++) {
                shipped_add(at, m->steps[i].executable, ret);
                shipped_add(at, m->steps[i].stdin_file, ret);
        }
        for (size_t i = 0; i < m->input_file_count; i++)
                shipped_add(at, m->input_files[i], ret);
        enum environment_kind kind;
        const char *environment = queue_hands_on(at->q) ? environment_path_asked(at, &kind) : NULL;
        if (environment) /* the other server's place makes an environment from it */
                shipped_add(at, environment, ret);
}

void shipped_deinit(struct shipped *s)
{
        map_free(s->wanted);
        map_free(s->here);
}

bool shipped_wants(const struct shipped *s, const char *name)
{
        return s->all || map_get(s->wanted, first_part(name));
}

bool shipped_name_valid(const char *name)
{
        struct str rest = str_of(name), part;

        if (!*name)
                return false;
        while (str_cut(&rest, '/', &part))
                if (part.n == 0 || str_eqz(part, ".") || str_eqz(part, ".."))
                        return false;
        return true;
}

static struct str name_asked(struct str element)
{
        ptrdiff_t at = str_search(element, STR("#name=")), url = str_search(element, STR("://"));

        return url > 0 && at > url ? str_skip(element, (size_t)at + 6) : STR_NONE;
}

bool inputs_is_url(struct str element, char **ret_path)
{
        if (ret_path)
                *ret_path = NULL;
        if (str_search(element, STR("://")) <= 0)
                return false;
        if (!str_istarts(element, STR("file://")))
                return true;
        struct str path = str_skip(element, 7), asked = name_asked(element);
        if (asked.p)
                path = str_head(path, (size_t)(asked.p - path.p) - strlen("#name="));
        ptrdiff_t slash = str_find(path, '/');
        if (ret_path)
                *ret_path = str_dupz(slash > 0 ? str_skip(path, (size_t)slash) : path);
        return false;
}

struct str inputs_name(struct str element)
{
        struct str asked = name_asked(element);

        if (asked.p) {
                MEM_CLEANUP char *z = str_dupz(asked);

                return shipped_name_valid(z) ? asked : STR_NONE;
        }
        if (str_search(element, STR("://")) > 0) {
                struct str rest = element;

                str_cut(&rest, '#', &element);
                rest = element;
                str_cut(&rest, '?', &element);
        }
        element = str_skip(element, (size_t)(str_rfind(element, '/') + 1));
        return str_eqz(element, ".") || str_eqz(element, "..") ? STR_NONE : element;
}

int inputs_each(const struct attempt *at, int (*fn)(void *arg, struct str element, struct err *err),
                void *arg, struct err *err)
{
        const struct job_template *m = at->t->m;
        int r = 0;

        for (size_t i = 0; i < m->input_file_count && r == 0; i++) {
                BUF_CLEANUP struct buf b = {.max = 1 << 20};

                r = expand_text(at, m->input_files[i], &b, err);
                struct str rest = buf_view(&b), one;
                while (r == 0 && rest.n && str_cut(&rest, ',', &one))
                        if ((one = str_trim(one)).n)
                                r = fn(arg, one, err);
        }
        return r;
}
