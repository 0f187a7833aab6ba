/* userlog: writes lines to users' logs. */
#pragma once
#include "agent/model/agent.h"
#include "base/str.h"

struct userlog_file_result;
struct userlog_lines {     /* lines that the server wants to be in a log */
        uint64_t serial;   /* serial number that the answer repeats */
        const char *owner; /* name@domain: the file is written with this user's rights */
        const char *path;  /* absolute */
        struct str text;
        bool maybe_there; /* see userlog_file.h */
};
void userlog_write(struct agent *a,
                   const struct userlog_lines *m); /* starts writing; *m is borrowed for the call */
/* Sends the answer to the server. */
void userlog_written(struct agent *a, uint64_t serial, int r, const struct userlog_file_result *result,
                     struct err *err);
