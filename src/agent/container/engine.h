/* engine: one container engine of this machine, its images and its running commands. For the files of this
 * part only: containers.c asks the engine, pulls.c fetches images, away.c remembers images that cannot be
 * pulled now. */
#pragma once
#include "agent/container/containers.h"
#include "run/call/command.h"

struct engine {
        struct engine *next;
        struct agent *a;
        const struct config_list *lines; /* settings in the agent's file */
        struct container_settings settings;
        struct container_host host;
        enum container_engine trying; /* engine that is being checked */
        bool works;                   /* it works, and its images are known */
        bool answered;                /* the engine is known to work, or not to work */
        bool remote;                  /* the engine is on a batch system's nodes */
        bool unasked;                 /* remote, or each user's own: the engine fetches images itself */
        bool swept, relist;
        struct timer *timer;
        struct command *command; /* check, list of images or list of containers under way */
        struct args images;      /* images that the engine has */
        struct pull *pulls;
        struct away *aways; /* see away.c */
        struct timer *away_timer;
        struct removal *removals;
};

/* Returns whether the image was there when the engine was asked last. */
bool engine_has_image(const struct engine *e, const char *image);
/* Has the ads of its queues built anew. */
void engine_changed(struct engine *e);
/* Ends and frees all pulls of the engine, when no attempt is left that could wait for one. */
void pulls_close(struct engine *e);

/* Returns why the image is not pulled now, borrowed until the next call; NULL: it may be pulled. */
const char *away_why(struct engine *e, const char *image);
void away_forget(struct engine *e, const char *image); /* called after a successful pull */
/* Appends to a condition that a job uses none of these images. */
void away_requirement(const struct engine *e, struct buf *out);
void aways_close(struct engine *e);
