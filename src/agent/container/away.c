/* Remembers images that cannot be pulled now because of trouble with the registry or the network. The jobs
 * that waited for one are given back, and the queues of the engine take no jobs with it until a pause is
 * over; each failure doubles the next pause. The condition in their ads has the engine's error message as
 * its value, so that `why` shows it.
 *
 * If the engine pulls an image itself when a job starts, the message is that of the job's command, which the
 * job controls: it applies to jobs of the same owner only.
 */
#include <stdlib.h>

#include "agent/container/engine.h"
#include "base/system/clock.h"
#include "base/system/log.h"
#include "place/offer.h"

#define PAUSE_MAX_MS 600000
#define FORGET_MS    3600000 /* time after a pause at which the next failure counts as the first */
#define AWAY_MAX     64u     /* each entry is a condition in the ads */

struct away {
        struct away *next;
        char *image, *why;
        char *owner; /* owner whose jobs wait; NULL: all jobs */
        bool anew;   /* the image is present: only jobs that want it pulled again wait */
        unsigned tries;
        int64_t until_ms; /* boot clock: the pause's end */
};

static void away_free(struct away *x)
{
        free(x->image);
        free(x->owner);
        free(x->why);
        free(x);
}

static bool is_for(const struct away *x, const char *image, const char *owner)
{
        return !strcmp(x->image, image) && (owner ? x->owner && !strcmp(x->owner, owner) : !x->owner);
}

static struct away **find_away(struct engine *e, const char *image, const char *owner)
{
        struct away **link = &e->aways;

        while (*link && !is_for(*link, image, owner))
                link = &(*link)->next;
        return link;
}

static void drop_away(struct away **link)
{
        struct away *x = *link;

        *link = x->next;
        away_free(x);
}

/* The pauses that are over end, and the clock is set for the next. */
static void away_on_timer(void *arg)
{
        struct engine *e = arg;
        int64_t now = clock_boot_ms(), first = INT64_MAX;

        for (struct away **link = &e->aways; *link;) {
                struct away *x = *link;
                int64_t next = now < x->until_ms ? x->until_ms : x->until_ms + FORGET_MS;

                if (now >= next) {
                        drop_away(link);
                        continue;
                }
                first = next < first ? next : first;
                link = &x->next;
        }
        if (first < INT64_MAX)
                timer_start(e->away_timer, first - now);
        engine_changed(e);
}

static void make_room(struct engine *e)
{
        struct away **oldest = &e->aways;
        unsigned n = 0;

        for (struct away **link = &e->aways; *link; link = &(*link)->next, n++)
                if ((*link)->until_ms < (*oldest)->until_ms)
                        oldest = link;
        if (n >= AWAY_MAX)
                drop_away(oldest);
}

void containers_image_away(struct engine *e, const char *image, const char *owner, const char *why)
{
        struct away *x = *find_away(e, image, owner);
        int64_t pause = (int64_t)e->a->config.transfer_retry_ms;

        if (!x) {
                make_room(e);
                x = mem_new(struct away);
                x->image = mem_dupz(image);
                x->owner = owner ? mem_dupz(owner) : NULL;
                x->next = e->aways;
                e->aways = x;
        }
        for (unsigned i = 0; i < x->tries && pause < PAUSE_MAX_MS; i++)
                pause *= 2;
        pause = pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS;
        x->tries++;
        x->anew = engine_has_image(e, image) && e->settings.pull != CONTAINER_ALWAYS;
        x->until_ms = clock_boot_ms() + pause;
        free(x->why);
        x->why = mem_dupz(why);
        log_info("msg=\"an image is tried again later\" image=\"%s\" tries=%u pause_ms=%lld", image, x->tries,
                 (long long)pause);
        if (!e->away_timer)
                e->away_timer = timer_new(e->a->loop, away_on_timer, e);
        away_on_timer(e);
}

const char *away_why(struct engine *e, const char *image)
{
        const struct away *x = *find_away(e, image, NULL);

        return x && clock_boot_ms() < x->until_ms ? x->why : NULL;
}

void away_forget(struct engine *e, const char *image)
{
        struct away **link = find_away(e, image, NULL);

        if (!*link)
                return;
        drop_away(link);
        engine_changed(e);
}

void away_requirement(const struct engine *e, struct buf *out)
{
        int64_t now = clock_boot_ms();

        for (const struct away *x = e->aways; x; x = x->next) {
                if (now >= x->until_ms)
                        continue;
                buf_addz(out, " && ifThenElse(");
                container_is_image(x->image, out);
                buf_addz(out, x->anew ? " =?= true && TARGET.DockerPullPolicy =?= \"always\"" : " =?= true");
                if (x->owner) {
                        buf_addz(out, " && TARGET.User == ");
                        offer_text(out, str_of(x->owner));
                }
                buf_addz(out, ", ");
                offer_text(out, str_of(x->why));
                buf_addz(out, ", true)");
        }
}

void aways_close(struct engine *e)
{
        timer_free(e->away_timer);
        e->away_timer = NULL;
        while (e->aways)
                drop_away(&e->aways);
}
