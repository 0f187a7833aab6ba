/* Reads the map `containment` of a queue. */
#include <errno.h>
#include <unistd.h>

#include "agent/config/config.h"
#include "run/process/shepherd_protocol.h"
#include "run/runner.h"

#define SAME(part) ((int)RUN_##part == (int)SHEPHERD_##part)
_Static_assert(SAME(HIDE) && SAME(OWN_TMP) && SAME(NO_PRIVILEGES) && SAME(FILTER) && SAME(NO_NETWORK) &&
                       SAME(CONTAIN_ALL),
               "the same bits");

static const struct {
        const char *name;
        unsigned flag;
} parts[] = {
        {"hide", RUN_HIDE},     {"tmp", RUN_OWN_TMP},           {"no_privileges", RUN_NO_PRIVILEGES},
        {"filter", RUN_FILTER}, {"no_network", RUN_NO_NETWORK}, {"require", RUN_CONTAIN_ALL},
};
#define PARTS (sizeof(parts) / sizeof(*parts))

static int read_line(const char *line, unsigned *flags, struct err *err)
{
        struct str value = str_of(line), name;

        str_cut(&value, ' ', &name);
        bool on = str_eqz(value, "on") || str_eqz(value, "true") || str_eqz(value, "yes");
        if (!on && !str_eqz(value, "off") && !str_eqz(value, "false") && !str_eqz(value, "no"))
                return err_set(err, -EINVAL, "containment: " STR_FMT " is on or off, not '" STR_FMT "'",
                               STR_ARG(name), STR_ARG(value));
        for (size_t i = 0; i < PARTS; i++)
                if (str_eqz(name, parts[i].name)) {
                        *flags = on ? *flags | parts[i].flag : *flags & ~parts[i].flag;
                        return 0;
                }
        return err_set(err, -EINVAL,
                       "containment: there is no part '" STR_FMT
                       "': there are hide, tmp, no_privileges, filter, no_network and require",
                       STR_ARG(name));
}

int config_containment(struct config *c, struct err *err)
{
        unsigned usual = RUN_HIDE;

        if (c->users.n)
                usual |= RUN_OWN_TMP | RUN_NO_PRIVILEGES | RUN_FILTER;
        else if (geteuid() != 0)
                usual |= RUN_NO_PRIVILEGES;
        for (size_t i = 0; i < c->queue_count; i++) {
                struct config_queue *q = c->queues[i];
                int r = 0;

                q->contain = usual;
                for (size_t k = 0; k < q->containment.n && r == 0; k++)
                        r = read_line(q->containment.v[k], &q->contain, err);
                if (r < 0) {
                        const struct doc *own = doc_get(q->doc, "containment");

                        err_prefix(err, r, "queue %s", q->name);
                        return own ? doc_where(err, r, own) : config_where(c, "containment", r, err);
                }
        }
        return 0;
}

const char *config_containment_part(unsigned index, unsigned *ret_flag)
{
        if (index >= PARTS)
                return NULL;
        *ret_flag = parts[index].flag;
        return parts[index].name;
}
