#include "sim/trace_outages.h"

#include <errno.h>

#include "base/mem.h"

#define SECONDS_MAX 3e9 /* about a hundred years */

/* Finds the cluster of the name, and the agent if the name is that of one. Returns NULL: there is none. */
static struct sim_cluster *place_find(struct sim_site *s, struct str name, uint32_t *ret_agent)
{
        ptrdiff_t dash = str_rfind(name, '-');
        int at = sim_site_find(s, name);
        uint64_t number;

        *ret_agent = SIM_ALL_AGENTS;
        if (at >= 0)
                return &s->clusters[at];
        if (dash <= 0 || str_to_u64(str_skip(name, (size_t)dash + 1), &number))
                return NULL;
        at = sim_site_find(s, str_head(name, (size_t)dash));
        if (at < 0 || number >= s->clusters[at].agents)
                return NULL;
        *ret_agent = (uint32_t)number;
        return &s->clusters[at];
}

static int add_outage(struct sim_site *s, struct str place, struct str from, struct str to, struct err *err)
{
        struct sim_outage o;
        struct sim_cluster *c = place_find(s, place, &o.agent);
        double from_s, to_s;

        if (!c)
                return err_set(err, -EINVAL,
                               "there is no cluster \"" STR_FMT "\", and no agent of one, as in north-3",
                               STR_ARG(str_head(place, 40)));
        if (c->cloud.boot_ms)
                return err_set(err, -EINVAL, "agents of \"%s\" come and go: they have no outages", c->name);
        if (str_to_double(from, &from_s) || str_to_double(to, &to_s) || !(from_s >= 0 && from_s < to_s) ||
            to_s > SECONDS_MAX)
                return err_set(err, -EINVAL,
                               "from \"" STR_FMT "\" to \"" STR_FMT
                               "\": two times in seconds are needed, of which the second is later",
                               STR_ARG(str_head(from, 40)), STR_ARG(str_head(to, 40)));
        o.from_ms = (int64_t)(from_s * 1000);
        o.to_ms = (int64_t)(to_s * 1000);
        c->outages = mem_array(c->outages, c->outage_count + 1, sizeof(*c->outages));
        c->outages[c->outage_count++] = o;
        return 0;
}

/* Returns the line without its comment. */
static struct str without_comment(struct str line)
{
        size_t n = 0;

        while (n < line.n && line.p[n] != '#' && line.p[n] != ';')
                n++;
        return str_head(line, n);
}

int sim_outages_read(struct sim_site *s, const char *name, struct str text, struct err *err)
{
        struct str line, place, from = STR_NONE, to = STR_NONE;
        unsigned number = 0, count = 0;
        struct err why;

        while (str_cut(&text, '\n', &line)) {
                number++;
                line = without_comment(line);
                if (!str_word(&line, &place))
                        continue;
                if (++count > SIM_OUTAGES_MAX)
                        return err_set(err, -EINVAL, "%s:%u: more than %u outages", name, number,
                                       SIM_OUTAGES_MAX);
                if (!str_word(&line, &from) || !str_word(&line, &to))
                        return err_set(err, -EINVAL, "%s:%u: a place and two times are needed: PLACE FROM TO",
                                       name, number);
                if (add_outage(s, place, from, to, &why))
                        return err_set(err, -EINVAL, "%s:%u: %s", name, number, why.text);
        }
        return 0;
}
