#include "core/classes/admission.h"
#include "base/job/match_macro.h"
#include "base/mem.h"
#include "core/classes/bucket.h"
#include "core/classes/job_class.h"
#include "core/classes/split.h"
#include "core/data/inputs.h"
#include "core/fairness/charge.h"
#include "core/model/edit.h"
#include "core/model/graph.h"
#include "core/model/place_wait.h"
#include <assert.h>

int request_load_begin(struct core *c, struct request *r, const struct submission *s,
                       struct request_loading *ret, struct err *err)
{
        uint64_t items = 0;

        memcpy(r->uuid, s->uuid, sizeof(r->uuid));
        r->owner = owner_ref(c, s->owner);
        r->kib = submission_kib(s);
        r->digest = s->digest;
        if (submission_members(s) != r->count)
                return err_set(
                        err, CORE_DAMAGED, "request %llu has %llu jobs in its record and %u in the log",
                        (unsigned long long)r->id, (unsigned long long)submission_members(s), r->count);
        request_spooled_load(r, s);
        request_spooled_keep(r);
        delegation_load(r, s);
        for (size_t i = 0; i < s->part_count; i++)
                items += s->parts[i].items.n;
        r->parts = mem_zalloc(s->part_count * sizeof(*r->parts) + items);
        *ret = (struct request_loading){.from = s, .room = (char *)(r->parts + s->part_count)};
        return 0;
}

static int admission_part_begin(struct core *c, struct request *r, struct request_loading *l, struct err *err)
{
        const struct submission_part *from = &l->from->parts[l->part];
        struct part *p = &r->parts[l->part], *before = l->part ? p - 1 : NULL;
        int e = job_template_get(c, from, l->from->owner, &p->job_template, err);

        if (e)
                return e;
        r->part_count++;
        p->first = before ? before->first + before->count : 0;
        p->count = (uint32_t)(from->rows * from->steps);
        p->rows = (uint32_t)from->rows;
        p->steps = (uint32_t)from->steps;
        r->periodic |= p->job_template->periodic_policy;
        r->leaves |= p->job_template->leaves;
        r->has_metas |= p->job_template->meta.wanted;
        r->together |= p->job_template->meta.together;
        r->has_gangs |= p->job_template->gang.size != 0 || r->together;
        if (from->items.n == 0)
                return 0;
        p->items = l->room;
        p->items_n = (uint32_t)from->items.n;
        l->room += from->items.n;
        if (p->rows > ROW_STRIDE)
                p->row_at = mem_alloc((p->rows / ROW_STRIDE + 1) * sizeof(*p->row_at));
        return 0;
}

#define ROW_COSTS  24u /* number of rows whose loading takes as long as putting a member into a class */
#define PART_COSTS 10u

/* Returns whether there are more rows. */
static bool load_rows(struct part *p, struct request_loading *l, uint32_t *budget)
{
        struct str items = l->from->parts[l->part].items;
        uint64_t left = (uint64_t)*budget * ROW_COSTS, had = left;

        for (; left > 0 && l->row_at < items.n; l->row++) {
                const char *at = items.p + l->row_at, *end = memchr(at, '\n', items.n - l->row_at);
                struct str row;

                assert(end);
                row = str_make(at, (size_t)(end - at));
                if (p->row_at && l->row % ROW_STRIDE == 0)
                        p->row_at[l->row / ROW_STRIDE] = (uint32_t)l->row_at;
                memcpy(p->items + l->row_at, row.p, row.n + 1);
                p->item_fills |= match_macro_present(row);
                l->row_at += row.n + 1;
                left -= left < 1 + row.n / 1024 ? left : 1 + row.n / 1024;
        }
        *budget -= (uint32_t)((had - left) / ROW_COSTS);
        return l->row_at < items.n;
}

/* Loads the graph, once all parts are loaded. */
static int load_graph(struct core *c, struct request *r, const struct submission *s, struct err *err)
{
        struct graph *g = NULL;
        int e = request_cold(r)->graph ? 0 : graph_load(c, r, s, &g, err);

        if (g)
                request_cold_make(r)->graph = g;
        return e;
}

int request_load_some(struct core *c, struct request *r, struct request_loading *l, uint32_t *budget,
                      bool *ret_more, struct err *err)
{
        while (*budget > 0 && l->part < l->from->part_count) {
                struct part *p = &r->parts[l->part];
                uint64_t steps = core_steps(c), cost;
                int e = p->job_template ? 0 : admission_part_begin(c, r, l, err);

                if (e)
                        return e;
                if (load_rows(p, l, budget))
                        continue;
                part_data_load(c, r, p);
                cost = PART_COSTS + (core_steps(c) - steps) / SPLIT_STEPS;
                *budget -= *budget < cost ? *budget : (uint32_t)cost;
                l->part++;
                l->row_at = l->row = 0;
        }
        *ret_more = l->part < l->from->part_count;
        if (*ret_more)
                return 0;
        if (!l->loaded)
                request_spooled_give(r);
        l->loaded = true;
        return load_graph(c, r, l->from, err);
}

int request_load(struct core *c, struct request *r, const struct submission *s, struct err *err)
{
        struct request_loading l;
        bool more = true;
        int e = request_load_begin(c, r, s, &l, err);

        while (!e && more) {
                uint32_t budget = UINT32_MAX;

                e = request_load_some(c, r, &l, &budget, &more, err);
        }
        return e;
}

/* The record that was loaded last. Mostly the next one is the same except for its uuid and time, and then
 * need not be read again. */
struct loaded_record {
        struct buf record;
        struct submission submission; /* its texts are in `record` */
};

static void loaded_forget(struct core *c, struct loaded_record *l)
{
        if (l->submission.part_count)
                job_template_unref(c, l->submission.parts[0].made);
        submission_deinit(&l->submission);
        buf_deinit(&l->record);
        *l = (struct loaded_record){0};
}

void request_load_over(struct core *c)
{
        if (!c->requests->loaded)
                return;
        loaded_forget(c, c->requests->loaded);
        free(c->requests->loaded);
        c->requests->loaded = NULL;
}

int request_load_stored(struct core *c, struct request *r, struct err *err)
{
        struct buf BUF_CLEANUP record = {0};
        struct loaded_record *l = c->requests->loaded;
        int e;

        if (c->config.shadow)
                return 0;
        if (!l)
                l = c->requests->loaded = mem_new(struct loaded_record);
        e = c->world.load(c->world.arg, r->id, &record, err);
        if (e)
                return e;
        if (!submission_unpack_alike(&l->submission, buf_view(&l->record), buf_view(&record))) {
                loaded_forget(c, l);
                l->record = record;
                record = (struct buf){0};
                e = submission_unpack(&l->submission, buf_view(&l->record), err);
        }
        if (!e)
                e = request_load(c, r, &l->submission, err);
        if (e) {
                loaded_forget(c, l);
        } else if (r->part_count && !l->submission.parts[0].made) {
                l->submission.parts[0].made = r->parts[0].job_template;
                r->parts[0].job_template->refs++;
        }
        l->submission.owner = STR_NONE; /* it was borrowed from `record` */
        return e;
}

void request_show(struct core *c, struct request *r)
{
        requests_add(c, r);
        if (!r->owner)
                return;
        charge_request(c, r, request_unended(r));
        delegation_show(c, r);
}

void request_hide(struct core *c, struct request *r)
{
        if (request_find(c, r->id) != r)
                return;
        if (c->classes->rekeying && split_request(c->classes->rekeying) == r) {
                split_free(c->classes->rekeying);
                c->classes->rekeying = NULL;
        }
        charge_request_gone(c, r);
        c->listeners.request_gone(c, r);
        if (c->classes->rekey_next == r)
                c->classes->rekey_next = r->next;
        requests_remove(c, r);
}

void request_free(struct core *c, struct request *r)
{
        void *value;

        request_buckets_free(c, r);
        request_data_free(c, r);
        delegation_free(c, r);
        if (r->buckets != &r->only_bucket)
                free(r->buckets);
        for (size_t at = 0; r->jobs && idmap_next(r->jobs, &at, NULL, &value);) {
                charge_end(c, value, 0);
                job_free(value);
        }
        idmap_free(r->jobs);
        edits_free(c, r);
        for (size_t i = 0; i < r->part_count; i++) {
                job_template_unref(c, r->parts[i].job_template);
                free(r->parts[i].row_at);
        }
        free(r->parts);
        place_wait_forget(r);
        c->requests->left -= set_count(&request_cold(r)->left);
        request_hide(c, r);
        request_cold_free(r);
        owner_unref(c, r->owner);
        free(r);
}
