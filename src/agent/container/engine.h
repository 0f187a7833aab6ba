/* engine: one container engine of this machine, its images, and what is under way there. For the files of
 * this part: containers.c asks the engine, pulls.c fetches images, away.c remembers those that cannot be had
 * now. */
#pragma once
#include "agent/container/containers.h"
#include "run/call/command.h"

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
        struct away *aways; /* container_away.c */
        struct timer *away_timer;
        struct removal *removals;
};

/* Whether the image was there when the engine was asked last; borrows both. */
bool engine_has_image(const struct engine *e, const char *image);
/* Its queues' ads are made anew. */
void engine_changed(struct engine *e);
/* Ends and frees all pulls of the engine and tells nobody: for when no attempt is left that could wait. */
void pulls_close(struct engine *e);

/* Why the image is not fetched now; NULL: it may be. Borrowed until the next call. */
const char *away_why(struct engine *e, const char *image);
void away_forget(struct engine *e, const char *image); /* it was fetched */
/* Behind another condition: none of these images, for now. */
void away_requirement(const struct engine *e, struct buf *out);
void aways_close(struct engine *e);
