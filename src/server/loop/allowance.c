#include "server/loop/allowance.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

#define KEPT_MAX 4096u /* users; more are looked through for those who have all of their burst again */

struct allowance {
        int64_t left_ns, at_ms;
};
struct allowances {
        struct map *users;
        int64_t burst_ns, per_s_ns;
        size_t look_at; /* number of users at which the next search is due */
};

struct allowances *allowances_new(int64_t burst_ns, int64_t per_s_ns)
{
        struct allowances *a = mem_new(struct allowances);

        a->users = map_new();
        a->burst_ns = burst_ns;
        a->per_s_ns = per_s_ns;
        a->look_at = KEPT_MAX;
        return a;
}

void allowances_free(struct allowances *a)
{
        if (!a)
                return;
        map_free_values(a->users);
        free(a);
}

static void grow(const struct allowances *a, struct allowance *x, int64_t now_ms)
{
        int64_t passed_ms = now_ms - x->at_ms,
                most_ms = 1 + (a->burst_ns - x->left_ns) / (a->per_s_ns / 1000);

        x->at_ms = now_ms;
        x->left_ns += a->per_s_ns / 1000 * (passed_ms < most_ms ? passed_ms : most_ms);
        if (x->left_ns > a->burst_ns)
                x->left_ns = a->burst_ns;
}

/* Forgets the users who are as if they had never spent anything. */
static void forget_full(struct allowances *a, int64_t now_ms)
{
        struct map *kept = map_new();
        size_t at = 0;
        struct str user;
        void *v;

        while (map_next(a->users, &at, &user, &v)) {
                struct allowance *x = v;

                grow(a, x, now_ms);
                if (x->left_ns < a->burst_ns)
                        map_put(kept, user, x);
                else
                        free(x);
        }
        map_free(a->users);
        a->users = kept;
        a->look_at = KEPT_MAX + 2 * map_count(kept);
}

bool allowance_left(struct allowances *a, struct str user, int64_t now_ms)
{
        struct allowance *x = map_get(a->users, user);

        if (!x) {
                if (map_count(a->users) >= a->look_at)
                        forget_full(a, now_ms);
                x = mem_new(struct allowance);
                *x = (struct allowance){a->burst_ns, now_ms};
                map_put(a->users, user, x);
        }
        grow(a, x, now_ms);
        return x->left_ns > 0;
}

void allowance_spend(struct allowances *a, struct str user, int64_t took_ns)
{
        struct allowance *x = map_get(a->users, user);

        if (x)
                x->left_ns -= took_ns;
}
