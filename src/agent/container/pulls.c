/* Pulls of images. Several attempts may wait for one; each is in its list by name, so that attempts that
 * have gone are noticed. A pull that no attempt waits for is ended: an image can be many gigabytes. The
 * engine keeps or removes the part that it has, as after an interrupt by a user; its command has a session
 * of its own, because engines have helper processes. */
#include <stdlib.h>

#include "agent/container/container_step.h"
#include "agent/container/engine.h"
#include "base/system/clock.h"
#include "base/system/log.h"

#define END_MS 10000 /* time after SIGTERM for an engine to put its store in order */

struct pull { /* pull of one image */
        struct pull *next;
        struct engine *e;
        char *image;
        bool pulling;
        struct command *command;
        int64_t began_ms; /* Unix */
        struct name_list waiting;
        size_t wanted; /* number of attempts that still wait */
        bool unwanted; /* no attempt waits: the pull is being ended, and no new attempt joins it */
};

static void pull_free(struct pull *p)
{
        command_cancel(p->command);
        free(p->waiting.v);
        free(p->image);
        free(p);
}

void pulls_close(struct engine *e)
{
        while (e->pulls) {
                struct pull *p = e->pulls;

                e->pulls = p->next;
                pull_free(p);
        }
}

/* `why`: it is not here. `passes`: but may be had later. */
static void pull_end(struct pull *p, const char *why, bool passes)
{
        struct engine *e = p->e;
        struct pull **link = &e->pulls;

        while (*link != p)
                link = &(*link)->next;
        *link = p->next;
        if (!why && !engine_has_image(e, p->image))
                args_add(&e->images, str_of(p->image)); /* added until the next list has it with its size */
        for (size_t i = 0; i < p->waiting.n; i++) {
                const struct attempt_name *n = &p->waiting.v[i];
                struct attempt *at = agent_find(e->a, n->request, n->member, n->fence);

                if (!at || at->container.pull != p)
                        continue;
                at->container.pull = NULL;
                if (at->state == ATTEMPT_STAGING && passes)
                        at->a->news->give_back(at, why);
                else if (at->state == ATTEMPT_STAGING && !why)
                        at->a->news->stage(at);
                else if (at->state == ATTEMPT_STAGING)
                        at->a->news->staged(at, HOLD_IMAGE, why);
        }
        if (passes && !p->unwanted)
                containers_image_away(e, p->image, NULL, why);
        else if (!why)
                away_forget(e, p->image);
        pull_free(p);
        if (!why)
                containers_image_gone(e); /* the list is asked for again */
        agent_turn_later(e->a);
}

static void on_pulled(void *arg, int status, struct str out, struct str errors)
{
        struct pull *p = arg;
        BUF_CLEANUP struct buf why = {0};

        (void)out;
        p->command = NULL;
        if (status != 0) {
                buf_printf(&why, "%s cannot fetch the image %s: " STR_FMT,
                           container_engine_name(p->e->host.engine), p->image,
                           STR_ARG(container_words(errors)));
                if (!p->unwanted)
                        log_info("msg=\"cannot pull\" image=\"%s\" error=\"%s\"", p->image,
                                 LOG_TEXT(container_words(errors)));
        }
        pull_end(p, status ? buf_z(&why) : NULL, status && container_passes(container_words(errors)));
}

static void pull_start(struct pull *p)
{
        ARGS_CLEANUP struct args words = {0};
        struct engine *e = p->e;

        p->pulling = true;
        container_pull(&e->settings, e->host.engine, p->image, &words);
        log_info("msg=\"pulling an image\" image=\"%s\"", p->image);
        p->command = command_run(e->a->loop, &words, NULL, STR_NONE, (int64_t)e->a->config.transfer_limit_ms,
                                 on_pulled, p);
}

/* Called with the answer whether the image exists: it may have been loaded in another way since the list was
 * made. */
static void on_exists(void *arg, int status, struct str out, struct str errors)
{
        struct pull *p = arg;
        BUF_CLEANUP struct buf why = {0};

        (void)out;
        (void)errors;
        p->command = NULL;
        if (status == 0) {
                pull_end(p, NULL, false);
        } else if (p->unwanted) {
                pull_end(p, "no job wants it any more", false);
        } else if (p->e->settings.pull == CONTAINER_NEVER) {
                buf_printf(&why, "the image %s is not here, and this queue fetches none", p->image);
                pull_end(p, buf_z(&why), false);
        } else {
                pull_start(p);
        }
}

static struct pull *pull_of(struct engine *e, const char *image, bool always)
{
        ARGS_CLEANUP struct args words = {0};

        for (struct pull *p = e->pulls; p; p = p->next)
                if (!p->unwanted && !strcmp(p->image, image) && (p->pulling || !always))
                        return p;
        struct pull *p = mem_new(struct pull);
        p->e = e;
        p->image = mem_dupz(image);
        p->began_ms = clock_wall_ms();
        p->next = e->pulls;
        e->pulls = p;
        if (always) {
                pull_start(p);
        } else {
                container_exists(&e->settings, e->host.engine, image, &words);
                p->command = containers_ask(e, NULL, &words, on_exists, p);
        }
        return p;
}

/* The first of its images that is not here is waited for; then it is looked again. */
bool containers_want(struct attempt *at)
{
        struct engine *e = at->q->engine;

        if (!e || e->unasked)
                return true;
        for (size_t i = 0; i < at->t->m->step_count; i++) {
                const struct job_step *step = &at->t->m->steps[i];
                BUF_CLEANUP struct buf image = {0};
                struct err err = {""};
                bool always = e->settings.pull == CONTAINER_ALWAYS ||
                              (e->settings.pull != CONTAINER_NEVER && step->container_pull_always);

                if (!*step->container || (always && i < at->container.imaged))
                        continue;
                int r = container_step_image(at, step, &image, &err);
                if (r < 0) {
                        at->a->news->staged(at, HOLD_IMAGE, err.text);
                        return false;
                }
                if ((e->host.engine == CONTAINER_APPTAINER &&
                     !container_keeps(&e->settings, e->host.engine, buf_z(&image), NULL)) ||
                    (!always && engine_has_image(e, buf_z(&image))))
                        continue;
                const char *away = away_why(e, buf_z(&image));
                if (away) {
                        at->a->news->give_back(at, away);
                        return false;
                }
                at->container.imaged = always ? (unsigned)i + 1 : at->container.imaged;
                at->container.pull = pull_of(e, buf_z(&image), always);
                at->container.pull->wanted++;
                name_list_add(&at->container.pull->waiting, at);
                return false;
        }
        return true;
}

void containers_forget(struct attempt *at)
{
        struct pull *p = at->container.pull;

        at->container.pull = NULL;
        if (!p || --p->wanted > 0 || at->a->stopping)
                return;
        p->unwanted = true;
        log_info("msg=\"no job wants an image any more\" image=\"%s\"", p->image);
        command_end(p->command, END_MS);
}

bool containers_pulling(const struct attempt *at, struct buf *out, int64_t *ret_since_ms)
{
        const struct pull *p = at->container.pull;

        if (!p)
                return false;
        buf_printf(out, "fetching the image %s", p->image);
        *ret_since_ms = p->began_ms;
        return true;
}
