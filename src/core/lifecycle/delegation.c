#include "core/lifecycle/delegation.h"

#include "base/mem.h"
#include "core/data/label.h"
#include "core/events/apply.h"
#include "core/model/core_parts.h"
#include "core/query.h"

#define END_STEPS 50000u /* of rows of history written in one call when a lease ends */

void delegations_init(struct core *c)
{
        c->delegations = mem_new(struct delegations);
}

void delegations_deinit(struct core *c)
{
        free(c->delegations->leased);
        free(c->delegations);
}

bool delegation_keeps_results(const struct request *r)
{
        const struct delegation *h = &request_cold(r)->delegation;

        return h->hold_results && !h->lease_over && set_count(&h->taken) < r->count;
}

/* ---- leases */

static void remove_members(struct core *c, const struct request *r, const struct set *members)
{
        const struct core_command remove = {
                .action = CORE_ACT_REMOVE,
                .request = r->id,
                .members = members,
                .reason = STR("the submitter's lease ended: nothing was heard of it")};
        uint64_t affected;

        core_act(c, &remove, &affected, NULL);
}

/* Removes idle and held jobs that were matched before, whose rows of history are written with the removal and
 * may be long: all, or until core_steps is `until`. Returns whether none is left. */
static bool remove_recorded(struct core *c, const struct request *r, uint64_t until)
{
        struct set left = {0};
        uint64_t most = 1;
        bool none;

        core_members_recorded(c, r->id, &left);
        while (set_count(&left) && core_steps(c) < until) {
                struct set some = {0};

                SET_FOREACH (&left, m) {
                        if (set_count(&some) == most)
                                break;
                        set_add(&some, (uint32_t)m);
                }
                remove_members(c, r, &some);
                set_remove_all(&left, &some);
                set_deinit(&some);
                most *= 2;
        }
        none = set_count(&left) == 0;
        set_deinit(&left);
        return none;
}

/* Returns false if it is to be called again. */
static bool end_lease(struct core *c, struct request *r, uint64_t until)
{
        struct event e = {.type = EVENT_LEASE_ENDED, .request = r->id};

        if (!remove_recorded(c, r, until))
                return false;
        core_emit(c, &e, NULL);
        event_deinit(&e);
        remove_members(c, r, NULL);
        return true;
}

/* Returns whether anything depends on the lease. */
static bool lease_counts(const struct request *r)
{
        return !request_cold(r)->delegation.lease_over && (!request_ended(r) || delegation_keeps_results(r));
}

int64_t delegations_tick(struct core *c)
{
        uint64_t until = core_steps(c) + END_STEPS;
        int64_t next = INT64_MAX;

        for (size_t i = 0; i < c->delegations->count; i++) {
                struct request *r = c->delegations->leased[i];
                int64_t end = r->cold->delegation.renewed_steady_ms + (int64_t)r->cold->delegation.lease_ms;

                if (!lease_counts(r))
                        continue;
                if (end <= c->steady_ms)
                        next = end_lease(c, r, until) ? next : 0;
                else if (end - c->steady_ms < next)
                        next = end - c->steady_ms;
        }
        return next;
}

void delegations_ready(struct core *c)
{
        for (size_t i = 0; i < c->delegations->count; i++)
                c->delegations->leased[i]->cold->delegation.renewed_steady_ms = c->steady_ms;
}

static int find_delegated(struct core *c, uint64_t id, struct str owner, struct request **ret,
                          struct err *err)
{
        struct request *r = request_find(c, id);

        if (!r)
                return err_set(err, CORE_UNKNOWN, "there is no request %llu", (unsigned long long)id);
        if (owner.n && !str_eqz(owner, request_owner(r)))
                return err_set(err, CORE_FORBIDDEN, "request %llu belongs to %s", (unsigned long long)id,
                               request_owner(r));
        *ret = r;
        return 0;
}

int core_request_renew(struct core *c, uint64_t request, struct str owner, uint64_t lease_ms, struct err *err)
{
        struct request *r = NULL;
        int e = find_delegated(c, request, owner, &r, err);

        if (e)
                return e;
        if (!request_cold(r)->delegation.lease_ms)
                return err_set(err, CORE_INVALID, "request %llu was submitted without a lease",
                               (unsigned long long)request);
        if (request_cold(r)->delegation.lease_over)
                return err_set(err, CORE_INVALID, "the lease of request %llu has ended: it is removed",
                               (unsigned long long)request);
        if (lease_ms)
                r->cold->delegation.lease_ms = lease_ms;
        r->cold->delegation.renewed_steady_ms = c->steady_ms;
        return 0;
}

/* ---- results */

int core_results_taken(struct core *c, uint64_t request, struct str owner, const struct set *members,
                       uint64_t *ret_left, struct err *err)
{
        struct event e = {.type = EVENT_RESULTS_TAKEN, .request = request};
        const struct request_cold *cold;
        struct request *r = NULL;
        int result = find_delegated(c, request, owner, &r, err);

        if (result)
                return result;
        cold = request_cold(r);
        set_copy(&e.members, &cold->completed);
        set_add_all(&e.members, &cold->removed);
        set_keep_all(&e.members, members);
        set_remove_all(&e.members, &cold->delegation.taken);
        if (cold->delegation.hold_results && set_count(&e.members))
                core_emit(c, &e, NULL);
        event_deinit(&e);
        cold = request_cold(r); /* the event may have allocated it */
        *ret_left = cold->delegation.hold_results ? r->count - set_count(&cold->delegation.taken) : 0;
        return 0;
}

int64_t core_results_held_since(struct core *c)
{
        int64_t since = INT64_MAX, first = c->now_ms - RESULTS_HELD_MAX_MS;

        for (size_t i = 0; i < c->delegations->count; i++)
                if (delegation_keeps_results(c->delegations->leased[i]) &&
                    c->delegations->leased[i]->submitted_ms < since)
                        since = c->delegations->leased[i]->submitted_ms;
        return since < first ? first : since;
}

/* ---- snapshots: a shadow has no submission records, so snapshots hold only what events have set */

static const struct delegation *changed(const struct request *r) /* NULL: no event has changed it */
{
        const struct delegation *h = &request_cold(r)->delegation;

        return h->lease_over || set_count(&h->taken) ? h : NULL;
}

void delegations_pack(struct core *c, struct buf *out)
{
        uint64_t n = 0;

        for (struct request *r = c->requests->first; r; r = r->next)
                n += changed(r) != NULL;
        pack_u64(out, n);
        for (struct request *r = c->requests->first; r; r = r->next) {
                const struct delegation *h = changed(r);

                if (!h)
                        continue;
                pack_u64(out, r->id);
                pack_u64(out, h->lease_over);
                set_pack(out, &h->taken);
        }
}

void delegations_unpack(struct core *c, struct unpack *u)
{
        for (uint64_t n = unpack_u64(u); n > 0 && !u->bad; n--) {
                struct request *r = request_find(c, unpack_u64(u));
                struct delegation *h;

                if (!r) {
                        u->bad = true;
                        return;
                }
                h = &request_cold_make(r)->delegation;
                h->lease_over = unpack_max(u, 1);
                set_unpack(&h->taken, u);
        }
}

/* ---- queries */

int core_request_delegation(struct core *c, uint64_t request, struct core_delegation *ret)
{
        const struct request *r = request_find(c, request);
        const struct delegation *h;

        if (!r)
                return CORE_UNKNOWN;
        h = &request_cold(r)->delegation;
        *ret = (struct core_delegation){.lease_ms = h->lease_ms,
                                        .left_ms = h->renewed_steady_ms + (int64_t)h->lease_ms - c->steady_ms,
                                        .lease_over = h->lease_over,
                                        .hold_results = h->hold_results,
                                        .origin = h->origin};
        if (ret->left_ms < 0 || ret->lease_over || !ret->lease_ms)
                ret->left_ms = 0;
        return 0;
}

void core_part_labels(struct core *c, uint64_t request, uint32_t part, struct buf *out)
{
        const struct request *r = request_find(c, request);
        uint64_t labels = 0;

        for (size_t i = 0; r && i < r->bucket_count; i++)
                if (r->buckets[i]->part == part && r->buckets[i]->job_class)
                        labels |= r->buckets[i]->job_class->labels;
        label_print(c, labels, out);
}
