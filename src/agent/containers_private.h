/* What containers.c and container_pulls.c share. Private to them. */
#pragma once
#include "agent/containers.h"
#include "run/command.h"

struct engine {
        struct engine *next;
        struct agent *a;
        const struct config_list *lines; /* of the file */
        struct container_settings settings;
        struct container_host host;
        enum container_engine trying; /* which is asked */
        bool works;                   /* and what it has is known */
        bool remote;                  /* on a batch system's nodes */
        bool unasked;                 /* there, or each user's own: it fetches images itself */
        bool swept, relist;
        struct timer *timer;
        struct command *command; /* probe, images or list */
        struct args images;      /* that it has */
        struct pull *pulls;
        struct removal *removals;
};

/* Whether the image was there when the engine was asked last; borrows both. */
bool engine_has_image(const struct engine *e, const char *image);
/* Ends and frees all pulls of the engine and tells nobody: for when no attempt is left that could wait. */
void pulls_close(struct engine *e);
