/* sources: the setting `sources`: programs whose requests the server has submitted, each for one owner. */
#pragma once
#include "base/format/doc.h"
#include "base/job/args.h"

#define CONFIG_SOURCES_MAX 16u

struct config_source {
        char *name;
        char *owner; /* name@domain of its requests */
        struct args command;
        uint64_t most; /* open requests; 0: the default of `drover source` */
};
struct config_sources {
        struct config_source items[CONFIG_SOURCES_MAX];
        size_t count;
};

void config_sources_deinit(struct config_sources *c);
/* Reads the section into a struct config_sources. 0, or -EINVAL with err. */
int config_sources_read(void *place, const struct doc *d, struct err *err);
