#include "core/model/event.h"

#include <errno.h>

#include "base/pack.h"
#include "core/model/job.h"

#define EVENT_VERSION 1

enum event_field {
        F_MEMBERS = 1 << 0,
        F_FENCE = 1 << 1,
        F_QUEUE = 1 << 2, /* agent and queue */
        F_NEXT = 1 << 3,
        F_REASON = 1 << 4, /* code, subcode, reason */
        F_VALUE = 1 << 5,
        F_RESULT = 1 << 6,
        F_RESOURCES = 1 << 7,
        F_VALUES = 1 << 8,
        F_STAYS = 1 << 9,  /* written after all other fields, and only if true or if energy follows */
        F_USAGE = 1 << 10, /* written after all other fields, and only if not zero */
        F_LAST_VALUES = 1 << 11,
        F_NODE = 1 << 12, /* agent and who */
};

static const struct {
        const char *name;
        unsigned fields;
} types[EVENT_TYPES] = {
        [EVENT_SUBMITTED] = {"submitted", F_VALUE},
        [EVENT_MATCHED] = {"matched", F_MEMBERS | F_FENCE | F_QUEUE | F_RESOURCES},
        [EVENT_ACCEPTED] = {"accepted", F_MEMBERS | F_FENCE},
        [EVENT_REFUSED] = {"refused", F_MEMBERS | F_FENCE | F_NEXT | F_REASON | F_STAYS},
        [EVENT_STARTED] = {"started", F_MEMBERS | F_FENCE | F_VALUE},
        [EVENT_EXITED] = {"exited", F_MEMBERS | F_FENCE | F_NEXT | F_REASON | F_RESULT | F_STAYS},
        [EVENT_LOST] = {"lost", F_MEMBERS | F_FENCE | F_NEXT | F_REASON | F_STAYS},
        [EVENT_HELD] = {"held", F_MEMBERS | F_REASON},
        [EVENT_RELEASED] = {"released", F_MEMBERS | F_REASON},
        [EVENT_REMOVED] = {"removed", F_MEMBERS | F_REASON | F_STAYS},
        [EVENT_VACATING] = {"vacating", F_MEMBERS | F_NEXT | F_REASON},
        [EVENT_SUSPENDED] = {"suspended", F_MEMBERS | F_REASON},
        [EVENT_RESUMED] = {"resumed", F_MEMBERS | F_REASON},
        [EVENT_PRIORITY] = {"priority", F_MEMBERS | F_VALUE},
        [EVENT_FILED] = {"filed", F_MEMBERS},
        [EVENT_PURGED] = {"purged", F_LAST_VALUES},
        [EVENT_FILLED] = {"filled", F_MEMBERS | F_FENCE | F_VALUES},
        [EVENT_GANG] = {"gang", F_MEMBERS | F_FENCE | F_VALUE},
        [EVENT_GO] = {"go", F_MEMBERS | F_FENCE},
        [EVENT_LEASE_ENDED] = {"lease_ended", 0},
        [EVENT_CHECKPOINTED] = {"checkpointed", F_MEMBERS | F_FENCE | F_VALUES | F_USAGE},
        [EVENT_WAITS] = {"waits", F_MEMBERS},
        [EVENT_READY] = {"ready", F_MEMBERS},
        [EVENT_SKIPPED] = {"skipped", F_MEMBERS | F_REASON},
        [EVENT_RESULTS_TAKEN] = {"results_taken", F_MEMBERS},
        [EVENT_NODE] = {"node", F_NODE | F_NEXT | F_REASON | F_VALUE},
        [EVENT_NODE_FACTS] = {"node_facts", F_NODE | F_VALUES},
        [EVENT_BANK] = {"bank", F_VALUES},
        [EVENT_ADVANCE] = {"reservation", F_VALUES},
        [EVENT_SPACE] = {"space", F_VALUES},
        [EVENT_NODE_INSTANCE] = {"node_instance", F_NODE | F_VALUES},
        [EVENT_ATTRIBUTES] = {"attributes", F_MEMBERS | F_FENCE | F_VALUES},
        [EVENT_REMARK] = {"remark", F_MEMBERS | F_FENCE | F_REASON},
        [EVENT_EDITED] = {"edited", F_MEMBERS | F_REASON | F_VALUES},
};

void event_deinit(struct event *e)
{
        set_deinit(&e->members);
}

const char *event_name(enum event_type type)
{
        return (unsigned)type < EVENT_TYPES && types[type].name ? types[type].name : "?";
}

void event_pack(struct buf *out, const struct event *e)
{
        unsigned fields = types[e->type].fields;

        pack_u64(out, EVENT_VERSION);
        pack_u64(out, e->type);
        pack_i64(out, e->at_ms);
        pack_u64(out, e->request);
        if (fields & F_MEMBERS)
                set_pack(out, &e->members);
        if (fields & F_FENCE)
                pack_u64(out, e->fence);
        if (fields & F_QUEUE) {
                pack_str(out, e->agent);
                pack_str(out, e->queue);
        }
        if (fields & F_NODE) {
                pack_str(out, e->agent);
                pack_str(out, e->who);
        }
        if (fields & F_NEXT)
                pack_u64(out, e->next);
        if (fields & F_REASON) {
                pack_i64(out, e->code);
                pack_i64(out, e->subcode);
                pack_str(out, e->reason);
        }
        if (fields & F_VALUE)
                pack_i64(out, e->value);
        if (fields & F_RESULT) {
                pack_u64(out, e->outcome);
                pack_u64(out, e->signaled);
                pack_i64(out, e->exit_code);
                pack_i64(out, e->started_ms);
                pack_i64(out, e->ended_ms - e->started_ms);
                pack_i64(out, e->cpu_user_ms);
                pack_i64(out, e->cpu_system_ms);
                pack_u64(out, e->memory_peak_bytes);
                pack_str(out, e->outputs);
                pack_u64(out, e->bytes_in);
                pack_u64(out, e->bytes_out);
        }
        if (fields & F_RESOURCES) {
                pack_u64(out, e->cpus);
                pack_u64(out, e->memory_mib);
                pack_u64(out, e->disk_kib);
                pack_u64(out, e->lease_ms);
                pack_str(out, e->account);
                pack_str(out, e->draws);
                pack_str(out, e->more);
        }
        if (fields & F_VALUES)
                pack_str(out, e->values);
        bool energy = (fields & F_RESULT) && e->energy_uj;
        if ((fields & F_STAYS) && (e->stays || energy))
                pack_u64(out, e->stays);
        if (energy)
                pack_u64(out, e->energy_uj);
        if ((fields & F_LAST_VALUES) && e->values.n)
                pack_str(out, e->values);
        if ((fields & F_USAGE) && (e->cpu_user_ms || e->cpu_system_ms)) {
                pack_i64(out, e->cpu_user_ms);
                pack_i64(out, e->cpu_system_ms);
        }
}

static void unpack_fields(struct event *e, struct unpack *u, unsigned fields)
{
        if (fields & F_MEMBERS)
                set_unpack(&e->members, u);
        if (fields & F_FENCE)
                e->fence = (uint32_t)unpack_max(u, UINT32_MAX);
        if (fields & F_QUEUE) {
                e->agent = unpack_str(u);
                e->queue = unpack_str(u);
        }
        if (fields & F_NODE) {
                e->agent = unpack_str(u);
                e->who = unpack_str(u);
        }
        if (fields & F_NEXT)
                e->next = (uint32_t)unpack_max(u, JOB_STATES - 1);
        if (fields & F_REASON) {
                e->code = (int32_t)unpack_i64(u);
                e->subcode = (int32_t)unpack_i64(u);
                e->reason = unpack_str(u);
        }
        if (fields & F_VALUE)
                e->value = unpack_i64(u);
        if (fields & F_RESULT) {
                e->outcome = (uint32_t)unpack_max(u, UINT32_MAX);
                e->signaled = unpack_max(u, 1);
                e->exit_code = (int32_t)unpack_i64(u);
                e->started_ms = unpack_i64(u);
                e->ended_ms = e->started_ms + unpack_i64(u);
                e->cpu_user_ms = unpack_i64(u);
                e->cpu_system_ms = unpack_i64(u);
                e->memory_peak_bytes = unpack_u64(u);
                e->outputs = unpack_str(u);
                if (!u->bad && u->p < u->end) { /* older records end here */
                        e->bytes_in = unpack_u64(u);
                        e->bytes_out = unpack_u64(u);
                }
        }
        if (fields & F_RESOURCES) {
                e->cpus = (uint32_t)unpack_max(u, UINT32_MAX);
                e->memory_mib = unpack_u64(u);
                e->disk_kib = unpack_u64(u);
                e->lease_ms = unpack_u64(u);
                if (!u->bad && u->p < u->end) { /* older records end here */
                        e->account = unpack_str(u);
                        e->draws = unpack_str(u);
                }
                if (!u->bad && u->p < u->end)
                        e->more = unpack_str(u);
        }
        if (fields & F_VALUES)
                e->values = unpack_str(u);
        if ((fields & F_STAYS) && !u->bad && u->p < u->end)
                e->stays = unpack_max(u, 1);
        if ((fields & F_RESULT) && !u->bad && u->p < u->end)
                e->energy_uj = unpack_u64(u);
        if ((fields & F_LAST_VALUES) && !u->bad && u->p < u->end)
                e->values = unpack_str(u);
        if ((fields & F_USAGE) && !u->bad && u->p < u->end) {
                e->cpu_user_ms = unpack_i64(u);
                e->cpu_system_ms = unpack_i64(u);
        }
}

int event_unpack(struct event *e, struct str record, struct err *err)
{
        struct unpack u = unpack_from(record);
        uint64_t version = unpack_u64(&u), type = unpack_u64(&u);

        *e = (struct event){0};
        if (u.bad || version != EVENT_VERSION || type == 0 || type >= EVENT_TYPES || !types[type].name)
                return err_set(err, -EBADMSG, "a record of version %llu and type %llu is not known here",
                               (unsigned long long)version, (unsigned long long)type);
        e->type = (enum event_type)type;
        e->at_ms = unpack_i64(&u);
        e->request = unpack_u64(&u);
        unpack_fields(e, &u, types[type].fields);
        if (unpack_done(&u))
                return 0;
        event_deinit(e);
        return err_set(err, -EBADMSG, "a record of type %s is damaged", types[type].name);
}
