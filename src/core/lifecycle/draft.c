#include "core/lifecycle/draft.h"

#include <errno.h>

#include "base/mem.h"
#include "classad/sense.h"
#include "core/billing/billing.h"
#include "core/classes/admission.h"
#include "core/classes/job_class.h"
#include "core/classes/split.h"
#include "core/data/label.h"
#include "core/dependency/dependency.h"
#include "core/events/apply.h"
#include "core/fairness/charge.h"
#include "core/lifecycle/lots.h"
#include "core/lifecycle/reservations.h"
#include "core/model/forgotten.h"
#include "core/model/gang_rule.h"
#include "core/model/item.h"
#include "core/model/meta_rule.h"

#define SYMBOLS_MAX 1000000u     /* attribute names of all users; each user has a limit too (names_max) */
#define QUOTE_ID    (1ull << 62) /* id that no request has */

struct core_draft {
        struct core *core;
        const struct submission *from;
        enum core_draft_use use;
        uint64_t existing; /* the request with this uuid; 0: there is none */
        uint64_t id;
        struct request *request; /* NULL: the request already exists, or was accepted */
        struct request_loading loading;
        uint32_t checked;    /* number of parts that were checked */
        struct split *split; /* NULL: not begun, or ended */
        bool is_split;
        uint64_t keyed; /* classes.keyed when the split ended */
        struct core_draft *next;
};

/* Finds the owner's request with the submission's uuid. A uuid may be computed from what others know too, as
 * those of sources and of handed-on jobs are: whoever else uses it is in nobody's way. Returns 0 with the
 * request's number in *ret, 0 for none; CORE_CONFLICT with err. */
static int find_known(struct core *c, const struct submission *s, uint64_t *ret, struct err *err)
{
        const struct request *r = request_by_uuid(c, s->uuid, s->owner);
        struct forgotten_request known = {0};

        *ret = 0;
        if (r)
                known = (struct forgotten_request){.id = r->id, .digest = r->digest};
        else if (!forgotten_find(c->requests->forgotten, s->uuid, s->owner, &known))
                return 0;
        if (s->digest && known.digest && s->digest != known.digest)
                return err_set(
                        err, CORE_CONFLICT,
                        "request %llu was submitted with this uuid and other contents: make a new uuid for "
                        "each request",
                        (unsigned long long)known.id);
        *ret = known.id;
        return 0;
}

int core_draft_new(struct core *c, const struct submission *s, enum core_draft_use use,
                   struct core_draft **ret, struct err *err)
{
        uint64_t last = c->requests->draft_id > c->requests->last_id ? c->requests->draft_id
                                                                     : c->requests->last_id,
                 known = 0;
        struct core_draft *d;
        int r = use == CORE_DRAFT_SUBMIT ? find_known(c, s, &known, err) : 0;

        if (r)
                return r;
        if (!known && symbols_used(c->symbols) > SYMBOLS_MAX)
                return err_set(err, CORE_INVALID,
                               "the jobs of all users have more than %u different attribute names: "
                               "submit it when some have ended",
                               SYMBOLS_MAX);
        if (!known && (r = charge_check_room(c, s, err)) != 0)
                return r;
        d = mem_new(struct core_draft);
        d->core = c;
        d->from = s;
        d->use = use;
        d->existing = known;
        d->id = known                             ? known
                : use == CORE_DRAFT_QUOTE         ? QUOTE_ID
                : last < c->requests->number_from ? c->requests->number_from
                                                  : last + 1;
        d->next = c->drafts;
        c->drafts = d;
        *ret = d;
        if (known)
                return 0;
        if (use == CORE_DRAFT_SUBMIT)
                c->requests->draft_id = d->id;
        d->request = request_new(d->id, c->now_ms, (uint32_t)submission_members(s));
        return request_load_begin(c, d->request, s, &d->loading, err);
}

static int no_sense(struct core *c, symbol name, const struct err *why, struct err *err)
{
        return err_set(err, -EINVAL, STR_FMT ": %s", STR_ARG(symbols_name(c->symbols, name)), why->text);
}

static bool is_set(const struct job_template *t, symbol name)
{
        for (size_t i = 0; i < t->late_count; i++)
                if (t->late[i].name == name)
                        return true;
        return ad_find(t->ad, name) != NULL;
}

/* Refuses values that make no sense for any job. */
static int check_sense(struct core *c, const struct request *r, const struct part *p, struct err *err)
{
        BUF_CLEANUP struct buf sizes = {0}, inputs = {0};
        const struct ad *ad = p->job_template->ad;
        const symbol in = c->attr.TransferInput, of = c->attr.TransferInputSizes;
        const struct expr *x;
        uint32_t at = 0;
        struct err why;
        symbol name;

        while (ad_next(ad, &at, &name, &x))
                if (sense_check(symbols_name(c->symbols, name), x, &why) != 0)
                        return no_sense(c, name, &why, err);
        if (p->count == 0 || request_member_text(c, r, p->first, of, &sizes) != 0)
                return 0;
        if (request_member_text(c, r, p->first, in, &inputs) != 0 && is_set(p->job_template, in))
                return 0; /* an expression instead of a text: its value is not known */
        if (sense_check_sizes(buf_view(&sizes), buf_view(&inputs), &why) != 0)
                return no_sense(c, of, &why, err);
        return 0;
}

/* Tries late attributes with the first member: an error there very likely concerns all members. */
static int try_late(struct core *c, const struct request *r, const struct part *p, struct err *err)
{
        struct buf BUF_CLEANUP text = {.max = SUBMISSION_TEXT_MAX};
        size_t left = LATE_TEXT_MAX;

        for (size_t i = 0; p->count > 0 && i < p->job_template->late_count; i++) {
                const struct job_template_late *l = &p->job_template->late[i];
                struct symbols_use *before = job_template_names(c, p->job_template);
                struct expr *x = NULL;
                struct err why;
                int e;

                buf_reset(&text);
                e = part_expand(c, r, p, p->first, l->text, &left, &text, &why);
                if (!e)
                        e = expr_parse(c->symbols, buf_view(&text), &x, &why);
                if (!e)
                        e = sense_check(symbols_name(c->symbols, l->name), x, &why);
                expr_free(x);
                symbols_use_set(c->symbols, before);
                if (e)
                        return err_set(err, -EINVAL, STR_FMT " of job %u: %s",
                                       STR_ARG(symbols_name(c->symbols, l->name)), p->first, why.text);
        }
        return 0;
}

int draft_check_part(struct core *c, const struct request *r, const struct part *p, struct err *err)
{
        int e = try_late(c, r, p, err);

        return e ? e : check_sense(c, r, p, err);
}

static int load_some(struct core_draft *d, uint32_t *budget, bool *ret_more, struct err *err)
{
        struct core *c = d->core;
        int e = request_load_some(c, d->request, &d->loading, budget, ret_more, err);

        for (; !e && *budget > 0 && d->checked < d->loading.part; d->checked++) {
                const struct part *p = &d->request->parts[d->checked];
                uint64_t steps = core_steps(c);

                e = gang_check(c, p->job_template, p->count, err);
                if (!e)
                        e = meta_check(c, p->job_template, p->count, err);
                if (!e)
                        e = draft_check_part(c, d->request, p, err);
                if (!e)
                        e = charge_check_part(c, d->from->owner, p->job_template->ad, err);
                if (!e)
                        e = billing_check_part(c, d->from->owner, p->job_template->ad, err);
                if (!e)
                        e = billing_check_quote(c, d->from->owner, p->job_template->ad, err);
                if (!e)
                        e = reservations_check_part(c, d->from->owner, p->job_template, err);
                if (!e)
                        e = lots_check_part(c, d->from->owner, p, err);
                steps = (core_steps(c) - steps) / SPLIT_STEPS;
                *budget -= steps < *budget ? (uint32_t)steps : *budget;
        }
        *ret_more |= d->checked < d->loading.part;
        return e;
}

static int split_over(struct core_draft *d, struct err *err)
{
        struct core *c = d->core;
        bool too_many = split_too_many(d->split);
        int e;

        split_end(d->split);
        d->split = NULL;
        d->is_split = true;
        d->keyed = c->classes->keyed;
        if (too_many)
                return err_set(
                        err, CORE_INVALID,
                        "its jobs differ in more than %u ways in what they require: make several requests",
                        c->config.classes_max);
        e = label_refuse(c, d->request, err);
        if (!e)
                e = gang_refuse(c, d->request, err);
        if (!e)
                e = meta_refuse(d->request, err);
        return e ? e : dependency_check(c, d->request, err);
}

int core_draft_some(struct core_draft *d, bool *ret_more, struct err *err)
{
        struct core *c = d->core;
        uint32_t budget = c->config.rekey_slice * SPLIT_CLASS;
        bool more = false;
        int e = 0;

        *ret_more = false;
        if (!d->request || (d->is_split && d->keyed == c->classes->keyed))
                return 0;
        if (d->checked < d->from->part_count)
                e = load_some(d, &budget, &more, err);
        if (!e && !more) {
                if (!d->split)
                        d->split = split_new(c, d->request, c->config.classes_max);
                more = split_some(d->split, &budget);
                if (charge_check_memory(c, request_owner(d->request), 0, err) != 0)
                        return CORE_TOO_MANY;
                if (!more)
                        e = split_over(d, err);
        }
        *ret_more = more && !e;
        return e ? CORE_INVALID : 0;
}

#define HOLD_STEPS 200u /* of the evaluation of one part's HoldOnSubmit: all parts are asked at once */

static void hold_on_submit(struct core *c, const struct submission *s, uint64_t id)
{
        struct request *r = request_find(c, id);
        uint32_t steps_max = c->eval.steps_max;
        struct event e = {.type = EVENT_HELD,
                          .request = id,
                          .code = CORE_HOLD_SUBMIT,
                          .reason = STR("submitted on hold at user's request")};

        c->eval.steps_max = HOLD_STEPS;
        for (size_t i = 0; i < r->part_count; i++) {
                const struct part *p = &r->parts[i];
                bool hold = s->hold;

                if (!hold)
                        eval_boolean(&c->eval, p->job_template->ad, NULL, c->attr.HoldOnSubmit, &hold);
                if (hold && p->count)
                        set_add_range(&e.members, p->first, (uint64_t)p->first + p->count);
        }
        c->eval.steps_max = steps_max;
        eval_reset(&c->eval);
        if (set_count(&e.members))
                core_emit(c, &e, NULL);
        event_deinit(&e);
}

/* Holds the idle jobs whose accounts have nothing: one event for the jobs of each account. */
static void hold_unpaid(struct core *c, uint64_t id)
{
        const struct request *r = request_find(c, id);
        bool more = true;

        while (more) {
                struct event e = {.type = EVENT_HELD, .request = id, .code = CORE_HOLD_BANK};
                struct err first = {""}, why;

                for (uint32_t i = 0; i < r->bucket_count; i++) {
                        const struct bucket *b = r->buckets[i];

                        if (set_count(&b->idle) == 0 || !billing_is_empty(c, b->job_class, &why))
                                continue;
                        if (!first.text[0])
                                first = why;
                        if (strcmp(first.text, why.text) == 0)
                                set_add_all(&e.members, &b->idle);
                }
                e.reason = str_of(first.text);
                more = set_count(&e.members) > 0;
                if (more)
                        core_emit(c, &e, NULL);
                event_deinit(&e);
        }
}

static int accept(struct core_draft *d, struct err *err)
{
        struct core *c = d->core;
        struct event e = {.type = EVENT_SUBMITTED,
                          .request = d->id,
                          .value = d->request->count,
                          .at_ms = d->request->submitted_ms};
        struct buf BUF_CLEANUP record = {0};
        int r;

        r = dependency_check(c, d->request, err);
        if (r)
                return r;
        submission_pack(&record, d->from);
        c->requests->accepting = d->request;
        r = core_emit(c, &e, err);
        c->requests->accepting = NULL;
        if (r)
                return r < 0 ? r : CORE_INVALID;
        d->request = NULL;
        c->world.keep(c->world.arg, d->id, buf_view(&record));
        dependency_begin(c, request_find(c, d->id));
        hold_on_submit(c, d->from, d->id);
        if (billing_holds(c))
                hold_unpaid(c, d->id);
        return 0;
}

int core_draft_submit(struct core_draft *d, uint64_t *ret_request, bool *ret_existing, struct err *err)
{
        bool more = true;
        int r = find_known(d->core, d->from, &d->existing, err); /* perhaps accepted in between */

        *ret_existing = d->existing != 0;
        *ret_request = d->existing ? d->existing : d->id;
        if (r || d->existing)
                return r;
        while (more) /* there is more if an attribute has become significant */
                if ((r = core_draft_some(d, &more, err)) != 0)
                        return r;
        r = charge_check_room(d->core, d->from, err);
        return r ? r : accept(d, err);
}

uint64_t core_draft_number(const struct core_draft *d, bool *ret_existing)
{
        *ret_existing = d->existing != 0;
        return d->existing ? d->existing : d->id;
}

struct request *draft_request(const struct core_draft *d)
{
        return d->request;
}

struct core *draft_core(const struct core_draft *d)
{
        return d->core;
}

void core_draft_free(struct core_draft *d)
{
        struct core_draft **at;

        if (!d)
                return;
        for (at = &d->core->drafts; *at != d; at = &(*at)->next)
                ;
        *at = d->next;
        split_free(d->split);
        if (d->request)
                request_free(d->core, d->request);
        if (d->core->requests->draft_id == d->id)
                d->core->requests->draft_id--;
        free(d);
}

int core_submit(struct core *c, const struct submission *s, bool check_only, uint64_t *ret_request,
                bool *ret_existing, struct err *err)
{
        struct core_draft *d = NULL;
        bool more = true;
        int r = submission_check(s, err);

        if (r)
                return CORE_INVALID;
        r = core_draft_new(c, s, CORE_DRAFT_SUBMIT, &d, err);
        while (!r && more)
                r = core_draft_some(d, &more, err);
        if (!r)
                *ret_request = core_draft_number(d, ret_existing);
        if (!r && !check_only)
                r = core_draft_submit(d, ret_request, ret_existing, err);
        core_draft_free(d);
        return r;
}
