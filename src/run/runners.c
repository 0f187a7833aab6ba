/* The kinds of runners, by name. */
#include <string.h>

#include "run/runner.h"

static const struct runner_kind *const kinds[] = {
        &runner_process,
#define RUNNER(name) &runner_##name,
#include "run/runners.def"
};

const struct runner_kind *runner_find(const char *name)
{
        for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
                if (!strcmp(kinds[i]->name, name))
                        return kinds[i];
        return NULL;
}
