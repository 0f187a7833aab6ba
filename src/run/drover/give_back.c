#include "run/drover/give_back.h"

#include <string.h>

#include "run/drover/acts.h"
#include "run/drover/lease.h"
#include "run/drover/state.h"
#include "run/drover/submit.h"
#include "run/drover/tasks.h"

#define AGAIN_MS 30000 /* an order without an effect is repeated */

bool remote_waits(const struct remote_task *t)
{
        return t->state == REMOTE_IN && (!t->begun || t->idle) && !t->killing && !t->suspended && !t->waits;
}

/* An answer about a job that is not idle has no verdicts. */
static bool has_places(const json_t *why)
{
        const json_t *places = json_object_get(why, "agents"), *one;
        const char *state = json_string_value(json_object_get(why, "state"));
        size_t i;

        if (!json_is_array(places) || !state || strcmp(state, "idle") != 0)
                return true;
        json_array_foreach (places, i, one) {
                const char *verdict = json_string_value(json_object_get(one, "verdict"));

                if (!verdict || (strcmp(verdict, "refuses") != 0 && strcmp(verdict, "unreachable") != 0))
                        return true;
        }
        return false;
}

void remote_places_told(struct remote_request *r, const json_t *why, int64_t now)
{
        if (has_places(why))
                r->no_place_ms = 0;
        else if (!r->no_place_ms)
                r->no_place_ms = now;
}

void remote_give_back(struct remote *f, int64_t now)
{
        int64_t lease_ms = remote_lease_given_ms(f);

        for (struct remote_request *r = f->table.sent; r; r = r->next)
                for (size_t i = 0; r->number && r->no_place_ms && i < r->count; i++) {
                        struct remote_task *t = r->tasks[i];

                        if (!t || !remote_waits(t) || now - r->no_place_ms <= lease_ms ||
                            (t->idle && now - t->idle_ms <= lease_ms) ||
                            (t->given_back_ms && now - t->given_back_ms <= AGAIN_MS))
                                continue;
                        t->given_back_ms = now;
                        remote_act(t, REMOTE_GIVE_BACK);
                }
}

void remote_given_back(struct remote_task *t)
{
        static const char why[] = "no place of the other server would take it";

        if (t->begun || !t->given_back_ms)
                remote_over(t, &(struct run_event){.state = RUN_LOST}, why);
        else
                remote_over(t, &(struct run_event){.state = RUN_FAILED, .what = RUN_TOO_LATE}, why);
}
