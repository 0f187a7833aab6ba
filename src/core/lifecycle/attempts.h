/* attempts: what agents say of attempts, from their acceptance to their results. */
#pragma once
#include "base/str.h"
#include "core/model/names.h"

/* The attempt is gone, whyever: its job is idle again, or what was to become of it. */
void attempt_lose(struct core *c, struct job *j, struct str why);
