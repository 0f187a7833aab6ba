#include "agent/queue/containment.h"

#include "agent/model/agent.h"
#include "agent/model/queue.h"
#include "base/system/log.h"
#include "run/process/shepherd_protocol.h"
#include "run/runner.h"

void queue_containment_attributes(const struct queue *q, struct buf *out)
{
        unsigned has = queue_containment(q) & q->a->containment;
        const char *between = "", *name;
        unsigned flag;

        if (!has)
                return;
        buf_addz(out, "Containment = {");
        for (unsigned i = 0; (name = config_containment_part(i, &flag)); i++)
                if (has & flag) {
                        buf_printf(out, "%s\"%s\"", between, name);
                        between = ", ";
                }
        buf_addz(out, "}; ");
}

void queue_containment_told(struct agent *a, unsigned have, int no_view)
{
        bool same = a->containment == have;

        a->containment = have;
        for (size_t i = 0; i < a->queue_count && !same; i++) {
                const struct queue *q = a->queues[i];
                unsigned lacks = queue_containment(q) & SHEPHERD_CONTAINMENT & ~have;
                const char *name;
                unsigned flag;

                for (unsigned k = 0; (name = config_containment_part(k, &flag)); k++)
                        if (lacks & flag)
                                log_warn("msg=\"this machine cannot contain jobs so; they run without it\" "
                                         "queue=%s part=%s error=\"%s\"",
                                         q->config->name, name,
                                         no_view ? strerror(no_view) : "not supported");
                queue_ad_changed(a->queues[i]);
        }
}
