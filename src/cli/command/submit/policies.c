/* The server says what each place costs under each policy; the order follows as in the core's choice: the
 * job's Rank, the cost, and then whose turn it is. */
#include "cli/command/submit/policies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/terminal/human.h"
#include "cli/terminal/table.h"

#define PLACES_SHOWN 4u

struct place {
        struct view place;
        double rank, cost;
        int64_t turn;
};

static int before(const void *x, const void *y)
{
        const struct place *a = x, *b = y;

        if (a->rank != b->rank)
                return a->rank > b->rank ? -1 : 1;
        if (a->cost != b->cost)
                return a->cost < b->cost ? -1 : 1;
        return (a->turn > b->turn) - (a->turn < b->turn);
}

static size_t find_places(struct view quote, struct place **ret)
{
        struct view all = view_get(quote, "places"), one;
        size_t at = 0, n = 0, cap = 0;

        *ret = NULL;
        while (view_next(all, &at, &one)) {
                if (view_integer(view_get(one, "part"), 0) != 0 || !view_there(view_get(one, "policies")))
                        continue;
                MEM_GROW(*ret, cap, n + 1);
                (*ret)[n++] = (struct place){.place = one,
                                             .rank = view_real(view_get(one, "rank")),
                                             .turn = view_integer(view_get(one, "turn"), 0)};
        }
        return n;
}

static void add_places(struct table *t, const struct place *v, size_t n)
{
        struct buf names BUF_CLEANUP = {0};

        for (size_t i = 0; i < n && i < PLACES_SHOWN; i++) {
                buf_addz(&names, i ? ", " : "");
                view_safe(view_get(v[i].place, "name"), &names);
                buf_char(&names, '/');
                view_safe(view_get(v[i].place, "queue"), &names);
        }
        if (n > PLACES_SHOWN)
                buf_printf(&names, " and %zu more", n - PLACES_SHOWN);
        table_text(t, buf_view(&names));
}

void policies_show(struct view quote, struct buf *out)
{
        static const struct table_column columns[] = {
                {"POLICY", false, false}, {"YOURS", false, false}, {"GIVES JOBS TO", false, true}};
        struct place *places;
        size_t n = find_places(quote, &places), at = 0;
        struct view first = n > 0 ? places[0].place : (struct view){0}, cost;
        struct table t TABLE_CLEANUP;
        struct str name;

        table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
        while (n > 0 && view_member(view_get(first, "policies"), &at, &name, &cost)) {
                struct buf policy BUF_CLEANUP = {0}, own BUF_CLEANUP = {0};

                buf_str(&policy, name);
                view_text(view_get(first, "policy"), &own);
                table_text(&t, name);
                table_text(&t, str_eq(buf_view(&own), name) ? STR("yes") : STR("-"));
                for (size_t i = 0; i < n; i++)
                        places[i].cost =
                                view_real(view_get(view_get(places[i].place, "policies"), buf_z(&policy)));
                if (n > 1)
                        qsort(places, n, sizeof(*places), before);
                add_places(&t, places, n);
        }
        if (n > 0) {
                buf_addz(out, "\nplaces with room for the first job, the best first:\n");
                table_print(&t, out);
        }
        free(places);
}
