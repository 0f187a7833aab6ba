#include "agent/model/environment_asked.h"

#include <string.h>

#include "agent/model/expand.h"

const char *environment_path_asked(const struct attempt *at, enum environment_kind *ret)
{
        const struct job_template *m = at->t->m;

        *ret = *m->python_env ? ENVIRONMENT_PYTHON : ENVIRONMENT_CONDA;
        if (*m->python_env)
                return m->python_env;
        return environment_is_file(str_of(m->conda_env)) ? m->conda_env : NULL;
}

bool environment_asked(const struct attempt *at)
{
        enum environment_kind kind;

        if (queue_hands_on(at->q) || !environment_path_asked(at, &kind))
                return false;
        for (size_t i = 0; i < at->t->m->step_count; i++)
                if (!*at->t->m->steps[i].container)
                        return true;
        return false;
}

const struct spool_ref *environment_file(const struct attempt *at, enum environment_kind *ret_kind)
{
        const struct job_template *m = at->t->m;
        BUF_CLEANUP struct buf text = {.max = 65536};
        const char *path = environment_path_asked(at, ret_kind);

        if (!path || expand_text(at, path, &text, NULL) < 0)
                return NULL;
        struct str name = buf_view(&text);
        name = str_skip(name, (size_t)(str_rfind(name, '/') + 1));
        for (size_t i = 0; i < m->spooled_count; i++)
                if (m->spooled[i].sha256 && str_eqz(name, m->spooled[i].name))
                        return &m->spooled[i];
        return NULL;
}
