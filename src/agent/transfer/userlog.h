/* userlog: lines of users' logs. */
#pragma once
#include "agent/model/agent.h"
#include "base/str.h"

struct userlog_file_result;
struct userlog_lines {     /* what the server wants in a log */
        uint64_t serial;   /* that it is answered with */
        const char *owner; /* name@domain: the file is written with this user's rights */
        const char *path;  /* absolute */
        struct str text;
        bool maybe_there; /* see userlog_file.h */
};
void userlog_write(struct agent *a, const struct userlog_lines *m); /* borrowed for the call */
/* Answers the server. */
void userlog_written(struct agent *a, uint64_t serial, int r, const struct userlog_file_result *result,
                     struct err *err);
