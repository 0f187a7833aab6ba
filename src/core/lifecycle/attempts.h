/* attempts: what agents say of attempts, from their acceptance to their results. */
#pragma once
#include "base/str.h"

struct core;
struct job;

/* The attempt is gone, whyever: its job is idle again, or what was to become of it. */
void attempt_lose(struct core *c, struct job *j, struct str why);
