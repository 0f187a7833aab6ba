#include "core/classes/fill.h"

#include "base/job/match_macro.h"
#include "base/mem.h"
#include "classad/print.h"
#include "core/classes/member_ad.h"
#include "core/model/core_parts.h"
#include "core/model/need.h"

bool fill_next(struct str *rest, struct fill *ret)
{
        struct unpack u = unpack_from(*rest);

        if (rest->n == 0)
                return false;
        ret->inside = unpack_str(&u);
        ret->is_text = unpack_max(&u, 1);
        ret->value = unpack_str(&u);
        *rest = str_make((const char *)u.p, (size_t)(u.end - u.p));
        return !u.bad;
}

static bool find_fill(struct str values, struct str inside, struct fill *ret)
{
        while (fill_next(&values, ret))
                if (str_eq(ret->inside, inside))
                        return true;
        return false;
}

bool fill_wanted(const struct part *p)
{
        return p->item_fills || (p->job_template && p->job_template->fill_count > 0);
}

/* ---- evaluating */

/* Work on the references of one job, in steps: one reference, or so many bytes of its text and of the values
 * that it is looked up among. Without a bound, a MiB of references is a quarter of a million of them, each
 * looked up among all before. */
#define WORK_MAX   20000u
#define WORK_BYTES 32u

struct filling {
        struct core *core;
        uint64_t work;
        struct ad *job, *place, *scratch;
        symbol expression; /* attribute of the scratch ad that is evaluated */
        bool varies;
        struct buf *values;
};

/* Appends the value as text: a string itself, any other value as a literal. */
static void put_value(struct filling *f, struct str inside, const struct value *v)
{
        BUF_CLEANUP struct buf text = {.max = SUBMISSION_TEXT_MAX};

        if (v->type != VALUE_STRING)
                value_print(&text, v);
        pack_str(f->values, inside);
        pack_u64(f->values, v->type == VALUE_STRING);
        pack_str(f->values, v->type == VALUE_STRING ? v->string : buf_view(&text));
}

/* Counts work on a text of n bytes. Returns false if this job's references have taken all they may. */
static bool count_work(struct filling *f, size_t n)
{
        f->work += 1 + n / WORK_BYTES;
        f->core->late_steps += 1 + n / WORK_BYTES;
        return f->work <= WORK_MAX;
}

static bool evaluate(struct filling *f, const struct match_macro *m, struct value *ret)
{
        BUF_CLEANUP struct buf text = {.max = SUBMISSION_TEXT_MAX};

        if (m->name.n)
                buf_printf(&text, "TARGET." STR_FMT, STR_ARG(m->name));
        else
                buf_str(&text, m->expression);
        if (ad_set_text(f->scratch, f->expression, buf_view(&text), NULL) != 0)
                return false;
        eval_attr(&f->core->eval, f->scratch, f->place, f->expression, ret);
        return ret->type != VALUE_UNDEFINED && ret->type != VALUE_ERROR;
}

/* Evaluates the references of a text. Returns false if one has no value; *ret_missing is its inside. */
static bool fill_text(struct filling *f, struct str text, struct str *ret_missing)
{
        struct match_macro m;
        struct str before;
        struct fill known;

        while (match_macro_next(&text, &before, &m) == MATCH_MACRO_ONE) {
                struct value v = {.type = VALUE_STRING, .string = m.otherwise}, literal;
                symbol name;

                if (!count_work(f, before.n / 8 + m.inside.n + f->values->n)) {
                        *ret_missing = STR("too many references, or too long ones");
                        return false;
                }
                if (str_ieqz(m.name, "DOLLARDOLLAR") || find_fill(buf_view(f->values), m.inside, &known))
                        continue;
                name = m.name.n ? symbols_intern(f->core->symbols, m.name) : 0;
                if (name && ad_find(f->place, name) && !ad_literal(f->place, name, &literal))
                        f->varies = true; /* a place's expression may refer to the job */
                if (!evaluate(f, &m, &v)) {
                        *ret_missing = m.inside;
                        if (!m.otherwise.p)
                                return false;
                        v = (struct value){.type = VALUE_STRING, .string = m.otherwise};
                }
                put_value(f, m.inside, &v);
        }
        return true;
}

/* Returns the n-th attribute that may hold references; 0: no more. If items hold some, every late attribute
 * may. */
static symbol candidate(const struct part *p, size_t n)
{
        const struct job_template *t = p->job_template;

        if (n < t->fill_count)
                return t->fills[n];
        n -= t->fill_count;
        return p->item_fills && n < t->late_count ? t->late[n].name : 0;
}

/* Makes the queue's ad for one member: the resources in it are those that the member takes. */
static struct ad *place_ad(struct core *c, const struct queue *q, const struct need *need)
{
        struct ad *ad = ad_new(c->symbols);

        ad_set_parent(ad, q->ad);
        ad_set_integer(ad, c->attr.Cpus, need->cpus);
        if (need->memory_mib)
                ad_set_integer(ad, c->attr.Memory, need->memory_mib);
        if (need->disk_kib)
                ad_set_integer(ad, c->attr.Disk, need->disk_kib);
        for (unsigned i = 0; i < need->more.count; i++)
                ad_set_integer(ad, need->more.v[i].name, need->more.v[i].n);
        return ad;
}

enum fill_result fill_member(struct core *c, const struct request *r, const struct part *p, uint32_t member,
                             const struct queue *q, const struct need *need, struct buf *ret)
{
        BUF_CLEANUP struct buf values = {.max = FILL_VALUES_MAX};
        struct filling f = {.core = c,
                            .job = member_ad(c, r, member, request_job(r, member)),
                            .place = place_ad(c, q, need),
                            .scratch = ad_new(c->symbols),
                            .expression = symbols_intern(c->symbols, STR("DroverFill")),
                            .varies = p->job_template->fills_vary || p->item_fills,
                            .values = &values};
        struct symbols_use *before = job_template_names(c, p->job_template);
        struct str missing = STR_NONE;
        struct value v;
        bool all = true;
        symbol name;

        ad_set_parent(f.scratch, f.job);
        eval_share(&c->eval);
        for (size_t i = 0; all && (name = candidate(p, i)) != 0; i++)
                if (ad_literal(f.job, name, &v) && v.type == VALUE_STRING)
                        all = fill_text(&f, v.string, &missing);
        eval_share_end(&c->eval);
        if (buf_check(&values)) {
                all = false;
                missing = STR("too long values");
        }
        buf_reset(ret);
        buf_str(ret, all ? buf_view(&values) : missing);
        ad_free(f.scratch);
        ad_free(f.place);
        ad_free(f.job);
        symbols_use_set(c->symbols, before);
        if (all)
                return f.varies ? FILL_VARIES : FILL_SAME;
        return f.varies ? FILL_MISSING : FILL_MISSING_SAME;
}

/* ---- setting MATCH_… attributes */

#define SHOWN_MAX SUBMISSION_TEXT_MAX /* of all texts with values together; those beyond it are not shown */

static bool value_of(void *arg, struct str inside, struct buf *out)
{
        struct fill one;

        if (!find_fill(*(const struct str *)arg, inside, &one))
                return false;
        buf_str(out, one.value);
        return true;
}

static void show_value(struct core *c, const struct fill *one, struct ad *ad)
{
        BUF_CLEANUP struct buf attribute = {0};
        struct str name = one->inside;
        symbol s;

        if (str_starts(name, STR("[")))
                return;
        name = str_trim(str_find(name, ':') < 0 ? name : str_head(name, (size_t)str_find(name, ':')));
        buf_printf(&attribute, "MATCH_" STR_FMT, STR_ARG(name));
        s = symbols_intern(c->symbols, buf_view(&attribute));
        if (one->is_text || ad_set_text(ad, s, one->value, NULL) != 0)
                ad_set_string(ad, s, one->value);
}

void fill_show(struct core *c, const struct part *p, struct str values, struct ad *ad)
{
        struct str rest = values;
        size_t left = SHOWN_MAX;
        struct fill one;
        struct value v;
        symbol name;

        while (fill_next(&rest, &one))
                show_value(c, &one, ad);
        for (size_t i = 0; left && p->job_template && (name = candidate(p, i)) != 0; i++) {
                BUF_CLEANUP struct buf attribute = {0}, text = {.max = left};

                if (!ad_literal(ad, name, &v) || v.type != VALUE_STRING || !match_macro_present(v.string))
                        continue;
                match_macro_fill(v.string, value_of, &values, &text);
                if (buf_check(&text))
                        continue;
                left -= text.n;
                buf_printf(&attribute, "MATCH_EXP_" STR_FMT, STR_ARG(symbols_name(c->symbols, name)));
                ad_set_string(ad, symbols_intern(c->symbols, buf_view(&attribute)), buf_view(&text));
        }
}
