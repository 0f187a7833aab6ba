/* ids: how people name requests and jobs: 7, 7.42, 7.0-99. */
#pragma once
#include "base/err.h"
#include "base/str.h"

struct id {
        uint64_t request;
        bool whole;           /* the whole request: no members were named */
        uint32_t first, last; /* members, both included */
};

/* Parses the text. Returns 0, or -EINVAL with err. */
int id_parse(struct str text, struct id *ret, struct err *err);
