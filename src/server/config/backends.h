/* backends: the setting `backends`: other Drover servers to which this one hands jobs on. */
#pragma once
#include "base/format/doc.h"

#define CONFIG_BACKENDS_MAX 128u

struct config_backend {
        char *name;   /* of the back end, its agent and its queue */
        char *server; /* address of its API, or of several of which one leads: base/format/address_list.h */
        char *owners; /* whose jobs may go there, comma-separated; NULL: those of the server's own user */
        char *queue;  /* the agent's settings of the queue: a JSON object */
        bool drain;   /* gets no more jobs */
};
struct config_backends {
        struct config_backend items[CONFIG_BACKENDS_MAX];
        size_t count;
};

void config_backends_deinit(struct config_backends *c);
/* Reads the section into a struct config_backends. Returns 0, or -EINVAL with err. */
int config_backends_read(void *place, const struct doc *d, struct err *err);
/* Returns NULL if the settings have no back end of this name. */
const struct config_backend *config_backends_find(const struct config_backends *c, struct str name);
/* Returns whether the text may be the name of a back end, which is also the name of a folder. */
bool config_backend_name_valid(struct str s);
