#include "server/history/past.h"
#include "server/loop/expressions.h"

#include "base/map.h"
#include "classad/eval.h"
#include "classad/print.h"
#include "core/model/attributes.h"
#include "core/query.h"
#include "server/history/request_record.h"

#define KEPT_MAX 32 /* requests whose templates are kept */

struct kept_part {
        uint64_t end; /* members up to this one belong to this part or an earlier one */
        struct ad *ad;
};
struct kept {
        struct kept_part *parts;
        size_t count;
        struct kept *older;
        struct symbols_use *names; /* names used by the templates and the ads of their jobs */
        uint64_t request;
        unsigned char uuid[16];
};
struct past {
        struct server *server;
        struct symbols *symbols;
        struct attributes attr;
        struct kept *newest;
        size_t count;
};

struct past *past_new(struct server *s)
{
        struct past *p = mem_new(struct past);

        p->server = s;
        p->symbols = symbols_new();
        attributes_intern(&p->attr, p->symbols);
        return p;
}

static void kept_free(struct kept *k)
{
        for (size_t i = 0; i < k->count; i++)
                ad_free(k->parts[i].ad);
        symbols_use_free(k->names);
        free(k->parts);
        free(k);
}

void past_free(struct past *p)
{
        if (!p)
                return;
        while (p->newest) {
                struct kept *k = p->newest;

                p->newest = k->older;
                kept_free(k);
        }
        symbols_free(p->symbols);
        free(p);
}

/* Leaves out attributes that only a history row may set: with them a submitter could name other users'
 * files. */
static struct ad *template_ad(struct past *p, const struct submission_part *part)
{
        struct ad *ad = ad_new(p->symbols);

        for (size_t i = 0; i < part->attribute_count; i++) {
                const struct submission_attribute *a = &part->attributes[i];
                symbol name = symbols_intern(p->symbols, a->name);

                if (!a->late && ad_set_text(ad, name, a->text, NULL) == 0)
                        ad_set_spelling(ad, name, symbols_spelling(p->symbols, name, a->name));
        }
        ad_remove(ad, p->attr.DroverLog);
        ad_remove(ad, p->attr.DroverOutputs);
        return ad;
}

static struct kept *load(struct past *p, uint64_t request)
{
        BUF_CLEANUP struct buf record = {0};
        struct kept *k = mem_new(struct kept);
        struct submission s;
        struct symbols_use *before;
        uint64_t end = 0;

        k->request = request;
        k->names = symbols_use_new(p->symbols, STR_NONE);
        if (request_record_get(p->server, request, &record, NULL) != 0 ||
            submission_unpack(&s, buf_view(&record), NULL) != 0)
                return k;
        memcpy(k->uuid, s.uuid, sizeof(k->uuid));
        before = symbols_use_set(p->symbols, k->names);
        k->parts = mem_zalloc((s.part_count + 1) * sizeof(*k->parts));
        for (; k->count < s.part_count; k->count++) {
                const struct submission_part *part = &s.parts[k->count];

                end += part->rows * part->steps;
                k->parts[k->count] = (struct kept_part){end, template_ad(p, part)};
        }
        symbols_use_set(p->symbols, before);
        submission_deinit(&s);
        return k;
}

/* Returns the request's templates, and moves them to the front; beyond KEPT_MAX the least recently used
 * are dropped. */
static struct kept *get_kept(struct past *p, uint64_t request)
{
        struct kept **at = &p->newest, *k;

        while (*at && (*at)->request != request)
                at = &(*at)->older;
        k = *at;
        if (k) {
                *at = k->older;
        } else {
                k = load(p, request);
                p->count++;
        }
        k->older = p->newest;
        p->newest = k;
        if (p->count > KEPT_MAX) {
                for (at = &p->newest; (*at)->older; at = &(*at)->older)
                        ;
                kept_free(*at);
                *at = NULL;
                p->count--;
        }
        return k;
}

/* Returns the job's ad with its template as parent (none if the record is gone), or NULL when the row
 * cannot be read. The caller frees the ad before the next call. */
static struct ad *past_ad(struct past *p, const struct past_job *h)
{
        struct kept *k = get_kept(p, h->request);
        BUF_CLEANUP struct buf id = {0};
        struct symbols_use *before = symbols_use_set(p->symbols, k->names);
        struct value starts;
        struct ad *ad;
        int r = ad_parse(p->symbols, h->data, CLASSAD_NEW, &ad, NULL);

        symbols_use_set(p->symbols, before);
        if (r != 0)
                return NULL;
        for (size_t i = 0; i < k->count; i++)
                if (h->member < k->parts[i].end) {
                        ad_set_parent(ad, k->parts[i].ad);
                        break;
                }
        if (ad_literal(ad, p->attr.NumJobStarts, &starts) && starts.type == VALUE_INTEGER) {
                ad_set_integer(ad, p->attr.JobRunCount, starts.integer);
                ad_set_integer(ad, p->attr.NumShadowStarts, starts.integer);
        }
        if (k->count) {
                core_global_id(&id, k->uuid, h->request, h->member, h->submitted_ms);
                ad_set_string(ad, p->attr.GlobalJobId, buf_view(&id));
        }
        return ad;
}

static struct str past_text_of(struct eval *ev, const struct ad *ad, symbol name, struct arena *a)
{
        struct str v;

        return eval_string(ev, ad, NULL, name, &v) ? arena_str(a, v) : STR_NONE;
}

static int64_t number_of(struct eval *ev, const struct ad *ad, symbol name)
{
        int64_t v = 0;

        eval_integer(ev, ad, NULL, name, &v);
        return v;
}

/* Sets the attribute to "queue@agent". */
static void set_place(struct eval *ev, const struct ad *ad, symbol name, struct arena *a, struct row *r)
{
        struct str place = past_text_of(ev, ad, name, a);
        ptrdiff_t at = str_find(place, '@');

        if (at < 0)
                return;
        r->queue = str_head(place, (size_t)at);
        r->agent = str_skip(place, (size_t)at + 1);
}

struct symbols *past_symbols(struct past *p)
{
        return p->symbols;
}

bool past_row(struct past *p, const struct past_job *h, struct constraint *filter, struct arena *a,
              bool whole, struct str names, struct row *ret)
{
        const struct attributes *at = &p->attr;
        BUF_CLEANUP struct buf out = {0};
        struct ad *ad = past_ad(p, h);
        struct eval ev;
        int64_t signal = 0;

        if (!ad)
                return false;
        if (filter && !constraint_holds(filter, ad, h->request, h->member)) {
                ad_free(ad);
                return false;
        }
        expressions_read_init(&ev, h->ended_ms / 1000);
        *ret = (struct row){
                .request = h->request,
                .member = h->member,
                .state = (enum job_state)h->state,
                .status = job_state_status((enum job_state)h->state),
                .owner = arena_str(a, h->owner),
                .starts = (uint32_t)number_of(&ev, ad, at->NumJobStarts),
                .submitted_ms = h->submitted_ms,
                .entered_ms = h->ended_ms,
                .ended_ms = h->ended_ms,
                .cmd = past_text_of(&ev, ad, at->DroverCommand, a),
        };
        if (ret->cmd.n == 0) {
                ret->cmd = past_text_of(&ev, ad, at->Cmd, a);
                ret->args = past_text_of(&ev, ad, at->Arguments, a);
        }
        if (ret->args.n == 0 && !ad_find(ad, at->DroverCommand))
                ret->args = past_text_of(&ev, ad, at->Args, a);
        ret->started_ms = number_of(&ev, ad, at->DroverStartedMs);
        set_place(&ev, ad, at->LastRemoteHost, a, ret);
        ret->signaled = eval_integer(&ev, ad, NULL, at->ExitSignal, &signal);
        ret->ended = ret->signaled || ad_find(ad, at->ExitCode) != NULL;
        ret->exit_code = ret->signaled ? (int32_t)signal : h->exit_code;
        if (whole) {
                ad_print_json(&out, ad, true);
                ret->ad = arena_str(a, buf_view(&out));
        } else if (names.n) {
                ret->ad = row_print_ad(ad, names, a);
        }
        eval_deinit(&ev);
        ad_free(ad);
        return true;
}
