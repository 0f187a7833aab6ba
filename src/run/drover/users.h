/* users: a queue with a map of users has a struct remote for each user. */
#pragma once
#include "run/runner.h"

/* As open() of struct runner_kind. */
int remote_users_open(const struct runner_config *c, struct runner **ret, struct err *err);
