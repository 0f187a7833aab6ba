/* A claim and what becomes of it change hands in one turn, between the event of the attempt's end and the
 * order behind it. Nothing is matched between these, and both are in one commit. */
#include "core/lifecycle/lots.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "core/data/data_state.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/model/core_parts.h"

static void lots_order_emit(struct core *c, const struct space_order *o)
{
        BUF_CLEANUP struct buf record = {0};
        struct event e = {.type = EVENT_SPACE};

        space_order_pack(&record, o);
        e.values = buf_view(&record);
        core_emit(c, &e, NULL);
}

/* ---- ends of attempts */

/* What a template says of lots was checked at the submit, and is not certain to be the same now: it may be an
 * expression of the time, which is computed again when the server is started, and stores may have other
 * names. So an order is made only of what can be applied. */

/* Counts what was written outside of lots where the lot is not there, or has less room than was claimed: the
 * store was called otherwise when the job began. */
static void count_where_it_fits(const struct core *c, struct lots_end *x)
{
        const struct space_order *o = &x->order;
        const struct lot *lot = *x->name ? space_find(c, o->store, o->owner, str_of(x->name)) : NULL;

        if (!lot || o->bytes > lot->size_bytes - lot->used_bytes)
                *x->name = '\0';
}

void lots_end_find(struct core *c, const struct job *j, const struct core_result *res, struct lots_end *ret)
{
        const struct part *p = request_part(j->request, j->member, NULL);
        const struct job_template *t = p->job_template;
        uint64_t claim = (uint64_t)space_drawn(j->draws) << SPACE_UNIT_SHIFT;
        bool succeeded = res->outcome == CORE_EXITED && !res->signaled && res->exit_code == 0;
        struct space_order *o = &ret->order;

        *ret = (struct lots_end){0};
        if (p->output_store >= c->data->sites.store_count ||
            !c->data->sites.stores[p->output_store].capacity_bytes)
                return;
        o->store = c->data->sites.stores[p->output_store].urls.name;
        o->owner = str_of(request_owner(j->request));
        if (t->lot_name && space_name_ok(str_of(t->lot_name)))
                snprintf(ret->name, sizeof(ret->name), "%s", t->lot_name);
        switch (t->lot_act) {
        case LOT_WRITE:
        case LOT_COPY:
                o->bytes = res->bytes_out < claim ? res->bytes_out : claim;
                o->op = o->bytes ? SPACE_WRITE : 0;
                count_where_it_fits(c, ret);
                break;
        case LOT_REMOVE:
                o->bytes = res->bytes_freed < INT64_MAX / 4 ? res->bytes_freed : INT64_MAX / 4;
                o->op = o->bytes ? SPACE_REMOVE : 0;
                break;
        case LOT_RESERVE:
                o->bytes = claim;
                o->until_ms = c->now_ms + (t->lot_ms ? t->lot_ms : SPACE_LOT_MS);
                o->op = claim && succeeded && *ret->name ? SPACE_RESERVE : 0;
                break;
        case LOT_RELEASE:
                o->until_ms = c->now_ms;
                o->op = succeeded && *ret->name && space_find(c, o->store, o->owner, str_of(ret->name))
                                ? SPACE_RELEASE
                                : 0;
                break;
        case LOT_NOTHING: break;
        }
}

void lots_end_emit(struct core *c, const struct lots_end *x)
{
        struct space_order o = x->order;
        struct lot *lot;

        if (!o.op)
                return;
        o.name = str_of(x->name);
        lots_order_emit(c, &o);
        lot = o.name.n ? space_find(c, o.store, o.owner, o.name) : NULL;
        if (lot && lot->closed)
                space_close(c, lot);
}

/* ---- time */

int64_t lots_tick(struct core *c)
{
        int64_t first_ms = space_first_end_ms(c);
        MEM_CLEANUP struct lot **all = NULL;
        size_t n;

        if (first_ms > c->now_ms)
                return first_ms == INT64_MAX ? INT64_MAX : first_ms - c->now_ms;
        all = space_sorted(c, &n);
        for (size_t i = 0; i < n; i++) {
                if (all[i]->expires_ms > c->now_ms)
                        continue;
                if (lot_claimed(all[i]))
                        space_close(c, all[i]);
                else
                        lots_order_emit(c, &(struct space_order){.op = SPACE_END,
                                                                 .store = str_of(all[i]->store),
                                                                 .owner = str_of(all[i]->owner),
                                                                 .name = str_of(all[i]->name)});
        }
        return 1000;
}

/* ---- orders of people */

static bool is_counted(const struct core *c, struct str store)
{
        const struct sites *s = &c->data->sites;

        for (size_t i = 0; i < s->store_count; i++)
                if (s->stores[i].capacity_bytes && str_eq(s->stores[i].urls.name, store))
                        return true;
        return false;
}

int core_space_set(struct core *c, struct str store, struct str owner, uint64_t bytes, struct err *err)
{
        struct space_order o = {.op = SPACE_SET, .store = store, .owner = owner, .bytes = bytes};

        if (!is_counted(c, store))
                return err_set(err, CORE_UNKNOWN, "there is no store '" STR_FMT "' with a capacity",
                               STR_ARG(str_head(store, 80)));
        if (str_find(owner, '@') <= 0 || bytes > INT64_MAX / 4)
                return err_set(err, CORE_INVALID,
                               "owner is a user, as in ann@lab, and bytes are less than 2 EiB");
        lots_order_emit(c, &o);
        return 0;
}

int core_lot_release(struct core *c, struct str store, struct str owner, struct str name, struct err *err)
{
        const struct lot *x = name.n ? space_find(c, store, owner, name) : NULL;

        if (!x)
                return err_set(err, CORE_UNKNOWN,
                               STR_FMT " has no lot '" STR_FMT "' in the store '" STR_FMT "'",
                               STR_ARG(str_head(owner, 80)), STR_ARG(str_head(name, 80)),
                               STR_ARG(str_head(store, 80)));
        lots_order_emit(c, &(struct space_order){.op = SPACE_RELEASE,
                                                 .store = str_of(x->store),
                                                 .owner = str_of(x->owner),
                                                 .name = str_of(x->name),
                                                 .until_ms = c->now_ms});
        return 0;
}

/* ---- jobs */

uint64_t core_part_space(struct core *c, uint64_t request, uint32_t part)
{
        const struct request *r = request_find(c, request);
        const struct part *p = r ? request_part_at(r, part) : NULL;

        return p ? (uint64_t)p->claim_units << SPACE_UNIT_SHIFT : 0;
}

int lots_check_part(struct core *c, struct str owner, const struct part *p, struct err *err)
{
        const struct job_template *t = p->job_template;
        bool reserves = t->lot_act == LOT_RESERVE, releases = t->lot_act == LOT_RELEASE;
        const struct sites *s = &c->data->sites;

        if (job_template_late_text(t, c->attr.ReserveId).n)
                return err_set(err, -EINVAL, "reserve_id: it is the same for all jobs of a queue statement");
        if (!t->lot_name && !reserves && !releases)
                return 0;
        if (!t->lot_name || !space_name_ok(str_of(t->lot_name)))
                return err_set(err, -EINVAL,
                               "reserve_id: the name of a lot has 1 to %u letters, digits, - and _",
                               SPACE_NAME_MAX);
        if (reserves && t->bytes_out_said <= 0)
                return err_set(err, -EINVAL,
                               "reserve_size: a job of type reserve says how much, as in 100 MB");
        if (p->output_store >= s->store_count || !s->stores[p->output_store].capacity_bytes)
                return err_set(err, -EINVAL,
                               "reserve_id: lots are in stores with a capacity in the server's settings, and "
                               "the job writes to none (see drover stores)");
        if (!space_draws_ok(c, p->output_store, owner, str_of(t->lot_name)))
                return err_set(err, -EINVAL, "reserve_id: the names of store, owner and lot are too long");
        return 0;
}

static void explain_lot(const struct lot *x, const char *name, long long units, const struct limit *l,
                        struct err *ret)
{
        if (!x)
                err_set(ret, 0,
                        "It writes in the lot %s, which is not there now: a job with dap_type = reserve and "
                        "reserve_id = %s makes it.",
                        name, name);
        else if (x->closed)
                err_set(ret, 0, "It writes in the lot %s, whose time is over.", name);
        else
                err_set(ret, 0,
                        "It waits for space in the lot %s of the store %s: it may write %lld MiB, and of the "
                        "lot's %llu MiB %llu are used and %lld claimed by running jobs.",
                        name, x->store, units, (unsigned long long)(x->size_bytes >> 20),
                        (unsigned long long)(x->used_bytes >> 20), (long long)l->used);
}

static void explain_store(const struct core *c, size_t store, long long units, struct err *ret)
{
        struct str name = c->data->sites.stores[store].urls.name;
        struct space_view v;

        if (!space_look(c, store, &v))
                return;
        err_set(ret, 0,
                "It waits for space in the store " STR_FMT
                ": it may write %lld MiB, and of the capacity of %llu MiB files have %llu, lots %llu and "
                "running jobs %llu.",
                STR_ARG(name), units, (unsigned long long)(v.capacity >> 20),
                (unsigned long long)(v.files >> 20), (unsigned long long)(v.reserved >> 20),
                (unsigned long long)(v.claimed >> 20));
        if (v.measured_free != UINT64_MAX && v.measured_free < v.capacity - v.files) {
                struct err said = *ret;

                err_set(ret, 0, "%s The store itself says that %llu MiB are free.", said.text,
                        (unsigned long long)(v.measured_free >> 20));
        }
}

int core_job_space(struct core *c, uint64_t request, uint32_t member, struct err *ret_why)
{
        struct request *r = request_find(c, request);
        const struct bucket *b = r && member < r->count ? request_bucket(c, r, member) : NULL;
        const struct job_class *k = b && set_has(&b->idle, member) ? b->job_class : NULL;
        const char *lot = k && k->job_template->lot_name ? k->job_template->lot_name : "";
        struct str name, store;
        struct limit *x;

        if (!k || !k->claim_units || k->claim_store >= c->data->sites.store_count ||
            charge_room(k, k->draws, &x) > 0)
                return CORE_UNKNOWN;
        name = str_of(x->name);
        store = c->data->sites.stores[k->claim_store].urls.name;
        *ret_why = (struct err){""};
        if (str_starts(name, STR("lot/")))
                explain_lot(space_find(c, store, str_of(k->owner), str_of(lot)), lot, k->claim_units, x,
                            ret_why);
        else if (str_starts(name, STR("space/")))
                explain_store(c, k->claim_store, k->claim_units, ret_why);
        else if (str_starts(name, STR("lots/")))
                err_set(ret_why, 0,
                        "The store " STR_FMT " has %u lots, which is the most: one has to end first.",
                        STR_ARG(store), SPACE_LOTS_MAX);
        return *ret_why->text ? 0 : CORE_UNKNOWN;
}
