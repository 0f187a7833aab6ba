/* users: a queue with a map of users has a struct remote for each user. */
#pragma once
#include "run/runner.h"

/* Opens a runner, as open() of struct runner_kind does. */
int remote_users_open(const struct runner_config *c, struct runner **ret, struct err *err);
