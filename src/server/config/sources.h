/* sources: the setting `sources`: programs that supply requests, which the server submits for one owner
 * each. */
#pragma once
#include "base/format/doc.h"
#include "base/job/args.h"

#define CONFIG_SOURCES_MAX 16u

struct config_source {
        char *name;
        char *owner; /* name@domain, the owner of its requests */
        struct args command;
        uint64_t most; /* limit on open requests; 0: the default of `drover source` */
};
struct config_sources {
        struct config_source items[CONFIG_SOURCES_MAX];
        size_t count;
};

void config_sources_deinit(struct config_sources *c);
/* Reads the section into a struct config_sources. Returns 0, or -EINVAL with err. */
int config_sources_read(void *place, const struct doc *d, struct err *err);
