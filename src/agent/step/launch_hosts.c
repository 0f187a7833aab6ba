#include "agent/step/launch_hosts.h"

#include <ctype.h>
#include <string.h>

#include "base/map.h"

/* Appends the name as one that no reader of the list takes for an option or for several words. */
static void add_name(struct buf *out, struct str name)
{
        if (name.n == 0 || !isalnum((unsigned char)name.p[0]))
                buf_addz(out, "node");
        for (size_t i = 0; i < name.n; i++)
                buf_char(out,
                         isalnum((unsigned char)name.p[i]) || strchr("-._", name.p[i]) ? name.p[i] : '-');
}

static struct str label_of(struct str name)
{
        ptrdiff_t dot = str_find(name, '.');

        return dot < 0 ? name : str_head(name, (size_t)dot);
}

size_t launch_hosts(struct str machines, unsigned count, struct buf *out, bool *ret_shared)
{
        static char once, often;
        struct map *names = map_new(), *labels = map_new();
        struct str rest = machines, machine;
        size_t n = 0;

        *ret_shared = false;
        while (str_cut(&rest, ',', &machine)) {
                BUF_CLEANUP struct buf name = {0};

                add_name(&name, machine);
                *ret_shared |= map_put(names, buf_view(&name), &once) != NULL;
                if (map_put(labels, label_of(buf_view(&name)), &once))
                        map_put(labels, label_of(buf_view(&name)), &often);
        }
        for (rest = machines; str_cut(&rest, ',', &machine); n++) {
                BUF_CLEANUP struct buf name = {0}, line = {0};

                add_name(&name, machine);
                if (map_get(labels, label_of(buf_view(&name))) == &often)
                        buf_printf(&line, "node-%zu-", n);
                buf_printf(&line, STR_FMT "\n", STR_ARG(buf_view(&name)));
                for (unsigned i = 0; i < count; i++)
                        buf_str(out, buf_view(&line));
        }
        map_free(names);
        map_free(labels);
        return n;
}
