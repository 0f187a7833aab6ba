/* userlog: lines of users' logs. */
#pragma once
#include "agent/model/agent.h"
#include "wire/session.h"

struct userlog_file_result;
void userlog_write(struct agent *a, const Drover__UserLogWrite *m);
/* Answers the server. */
void userlog_written(struct agent *a, uint64_t serial, int r, const struct userlog_file_result *result,
                     struct err *err);
